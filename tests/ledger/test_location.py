"""URLs and paths of ledgers."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gwmond.ledger.database.errors import LedgerFailed, LedgerLocation, install_command
from gwmond.ledger.database.location import PostgresDatabase, SqliteFile, parse
from gwmond.ledger.reading.reader import LedgerReader


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
