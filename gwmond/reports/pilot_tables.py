"""The list of pilots, as data: where, since when, doing what, for whom, and where the time went.

Units: times are microseconds since the epoch, amounts are micros (10^-6 of one core, chip or
canonical unit for one second), memory is MiB.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Literal, NamedTuple, TextIO, TypeAlias

from gwmond.ledger.pilot_life import life_of
from gwmond.ledger.pilot_reader import chunks
from gwmond.ledger.pilot_reports import Order, PilotFilter, PilotReports
from gwmond.model.facts import EntryKey
from gwmond.model.pilot_facts import Category, PilotLife, Resources, Step, Validation
from gwmond.model.shares import MILLI
from gwmond.model.stored_pilots import AttemptRow, PilotIdentity, PilotRow
from gwmond.model.units import DEFAULT_MEMORY_MIB
from gwmond.pilots.pilot_segments import NOTHING, total_rate
from gwmond.pilots.pilot_time import own_category, total
from gwmond.pilots.silence import is_silent
from gwmond.reports import csv_text
from gwmond.reports.category_time import (
    CATEGORIES,
    KINDS,
    Kind,
    Sums,
    categories_json,
    kinds_json,
    of_kind,
    ratio,
    seconds,
)
from gwmond.reports.periods import both
from gwmond.reports.pilot_jobs import jobs_of

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


class PilotLine(NamedTuple):
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
    settled: Sums
    unsettled: Mapping[Kind, int]

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
        jobs = f"{self.running_jobs} job{'' if self.running_jobs == 1 else 's'}"
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

    def offered(self, kind: Kind) -> int:
        """All that it had to offer up to now."""
        return of_kind(self.settled, kind) + self.unsettled.get(kind, 0)

    def share(self, kind: Kind, categories: Collection[Category]) -> float | None:
        """The share of some categories in all that is settled."""
        some = sum(self.settled.get((*kind, category), 0) for category in categories)
        return ratio(some, of_kind(self.settled, kind))


def lines(
    ledger: PilotReports,
    wanted: PilotFilter,
    now_us: int,
    *,
    silent_before_us: int = 0,
    sort: SortBy = "start",
    reverse: bool = False,
    limit: int | None = None,
    q: int,
) -> list[PilotLine]:
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
        line_of(row, theirs.get(row.id, ()), now_us, q, silent_before_us)
        for some in chunks(rows)
        for theirs in [ledger.attempts_of([row.id for row in some])]
        for row in some
    ]
    if order is None:
        made.sort(key=_KEYS[sort](now_us), reverse=reverse)
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


def line_of(
    row: PilotRow,
    theirs: Iterable[AttemptRow],
    now_us: int,
    q: int,
    silent_before_us: int = 0,
) -> PilotLine:
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
    return PilotLine(
        row=row,
        state=state,
        size=step.size,
        canonical_units=total_rate(step.size, "cpu", "canonical", q, step.least) // MILLI,
        running_jobs=len(running),
        attempts=jobs.number,
        users_now=_users(running),
        users=_users(attempts),
        settled=settled,
        unsettled={kind: offered.get(kind, 0) - of_kind(settled, kind) for kind in KINDS},
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


def by_category(row: PilotRow) -> Sums:
    """Return what is booked for a pilot without its outcomes."""
    sums: Counter[tuple[Any, ...]] = Counter()
    for (resource, measure, category, _), micros in row.settled.items():
        sums[resource, measure, category] += micros
    return dict(sums)


def as_json(line: PilotLine, now_us: int) -> dict[str, Any]:
    """Return a pilot for JSON: times twice, amounts in seconds, null where nothing is known."""
    row, key = line.row, line.row.identity
    retire, die = line.left_us(now_us)
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
        **both("last_contact", line.heard_us),
        **both("retires", row.retire_us),
        **both("dies", row.die_us),
        "until_retire_seconds": seconds(retire),
        "until_die_seconds": seconds(die),
        "cores": line.size.cores,
        "memory_mib": line.size.memory_mib,
        "gpus": line.size.gpus,
        "canonical_units": line.canonical_units,
        "state": line.state,
        "ended": row.ended or None,
        "validation": row.validation.shown,
        "validation_failure": row.failure,
        "running_jobs": line.running_jobs,
        "attempts": line.attempts,
        "attempts_pruned": row.attempts_pruned,
        "users_now": list(line.users_now),
        "users": list(line.users),
        "categories": categories_json(line.settled),
        "shares": _shares(line),
        "unsettled": kinds_json(line.unsettled),
    }


def write_csv(made: Iterable[PilotLine], now_us: int, into: TextIO) -> None:
    """Write a line for each pilot; the names of columns are those of the JSON."""
    columns = flatten(as_json(line_of(_NOBODY, (), 0, DEFAULT_MEMORY_MIB), 0))
    csv_text.write(into, columns, (flatten(as_json(line, now_us)).values() for line in made))


def flatten(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested values as columns: ``categories_cpu_resource_seconds_goodput``."""
    flat: dict[str, Any] = {}
    for name, inner in value.items():
        if isinstance(inner, Mapping):
            flat |= flatten(inner, f"{prefix}{name}_")
        else:
            flat[prefix + name] = " ".join(map(str, inner)) if isinstance(inner, list) else inner
    return flat


def _shares(line: PilotLine) -> dict[str, dict[str, dict[str, float | None]]]:
    return {
        resource: {
            measure: {
                category.value: line.share((resource, measure), (category,))
                for category in CATEGORIES
            }
            for measure in ("resource", "canonical")
        }
        for resource in ("cpu", "gpu")
    }


def _users(attempts: Iterable[AttemptRow]) -> tuple[str, ...]:
    return tuple(sorted({attempt.user for attempt in attempts if attempt.user}))


def _own(row: PilotRow) -> Category | None:
    life = life_of(row, ())
    return own_category(life._replace(ran_jobs=row.ran_jobs or bool(row.attempts_pruned)))


_NOBODY = PilotRow(
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
)
"""What has all columns, and no pilot is."""

_Key: TypeAlias = Callable[[PilotLine], Any]


def _by_site(_: int) -> _Key:
    return lambda line: (*line.row.identity.key, line.row.identity.group, -line.row.start_us)


def _by_time_left(now_us: int) -> _Key:
    def key(line: PilotLine) -> tuple[int, int]:
        known = [left for left in line.left_us(now_us) if left is not None]
        return (min(known) if known else 1 << 62), line.row.id

    return key


def _by_hours(_: int) -> _Key:
    return lambda line: (-line.offered(("cpu", "canonical")), line.row.id)


_KEYS: Mapping[str, Callable[[int], _Key]] = {
    "site": _by_site,
    "left": _by_time_left,
    "hours": _by_hours,
}
