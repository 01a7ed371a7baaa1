"""Recent waits in a ledger: of jobs that ran where another could run, of pilots of entries."""

from __future__ import annotations

from gwmond.ledger.reading.reader import LedgerReader
from gwmond.ledger.reading.recent_waits import past_waits
from gwmond.ledger.store import Ledger
from gwmond.model.factory.jobs import QueueRecord
from gwmond.model.pilots.file_facts import PilotName, QueueEvent, QueueState
from gwmond.model.poll.batch import Batch
from gwmond.model.times import SECOND_US
from tests.build.trace_backlog import PILOT, commit_jobs
from tests.ledger.pilot_batches import identity


def _place(number: int, entry: str, *events: tuple[QueueState, int]) -> QueueRecord:
    made = [QueueEvent("", PilotName(), state, at * SECOND_US) for state, at in events]
    return QueueRecord(entry, f"{number}.0", tuple(made))


def test_recent_waits(url: str) -> None:
    """Jobs wait a minute; a pilot waits since its last submission, until it first begins."""
    entry = identity(PILOT).key.entry
    places = (
        _place(1, entry, (QueueState.SUBMITTED, 10), (QueueState.STARTED, 70)),
        _place(
            *(2, entry, (QueueState.SUBMITTED, 0), (QueueState.EVICTED, 50)),
            *((QueueState.SUBMITTED, 60), (QueueState.PENDING, 65), (QueueState.STARTED, 90)),
        ),
        _place(3, entry, (QueueState.SUBMITTED, 10)),
        _place(4, "other", (QueueState.SUBMITTED, 10), (QueueState.STARTED, 70)),
    )
    with Ledger.open(url) as ledger:
        commit_jobs(ledger, 1, 3)
        ledger.commit(Batch(before=ledger.load_sites().batches, now_us=1, places=places))
    with LedgerReader.open(url) as ledger:
        found = past_waits(ledger, "group", 1, {entry, "nowhere"})
        assert found.jobs == [60.0, 60.0, 60.0]
        assert {name: sorted(waits) for name, waits in found.pilots.items()} == {entry: [30, 60]}
        for elsewhere in (("others", 1, {entry}), ("group", 2, {entry}), ("group", 1, {"x"})):
            assert past_waits(ledger, *elsewhere).jobs == []
