"""analyze_entries of a factory's directories that ``gwmond import`` has read: it is the truth."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.build.command_line import gwmond
from tests.build.gwms import generate, simulated
from tests.build.gwms.simulated import Pilot

NUMBER, SEED = 300, 11
PERIOD = "--from", str(simulated.BASE), "--to", str(simulated.BASE + 10 * 86_400)
Records = dict[tuple[str, str | None, str | None], dict[str, Any]]


def whole(pilot: Pilot) -> bool:
    """Whether its output has all that there is to know."""
    return pilot.returned and pilot.tells_cores and pilot.tells_memory


def told(root: Path, pilots: list[Pilot]) -> Records:
    """Import the outputs of these pilots, and report."""
    for pilot in pilots:
        folder = root / "client" / pilot.directory
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in generate.files(pilot).items():
            (folder / name).write_bytes(content)
    ledger = "--ledger", f"sqlite:///{root}/ledger.sqlite"
    done = gwmond("import", *ledger, root / "client")
    assert done.returncode == 0, done.stderr
    options = "--style", "analyze-entries", "--format", "json", *PERIOD
    done = gwmond("report", *ledger, *options)
    assert done.returncode == 0, done.stderr
    return {
        (one["part"], one["frontend"], one["entry"]): one
        for one in json.loads(done.stdout)["records"]
    }


def spans(pilot: Pilot) -> list[tuple[int, int, bool]]:
    """Runs from when the schedd began them, 10 s before the program; and whether they exited 0.

    A starter's log tells only when the program began.
    """
    before = 0 if pilot.kind == "no_history" else 10
    return [(job.start - before, job.end, job.code == 0 and not job.evicted) for job in pilot.jobs]


def used(pilot: Pilot) -> tuple[float, float]:
    """Seconds used, and of these good, second by second where the number of jobs changes."""
    runs, cores = spans(pilot), pilot.cores
    edges = sorted({edge for begin, end, _ in runs for edge in (begin, end)})
    every = good = 0.0
    for begin, end in pairwise(edges):
        now = [zero for first, last, zero in runs if first <= begin and end <= last]
        every += (end - begin) * min(1, len(now) / cores)
        good += (end - begin) * sum(now) / max(cores, len(now))
    return every, good


def truth(pilots: list[Pilot]) -> dict[str, float]:
    """The figures of pilots as they were simulated; each of their jobs has one core."""
    sums: defaultdict[str, float] = defaultdict(float)
    for pilot in pilots:
        life = pilot.end - pilot.start
        lengths = [end - begin for begin, end, _ in spans(pilot)]
        validation = life
        if pilot.condor is not None:
            assert pilot.last_script is not None
            validation = pilot.last_script - pilot.start
        in_jobs, good = used(pilot)
        values: dict[str, float] = {
            "pilots": 1,
            "jobs": len(lengths),
            "time_seconds": life,
            "used_seconds": in_jobs,
            "wasted_seconds": life - in_jobs,
            "badput_seconds": life - good,
            "nosuccess_seconds": in_jobs - good,
            "validating_seconds": validation,
            "idle_seconds": life - validation - in_jobs,
            "failed": pilot.condor is None,
            "without_jobs": not lengths,
            "failed_seconds": life if pilot.condor is None else 0,
            "lengths": sum(lengths),
        }
        for name, value in values.items():
            sums[name] += value
    return dict(sums)


@pytest.fixture(scope="module")
def simulation() -> list[Pilot]:
    """Pilots whose outputs have all that there is to know."""
    return [pilot for pilot in simulated.pilots(SEED, NUMBER) if whole(pilot)]


@pytest.fixture(scope="module")
def records(simulation: list[Pilot], tmp_path_factory: pytest.TempPathFactory) -> Records:
    return told(tmp_path_factory.mktemp("factory"), simulation)


def test_every_figure_is_the_truth(simulation: list[Pilot], records: Records) -> None:
    """Of all, of each frontend and each entry, to a microsecond for each pilot."""
    groups: defaultdict[tuple[str, str | None, str | None], list[Pilot]] = defaultdict(list)
    for pilot in simulation:
        frontend = f"{pilot.user}-frontend.main"
        groups["total", None, None].append(pilot)
        groups["entry", None, pilot.entry_name].append(pilot)
        groups["frontend", frontend, None].append(pilot)
        groups["frontend_entry", frontend, pilot.entry_name].append(pilot)
    assert set(records) == set(groups)
    for key, pilots in groups.items():
        found, expected = records[key], truth(pilots)
        for name in expected.keys() & found.keys():
            assert found[name] == pytest.approx(expected[name], abs=1e-5 * len(pilots)), (key, name)
        time = expected["time_seconds"]
        shares = {
            "strt": expected["failed"] / len(pilots),
            "fval": expected["failed_seconds"] / time,
            "0job": expected["without_jobs"] / len(pilots),
            "val": expected["validating_seconds"] / time,
            "idle": expected["idle_seconds"] / time,
            "wst": expected["wasted_seconds"] / time,
            "badp": expected["badput_seconds"] / time,
        }
        for name, share in shares.items():
            assert found[f"{name}_share"] == pytest.approx(share, abs=1e-7), (key, name)
        if expected["jobs"]:
            average = expected["lengths"] / expected["jobs"]
            assert found["average_job_length_seconds"] == pytest.approx(average)
        assert found["pilots_with_known_validation"] == len(pilots)


def test_what_is_not_known_is_counted(tmp_path: Path) -> None:
    """Pilots killed hard, and empty outputs: nothing of them is taken for 0."""
    some = [p for p in simulated.pilots(SEED, 2000) if p.kind in {"truncated", "hard_kill"}][:8]
    good = [p for p in simulated.pilots(SEED, 50) if whole(p)][:5]
    found = told(tmp_path, some + good)["total", None, None]
    truncated = sum(pilot.kind == "truncated" for pilot in some)
    assert truncated > 0
    assert found["pilots"] == len(some) + len(good)
    assert found["pilots_with_known_start"] == found["pilots"] - truncated
    assert found["pilots_with_known_validation"] == found["pilots"] - truncated
    assert found["validating_seconds"] > 0
