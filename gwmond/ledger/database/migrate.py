"""Brings the tables to the newest schema when a ledger is opened: all of it, or nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path

from sqlalchemy import Connection, inspect, text

from gwmond import __version__
from gwmond.ledger.database.errors import LedgerForeign, LedgerTooNew, LedgerTooOld
from gwmond.ledger.database.schema import HEAD, REVISIONS, VERSION_TABLE, metadata

_alembic = threading.Lock()  # alembic.context is one for the process


def revision(connection: Connection) -> str | None:
    """Return the revision of the stored schema, ``None`` when there is none."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    query = text(f"SELECT version_num FROM {VERSION_TABLE}")
    stored = connection.execute(query).scalar()
    return None if stored is None else str(stored)


def upgrade(connection: Connection) -> None:
    """Make all tables, or run the migrations that are still needed; in a transaction."""
    # Imported here: a ledger that is up to date, every start but the first, does without.
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", _quoted(Path(__file__).parent / "migrations"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    with _alembic:
        if revision(connection) is None:
            metadata.create_all(connection)
            command.stamp(config, HEAD)
        else:
            command.upgrade(config, HEAD)


def _quoted(path: Path) -> str:
    return str(path).replace("%", "%%")  # the option is interpolated


def foreign(tables: Iterable[str], where: str) -> LedgerForeign:
    """Return the message on a sound database that is no ledger."""
    what = f"a database of another program (tables {', '.join(sorted(tables)[:5])})"
    return LedgerForeign(where, what, "Name a new file, or an own database or schema.")


def check_known(connection: Connection, where: str, *, upgradable: bool) -> bool:
    """Return whether the schema is the newest, or raise what stands against using it."""
    stored = revision(connection)
    if stored == HEAD:
        return True
    if stored is None:
        tables = set(inspect(connection).get_table_names())
        # A PostgreSQL schema may be shared as long as no name is taken; a file belongs to one.
        if tables & set(metadata.tables) or (tables and connection.dialect.name == "sqlite"):
            raise foreign(tables, where)
    elif stored < REVISIONS[0]:
        what = f"its schema {stored} is older than gwmond {__version__} can upgrade ({HEAD})"
        remedy = "Move it away: the gwmond daemon makes a new one."
        raise LedgerTooOld(where, what, remedy)
    elif stored not in REVISIONS:
        what = f"its schema {stored} is unknown to gwmond {__version__}, which knows up to {HEAD}"
        raise LedgerTooNew(where, what, "Install the gwmond that wrote it, or a later one.")
    if not upgradable:
        what = f"its schema is {stored or 'empty'}, this gwmond reads {HEAD}"
        raise LedgerTooOld(where, what, "Start the gwmond daemon once: it upgrades the ledger.")
    return False


def ensure(connection: Connection, where: str) -> None:
    """Bring the schema to ``HEAD`` in one transaction, or raise and leave it as it was.

    Where there is nothing to do, it still proves that the ledger can be written to: SQLite opens
    a file that it may not write for reading alone, and says so only at the first change.
    """
    with connection.begin() as transaction:
        if check_known(connection, where, upgradable=True):
            connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = version_num"))
            transaction.rollback()
        else:
            upgrade(connection)
