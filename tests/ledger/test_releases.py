"""Ledgers of earlier releases are read, upgraded and gone on with; their reports stay the same."""

from __future__ import annotations

import csv
import io
import re
import shutil
import tomllib
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import text

from gwmond.ledger.database import migrate
from gwmond.ledger.database.errors import LedgerError, LedgerTooOld
from gwmond.ledger.database.schema import HEAD, REVISIONS, VERSION_TABLE, metadata
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.ledger.store import Ledger
from tests.ledger import pilot_batches
from tests.ledger.release import BY, KINDS, POLLS, RELEASES, report, unpack
from tests.promql import ROOT

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
    with Ledger.open(f"sqlite:///{file}") as ledger:
        empty = {table.table for table in ledger.stats().tables if not table.rows}
    assert not empty


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
