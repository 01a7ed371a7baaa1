"""The parts of a run, from what its records say: input, program, output, and how it ended.

Times are microseconds since the epoch, None where no record has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from gwmond.model.pilot_facts import Outcome
from gwmond.model.run_facts import RunFact, Source, Transfer
from gwmond.traces.ids import SpanName
from gwmond.traces.spans import Value

_BLAMED = {
    "transfer_input_failed": SpanName.STAGE_IN,
    "transfer_output_failed": SpanName.STAGE_OUT,
    "output_cut_off": SpanName.STAGE_OUT,
}
_RANK = {Source.EPOCH_HISTORY: 0, Source.SCHEDD_HISTORY: 1, Source.STARTD_HISTORY: 2}


class RunPhases(NamedTuple):
    """What is known of a run's parts.

    - ``parts``: kind, begin, end (None: until the run's end), and the transfer.
    - ``codes``, ``exit``: attributes of how it ended.
    """

    parts: tuple[tuple[SpanName, int | None, int | None, Transfer | None], ...]
    codes: dict[str, Value | None]
    exit: dict[str, Value | None]

    def ended_in(self, outcome: Outcome | None) -> SpanName | None:
        """Return the part that decided how the run ended: by its outcome, else the last."""
        label = "" if outcome is None else outcome.label
        if label.startswith("exit_"):
            return SpanName.EXECUTE
        known = [kind for kind, start_us, *_ in self.parts if start_us is not None]
        return _BLAMED.get(label, known[-1] if known else None)


def _rank(fact: RunFact) -> tuple[int, int]:
    return _RANK.get(fact.source, 9), -fact.written_us


def phases_of(facts: Sequence[RunFact]) -> RunPhases:
    """Return the parts of a run: of each the best record, an access point's before a startd's."""
    best = sorted(facts, key=_rank)
    if any(_rank(one) == _rank(other) for one, other in pairwise(best)):
        best.sort(key=lambda fact: (*_rank(fact), repr(fact)))
    inward = next((fact.transfer_in for fact in best if fact.transfer_in), Transfer())
    outward = next((fact.transfer_out for fact in best if fact.transfer_out), Transfer())
    executing = next((fact.executing_us for fact in best if fact.executing_us is not None), None)
    in_start, out_start = (
        transfer.start_us if transfer.queued_us is None else transfer.queued_us
        for transfer in (inward, outward)
    )
    in_end = executing if inward.end_us is None else inward.end_us
    endings = [fact.ending for fact in best]

    def first(name: str) -> int | None:
        return next((v for e in endings if (v := getattr(e, name)) is not None), None)

    signal = first("exit_signal")
    return RunPhases(
        parts=(
            (SpanName.STAGE_IN, in_start, in_end, inward),
            (SpanName.EXECUTE, executing, out_start, None),
            (SpanName.STAGE_OUT, out_start, outward.end_us, outward),
        ),
        codes={
            "htcondor.hold.code": first("hold_code") or None,
            "htcondor.vacate.code": first("vacate_code") or None,
        },
        exit={
            "htcondor.exit.signal": signal,
            "process.exit.code": first("exit_code") if signal is None else None,
        },
    )


def transferred_bytes(
    transfer: Transfer | None, before: Transfer | None, number: int | None
) -> int | None:
    """Return the bytes of a run's transfer, as the totals after it and before it have them."""
    if transfer is None or transfer.total is None or number is None:
        return None
    if number == 0:
        return transfer.total
    if before is None or before.total is None:
        return None
    return transfer.total - before.total if before.total <= transfer.total else None
