"""Histories and claims of a recording, answered as live daemons do.

A history is all that was recorded up to the instant of the replay, newest first.  Of the pass
before it has what the one who asks has read already: if ``since`` names a record of it, that
record is found there; else the history begins with this pass.  So a cursor goes on from one pass to
the next, and whoever begins reads nothing of a day that was not.

Blocks of frames are read from the newest backwards, as far as needed; only the attributes of the
expressions are parsed, until a record is known to be wanted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from gwmond.model.problem_names import ProblemName
from gwmond.sources.child import QueryError
from gwmond.sources.htcondor import ads
from gwmond.sources.recording.deltas import Ad
from gwmond.sources.recording.shifted import moved

if TYPE_CHECKING:
    import classad2

    from gwmond.sources.htcondor.access import Query

_NAME = re.compile(r'"(?:[^"\\]|\\.)*"|[A-Za-z_]\w*')
_JOB = re.compile(r"#([0-9]+)\.([0-9]+)#")
_IDS = {"clusterid": 1, "procid": 2}


class Condition:
    """An expression, to be evaluated on what it needs of a record; an empty one never holds."""

    def __init__(self, text: str) -> None:
        import classad2  # noqa: PLC0415 (only ever in a child)

        self.names = frozenset(
            found[0].lower() for found in _NAME.finditer(text) if found[0][0] != '"'
        )
        try:
            self._tree = classad2.ExprTree(text) if text else None
        except Exception as error:  # a ClassAdException has no common base
            raise QueryError(ProblemName.BAD_CONSTRAINT, " ".join(str(error).split())) from None

    def holds(self, ad: classad2.ClassAd) -> bool:
        """Return whether it is true for an ad."""
        return self._tree is not None and self._tree.eval(ad) is True


class ReplayMoment(NamedTuple):
    """An instant of a replay: the frame, the frames of a whole pass, and the pass's shift.

    ``block`` returns the new records of each frame of a block; None: the schedd did not answer.
    """

    frame: int
    frames: int
    frames_a_block: int
    shift: int
    duration: int
    block: Callable[[int], Sequence[Sequence[Ad] | None]]


def history(moment: ReplayMoment, query: Query, match: int, since: str) -> list[classad2.ClassAd]:
    """Return at most ``match`` records (-1: all), newest first; see ``Access.history``."""
    stop, wanted = Condition(since), Condition(query.constraint or "true")
    answer = _Answer(stop, wanted, frozenset(name.lower() for name in query.projection), match)
    this = _Pass(moment, moment.frame, moment.shift)
    if answer.take(this) or not since:
        return answer.found
    before = _Pass(moment, moment.frames - 1, moment.shift - moment.duration)
    if any(stop.holds(before.small(at, stop.names)) for at in before.newest_first()):
        answer.take(before)
    return answer.found


def among(found: list[dict[str, str]], condition: str) -> list[dict[str, str]]:
    """Return those of some recorded ads for which an expression is true (empty: all)."""
    if not condition:
        return found
    wanted = Condition(condition)
    return [ad for ad in found if wanted.holds(_parsed(ad, wanted.names))]


class _Pass(NamedTuple):
    """The records of a pass up to a frame."""

    moment: ReplayMoment
    frame: int
    shift: int

    def newest_first(self) -> Iterator[Ad]:
        size = self.moment.frames_a_block
        for number in range(self.frame // size, -1, -1):
            inside = self.frame % size if number == self.frame // size else size - 1
            for new in reversed(self.moment.block(number)[: inside + 1]):
                yield from reversed(new or ())

    def small(self, record: Ad, names: frozenset[str]) -> classad2.ClassAd:
        """Return a record with some attributes only; none named: with all."""
        found = {
            name: moved(name, text, self.shift)
            for name, text in record.items()
            if not names or name.lower() in names
        }
        if names & _IDS.keys():
            _add_ids(found, record.get("GlobalJobId", ""))
        return _parsed(found, frozenset())


class _Answer:
    """What an answer has so far."""

    def __init__(
        self, stop: Condition, wanted: Condition, names: frozenset[str], match: int
    ) -> None:
        self._stop, self._wanted = stop, wanted
        self._names, self._match = names, match
        self._needed = stop.names | wanted.names
        self.found: list[classad2.ClassAd] = []

    def take(self, rows: _Pass) -> bool:
        """Take what is wanted of a pass; return whether that is all there is to be."""
        for at in rows.newest_first():
            if len(self.found) == self._match:
                return True
            small = rows.small(at, self._needed)
            if self._stop.holds(small):
                return True
            if self._wanted.holds(small):
                self.found.append(rows.small(at, self._names))
        return False


def _add_ids(ad: dict[str, str], job: str) -> None:
    """Add the numbers of a job, which are not recorded besides its global id."""
    found = _JOB.search(job)
    if found:
        ad |= {"ClusterId": found[1], "ProcId": found[2]}


def _parsed(ad: dict[str, str], names: frozenset[str]) -> classad2.ClassAd:
    parts = [f"{name} = {text}" for name, text in ad.items() if not names or name.lower() in names]
    return ads.parse("[" + "; ".join(parts) + "]")
