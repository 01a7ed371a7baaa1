"""Migrations, and ledgers of other versions."""

from __future__ import annotations

from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect

from gwmond.ledger.database import migrate
from gwmond.ledger.database.errors import LedgerError, LedgerForeign, LedgerTooNew, LedgerTooOld
from gwmond.ledger.database.schema import HEAD, REVISIONS, VERSION_TABLE, metadata
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.ledger.store import Ledger
from tests.ledger.batches import batch, prove


def _execute(url: str, statement: str) -> None:
    with Ledger.open(url) as ledger, ledger.transaction() as connection:
        connection.exec_driver_sql(statement)


def test_a_new_ledger_has_the_tables_of_the_schema(url: str) -> None:
    """Exactly the tables that the statements are written for, as of the newest revision."""
    with Ledger.open(url) as ledger, ledger.transaction() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert compare_metadata(context, metadata) == []
        assert migrate.revision(connection) == HEAD
        found = inspect(connection)
        for name, table in metadata.tables.items():
            checks = {check["name"] for check in found.get_check_constraints(name)}
            assert checks == {c.name for c in table.constraints if "Check" in type(c).__name__}


def test_all_revisions_are_known() -> None:
    """The list of revisions is that of the files, which lie in packages and so are installed."""
    root = Path(migrate.__file__).parent / "migrations"
    config = Config()
    config.set_main_option("script_location", str(root))
    script = ScriptDirectory.from_config(config)
    assert tuple(r.revision for r in script.walk_revisions())[::-1] == REVISIONS
    assert script.get_current_head() == HEAD
    assert (root / "__init__.py").exists()
    assert (root / "versions" / "__init__.py").exists()


def test_a_schema_from_the_future(url: str) -> None:
    """A ledger of a later gwmond is refused with both versions, and is not changed."""
    _execute(url, f"UPDATE {VERSION_TABLE} SET version_num = '9999'")
    for kind in (Ledger, LedgerReader):
        with pytest.raises(LedgerTooNew, match=f"9999.*up to {HEAD}.*Install the gwmond"):
            kind.open(url)
    with pytest.raises(LedgerTooNew):
        Ledger.open(url)


def test_a_schema_from_the_past_is_not_upgraded_by_a_reader(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader asks for the daemon to upgrade, for it may not write."""
    Ledger.open(url).close()
    monkeypatch.setattr(migrate, "HEAD", "9999")
    monkeypatch.setattr(migrate, "REVISIONS", (*REVISIONS, "9999"))
    with pytest.raises(LedgerTooOld, match="Start the gwmond daemon"):
        LedgerReader.open(url)


def test_a_migration_that_fails_leaves_nothing(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A migration is done whole or not at all, and opening again does it."""
    upgrade = migrate.upgrade

    def fail(connection: Connection) -> None:
        upgrade(connection)
        raise OSError("power cut")

    with monkeypatch.context() as patch:
        patch.setattr(migrate, "upgrade", fail)
        with pytest.raises(LedgerError, match="power cut"):
            Ledger.open(url)
    with Ledger.open(url) as ledger:
        ledger.commit(batch(1))
        assert prove(ledger) == 1


def test_tables_of_another_program_with_our_names(url: str) -> None:
    """Tables that happen to be called as ours are not taken over."""
    _execute(url, f"DROP TABLE {VERSION_TABLE}")
    with pytest.raises(LedgerForeign, match="another program"):
        Ledger.open(url)


def test_a_schema_from_before_the_first_release(url: str) -> None:
    """A ledger that no gwmond upgrades is refused by all, and is not changed."""
    _execute(url, f"UPDATE {VERSION_TABLE} SET version_num = '0009'")
    for kind in (Ledger, LedgerReader, Ledger):
        with pytest.raises(LedgerTooOld, match=f"0009.*{HEAD}.*Move it away"):
            kind.open(url)
