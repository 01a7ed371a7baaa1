"""Changes of a job with which it would match pilots: proposed by rules, and tried by matching.

Each clause that keeps a job from an empty pilot, of either side, has a few proposals, the most
careful first.  What is proposed counts only if HTCondor's own matching then accepts the job.
"""

from __future__ import annotations

import difflib
import re
from functools import cached_property, reduce
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from gwmond.model.demand.waiting_job import OFFERED, TIMED, Change, Edit
from gwmond.sources.htcondor import ads, clauses, matching
from gwmond.sources.htcondor.alike import Values, references
from gwmond.sources.htcondor.places import Asking

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

    import classad2

    from gwmond.config.settings import Attributes
    from gwmond.model.demand.waiting_job import ChangeKind, JobPlace
    from gwmond.sources.htcondor.places import EmptyPilot, EmptyPilots

    _Sides: TypeAlias = tuple[classad2.ClassAd, classad2.ClassAd]

_MOST_CHANGES, _MOST_GPUS = 4, 16
_KEPT, _MOST_HALVES = 3, 64
"""So many changes one edit has at most, and so many edits are kept of a job."""
_ALIKE = 0.75
_LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
_NUMBER = re.compile(r'(?<![\w."])(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?(?![\w."])')
_NUMERIC = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?")
_PARTS = re.compile(r"[^, ]+")
_NOT_A_USERS = frozenset(
    (
        *("clusterid", "procid", "globaljobid", "qdate", "owner", "user", "uiddomain", "ntdomain"),
        *("filesystemdomain", "accountinggroup", "acctgroup", "acctgroupuser", "jobstatus"),
        *("enteredcurrentstatus", "jobuniverse", "numshadowstarts", "numjobstarts", "jobprio"),
        *("numjobmatches", "imagesize", "diskusage", "executablesize", "memoryusage"),
        *("residentsetsize", "lastvacatetime", "jobcurrentstartdate", "jobstartdate"),
        *("remotewallclocktime", "requirements", "rank", "currenttime", "x509userproxysubject"),
        *("x509userproxyvoname", "x509userproxyfirstfqan", "jobleaseduration", "currenthosts"),
    )
)
"""Attributes, in lower case, that HTCondor sets, or that say who somebody is."""


class _Pilots:
    """Empty pilots, with the names and the words of all of them."""

    def __init__(self, empty: EmptyPilots) -> None:
        self.every = empty.every

    @cached_property
    def names(self) -> dict[str, str]:
        """The attributes of any pilot, by their names in lower case."""
        names = chain.from_iterable(pilot.slot.ad.keys() for pilot in self.every)
        return {name.lower(): name for name in names if name.lower() not in ads.SECRET}

    @cached_property
    def have_gpus(self) -> bool:
        """Whether any of them has a GPU."""
        return any(pilot.template.size.gpus for pilot in self.every)

    @cached_property
    def _words(self) -> dict[str, list[str]]:
        return {}

    def words(self, name: str) -> list[str]:
        """Return the words that pilots have of an attribute, those of lists one by one."""
        if name not in self._words:
            texts = (ads.text(pilot.slot.ad, name) for pilot in self.every)
            parts = (part for text in texts if text for part in _PARTS.findall(text))
            self._words[name] = list(dict.fromkeys(parts))
        return self._words[name]


class _Changed(NamedTuple):
    """A job after some changes."""

    job: Asking
    changes: tuple[Change, ...] = ()

    def after(self, change: Change) -> _Changed:
        """Return it with one more change."""
        ad = ads.parse(str(self.job.ad))
        ad[change.name] = ads.expression(change.value)
        return _Changed(Asking(ad), (*self.changes, change))


_REQUIREMENTS, _GPU, _GPUS = "Requirements", "RequireGPUs", "requestgpus"


def edits(
    job: Asking,
    says: Attributes,
    empty: EmptyPilots,
    places: Sequence[JobPlace],
    most: int,
    free: Sequence[EmptyPilot] = (),
) -> tuple[Edit, ...]:
    """Return changes with which a job would match if it does not, the smallest first.

    ``places`` are what the job and these pilots say of each other; of those that keep it away by
    the same, up to ``most`` are looked at, the nearest first.  ``free`` are slots that take jobs
    now: what fits one of these comes before what fits an empty pilot, if it is at least half of it.
    """
    if any(place.matches and not place.untold for place in places):
        return ()
    pilots = _Pilots(empty)
    near = _nearest(job, pilots.every, places)[:most]
    ranked = _ranked(job, near, pilots, says)
    free = _telling(free, ranked, pilots)
    if ranked and not _fitting(ranked[0], free):
        near = _nearest(job, free, [job.at(slot) for slot in free])[:most]
        now = (new for new in _ranked(job, near, pilots, says) if _is_nearly(new, ranked[0]))
        ranked = [*islice(now, 1), *ranked]
    return tuple(_edit(changed, pilots, free) for changed in ranked[:_KEPT])


def _ranked(
    job: Asking, near: Iterable[EmptyPilot], pilots: _Pilots, says: Attributes
) -> list[_Changed]:
    """Return a job with the changes that each pilot needs: of pilots that are seen, the smallest.

    Then those of other pilots: what these would refuse is not known.
    """
    by_changes: dict[tuple[tuple[str, str], ...], tuple[bool, _Changed]] = {}
    for pilot in near:
        changed = _mended(_Changed(job), pilot, pilots, says)
        if changed is not None:
            made = tuple((change.name, change.value) for change in changed.changes)
            by_changes.setdefault(made, (pilot.template.evidence == "estimated", changed))
    ranked = sorted(by_changes.values(), key=lambda pair: (pair[0], _weight(pair[1].changes)))
    return [changed for _, changed in ranked]


def _telling(
    free: Sequence[EmptyPilot], ranked: Iterable[_Changed], pilots: _Pilots
) -> Sequence[EmptyPilot]:
    """Return slots with attributes under other names, by their kinds: no query asked for these."""
    named = {change.now for job in ranked for change in job.changes if change.kind == "name"}
    if not named:
        return free
    kinds = {(pilot.template.entry, pilot.template.group): pilot.slot.ad for pilot in pilots.every}
    slots = []
    for slot in free:
        ad = ads.parse(str(slot.slot.ad))
        kind = kinds.get((slot.template.entry, slot.template.group), ad)
        for name in named:
            if name in kind and name not in ad:
                ad[name] = kind.lookup(name)
        slots.append(slot._replace(slot=Values(ad)))
    return slots


def _fitting(changed: _Changed, free: Iterable[EmptyPilot]) -> int:
    """Return how many free slots would take a job that was changed."""
    return sum(changed.job.at(slot).matches for slot in free)


def _is_nearly(changed: _Changed, other: _Changed) -> bool:
    """Return whether changes are those of another, and ask for half as much at least.

    A number that the job wants of a pilot may be any that a pilot has.
    """
    pairs = list(zip(changed.changes, other.changes, strict=False))
    return len(changed.changes) == len(other.changes) and all(
        (mine.name, mine.kind) == (theirs.name, theirs.kind)
        and (
            mine.value == theirs.value
            or mine.kind == "number"
            or (mine.kind == "request" and float(mine.now) * 2 >= float(theirs.now))
        )
        for mine, theirs in pairs
    )


def _nearest(
    job: Asking, pilots: Iterable[EmptyPilot], places: Iterable[JobPlace]
) -> list[EmptyPilot]:
    """Return pilots that do not match, the nearest first; of those that are alike the first."""
    kinds: dict[Hashable, tuple[tuple[bool, bool, int], EmptyPilot]] = {}
    for place, pilot in zip(places, pilots, strict=True):
        if not place.matches:
            texts = (*(job.clauses[i] for i in place.blocked), *place.refusals)
            values = tuple(pilot.slot[name][0] for name in references(*texts).names)
            order = place.evidence == "estimated", bool(place.refusals), len(texts)
            kinds.setdefault((texts, values, pilot.template.size), (order, pilot))
    return [pilot for _, pilot in sorted(kinds.values(), key=lambda pair: pair[0])]


def _mended(
    changed: _Changed, pilot: EmptyPilot, pilots: _Pilots, says: Attributes
) -> _Changed | None:
    """Return a job with the changes with which a pilot matches; None: none were found."""
    place = changed.job.at(pilot)
    while not place.matches:
        if len(changed.changes) >= _MOST_CHANGES:
            return None
        own = bool(place.blocked)
        text = changed.job.clauses[place.blocked[0]] if own else place.refusals[0]
        wrong = len(place.blocked) + len(place.refusals)
        here = _Clause(changed.job, text, own, pilot.slot, says)
        alone = ((change,) for change in _proposals(here, pilots))
        for proposed in chain(alone, _fewer_gpus(here, pilots)):
            after = reduce(_Changed.after, proposed, changed)
            now = after.job.at(pilot)
            if len(now.blocked) + len(now.refusals) < wrong:
                changed, place = after, now
                break
        else:
            return None
    return changed


_WEIGHTS: Mapping[ChangeKind, int] = {
    "quotes": 1,
    "value": 1,
    "name": 1,
    "request": 2,
    "gpus": 2,
    "number": 3,
    "clause": 4,
}
"""How far a change is from what the user wanted."""


def _weight(changes: Sequence[Change]) -> tuple[int, float]:
    """Return how far changes are from what the user wanted, by their kinds, then by numbers."""
    numbers = (change for change in changes if change.kind in ("request", "number"))
    pairs = [(float(change.was), float(change.now)) for change in numbers]
    far = sum(abs(was - now) / max(abs(was), abs(now)) for was, now in pairs)
    return sum(_WEIGHTS[change.kind] for change in changes), far


def _edit(changed: _Changed, pilots: _Pilots, free: Sequence[EmptyPilot]) -> Edit:
    every = (changed.job.at(pilot) for pilot in (*pilots.every, *free))
    places = [place for place in every if place.matches]
    opened = tuple(dict.fromkeys((place.entry, place.group) for place in places))
    sure = any(place.evidence == "measured" for place in places)
    return Edit(changed.changes, opened, sure, _fitting(changed, free))


class _Clause(NamedTuple):
    """A clause that keeps a job from a pilot: the job's ``own``, or of START."""

    job: Asking
    text: str
    own: bool
    slot: Values
    says: Attributes

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes to which it refers, in lower case, also by others of the job."""
        return self.job.values.closure(references(self.text).names).names

    @property
    def mine(self) -> list[str]:
        """Those of the job that a user sets."""
        return [name for name in self.names if name in self.job.ad and name not in _NOT_A_USERS]

    @property
    def wanted_gpus(self) -> tuple[str, ...]:
        """The clauses of RequireGPUs, if it refers to these."""
        refers = self.own and _GPU.lower() in self.names and _GPU in self.job.ad
        return clauses.attribute_clauses(self.job.ad, _GPU) if refers else ()

    def with_gpus(self, part: str, instead: str, was: str, now: str) -> Change:
        """Return the change of RequireGPUs with something else for a part."""
        kept = _all(instead if other == part else other for other in self.wanted_gpus)
        return Change(_GPU, kept, "gpus", part, was, now)

    def has_gpus(self, parts: Iterable[str]) -> bool:
        """Return whether the clause holds if that alone is wanted of GPUs."""
        clause, ad = ads.expression(self.text), ads.parse(str(self.job.ad))
        ad[_GPU] = ads.expression(_all(parts))
        return bool(clause and matching.holds(clause, ad, self.slot.ad, untold=False))

    @property
    def literals(self) -> list[str]:
        return _LITERAL.findall(self.text)

    def change(self, name: str, value: str, kind: ChangeKind, was: str, now: str) -> Change:
        """Return the change of an attribute, as the job writes it, or HTCondor."""
        spelt = next((request for request in _REQUESTS if request.lower() == name), name)
        there = (key for key in self.job.ad.keys() if key.lower() == name)  # noqa: SIM118
        return Change(next(there, spelt), value, kind, self.text, was, now)

    def rewritten(
        self, kind: ChangeKind, instead: str = "", was: str = "", now: str = ""
    ) -> Change:
        """Return the change of Requirements with something else for the clause; empty: nothing."""
        whole = _all(instead if clause == self.text else clause for clause in self.job.clauses)
        return Change(_REQUIREMENTS, whole, kind, self.text, was, now)


def _all(parts: Iterable[str]) -> str:
    return " && ".join(f"({part})" for part in parts if part) or "true"


def _proposals(here: _Clause, pilots: _Pilots) -> Iterator[Change]:
    """Yield changes that may mend a clause, the most careful first."""
    yield from _without_quotes(here)
    yield from _other_words(here, pilots)
    if here.own:
        yield from _other_names(here, pilots)
        yield from _other_gpus(here)
    yield from _other_amounts(here, pilots)
    yield from _any_gpus(here)
    if here.own:
        yield from _other_bounds(here)
        asks = any(name.startswith("request") for name in references(here.text).names)
        if not asks and not OFFERED.search(here.text):
            yield here.rewritten("clause")


def _without_quotes(here: _Clause) -> Iterator[Change]:
    for name in here.mine:
        word = ads.text(here.job.ad, name)
        if word is not None and _NUMERIC.fullmatch(word):
            yield here.change(name, word, "quotes", f'"{word}"', word)


def _other_words(here: _Clause, pilots: _Pilots) -> Iterator[Change]:
    """Yield words that are spelt like those that pilots have, or for which START looks."""
    there = [word for name in here.names for word in pilots.words(name)]
    if not here.own:
        there += [part for literal in here.literals for part in _PARTS.findall(literal)]
    for name in here.mine:
        word = ads.text(here.job.ad, name)
        if word and (new := _spelt(word, there)):
            yield here.change(name, ads.quoted(new[0]), "value", *new[1:])
    for literal in here.literals if here.own else ():
        if new := _spelt(literal, there):
            instead = here.text.replace(f'"{literal}"', ads.quoted(new[0]))
            yield here.rewritten("value", instead, *new[1:])


def _spelt(text: str, there: Sequence[str]) -> tuple[str, str, str] | None:
    """Return a text with the words instead that are spelt alike, and the first of these.

    Words that differ in their digits alone mean something else.
    """
    lower = {word.lower(): word for word in there}
    replaced: list[str] = []

    def instead(match: re.Match[str]) -> str:
        word = match[0]
        if word in there:
            return word
        for close in difflib.get_close_matches(word.lower(), lower, 1, _ALIKE):
            if close == word.lower() or _letters(close) != _letters(word.lower()):
                replaced.extend((word, lower[close]))
                return lower[close]
        return word

    new = _PARTS.sub(instead, text)
    return (new, replaced[0], replaced[1]) if replaced else None


def _letters(word: str) -> str:
    return re.sub("[0-9]", "", word)


def _other_names(here: _Clause, pilots: _Pilots) -> Iterator[Change]:
    """Yield attributes of pilots that are spelt like one that neither pilots nor the job have."""
    for name in here.names:
        if name in pilots.names or name in here.job.ad:
            continue
        for close in difflib.get_close_matches(name, pilots.names, 1, _ALIKE):
            new, pattern = pilots.names[close], rf"(?<!\w){re.escape(name)}(?!\w)"
            was = re.search(pattern, here.text, re.IGNORECASE)
            instead = re.sub(pattern, new, here.text, flags=re.IGNORECASE)
            yield here.rewritten("name", instead, was[0] if was else name, new)


def _other_gpus(here: _Clause) -> Iterator[Change]:
    """Yield what the GPUs of a pilot have of a property, instead of what the job wants of them."""
    for part in here.wanted_gpus:
        for value in _of_devices(here.slot, references(part).names):
            for number, new in _with_number(part, value):
                yield here.with_gpus(part, new, number, _written(value))


def _any_gpus(here: _Clause) -> Iterator[Change]:
    """Yield what the job wants of GPUs, each part as a pilot's GPUs have it besides, or without."""
    kept: dict[str, str] = {}
    for part in here.wanted_gpus:
        values = _of_devices(here.slot, references(part).names)
        others = (new for value in values for _, new in _with_number(part, value))
        tried = (form for form in (part, *others) if here.has_gpus((*kept.values(), form)))
        kept[part] = next(tried, "")
    changed = {was: now for was, now in kept.items() if was != now}
    was, now = (" && ".join(filter(None, some)) for some in (changed, changed.values()))
    if changed:
        yield Change(_GPU, _all(kept.values()), "gpus", was, was, now)


def _fewer_gpus(here: _Clause, pilots: _Pilots) -> Iterator[tuple[Change, ...]]:
    """Yield fewer GPUs together with what the job wants of these, if there are too few of any."""
    if not here.wanted_gpus or here.has_gpus(()):
        return
    any_of_them = _Changed(here.job).after(Change(_GPU, "true", "gpus", "", "", "")).job
    for fewer in _other_amounts(here._replace(job=any_of_them), pilots):
        job = _Changed(here.job).after(fewer).job
        yield from ((fewer, change) for change in _any_gpus(here._replace(job=job)))


def _of_devices(slot: Values, names: Iterable[str]) -> list[float]:
    """Return the numbers that the GPUs of a pilot have of properties, the largest first."""
    devices = ads.evaluate(slot.ad, "AvailableGPUs")
    number = min(len(devices), _MOST_GPUS) if isinstance(devices, list) else 0
    texts = (f"AvailableGPUs[{i}].{name}" for i in range(number) for name in names)
    values = (ads.value(slot.ad, text) for text in texts)
    return sorted({float(value) for value in values if isinstance(value, (int, float))})[::-1]


def _other_amounts(here: _Clause, pilots: _Pilots) -> Iterator[Change]:
    """Yield numbers of the job's attributes with which a clause holds, the nearest first.

    Numbers that a clause names, or a pilot has, are tried, and the least, and what is nearer.
    What asks for 1 or more stays at 1 at least; of GPUs only if any pilot has one.
    """
    clause, job, slot = ads.expression(here.text), here.job.ad, here.slot.ad
    theirs = (ads.number(slot, name) for name in here.names)
    bounds = {*_numbers(here.text), *(value for value in theirs if value is not None)}
    near = {float(int(bound)) + more for bound in bounds for more in (-1, 0, 1)}
    asked = [name for name in here.names if name.startswith("request") and name not in job]
    walltimes = {*here.says.walltime_minutes, *here.says.walltime_seconds}
    timed = {name.lower() for name in walltimes}
    for name in (*here.mine, *asked) if clause is not None else ():
        now = ads.number(job, name) if name in job else 0.0
        if now is None or isinstance(ads.evaluate(job, name), bool):
            continue
        changed = ads.parse(str(job))
        sides = (changed, slot) if here.own else (slot, changed)

        def holds(value: float, name: str = name, sides: _Sides = sides) -> bool:
            sides[not here.own][name] = int(value)
            return bool(matching.holds(clause, *sides, untold=False))

        least = 1.0 if now >= 1 and (name != _GPUS or pilots.have_gpus) else 0.0
        tried = sorted((v for v in near if v >= least and v != now), key=lambda v: abs(v - now))
        best = next(filter(holds, (*tried, least)), None)
        if best is not None:
            best = _bound(best, now, holds)
            if best < now and (name == "requestdisk" or TIMED.search(here.text)):
                best *= 0.9  # of time, and of disks, less will be left
            kind: ChangeKind = "request" if name in timed | _REQUESTED else "number"
            yield here.change(name, f"{best:.0f}", kind, _written(now), f"{best:.0f}")


def _bound(good: float, bad: float, holds: Callable[[float], bool]) -> float:
    """Return a whole number that holds, and next to which one does not; ``good`` does."""
    for _ in range(_MOST_HALVES):
        middle = float(int((good + bad) / 2))
        if middle in (good, bad):
            break
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return good


def _other_bounds(here: _Clause) -> Iterator[Change]:
    """Yield a clause with the number that a pilot has instead of one that it names."""
    for name in here.names:
        value = ads.number(here.slot.ad, name)
        if value is not None and name not in here.job.ad:
            for number, new in _with_number(here.text, value):
                yield here.rewritten("number", new, number, _written(value))


def _with_number(text: str, value: float) -> Iterator[tuple[str, str]]:
    """Yield each number of an expression, and the expression with another instead."""
    for hit in _NUMBER.finditer(text):
        if not _in_literal(text, hit.start()):
            yield hit[0], text[: hit.start()] + _written(value) + text[hit.end() :]


def _numbers(text: str) -> list[float]:
    return [float(hit[0]) for hit in _NUMBER.finditer(text) if not _in_literal(text, hit.start())]


def _in_literal(text: str, at: int) -> bool:
    return any(hit.start() < at < hit.end() for hit in _LITERAL.finditer(text))


def _written(value: float) -> str:
    return f"{value:.15g}"


_REQUESTS = ("RequestCpus", "RequestMemory", "RequestGPUs", "RequestDisk")
_REQUESTED = {name.lower() for name in _REQUESTS}
