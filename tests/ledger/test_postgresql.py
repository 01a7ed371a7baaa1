"""What only a server can do to a ledger."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path

import pytest

from gwmond.ledger.database.errors import (
    LedgerClosed,
    LedgerError,
    LedgerFailed,
    LedgerFull,
    LedgerLocation,
    LedgerLocked,
    LedgerReadOnly,
    LedgerUnreachable,
)
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.ledger.store import Ledger
from gwmond.model.facts import Problem
from gwmond.model.poll.batch import TimedProblem
from gwmond.model.problem_names import ProblemName
from tests.ledger.batches import EPOCH, batch, prove, take_over
from tests.ledger.server import PASSWORD, Server
from tests.ledger.tmpfs import Tmpfs


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (("very-secret", "wrong-secret"), "password authentication failed"),
        (("/ledger", "/nowhere"), "does not exist"),
        (("127.0.0.1:", "127.0.0.1:1"), "refused"),
        (("127.0.0.1", "no-such-host.invalid"), "resolve"),
    ],
    ids=["password", "database", "port", "host"],
)
def test_an_unreachable_server(server: Server, change: tuple[str, str], match: str) -> None:
    """A server that cannot be had is told with the URL, a remedy, and never with the password."""
    url = server.database().replace(*change)
    url = url.replace(f":1{server.port}", ":1")
    with pytest.raises(LedgerUnreachable, match=match) as error:
        Ledger.open(url)
    assert "gwmond:***@" in str(error.value)
    assert "Check that the server runs" in str(error.value)
    assert "secret" not in "".join(traceback.format_exception(error.value))


def test_a_connection_that_breaks(server: Server) -> None:
    """When the server ends the session nothing is half written, and reopening goes on."""
    url = server.database()
    ledger = Ledger.open(url)
    ledger.commit(batch(1))
    server.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        f"WHERE datname = '{url.rpartition('/')[2]}'"
    )
    with pytest.raises(LedgerUnreachable) as error:
        ledger.commit(batch(2))
    assert error.value.reopen
    with pytest.raises(LedgerClosed, match="failed before"):
        ledger.commit(batch(2))
    ledger.close()
    with take_over(url) as ledger:
        assert prove(ledger) == 1
        ledger.commit(batch(2))
        assert prove(ledger) == 2
    assert PASSWORD not in str(error.value)


def test_a_broken_session_is_not_silently_replaced(server: Server) -> None:
    """A session that another writer may have followed never writes again."""
    url = server.database()
    first = Ledger.open(url)
    first.commit(batch(1))
    server.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        f"WHERE datname = '{url.rpartition('/')[2]}'"
    )
    with take_over(url) as second:
        second.commit(batch(2))
        for _ in range(3):
            with pytest.raises(LedgerError):
                first.commit(batch(2))
            with pytest.raises(LedgerError):
                first.load()
        assert prove(second) == 2
    first.close()


def test_daemons_share_a_database(server: Server) -> None:
    """Each daemon has a schema of its own in one database, at the same time."""
    url = server.database()
    name = url.rpartition("/")[2]
    urls = [f"{url}?options=-csearch_path%3D{schema}" for schema in ("one", "two")]
    with pytest.raises(LedgerLocation, match="CREATE SCHEMA"):
        Ledger.open(urls[0])
    for schema in ("one", "two"):
        server.execute(f"CREATE SCHEMA {schema}", name)
    with Ledger.open(urls[0]) as one, Ledger.open(urls[1]) as two:
        assert "schema one" in one.where
        one.commit(batch(1))
        for number in (1, 2):
            two.commit(batch(number))
        with pytest.raises(LedgerLocked, match="schema one"):
            Ledger.open(urls[0])
        assert (prove(one), prove(two)) == (1, 2)


def test_tables_of_others_beside_ours(server: Server) -> None:
    """A schema in which another program keeps its tables is used, theirs are left alone."""
    url = server.database()
    server.execute("CREATE TABLE bookmarks (x int)", url.rpartition("/")[2])
    with Ledger.open(url) as ledger:
        ledger.commit(batch(1))
        assert prove(ledger) == 1


def test_a_database_that_may_only_be_read(server: Server) -> None:
    """A standby or read-only database is told as such; a reader needs no more."""
    url = server.database()
    options = "?options=-cdefault_transaction_read_only%3Don"
    with pytest.raises(LedgerReadOnly, match="read-only"):
        Ledger.open(url + options)
    with Ledger.open(url) as ledger:
        ledger.commit(batch(1))
    with LedgerReader.open(url + options) as reader:
        assert prove(reader) == 1


def test_another_encoding(server: Server) -> None:
    """A database that cannot hold every name is refused before a name stops a commit."""
    url = server.database("TEMPLATE template0 ENCODING 'LATIN1'")
    with pytest.raises(LedgerLocation, match="LATIN1"):
        Ledger.open(url)


def test_a_full_server(server: Server, tmp_path: Path) -> None:
    """A full disk of the server rolls the batch back, and the same object goes on afterwards."""
    url = server.database()
    name = url.rpartition("/")[2]
    problem = TimedProblem(EPOCH, Problem("s", ProblemName.FAILED, "x" * 4000))
    with Tmpfs(server.root / f"small-{name}", kib=12 * 1024, mode=0o777) as disk:
        space = disk.path / "space"
        space.mkdir()
        owner = server.root.stat()
        os.chown(space, owner.st_uid, owner.st_gid)
        server.execute(f"CREATE TABLESPACE {name} LOCATION '{space}'")
        server.execute(f"ALTER DATABASE {name} SET TABLESPACE {name}")
        with Ledger.open(url) as ledger:
            ledger.commit(batch(1))
            disk.fill(left_kib=64)
            with pytest.raises(LedgerFull, match="No space left"):
                ledger.commit(batch(2)._replace(problems=(problem,) * 10_000))
            assert prove(ledger) == 1
            disk.free()
            ledger.commit(batch(2))
            assert prove(ledger) == 2
        server.execute(f"DROP DATABASE {name}")
        server.execute(f"DROP TABLESPACE {name}")


def test_a_missing_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without psycopg the error says what to install."""
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(LedgerFailed, match=r"-m pip install .psycopg"):
        Ledger.open("postgresql://me:secret@db/gwmond")
