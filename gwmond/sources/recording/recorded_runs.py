"""Records of job runs, as a recording has them: what is taken, and what is left out.

Each history of a schedd is a stream, ``runs/SCHEDD/KIND``, with the records that were new in each
frame, oldest first.

Left out: all but the attributes that the queries ask for; addresses in claim ids; reasons of holds
and vacates, but for the words that say whose failure it was; expressions of users, of which the
value is kept; programs, which get pseudonyms.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from gwmond.sources.htcondor import ads
from gwmond.sources.htcondor.histories import histories, history_cursor
from gwmond.sources.htcondor.histories.history_cursor import Identity
from gwmond.sources.htcondor.histories.history_endings import server_of
from gwmond.sources.recording.deltas import Ad

if TYPE_CHECKING:
    import classad2

    from gwmond.sources.htcondor.access import Access, Daemon

KINDS = ("epochs", "history")
MEMBER = "runs/"
MOST = 5000
"""Records of one history in one frame; of more, the oldest are left out."""

_STRING_OR_SPACE = re.compile(r'("(?:[^"\\]|\\.)*")|\s+')
_FAILURE = re.compile(r"failure at (?:access|execution) point")
_CLAIM = re.compile(r">(#[0-9]+#[0-9]+#)")


TakenHistory: TypeAlias = tuple[Identity, ...]
"""Up to where a history was taken: the newest records, newest first."""


def stream(schedd: str, kind: str) -> str:
    """Return the name under which a frame has new records."""
    return f"{MEMBER}{schedd}/{kind}"


def take(
    access: Access, schedd: Daemon, kind: str, taken: TakenHistory, floor: float
) -> tuple[tuple[list[Ad], TakenHistory, bool], int]:
    """Ask a schedd for what is new, oldest first; and whether it was more than is kept.

    Of what was never asked for before, only what is not older than ``floor`` (epoch seconds).
    """
    before = set(taken)
    recent = f"({histories.KINDS[kind].time} ?: 0) >= {int(floor)}"
    query = histories.query(kind, "" if before else recent)
    since = history_cursor.expression(kind, taken[0]) if before else ""
    records = access.history(schedd, kind, query, MOST + 1, since)
    fresh = [(ad, history_cursor.identity(kind, ad)) for ad in records[:MOST]]
    fresh = [(ad, identity) for ad, identity in fresh if identity is None or identity not in before]
    newest = (*(identity for _, identity in fresh if identity is not None), *taken)[:MOST]
    dumped = [dump(ad, query.projection) for ad, _ in reversed(fresh)]
    return (dumped, newest, len(records) > MOST), len(records)


def dump(ad: classad2.ClassAd, names: Sequence[str]) -> Ad:
    """Return a record's attributes as text, without what nobody needs to know."""
    asked = {name.lower() for name in names} - ads.SECRET
    kept: Ad = {}
    for name in ad.keys():  # noqa: SIM118 (a ClassAd's iterator is not its keys)
        if name.lower() in asked:
            text = _verdict(ad) if name == "OnExitRemove" else text_of(ad, name)
            if text is not None:
                kept[name] = _plain(name, text)
    return kept


def _verdict(ad: classad2.ClassAd) -> str | None:
    """Return what OnExitRemove, an expression of the user's, comes to."""
    value = ads.truth(ad, "OnExitRemove")
    return None if value is None else str(value).lower()


def text_of(ad: classad2.ClassAd, name: str) -> str | None:
    """Return an attribute's text on one line: the bindings write lists on several."""
    text = ads.expression_text(ad, name)
    if text is None or "\n" not in text:
        return text
    return _STRING_OR_SPACE.sub(lambda m: m[1] or " ", text).strip()


def _plain(name: str, text: str) -> str:
    if name.endswith("Reason"):
        match = _FAILURE.search(text)
        protocol = server_of(text).partition(" ")[0]  # without the host, which a user chose
        used = "" if protocol == "unknown" else f" using protocol {protocol}"
        return f'"{match[0]}{used}"' if match else '""'
    if name.endswith("PublicClaimId"):
        claim = _CLAIM.search(text)
        return f'"<>{claim[1]}..."' if claim else '""'
    return text
