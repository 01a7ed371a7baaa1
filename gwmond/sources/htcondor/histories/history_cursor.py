"""How far the records of a history have been taken, as a text that the ledger keeps.

A history is read from its newest record backwards; ``since`` ends that at the first record for
which it is true.  So a cursor names records: ``newest``, up to which all is taken, and ``older``,
the one before.  Asked for all ``since`` the older one, a daemon must return the newest again; if it
does not, the file has been rotated away or truncated, and what stood between is lost: a gap.

A backlog larger than the limit is drained oldest first, by windows of time, for what is asked from
the newest backwards would be cut off at its old end.  Its state:

- all records of the backlog with a time before ``done`` are taken (of the second ``done`` itself,
  the first ``part`` of ``parts``);
- each window is asked for together with the ``anchor``, a record taken before that stands before
  all that is not taken yet: the cursor's newest, or one that is older than ``done`` by more than
  the disorder in a file; it proves that nothing of these was rotated away;
- the windows are planned so that each has about as many records as are asked for at once; one that
  was planned wrong (more was written, or lies deeper than was looked at) is halved until it fits;
- at the end the cursor becomes ``target``: the newest records when the draining began, so that what
  was written meanwhile comes next.

Invariants: a state is never ahead of the records returned with it or before; giving records twice
is allowed; every step ends in a smaller window, or further on.

Units: seconds since the epoch.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import msgspec

from gwmond.sources.htcondor import ads
from gwmond.sources.htcondor.histories.histories import KINDS, written

if TYPE_CHECKING:
    from collections.abc import Iterable

    import classad2

    from gwmond.model.facts import Gap, Problem
    from gwmond.model.runs.run_facts import JobRecord

Value: TypeAlias = str | int | bool | None

FAR = 2**40
MAX_PARTS = 4096
_FILL = 0.95  # of what a window may have, how much is planned
DISORDER_S = 3600
"""Records are written by several processes; none has a time later than this before one written
after it."""


class Identity(NamedTuple):
    """What a record is identified by, ``History.key``, and its time."""

    values: tuple[Value, ...]
    time: int


class Pair(NamedTuple):
    """The newest record taken, and the one before that is another."""

    newest: Identity | None = None
    older: Identity | None = None


class Drain(NamedTuple):
    """A backlog being taken; see the module.

    ``since``: only records newer than the cursor's ``older`` are asked for.  ``start``: where most
    of the backlog begins; ``end``: windows beyond are open.  ``edges``: where the next windows end,
    ascending.  ``candidate``: a record that becomes the anchor once it is old enough.
    """

    since: bool
    anchor: Identity | None
    start: int
    done: int
    end: int
    target: Pair
    edges: tuple[int, ...]
    parts: int = 1
    part: int = 0
    candidate: Identity | None = None

    @property
    def until(self) -> int | None:
        """Return where the next window ends, None if it is open."""
        return next((edge for edge in self.edges if edge > self.done), None)

    def narrower(self) -> Drain:
        """Return it with half of the window before the rest, as this one has too many records."""
        if self.parts > 1 or self.until == self.done + 1:
            return self._replace(parts=self.parts * 2, part=0)
        until = self.until or (self.end + 1 if self.done <= self.end else FAR)
        middle = self.done + max(1, (until - self.done) // 2)
        return self._replace(edges=(middle, *self.edges))

    def further(self, latest: Identity | None, disorder: int) -> Drain | None:
        """Return it after a window, of which the last record is ``latest``; None: it is taken."""
        after = self._replace(candidate=self.candidate or latest)
        if after.part + 1 < after.parts:
            return after._replace(part=after.part + 1)
        if self.until is None:
            return None
        left = tuple(edge for edge in self.edges if edge > self.until)
        after = after._replace(done=self.until, edges=left, parts=1, part=0)
        return after._anchored(disorder)

    def _anchored(self, disorder: int) -> Drain:
        """Take the candidate as the anchor once nothing to come can stand before it."""
        if self.candidate is None or self.candidate.time >= self.done - disorder:
            # Without any other one, a younger one shows a loss too, but for what stands before it.
            return self._replace(anchor=self.anchor or self.candidate)
        return self._replace(anchor=self.candidate, candidate=None)


class HistoryLimits(NamedTuple):
    """How much one call takes: ``records`` (about) and ``queries``.

    - ``new``: more records than these since the cursor are a backlog.
    - ``lookback_s``: a call that has no state asks for records that are at most so old.
    - ``disorder_s``: how far the times of records can be out of their order in the file.
    - ``environment``: whether to look for a traceparent in jobs' environments.
    """

    records: int = 20_000
    new: int = 20_000
    queries: int = 24
    lookback_s: float = 7 * 86400
    disorder_s: int = DISORDER_S
    environment: bool = False


class Progress(NamedTuple):
    """Of a backlog: all from ``from_us`` to ``done_us`` is taken; at ``target_us`` it ends."""

    from_us: int
    done_us: int
    target_us: int


class HistoryAnswer(NamedTuple):
    """What one call returned.

    - ``state``: to be stored with these records, and given to the next call.
    - ``complete_us``: all that was written before is known; None while ``behind``.
    - ``read``: how many records the daemon sent, of which ``records`` are those of runs on slots.
    - ``kept``: False if the daemon keeps no such history.
    """

    records: tuple[JobRecord, ...]
    state: str
    complete_us: int | None
    behind: bool
    progress: Progress | None
    gap: Gap | None
    problems: tuple[Problem, ...]
    read: int
    kept: bool = True


class HistoryState(NamedTuple):
    """A cursor.  ``floor``: without any record known, those of a time before are not asked for.

    ``lost_from``: the time of a record that should have come back, until the gap is reported.
    """

    taken: Pair
    floor: int
    drain: Drain | None = None
    lost_from: int | None = None

    def dump(self) -> str:
        """Return the state as text."""
        return json.dumps(self, separators=(",", ":"))


def load(text: str, floor: int) -> HistoryState:
    """Return the state that a text says; an empty one: nothing has been taken.

    A draining that an earlier version began begins anew, from the cursor.  Raises ValueError for a
    text that is none.
    """
    if not text:
        return HistoryState(Pair(), floor)
    try:
        state = json.loads(text)
        match state:
            case [taken, began, [*drain], lost] if len(drain) != len(Drain._fields):
                state = taken, began, None, lost
        return msgspec.convert(state, HistoryState)
    except ValueError as error:
        raise ValueError(f"not the state of a cursor: {text[:100]} ({error})") from None


def is_backlog(text: str) -> bool:
    """Return whether the state that a text says is of a backlog that is not taken whole."""
    try:
        return load(text, 0).drain is not None
    except ValueError:
        return False


def identity(kind: str, ad: classad2.ClassAd) -> Identity | None:
    """Return what identifies this record, None if nothing does."""
    values: list[Value] = []
    for name in KINDS[kind].key:
        value = ads.evaluate(ad, name)
        values.append(value if isinstance(value, (str, int)) else None)
    return Identity(tuple(values), written(kind, ad)) if values[0] is not None else None


def expression(kind: str, record: Identity) -> str:
    """Return the expression that is true for this record."""
    pairs = zip(KINDS[kind].key, record.values, strict=True)
    return "(" + " && ".join(f"{name} =?= {_literal(value)}" for name, value in pairs) + ")"


def _literal(value: Value) -> str:
    import classad2  # noqa: PLC0415 (only ever in a child)

    if isinstance(value, str):
        return str(classad2.quote(value))
    return "undefined" if value is None else str(value).lower()


def edges(times: Iterable[int], records: int) -> tuple[int, ...]:
    """Return where windows end that have about so many of the records with these times."""
    ordered = sorted(times)
    stride = max(1, int(records * _FILL))
    return tuple(dict.fromkeys(ordered[stride::stride]))


def newest_two(records: Iterable[Identity | None], before: Pair) -> Pair:
    """Return the two newest records that differ, of some newest first and those known before."""
    distinct: list[Identity] = []
    for record in (*records, *before):
        if record is not None and record not in distinct:
            distinct.append(record)
        if len(distinct) == 2:
            break
    return Pair(*distinct)


def window(kind: str, drain: Drain) -> str:
    """Return the constraint for the next window; a record without a time has 0."""
    time = f"({KINDS[kind].time} ?: 0)"
    parts = [f"{time} >= {drain.done}"] if drain.done else []
    if drain.until is not None:
        parts.append(f"{time} < {drain.until}")
    if drain.parts > 1:
        parts.append(f"(ClusterId + ProcId) % {drain.parts} == {drain.part}")
    clause = " && ".join(parts) or "true"
    return clause if drain.anchor is None else f"({clause}) || {expression(kind, drain.anchor)}"
