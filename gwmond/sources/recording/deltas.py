"""What changes between two answers of the same query, as recordings keep it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from gwmond.sources.htcondor import ads

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Ad = dict[str, str]
Answer = dict[str, Ad]
Delta = dict[str, "dict[str, str | None] | None"]

_COUNTED = ("JobCount", "JobIds")


def by_key(answer: Iterable[Ad]) -> Answer:
    """Return ads by what makes each the same one in the next frame; alike ones are numbered."""
    keyed: Answer = {}
    for ad in answer:
        key = first = _key(ad)
        number = 1
        while key in keyed:
            number += 1
            key = f"{first}#{number}"
        keyed[key] = ad
    return keyed


def _key(ad: Ad) -> str:
    """Return what an ad is known by: a row of jobs by all that it says, for it has no name."""
    if "JobCount" in ad:
        rest = sorted((name, text) for name, text in ad.items() if name not in _COUNTED)
        return ads.signature(json.dumps(rest))
    return "/".join(
        ad.get(name, "").strip('"') for name in ("Name", "ScheddName", "ClusterId", "ProcId")
    )


def difference(before: Answer, after: Answer) -> Delta:
    """Return what makes ``after`` of ``before``; ``None`` removes an ad or an attribute."""
    delta: Delta = dict.fromkeys(key for key in before if key not in after)
    for key, ad in after.items():
        old = before.get(key, {})
        changed: dict[str, str | None] = {n: t for n, t in ad.items() if old.get(n) != t}
        changed |= {name: None for name in old if name not in ad}
        if changed or key not in before:
            delta[key] = changed
    return delta


def apply(answer: Answer, delta: Mapping[str, Mapping[str, str | None] | None]) -> Answer:
    """Return the answer after a change."""
    result = dict(answer)
    for key, changed in delta.items():
        if changed is None:
            result.pop(key, None)
        else:
            merged = {**result.get(key, {}), **changed}
            result[key] = {name: text for name, text in merged.items() if text is not None}
    return result
