"""What a change of the pool would move: the sum in one line, then entries and jobs.

Units: canonical units, jobs, pilots.  All of it is estimated.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from gwmond.explain.phrases import few
from gwmond.model.demand.what_if import NO_GROUP, WhatIf, WhatIfKind
from gwmond.model.states import State
from gwmond.reports.render import fields
from gwmond.reports.render.document import Document, Paragraph, Part
from gwmond.reports.render.fields import Datum
from gwmond.reports.render.formats import counted, number
from gwmond.reports.render.meanings import state_cell
from gwmond.reports.render.table import table
from gwmond.sites.whatif import AllMoves, JobsMove, PlaceMove, PlaceNow

_ESTIMATED = (
    "Estimated: the same idle jobs, pilots and capacities are judged with the change. Whether the "
    "frontends ask for these pilots, and when they start, is not in it. Where several accounting "
    "groups could use the same room, how they share it is one of several ways."
)
_LEAST = 0.5
"""Of a job: less is a share of room that several groups could have."""


def document(what: WhatIf, found: AllMoves, missing: Sequence[str]) -> Document:
    """Return what a change moves, in all forms; ``missing``: what could not be read or matched."""
    return Document(lambda: _parts(what, found, missing), lambda: _record(what, found, missing))


def _change(what: WhatIf, found: AllMoves) -> str:
    """Return the change in words."""
    jobs, of = f"each of {counted(found.changed, 'idle job')} of {what.of}", what.of
    pilots, cores = (counted(what.number, noun) for noun in ("pilot", "core"))
    exact = what.memory_mib is not None
    memory = f"{what.memory_mib} MiB" if exact else "memory in proportion"
    texts: dict[WhatIfKind, str] = {
        "memory": f"{jobs} requested {what.number} MiB",
        "cores": f"{jobs} requested {cores}",
        "pilot": f"new pilots of {of} had {cores} and {memory}",
        "limit": f"at most {pilots} of ours could run at each entry of {of}",
        "max-idle": f"at most {pilots} could wait at once at each entry of {of}",
        "start": f"the START of {of} were {what.start}",
        "down": f"{of} were down",
    }
    return f"if {texts[what.kind]}"


def _first_line(what: WhatIf, found: AllMoves, missing: Sequence[str]) -> str:
    gain = sum(group.gain for group in found.groups)
    jobs = counted(round(abs(gain)), "job")
    if abs(gain) < _LEAST:
        said = "As many jobs could run as now"
    else:
        said = f"{jobs} {'more' if gain > 0 else 'fewer'} could run"
    known = "known in part" if missing else "estimated"
    return f"{said.upper()}, {_change(what, found)} ({known})"


def _parts(what: WhatIf, found: AllMoves, missing: Sequence[str]) -> Iterator[Part]:
    yield Paragraph(f"{_first_line(what, found, missing)}.", "title")
    yield from map(Paragraph, _sentences(what, found))
    yield table(
        "Entries, now and with the change:",
        fields.columns(_PLACES),
        found.places,
        nothing="No entry differs.",
    )
    moved = [group for group in found.groups if group.before != group.after]
    yield table(
        "Idle jobs, now and with the change:",
        fields.columns(_GROUPS),
        sorted(moved, key=lambda group: (-group.gain, group.accounting_group)),
        nothing="For no accounting group anything differs.",
    )
    yield Paragraph(_ESTIMATED, "soft")
    for text in missing:
        yield Paragraph(f"Not known: {text}.", "caution")


def _sentences(what: WhatIf, found: AllMoves) -> Iterator[str]:
    losing = [g.accounting_group or NO_GROUP for g in found.groups if g.gain < -_LEAST]
    if losing:
        yield f"Fewer jobs could run of {few(losing)}."
    unknown = [p.entry.entry for p in found.places if p.after.state is State.UNKNOWN]
    if unknown:
        yield f"Too little data: there is no verdict on {few(unknown)}, now or with the change."
    if what.kind == "limit":
        yield (
            "Whether a site has room for more pilots than it was seen to run, nobody knows: a "
            "capacity from a peak or a pledge stays, one from a limit follows the limit."
        )
    if what.kind == "down":
        running = sum(place.running for place in found.places if what.has_entry(place.entry))
        yield (
            f"{counted(running, 'pilot')} of ours run there now: their jobs are not among the "
            "idle ones, and would wait again if the site ends them."
        )
    if what.kind == "max-idle":
        yield from (_rounds(what, place) for place in found.places if what.has_entry(place.entry))


def _rounds(what: WhatIf, place: PlaceMove) -> str:
    """Return in how many rounds pilots come, of which so many may wait at once."""
    pilots, at = place.after.pilots, place.entry.entry
    if pilots is None:
        return f"{at}: the size of its pilots is not known."
    if not pilots:
        return f"{at}: no further pilot is needed."
    if not what.number:
        return f"{at}: none of {counted(pilots, 'pilot')} that are needed would come."
    rounds = math.ceil(pilots / what.number)
    return (
        f"{at}: {counted(pilots, 'pilot')} needed, {min(pilots, what.number)} at once, so in "
        f"{counted(rounds, 'round')}; requested now: {number(place.requested)}."
    )


def _now(key: str, at: int, header: str, digits: int = 0) -> tuple[Datum[PlaceMove], ...]:
    """Return a number of an entry, now and with the change; columns stand side by side."""

    def of(when: str) -> Datum[PlaceMove]:
        def value(move: PlaceMove) -> float | None:
            place: PlaceNow = getattr(move, when)
            known: float | None = getattr(place, key)
            return known

        name, place = (header, at) if when == "before" else (f"{header} then", at + 1)
        cell = lambda move: number(value(move), digits)  # noqa: E731
        return Datum(f"{key}_{when}", value, place, name, cell=cell, zero=key == "gpus")

    return of("before"), of("after")


_PLACES: tuple[Datum[PlaceMove], ...] = (
    Datum("site", lambda move: move.entry.site, 1, name=True, head=True),
    Datum("entry", lambda move: move.entry.entry, 2, name=True),
    Datum(
        *("state_before", lambda move: move.before.state.value, 3, "state"),
        cell=lambda move: state_cell(move.before.state),
        text=True,
    ),
    Datum(
        *("state_after", lambda move: move.after.state.value, 4, "state then"),
        cell=lambda move: state_cell(move.after.state),
        text=True,
    ),
    *_now("units", 5, "units lacking", 1),
    *_now("gpus", 7, "GPUs lacking", 1),
    *_now("pilots", 9, "pilots needed"),
    Datum("running_pilots", lambda move: move.running, 11, "pilots now"),
    Datum("requested_pilots", lambda move: move.requested),
)


def _prospect(key: str, at: int, header: str) -> tuple[Datum[JobsMove], ...]:
    def of(when: str) -> Datum[JobsMove]:
        def value(move: JobsMove) -> float:
            jobs: float = getattr(getattr(move, when), key)
            return jobs

        name, place = (header, at) if when == "before" else (f"{header} then", at + 1)
        return Datum(
            f"{key}_{when}", value, place, name, cell=lambda move: number(value(move), 1), zero=True
        )

    return of("before"), of("after")


_GROUPS: tuple[Datum[JobsMove], ...] = (
    Datum(
        *("accounting_group", lambda move: move.accounting_group, 1, "accounting group"),
        cell=lambda move: move.accounting_group or NO_GROUP,
        name=True,
    ),
    Datum("idle_jobs", lambda move: move.jobs, 2, "idle jobs"),
    *_prospect("soon", 3, "soon"),
    *_prospect("more_pilots", 5, "on more pilots"),
    *_prospect("nowhere", 7, "nowhere"),
    Datum("gain", lambda move: move.gain, 9, "gain", cell=lambda move: f"{move.gain:+.1f}"),
)


def _record(what: WhatIf, found: AllMoves, missing: Sequence[str]) -> dict[str, Any]:
    return {
        "first_line": _first_line(what, found, missing),
        "evidence": "estimated",
        "change": what.kind,
        "of": what.of,
        "number": None if what.kind in ("start", "down") else what.number,
        "memory_mib": what.memory_mib,
        "start": what.start or None,
        "changed": found.changed,
        "gain": sum(group.gain for group in found.groups),
        "entries": [fields.record(_PLACES, move) for move in found.places],
        "groups": [fields.record(_GROUPS, move) for move in found.groups],
        "not_read": list(missing),
    }
