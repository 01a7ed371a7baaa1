"""Source: one directory of a factory, read on from where reading stopped.

Pilots' outputs are read whole, stdout and stderr together, in the order in which they were last
changed (ctime, which nobody can set back); again if one of them changes.  So the cursor is the
change of the last pilot taken, however many pilots there are.  What changed within the last
``SETTLE_S`` is perhaps being written, and waits.  A pilot of which a file cannot be read for now
(any error but that it is gone) is not known yet: it is kept in the cursor, and each call that has
room tries it again.  If more than ``MAX_UNREAD`` wait so, no later pilot is read.  Logs are
followed by offset (``tail``).

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
from gwmond.sources.gwms import directory_cursor, following, layout, pilot_output
from gwmond.sources.gwms.directory_cursor import (
    DirectoryState,
    FileAnswer,
    FileLimits,
    Number,
    Position,
)
from gwmond.sources.gwms.pilot_reading import PilotReading, SettledPilot

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import tzinfo

    from gwmond.sources.gwms.following import LogKind
    from gwmond.sources.gwms.layout import FileSeen

SETTLE_S = 5
FUTURE_S = 3600
MAX_UNREAD = 200
_FIRST: Position = (1, 0, 0)
"""Before all pilots; a state before that has not come to them yet."""


def fetch(
    directory: str,
    cursor_state: str,
    limits: FileLimits,
    now: float,
    logs: tuple[LogKind, ...] = following.FACTORY,
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

    def wants(name: str) -> bool:
        return bool(pilot_output.job_file(name)) or following.kind_of(name, logs) is not None

    unseen: list[str] = []
    try:
        listed = list(layout.files_in(directory, problems, wants, unseen))
    except OSError as error:
        return _nothing(
            cursor_state, [Problem(layout.shown(directory), ProblemName.UNREADABLE, str(error))]
        )
    if unseen and not listed and not state.begun:
        return _nothing(cursor_state, problems)
    named = [(file, following.kind_of(file.name, logs)) for file in listed]
    kinds = [(file, kind) for file, kind in named if kind is not None]
    kinds += task.renamed([file for file, kind in named if kind is None], state, logs)
    followed = task.follow(sorted(kinds, key=lambda pair: pair[0].status.st_mtime), state)
    after, left = task.pilots(listed, unseen, state)
    return FileAnswer(
        facts=tuple(task.facts),
        state=after._replace(logs=tuple(followed)).dump(),
        complete_us=None if left.behind or left.unknown else _complete_us(left, now),
        behind=left.behind,
        left=left.pilots,
        problems=tuple(problems),
        size=task.size,
        weight=task.weight,
        samples=tuple(task.samples),
    )


def _nothing(state: str, problems: Sequence[Problem]) -> FileAnswer:
    return FileAnswer((), state, None, False, 0, tuple(problems), 0)


def _complete_us(left: _Left, now: float) -> int:
    """Return until when all that was written is known: up to the first pilot that waits."""
    settled_us = int((now - SETTLE_S) * SECOND_US)
    return settled_us if left.since_ns is None else min(settled_us, left.since_ns // 1000)


class _Left(NamedTuple):
    """How many pilots are still to be read, and of how many it is not known when they changed.

    ``behind``: there was no room for all; ``since_ns``: the earliest change of one that waits.
    """

    pilots: int
    unknown: int
    behind: bool
    since_ns: int | None = None


class _DirectoryReading(PilotReading):
    """One call of ``fetch``."""

    _numbers: frozenset[Number] = frozenset()

    def pilots(
        self, files: Sequence[FileSeen], unseen: Iterable[str], state: DirectoryState
    ) -> tuple[DirectoryState, _Left]:
        """Read pilots on; return how far, but for logs, and what is left."""
        first = not state.begun or state.taken < _FIRST
        if state.taken[0] > (self._now + FUTURE_S) * 1e9:
            self._problem(self._directory, ProblemName.CLOCK_SET_BACK, "read again from the begin")
            state = state._replace(taken=_FIRST, unread=())
        there = self._settled(files, first=first)
        hidden = {named[:2] for name in unseen if (named := pilot_output.job_file(name))}
        waits = hidden | (self._numbers & set(state.unread))
        later = [pilot for pilot in there if pilot.position > state.taken]
        if len(waits) > MAX_UNREAD:
            self._problem(self._directory, ProblemName.TOO_MANY_UNREAD, "no pilot is read, for now")
            return state, _Left(len(later) + len(waits), len(waits), self.full)
        again = [
            pilot
            for pilot in there
            if pilot.position <= state.taken and pilot.number in waits - hidden
        ]
        taken = state.taken
        for pilot in later:
            if self.full or (pilot.number not in hidden and not self._read(pilot, waits)):
                break
            taken = pilot.position
        behind = self.full
        if not behind:  # what is new from now on is read, however old it is by then
            taken = max(taken, _FIRST)
        waited = len(waits)
        for pilot in again:
            if self.full:  # if some were read, the others are read at once, too
                behind |= len(waits) < waited
                break
            self._read(pilot, waits)
        known_ns = [pilot.position[0] for pilot in there if pilot.number in waits - hidden]
        ahead = sum(pilot.position > taken for pilot in later)
        left = _Left(
            ahead + len(waits), len(waits) - len(known_ns), behind, min(known_ns, default=None)
        )
        return state._replace(taken=taken, unread=tuple(sorted(waits))), left

    def _read(self, pilot: SettledPilot, waits: set[Number]) -> bool:
        """Read a pilot, or have it wait; return whether there is room for it to wait."""
        if pilot.old or self.read_pilot(pilot):
            waits.discard(pilot.number)
            return True
        self._took(self.spent, 0)
        if len(waits | {pilot.number}) > MAX_UNREAD:
            self._problem(
                self._directory, ProblemName.TOO_MANY_UNREAD, "what is later is not read yet"
            )
            return False
        waits.add(pilot.number)
        return True

    def _settled(self, files: Sequence[FileSeen], *, first: bool) -> list[SettledPilot]:
        """Return the pilots that have settled, in the order of their last change.

        ``first``: none has been taken yet, so that ``lookback_s`` counts.
        """
        pairs: dict[Number, dict[str, FileSeen]] = {}
        for file in files:
            named = pilot_output.job_file(file.name)
            if named is not None:
                pairs.setdefault((named.cluster, named.proc), {})[named.kind] = file
            elif file.name.startswith("job.") and not file.name.isprintable():
                self._problem(file.path, ProblemName.ODD_NAME, "not read")
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
