"""When a job may start: by how long jobs like it, and pilots of its entries, waited lately."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gwmond.explain.phrases import duration
from gwmond.explain.situation import Situation
from gwmond.model.demand.past_waits import FEWEST, Quantiles, longer_than, quantiles
from gwmond.reports.render.formats import counted

_PENDING = 3  # entries of which it is said


def waited_s(here: Situation) -> float:
    """Return for how long a job has waited: for its first run, or since it ran last."""
    job = here.job
    return max(0.0, here.now - ((job.since if job.runs else job.submitted) or here.now))


def start(here: Situation) -> Quantiles | None:
    """Return how much longer jobs like this one waited; None where there is too little data."""
    past = here.past
    return None if past is None else quantiles(longer_than(past.jobs, waited_s(here)))


def texts(here: Situation) -> Iterator[str]:
    """Yield the expected start in words, and how long pilots on their way may take."""
    past = here.past
    if past is None:
        yield "Expected start: not known: no ledger could be read."
        return
    found = start(here)
    longer = longer_than(past.jobs, waited_s(here))
    if found is None:
        known = f"{counted(len(longer), 'job')} like it waited as long, {FEWEST} are needed"
        yield f"Expected start: too little data: {known}."
    else:
        yield (
            f"Expected start: of {found.number} jobs like it that had waited as long, half began "
            f"within another {duration(found.half_s)}, nine of ten within "
            f"{duration(found.nine_tenths_s)} (estimated: jobs of its accounting group with as "
            "many cores, at these entries)."
        )
    pending = [key.entry for key, row in here.fitting_rows.items() if row.pending_pilots]
    for entry in sorted(set(pending))[:_PENDING]:
        waits = past.pilots.get(entry, ())
        of_entry = quantiles(waits)
        if of_entry is None:
            text = f"too little data: the queue's records of {counted(len(waits), 'pilot')}"
        else:
            text = (
                f"half of {of_entry.number} waited {duration(of_entry.half_s)} or less from their "
                f"submission, nine of ten {duration(of_entry.nine_tenths_s)} (estimated)"
            )
        yield f"Pilots on their way to {entry}: {text}."


def record(here: Situation) -> dict[str, Any] | None:
    """Return it as JSON has it; ``start`` is seconds from now on."""
    past = here.past
    if past is None:
        return None
    found, pilots = start(here), {entry: quantiles(past.pilots[entry]) for entry in past.pilots}
    return {
        "jobs_like_it": len(past.jobs),
        "start": None if found is None else found._asdict(),
        "pilots": {entry: None if q is None else q._asdict() for entry, q in pilots.items()},
        "evidence": "estimated",
    }
