"""What a child process does: one query and its decoding.  The fork server has this module loaded.

Each function returns plain facts and the number of ads that were read.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, TypeVar

from gwmond.model.problem_names import ProblemName
from gwmond.sources.child import QueryError, Usage, used
from gwmond.sources.htcondor import ads, demand, factory, matching, rejections, stalled
from gwmond.sources.htcondor.access import Access, Daemon, Query, Terms
from gwmond.sources.htcondor.histories import history_fetch
from gwmond.sources.htcondor.histories.history_cursor import HistoryAnswer
from gwmond.sources.htcondor.pilots import slots
from gwmond.sources.recording import recording
from gwmond.sources.registry import SOURCES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gwmond.config.settings import Attributes
    from gwmond.model.facts import Template
    from gwmond.sources.htcondor.histories.history_cursor import HistoryLimits
    from gwmond.sources.recording.deltas import Ad

T = TypeVar("T")
Counted = tuple[T, int]


def ask(terms: Terms, kind: str) -> Counted[Any]:
    """Ask a collector what the registry has of a kind."""
    source = SOURCES[kind]
    answer = terms.access.collector_ads(terms.host, source.query(terms))
    return source.decode(answer, terms), len(answer)


def ask_each(terms: Terms, kinds: Sequence[str]) -> Counted[dict[str, tuple[Counted[Any], Usage]]]:
    """Ask a collector what the registry has of several kinds, one after the other.

    Each answer comes with its cost.  The first error ends it.
    """
    answers = {}
    for kind in kinds:
        began, before = time.monotonic(), used()
        answer, after = ask(terms, kind), used()
        took_s = time.monotonic() - began
        answers[kind] = answer, Usage(after.cpu_s - before.cpu_s, after.peak_mib, took_s)
    return answers, len(answers)


def slot_templates(
    access: Access,
    host: str,
    samples: Sequence[slots.SampleSlot],
    attributes: Attributes,
) -> Counted[tuple[Template, ...]]:
    """Ask a collector for the whole ads of sample slots."""
    answer = access.collector_ads(host, matching.samples_query(s.slot for s in samples))
    return matching.templates_from_slots(answer, samples, attributes), len(answer)


def schedd_demand(
    access: Access,
    schedd: Daemon,
    grouping: demand.JobGrouping,
    factories: bool,
    apart: demand.Apart,
) -> Counted[demand.ScheddDemand]:
    """Ask a schedd for its idle jobs, grouped.

    ``factories``: also for clusters that have jobs still to materialize.
    """
    rows, grouping = demand.fetch_rows(access, schedd, grouping)
    clusters = demand.fetch_clusters(access, schedd, grouping) if factories else ()
    rejected = rejections.fetch(access, schedd, grouping)
    result = demand.decode(rows, clusters, schedd.name, grouping, apart, rejected)
    result = result._replace(stalled=stalled.fetch(access, schedd, grouping.options))
    return result, result.rows


def factory_queue(
    access: Access, schedd: Daemon, grace_s: float, now: float
) -> Counted[tuple[factory.QueueCount, ...]]:
    """Ask a factory's schedd for its pilots, grouped."""
    counts = factory.fetch_queue(access, schedd, grace_s, now)
    return counts, len(counts)


def record(terms: Terms, kind: str, refers: Iterable[str] = ()) -> Counted[tuple[list[Ad], Any]]:
    """Ask as ``ask`` does, for a recording: the ads, and what is decoded from them.

    ``refers`` is what jobs ask for of whole ads.
    """
    source = SOURCES[kind]
    query = source.query(terms)
    answer = terms.access.collector_ads(terms.host, query)
    ads_kept = recording.dump(answer, (*query.attributes, *refers))
    return (ads_kept, source.decode(answer, terms)), len(answer)


def record_ads(
    access: Access, asked: str | Daemon, query: Query, refers: Iterable[str] = ()
) -> Counted[list[Ad]]:
    """Ask a collector (a host) for ads, or a schedd for groups of jobs, for a recording."""
    if isinstance(asked, str):
        answer = access.collector_ads(asked, query)
    else:
        answer = access.job_ads(asked, query)
    return recording.dump(answer, (*query.attributes, "JobCount", *refers)), len(answer)


def record_samples(
    access: Access, host: str, samples: Sequence[slots.SampleSlot], refers: Iterable[str]
) -> Counted[list[Ad]]:
    """Ask a collector for the whole ads of sample slots, for a recording."""
    return record_ads(access, host, matching.samples_query(s.slot for s in samples), refers)


def record_demand(
    access: Access, schedd: Daemon, grouping: demand.JobGrouping
) -> Counted[tuple[list[Ad], tuple[str, ...], set[str]]]:
    """Ask a schedd for its idle jobs, grouped, for a recording.

    Also what was left out, and which attributes of pilots the jobs refer to.  Rows carry what
    their jobs do not have, as a replay cannot ask for it.
    """
    rows, grouping = demand.fetch_rows(access, schedd, grouping)
    names = (*demand.query(grouping).attributes, "JobCount")
    dumped = recording.dump(rows, names)
    kept = [ad | demand.known(grouping.start, {name.lower() for name in ad}) for ad in dumped]
    return (kept, grouping.start.ungrouped, recording.referred(rows, names)), len(kept)


def record_clusters(
    access: Access, schedd: Daemon, grouping: demand.JobGrouping
) -> Counted[tuple[list[Ad], set[str]]]:
    """Ask a schedd for clusters with jobs to materialize, for a recording.

    Also which attributes of pilots they refer to.
    """
    answer = demand.fetch_clusters(access, schedd, grouping)
    names = demand.factories_query(grouping).attributes
    return (recording.dump(answer, names), recording.referred(answer, names)), len(answer)


def records(
    access: Access, daemon: Daemon, kind: str, cursor_state: str, limits: HistoryLimits, now: float
) -> Counted[HistoryAnswer]:
    """Ask a schedd (``epochs``, ``history``) or a startd (``startd_history``) for records."""
    try:
        answer = history_fetch.fetch(access, daemon, kind, cursor_state, limits, now)
    except QueryError as error:
        if error.problem != ProblemName.NOT_KEPT:
            raise
        return HistoryAnswer((), cursor_state, None, False, None, None, (), 0, kept=False), 0
    return answer, answer.read


def locate_startds(access: Access, host: str, names: Sequence[str]) -> Counted[tuple[Daemon, ...]]:
    """Ask a collector where startds can be reached."""
    query = Query("locate", "StartDaemon", ads.named(names), ("Name", "MyAddress", "CondorVersion"))
    answer = access.collector_ads(host, query)
    daemons = []
    for ad in answer:
        name, address = ads.text(ad, "Name"), ads.text(ad, "MyAddress")
        if name is not None and address is not None:
            daemons.append(Daemon(name, address, ads.text(ad, "CondorVersion") or ""))
    return tuple(daemons), len(answer)
