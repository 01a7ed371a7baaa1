"""Jobs and pilots for traces, as the ledger has them.  Times are seconds from ``BASE``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from gwmond.model.facts import EntryKey, Size
from gwmond.model.pilot_life import RunKey, SizeStep
from gwmond.model.pilots.stored_pilots import PilotIdentity, PilotRow, RunRow
from gwmond.model.runs.endings import Ending
from gwmond.model.runs.outcomes import classify
from gwmond.model.runs.run_facts import JobFact, RunFact, Source, Transfer
from gwmond.model.times import SECOND_US
from gwmond.traces.job_trace import JobTrace
from gwmond.traces.spans import Span
from tests.build.ended import pilot as ended

BASE = 1_700_000_000
JOB = f"ap1.example.org#1234.0#{BASE}"
SUBMITTER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
ZERO = Ending(over=True, completed=True, exit_code=0, own_accord=True, began=True, early=False)
CUT = Ending(over=True, vacate_code=1005, began=True, startd_ended=True)
HELD = Ending(over=True, hold_code=26, own_accord=False, began=True)


def us(seconds: float | None) -> Any:
    """A time as the ledger has it."""
    return None if seconds is None else round((BASE + seconds) * SECOND_US)


def run(
    number: int, start: float, end: float | None, ending: Ending = ZERO, **changes: Any
) -> RunRow:
    """A run on pilot 1, with 2 s of input and 3 s of output; ``changes`` are fields of its fact."""
    fact = RunFact(
        source=Source.EPOCH_HISTORY,
        job=JOB,
        shadow_start=number,
        written_us=us(start),
        start_us=us(start),
        end_us=us(end),
        ending=ending,
        executing_us=us(start + 3),
        transfer_in=Transfer(us(start), us(start + 1), us(start + 3), 1000 * number),
        transfer_out=None if end is None else Transfer(None, us(end - 3), us(end), 500 * number),
        about_job=JobFact(us(0), 1),
    )
    return RunRow(
        pilot=1,
        key=RunKey(JOB, number),
        start_us=us(start),
        end_us=us(end),
        size=Size(1, 2000),
        user="alice@example.org",
        job_group="alice run.sh",
        outcome=classify(ending) if end is not None else None,
        result="",
        open=end is None,
        settled={},
        facts=(fact._replace(**changes),),
    )


def left(of: RunRow, at: float, status: int = 4) -> RunRow:
    """The run, with a schedd's record of when its job left the queue."""
    known = of.facts[0]
    about = (known.about_job or JobFact())._replace(left_us=us(at), status=status)
    record = known._replace(
        source=Source.SCHEDD_HISTORY, written_us=us(at), about_job=about, transfer_in=None
    )
    return of._replace(facts=(known, record))


def pilot(start: float = 0, end: float | None = 4000, **changes: Any) -> PilotRow:
    """A closed pilot of a factory's."""
    identity = PilotIdentity(
        name="glidein_1_1@wn1.example.org",
        started=BASE + round(start) + 60,
        factory_job="fact.example.org#77.0",
        factory="factory",
        key=EntryKey("Site-A", "entry-a"),
        group="frontend.main",
        node="wn1.example.org",
    )
    row = ended(
        identity=identity,
        start_us=us(start),
        end_us=us(end),
        closed=end is not None,
        steps=(SizeStep(us(start), Size(4, 8000)),),
        ran_jobs=True,
        retire_us=None,
        validation_end_us=us(start + 50),
    )
    return row._replace(**changes)


JOIN_AT_MOST = 500


def job_spans(
    runs: Sequence[RunRow],
    pilots: Mapping[int, PilotRow],
    join_at_most: int = JOIN_AT_MOST,
    now_us: int | None = None,
    waits: Any = MappingProxyType({}),
) -> list[Span]:
    """The spans of a job's trace."""
    return JobTrace(runs, pilots, join_at_most, now_us, waits).spans()
