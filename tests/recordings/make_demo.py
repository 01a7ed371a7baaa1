"""Makes gwmond/data/demo.zip, the recording that ``gwmond demo`` replays.

    python -m tests.recordings.make_demo [--frames N] [FILE]

A day of an invented pool is simulated (world.py, kinds.py, scenario.py, simulation.py).  At each
step its ads are put into a real collector, ads of what has ended are taken out, and gwmond's own
Recorder asks that collector and four real schedds.  In the schedds waits one real job of each kind:
the rows of the recording are real rows (their Requirements are what the schedd made of them), with
the simulated number of jobs.  Times are simulated (simulated.py says what else is replaced).

As root, with HTCondor at hand (tests/pool/setup.sh); it takes some minutes.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from gwmond.config import Config
from gwmond.sources.gather import Targets
from gwmond.sources.recorder import Recorder
from gwmond.sources.recording import Writer
from tests.pool.condor import CondorPool
from tests.recordings.kinds import kinds
from tests.recordings.simulated import COLLECTOR
from tests.recordings.simulation import Simulation
from tests.recordings.stage import CONFIG, Stage
from tests.recordings.summary import start_children, summarise
from tests.recordings.world import DOMAIN, entries

DEMO = Path(__file__).parents[2] / "gwmond" / "data" / "demo.zip"
FRAMES = 288
WARM_UP = 432
BEGINS = 1773122400  # 2026-03-10 06:00 UTC


def record(path: Path, frames: int) -> None:
    """Simulate, record, and say how far it is."""
    began = time.monotonic()
    simulation = Simulation(entries(), kinds(), BEGINS, WARM_UP)
    print(f"simulated {WARM_UP} steps before the day in {time.monotonic() - began:.0f} s")
    with CondorPool(config=CONFIG, domain=DOMAIN) as pool:
        os.environ.update(pool.client_env())
        start_children("tests.recordings.stage", "tests.recordings.summary")
        stage = Stage(pool, simulation)
        recorder = Recorder(Config(), Targets((COLLECTOR,), (), ()))
        writer = Writer(path, recorder.daemons())
        for number in range(frames):
            stage.play()
            answers = recorder.frame(stage.access(), simulation.now)
            writer.add(simulation.now, answers)
            if number % 12 == 11 or number == frames - 1:
                pilots = sum(1 for _ in simulation.all_pilots())
                idle = int(sum(simulation.idle))
                took = time.monotonic() - began
                print(f"frame {number + 1}: {pilots} pilots, {idle} jobs idle, {took:.0f} s")
            simulation.step()
        writer.close()
        for stream, error in sorted(recorder.errors.items()):
            print(f"{stream}: {error}")


def main() -> None:
    """Make the recording, and say what it has."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, default=DEMO)
    parser.add_argument("--frames", type=int, default=FRAMES)
    options = parser.parse_args()
    options.file.parent.mkdir(exist_ok=True)
    record(options.file, options.frames)
    print(summarise(options.file))


if __name__ == "__main__":
    main()
