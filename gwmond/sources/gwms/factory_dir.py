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
from collections import Counter
from typing import IO, TYPE_CHECKING, NamedTuple

from gwmond.accounting.pilot_evidence import FileFact
from gwmond.facts import Problem
from gwmond.sources.gwms import directory_cursor, layout, log_kinds, pilot_output, tail
from gwmond.sources.gwms.directory_cursor import (
    FileAnswer,
    FileLimits,
    FileProgress,
    Position,
    State,
)
from gwmond.sources.gwms.tail import Known
from gwmond.sources.history_endings import US

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gwmond.sources.gwms.layout import Found
    from gwmond.sources.gwms.log_kinds import LogKind

SETTLE_S = 5
FUTURE_S = 3600
MAX_LOGS = 2000
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
) -> FileAnswer:
    """Read on in one directory; ``now``: the time (epoch seconds) just before.

    A state that is not understood (``bad_state``) is taken as none; of a directory that cannot be
    listed now nothing is read, and the state stays.
    """
    problems: list[Problem] = []
    try:
        state = directory_cursor.load(cursor_state)
    except (ValueError, TypeError) as error:
        problems.append(Problem(layout.shown(directory), "bad_state", str(error)[:200]))
        state = State()
    task = _Reading(directory, limits, now, problems)
    try:
        files = list(layout.files_in(directory, problems))
    except OSError as error:
        unread = Problem(layout.shown(directory), "unreadable", str(error)[:300])
        return FileAnswer((), cursor_state, None, False, FileProgress(0, 0), (unread,), 0)
    kinds = ((found, kind) for found in files for kind in logs if kind.names.fullmatch(found.name))
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
    )


def fetch_log(path: str, cursor_state: str, limits: FileLimits, now: float) -> FileAnswer:
    """Read on in one central log, as ``fetch`` does in a directory of them.

    Its ``progress`` is in bytes; ``complete_us`` is None, as other files may tell of the same time.
    """
    problems: list[Problem] = []
    try:
        state = directory_cursor.load(cursor_state)
    except (ValueError, TypeError) as error:
        problems.append(Problem(layout.shown(path), "bad_state", str(error)[:200]))
        state = State()
    try:
        found = layout.Found(os.path.basename(path), path, os.stat(path))
    except OSError as error:
        unread = Problem(layout.shown(path), "unreadable", str(error)[:300])
        return FileAnswer((), cursor_state, None, False, FileProgress(0, 0), (unread,), 0)
    task = _Reading(os.path.dirname(path), limits, now, problems)
    known = task.follow([(found, log_kinds.CENTRAL[0])], state)
    done = known[0].offset if known else 0
    return FileAnswer(
        facts=tuple(task.facts),
        state=State((0, 0, 0), tuple(known)).dump(),
        complete_us=None,
        behind=task.full,
        progress=FileProgress(done, max(0, found.status.st_size - done)),
        problems=tuple(problems),
        size=task.size,
        weight=task.weight,
    )


class _Reading:
    """One call of ``fetch`` or ``fetch_log``."""

    def __init__(
        self, directory: str, limits: FileLimits, now: float, problems: list[Problem]
    ) -> None:
        self.facts: list[FileFact] = []
        self.size = 0
        self.done = 0
        self.full = False
        self.weight = 0
        self._directory, self._limits, self._now = directory, limits, now
        self._place = layout.place_of(os.path.realpath(directory))
        self._problems = problems

    def _took(self, size: int, facts: int) -> None:
        self.size += size
        self.weight += facts
        limits = self._limits
        self.full = self.full or self.size >= limits.size or self.weight >= limits.facts

    def _problem(self, path: str, word: str, detail: object) -> None:
        self._problems.append(Problem(layout.shown(path), word, str(detail)[:300]))

    # -- pilots

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
        self.facts.append(fact)
        self._problems += fact.problems
        self._took(0, 1 + len(fact.attempts) + len(fact.runs))

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

    # -- logs

    def follow(self, files: Sequence[tuple[Found, LogKind]], state: State) -> list[Known]:
        """Read on in each log; return how far each is read now.

        Also of logs that are there and cannot be read now, so that they go on from there; a log
        that is gone is forgotten.
        """
        after: list[Known] = []
        left = {one.inode: one for one in state.logs}
        if len(files) > MAX_LOGS:
            self._problem(self._directory, "too_many_logs", f"{len(files)}")
            cut = (left.pop(found.status.st_ino, None) for found, _ in files[:-MAX_LOGS])
            after += [known for known in cut if known is not None][-MAX_LOGS:]
            files = files[-MAX_LOGS:]
        for found, kind in files:
            known = left.pop(found.status.st_ino, None)
            try:
                with tail.open_regular(found.path) as stream:
                    after.append(self._log(found, kind, stream, known, first=not state.begun))
            except OSError as error:
                self._problem(found.path, "unreadable", error)
                after += [] if known is None else [known]
        failed = {of.source for of in self._problems if of.problem == "vanished"}
        for known in left.values():
            if failed and layout.shown(os.path.join(self._directory, known.name)) in failed:
                after.append(known)
        return after

    def _log(
        self, found: Found, kind: LogKind, stream: IO[bytes], known: Known | None, *, first: bool
    ) -> Known:
        written = found.status.st_mtime
        offset, passing = (known.offset, known.passing) if known else (0, False)
        if known is not None and not tail.same(stream, known):
            self._problem(found.path, "truncated_log", "read again from the begin")
            offset, passing = 0, False
        elif known is None and first and written < self._now - self._limits.lookback_s:
            offset = found.status.st_size
        wrong: Counter[str] = Counter()
        length, head = tail.head(stream)
        try:
            for chunk in () if self.full else tail.chunks(stream, offset, passing, kind.end):
                facts, words = kind.parse(layout.shown(found.path), chunk.raw, self._place, written)
                self.facts += facts
                wrong += words
                wrong["too_long"] += chunk.too_long
                self._took(chunk.offset - offset, len(facts))
                offset, passing = chunk.offset, chunk.passing
                if self.full:
                    break
        except OSError as error:  # what was read of it until then counts
            self._problem(found.path, "unreadable", error)
        for word, number in sorted((+wrong).items()):
            self._problem(found.path, word, f"{number} records")
        return Known(found.name, found.status.st_ino, length, head, offset, passing)


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
