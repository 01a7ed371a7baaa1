"""Which clause of a job's Requirements excludes which slots and entries.

Counts are of slots, and of pilots: one for each entry and frontend group.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import NamedTuple

from gwmond.explain.phrases import few
from gwmond.model.demand.waiting_job import JobPlace
from gwmond.model.facts import EntryKey, Size

REQUEST = re.compile(r"\brequest(cpus|memory|gpus|disk)\b", re.IGNORECASE)
_PAIRED = 40  # clauses, at most, of which pairs are tried


class ClauseCount(NamedTuple):
    """A clause, how many of ``total`` pilots pass it, and how many it alone excludes.

    ``untold``: of how many it is not known.
    """

    clause: str
    passed: int
    alone: int
    total: int
    untold: int = 0


class Opening(NamedTuple):
    """One change of a job, and what would accept the job then.

    ``request`` is ``RequestMemory`` or its like; ``wanted`` and ``most`` are in its unit.  Or it is
    ``sites``: a clause about sites that has these entries, too; or ``clause``: the Requirements
    without that ``clause``; both are then 0.  ``pilots`` counts
    kinds of empty pilots, ``slots`` slots that would match now.
    """

    request: str
    wanted: float
    most: float
    pilots: int
    entries: tuple[EntryKey, ...]
    slots: int = 0
    clause: str = ""

    @property
    def change(self) -> str:
        """The change in words."""
        if self.clause:
            return f"without {self.clause}"
        if self.request != SITES:
            return f"{self.request} {self.wanted:.15g} -> {self.most:.15g}"
        return f"also at {few(key.site for key in self.entries)}"


def counts(clauses: Sequence[str], pilots: Sequence[JobPlace]) -> list[ClauseCount]:
    """Return of each clause how many pilots pass it, and how many it alone keeps away."""
    blocked: Counter[int] = Counter()
    alone: Counter[int] = Counter()
    untold: Counter[int] = Counter()
    for place in pilots:
        blocked.update(place.blocked)
        untold.update(place.untold)
        if len(place.blocked) == 1 and not place.refusals:
            alone[place.blocked[0]] += 1
    total = len(pilots)
    return [
        ClauseCount(clause, total - blocked[i] - untold[i], alone[i], total, untold[i])
        for i, clause in enumerate(clauses)
    ]


def refusals(pilots: Iterable[JobPlace]) -> Counter[str]:
    """Return by how many pilots each clause of START refuses a job that meets all else."""
    refused: Counter[str] = Counter()
    for place in pilots:
        if not place.blocked:
            refused.update(place.refusals)
    return refused


def smallest_pair(pilots: Sequence[JobPlace]) -> tuple[int, int, int] | None:
    """Return two clauses which together exclude most, and how many pilots would be left.

    Only asked where no clause excludes a pilot alone.  None where no two do either.
    """
    sets = Counter(frozenset(place.blocked) for place in pilots if not place.refusals)
    numbers = sorted({i for blocked in sets for i in blocked})[:_PAIRED]
    best = max(
        combinations(numbers, 2),
        key=lambda pair: sum(n for blocked, n in sets.items() if blocked <= set(pair)),
        default=None,
    )
    if best is None:
        return None
    opened = sum(n for blocked, n in sets.items() if blocked <= set(best))
    return (*best, opened) if opened else None


SITES, CLAUSE = "sites", "clause"
SITE = re.compile("site|entry_name|resourcename", re.IGNORECASE)
_LITERAL = re.compile('"([^"]*)"')
REQUESTS = ("RequestCpus", "RequestMemory", "RequestGPUs")  # in the order of a Size


def names_place(clause: str, key: EntryKey, words: Iterable[tuple[str, str]] = ()) -> bool:
    """Return whether a clause asks for a site, or an entry, by its name.

    It may be part of a longer one (T2_US_Nebraska, ^Nebraska), or in an attribute of the job:
    ``words`` are their names and texts.
    """
    if not SITE.search(clause) or re.search(r"!|\bisnt\b", clause):
        return False
    names = set(re.findall(r"\w+", clause.lower()))
    texts = [*_LITERAL.findall(clause), *(text for name, text in words if name.lower() in names)]
    pattern = "|".join(map(re.escape, filter(None, key)))
    part = re.compile(rf"(?<![^\W_])(?:{pattern})(?![^\W_])")
    return any(map(part.search, texts))


def openings(
    size: Size,
    clauses: Sequence[str],
    pilots: Iterable[JobPlace],
    slots: Sequence[JobPlace] = (),
) -> list[Opening]:
    """Return the smallest change of each request that alone opens pilots.

    A pilot counts where nothing but its size is in the way: all clauses that exclude the job, of
    its Requirements and of START, are on the one request that is more than the pilot has.  Who
    wants a GPU is not told to do without.
    ``slots`` are those that take jobs now; those that match already are not opened.
    """
    by_request: dict[int, list[tuple[float, EntryKey]]] = {}
    for place in pilots:
        texts = [*(clauses[i] for i in place.blocked), *place.refusals]
        large = [
            i for i, (mine, has) in enumerate(zip(size, place.whole, strict=True)) if mine > has
        ]
        if texts and len(large) == 1 and _all_ask(texts, large[0]) and place.whole[large[0]]:
            by_request.setdefault(large[0], []).append((place.whole[large[0]], place.entry))
    result = []
    for i, opened in sorted(by_request.items()):
        most = max(amount for amount, _ in opened)
        entries = [entry for amount, entry in opened if amount == most]
        smaller = Size(*(most if i == j else amount for j, amount in enumerate(size)))
        now = sum(
            slot.number
            for slot in slots
            if not slot.matches
            and smaller.is_within(slot.size)
            and _all_ask((*(clauses[k] for k in slot.blocked), *slot.refusals), i)
        )
        places = tuple(sorted(set(entries)))
        result.append(Opening(REQUESTS[i], size[i], most, len(entries), places, now))
    return result


def _all_ask(texts: Iterable[str], request: int) -> bool:
    """Return whether all of these clauses are about a request."""
    return all(REQUESTS[request].lower() in text.lower() for text in texts)


def without_clause(
    clauses: Sequence[str], pilots: Iterable[JobPlace], slots: Iterable[JobPlace]
) -> list[Opening]:
    """Return what would accept the job, were it not for one clause alone: each such clause.

    Those on requests are left out: there a smaller request opens (``openings``).
    """
    opened: dict[int, list[JobPlace]] = {}
    for place in (*pilots, *slots):
        if len(place.blocked) == 1 and not place.refusals:
            opened.setdefault(place.blocked[0], []).append(place)
    result = []
    for i, places in sorted(opened.items()):
        entries = {place.entry for place in places if place.kind == "pilot"}
        if not entries or REQUEST.search(clauses[i]):
            continue
        kinds = sum(place.kind == "pilot" for place in places)
        now = sum(place.number for place in places if place.kind == "slot")
        request, clause = (SITES, "") if SITE.search(clauses[i]) else (CLAUSE, clauses[i])
        result.append(Opening(request, 0, 0, kinds, tuple(sorted(entries)), now, clause))
    return sorted(result, key=lambda opening: (opening.request != SITES, -opening.pilots))
