"""Which ledgers ``gwmond demo --ledger`` takes: its own, and none that holds a live pool's time."""

from __future__ import annotations

from pathlib import Path

import pytest

from gwmond import cli
from gwmond.commands import demo
from gwmond.commands.common import EXIT_FAILED
from gwmond.ledger.store import Ledger
from gwmond.model.facts import Cursor
from gwmond.model.poll.batch import Batch
from gwmond.service.host.clock import ReplayClock
from tests.ledger.batches import batch
from tests.unprivileged import unprivileged


def test_a_place_without_a_ledger_and_a_ledger_of_a_demo(url: str) -> None:
    """A new place is taken, and again what a replay has written there."""
    assert demo.unfit(url) == ""
    replayed = batch(1)._replace(tick=ReplayClock(1000.0, 600.0, 60.0).tick())
    with Ledger.open(url) as ledger:
        assert demo.unfit(url) == ""
        ledger.commit(replayed)
    assert demo.unfit(url) == ""


def test_a_ledger_of_a_live_pool(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What a daemon has written, or only an import, is refused, and nothing is added to it."""
    with Ledger.open(url) as ledger:
        ledger.commit(batch(1))
    assert cli.main(["demo", "--ledger", url]) == EXIT_FAILED
    said = capsys.readouterr()
    assert (said.out, "has a live pool's time" in said.err) == ("", True)
    with Ledger.open(url) as ledger:
        assert ledger.load().batches == 1


def test_a_ledger_with_imported_files_only(file: Path) -> None:
    """There is no tick then; what was read tells."""
    with Ledger.open(str(file)) as ledger:
        cursor = Cursor("/logs", "files", "read", None)
        ledger.commit(Batch(before=0, now_us=0, cursors=(cursor,)))
    assert "has a live pool's time" in demo.unfit(str(file))


@pytest.mark.parametrize(
    ("kind", "taken"),
    [
        *((kind, False) for kind in ("factory_files", "imported_log", "central_log")),
        *((kind, True) for kind in ("epochs", "history", "update_gaps")),
    ],
)
def test_a_ledger_of_a_demo_into_which_files_were_read(url: str, kind: str, taken: bool) -> None:
    """What was imported beside a replay is refused as well; a replay has cursors of its own."""
    with Ledger.open(url) as ledger:
        ledger.commit(batch(1)._replace(tick=ReplayClock(1000.0, 600.0, 60.0).tick()))
        cursor = Cursor("/logs", kind, "read", None)
        ledger.commit(Batch(before=1, now_us=0, cursors=(cursor,)))
    assert (demo.unfit(url) == "") == taken


@pytest.mark.parametrize("scheme", ["postgre", "mysql"])
def test_a_url_that_is_none(scheme: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It is told in a line, without its password, as other commands tell it."""
    url = f"{scheme}://user:secretpw@host/x"
    assert cli.main(["report", "--ledger", url]) == EXIT_FAILED
    said = capsys.readouterr()
    assert cli.main(["demo", "--ledger", url]) == EXIT_FAILED
    assert capsys.readouterr() == said
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert f"no ledger can be kept in {scheme}" in said.err
    assert "secretpw" not in said.err


def test_a_server_that_does_not_answer(capsys: pytest.CaptureFixture[str]) -> None:
    """It is named, without its password."""
    assert cli.main(["demo", "--ledger", "postgresql://user:secretpw@127.0.0.1:1/x"]) == 1
    said = capsys.readouterr().err
    assert "secretpw" not in said
    assert "postgresql://user:***@127.0.0.1:1/x" in said


def test_a_place_where_none_can_be_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A demo that would keep nothing does not begin."""
    closed = tmp_path / "closed"
    closed.mkdir(0o555)
    told = {
        tmp_path: "is a directory",
        tmp_path / "no" / "x.sqlite": f"there is no directory {tmp_path}/no",
        closed / "x.sqlite": f"{closed} cannot be written",
    }
    with unprivileged():
        for place, why in told.items():
            assert cli.main(["demo", "--ledger", str(place)]) == EXIT_FAILED
            said = capsys.readouterr()
            assert (said.out, why in said.err) == ("", True)


def test_what_is_no_ledger(file: Path) -> None:
    """It is told, and left as it is."""
    file.write_bytes(b"no database" * 1000)
    assert str(file) in demo.unfit(str(file))
