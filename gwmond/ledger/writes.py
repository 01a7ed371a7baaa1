"""The statements that change a ledger; each runs inside the caller's transaction."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from math import isfinite
from typing import Any, NamedTuple, TypeAlias

from sqlalchemy import Connection, bindparam, delete, func, select

from gwmond.ledger.backend import upsert
from gwmond.ledger.schema import entries, ledger_state, peaks, problems
from gwmond.model.elapsed import Tick
from gwmond.model.facts import EntryKey
from gwmond.model.stored_pilots import PilotId
from gwmond.model.totals import Batch, EntryState, Hour, Peak, TimedProblem
from gwmond.model.units import MICRO

PROBLEMS_KEPT = 10_000
NAME_CHARACTERS = 128  # five of them fit into an index of PostgreSQL (2704 bytes)
DETAIL_CHARACTERS = 4000
LONGEST_S = 366 * 86400
LARGEST_MICROS = 2**63 - 1

Row: TypeAlias = dict[str, Any]


# What JSON needs six characters for: a name's length would not fit an index any more.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")


def clean(text: str, limit: int = NAME_CHARACTERS) -> str:
    """Return ``text`` as every database can store it.

    Names come from ads that anybody's pilot may send: one NUL, broken UTF-8 or a novel for a site
    name must not stop the accounting of all sites.  Names that become equal share a series.
    """
    if len(text) <= limit and text.isascii() and text.isprintable():
        return text
    text = _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _whole(value: object, least: int = 0, most: int = LARGEST_MICROS) -> None:
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"{value!r} is not an exact integer of {least} or more, in range")


def check_batch(batch: Batch) -> None:
    """Raise ``ValueError`` for what no correct caller sends."""
    times = [*batch.tick[:3], *(batch.before[:3] if batch.before else ())]
    times += [time for time, _ in batch.problems]
    for state in batch.entries.values():
        times += [time for time in state[:2] if time is not None]
    if not all(map(isfinite, times)):
        raise ValueError("a time is not finite")
    if batch.before == batch.tick:
        raise ValueError("it ends at the tick that it starts from, so a replay could not be told")
    for increment in batch.increments:
        _whole(increment.micros)
        if not 0 <= increment.end - increment.start <= LONGEST_S:  # refuses NaN too
            raise ValueError(f"{increment} is not over 0 to {LONGEST_S} s")
    for state in batch.entries.values():
        for units in state.provisioned.values():
            _whole(units)
    for group in batch.peaks.values():
        for peak in group:
            _whole(peak.units)
            _whole(peak.hour)


class Stored(NamedTuple):
    """The one row of ``ledger_state``."""

    batches: int = 0
    next_id: PilotId = 1
    pruned_before: Hour = 0
    pilots_pruned_us: int = 0
    attempts_pruned_us: int = 0
    wall: float | None = None
    mono: float | None = None
    boot: float | None = None
    boot_id: str | None = None

    @property
    def tick(self) -> Tick | None:
        """Up to when site time is accounted, None before the first poll."""
        if self.wall is None or self.mono is None or self.boot is None or self.boot_id is None:
            return None
        return Tick(self.wall, self.mono, self.boot, self.boot_id)


def stored_state(connection: Connection, *, lock: bool = False) -> Stored:
    """Return the row, or what stands for it in a new ledger."""
    query = select(*(ledger_state.c[name] for name in Stored._fields))
    row = connection.execute(query.with_for_update() if lock else query).one_or_none()
    return Stored() if row is None else Stored(*row)


def store_state(connection: Connection, stored: Stored) -> None:
    statement = upsert(connection, ledger_state).values(id=1, **stored._asdict())
    connection.execute(
        statement.on_conflict_do_update(index_elements=["id"], set_=stored._asdict())
    )


def store_entries(connection: Connection, changed: Mapping[EntryKey, EntryState]) -> None:
    if not changed:
        return
    statement = upsert(connection, entries)
    columns = ("first_seen", "last_accounted", "provisioned_cpu", "provisioned_gpu")
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=["site", "entry"], set_={c: statement.excluded[c] for c in columns}
        ),
        [
            {
                "site": clean(key.site),
                "entry": clean(key.entry),
                "first_seen": state.first_seen,
                "last_accounted": state.last_accounted,
                "provisioned_cpu": state.provisioned.get("cpu"),
                "provisioned_gpu": state.provisioned.get("gpu"),
            }
            for key, state in sorted(changed.items(), key=lambda item: item[0])
        ],
    )


def stored_peaks(connection: Connection) -> dict[EntryKey, tuple[Peak, ...]]:
    found: dict[EntryKey, list[Peak]] = defaultdict(list)
    query = select(peaks).order_by(peaks.c.site, peaks.c.entry, peaks.c.resource, peaks.c.hour)
    for row in connection.execute(query):
        found[EntryKey(row.site, row.entry)].append(Peak(row.resource, row.hour, row.units))
    return {key: tuple(group) for key, group in found.items()}


def store_peaks(connection: Connection, changed: Mapping[EntryKey, tuple[Peak, ...]]) -> None:
    """Replace the peaks of each entry named; those that are as stored are not written again."""
    if not changed:
        return
    stored = stored_peaks(connection)
    wanted: dict[EntryKey, tuple[Peak, ...]] = {
        EntryKey(clean(key.site), clean(key.entry)): tuple(sorted(group))
        for key, group in changed.items()
    }
    different = {k: v for k, v in wanted.items() if v != stored.get(k, ())}
    if different:
        gone = delete(peaks).where(
            peaks.c.site == bindparam("of_site"), peaks.c.entry == bindparam("of_entry")
        )
        connection.execute(gone, [{"of_site": k.site, "of_entry": k.entry} for k in different])
    rows = [{**k._asdict(), **peak._asdict()} for k, group in different.items() for peak in group]
    if rows:
        connection.execute(peaks.insert(), rows)


def store_problems(connection: Connection, seen: tuple[TimedProblem, ...]) -> None:
    """Add problems; the oldest beyond ``PROBLEMS_KEPT`` go."""
    if not seen:
        return
    rows = [
        {
            "time": time,
            "source": clean(problem.source),
            "problem": clean(problem.problem),
            "detail": clean(problem.detail, DETAIL_CHARACTERS),
        }
        for time, problem in seen[-PROBLEMS_KEPT:]
    ]
    connection.execute(problems.insert(), rows)
    newest = select(func.max(problems.c.id)).scalar_subquery()
    connection.execute(delete(problems).where(problems.c.id <= newest - PROBLEMS_KEPT))


def prune_problems(connection: Connection, before_us: int) -> dict[str, int]:
    old = delete(problems).where(problems.c.time < before_us / MICRO)
    return {"problems": connection.execute(old).rowcount}
