"""The phases of a run: its input is transferred, its program runs, its output is transferred.

Units: times and lengths are microseconds, None where no record has them; absent is not zero.

A phase of transfer lasts from when it was asked for, so the wait until files move is part of it;
``queued`` is that wait.  One that did not end lasts to the next phase that is known, else to the
end of the run.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import Literal, NamedTuple, TypeAlias

from gwmond.model.runs.run_facts import Move, RunFact, Source, Transfer
from gwmond.model.times import SECOND_US
from gwmond.model.totals import Micros

_RANK = {Source.EPOCH_HISTORY: 0, Source.SCHEDD_HISTORY: 1, Source.STARTD_HISTORY: 2}


class Phase(StrEnum):
    """A phase of a run."""

    STAGE_IN = "stage_in"
    EXECUTE = "execute"
    STAGE_OUT = "stage_out"


Measured: TypeAlias = Literal["queue", "stage_in", "stage_out"]
"""A length of which there are histograms; ``queue``: how long a job waited for its first run."""

HISTOGRAMS: Mapping[Measured, tuple[int, ...]] = {
    "queue": (60, 300, 900, 3600, 14_400, 43_200, 86_400, 259_200),
    "stage_in": (1, 10, 60, 300, 900, 3600, 14_400),
    "stage_out": (1, 10, 60, 300, 900, 3600, 14_400),
}
"""Of which lengths runs are counted by bucket, and the bounds of these (s).

The ledger has what is counted by bucket, so other bounds would begin new series.
"""


class Recorded(NamedTuple):
    """What the best records have of a run's phases; an empty transfer is not known."""

    inward: Transfer
    outward: Transfer
    executing_us: int | None

    @property
    def times(self) -> dict[Phase, tuple[int | None, int | None]]:
        """Begin and end of each; None as an end: until the run's."""
        inward, outward, executing = self
        sent = asked(outward)
        return {
            Phase.STAGE_IN: (asked(inward), inward.end_us or executing or sent),
            Phase.EXECUTE: (executing, sent),
            Phase.STAGE_OUT: (sent, outward.end_us),
        }


_FIRST = Recorded(Transfer(total=0), Transfer(total=0), None)
_NOTHING = Recorded(Transfer(), Transfer(), None)


class Phases(NamedTuple):
    """How long the phases of a run lasted, and what was transferred (bytes)."""

    stage_in_us: int | None = None
    execute_us: int | None = None
    stage_out_us: int | None = None
    queued_in_us: int | None = None
    queued_out_us: int | None = None
    bytes_in: int | None = None
    bytes_out: int | None = None

    @property
    def lengths(self) -> dict[Phase, int]:
        """The length of each phase that is known."""
        pairs = zip(Phase, self[:3], strict=True)
        return {phase: length for phase, length in pairs if length is not None}

    @property
    def queued_us(self) -> int | None:
        """How long the run waited for transfers; None if nothing is known of either."""
        waits = [wait for wait in (self.queued_in_us, self.queued_out_us) if wait is not None]
        return sum(waits) if waits else None


class FailedTransfer(NamedTuple):
    """A transfer that failed: ``input`` or ``output``; the protocol, and the host of the URL.

    The protocol is ``cedar`` for HTCondor's own, ``unknown`` where the failure names none; the host
    is empty where there is none, or it is not known.
    """

    way: str
    protocol: str
    host: str

    @classmethod
    def of(cls, text: str) -> FailedTransfer:
        """Return it from ``Ending.failed_transfer``.

        >>> FailedTransfer.of("input root se.org"), FailedTransfer.of("output osdf").host
        (FailedTransfer(way='input', protocol='root', host='se.org'), '')
        """
        way, protocol, host = f"{text}  ".split(" ", 2)
        return cls(way, protocol, host.strip())

    @property
    def text(self) -> str:
        """It as ``Ending.failed_transfer`` has it."""
        return " ".join(filter(None, self))

    @property
    def server(self) -> str:
        """Protocol and host for people."""
        return f"{self.protocol}://{self.host}" if self.host else self.protocol


def failed_transfer(facts: Iterable[RunFact]) -> FailedTransfer | None:
    """Return the transfer of a run that failed, by the best record that has one."""
    endings = (fact.ending for fact in sorted(ranked(facts), key=lambda fact: not fact.moves))
    text = next((ending.failed_transfer for ending in endings if ending.failed_transfer), None)
    return None if text is None else FailedTransfer.of(text)


def asked(transfer: Transfer) -> int | None:
    """Return when a transfer was asked for: it may have waited until it began."""
    return transfer.start_us if transfer.queued_us is None else transfer.queued_us


def sends_us(facts: Iterable[RunFact]) -> int | None:
    """Return from when on a run had given its cores and memory back; None: it held them.

    Of several records the one that has it hold them for longest.
    """
    sent = [asked(fact.transfer_out) for fact in facts if fact.yields and fact.transfer_out]
    return max((at for at in sent if at is not None), default=None)


def ranked(facts: Iterable[RunFact]) -> list[RunFact]:
    """Return records of a run, an access point's before a startd's, in one order always."""
    best = sorted(facts, key=_rank)
    if any(_rank(fact) == _rank(other) for fact, other in pairwise(best)):
        best.sort(key=lambda fact: (*_rank(fact), repr(fact)))
    return best


def _rank(fact: RunFact) -> tuple[int, int]:
    return _RANK.get(fact.source, 9), -fact.written_us


def recorded(best: Sequence[RunFact]) -> Recorded:
    """Return what records, the best first, have of a run's phases."""
    return Recorded(
        next((fact.transfer_in for fact in best if fact.transfer_in), Transfer()),
        next((fact.transfer_out for fact in best if fact.transfer_out), Transfer()),
        next((fact.executing_us for fact in best if fact.executing_us is not None), None),
    )


def phases_of(
    facts: Iterable[RunFact], start_us: int, end_us: int | None, before: Recorded | None = None
) -> Phases:
    """Return the phases of a run; ``before``: of the run before it of the same job, if known."""
    best = ranked(facts)
    record = recorded(best)
    number = next((fact.shadow_start for fact in best if fact.shadow_start), None)
    inward, outward = (_FIRST if number == 1 else before or _NOTHING)[:2]
    run = start_us, end_us
    times = record.times
    return Phases(
        _length(*times[Phase.STAGE_IN], run),
        _length(*times[Phase.EXECUTE], run),
        _length(*times[Phase.STAGE_OUT], run),
        _queued(record.inward),
        _queued(record.outward),
        moved_bytes(record.inward, inward.total),
        moved_bytes(record.outward, outward.total),
    )


def _length(begin_us: int | None, until_us: int | None, run: tuple[int, int | None]) -> int | None:
    start_us, end_us = run
    until_us = end_us if until_us is None else until_us
    if begin_us is None or until_us is None:
        return None
    last = until_us if end_us is None else min(until_us, end_us)
    return max(0, last - max(begin_us, start_us))


def _queued(transfer: Transfer) -> int | None:
    """Return how long a transfer waited; one that began without asking did not wait."""
    if transfer.start_us is None:
        return None
    return 0 if transfer.queued_us is None else max(0, transfer.start_us - transfer.queued_us)


def moved_bytes(transfer: Transfer, before: int | None) -> int | None:
    """Return the bytes of one run: as its record has them, else by the total ``before`` it."""
    if transfer.moved is not None or transfer.total is None or before is None:
        return transfer.moved
    return transfer.total - before if before <= transfer.total else None


def buckets(what: Measured) -> tuple[str, ...]:
    """Return the upper bounds of a histogram's buckets."""
    return (*map(str, HISTOGRAMS[what]), "+Inf")


def bucket_of(what: Measured, length_us: Micros) -> str:
    """Return the least upper bound of a length.

    >>> bucket_of("queue", 60_000_000), bucket_of("stage_in", 60_000_001)
    ('60', '300')
    """
    return buckets(what)[bisect_left(HISTOGRAMS[what], length_us / SECOND_US)]


def counted_lengths(
    facts: Sequence[RunFact], start_us: int, end_us: int | None
) -> dict[Measured, Micros]:
    """Return the lengths by which a settled run is counted in histograms, where known."""
    lengths: dict[Measured, Micros | None] = {"queue": waited_us(facts)}
    if any(fact.transfer_in or fact.transfer_out for fact in facts):
        times, run = recorded(ranked(facts)).times, (start_us, end_us)
        lengths["stage_in"] = _length(*times[Phase.STAGE_IN], run)
        lengths["stage_out"] = _length(*times[Phase.STAGE_OUT], run)
    return {what: length_us for what, length_us in lengths.items() if length_us is not None}


def moves_of(facts: Iterable[RunFact]) -> tuple[Move, ...]:
    """Return what plugins transferred for a run, in order of time."""
    moves = [move for fact in facts for move in fact.moves]
    return tuple(sorted(moves, key=lambda move: (move.end_us, repr(move))))


def waited_us(facts: Iterable[RunFact]) -> Micros | None:
    """Return how long a job waited for this run, if it is its first and records have both dates.

    From QDate to JobCurrentStartDate: on hold or not.
    """
    first = [fact for fact in facts if fact.shadow_start == 1]
    starts = [fact.start_us for fact in first if fact.start_us is not None]
    queued = [
        fact.about_job.queued_us
        for fact in first
        if fact.about_job is not None and fact.about_job.queued_us
    ]
    return max(0, min(starts) - min(queued)) if starts and queued else None
