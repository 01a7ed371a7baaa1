"""Ads that are alike in all that an answer rests on: it is worked out once for all of them.

An expression rests on the attributes that its text names, in either ad, and on what these name in
turn.  What an expression puts together while it is evaluated (``eval``, a whole ad) cannot be read
from its text: such an answer is worked out for each ad.
"""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    import classad2

T = TypeVar("T")
_WORD = re.compile(
    r"""
    "(?:[^"\\]|\\.)*"                         # a string
    | '(?P<quoted>(?:[^'\\]|\\.)*)'           # an attribute, in quotes
    | (?<!\w)(?P<word>[a-z_]\w*)\s*(?P<after>[.(]?)
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_LINE = re.compile(r"^ {8}(\w+) = (.+)$", re.MULTILINE)
_SCOPES = frozenset(("my", "target", "self", "parent", "root", "toplevel"))
_LITERALS = frozenset(("true", "false", "undefined", "error", "is", "isnt"))
_COMPUTED = frozenset(("eval", "random"))


class References(NamedTuple):
    """The attributes that texts name, in lower case; ``complete``: they can refer to no other."""

    names: tuple[str, ...]
    complete: bool


@lru_cache(16384)  # most slots have the same expressions
def references(*texts: str) -> References:
    """Return the attributes that expressions name, in either ad.

    >>> references('TARGET.Cpus >= MY.Need && x =!= "Memory"', "ifThenElse(HasIt, true, 'My Y')")
    References(names=('cpus', 'need', 'x', 'hasit', 'my y'), complete=True)
    >>> references("eval(Text)"), references('TARGET["Cpus"]')
    (References(names=('text',), complete=False), References(names=(), complete=False))
    """
    names: dict[str, None] = {}
    complete = True
    for match in (match for text in texts for match in _WORD.finditer(text)):
        quoted, word, after = match["quoted"], (match["word"] or "").lower(), match["after"]
        if quoted is not None:
            names[quoted.lower()] = None
        elif after == "(":
            complete &= word not in _COMPUTED
        elif word in _SCOPES:
            complete &= after == "."
        elif word and word not in _LITERALS:
            names[word] = None
    return References(tuple(names), complete)


class Values:
    """What an ad has of each attribute, by names in lower case: as text, and what that names."""

    def __init__(self, ad: classad2.ClassAd) -> None:
        self.ad = ad
        try:  # to read a few attributes one by one takes as long
            self._texts = {name.lower(): text for name, text in _LINE.findall(str(ad))}
        except UnicodeDecodeError:
            self._texts = {}
        self._whole = len(self._texts) == len(ad)

    def __getitem__(self, name: str) -> tuple[str, References]:
        text = self._texts.get(name)
        if text is None:
            text = self._texts[name] = "" if self._whole else self._read(name)
        return text, references(text)

    def _read(self, name: str) -> str:
        """Return what may have more than one line, or a name in quotes."""
        try:
            return str(self.ad.lookup(name))
        except KeyError:
            return ""
        except (UnicodeDecodeError, ValueError):
            return _UNREADABLE

    def closure(self, names: Iterable[str]) -> References:
        """Return names, and all that the ad's expressions under these names refer to."""
        every = list(dict.fromkeys(names))
        seen, complete = set(every), True
        for name in every:
            _, more = self[name]
            complete &= more.complete
            new = [other for other in more.names if other not in seen]
            every += new
            seen.update(new)
        return References(tuple(every), complete)


_UNREADABLE = "eval(unreadable)"
"""Stands for what cannot be written: nobody knows to what it refers."""
_NOTHING = References((), complete=True)


class Alike:
    """What was worked out of a job and ads of slots, for all slots that are alike in it."""

    def __init__(self, job: classad2.ClassAd) -> None:
        self.job = job
        self._values = Values(job)
        self._closures: dict[References, References] = {}
        self._known: dict[Hashable, object] = {}

    @cached_property
    def left(self) -> frozenset[str]:
        """The attributes, in lower case, that say what jobs have left of a slot.

        Of the resources for which the job asks, among them any that a pool names itself.
        """
        names = (name.lower() for name in self.job.keys())  # noqa: SIM118 (as in matching)
        asked = (name.removeprefix("request") for name in names if name.startswith("request"))
        return frozenset(("cpus", "memory", "disk", "gpus", "availablegpus", *asked))

    def once(self, topic: Hashable, rests_on: References, slot: Values, work: Callable[[], T]) -> T:
        """Return what ``work`` says on a topic, or said of a slot that is alike."""
        texts = self._texts(rests_on, slot)
        if texts is None:
            return work()
        key = topic, texts
        if key not in self._known:
            self._known[key] = work()
        return cast("T", self._known[key])

    def _texts(self, rests_on: References, slot: Values) -> tuple[str, ...] | None:
        """Return all of a slot on which something rests; None where that cannot be known."""
        names, complete = self._closure(rests_on)
        every, seen, texts = list(names), set(names), list[str]()
        for name in every:
            text, more = slot[name]
            texts.append(text)
            if more != _NOTHING:
                names, whole = self._closure(more)
                complete &= whole
                new = [other for other in names if other not in seen]
                every += new
                seen.update(new)
        return tuple(texts) if complete else None

    def _closure(self, rests_on: References) -> References:
        """Return these names, and all that the job's expressions under them refer to."""
        if rests_on not in self._closures:
            names, complete = self._values.closure(rests_on.names)
            self._closures[rests_on] = References(names, complete and rests_on.complete)
        return self._closures[rests_on]
