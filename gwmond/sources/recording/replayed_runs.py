"""Histories and claims of a recording, answered as live daemons do.

A history is all that was recorded up to the instant of the replay, newest first.  Of the pass
before it has what the one who asks has read already: if ``since`` names a record of it, that
record is found there; else the history begins with this pass.  So a cursor goes on from one pass to
the next, and whoever begins reads nothing of a day that was not.

Blocks of frames are read from the newest backwards, as far as needed; only the attributes of the
expressions are parsed, until a record is known to be wanted.

Times in recorded ads are moved to when they are replayed.  All of a pass are moved by the same
whole seconds, so that what belongs together stays so: a claim's public id names the start of its
startd, and a job's global id when it was submitted.  By the latter the jobs of one pass are others
than those of the pass before, in claims and histories alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from gwmond.model.digits import is_number
from gwmond.model.problem_names import ProblemName
from gwmond.sources.child import QueryError
from gwmond.sources.htcondor import ads
from gwmond.sources.recording.deltas import Ad

if TYPE_CHECKING:
    import classad2

    from gwmond.sources.htcondor.access import Query

_NAME = re.compile(r'"(?:[^"\\]|\\.)*"|[A-Za-z_]\w*')
_JOB = re.compile(r"#([0-9]+)\.([0-9]+)#")
_IDS = {"clusterid": 1, "procid": 2}
_EPOCH = re.compile(
    r"^(DaemonStartTime|StatsLastUpdateTime|GLIDEIN_ToRetire|GLIDEIN_ToDie|GLIDEIN_Expire"
    r"|MyCurrentTime|QDate|EnteredCurrent\w+|MonitorSelfTime|LastHeardFrom"
    r"|JobStart|JobCurrent(Start|Finish)\w*|Job(Last)?StartDate|JobDisconnectedDate"
    r"|Transfer(In|Out)(Queued|Started|Finished)|CompletionDate|LastVacateTime|EpochWriteDate)$"
)
_CLAIM = re.compile(r"(?<=>#)[0-9]+(?=#)")
_WITHIN = {
    "GlobalJobId": re.compile(r'(?<=#)[0-9]+(?="$)'),
    "PublicClaimId": _CLAIM,
    "LastPublicClaimId": _CLAIM,
    "ToE": re.compile(r"(?<=\bWhen = )[0-9]+"),
}


class Condition:
    """An expression, to be evaluated on what it needs of a record; an empty one never holds."""

    def __init__(self, text: str) -> None:
        import classad2  # noqa: PLC0415 (only ever in a child)

        self.names = frozenset(
            match[0].lower() for match in _NAME.finditer(text) if match[0][0] != '"'
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
    stop, constraint = Condition(since), Condition(query.constraint or "true")
    answer = _Answer(stop, constraint, frozenset(name.lower() for name in query.projection), match)
    this = _Pass(moment, moment.frame, moment.shift)
    if answer.take(this) or not since:
        return answer.records
    before = _Pass(moment, moment.frames - 1, moment.shift - moment.duration)
    if any(stop.holds(before.small(at, stop.names)) for at in before.newest_first()):
        answer.take(before)
    return answer.records


def among(recorded: list[dict[str, str]], condition: str) -> list[dict[str, str]]:
    """Return those of some recorded ads for which an expression is true (empty: all)."""
    if not condition:
        return recorded
    constraint = Condition(condition)
    return [ad for ad in recorded if constraint.holds(_parsed(ad, constraint.names))]


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
        values = {
            name: moved(name, text, self.shift)
            for name, text in record.items()
            if not names or name.lower() in names
        }
        if names & _IDS.keys():
            _add_ids(values, record.get("GlobalJobId", ""))
        return _parsed(values, frozenset())


class _Answer:
    """What an answer has so far."""

    def __init__(
        self, stop: Condition, constraint: Condition, names: frozenset[str], match: int
    ) -> None:
        self._stop, self._constraint = stop, constraint
        self._names, self._match = names, match
        self._needed = stop.names | constraint.names
        self.records: list[classad2.ClassAd] = []

    def take(self, rows: _Pass) -> bool:
        """Take what is wanted of a pass; return whether that is all there is to be."""
        for at in rows.newest_first():
            if len(self.records) == self._match:
                return True
            small = rows.small(at, self._needed)
            if self._stop.holds(small):
                return True
            if self._constraint.holds(small):
                self.records.append(rows.small(at, self._names))
        return False


def _add_ids(ad: dict[str, str], job: str) -> None:
    """Add the numbers of a job, which are not recorded besides its global id."""
    match = _JOB.search(job)
    if match:
        ad |= {"ClusterId": match[1], "ProcId": match[2]}


def _parsed(ad: dict[str, str], names: frozenset[str]) -> classad2.ClassAd:
    kept = {name: text for name, text in ad.items() if not names or name.lower() in names}
    return ads.parse(ads.written(kept))


def moved(name: str, text: str, shift: int) -> str:
    """Return an attribute's text with its time, if it has one, moved by so many seconds.

    >>> moved("GlobalJobId", '"schedd@host#7.0#1000"', 500)
    '"schedd@host#7.0#1500"'
    """
    if _is_epoch(name):
        return str(int(text) + shift) if is_number(text) and int(text) > 0 else text
    within = _WITHIN.get(name)
    if within is None:
        return text
    return within.sub(lambda match: str(int(match[0]) + shift), text, count=1)


@cache
def _is_epoch(name: str) -> bool:
    return _EPOCH.match(name) is not None
