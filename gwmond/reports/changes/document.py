"""Losses that began, with what was changed at that time, and what each change did, as a document.

Units: times are microseconds since the epoch, shares are of what ``LOSSES`` names.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gwmond.model.facts import Place
from gwmond.model.times import HOUR_US
from gwmond.reports.changes.gather import LOSSES, SHORTEST_H, Found, Loss, Of, ValueChange
from gwmond.reports.changes.since import Effect
from gwmond.reports.ledger.ledger_reading import Age
from gwmond.reports.render.document import Document, Paragraph, Part
from gwmond.reports.render.formats import UNKNOWN, number, percent, words
from gwmond.reports.render.periods import both, short
from gwmond.reports.render.table import Column, table

_OF: dict[Of, str] = {
    "runs": "runs that ended",
    "pilots": "pilots that ended",
    "time": "pilots' time",
    "capacity": "capacity",
}
_VALUE = 60
_PLACES = 3
_LOSSES = (
    "A loss is told if at most 1 in 20 of those told is due to chance. More: the rise of the share "
    "in the first day, less that of sites where it did not begin, in percentage points, with its "
    "95 % interval; ? where there is too little data."
)
_CHANGES = (
    "Goodput: the rise of its share of pilots' time in the day after, less that of sites where "
    "nothing was changed, in percentage points, with its 95 % interval; ? where there is too "
    "little data. What else happened there in these two days is in it."
)


def document(place: Place, found: Found, age: Age) -> Document:
    """Return what began and what was changed."""

    def record() -> dict[str, Any]:
        times = {**both("from", found.period.since_us), **both("to", found.period.until_us)}
        return {
            **times,
            "ledger": age.as_json(),
            **place._asdict(),
            "too_short": found.too_short,
            "series": found.looked,
            "series_with_too_little_data": found.too_little,
            "losses": [_loss_json(found, loss) for loss in found.losses],
            "changes": [_change_json(change) for change in found.changes],
        }

    return Document(lambda: _parts(found), record)


def _parts(found: Found) -> Iterator[Part]:
    yield Paragraph("Since when, and what changed", "title")
    since, until = short(found.period.since_us), short(found.period.until_us)
    looked = (
        f"{found.looked} series of losses were looked at; in {found.too_little} more "
        "there is too little data."
    )
    if found.too_short:
        looked = f"Of less than {SHORTEST_H} hours it is not told since when something is lost."
    yield Paragraph(f"From {since} to {until} UTC. {looked}", "soft")
    yield from changes_parts(found)


def changes_parts(found: Found) -> Iterator[Part]:
    """Yield the two tables."""
    columns: list[Column[Loss]] = [
        Column("since (UTC)", lambda loss: _since(found, loss), name=True),
        Column("until", lambda loss: _until(found, loss), name=True),
        Column("where", lambda loss: _where(loss.place), name=True),
        Column("loss", lambda loss: words(loss.name), name=True),
        Column("of", lambda loss: _OF[LOSSES[loss.name]], text=True),
        Column("before", lambda loss: percent(loss.since.before)),
        Column("then", lambda loss: percent(loss.since.within)),
        Column("canonical hours", lambda loss: number(loss.hours)),
        Column("more than elsewhere", lambda loss: _effect(loss.effect)),
        Column("mostly", _mostly, text=True),
        Column("changed at that time", _near, text=True, wrap=30),
    ]
    yield table(
        *("What is lost more than before", columns, found.losses),
        note=_LOSSES,
        nothing="Nothing is lost more than before, as far as chance allows to tell.",
    )
    what: list[Column[ValueChange]] = [
        Column("time (UTC)", lambda change: short(change.time_us)[:16], name=True),
        Column("what", lambda change: words(change.name), name=True),
        Column("where", _places, text=True, wrap=20),
        Column("before", lambda change: _value(change.before), text=True, wrap=20),
        Column("after", lambda change: _value(change.after), text=True, wrap=20),
        Column("goodput", lambda change: _effect(change.effect)),
    ]
    yield table(
        *("What was changed", what, found.changes),
        note=_CHANGES,
        nothing="Nothing that gwmond follows was changed.",
    )


def _since(found: Found, loss: Loss) -> str:
    time = short(found.time_us(loss.since.first))[:16]
    return time if loss.since.is_seen else f"{time} or before"


def _until(found: Found, loss: Loss) -> str:
    time_us = found.time_us(loss.since.end)
    return "it lasts" if time_us >= found.period.until_us else short(time_us)[:16]


def _where(place: Place) -> str:
    return " ".join(place.named.values()) or "everywhere"


def _mostly(loss: Loss) -> str:
    if loss.mostly is None:
        return ""
    place, part = loss.mostly
    return f"{_where(place)} ({percent(part, 0)})"


def _near(loss: Loss) -> str:
    return "; ".join(
        f"{words(change.name)}: {_value(change.before)} to {_value(change.after)}"
        for change in loss.changes
    )


def _places(change: ValueChange) -> str:
    left = len(change.places) - _PLACES
    text = ", ".join(map(_where, change.places[:_PLACES]))
    return f"{text} and {left} more" if left > 0 else text


def _value(text: str) -> str:
    return text if len(text) <= _VALUE else f"{text[:_VALUE]}..."


def _effect(found: Effect | None) -> str:
    if found is None:
        return UNKNOWN
    rise, low, high = (number(100 * part, 1) for part in found[:3])
    return f"{rise} ({low} to {high})"


def _loss_json(found: Found, loss: Loss) -> dict[str, Any]:
    lasts = found.time_us(loss.since.end) >= found.period.until_us
    mostly = loss.mostly
    return {
        "loss": loss.name,
        "share_of": LOSSES[loss.name],
        **loss.place._asdict(),
        **both("since", found.time_us(loss.since.first)),
        **both("until", None if lasts else found.time_us(loss.since.end)),
        "begin_seen": loss.since.is_seen,
        "lasts": lasts,
        "share_before": loss.since.before,
        "share_within": loss.since.within,
        "chance": loss.since.chance,
        "canonical_seconds_more": loss.hours * HOUR_US / 1e6,
        "mostly": None if mostly is None else {**mostly[0]._asdict(), "part": mostly[1]},
        "more_than_elsewhere": loss.effect and loss.effect._asdict(),
        "changes": [_change_json(change) for change in loss.changes],
    }


def _change_json(change: ValueChange) -> dict[str, Any]:
    return {
        **both("time", change.time_us),
        "name": change.name,
        "before": change.before,
        "after": change.after,
        "places": [place._asdict() for place in change.places],
        "goodput": change.effect and change.effect._asdict(),
    }
