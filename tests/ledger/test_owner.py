"""Whose files a ledger's are, and what one is told who may not read them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gwmond.ledger import Ledger, LedgerReader
from gwmond.ledger.errors import LedgerReadOnly
from tests.ledger.batches import batch
from tests.unprivileged import unprivileged

SOMEBODY = 12345


def owners(directory: Path) -> dict[str, tuple[int, int]]:
    return {of.name: (of.stat().st_uid, of.stat().st_gid) for of in directory.iterdir()}


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A directory of a user who is not root."""
    found = tmp_path / "theirs"
    found.mkdir(0o750)
    os.chown(found, SOMEBODY, SOMEBODY)
    return found


def test_a_ledger_that_root_makes_is_its_directory_owners(theirs: Path) -> None:
    """So a daemon that is not root goes on with what root has imported."""
    with Ledger.open(f"{theirs}/ledger.sqlite") as ledger:
        ledger.commit(batch(1))
        found = owners(theirs)
    assert set(found) == {f"ledger.sqlite{of}" for of in ("", ".lock", "-wal", "-shm")}
    assert set(found.values()) == {(SOMEBODY, SOMEBODY)}
    with LedgerReader.open(f"{theirs}/ledger.sqlite") as reader:
        assert reader.load().commits == 1
        assert set(owners(theirs).values()) == {(SOMEBODY, SOMEBODY)}


def test_a_directory_of_everybody_is_nobodys(theirs: Path) -> None:
    """In it, what root makes stays root's; so does what was there before."""
    theirs.chmod(0o1777)
    Ledger.open(f"{theirs}/ledger.sqlite").close()
    theirs.chmod(0o750)
    Ledger.open(f"{theirs}/ledger.sqlite").close()
    assert set(owners(theirs).values()) == {(0, 0)}


def test_who_may_not_read_is_told_to_be_another_user(tmp_path: Path) -> None:
    """A command that only reads asks nobody to let it write."""
    url = f"{tmp_path}/ledger.sqlite"
    Ledger.open(url).close()
    (tmp_path / "ledger.sqlite").chmod(0)
    with unprivileged(), pytest.raises(LedgerReadOnly) as error:
        LedgerReader.open(url)
    assert "run the command as root" in str(error.value)
    assert "write" not in str(error.value)
    with unprivileged(), pytest.raises(LedgerReadOnly, match="write to the file"):
        Ledger.open(url)
