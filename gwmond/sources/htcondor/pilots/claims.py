"""Source: slots of a collector that run a job now.

Attributes as in HTCondor's manual, "Machine ClassAd Attributes".  A claimed slot, dynamic or
static, names its job (GlobalJobId, JobId) as long as a starter runs for it, also while Preempting;
a partitionable slot has no job itself.  JobStart is when the claim was activated, by the startd's
clock (see ``pilot_ads.clock_of``); no attribute says which run of the job it is.  Cpus, Memory and
GPUs of such a slot are what the job was given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gwmond.model.facts import Problem
from gwmond.model.packed import Packed
from gwmond.model.problem_names import ProblemName
from gwmond.model.runs.run_facts import JobRecord, RunFact, Source
from gwmond.model.times import SECOND_US
from gwmond.sources.htcondor import ads, pilot_ads
from gwmond.sources.htcondor.access import CollectorSource, Query
from gwmond.sources.htcondor.histories import histories
from gwmond.sources.htcondor.histories.history_endings import epoch

if TYPE_CHECKING:
    from collections.abc import Sequence

    import classad2

KIND = "claims"
_RUNS_A_JOB = (
    '(State == "Claimed" || State == "Preempting") && SlotType =!= "Partitionable"'
    " && GlobalJobId isnt undefined"
)
BEGUN = "JobStart >="
"""What questions for new claims alone ask."""
_NAMES = (
    *("Name", "DaemonStartTime", "GlobalJobId", "JobStart", "RemoteOwner", "RemoteUser"),
    *("Cpus", "Memory", "GPUs", "LastHeardFrom", "ClassAdLifetime"),
    "MyCurrentTime",
)


class Claims(NamedTuple):
    """Jobs that run now, as slots report them, and what was wrong."""

    records: Packed[JobRecord]
    problems: tuple[Problem, ...]


def query(since: float | None = None, part: tuple[int, int] = (0, 1)) -> Query:
    """Return the query for slots that run a job, or only for jobs begun ``since`` (epoch).

    ``part``: only for those of part k of n, as (k, n).
    """
    wanted = _RUNS_A_JOB if since is None else f"{_RUNS_A_JOB} && {BEGUN} {int(since)}"
    return Query(KIND, "Startd", wanted + pilot_ads.in_part(part), _NAMES)


def joined(parts: Sequence[Claims]) -> Claims:
    """Return the claims of all parts."""
    records = Packed.joined(part.records for part in parts)
    return Claims(records, tuple(problem for part in parts for problem in part.problems))


def decode(slot_ads: Sequence[classad2.ClassAd], source: str, now: float) -> Claims:
    """Turn slot ads into records; ads older than their lifetime are of ghosts, and dropped."""
    records: list[JobRecord] = []
    problems: list[Problem] = []
    for ad in ads.fresh(slot_ads, now):
        record = _record(ad, now)
        if isinstance(record, str):
            problems.append(Problem(source, record, ads.text(ad, "Name") or "ad without a name"))
        else:
            records.append(record)
    return Claims(Packed(records), tuple(problems))


def _record(ad: classad2.ClassAd, now: float) -> JobRecord | ProblemName:
    name, job = ads.text(ad, "Name"), ads.text(ad, "GlobalJobId")
    if name is None or job is None:
        return ProblemName.NO_NAME if name is None else ProblemName.NO_JOB
    activated = start = epoch(ad, "JobStart")
    heard = ads.number(ad, "LastHeardFrom")
    if start is not None:  # an ad is sent after what it reports
        start = min(start + pilot_ads.clock_of(ad), start if heard is None else int(heard))
    size = pilot_ads.size_of(ad, ("Cpus", "Memory", "GPUs"))
    fact = RunFact(
        source=Source.LIVE_SLOT,
        job=job,
        shadow_start=None,
        written_us=int((now if heard is None else heard) * SECOND_US),
        start_us=None if start is None else start * SECOND_US,
        size=size,
        user=ads.shared(ads.label(ad, ("RemoteOwner", "RemoteUser"))),
        activated_us=None if activated is None or activated == start else activated * SECOND_US,
    )
    startd, slot = ads.shared(histories.startd_of(name)), ads.shared(histories.slot_of(name))
    return JobRecord(fact, startd, epoch(ad, "DaemonStartTime"), slot=slot)


SOURCES = (
    CollectorSource(
        KIND,
        lambda t: query(t.claims_since, t.part),
        lambda answer, t: decode(answer, t.name, t.now),
        large=True,
        joined=joined,
    ),
)
