"""Makes gwmond/data/demo.zip: a ledger of a simulated week, and the recording that follows it.

    python -m tests.simulator [--hours H] [--frames N] [FILE]

gwmond's own poller plays the week with the simulated clock, and its own Recorder records what
follows; then the tour is made of what is known to be true.  It prints how far verdicts and
partition are from the truth (docs/truth.md).  It needs HTCondor's bindings, and no pool; some ten
minutes.
"""

from __future__ import annotations

import argparse
import sqlite3
import tempfile
from pathlib import Path
from unittest import mock

from gwmond.config.settings import Config
from gwmond.service.host import log
from gwmond.sources.recording.recorder import Recorder
from gwmond.sources.recording.recording import Writer
from gwmond.sources.round import Targets
from tests.build.at_once import at_once
from tests.simulator import story, tour, week
from tests.simulator.access import SimulatedAccess
from tests.simulator.play import POLL_S
from tests.simulator.pool import Pool
from tests.simulator.world import COLLECTOR, FACTORY_SCHEDD, PRESENT_H, WMS

DEMO = Path(__file__).parents[2] / "gwmond" / "data" / "demo.zip"
FRAMES = 576


def record(access: SimulatedAccess, writer: Writer, frames: int) -> None:
    """Record so many frames of what follows, with the last records that gwmond has read."""
    recorder = Recorder(Config(), Targets((COLLECTOR,), (WMS,), (FACTORY_SCHEDD,)))
    writer._daemons = recorder.asked()
    with (
        at_once(),
        mock.patch.object(writer._pseudonyms, "clean", side_effect=dict),  # nobody is real
    ):
        for number in range(frames):
            access.go_on(POLL_S)
            now = access.pool.now
            frame = recorder.frame(access, now)
            writer.add(now, access.explaining(frame, recorder.asked_of_pilots))
            if number % 72 == 71:
                print(f"frame {number + 1}", flush=True)
    for stream, error in sorted(recorder.errors.items()):
        print(f"{stream}: {error}")


def main() -> None:
    """Make the demo, and say how true it is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, default=DEMO)
    parser.add_argument("--hours", type=float, default=PRESENT_H)
    parser.add_argument("--frames", type=int, default=FRAMES)
    options = parser.parse_args()
    log.configure(Config().log)
    pool = Pool(events=(*story.EVENTS, *story.LATER))
    with tempfile.TemporaryDirectory() as directory:
        ledger = Path(directory) / "ledger.sqlite"
        shown = week.play(pool, ledger, options.hours, lambda text: print(text, flush=True))
        print(week.told(shown, ledger))
        with sqlite3.connect(ledger) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("VACUUM")
        writer = Writer(options.file, {}, overwrite=True)
        writer.add_past(ledger, tour.stops(pool, ledger))
        record(shown.access, writer, options.frames)
        writer.close()
    print(f"{options.file}: {options.file.stat().st_size} bytes")


if __name__ == "__main__":
    main()
