"""Source: one directory of a factory, read on from where reading stopped.

Pilots' outputs are read whole, stdout and stderr together, in the order in which they were last
changed (ctime, which nobody can set back); again if one of them changes.  So the cursor is the
change of the last pilot taken, however many pilots there are.  What changed within the last
``SETTLE_S`` is perhaps being written, and waits.  A pilot of which a file cannot be read for now
(any error but that it is gone) is not known yet: each call that has room tries it again, whatever
its age by then (``unread``).  Logs are followed by offset (``tail``).

Invariants: a state is never ahead of the facts returned with it; every call that is ``behind``
got further; the same facts may come again (a pilot is known by its name), none is left out; one
file's fault is a problem that names it, and the rest goes on.  Memory is bounded by the largest
pilot that is read whole (``pilot_reading``) and by ``FileLimits``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gwmond.model.facts import Problem
from gwmond.model.problem_names import ProblemName
from gwmond.model.times import SECOND_US
from gwmond.sources.gwms import directory_cursor, layout, log_kinds, pilot_output
from gwmond.sources.gwms.directory_cursor import (
    DirectoryState,
    FileAnswer,
    FileLimits,
)
from gwmond.sources.gwms.pilot_reading import PilotReading, SettledPilot
from gwmond.sources.gwms.rare import same_file, unread
from gwmond.sources.gwms.rare.unread import Number, Position, UnreadSpan

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from datetime import tzinfo

    from gwmond.sources.gwms.layout import Found
    from gwmond.sources.gwms.log_kinds import LogKind

SETTLE_S = 5
FUTURE_S = 3600
_FIRST: Position = (1, 0, 0)
"""Before all pilots; a state before that has not come to them yet."""


def fetch(
    directory: str,
    cursor_state: str,
    limits: FileLimits,
    now: float,
    logs: tuple[LogKind, ...] = log_kinds.FACTORY,
    zone: tzinfo | None = None,
) -> FileAnswer:
    """Read on in one directory; ``now``: the time (epoch seconds) just before.

    ``zone``: of the factory's clock, for times without a zone; None: this host's.

    A state that is not understood (``bad_state``) is taken as none; of a directory that cannot be
    listed now nothing is read, and the state stays.
    """
    problems: list[Problem] = []
    state = directory_cursor.read(cursor_state, layout.shown(directory), problems)
    task = _DirectoryReading(directory, limits, now, problems, zone)

    def wanted(name: str) -> bool:
        return bool(pilot_output.job_file(name)) or log_kinds.of(name, logs) is not None

    unseen: list[str] = []
    try:
        listed = list(layout.files_in(directory, problems, wanted, unseen))
    except OSError as error:
        return _nothing(
            cursor_state, [Problem(layout.shown(directory), ProblemName.UNREADABLE, str(error))]
        )
    if unseen and not listed and not state.begun:
        return _nothing(cursor_state, problems)
    files = same_file.once(directory, listed, problems, wanted, unseen)
    named = [(found, log_kinds.of(found.name, logs)) for found in files]
    kinds = [(found, kind) for found, kind in named if kind is not None]
    kinds += task.renamed([found for found, kind in named if kind is None], state, logs)
    known = task.follow(sorted(kinds, key=lambda one: one[0].status.st_mtime), state)
    after, left = task.pilots(files, unseen, state)
    return FileAnswer(
        facts=tuple(task.facts),
        state=after._replace(logs=tuple(known)).dump(),
        complete_us=None if task.full or left.unknown else _complete_us(after, now),
        behind=task.full,
        left=left.pilots,
        problems=tuple(problems),
        size=task.size,
        weight=task.weight,
        samples=tuple(task.samples),
    )


def _nothing(state: str, problems: Sequence[Problem]) -> FileAnswer:
    return FileAnswer((), state, None, False, 0, tuple(problems), 0)


def _complete_us(state: DirectoryState, now: float) -> int:
    """Return until when all that was written is known: up to the first pilot that waits."""
    times = [
        int((now - SETTLE_S) * SECOND_US),
        *(span.first[0] * SECOND_US // 10**9 for span in state.spans),
    ]
    return min(times)


class _Left(NamedTuple):
    """How many pilots are still to be read, and of how many it is not known when they changed."""

    pilots: int
    unknown: int


class _DirectoryReading(PilotReading):
    """One call of ``fetch``."""

    _numbers: frozenset[Number] = frozenset()

    def pilots(
        self, files: Sequence[Found], unseen: Iterable[str], state: DirectoryState
    ) -> tuple[DirectoryState, _Left]:
        """Read pilots on; return how far, but for logs, and what is left."""
        first = not state.begun or state.taken < _FIRST
        if state.taken[0] > (self._now + FUTURE_S) * 1e9:
            self._problem(self._directory, ProblemName.CLOCK_SET_BACK, "read again from the begin")
            state = state._replace(taken=_FIRST, spans=())
        there = self._settled(files, first=first)
        hidden = {named[:2] for name in unseen if (named := pilot_output.job_file(name))}
        numbers = hidden | (self._numbers & set(state.numbers))
        seen = [pilot for pilot in there if pilot.number not in hidden]
        later = [pilot for pilot in seen if pilot.position > state.taken]
        if len(numbers) > unread.MAX_NUMBERS:
            self._problem(self._directory, ProblemName.TOO_MANY_UNREAD, "no pilot is read, for now")
            return state, _Left(len(later) + len(numbers), len(numbers))
        positions = [pilot.position for pilot in there]
        inside = set(unread.within(state.spans, positions))
        after, read = self._later(later, state)
        if not self.full:  # what is new from now on is read, however old it is by then
            after = after._replace(taken=max(after.taken, _FIRST))
        again = [
            pilot
            for pilot in seen
            if pilot.position <= state.taken
            and (pilot.position in inside or pilot.number in numbers)
        ]
        inner = {
            position for span in after.spans for position in unread.within([span], positions)[1:]
        }
        read |= self._again(again, inner, unread.MAX_SPANS - len(after.spans))
        spans = unread.without(after.spans, positions, read)
        numbers -= {position[1:] for position in read}
        waits = {position[1:] for position in unread.within(spans, positions)} | numbers
        ahead = sum(pilot.position > after.taken for pilot in later)
        after = after._replace(spans=spans, numbers=tuple(sorted(numbers)))
        return after, _Left(ahead + len(waits), len(numbers))

    def _settled(self, files: Sequence[Found], *, first: bool) -> list[SettledPilot]:
        """Return the pilots that have settled, in the order of their last change.

        ``first``: none has been taken yet, so that ``lookback_s`` counts.
        """
        pairs: dict[Number, dict[str, Found]] = {}
        for found in files:
            named = pilot_output.job_file(found.name)
            if named is not None:
                pairs.setdefault((named.cluster, named.proc), {})[named.kind] = found
            elif found.name.startswith("job.") and not found.name.isprintable():
                self._problem(found.path, ProblemName.ODD_NAME, "not read")
        newest, since = (self._now - SETTLE_S) * 1e9, self._now - self._limits.lookback_s
        future = 0
        settled = []
        for number, pair in pairs.items():
            changed = max(file.status.st_ctime_ns for file in pair.values())
            if changed > newest:
                future += changed > newest + FUTURE_S * 1e9
                continue
            old = first and max(file.status.st_mtime for file in pair.values()) < since
            settled.append(SettledPilot((changed, *number), pair.get("out"), pair.get("err"), old))
        if future:
            self._problem(self._directory, ProblemName.FUTURE_FILES, f"{future} pilots")
        self._numbers = frozenset(pairs)
        self.outs = frozenset(number for number, pair in pairs.items() if "out" in pair)
        return sorted(settled)

    def _later(
        self, pilots: Sequence[SettledPilot], state: DirectoryState
    ) -> tuple[DirectoryState, set[Position]]:
        """Read pilots that are after the last one taken; return how far, and which were read."""
        taken, spans, read = state.taken, list(state.spans), set[Position]()
        follows = bool(spans) and spans[-1].last == taken
        for pilot in pilots:
            if self.full:
                break
            if pilot.old or self.read_pilot(pilot):
                read.add(pilot.position)
                follows = False
            elif follows or len(spans) < unread.MAX_SPANS:
                first = spans.pop().first if follows else pilot.position
                spans.append(UnreadSpan(first, pilot.position))
                self._took(self.spent, 1)
                follows = True
            else:
                self._problem(
                    self._directory, ProblemName.TOO_MANY_UNREAD, "what is later is not read yet"
                )
                break
            taken = pilot.position
        return state._replace(taken=taken, spans=tuple(spans)), read

    def _again(
        self, pilots: Sequence[SettledPilot], inner: Collection[Position], room: int
    ) -> set[Position]:
        """Read pilots that could not be read before; return which were.

        If they are more than can be tried in one call, from another one on at another time.  One
        that is read and is ``inner``, with another before it in its span, makes two spans of it,
        if there is room.
        """
        most, size = self._limits.facts - self.weight, self._limits.size - self.size
        read, tried = set[Position](), 0
        start = int(self._now) % len(pilots) if 0 < most < len(pilots) else 0
        before = False
        for pilot in (*pilots[start:], *pilots[:start]):
            splits = not before and pilot.position in inner
            before = False
            if self.full:
                break
            if tried >= most or size <= 0:
                self._problem(
                    self._directory, ProblemName.UNREADABLE, "more were not tried this time"
                )
                break
            if splits and not room:
                continue
            if self.read_pilot(pilot):
                read.add(pilot.position)
                before = True
                room -= splits
            else:
                tried += 1
                size -= self.spent
        return read
