"""The phases of stored runs: how long, how many bytes, and shares of their time.  Pure.

Units: times and lengths are microseconds, amounts are micros.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from gwmond.model.pilot_life import Measure
from gwmond.model.pilots.stored_pilots import RunRow
from gwmond.model.runs.phases import FailedTransfer, Phases, phases_of, ranked, recorded
from gwmond.model.shares import apportion
from gwmond.model.units import Resource
from gwmond.reports.render.fields import LENGTH, Datum

R = TypeVar("R")

REST = ""
"""The phase of time between the phases that are known, and of a run of which none is known."""


def phases(run: RunRow, same_job: Sequence[RunRow] = ()) -> Phases:
    """Return the phases of a run; ``same_job``: runs of the job, for bytes of later ones."""
    before = _before(run, same_job)
    earlier = None if before is None else recorded(ranked(before.facts))
    return phases_of(run.facts, run.start_us, run.end_us, earlier)


def _before(run: RunRow, same_job: Iterable[RunRow]) -> RunRow | None:
    """Return the run of the job before a run, if it is known that there was none between them."""
    number = run.key.shadow_start
    if number is None:
        return None
    return next(
        (
            other
            for other in same_job
            if number - 1 in {fact.shadow_start for fact in other.facts} and other.key != run.key
        ),
        None,
    )


def phase_fields(
    phases: Callable[[R], Phases], failed: Callable[[R], FailedTransfer | None]
) -> tuple[Datum[R], ...]:
    """Return what JSON has of a run's phases, and of the transfer that failed."""
    return (
        Datum("stage_in", lambda run: phases(run).stage_in_us, unit=LENGTH),
        Datum("execute", lambda run: phases(run).execute_us, unit=LENGTH),
        Datum("stage_out", lambda run: phases(run).stage_out_us, unit=LENGTH),
        Datum("transfer_queued_in", lambda run: phases(run).queued_in_us, unit=LENGTH),
        Datum("transfer_queued_out", lambda run: phases(run).queued_out_us, unit=LENGTH),
        Datum("bytes_in", lambda run: phases(run).bytes_in),
        Datum("bytes_out", lambda run: phases(run).bytes_out),
        Datum("failed_transfer", lambda run: (transfer := failed(run)) and transfer._asdict()),
    )


def divided(run: RunRow) -> dict[str, Mapping[tuple[Resource, Measure], int]]:
    """Return what is settled of a run by phase, in proportion to how long each lasted.

    The parts sum up to the whole, with ``REST``; phases that are not known are not there.  A phase
    in which it held nothing has no part.
    """
    until_us = run.as_run.held_until_us
    lengths = phases_of(run.facts, run.start_us, until_us).lengths
    length_us = max(0, (until_us or run.start_us) - run.start_us)
    names: list[str] = [*map(str, lengths), REST]
    weights = [*lengths.values(), max(0, length_us - sum(lengths.values()))]
    if not any(weights):
        weights[-1] = 1
    parts = {kind: apportion(micros, weights) for kind, micros in run.settled.items()}
    return {
        name: {kind: shares[at] for kind, shares in parts.items()}
        for at, name in enumerate(names)
        if weights[at] or name != REST
    }
