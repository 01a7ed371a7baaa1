"""What a poll found, as the ledger keeps it for some days: the table of entries, why jobs waited.

Kept is a JSON array, compressed; fields that a later gwmond adds are at the end, and have defaults.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from gwmond.model.facts import Status
from gwmond.model.poll.snapshot import IdleReason
from gwmond.model.times import SECOND_US
from gwmond.reports.render.document import Document, Paragraph, Part
from gwmond.reports.render.formats import number, words
from gwmond.reports.render.periods import both, rfc3339
from gwmond.reports.render.table import Column, table
from gwmond.reports.sites.sites import SiteRow, down

if TYPE_CHECKING:
    from gwmond.ledger.reading.sites_reader import SitesReader

NAMES = ("reason", "cause", "site", "whose_move", "jobs", "cpu_units", "gpu_units")
"""The fields of ``IdleReason``, as programs read them."""
_MOST_BYTES = 200_000_000


class _Found(NamedTuple):
    entries: list[SiteRow]
    idle: list[IdleReason]
    down: list[str]


class PastPoll(NamedTuple):
    """A poll of the past: when it was, its entries, why jobs waited, which sources were down."""

    time_us: int
    entries: Sequence[SiteRow]
    idle: Sequence[IdleReason]
    down: Sequence[str]

    def note(self, asked_us: int, period_s: float) -> str:
        """Return of which time it is, and whether there was none for long after it."""
        text = f"as of the poll at {rfc3339(self.time_us)}"
        late_s = (asked_us - self.time_us) / SECOND_US
        if late_s <= 2 * period_s:
            return text
        return f"{text}: {late_s:.0f} s before the time asked for, and none is kept between"


class NoPoll(Exception):
    """No poll is kept of that time or before."""

    def __init__(self, at_us: int) -> None:
        super().__init__(
            f"no poll is kept of {rfc3339(at_us)}, nor before: [ledger] polls_retention says how "
            "long polls are kept"
        )


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(_Found)


def packed(
    entries: Sequence[SiteRow], idle: Sequence[IdleReason], statuses: Iterable[Status]
) -> bytes:
    """Return what is kept of a poll."""
    found = _Found(list(entries), list(idle), down(statuses))
    return zlib.compress(_encoder.encode(found))


def past_poll(ledger: SitesReader, at_us: int) -> PastPoll:
    """Return the last poll until a time; raises NoPoll."""
    kept = ledger.poll_before(at_us)
    if kept is None:
        raise NoPoll(at_us)
    return _unpacked(*kept)


def _unpacked(time_us: int, found: bytes) -> PastPoll:
    unpacked = zlib.decompressobj().decompress(found, _MOST_BYTES)
    return PastPoll(time_us, *_decoder.decode(unpacked))


def past_polls(
    ledger: SitesReader, since_us: int, until_us: int, step_s: int
) -> Iterator[PastPoll]:
    """Yield polls of a time in their order, at most one in ``step_s``, and the last one."""
    for time_us, found in ledger.polls_between(since_us, until_us, step_s * SECOND_US):
        yield _unpacked(time_us, found)


def idle_document(poll: PastPoll, site: str) -> Document:
    """Return why jobs waited then; of a site only jobs that could run there alone."""
    found = [reason for reason in poll.idle if site in ("", reason.site)]

    def parts() -> Iterator[Part]:
        if found:
            yield table("", _COLUMNS, sorted(found, key=lambda reason: -reason.cpu))
        else:
            yield Paragraph("no job waited")

    def rows() -> list[dict[str, object]]:
        return [dict(zip(NAMES, reason, strict=True)) for reason in found]

    return Document(
        parts,
        lambda: {**both("time", poll.time_us), "sources_down": poll.down, "idle": rows()},
        rows,
        lambda: dict.fromkeys(NAMES),
    )


_COLUMNS: tuple[Column[IdleReason], ...] = (
    Column("reason", lambda one: words(one.reason), text=True),
    Column("cause", lambda one: words(one.cause), text=True),
    Column("site", lambda one: one.site, name=True),
    Column("whose move", lambda one: one.mover, text=True),
    Column("jobs", lambda one: number(one.jobs)),
    Column("CPU units", lambda one: number(one.cpu)),
    Column("GPU units", lambda one: number(one.gpu), zero=True),
)
