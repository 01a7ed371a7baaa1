"""Generated factory directories: what is read is what was, as far as the files can tell it."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from gwmond.model.facts import Problem
from gwmond.model.pilot_life import Validation
from gwmond.model.pilots.file_facts import (
    CompletedPilot,
    FailureClass,
    Jobs,
    PilotOutput,
    QueueEvent,
    QueueState,
)
from gwmond.sources.gwms import factory_dir, layout
from gwmond.sources.gwms.directory_cursor import FileLimits
from tests.build.gwms import generate, simulated
from tests.build.gwms.simulated import Pilot

SEED, NUMBER = 7, 600
US = 10**6
STATISTICS = ("Total", "goodZ", "goodNZ")


class Read(NamedTuple):
    outputs: dict[tuple[int, int], PilotOutput]
    completed: dict[tuple[int, int], CompletedPilot]
    events: list[QueueEvent]
    problems: list[Problem]
    truth: dict[tuple[int, int], Pilot]


def key(cluster: int | None, proc: int | None) -> tuple[int, int]:
    assert cluster is not None
    assert proc is not None
    return cluster, proc


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Read:
    root = tmp_path_factory.mktemp("factory")
    generate.write(root, SEED, NUMBER)
    return read_all(root)


def read_all(root: Path) -> Read:
    truth = {(p.cluster, p.proc): p for p in simulated.pilots(SEED, NUMBER)}
    found = Read({}, {}, [], [], truth)
    for directory in layout.tree(str(root)).directories:
        state, behind = "", True
        while behind:
            answer = factory_dir.fetch(directory, state, FileLimits(facts=50), time.time() + 60)
            state, behind = answer.state, answer.behind
            found.problems.extend(answer.problems)
            for fact in answer.facts:
                if isinstance(fact, PilotOutput):
                    one = key(fact.name.cluster, fact.name.proc)
                    assert one not in found.outputs
                    found.outputs[one] = fact
                elif isinstance(fact, CompletedPilot):
                    found.completed[key(fact.name.cluster, fact.name.proc)] = fact
                else:
                    assert isinstance(fact, QueueEvent)
                    found.events.append(fact)
    return found


def test_the_simulation_has_every_kind(read: Read) -> None:
    """Every kind of pilot and every class of failure occurs."""
    assert {pilot.kind for pilot in read.truth.values()} == set(simulated.KINDS)
    failed = {pilot.failure for pilot in read.truth.values() if pilot.kind == "failed"}
    assert failed == set(simulated.FAILURES)


def test_every_pilot_that_left_files_is_read_once(read: Read) -> None:
    """Those that returned nothing are only in the logs."""
    expected = {one for one, pilot in read.truth.items() if pilot.kind != "no_files"}
    assert set(read.outputs) == expected
    kinds = Counter(read.truth[one].kind for one in read.outputs)
    numbers: Counter[str] = Counter()
    for problem in read.problems:
        numbers[problem.problem] += problem.records or 0
    unlasting = sum(job.kind in {"truncated", "empty", "no_files"} for job in read.truth.values())
    assert numbers == {"empty_output": kinds["empty"], "no_duration": unlasting}


def test_names(read: Read) -> None:
    """The pilot's names come from the path, the header, and what stderr prints of the config."""
    for one, fact in read.outputs.items():
        pilot, name = read.truth[one], fact.name
        assert (name.user, name.instance, name.entry) == (
            pilot.user,
            simulated.INSTANCE,
            pilot.entry_name,
        )
        if pilot.kind == "empty":
            continue
        assert (name.factory, name.schedd) == (simulated.FACTORY, simulated.SCHEDD)
        assert (name.frontend, name.group) == (f"{pilot.user}-frontend.main", "main")
        assert (name.node, name.pid) == (pilot.node, pilot.pid)
        if pilot.returned and pilot.condor and pilot.mode != "nodebug":
            assert (name.site, name.resource) == (pilot.site, f"{pilot.entry_name}-CE")
        if fact.records:
            assert name.startd == pilot.startd


def test_course(read: Read) -> None:
    """Start, end, validation and HTCondor, to the second; what is not told is None."""
    for one, fact in read.outputs.items():
        pilot = read.truth[one]
        if pilot.kind == "empty":
            assert (fact.start_us, fact.validation) == (None, Validation.UNKNOWN)
            continue
        assert fact.start_us == pilot.start * US
        if pilot.kind == "truncated":
            assert (fact.end_us, fact.validation) == (None, Validation.UNKNOWN)
            continue
        assert pilot.condor is None or fact.condor_start_us == pilot.condor[0] * US
        if pilot.kind == "hard_kill":
            assert (fact.end_us, fact.condor_end_us) == (None, None)
            assert fact.validation is Validation.PASSED
            continue
        assert fact.end_us == pilot.end * US
        assert pilot.condor is None or fact.condor_end_us == pilot.condor[1] * US
        failed = pilot.condor is None
        assert fact.validation is (Validation.FAILED if failed else Validation.PASSED)
        if not failed:
            assert pilot.last_script is not None
            assert fact.validation_end_us == pilot.last_script * US


def test_failures(read: Read) -> None:
    """Class, test, and the deliberate sleep; estimated where it is not told."""
    for one, fact in read.outputs.items():
        pilot = read.truth[one]
        if pilot.failure is None or not pilot.returned:
            assert (fact.failure, fact.pause) == (None, None)
            continue
        kind, test = pilot.failure
        assert fact.failure is not None
        expected = FailureClass.WN_RESOURCE if kind == "WN_RESOURCE" else FailureClass(kind)
        assert fact.failure == (expected, test)
        assert fact.pause is not None
        assert pilot.failed_at is not None
        assert fact.pause.end_us == pilot.end * US
        assert fact.pause.start_us == pilot.failed_at * US
        assert fact.pause.evidence == ("estimated" if pilot.kind == "early" else "measured")
        if pilot.condor is None:
            assert fact.validation_end_us == pilot.failed_at * US


def test_sizes(read: Read) -> None:
    """Cores, memory and GPUs where the files tell them, else None and not a guess."""
    for one, fact in read.outputs.items():
        pilot = read.truth[one]
        told = pilot.last_script is not None and pilot.kind != "empty"
        assert fact.cores == (pilot.cores if told and pilot.tells_cores else None)
        assert fact.memory_mib == (pilot.memory if told and pilot.tells_memory else None)
        printed = pilot.returned and pilot.condor is not None  # silence, once it started, is none
        assert fact.gpus == (pilot.gpus if printed else None)


def test_statistics(read: Read) -> None:
    """The totals as they were divided; what is known of the division."""
    for one, fact in read.outputs.items():
        pilot = read.truth[one]
        if not (pilot.returned and pilot.condor):
            assert fact.jobs is None
            continue
        assert fact.jobs is not None
        divided = generate.divided(pilot)
        assert fact.jobs[:3] == tuple(Jobs(*divided[name]) for name in STATISTICS)
        known = pilot.cores if pilot.form == 2 or (pilot.form and pilot.tells_cores) else None
        assert fact.jobs.factor == known
        assert fact.activations == len(pilot.jobs)


def test_runs(read: Read) -> None:
    """Each job once: from the history, else from the starter logs, whatever the time zone."""
    for one, fact in read.outputs.items():
        pilot = read.truth[one]
        jobs = pilot.jobs if pilot.returned else ()
        if pilot.kind == "no_history":
            assert fact.records == ()
            found = {(run.job, run.start_us // US, (run.end_us or 0) // US) for run in fact.runs}
            assert found == {(f"{job.cluster}.0", job.start, job.end) for job in jobs}
            ends = {run.job: run.ending for run in fact.runs}
        else:
            assert fact.runs == ()
            found_jobs = {a.fact.job.split("#")[1] for a in fact.records}
            assert found_jobs == {f"{job.cluster}.0" for job in jobs}
            assert len(fact.records) == len(jobs)
            ends = {a.fact.job.split("#")[1]: a.fact.ending for a in fact.records}
        for job in jobs:
            ending = ends[f"{job.cluster}.0"]
            assert (ending.exit_code, ending.exit_signal) == (job.code, job.signal)
            assert ending.own_accord is not job.evicted


def test_completed_jobs(read: Read) -> None:
    """The log is lossy: a hard kill has no line; -1 and negative idle are not values of time."""
    expected = {one for one, pilot in read.truth.items() if pilot.kind != "hard_kill"}
    assert set(read.completed) == expected
    negative = 0
    for one, line in read.completed.items():
        pilot = read.truth[one]
        assert line.name.entry == pilot.entry_name
        assert line.written_us == (pilot.end + 200) * US
        if pilot.kind == "truncated":
            assert line.duration_s is None
        elif pilot.returned:
            assert line.duration_s == pilot.end - pilot.start
            assert line.condor_started is (pilot.condor is not None)
            if pilot.condor and pilot.last_script and line.validation_s is not None:
                exact = pilot.last_script - pilot.start
                assert exact - (pilot.end - pilot.start) / 1000 - 1 <= line.validation_s <= exact
        negative += (line.idle or 0) < 0
    assert negative > 0


def test_events(read: Read) -> None:
    """Submitted, pending, started and ended, held and removed, in both forms of dates."""
    by_pilot: dict[tuple[int, int], list[QueueEvent]] = {}
    for event in read.events:
        by_pilot.setdefault(key(event.name.cluster, event.name.proc), []).append(event)
    assert set(by_pilot) == set(read.truth)
    for one, events in by_pilot.items():
        pilot = read.truth[one]
        utc = pilot.entry % 2 == 0  # the old form has the host's own zone
        told = [(event.state, event.at_us // US) for event in sorted(events, key=lambda e: e.at_us)]
        states = [QueueState.SUBMITTED, QueueState.PENDING, QueueState.STARTED]
        times = [pilot.start - 600, pilot.start - 500, pilot.start]
        if pilot.kind == "no_files":
            states += [QueueState.HELD, QueueState.REMOVED]
            times += [pilot.end, pilot.end + 60]
        else:
            states.append(QueueState.ENDED)
            times.append(pilot.end + 30)
        assert [state for state, _ in told] == states
        if utc or time.timezone == 0:
            assert [at for _, at in told] == times
