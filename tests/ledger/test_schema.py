"""Migrations, and ledgers of other versions."""

from __future__ import annotations

import csv
import io
import re
import shutil
import sqlite3
import sys
import tomllib
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, text

from gwmond.ledger.database import migrate
from gwmond.ledger.database.errors import (
    LedgerError,
    LedgerFailed,
    LedgerForeign,
    LedgerLocation,
    LedgerTooNew,
    LedgerTooOld,
    install_command,
)
from gwmond.ledger.database.location import PostgresDatabase, SqliteFile, parse
from gwmond.ledger.database.schema import HEAD, REVISIONS, VERSION_TABLE, metadata
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.ledger.store import Ledger
from tests.ledger import pilot_batches
from tests.ledger.batches import batch, prove
from tests.ledger.release import BY, KINDS, POLLS, RELEASES, report, unpack
from tests.promql import ROOT


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


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("/var/lib/gwmond/ledger.sqlite", "/var/lib/gwmond/ledger.sqlite"),
        ("sqlite:////var/lib/gwmond/ledger.sqlite", "/var/lib/gwmond/ledger.sqlite"),
        ("/a dir/100%/ledger?x#y", "/a dir/100%/ledger?x#y"),
    ],
)
def test_files(text: str, path: str) -> None:
    """A plain path and an sqlite URL name a file."""
    assert parse(text) == SqliteFile(Path(path))


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_postgresql(scheme: str) -> None:
    """Each way to write a PostgreSQL URL uses psycopg, and is shown without any password."""
    found = parse(f"{scheme}://me:secret@db:5433/gwmond?password=secret2&sslmode=require")
    assert isinstance(found, PostgresDatabase)
    assert found.url.drivername == "postgresql+psycopg"
    assert found.url.query["sslmode"] == "require"
    assert found.shown == "postgresql://me:***@db:5433/gwmond"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ledger",
        "host=db password=secret",
        "/var/lib/gwmond/",
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:////x?mode=ro",
        "mysql://me:secret@db/gwmond",
        "postgresql+asyncpg://me:secret@db/gwmond",
        "postgresql://me:secret@db:port/gwmond",
        "postgresql://me:p@secret@db/gwmond",
        "postgresql:/me:secret@db/gwmond",
        "postgresql:me:secret@db/gwmond",
    ],
)
def test_refused(text: str) -> None:
    """What cannot be a durable ledger is refused with the forms that can, and no password."""
    with pytest.raises(LedgerLocation, match="Give a path like") as error:
        parse(text)
    assert "secret" not in str(error.value)
    assert error.value.__suppress_context__ or error.value.__context__ is None


def test_without_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is to be typed installs it where this gwmond runs, of which no index needs to know."""
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(LedgerFailed, match="no PostgreSQL driver") as error:
        LedgerReader.open("postgresql://me@db/gwmond")
    assert error.value.remedy.startswith(f"Install it: {sys.executable} -m pip install 'psycopg[")
    assert install_command("none") == f"{sys.executable} -m pip install 'gwmond[none]'"


LEDGERS = [(place.name, kind) for place in sorted(RELEASES.iterdir()) for kind in KINDS]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text()

NEXT = "9999"
#: A schema that is to come: its migration adds a column, and rewrites a table.
MIGRATION = f"""
import sqlalchemy
from alembic import op

revision, down_revision = "{NEXT}", "{HEAD}"
branch_labels = depends_on = None


def upgrade() -> None:
    op.add_column("pilots", sqlalchemy.Column("mood", sqlalchemy.Text, server_default="calm"))
    op.execute("UPDATE runs SET user_name = user_name || ''")
    FAILURE
"""


@pytest.fixture(params=LEDGERS, ids="-".join)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str, Path]:
    """A release, a kind of ledger, and that release's ledger of this kind."""
    release, kind = request.param
    return release, kind, unpack(release, kind, tmp_path)


def expect_reports(release: str, kind: str, ledger: Path) -> None:
    """Each row and figure that the release reported; there may be new columns."""
    for by in BY:
        told = (RELEASES / release / kind / f"{by}.csv").read_text()
        then, now = (list(csv.DictReader(io.StringIO(each))) for each in (told, report(ledger, by)))
        assert then
        columns = then[0].keys()
        assert [{name: row.get(name) for name in columns} for row in now] == then, by


def install_migration(place: Path, patch: pytest.MonkeyPatch, failure: str = "") -> None:
    """Let gwmond be a later one, which has one migration more."""
    folder = Path(migrate.__file__).parent / "migrations"
    shutil.copytree(folder, place / "migrations", dirs_exist_ok=True)
    later = MIGRATION.replace("FAILURE", failure)
    (place / "migrations" / "versions" / f"v{NEXT}_later.py").write_text(later)
    patch.setattr(migrate, "__file__", str(place / "migrate.py"))
    patch.setattr(migrate, "HEAD", NEXT)
    patch.setattr(migrate, "REVISIONS", (*REVISIONS, NEXT))


def test_a_ledger_of_a_release_is_upgraded(old: tuple[str, str, Path]) -> None:
    """It has this version's tables, all sums up, and reports say what that release's said."""
    release, kind, file = old
    with Ledger.open(f"sqlite:///{file}") as ledger:
        with ledger.transaction() as connection:
            context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
            assert compare_metadata(context, metadata) == []
            assert migrate.revision(connection) == HEAD
        assert all(residual.micros == 0 for residual in ledger.check())
    expect_reports(release, kind, file)


def test_a_ledger_of_a_release_has_rows_in_every_table(tmp_path: Path) -> None:
    """Else the upgrade of some table would never be tried."""
    file = unpack("0.1.0", "polls", tmp_path)
    with closing(sqlite3.connect(file)) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        had = {name for (name,) in names}
    with Ledger.open(f"sqlite:///{file}") as ledger:
        empty = {table.table for table in ledger.stats().tables if not table.rows}
    assert not empty & had


def test_the_daemon_goes_on_with_a_ledger_of_a_release(tmp_path: Path) -> None:
    """What it stores next continues what is there, of sites and of pilots."""
    file = unpack("0.1.0", "polls", tmp_path)
    with Ledger.open(f"sqlite:///{file}") as ledger:
        for number in range(POLLS + 1, POLLS + 4):
            ledger.commit(pilot_batches.poll(number))
        assert pilot_batches.prove_polls(ledger) == POLLS + 3


def test_a_migration_keeps_what_was_reported(
    old: tuple[str, str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later gwmond's reader asks for the upgrade; its daemon upgrades; all reports stay."""
    release, kind, file = old
    before = file.read_bytes()
    install_migration(tmp_path, monkeypatch)
    with pytest.raises(LedgerTooOld, match="Start the gwmond daemon once"):
        LedgerReader.open(f"sqlite:///{file}")
    assert file.read_bytes() == before
    with Ledger.open(f"sqlite:///{file}") as ledger, ledger.transaction() as connection:
        assert migrate.revision(connection) == NEXT
        moods = connection.execute(text("SELECT DISTINCT mood FROM pilots")).scalars().all()
        assert moods == ["calm"]
    expect_reports(release, kind, file)


def test_a_migration_that_breaks_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger stays as it was, and the release before can still use it."""
    file = unpack("0.1.0", "polls", tmp_path)
    with monkeypatch.context() as patch:
        install_migration(tmp_path, patch, "raise OSError('no space left')")
        with pytest.raises(LedgerError, match="no space left"):
            Ledger.open(f"sqlite:///{file}")
    with Ledger.open(f"sqlite:///{file}") as ledger, ledger.transaction() as connection:
        assert migrate.revision(connection) == HEAD
        columns = connection.execute(text("SELECT * FROM pilots LIMIT 1")).keys()
        assert "mood" not in columns
    expect_reports("0.1.0", "polls", file)


def test_every_release_has_left_its_ledgers() -> None:
    """Versions of the changelog, newest first, the one in pyproject.toml at the top."""
    versions = re.findall(
        r"^## (\d+\.\d+\.\d+) \((?:unreleased|\d{4}-\d\d-\d\d)\)$", CHANGELOG, re.M
    )
    assert len(versions) == len(re.findall("^## ", CHANGELOG, re.M))
    assert versions == sorted(versions, key=lambda v: [*map(int, v.split("."))], reverse=True)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert versions[0] == project["version"]
    assert {*versions[1:], "0.1.0"} <= {place.name for place in RELEASES.iterdir()}
