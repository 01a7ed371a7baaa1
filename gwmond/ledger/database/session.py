"""An open ledger: one connection, one transaction at a time, every failure a ``LedgerError``."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from sqlalchemy import Connection

from gwmond.ledger.database import sqlite
from gwmond.ledger.database.backend import Backend
from gwmond.ledger.database.classify import KEEP, translate
from gwmond.ledger.database.columns import Undecodable
from gwmond.ledger.database.errors import LedgerClosed, LedgerCorrupt, LedgerFailed
from gwmond.ledger.database.location import SqliteFile, parse


class Session:
    """An open ledger.  Methods may be called from any thread; calls wait for one another.

    Every method is one transaction, so it sees one state between two commits.  A failure is a
    ``LedgerError``; when its ``reopen`` is true this object is of no more use.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._mutex = threading.Lock()
        self._pid = os.getpid()
        self._unusable: str | None = None
        self._until_s: float | None = None

    @classmethod
    def open(cls, url: str) -> Self:
        """Open the ledger that a URL or path names; it may be tried again after any failure."""
        location = parse(url)
        if isinstance(location, SqliteFile):
            return cls(sqlite.open_reader(location.path))
        from gwmond.ledger.database import postgres  # noqa: PLC0415 (SQLAlchemy's dialect takes a while)

        return cls(postgres.open_reader(location))

    @property
    def where(self) -> str:
        """The ledger's name for messages, without password."""
        return self._backend.where

    def end_within(self, seconds: float) -> None:
        """Set when statements fail, in seconds from now; for a ledger that is open to read."""
        self._until_s = time.monotonic() + seconds
        with self._held() as backend:
            backend.end_within(seconds)

    def close(self) -> None:
        """Close; never raises, harmless when repeated."""
        if os.getpid() != self._pid:
            return  # the connection is the parent's
        with self._mutex:
            self._unusable = self._unusable or "it was closed"
            self._backend.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Begin; commit at the end, or roll back and raise a ``LedgerError``."""
        with self._held() as backend, backend.connection.begin():
            yield backend.connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction in which a row that cannot be decoded is damage."""
        with self.transaction() as connection:
            try:
                yield connection
            except Undecodable as exc:
                raise LedgerCorrupt(self.where, f"a row cannot be read ({exc})", KEEP) from exc

    @contextmanager
    def _held(self) -> Iterator[Backend]:
        """Have the connection to oneself; whatever fails becomes a ``LedgerError``."""
        backend = self._backend
        if os.getpid() != self._pid:
            what = f"process {self._pid} opened it, and this is a forked child"
            raise LedgerClosed(backend.where, what, "Open it in this process, or use the parent's.")
        with self._mutex:
            if self._unusable:
                raise LedgerClosed(backend.where, self._unusable, "Close and open it again.")
            if self._until_s is not None and time.monotonic() >= self._until_s:
                raise LedgerFailed(backend.where, "the time for reading is over", "Read less.")
            try:
                backend.verify()
                yield backend
                backend.note()
            except Exception as exc:
                error = translate(exc, backend.where, backend.path)
                if error.reopen:
                    self._unusable = f"it failed before ({error.what})"
                if error is exc:
                    raise
                raise error from exc
