"""What a recording shows when the daemon's own sources and accounting work on it.

    python -m tests.recordings.summary FILE [--every N]

polls it at every Nth frame, and prints the result in JSON.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from gwmond.config.settings import Config, Replay
from gwmond.metrics import factory
from gwmond.model.elapsed import Tick
from gwmond.model.facts import EntryKey
from gwmond.model.poll.snapshot import Snapshot
from gwmond.model.states import State
from gwmond.model.units import Resource
from gwmond.service.host import log
from gwmond.service.host.clock import ReplayClock
from gwmond.service.poller import Poller
from gwmond.service.pool.pool import Pool
from gwmond.sources import child
from gwmond.sources.recording.recording import Recording


class Shown(NamedTuple):
    """Counts over the frames that were polled; ``states`` and ``reasons`` of entries' rows.

    ``samples``: of each metric of what factories and frontends say, the fewest in a frame.
    """

    frames: int
    sites: int
    entries: int
    most_pilots: int
    least_pilots: int
    most_idle_jobs: int
    changes_a_poll: float
    states: dict[str, int]
    reasons: dict[str, int]
    problems: dict[str, int]
    samples: dict[str, int]


class SteppedClock(ReplayClock):
    """A replay's clock that stands until it is set: ``passed`` are recorded seconds."""

    passed = 0.0

    def tick(self) -> Tick:
        """Return the time to which it was set."""
        return super().tick()._replace(wall=self._start + self.passed)

    def next_tick(self, after: Tick | None) -> Tick:
        """Return it."""
        del after
        return self.tick()


def start_children(*modules: str) -> None:
    """Start the server of query processes with what queries need loaded, else each loads it."""
    child.start()
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["htcondor2", "classad2", "gwmond.sources.tasks", *modules])


def replay(path: Path, frames: Iterable[int]) -> Iterator[Snapshot]:
    """Poll the recorded pool once at each of some frames, in ascending order."""
    config = Config(replay=Replay(file=str(path)))
    pool = Pool(config)
    assert pool.recording is not None
    times = pool.recording.times
    clock = SteppedClock(times[0], pool.recording.duration_s, 1.0)
    pool.clock = clock
    poller = Poller(config, pool, None)
    for frame in frames:
        clock.passed = times[frame] - times[0] + 1
        yield poller.poll()


def show(path: Path, every: int) -> Shown:
    """Poll every so many frames, and count what is seen."""
    states: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    problems: Counter[str] = Counter()
    samples: dict[str, int] = {}
    pilots, idle = [], []
    keys: set[EntryKey] = set()
    changes = 0
    before: dict[tuple[EntryKey, Resource], State] = {}
    for snapshot in replay(path, range(0, len(Recording(str(path)).times), every)):
        rows = snapshot.evaluation.rows
        states.update(row.state.value for row in rows.values())
        reasons.update(f"{row.state.value}: {row.reason}" for row in rows.values() if row.reason)
        now = {at: row.state for at, row in rows.items()}
        changes += sum(before.get(at, state) != state for at, state in now.items())
        before = now
        keys |= {key for key, _ in rows}
        pilots.append(sum(group.registered for group in snapshot.pilots.values()))
        idle.append(sum(count.jobs for count in snapshot.jobs if count.status == "idle"))
        for family in factory.FAMILIES:
            number = sum(1 for _ in family.samples(snapshot))
            samples[family.name] = min(number, samples.get(family.name, number))
        problems = Counter({f"{of}: {what}": n for (of, what), n in snapshot.problems.items()})
    return Shown(
        frames=len(pilots),
        sites=len({key.site for key in keys}),
        entries=len(keys),
        most_pilots=max(pilots),
        least_pilots=min(pilots),
        most_idle_jobs=max(idle),
        changes_a_poll=round(changes / max(1, len(pilots) - 1), 1),
        states=dict(states),
        reasons=dict(reasons),
        problems=dict(problems),
        samples=samples,
    )


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--every", type=int, default=6)
    options = parser.parse_args()
    log.configure(Config().log)
    start_children("gwmond.service.poller")
    print(json.dumps(show(options.file, options.every)._asdict(), indent=1))


if __name__ == "__main__":
    _main()
