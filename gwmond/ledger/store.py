"""The ledger of the daemon: its only writer, and exactly once."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Self, TypeVar

from sqlalchemy import Connection, select, update
from sqlalchemy.exc import IntegrityError

from gwmond.ledger.database import sqlite
from gwmond.ledger.database.classify import is_refusal
from gwmond.ledger.database.errors import LedgerConflict, LedgerRefused
from gwmond.ledger.database.location import SqliteFile, parse
from gwmond.ledger.database.schema import pilots
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.ledger.rows import backlog, counters, pilot_prune, tables, writes
from gwmond.ledger.rows.backlog import UnsentPosition
from gwmond.ledger.rows.pilot_prune import Pruned, Retention
from gwmond.ledger.rows.tables import Stored
from gwmond.model.pilots.stored_pilots import CountKey, PilotSeries
from gwmond.model.poll.batch import Batch, Part, Parts, Totals
from gwmond.model.times import HOUR_US
from gwmond.model.totals import Hour

UNSENT_S = 86400.0
"""What was to be exported as traces is forgotten after a day, also where nobody exports."""

MOST_REFUSED = 1000
"""So many parts of a batch are found at once, so that a search takes a bounded time."""
_T = TypeVar("_T")
_OTHER_WRITER = "Another writer was here, or the batch is old: load the ledger and go on from it."


class Ledger(LedgerReader):
    """A ledger that this process alone may write, until ``close`` or its death.

    Invariant, at every instant and after every interruption: the totals, the hours and the rest
    are those of the batches that are counted as stored, each exactly once.
    """

    @classmethod
    def open(cls, url: str) -> Self:
        """Lock, prove sound, create or upgrade the ledger that a URL or path names.

        May be tried again after any failure; nothing of the user's is ever moved or deleted.
        """
        location = parse(url)
        if isinstance(location, SqliteFile):
            return cls(sqlite.open_writer(location.path))
        from gwmond.ledger.database import postgres  # noqa: PLC0415 (SQLAlchemy's dialect takes a while)

        return cls(postgres.open_writer(location))

    def commit(self, batch: Batch) -> Totals:
        """Store what a poll changes in one transaction, durably; return the totals as they are now.

        Raises ``LedgerConflict`` when it does not follow what is stored, ``LedgerRefused`` for a
        batch that makes no sense, also where a correction or count would leave less than nothing,
        or another ``LedgerError``; after each of them nothing was stored.  (Only when the
        connection to a server broke meanwhile, is it unknown: ``open`` and ``load`` show.)
        """
        with self._checked():
            rows = writes.prepare(batch)
        with self.transaction() as connection, self._checked():
            stored = tables.stored_state(connection, lock=True)
            if stored.batches != batch.before:
                raise self._conflict(stored, batch)
            named = writes.store(connection, stored, rows)
        return counters.totals(batch, named)

    def refused_parts(self, parts: Parts) -> dict[Part, str]:
        """Return which parts of a batch cannot be stored, and why; nothing is stored.

        The second line of defence: what makes no sense is not to get as far as a batch.  A batch
        that is refused as a whole would be tried for ever, and all accounting would wait for one
        pilot.  Without these parts the rest can be stored, unless the fault lies in none of them
        or there are very many.
        """
        with self._held() as backend, backend.connection.begin() as transaction:
            stored = tables.stored_state(backend.connection, lock=True)

            def store(connection: Connection, batch: Batch) -> None:
                writes.store(connection, stored, writes.prepare(batch))

            refused = _find_refused(backend.connection, parts, store)
            transaction.rollback()
        return refused

    def prune(self, now: float, keep: Retention) -> Pruned:
        """Forget what is older than its retention; ``now`` in epoch seconds.

        Of pilots only closed ones that ended before, of runs only those of closed pilots.  What
        can be proven stays provable.  It takes several transactions, so that each is short.
        """

        def before_us(retention_s: float | None) -> int:
            return 0 if retention_s is None else int((now - retention_s) * 1_000_000)

        gone: Counter[str] = Counter()

        def step(prune: Callable[[Connection, int], Mapping[str, int]], before: int) -> None:
            """Repeat until nothing is taken out any more."""
            while True:
                with self.transaction() as connection:
                    removed = prune(connection, before)
                gone.update(removed)
                if not any(removed.values()):
                    return

        pilots_us = before_us(keep.pilots_s)
        step(pilot_prune.prune_hours, before_us(keep.hours_s) // HOUR_US)
        step(pilot_prune.prune_closed, pilots_us)
        step(pilot_prune.prune_runs, before_us(keep.runs_s))
        step(pilot_prune.prune_corrections, before_us(keep.corrections_s))
        step(tables.prune_places, pilots_us)
        step(tables.prune_experiments, pilots_us)
        step(tables.prune_problems, before_us(keep.problems_s))
        step(tables.prune_cursors, before_us(keep.cursors_s))
        step(tables.prune_waits, before_us(keep.runs_s))
        step(tables.prune_polls, before_us(keep.polls_s))
        step(tables.prune_values, pilots_us)
        step(backlog.prune, before_us(UNSENT_S))
        return Pruned(**gone)

    def note_unit(self, mib: int) -> None:
        """Say in which units, of so many MiB, all was posted of which that is not stored.

        That is so in a ledger of a gwmond which did not store it, until this is said first.
        """
        first = select(pilots.c.unit_mib).order_by(pilots.c.id).limit(1)
        with self.transaction() as connection:
            if connection.scalar(first) == 0:  # new pilots, which know it, come last
                unknown = update(pilots).where(pilots.c.unit_mib == 0)
                connection.execute(unknown.values(unit_mib=mib))

    def sent(self, upto: UnsentPosition) -> None:
        """Forget what was exported as traces."""
        with self.transaction() as connection:
            backlog.forget(connection, upto)

    def vacuum(self) -> None:
        """Give space that is not used back: it takes minutes, and as much free space again."""
        with self._held() as backend:
            backend.vacuum()

    @contextmanager
    def _checked(self) -> Iterator[None]:
        """Refuse the batch when the tables do (CHECK), or when it takes what is not there."""
        try:
            yield
        except Exception as exc:
            if isinstance(exc, LedgerRefused) or not is_refusal(exc):
                raise
            cause = getattr(exc, "orig", None) or exc
            less = isinstance(exc, IntegrityError | LookupError)
            why = f"it leaves less than nothing ({cause})" if less else cause
            raise self._refused(why) from exc

    def _refused(self, why: object) -> LedgerRefused:
        remedy = "Please report this error of gwmond."
        return LedgerRefused(self.where, f"refused a batch: {why}", remedy)

    def _conflict(self, stored: Stored, batch: Batch) -> LedgerConflict:
        if stored.batches == batch.before + 1 and batch.tick in {None, stored.tick}:
            what = f"this batch is stored already ({stored.batches} are)"
            return LedgerConflict(self.where, what, "Go on with the next one.", replay=True)
        what = f"the batch follows {batch.before} others, but {stored.batches} are stored"
        return LedgerConflict(self.where, what, _OTHER_WRITER, replay=False)


def _joined(parts: Sequence[Batch]) -> Batch:
    increments: defaultdict[PilotSeries, Counter[Hour]] = defaultdict(Counter)
    counts: Counter[CountKey] = Counter()
    for part in parts:
        for series, hours in part.increments.items():
            increments[series].update(hours)
        counts.update(part.counts)
    return parts[0]._replace(
        pilots=_all(part.pilots for part in parts),
        runs=_all(part.runs for part in parts),
        moved=_all(part.moved for part in parts),
        withdrawn=_all(part.withdrawn for part in parts),
        heard=_all(part.heard for part in parts),
        sights=_all(part.sights for part in parts),
        increments=increments,
        corrections=_all(part.corrections for part in parts),
        counts=counts,
        places=_all(part.places for part in parts),
    )


def _all(of_parts: Iterable[tuple[_T, ...]]) -> tuple[_T, ...]:
    return tuple(chain.from_iterable(of_parts))


def _find_refused(
    connection: Connection,
    parts: Parts,
    store: Callable[[Connection, Batch], object],
) -> dict[Part, str]:
    """Return which parts cannot be stored, each after those before it that can, and why.

    They are stored by halves, each in a savepoint; the caller's transaction is to be rolled back.
    The order is that of ``parts``.  After ``MOST_REFUSED`` were found the rest is not looked at.
    """
    refused: dict[Part, str] = {}

    def look(names: Sequence[Part]) -> None:
        if not names or len(refused) >= MOST_REFUSED:
            return
        point = connection.begin_nested()
        try:
            store(connection, _joined([parts[name] for name in names]))
        except Exception as exc:
            if not is_refusal(exc):
                raise
            point.rollback()
            if len(names) == 1:
                refused[names[0]] = " ".join(str(getattr(exc, "orig", None) or exc).split())
        else:
            point.commit()
            return
        if len(names) > 1:
            half = len(names) // 2
            look(names[:half])
            look(names[half:])

    look(list(parts))
    return refused
