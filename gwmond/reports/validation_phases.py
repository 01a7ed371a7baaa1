"""How long a pilot validated, and slept after that had failed.  Pure.

A pilot whose validation failed sleeps before it ends, so that its successors do not drain the site
(GlideinWMS, ``glidein_startup.sh``: 20 minutes by default).  That is all between the end of its
failing test and its own.  Units: microseconds.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gwmond.model.pilot_facts import Assumption, Interval, Validation, union
from gwmond.model.stored_pilots import PilotRow
from gwmond.reports.periods import both, short, span

_OF_TIMES = frozenset({Assumption.BEGIN, Assumption.END, Assumption.NO_OUTPUT, Assumption.LIFE})
"""Rules on which a pilot's begin or end may rest."""


class Phases(NamedTuple):
    """When a pilot validated, and slept after that; ``estimated_us``: how much of it is a guess.

    ``asleep`` is None if its validation did not fail; it ends with what is known so far.
    """

    validating: Interval
    asleep: Interval | None
    estimated_us: int

    @property
    def validating_us(self) -> int:
        """How long it validated."""
        return self.validating[1] - self.validating[0]

    @property
    def asleep_us(self) -> int | None:
        """How long it slept."""
        return None if self.asleep is None else self.asleep[1] - self.asleep[0]


def phases_of(row: PilotRow, until_us: int) -> Phases | None:
    """Return a pilot's phases up to a time; None if nothing tells when its validation ended."""
    if row.validation_end_us is None:
        return None
    last = max(row.start_us, until_us if row.end_us is None else min(until_us, row.end_us))
    ended = min(max(row.start_us, row.validation_end_us), last)
    failed = row.validation is Validation.FAILED and not row.ran_jobs
    guesses = union(within for rule, within in row.assumed.items() if rule in _OF_TIMES)
    stop = last if failed else ended
    estimated = sum(max(0, min(end, stop) - max(start, row.start_us)) for start, end in guesses)
    return Phases((row.start_us, ended), (ended, last) if failed else None, estimated)


def phases_text(row: PilotRow, until_us: int) -> str:
    """Return a pilot's phases for people; empty if there is nothing to tell."""
    phases = phases_of(row, until_us)
    if phases is None:
        failed = row.validation is Validation.FAILED
        return "how long it validated, and then slept, is not known" if failed else ""
    text = f"validated for {span(phases.validating_us)}"
    if phases.asleep is not None and phases.asleep_us is not None:
        text += (
            f", then asleep for {span(phases.asleep_us)} from {short(phases.asleep[0])} on "
            "(deliberately, so that its successors do not drain the site)"
        )
    return f"{text}; begin or end is estimated" if phases.estimated_us else text


def validation_text(row: PilotRow, until_us: int) -> str:
    """Return how a pilot's validation ended, and its phases if known on a line of their own."""
    failure = f" ({row.failure})" if row.failure else ""
    text = f"validation {row.validation.shown}{failure}"
    return "\n".join(filter(None, (text, phases_text(row, until_us))))


def phases_json(phases: Phases | None) -> dict[str, Any]:
    """Return it for JSON; null is what is not known, or did not happen."""
    asleep = None if phases is None or phases.asleep is None else phases.asleep
    return {
        "validating_seconds": None if phases is None else phases.validating_us / 1e6,
        **both("asleep_from", None if asleep is None else asleep[0]),
        "asleep_seconds": None if asleep is None else (asleep[1] - asleep[0]) / 1e6,
        "validating_and_asleep_estimated_seconds": (
            None if phases is None else phases.estimated_us / 1e6
        ),
    }
