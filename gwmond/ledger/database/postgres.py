"""A ledger in one schema of a PostgreSQL database.

Several daemons may share a database, each with a schema of its own (``options=-csearch_path=...``
in the URL).  One connection serves for as long as the ledger is open: the lock that keeps other
writers out is a session advisory lock, which the server gives up when that connection ends; so a
broken connection is never replaced, the ledger has to be opened again.  For the same reason the
URL names the server itself, or a pooler in session mode.
"""

from __future__ import annotations

import hashlib
import os
import socket
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from gwmond.ledger.database import migrate
from gwmond.ledger.database.classify import translate
from gwmond.ledger.database.errors import (
    LedgerFailed,
    LedgerLocation,
    LedgerLocked,
    LedgerUnreachable,
    install_command,
)
from gwmond.ledger.database.location import PostgresDatabase
from gwmond.ledger.database.schema import metadata

STATEMENT_S = 60
_SESSION = (
    "SET client_encoding = 'UTF8'",
    f"SET statement_timeout = '{STATEMENT_S}s'",
    "SET lock_timeout = '10s'",
    # As SQLite's FULL: a commit that a scrape has shown must outlive a power cut.
    "SELECT set_config('synchronous_commit', 'on', false)"
    " WHERE current_setting('synchronous_commit') = 'off'",
)
_READER = (
    "SET default_transaction_read_only = on",
    "SET default_transaction_isolation = 'repeatable read'",  # all of a transaction sees one state
)
_HOLDER = text(
    "SELECT a.application_name, a.pid, a.client_addr FROM pg_locks l"
    " JOIN pg_stat_activity a ON a.pid = l.pid"
    " WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1"
    " AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    " AND (l.classid::bigint << 32) | l.objid::bigint = :key"
)


def lock_key(schema: str) -> int:
    """Return the advisory lock's number for a schema: 63 bits, alike on every host."""
    digest = hashlib.sha256(f"gwmond ledger {schema}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


class PostgresBackend:
    """An open session; made by ``open_writer`` or ``open_reader``."""

    path: Path | None = None

    def __init__(self, where: str, connection: Connection) -> None:
        self.where = where
        self.connection = connection
        self._session = connection.connection.dbapi_connection

    def verify(self) -> None:
        connection = self.connection
        if (
            connection.closed
            or connection.invalidated
            or connection.connection.dbapi_connection is not self._session
        ):
            raise LedgerUnreachable(self.where, "the connection was lost", "Open it again.")

    def note(self) -> None:
        """Nothing: the server looks after its files."""

    def vacuum(self) -> None:
        session: Any = self._session
        session.autocommit = True  # VACUUM runs in no transaction
        try:
            session.execute("SET statement_timeout = 0")
            for table in sorted(metadata.tables):
                session.execute(f"VACUUM (ANALYZE) {table}")
            session.execute(f"SET statement_timeout = '{STATEMENT_S}s'")
        finally:
            session.autocommit = False

    def end_within(self, seconds: float) -> None:
        session: Any = self._session
        session.execute(f"SET statement_timeout = {max(1, round(1000 * seconds))}")
        session.commit()

    def close(self) -> None:
        with suppress(SQLAlchemyError, OSError):
            self.connection.close()


def _connect(location: PostgresDatabase) -> Connection:
    """Connect; what the URL's query says goes before these defaults."""
    try:
        engine = _engine(location.url, f"gwmond pid {os.getpid()} on {socket.gethostname()}"[:63])
    except ImportError as exc:
        remedy = f"Install it: {install_command('postgresql')}"
        raise LedgerFailed(location.shown, f"no PostgreSQL driver ({exc})", remedy) from None
    connection = engine.connect()
    try:
        with connection.begin():
            for statement in _SESSION:
                connection.exec_driver_sql(statement)
    except BaseException:
        connection.close()
        raise
    return connection


@lru_cache(8)
def _engine(url: URL, name: str) -> Engine:
    """Return who makes connections of that name, and keeps statements as SQLite's does."""
    defaults: dict[str, Any] = {
        "connect_timeout": 10,
        "keepalives_idle": 30,
        "keepalives_interval": 10,
        "keepalives_count": 3,
        "tcp_user_timeout": 60_000,
        "application_name": name,
    }
    arguments = {k: v for k, v in defaults.items() if k not in url.query}
    return create_engine(url, poolclass=NullPool, connect_args=arguments)


def _schema(connection: Connection, where: str) -> str:
    schema, encoding = connection.execute(
        text("SELECT current_schema(), current_setting('server_encoding')")
    ).one()
    if encoding != "UTF8":
        what = f"the database's encoding is {encoding}, which has not every name's characters"
        raise LedgerLocation(where, what, "Create one with ENCODING 'UTF8' TEMPLATE template0.")
    if schema is None:
        remedy = "Create it: CREATE SCHEMA ... AUTHORIZATION the user of gwmond"
        raise LedgerLocation(where, "the schema of the search path does not exist", remedy)
    return str(schema)


def _lock(connection: Connection, where: str, key: int) -> None:
    if connection.execute(text("SELECT pg_try_advisory_lock(:key)"), {"key": key}).scalar():
        return
    row = connection.execute(_HOLDER, {"key": key}).first()
    holder = f"{row[0]}, server process {row[1]}, from {row[2] or 'a socket'}" if row else "gone"
    remedy = "Stop that one, or give each daemon a schema of its own (options=-csearch_path=NAME)."
    raise LedgerLocked(where, f"in use by another gwmond ({holder})", remedy)


def open_writer(location: PostgresDatabase) -> PostgresBackend:
    """Connect, lock and migrate."""
    return _open(location, write=True)


def open_reader(location: PostgresDatabase) -> PostgresBackend:
    """Connect to read beside the writer."""
    return _open(location, write=False)


def _open(location: PostgresDatabase, *, write: bool) -> PostgresBackend:
    where = location.shown
    connection: Connection | None = None
    try:
        connection = _connect(location)
        with connection.begin():
            schema = _schema(connection, where)
            where = f"{where} schema {schema}"
            if write:
                _lock(connection, where, lock_key(schema))
            else:
                for statement in _READER:
                    connection.exec_driver_sql(statement)
                migrate.check_known(connection, where, upgradable=False)
        if write:
            migrate.ensure(connection, where)
        return PostgresBackend(where, connection)
    except BaseException as exc:
        if connection is not None:
            with suppress(SQLAlchemyError):
                connection.close()
        if isinstance(exc, Exception):
            raise translate(exc, where) from exc
        raise
