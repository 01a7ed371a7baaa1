"""Applies the bound on names to answers, before anything is made of them (``model.names``).

What is folded is summed, not dropped: pilots stay pilots, under the name ``other``; what frontends
ask of several entries or groups that are folded into one is added up.  There is no template of
folded pilots, for they have nothing in common but their name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from gwmond.model.demand.submitters import known_group
from gwmond.model.facts import Berth, EntryKey, EntryRequest, FrontendJobs, JobCount, Pilot
from gwmond.model.monitor import EntryMonitor
from gwmond.model.names import (
    ACCOUNTING_GROUPS,
    FRONTENDS,
    OTHER,
    OTHER_ENTRY,
    SCHEDDS,
    SERVERS,
    Names,
)
from gwmond.model.runs.run_facts import JobRecord
from gwmond.model.units import known_sum
from gwmond.sources.htcondor.order import QUOTAS
from gwmond.sources.htcondor.pilots import advertised
from gwmond.sources.round import DEMAND, REQUESTS, SLOTS, STARTDS, SUBMITTERS, Answer

if TYPE_CHECKING:
    from gwmond.sources.htcondor.demand import ScheddDemand
    from gwmond.sources.htcondor.glideresource import Requests
    from gwmond.sources.htcondor.pilots.slots import Slots
    from gwmond.sources.htcondor.pilots.startds import Startds
    from gwmond.sources.htcondor.schedds import Schedds

PLACES = (SLOTS, STARTDS, advertised.KIND, REQUESTS)
FRONTEND_JOBS = "frontendmonitor"
WORDS = (DEMAND, SUBMITTERS, FRONTEND_JOBS)
"""Kinds of answers that name places, and those that name accounting groups and frontends."""

_ADDED = (
    *("jobs_matching", "jobs_proportional", "jobs_unique", "jobs_effective"),
    "slots_idle",
)
"""What groups ask for, and have, that is added up."""

Answers: TypeAlias = Mapping[tuple[str, str], Answer]


def note_places(names: Names, answers: Answers, pledged: frozenset[str], now: float) -> None:
    """Tell names where pilots are, where frontends ask for some, and what factories name.

    ``pledged``: sites and entries that the configuration names.
    """
    berths: Counter[Berth] = Counter()
    vouched: set[Berth] = set()
    by_name = set(pledged)
    for (_, kind), answer in answers.items():
        if kind in {SLOTS, STARTDS}:
            berths.update(Berth(pilot.entry, pilot.group) for pilot in answer.value.pilots)
        elif kind == advertised.KIND:
            berths.update(Berth(pilot.entry, pilot.group) for pilot in answer.value)
        elif kind == REQUESTS:
            requested = [Berth(request.entry, request.group) for request in answer.value.requests]
            berths.update(requested)
            vouched.update(requested)
        elif kind in {"factory", "factoryclient"}:
            by_name.update(ad.entry for ad in answer.value)
    names.note(berths, vouched, now, by_name=by_name)


def note_words(names: Names, answers: Answers, now: float) -> None:
    """Tell names the accounting groups with jobs, and the frontends."""
    jobs: Counter[str] = Counter()
    submitted: Counter[str] = Counter()
    frontends: Counter[str] = Counter()
    groups = set(names.room(ACCOUNTING_GROUPS)[0])
    for (_, kind), answer in answers.items():
        if kind == FRONTEND_JOBS:
            frontends.update(frontend.frontend for frontend in answer.value)
        elif kind == QUOTAS:
            groups.update(answer.value)
        elif kind in WORDS:
            counts = jobs if kind == DEMAND else submitted
            for count in answer.value.counts:
                counts[count.accounting_group] += count.jobs
    groups |= jobs.keys()
    for name, number in submitted.items():
        jobs[known_group(name, groups)] += number
    names.note_words(ACCOUNTING_GROUPS, jobs, now)
    names.note_words(FRONTENDS, frontends, now)


def fold_records(names: Names, records: Sequence[JobRecord]) -> list[JobRecord]:
    """Return records of jobs, with the servers of transfers that are kept apart."""
    named = Counter[str]()
    for record in records:
        named.update(move.server.partition(" ")[2] for move in record.fact.moves)
        if failed := record.fact.ending.failed_transfer:
            named[failed.partition(" ")[2]] += 1
    shown = names.bounded_words(SERVERS, named)

    def is_apart(text: str) -> bool:
        server = text.partition(" ")[2]
        return shown.get(server, server) == server

    def folded(record: JobRecord) -> JobRecord:
        fact, failed = record.fact, record.fact.ending.failed_transfer or ""
        moves = tuple(
            move if is_apart(move.server) else move._replace(protocol=OTHER, host=OTHER)
            for move in fact.moves
        )
        if not is_apart(failed):
            ending = fact.ending._replace(failed_transfer=f"{failed.split(' ')[0]} {OTHER} {OTHER}")
            fact = fact._replace(ending=ending)
        return record._replace(fact=fact._replace(moves=moves))

    return [folded(record) for record in records] if shown else list(records)


def fold(names: Names, kind: str, value: Any) -> Any:
    """Return what a source answered, with the names that are kept apart."""
    return _FOLDS[kind](value, names)


def _slots(value: Slots, names: Names) -> Slots:
    kinds = tuple(
        kind
        for kind in value.kinds
        if names.berth(kind.entry, kind.group) == (kind.entry, kind.group)
    )
    return value._replace(pilots=_pilots(value.pilots, names), kinds=kinds)


def _startds(value: Startds, names: Names) -> Startds:
    return value._replace(pilots=_pilots(value.pilots, names))


def _pilots(pilots: tuple[Pilot, ...], names: Names) -> tuple[Pilot, ...]:
    now = {berth: names.berth(*berth) for berth in {(p.entry, p.group) for p in pilots}}
    if all(before == after for before, after in now.items()):
        return pilots
    return tuple(
        pilot if now[berth] == berth else pilot._replace(**now[berth]._asdict())
        for pilot in pilots
        for berth in [(pilot.entry, pilot.group)]
    )


def _requests(value: Requests, names: Names) -> Requests:
    kept: list[EntryRequest] = []
    folded: dict[Berth, list[EntryRequest]] = {}
    for request in value.requests:
        berth = names.berth(request.entry, request.group)
        if berth == (request.entry, request.group):
            kept.append(request)
        else:
            folded.setdefault(berth, []).append(request)
    if not folded:
        return value
    entries = names.entries
    return value._replace(
        requests=(*kept, *(together(berth, key) for berth, key in folded.items())),
        templates=tuple(
            template
            for template in value.templates
            if names.berth(template.entry, template.group) == (template.entry, template.group)
        ),
        entries=tuple(
            entry for entry in value.entries if EntryKey(entry.site, entry.entry) in entries
        ),
    )


def together(berth: Berth, requests: Sequence[EntryRequest]) -> EntryRequest:
    """Return what several groups ask of one entry, or of several, as if it were one group.

    Absent is not zero: a sum of which a part is absent is absent.  What is about an entry
    as a whole comes from the ad heard last; of several entries it is absent.
    """
    freshest = max(
        requests,
        key=lambda request: (request.last_heard, request.entry, request.group, request.factory),
    )
    monitor = requests[0].monitor
    for request in requests[1:]:
        monitor = monitor.plus(request.monitor)
    sums: dict[str, Any] = {
        name: known_sum(getattr(request, name) for request in requests) for name in _ADDED
    }
    combined = freshest._replace(
        entry=berth.entry,
        group=berth.group,
        factory=freshest.factory if berth.entry != OTHER_ENTRY else OTHER,
        down=all(request.down for request in requests),
        monitor=monitor._replace(client_info_age=freshest.monitor.client_info_age),
        **sums,
    )
    if berth.entry != OTHER_ENTRY:
        return combined
    return combined._replace(whole=EntryMonitor(), limits=(), pilot_size=None)


def _demand(value: ScheddDemand, names: Names) -> ScheddDemand:
    groups = tuple(
        group._replace(accounting_group=names.word(ACCOUNTING_GROUPS, group.accounting_group))
        for group in value.groups
    )
    return value._replace(counts=_counts(value.counts, names), groups=groups)


def _submitters(value: Schedds, names: Names) -> Schedds:
    known, room = names.room(ACCOUNTING_GROUPS)
    counts = value.counts  # without room one that is not known is another one
    if room:
        counts = tuple(
            count._replace(accounting_group=known_group(count.accounting_group, known))
            for count in counts
        )
    return value._replace(counts=_counts(counts, names))


def _counts(counts: tuple[JobCount, ...], names: Names) -> tuple[JobCount, ...]:
    sums: Counter[tuple[str, str, str]] = Counter()
    for count in counts:
        schedd = names.word(SCHEDDS, count.schedd)
        group = names.word(ACCOUNTING_GROUPS, count.accounting_group)
        sums[schedd, group, count.status] += count.jobs
    return tuple(JobCount(*key, jobs) for key, jobs in sorted(sums.items()))


def _frontends(value: tuple[FrontendJobs, ...], names: Names) -> tuple[FrontendJobs, ...]:
    """Return counts, those of other frontends summed up; a sum with an absent part is absent."""
    by_name: dict[str, list[FrontendJobs]] = {}
    for frontend in value:
        by_name.setdefault(names.word(FRONTENDS, frontend.frontend), []).append(frontend)
    return tuple(
        FrontendJobs(name, *(known_sum(column) for column in list(zip(*counts, strict=True))[1:]))
        for name, counts in by_name.items()
    )


_FOLDS: Mapping[str, Callable[[Any, Names], Any]] = {
    SLOTS: _slots,
    STARTDS: _startds,
    advertised.KIND: _pilots,
    REQUESTS: _requests,
    DEMAND: _demand,
    SUBMITTERS: _submitters,
    FRONTEND_JOBS: _frontends,
}
