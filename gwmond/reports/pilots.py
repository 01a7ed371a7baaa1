"""The list of pilots: where, since when, doing what, for whom, and where the time went.

Units: times are microseconds since the epoch, amounts are micros (10^-6 of one core, chip or
canonical unit for one second), memory is MiB.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from gwmond.ledger.pilot_life import life_of
from gwmond.ledger.pilot_reader import chunks
from gwmond.ledger.pilot_reports import Order, PilotFilter, PilotReports
from gwmond.model.facts import EntryKey
from gwmond.model.pilot_facts import MEASURES, Category, PilotLife, Resources, Step, Validation
from gwmond.model.shares import MILLI
from gwmond.model.stored_pilots import AttemptRow, PilotIdentity, PilotRow
from gwmond.model.units import DEFAULT_MEMORY_MIB, RESOURCES
from gwmond.model.waits import Wait
from gwmond.pilots.ad_times import is_silent
from gwmond.pilots.pilot_segments import NOTHING, total_rate
from gwmond.pilots.pilot_time import own_category, total
from gwmond.reports import categories as c
from gwmond.reports import open_runs
from gwmond.reports.ledger_reading import Age
from gwmond.reports.periods import both, short, span
from gwmond.reports.pilot_jobs import jobs_of
from gwmond.reports.render.document import Document, Paragraph, Part
from gwmond.reports.render.formats import counted, hours, percent, ratio, seconds
from gwmond.reports.render.table import Cell, Column, table

State: TypeAlias = Literal["running", "idle", "open", "retiring", "silent", "failed", "ended"]
"""``open``: only its output tells of it, without an end, and not whether it runs jobs.  ``silent``:
its ads were not renewed for two updates."""
SortBy: TypeAlias = Literal["start", "end", "contact", "name", "id", "site", "left", "hours"]

_ENDED = {
    "shutdown": "shut down",
    "vanished": "vanished",
    "assumed": "no more jobs",
    "logged": "ended (central log)",
    "queue": "ended (factory's queue)",
}
_WITHOUT_JOBS = {"idle": "idle", "open": "runs, jobs not known"}
_NEVER_RAN = {
    Category.VALIDATION_FAILS: "failed validation",
    Category.DECISION_PROBLEM: "never ran a job",
    Category.UNCLASSIFIED: "nothing tells what it ran",
}


class PilotSummary(NamedTuple):
    """One pilot; ``users`` are those of all its runs, ``users_now`` of those that run now.

    ``settled`` is booked, ``unsettled`` what else it had to offer up to now.  ``attempts_pruned``:
    runs that retention took out, whose users are not known any more.  ``attempts`` is None where
    nothing tells how many runs there were.
    """

    row: PilotRow
    state: State
    size: Resources
    canonical_units: int
    running_jobs: int
    attempts: int | None
    users_now: tuple[str, ...]
    users: tuple[str, ...]
    settled: c.Sums
    unsettled: Mapping[c.Kind, int]

    @property
    def heard_us(self) -> int:
        """When it was heard of last."""
        return max(self.row.contact_us, self.row.heard_us)

    @property
    def doing(self) -> str:
        """What it does, or how it ended, for people."""
        failed = self.row.validation is Validation.FAILED and self.attempts == 0
        if failed and (self.state == "failed" or self.row.ended == "assumed"):
            return (
                f"{_NEVER_RAN[Category.VALIDATION_FAILS]}: {self.row.failure or 'cause not known'}"
            )
        if self.state == "ended":
            how = _ENDED.get(self.row.ended, "ended")
            never = _NEVER_RAN.get(_own(self.row) or Category.PILOT_OVERHEAD)
            return f"{how}: {never}" if never else how
        jobs = counted(self.running_jobs, "job")
        if self.state in {"retiring", "silent"}:
            return f"{self.state}, {jobs}"
        return _WITHOUT_JOBS.get(self.state, f"running {jobs}")

    def left_us(self, now_us: int) -> tuple[int | None, int | None]:
        """How long it is until it retires and dies; negative if past, None if not known."""
        if self.row.end_us is not None:
            return None, None
        retire, die = self.row.retire_us, self.row.die_us
        return (
            None if retire is None else retire - now_us,
            None if die is None else die - now_us,
        )

    def offered(self, kind: c.Kind) -> int:
        """All that it had to offer up to now."""
        return c.of_kind(self.settled, kind) + self.unsettled.get(kind, 0)

    def share(self, kind: c.Kind, categories: Collection[Category]) -> float | None:
        """The share of some categories in all that is settled."""
        whole = c.of_kind(self.settled, kind)
        return ratio(c.of_kind(self.settled, kind, categories), whole)

    def booked(self, kind: c.Kind, categories: Collection[Category]) -> str:
        """Hours that some categories have, for a table."""
        return hours(c.of_kind(self.settled, kind, categories))


def summaries(
    ledger: PilotReports,
    wanted: PilotFilter,
    now_us: int,
    *,
    silent_before_us: int = 0,
    sort: SortBy = "start",
    reverse: bool = False,
    limit: int | None = None,
    q: int,
) -> list[PilotSummary]:
    """Return the pilots that are wanted; by time: the latest first, unless reversed.

    ``silent_before_us``: one that was heard of last before that is silent.
    """
    in_ledger: dict[str, Order] = {x: x for x in ("start", "end", "contact", "name", "id")}
    order = in_ledger.get(sort)
    latest_first = sort in {"start", "end", "contact", "id"}
    rows = ledger.pilot_rows(
        wanted,
        order=order or "start",
        descending=latest_first != reverse if order else True,
        limit=limit if order else None,
    )
    made = [
        summary_of(row, theirs.get(row.id, ()), now_us, q, silent_before_us)
        for some in chunks(rows)
        for theirs in [ledger.attempts_of([row.id for row in some])]
        for row in some
    ]
    if order is None:
        key = _KEYS[sort]
        made.sort(key=lambda pilot: key(pilot, now_us), reverse=reverse)
    return made if limit is None else made[:limit]


def life_now(row: PilotRow, attempts: Iterable[AttemptRow]) -> PilotLife:
    """Return a pilot's life; one that has not ended lasts, for now, until its last contact.

    What is after the contact up to which it was booked is not settled.
    """
    life = life_of(row, attempts)
    if row.end_us is not None:
        return life
    known_us = life.now_us if life.known_until_us is None else min(life.known_until_us, life.now_us)
    return life._replace(now_us=max(life.now_us, row.heard_us), known_until_us=known_us)


def summary_of(
    row: PilotRow,
    theirs: Iterable[AttemptRow],
    now_us: int,
    q: int,
    silent_before_us: int = 0,
) -> PilotSummary:
    """Return what a stored pilot is said to be now."""
    attempts = list(theirs)
    step = max(row.steps, default=Step(0, NOTHING))
    running = _that_fit(attempts, step.size) if row.end_us is None else []
    offered = total(life_now(row, ()), q=q)
    settled = by_category(row)
    if row.end_us is not None:
        state: State = "ended"
    elif row.validation is Validation.FAILED and not attempts:
        state = "failed"
    elif is_silent(row.identity, row.end_us, max(row.contact_us, row.heard_us), silent_before_us):
        state = "silent"
    elif row.retire_us is not None and row.retire_us <= now_us:
        state = "retiring"
    elif running:
        state = "running"
    else:
        state = "open" if row.identity.origin == "files" else "idle"
    jobs = jobs_of(row, attempts)
    return PilotSummary(
        row=row,
        state=state,
        size=step.size,
        canonical_units=total_rate(step.size, "cpu", "canonical", q, step.least) // MILLI,
        running_jobs=len(running),
        attempts=jobs.number,
        users_now=_users(running),
        users=_users(attempts),
        settled=settled,
        unsettled={kind: offered.get(kind, 0) - c.of_kind(settled, kind) for kind in c.KINDS},
    )


def _that_fit(attempts: Iterable[AttemptRow], size: Resources) -> list[AttemptRow]:
    """Return the attempts without an end that a pilot has room for: those that began last.

    The others have ended, and their records are not there (yet): where no schedd is asked for its
    history they are waited for long.
    """
    running: list[AttemptRow] = []
    cores = gpus = 0.0
    for attempt in sorted(attempts, key=lambda attempt: attempt.start_us, reverse=True):
        if attempt.end_us is not None:
            continue
        cores, gpus = cores + attempt.size.cores, gpus + attempt.size.gpus
        if running and (cores > size.cores or gpus > size.gpus):
            break
        running.append(attempt)
    return running


def by_category(row: PilotRow) -> c.Sums:
    """Return what is booked for a pilot without its outcomes."""
    sums: Counter[tuple[Any, ...]] = Counter()
    for (resource, measure, category, _), micros in row.settled.items():
        sums[resource, measure, category] += micros
    return dict(sums)


def record(pilot: PilotSummary, now_us: int) -> dict[str, Any]:
    """Return it for JSON: times twice, amounts in seconds, null where nothing is known."""
    row, key = pilot.row, pilot.row.identity
    retire, die = pilot.left_us(now_us)
    return {
        "id": row.id,
        "name": key.name,
        "site": key.key.site,
        "entry": key.key.entry,
        "group": key.group,
        "factory": key.factory,
        "factory_job": key.factory_job or None,
        "node": key.node or None,
        "origin": key.origin,
        **both("start", row.start_us),
        **both("end", row.end_us),
        **both("last_contact", pilot.heard_us),
        **both("retires", row.retire_us),
        **both("dies", row.die_us),
        "until_retire_seconds": seconds(retire),
        "until_die_seconds": seconds(die),
        "cores": pilot.size.cores,
        "memory_mib": pilot.size.memory_mib,
        "gpus": pilot.size.gpus,
        "canonical_units": pilot.canonical_units,
        "state": pilot.state,
        "ended": row.ended or None,
        "validation": row.validation.shown,
        "validation_failure": row.failure,
        "running_jobs": pilot.running_jobs,
        "attempts": pilot.attempts,
        "attempts_pruned": row.attempts_pruned,
        "users_now": list(pilot.users_now),
        "users": list(pilot.users),
        "categories": c.categories_json(pilot.settled),
        "shares": _shares(pilot),
        "unsettled": c.kinds_json(pilot.unsettled),
    }


def _shares(pilot: PilotSummary) -> dict[str, dict[str, dict[str, float | None]]]:
    return {
        resource: {
            measure: {
                category.value: pilot.share((resource, measure), (category,))
                for category in c.CATEGORIES
            }
            for measure in MEASURES
        }
        for resource in RESOURCES
    }


def _users(attempts: Iterable[AttemptRow]) -> tuple[str, ...]:
    return tuple(sorted({attempt.user for attempt in attempts if attempt.user}))


def _own(row: PilotRow) -> Category | None:
    life = life_of(row, ())
    return own_category(life._replace(ran_jobs=row.ran_jobs or bool(row.attempts_pruned)))


class PilotList(NamedTuple):
    """Pilots, with the ledger's age and what runs wait for; ``why`` there are none, if so."""

    age: Age
    pilots: Sequence[PilotSummary]
    truncated: bool
    waits: Sequence[Wait]
    why: str

    @property
    def document(self) -> Document:
        """Return it in all forms."""
        return Document(self._parts, self._record, self._records, lambda: record(_BLANK, 0))

    def _record(self) -> dict[str, Any]:
        return {
            **self.age.as_json(),
            "truncated": self.truncated,
            "not_settled": open_runs.as_json(self.waits),
            "pilots": list(self._records()),
        }

    def _records(self) -> Iterator[dict[str, Any]]:
        return (record(pilot, self.age.now_us) for pilot in self.pilots)

    def _parts(self) -> Iterator[Part]:
        yield Paragraph(self.age.text)
        if self.waits:
            yield Paragraph(open_runs.sentence(self.waits))
        if self.pilots:
            yield table("", _columns(self.age.now_us), self.pilots)
        else:
            yield Paragraph(f"No such pilots: {self.why}")


_COLOURS: Mapping[State, str] = {
    "running": "green",
    "idle": "cyan",
    "open": "cyan",
    "retiring": "yellow",
    "silent": "red",
    "failed": "red",
    "ended": "bright_black",
}
_GOOD, _OTHER = (Category.GOODPUT,), (Category.UNCLASSIFIED,)


def _columns(now_us: int) -> list[Column[PilotSummary]]:
    """Return the columns of the list; a cell is empty where there is nothing to say."""

    def left(which: int) -> Callable[[PilotSummary], str]:
        return lambda pilot: "" if (us := pilot.left_us(now_us)[which]) is None else span(us)

    def node(pilot: PilotSummary) -> str:
        key = pilot.row.identity
        return "" if key.node in key.name else key.node

    def heard(pilot: PilotSummary) -> str:
        return short(pilot.heard_us) if pilot.row.end_us is None else ""

    def of_gpus(cell: Callable[[PilotSummary], str]) -> Callable[[PilotSummary], str]:
        return lambda pilot: cell(pilot) if pilot.offered(c.GPU) else ""

    return [
        Column("id", lambda pilot: str(pilot.row.id), name=True),
        Column("site", lambda pilot: pilot.row.identity.key.site, text=True),
        Column("entry", lambda pilot: pilot.row.identity.key.entry, text=True),
        Column("doing", lambda p: Cell(p.doing, _COLOURS[p.state]), text=True, wrap=40),
        Column("users", _some_users, text=True, wrap=20),
        Column("since (UTC)", lambda pilot: short(pilot.row.start_us), text=True),
        Column("until (UTC)", lambda pilot: short(pilot.row.end_us), text=True),
        Column("heard of (UTC)", heard, text=True),
        Column("size", size_text, text=True),
        Column("retires", left(0), text=True),
        Column("dies", left(1), text=True),
        Column("hours", lambda pilot: hours(pilot.offered(c.CPU))),
        Column("good", lambda pilot: pilot.booked(c.CPU, _GOOD), zero=True),
        Column("%", lambda pilot: percent(pilot.share(c.CPU, _GOOD), 0), share=True),
        Column("badput", lambda pilot: pilot.booked(c.CPU, c.BADPUT), zero=True),
        Column("own", lambda pilot: pilot.booked(c.CPU, c.OF_PILOTS), zero=True),
        Column("uncl.", lambda pilot: pilot.booked(c.CPU, _OTHER), zero=True),
        Column("open", lambda pilot: hours(pilot.unsettled[c.CPU])),
        Column("GPU hours", of_gpus(lambda pilot: hours(pilot.offered(c.GPU)))),
        Column("%", of_gpus(lambda p: percent(p.share(c.GPU, _GOOD), 0)), share=True),
        Column("pilot", lambda pilot: pilot.row.identity.name, text=True),
        Column("node", node, text=True),
        Column("factory", lambda pilot: pilot.row.identity.factory, text=True),
        Column("group", lambda pilot: pilot.row.identity.group, text=True),
    ]


def size_text(pilot: PilotSummary) -> str:
    """Return a pilot's resources in short: ``8c 16000M 1g = 8u``."""
    size = pilot.size
    gpus = f" {size.gpus:g}g" if size.gpus else ""
    return f"{size.cores:g}c {size.memory_mib:.0f}M{gpus} = {pilot.canonical_units}u"


def _some_users(pilot: PilotSummary, most: int = 3) -> str:
    users = pilot.users if pilot.state == "ended" else pilot.users_now
    more = f" +{len(users) - most}" if len(users) > most else ""
    return ", ".join(users[:most]) + more


_BLANK = summary_of(
    PilotRow(
        id=0,
        identity=PilotIdentity("", 0, "", "", EntryKey("", ""), "", ""),
        start_us=0,
        end_us=0,
        contact_us=0,
        steps=(),
        validation=Validation.UNKNOWN,
        assumed={},
        ended="",
        retire_us=None,
        die_us=None,
        known_until_us=None,
        mark_us=0,
        ran_jobs=False,
        closed=True,
        settled={},
    ),
    (),
    0,
    DEFAULT_MEMORY_MIB,
)
"""What has all columns, and no pilot is."""

_KEYS: Mapping[str, Callable[[PilotSummary, int], Any]] = {
    "site": lambda p, _: (*p.row.identity.key, p.row.identity.group, -p.row.start_us),
    "left": lambda pilot, now_us: (
        min((left for left in pilot.left_us(now_us) if left is not None), default=1 << 62),
        pilot.row.id,
    ),
    "hours": lambda pilot, _: (-pilot.offered(c.CPU), pilot.row.id),
}
"""Orders that the ledger does not know."""
