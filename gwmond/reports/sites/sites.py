"""The table of sites: what the terminal, JSON, CSV and the page show."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from gwmond.model.entries.confidence import NO_CHECKS, Confidence
from gwmond.model.entries.evaluation import SCALE, EntryTime, Evaluation, entry_states, overall
from gwmond.model.facts import Berth, EntryKey, EntryTotals, Reach, Stalled, Status, Unregistered
from gwmond.model.poll.snapshot import Checked, PilotGroup, Snapshot
from gwmond.model.problem_names import ProblemName
from gwmond.model.states import State
from gwmond.model.times import HOUR_S
from gwmond.model.units import Resource, known_sum
from gwmond.reports.render.document import Document
from gwmond.reports.render.formats import number, percent, right, words
from gwmond.reports.render.meanings import state_cell
from gwmond.reports.render.table import Column, table
from gwmond.sites.reasons import LEFT_OUT, NO_MATCH

T = TypeVar("T")
_ALL_REGISTER = Unregistered(0, 0)
_NONE = Stalled("")
_LIMIT_PREFIX = re.compile(
    "^(GlideClientLimit|GlideClientCurbCurb|(GlideFactory|Glidein)MonitorStatus_GlideFactoryLimit)"
)
_WITHIN = re.compile("(?<=[a-z])(?=[A-Z])")


class SiteRow(NamedTuple):
    """One entry, or a whole site (``entry`` is then empty), for one resource.

    Units are canonical; ``None`` is unknown.  ``provisioned_units`` are those of running pilots,
    ``busy_units`` what jobs fill of them.  ``reason`` is the reason of the largest part of the
    spare units, ``limits`` what the frontend and the factory say of limits that they have hit, and
    which schedds the frontend leaves out (``schedd_left_out``), with why, or that it sees no job of
    the pool (``no_match_in_frontend``);
    ``capacity_evidence`` and ``evidence`` say what the numbers rest on.  ``untaken_units`` are
    provisioned, and idle although jobs match them for long; a single poll does not know them.

    ``matching_idle_jobs`` could run there, before they are assigned: a job counts wherever it
    matches.  Unless ``jobs_whole`` there may be more jobs, of both kinds; None are known, or no
    pilots that they could be assigned to.

    ``unregistered_pilots`` run by the factory's count, and do not register; ``failing_reach``:
    where else that is so, ``failing_test``: which test of their validation fails, if known.
    ``hold_reason``, with its ``hold_code``, is why ``hold_share`` (0 to 1) of the pilots are held,
    or were until they were removed lately: the most frequent reason.  ``barren``: what waits there
    will come to nothing, as most of what was sent there did.

    ``verdicts_checked`` are those on the entry's CPUs that a pilot has checked which registered,
    since the ledger began; ``verdicts_agreed`` those that were right (docs/verdicts.md).
    ``probability`` (0 to 1): how sure the verdict is, by those that were like it; None: not known.
    ``stalled_jobs`` run on its pilots and have used no CPU for long, ``stalled_core_hours`` is what
    they hold (docs/pilots.md), of schedds that have told; for CPUs only.
    """

    site: str
    entry: str
    resource: Resource
    state: str
    reason: str
    limits: str
    capacity_units: int
    provisioned_units: int | None
    busy_units: int | None
    spare_units: int
    provisioning_bottleneck_units: float
    insufficient_demand_units: float
    other_units: float
    untaken_units: float | None
    registered_pilots: int | None
    pending_pilots: int | None
    held_pilots: int | None
    requested_pilots: int | None
    matching_idle_jobs: int | None
    assigned_idle_jobs: float | None
    jobs_whole: bool
    evidence: str
    capacity_evidence: str
    verdicts_checked: int | None
    verdicts_agreed: int | None
    unregistered_pilots: int | None = None
    failing_reach: Reach = "not_known"
    failing_test: str = ""
    hold_reason: str = ""
    hold_code: int | None = None
    hold_share: float | None = None
    barren: bool = False
    probability: float | None = None
    stalled_jobs: int | None = None
    stalled_core_hours: float | None = None


class OfPoll(Protocol):
    """What rows are made of: a snapshot, or what a poll knows of it before it has one."""

    @property
    def pilots(self) -> Mapping[Berth, PilotGroup]: ...
    @property
    def evaluation(self) -> Evaluation: ...
    @property
    def entries(self) -> Mapping[EntryKey, EntryTotals]: ...
    @property
    def verdicts(self) -> Mapping[EntryKey, Checked] | None: ...
    @property
    def confidence(self) -> Confidence: ...


class Polled(NamedTuple):
    """What a poll knows of a snapshot before it has one."""

    pilots: Mapping[Berth, PilotGroup]
    evaluation: Evaluation
    entries: Mapping[EntryKey, EntryTotals]
    verdicts: Mapping[EntryKey, Checked] | None = None
    confidence: Confidence = NO_CHECKS


def entry_rows(snapshot: OfPoll) -> list[SiteRow]:
    """Return a row for each entry and resource, by site and entry."""
    registered: Counter[EntryKey] = Counter()
    busy: Counter[tuple[EntryKey, Resource]] = Counter()
    stalled: dict[EntryKey, Stalled] = {}
    unknown: set[EntryKey] = set()
    for (key, _), group in snapshot.pilots.items():
        registered[key] += group.registered
        busy.update({(key, resource): units.busy for resource, units in group.units.items()})
        if group.stalled is None:
            unknown.add(key)
        else:
            stalled[key] = stalled.get(key, _NONE).plus(group.stalled)
    rows = []
    for (key, resource), row in sorted(snapshot.evaluation.rows.items()):
        totals = snapshot.entries.get(key)
        failing = (totals and totals.unregistered) or _ALL_REGISTER
        held = totals and totals.held_lately
        hold = held.holds[0] if held else None
        jobs = snapshot.evaluation.jobs.get(key)
        whole = jobs is not None and jobs.whole
        bottleneck = _part(row, State.PROVISIONING_BOTTLENECK)
        insufficient = _part(row, State.INSUFFICIENT_DEMAND)
        asleep = stalled.get(key, _NONE)
        told = resource == "cpu" and row.provisioned is not None
        told &= bool(asleep.jobs) or key not in unknown
        has_verdicts = resource == "cpu" and snapshot.verdicts is not None
        verdicts = (snapshot.verdicts or {}).get(key, Checked(0, 0))
        sure = None
        if resource == "cpu":
            sure = snapshot.confidence.probability(key, row.verdict)
        rows.append(
            SiteRow(
                site=key.site,
                entry=key.entry,
                resource=resource,
                state=row.state.value,
                reason=row.reason,
                limits=_limits(row, totals, snapshot.evaluation),
                capacity_units=row.capacity.units,
                provisioned_units=row.provisioned,
                busy_units=None if row.provisioned is None else busy[key, resource],
                spare_units=row.spare,
                provisioning_bottleneck_units=bottleneck,
                insufficient_demand_units=insufficient,
                other_units=round(row.spare - bottleneck - insufficient, 3),
                untaken_units=None if row.untaken is None else row.untaken / SCALE,
                registered_pilots=None if row.provisioned is None else registered[key],
                pending_pilots=totals.pending if totals else None,
                held_pilots=totals.held if totals else None,
                requested_pilots=totals.requested_idle if totals else None,
                matching_idle_jobs=_at_least(max, [jobs.ours.matching], whole) if jobs else None,
                assigned_idle_jobs=_at_least(_tenths, [jobs.assigned], whole) if jobs else None,
                jobs_whole=whole,
                evidence=row.evidence,
                capacity_evidence=row.capacity.evidence,
                verdicts_checked=verdicts.checked if has_verdicts else None,
                verdicts_agreed=verdicts.agreed if has_verdicts else None,
                unregistered_pilots=None if totals is None else failing.pilots,
                failing_reach=failing.reach,
                failing_test=failing.test,
                hold_reason=hold.reason if hold else "",
                hold_code=hold.code if hold else None,
                hold_share=round(hold.pilots / held.pilots, 3) if held and hold else None,
                barren=totals is not None and totals.barren,
                probability=None if sure is None else round(sure, 3),
                stalled_jobs=asleep.jobs if told else None,
                stalled_core_hours=round(asleep.core_s / HOUR_S, 1) if told else None,
            )
        )
    return rows


_SUMMED = (
    *("capacity_units", "provisioned_units", "busy_units", "spare_units"),
    *("provisioning_bottleneck_units", "insufficient_demand_units", "other_units"),
    *("untaken_units", "registered_pilots", "pending_pilots", "held_pilots", "requested_pilots"),
    *("unregistered_pilots", "verdicts_checked", "verdicts_agreed"),
    *("stalled_jobs", "stalled_core_hours"),
)
"""What is added up over a site's entries, unless it is not known of one of them."""


def cpu_rows(snapshot: OfPoll) -> dict[EntryKey, SiteRow]:
    """Return the rows of entries for CPUs, by entry."""
    rows = entry_rows(snapshot)
    return {EntryKey(row.site, row.entry): row for row in rows if row.resource == "cpu"}


def site_rows(snapshot: OfPoll) -> list[SiteRow]:
    """Return a row for each site and resource."""
    return by_site(entry_rows(snapshot))


def by_site(entries: Iterable[SiteRow]) -> list[SiteRow]:
    """Return a row for each site and resource: entries added up, states as ``overall`` says.

    Matching jobs are those of the entry that most match: a job that matches two entries of a site
    is one job.
    """
    grouped: dict[tuple[str, Resource], list[SiteRow]] = defaultdict(list)
    for row in entries:
        grouped[row.site, row.resource].append(row)
    result = []
    for _, rows in sorted(grouped.items()):
        state = overall(
            [State(r.state) for r in rows if r.capacity_units] or [State(rows[0].state)]
        )
        largest = max(rows, key=lambda r: (r.state == state, r.spare_units))
        whole = all(r.jobs_whole for r in rows)
        sums: dict[str, Any] = {name: known_sum(getattr(r, name) for r in rows) for name in _SUMMED}
        result.append(
            largest._replace(
                entry="" if len(rows) > 1 else rows[0].entry,
                state=state.value,
                matching_idle_jobs=_at_least(max, [r.matching_idle_jobs for r in rows], whole),
                assigned_idle_jobs=_at_least(_tenths, [r.assigned_idle_jobs for r in rows], whole),
                jobs_whole=whole,
                evidence="estimated" if any(r.evidence != "measured" for r in rows) else "measured",
                capacity_evidence="/".join(sorted({r.capacity_evidence for r in rows})),
                **sums,
            )
        )
    return result


def jobs_text(row: SiteRow) -> str:
    """Return how many jobs match: ``?`` if none are known, ``>=13`` where there may be more."""
    if row.matching_idle_jobs is None:
        return "?"
    return f"{'' if row.jobs_whole else '>='}{row.matching_idle_jobs}"


def verdicts_text(row: SiteRow) -> str:
    """Return how many of the verdicts that were checked were right; ``-`` where none was."""
    return right(row.verdicts_agreed or 0, row.verdicts_checked or 0)


def down(statuses: Iterable[Status]) -> list[str]:
    """Return which queries of which sources fail."""
    return [f"{status.source} {status.kind}" for status in statuses if not status.up]


def document(
    time_s: float, sources_down: Sequence[str], rows: Sequence[SiteRow], *, entries: bool
) -> Document:
    """Return rows in all forms, with the time that they are of (epoch seconds)."""

    def record() -> dict[str, Any]:
        return {
            "time_epoch_seconds": time_s,
            "sources_down": list(sources_down),
            "sites": [row._asdict() for row in rows],
        }

    return Document(
        lambda: [table("", columns(entries=entries), worst_first(rows))] if rows else [],
        record,
        lambda: (row._asdict() for row in rows),
        lambda: dict.fromkeys(SiteRow._fields),
    )


def no_site(snapshot: Snapshot) -> str:
    """Return why there may be no site, and what to do next."""
    unnamed = sum(n for (_, word), n in snapshot.problems.items() if word == ProblemName.NO_SITE)
    if unnamed:
        return (
            f"no site is known: {unnamed} slots do not say at which site they are. Name the "
            "attribute that does: [attributes] site"
        )
    return (
        "no site is known: the collectors show no pilot, and no glideresource ad of a frontend "
        "that asks for any. Are they this pool's (--collector, [pool] collectors)? gwmond check "
        "says what each daemon answered"
    )


def worst_first(rows: Sequence[SiteRow]) -> list[SiteRow]:
    """Return rows in the order of their bottlenecks."""
    return sorted(rows, key=lambda r: (-r.provisioning_bottleneck_units, r.site, r.entry))


def columns(*, entries: bool) -> list[Column[SiteRow]]:
    return [
        Column("site", lambda row: row.site, name=True, head=entries),
        *([Column("entry", lambda row: row.entry, name=True)] if entries else []),
        Column("of", lambda row: row.resource, name=True),
        Column("state", lambda row: state_cell(row.state), text=True),
        Column("reason", _reason, text=True, wrap=12),
        Column("capa­city", lambda row: number(row.capacity_units)),
        Column("provi­sioned", lambda row: number(row.provisioned_units)),
        Column("busy", lambda row: number(row.busy_units)),
        Column("bottle­neck", lambda row: number(row.provisioning_bottleneck_units)),
        Column("no demand", lambda row: number(row.insufficient_demand_units), zero=True),
        Column("other", lambda row: number(row.other_units), zero=True, rank=1),
        Column("pilots", lambda row: number(row.registered_pilots)),
        Column("pend­ing", lambda row: number(row.pending_pilots), zero=True),
        Column("held", lambda row: number(row.held_pilots), zero=True, rank=1),
        Column("asked", lambda row: number(row.requested_pilots), zero=True, rank=1),
        Column("match­ing", jobs_text),
        Column("sure", lambda row: percent(row.probability, 0), zero=True, rank=1),
    ]


def _reason(row: SiteRow) -> str:
    """Return the reason, with the limit that was hit; soft hyphens say where that is divided."""
    limited = re.search("limit|left_out|no_match", row.reason)
    detail = row.limits if limited else reason_detail(row)
    return f"{words(row.reason)}: {_WITHIN.sub(chr(0xAD), detail)}" if detail else words(row.reason)


def reason_detail(row: SiteRow) -> str:
    """Return why pilots are held, or which test of those that do not register fails; or nothing."""
    if row.reason == "held_pilots" and row.hold_reason:
        return hold_text(row)
    return row.failing_test if row.reason == "run_but_do_not_register" else ""


def hold_text(row: SiteRow) -> str:
    """Return the most frequent reason for which pilots are held, with its share."""
    return f"{row.hold_reason or 'no reason is given'} ({percent(row.hold_share, 0)} of those held)"


def entry_state_counts(snapshot: Snapshot) -> dict[str, int]:
    """Return how many entries are in each state; all states are there."""
    counts = dict.fromkeys((state.value for state in State), 0)
    for state in entry_states(snapshot.evaluation).values():
        counts[state.value] += 1
    return counts


def _limits(row: EntryTime, totals: EntryTotals | None, whole: Evaluation) -> str:
    """Return limits in short: ``TotalGlideinsPerEntry (count=5, limit=5)``."""
    limits = {(_LIMIT_PREFIX.sub("", x.name), x.text) for x in (totals.limits if totals else ())}
    limits |= set(whole.left_out.items() if row.reason == LEFT_OUT else ())
    texts = [f"{name} ({text})" for name, text in sorted(limits)]
    return "; ".join([*texts, whole.unseen] if row.reason == NO_MATCH and whole.unseen else texts)


def _part(row: EntryTime, state: State) -> float:
    return sum(part.amount for part in row.parts if part.state is state) / SCALE


def _at_least(together: Callable[[list[T]], T], values: list[T | None], whole: bool) -> T | None:
    """Return what is known; None where that is nothing, or 0 of something that is not whole."""
    present = [value for value in values if value is not None]
    return together(present) if present and (whole or any(present)) else None


def _tenths(values: list[float]) -> float:
    return round(sum(map(float, values)), 1)
