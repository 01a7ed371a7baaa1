"""How many runs of jobs are taken of one pilot."""

from __future__ import annotations

from typing import Any

import pytest

from gwmond.model.pilots.file_facts import StarterRun
from gwmond.model.runs.endings import Ending
from gwmond.model.runs.run_facts import JobRecord, RunFact, Source
from gwmond.sources.gwms import pilot_err
from tests.build.play import T0


def record(job: str, start: int, end: int) -> JobRecord:
    """A record of a history; times in seconds since T0."""
    times: dict[str, Any] = {"start_us": _us(start), "end_us": _us(end)}
    fact = RunFact(Source.STARTD_HISTORY, f"schedd#{job}#1", 1, _us(end), **times)
    return JobRecord(fact, "", None)


def run(job: str, start: int, end: int | None) -> StarterRun:
    """A run of a log; times in seconds since T0."""
    return StarterRun(job, "s", _us(start), None if end is None else _us(end), Ending())


def _us(seconds: int) -> int:
    return (T0 + seconds) * 1_000_000


def test_no_more_than_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the history come first."""
    monkeypatch.setattr(pilot_err, "MAX_RUNS", 5)
    records = [record(f"{n}.0", 10 * n, 10 * n + 5) for n in range(3)]
    runs = [run(f"1{n}.0", 10 * n + 5, 10 * n + 10) for n in range(4)]
    some, others, more = pilot_err.bounded(records, runs)
    assert (some, others, more) == (tuple(records), tuple(runs[:2]), 2)
    assert pilot_err.bounded(records * 2, runs) == ((*records, *records[:2]), (), 5)
    assert pilot_err.bounded((), ()) == ((), (), 0)


def test_no_more_meetings_than_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes one after the other does not meet; what never ends meets all that follow."""
    monkeypatch.setattr(pilot_err, "MAX_MEETINGS", 2 + 4 + 6)
    apart = [record(f"{n}.0", 10 * n, 10 * n + 10) for n in range(100)]
    assert pilot_err.bounded(apart, ())[2] == 0
    nested = [record(f"{n}.0", n, 1000 - n) for n in range(10)]
    assert pilot_err.bounded(nested, ()) == (tuple(nested[:4]), (), 6)
    endless = [run(f"{n}.0", 10 * n, None) for n in range(10)]
    assert pilot_err.bounded((), endless) == ((), tuple(endless[:4]), 6)


def test_a_run_of_a_log_is_one_record_of_the_history() -> None:
    """As many as can be are; where a record is missing, one run is left."""
    records = [record("1.0", 0, 1000), record("1.0", 0, 100), record("2.0", 0, 100)]
    runs = [run("1.0", 500, 900), run("1.0", 10, 90), run("2.0", 300, 400), run("3.0", 0, 10)]
    assert pilot_err.beside(runs, records) == runs[2:]
    assert pilot_err.beside([*runs, run("1.0", 600, 700)], records)[-1].start_us == _us(600)
    assert pilot_err.beside(runs, []) == runs
