"""Source: one directory of a factory, read on from where reading stopped.

Pilots' outputs are read whole, stdout and stderr together, in the order in which they were last
changed (ctime, which nobody can set back); again if one of them changes.  So the cursor is the
change of the last pilot taken, however many pilots there are.  What changed within the last
``SETTLE_S`` is perhaps being written, and waits.  Logs are followed by offset (``tail``).

Invariants: a state is never ahead of the facts returned with it; every call that is ``behind``
got further; the same facts may come again (a pilot is known by its name), none is left out; one
file's fault is a problem that names it, and the rest goes on.  Memory is bounded by the largest
pilot that is read whole (``OUT_BYTES``, ``ERR_BYTES``) and by ``FileLimits``.
"""

from __future__ import annotations

import os
from typing import IO, TYPE_CHECKING, NamedTuple

from gwmond.facts import Problem
from gwmond.sources.gwms import directory_cursor, layout, log_kinds, pilot_output, same_file, tail
from gwmond.sources.gwms.directory_cursor import (
    FileAnswer,
    FileLimits,
    FileProgress,
    Position,
    State,
)
from gwmond.sources.gwms.following import Following
from gwmond.sources.history_endings import US

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

    from gwmond.accounting.pilot_evidence import PilotOutput
    from gwmond.sources.gwms.layout import Found
    from gwmond.sources.gwms.log_kinds import LogKind

SETTLE_S = 5
FUTURE_S = 3600
OUT_BYTES = 8 << 20
ERR_BYTES = 64 << 20
"""Of a larger file the begin and the end are read (``too_large``)."""
_PIECE_BYTES = 1 << 16  # a read has room made for all that it may get, whatever it then gets


class _Pilot(NamedTuple):
    """The files of one pilot."""

    position: Position
    out: Found | None
    err: Found | None


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
    task = _Reading(directory, limits, now, problems, zone)

    def wanted(name: str) -> bool:
        return bool(pilot_output.job_file(name)) or log_kinds.of(name, logs) is not None

    try:
        listed = list(layout.files_in(directory, problems, wanted))
    except OSError as error:
        unread = Problem(layout.shown(directory), "unreadable", str(error)[:300])
        return FileAnswer((), cursor_state, None, False, FileProgress(0, 0), (unread,), 0)
    files = same_file.once(directory, listed, problems, wanted)
    named = [(found, log_kinds.of(found.name, logs)) for found in files]
    kinds = [(found, kind) for found, kind in named if kind is not None]
    kinds += task.renamed([found for found, kind in named if kind is None], state, logs)
    known = task.follow(sorted(kinds, key=lambda one: one[0].status.st_mtime), state)
    taken, left = task.pilots(files, state)
    after = State(taken, tuple(known))
    return FileAnswer(
        facts=tuple(task.facts),
        state=after.dump(),
        complete_us=None if task.full else int((now - SETTLE_S) * US),
        behind=task.full,
        progress=FileProgress(task.done, left),
        problems=tuple(problems),
        size=task.size,
        weight=task.weight,
        samples=tuple(task.samples),
    )


class _Reading(Following):
    """One call of ``fetch``."""

    _outs: frozenset[tuple[int, int]] = frozenset()

    def pilots(self, files: Sequence[Found], state: State) -> tuple[Position, int]:
        """Read pilots on; return the last one taken, and how many are left."""
        taken = state.taken
        if taken[0] > (self._now + FUTURE_S) * 1e9:
            self._problem(self._directory, "clock_set_back", "read again from the begin")
            taken = (0, 0, 0)
        waiting = [one for one in self._waiting(files, state) if one.position > taken]
        if self.full:
            return taken, len(waiting)
        for number, pilot in enumerate(waiting):
            if self.full:
                return taken, len(waiting) - number
            self._pilot(pilot)
            taken = pilot.position
            self.done += 1
        return taken, 0

    def _waiting(self, files: Sequence[Found], state: State) -> list[_Pilot]:
        """Return the pilots that have settled, in the order of their last change."""
        pairs: dict[tuple[int, int], dict[str, Found]] = {}
        for found in files:
            named = pilot_output.job_file(found.name)
            if named is not None:
                pairs.setdefault((named.cluster, named.proc), {})[named.kind] = found
            elif found.name.startswith("job.") and not found.name.isprintable():
                self._problem(found.path, "odd_name", "not read")
        newest, old = (self._now - SETTLE_S) * 1e9, self._now - self._limits.lookback_s
        future = 0
        waiting = []
        for (cluster, proc), pair in pairs.items():
            changed = max(one.status.st_ctime_ns for one in pair.values())
            if changed > newest:
                future += changed > newest + FUTURE_S * 1e9
                continue
            if not state.begun and max(one.status.st_mtime for one in pair.values()) < old:
                continue
            position = (changed, cluster, proc)
            waiting.append(_Pilot(position, pair.get("out"), pair.get("err")))
        if future:
            self._problem(self._directory, "future_files", f"{future} pilots")
        self._outs = frozenset(number for number, pair in pairs.items() if "out" in pair)
        return sorted(waiting)

    def _pilot(self, pilot: _Pilot) -> None:
        _, cluster, proc = pilot.position
        path = (pilot.out or pilot.err or _nothing()).path
        written = [one.status.st_mtime for one in (pilot.out, pilot.err) if one is not None]
        out = self._whole(pilot.out, OUT_BYTES)
        err = self._whole(pilot.err, ERR_BYTES)
        if out is None and err is None:
            return
        place = self._place._replace(cluster=cluster, proc=proc)
        try:
            fact = pilot_output.parse(layout.shown(path), out, err, place, int(max(written) * US))
        except Exception as error:  # whatever it is, one file must not stop the others
            self._problem(path, "parser_failed", f"{type(error).__name__}: {error}")
            return
        self._problems += fact.problems
        if self._is_copy(fact, out):
            return
        self.facts.append(fact)
        self._took(0, 1 + len(fact.attempts) + len(fact.runs))

    def _is_copy(self, fact: PilotOutput, out: bytes | None) -> bool:
        """Return whether an output is that of another pilot, which is there under its own name."""
        if out is None or all(of.problem != "other_pilot" for of in fact.problems):
            return False
        of = same_file.told(out)
        return (of.cluster, of.proc) in self._outs

    def _whole(self, found: Found | None, limit: int) -> bytes | None:
        """Return what is in a file, of a large one its begin and its end."""
        if found is None:
            return None
        try:
            with tail.open_regular(found.path) as stream:
                before = os.fstat(stream.fileno()).st_size
                if before <= limit:
                    raw = _read(stream, limit)
                else:
                    self._problem(found.path, "too_large", f"{before} bytes, read {limit}")
                    raw = _read(stream, limit - limit // 8)
                    stream.seek(before - limit // 8)
                    raw += b"\n" + _read(stream, limit // 8)
                listed = found.status.st_size
                if len(raw) < min(listed, limit):
                    self._problem(found.path, "shrunk", f"{listed} bytes, then {len(raw)}")
        except FileNotFoundError as error:
            self._problem(found.path, "vanished", error)
            return None
        except OSError as error:
            self._problem(found.path, "unreadable", error)
            return None
        self._took(len(raw), 0)
        return raw


def _nothing() -> Found:
    raise AssertionError("a pilot has a file")


def _read(stream: IO[bytes], limit: int) -> bytes:
    """Return up to so many bytes; fewer only at the end."""
    parts: list[bytes] = []
    left = limit
    while left > 0 and (part := stream.read(min(left, _PIECE_BYTES))):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)
