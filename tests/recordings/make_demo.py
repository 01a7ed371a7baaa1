"""Makes gwmond/data/demo.zip, the recording that ``gwmond demo`` replays.

    python -m tests.recordings.make_demo [--frames N] [FILE]

A day of an invented pool is simulated (world.py, kinds.py, scenario.py, simulation.py).  At each
step its ads are put into a real collector, ads of what has ended are taken out, and gwmond's own
Recorder asks that collector and four real schedds.  In the schedds waits one real job of each kind:
the rows of the recording are real rows (their Requirements are what the schedd made of them), with
the simulated number of jobs.  Histories are the model's (runs.py, run_ads.py), for no real job runs
to its end.  Times are simulated (simulated.py says what else is replaced).

As root, with HTCondor at hand (tests/pool/setup.sh); it takes some minutes.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

from gwmond.config.settings import Config
from gwmond.sources import child
from gwmond.sources.recording.recorder import Recorder
from gwmond.sources.recording.recording import Writer
from gwmond.sources.round import Targets
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
REMEMBERED_S = 2 * 3600


def in_this_process(task: Callable[..., Any], *args: Any, deadline_s: float) -> tuple[Any, None]:
    """Run a query at once instead of ``child.run``: thousands of processes take long."""
    del deadline_s
    return task(*args), None


def record(path: Path, frames: int) -> None:
    """Simulate, record, and say how far it is."""
    began = time.monotonic()
    simulation = Simulation(entries(), kinds(), BEGINS, WARM_UP)
    simulation.forget_before(simulation.now - REMEMBERED_S)
    print(f"simulated {WARM_UP} steps before the day in {time.monotonic() - began:.0f} s")
    with CondorPool(config=CONFIG, domain=DOMAIN) as pool:
        os.environ.update(pool.client_env())
        stage = Stage(pool, simulation)
        recorder = Recorder(Config(), Targets((COLLECTOR,), (), ()))
        writer = Writer(path, recorder.asked())
        for number in range(frames):
            if number == frames - 1:
                stage.end_day()
            stage.play()
            with mock.patch.object(child, "run", in_this_process):
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
    os.environ["CONDOR_CONFIG"] = "ONLY_ENV"  # the pool is gone
    start_children("tests.recordings.summary")
    print(summarise(options.file))


if __name__ == "__main__":
    main()
