"""The parts of a run, from what its records say: input, program, output, and how it ended.

Times are microseconds since the epoch, None where no record has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gwmond.model.pilot_life import Outcome
from gwmond.model.runs.phases import Phase, moved_bytes, ranked, recorded
from gwmond.model.runs.run_facts import RunFact, Transfer
from gwmond.traces.ids import SpanName
from gwmond.traces.spans import Value

_BLAMED = {
    "transfer_input_failed": SpanName.STAGE_IN,
    "transfer_output_failed": SpanName.STAGE_OUT,
    "output_cut_off": SpanName.STAGE_OUT,
}


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


def phases_of(facts: Sequence[RunFact]) -> RunPhases:
    """Return the parts of a run: of each the best record, an access point's before a startd's."""
    best = ranked(facts)
    known = recorded(best)
    times = known.times
    endings = [fact.ending for fact in best]

    def first(name: str) -> int | None:
        return next((v for e in endings if (v := getattr(e, name)) is not None), None)

    signal = first("exit_signal")
    return RunPhases(
        parts=(
            (SpanName.STAGE_IN, *times[Phase.STAGE_IN], known.inward),
            (SpanName.EXECUTE, *times[Phase.EXECUTE], None),
            (SpanName.STAGE_OUT, *times[Phase.STAGE_OUT], known.outward),
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
    """Return the bytes of a run's transfer; ``before``: that of the run before it."""
    if transfer is None or number is None:
        return None
    return moved_bytes(transfer, 0 if number == 0 else before.total if before else None)
