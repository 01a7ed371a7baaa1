"""An import that was killed after any of its commits, and repeated, is as one that was not."""

from __future__ import annotations

from pathlib import Path

import pytest

from gwmond.config.settings import Config
from gwmond.ledger.store import Ledger
from gwmond.model.poll.batch import Batch, Totals
from gwmond.service.importer import Importer
from gwmond.sources import child
from tests.build.gwms import generate
from tests.build.imports import contents

NUMBER, SEED = 40, 7


class Killed(BaseException):
    """Nothing in the import handles it."""


def run(url: str, root: Path, commits: int | None, patch: pytest.MonkeyPatch) -> int:
    """Import until so many commits are made, or to the end; return how many were."""
    made = 0
    with Ledger.open(url) as ledger, patch.context() as context:
        commit = ledger.commit

        def counted(batch: Batch) -> Totals:
            nonlocal made
            changed = commit(batch)
            made += 1
            if made == commits:
                raise Killed
            return changed

        context.setattr(ledger, "commit", counted)
        try:
            Importer(Config(), ledger).run([str(root)])
        except Killed:
            assert made == commits
    return made


def test_killed_after_each_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was assumed of pilots depends on all that was read, also before it was killed."""
    child.start()
    generate.write(tmp_path / "factory", SEED, NUMBER)
    whole = f"{tmp_path}/whole.sqlite"
    commits = run(whole, tmp_path / "factory", None, monkeypatch)
    assert commits > 3
    expected = contents(whole)
    for killed in range(1, commits):
        url = f"{tmp_path}/{killed}.sqlite"
        assert run(url, tmp_path / "factory", killed, monkeypatch) == killed
        run(url, tmp_path / "factory", None, monkeypatch)
        assert contents(url) == expected, killed
