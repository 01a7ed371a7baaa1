"""Migrations, and ledgers of other versions."""

from __future__ import annotations

from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, text

from gwmond.accounting.pilot_facts import Assumption
from gwmond.ledger import (
    Ledger,
    LedgerError,
    LedgerForeign,
    LedgerReader,
    LedgerTooNew,
    LedgerTooOld,
    migrate,
)
from gwmond.ledger.schema import HEAD, REVISIONS, VERSION_TABLE, metadata
from tests.ledger.batches import batch, prove


def _execute(url: str, statement: str) -> None:
    with Ledger.open(url) as ledger, ledger._transaction() as connection:
        connection.exec_driver_sql(statement)


def test_migrations_make_the_tables_of_the_schema(url: str) -> None:
    """From nothing, the migrations make exactly the tables that the statements are written for."""
    with Ledger.open(url) as ledger, ledger._transaction() as connection:
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


def test_a_ledger_that_calls_provisioned_time_in_use(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Totals, hours and what is remembered of entries go on under the new name."""
    upgrade = migrate.upgrade

    def with_an_entry(connection: Connection) -> None:
        upgrade(connection, "0008")
        for row in (
            "entries VALUES ('S', 'e', 1, 2, 16, 3)",
            "site_seconds VALUES (1, 'cpu', 'in_use', '', 'S', 'e', 7, 5, 1, 4, 2)",
            "site_hours VALUES (9, 1, 3, 3)",
        ):
            connection.execute(text(f"INSERT INTO {row}"))
        upgrade(connection)

    monkeypatch.setattr(migrate, "upgrade", with_an_entry)
    with Ledger.open(url) as ledger:
        state = ledger.load()
        assert {(of.state, total.micros) for of, total in state.totals.items()} == {
            ("provisioned", 7_000_005)
        }
        assert [of.provisioned for of in state.entries.values()] == [{"cpu": 16, "gpu": 3}]
        assert [of.micros for of in ledger.check()] == [0]


def test_a_ledger_without_evidence_of_factories(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an older gwmond had estimated is an assumed end, and pilots are found by number."""
    upgrade = migrate.upgrade
    numbers = "1, 'x', 1, 'ce#7.0', 'F', 'S', 'e', 'g', 'n', 'collector', 1, 9, 9, '[]', 'passed'"
    rest = "'[[5,7],[7,9]]', 'vanished', NULL, NULL, 9, 9, 0, 1, '{}', '', 0"

    def with_a_pilot(connection: Connection) -> None:
        upgrade(connection, "0002")
        connection.execute(text(f"INSERT INTO pilots VALUES ({numbers}, {rest})"))
        upgrade(connection)

    monkeypatch.setattr(migrate, "upgrade", with_a_pilot)
    with Ledger.open(url) as ledger:
        (row,) = ledger.find_factory_numbers(["7.0"])["7.0"]
        assert row.assumed == {Assumption.END: (5, 9)}
        assert (row.estimated, row.assumed_micros, row.validation_end_us) == (((5, 9),), {}, None)
        assert ledger.pilots_of_entries(["e", "f"]) == {"e": [row]}
