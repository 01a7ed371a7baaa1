"""Pilots by what is told of them, and pilots that never were, on both databases."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from gwmond.ledger.database.errors import LedgerCorrupt
from gwmond.ledger.store import Ledger
from gwmond.model.facts import EntryKey, Size
from gwmond.model.pilot_life import Assumption, SizeStep
from gwmond.model.pilots.pilot_facts import AdFacts, OutputFacts, PilotFacts, ReportedSize
from gwmond.model.pilots.stored_pilots import PilotKind, PilotRow
from gwmond.model.poll.batch import Batch
from tests.ledger.pilot_batches import ORIGIN, batch, identity, pilots_at

LIFE = (ORIGIN, ORIGIN + 1000)


def rows() -> list[PilotRow]:
    """Pilots of two entries: some alike; some that no change can be made to."""
    like = pilots_at(9)[1].row
    entry = like.identity._replace(key=EntryKey("S", "e"))
    step = SizeStep(ORIGIN, Size(8, 16000))
    part = PilotFacts(output=OutputFacts(0, 0, cores=8, gpus=0, site=True))
    guess = {Assumption.SIZE: LIFE, Assumption.GPUS: LIFE}
    shown = PilotFacts(ads=AdFacts(0, sizes=(step,)))
    one = like._replace(
        facts=shown, identity=entry, steps=(SizeStep(0, Size(1, 1)), step), assumed={}
    )
    of_jobs = one._replace(identity=entry._replace(origin="jobs"))
    elsewhere = one._replace(identity=entry._replace(key=EntryKey("S", "other")))
    lives = [
        one,
        one._replace(start_us=ORIGIN - 5, end_us=None),
        one._replace(assumed=guess, facts=PilotFacts()),
        one._replace(facts=part),
        one._replace(steps=()),
        of_jobs,
        elsewhere,
    ]
    return [key._replace(id=number) for number, key in enumerate(lives, 1)]


def test_kinds(url: str) -> None:
    """Those that are alike come together; pilots of other entries do not."""
    with Ledger.open(url) as ledger:
        ledger.commit(Batch(0, ORIGIN, tuple(rows())))
        key = identity(1)
        site = key.origin == "collector"
        size, who = Size(8, 16000), ("S", key.factory, key.group, key.origin)
        assert ledger.pilots_by_kind("e") == {
            PilotKind(ReportedSize(*size, site=True), size, frozenset(), *who): [1, 2],
            PilotKind(
                ReportedSize(site=site), size, frozenset({Assumption.SIZE, Assumption.GPUS}), *who
            ): [3],
            PilotKind(ReportedSize(8, None, 0, site=True), size, frozenset(), *who): [4],
        }
        assert ledger.pilots_by_kind("nowhere") == {}
        with ledger.transaction() as connection:
            connection.execute(text("UPDATE pilots SET runs_pruned = 1 WHERE id = 1"))
        left = [number for ids in ledger.pilots_by_kind("e").values() for number in ids]
        assert sorted(left) == [2, 3, 4]


@pytest.mark.parametrize("facts", ["[1", '{"output":{"first_us":"one"}}', "3"])
def test_what_cannot_be_read_is_damage(url: str, facts: str) -> None:
    with Ledger.open(url) as ledger:
        ledger.commit(Batch(0, ORIGIN, tuple(rows())))
        with ledger.transaction() as connection:
            connection.execute(
                text("UPDATE pilots SET facts = :facts WHERE id = 4"), {"facts": facts}
            )
        with pytest.raises(LedgerCorrupt, match="pilot 4"):
            ledger.pilots_by_kind("e")
    with Ledger.open(url) as ledger, pytest.raises(LedgerCorrupt, match="pilot 4"):
        ledger.pilots_by_id([4])


def test_pilots_that_never_were(url: str) -> None:
    """They and their runs are gone, others stay, and their numbers are not given again."""
    with Ledger.open(url) as ledger:
        for number in range(1, 8):
            ledger.commit(batch(number))
        before = ledger.load()
        last = max(before.pilots, key=lambda row: row.id)
        runs = ledger.runs_of([last.id]).get(last.id, [])
        moved = tuple((run.pilot, run.key) for run in runs)
        gone = Batch(before.batches, ORIGIN, moved=moved, withdrawn=(last.id, 10**6))
        ledger.commit(gone)
        after = ledger.load()
        assert after.next_id == before.next_id
        assert after.pilots == tuple(row for row in before.pilots if row.id != last.id)
        assert ledger.pilots_by_id([last.id]) == {}
