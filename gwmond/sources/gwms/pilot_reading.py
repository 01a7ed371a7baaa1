"""Reads the two files of one pilot whole, or not at all."""

from __future__ import annotations

import os
import resource
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, TYPE_CHECKING, NamedTuple

from gwmond.model.problem_names import ProblemName
from gwmond.model.times import SECOND_US
from gwmond.sources import tail
from gwmond.sources.gwms import layout, pilot_out, pilot_output
from gwmond.sources.gwms.following import Following

if TYPE_CHECKING:
    from types import FrameType

    from gwmond.model.pilots.file_facts import PilotOutput
    from gwmond.sources.gwms.directory_cursor import Number, Position
    from gwmond.sources.gwms.layout import FileSeen

OUT_BYTES = 8 << 20
ERR_BYTES = 64 << 20
"""Of a larger file the begin and the end are read (``too_large``)."""
_HEADER_BYTES = 65536
_PIECE_BYTES = 1 << 16  # a read has room made for all that it may get, whatever it then gets


class SettledPilot(NamedTuple):
    """The files of one pilot, at least one; ``old``: it is not asked for."""

    position: Position
    out: FileSeen | None
    err: FileSeen | None
    old: bool

    @property
    def number(self) -> Number:
        """Its cluster and proc."""
        return self.position[1:]

    @property
    def files(self) -> list[FileSeen]:
        """Its files, the output first."""
        return [file for file in (self.out, self.err) if file is not None]


class PilotReading(Following):
    """One call of reading on in logs and in pilots' outputs.

    ``outs``: the pilots of which the output is there; ``spent``: how many bytes were read of the
    last pilot.
    """

    outs: frozenset[Number] = frozenset()
    spent = 0
    _unreadable = False

    def read_pilot(self, pilot: SettledPilot) -> bool:
        """Read a pilot; return whether it is done with: False if a file cannot be read for now."""
        self.spent, self._unreadable = 0, False
        out = err = None
        with ExitStack() as stack:
            streams = [self._open(file, stack) for file in (pilot.out, pilot.err)]
            if not self._unreadable:
                out = self._whole(pilot.out, streams[0], OUT_BYTES)
                err = self._whole(pilot.err, streams[1], ERR_BYTES)
        if self._unreadable:
            return False
        self._took(self.spent, 0)
        if out is not None or err is not None:
            self._tell(pilot, out, err)
        return True

    def _tell(self, pilot: SettledPilot, out: bytes | None, err: bytes | None) -> None:
        _, cluster, proc = pilot.position
        path = pilot.files[0].path
        written = max(file.status.st_mtime for file in pilot.files)
        place = self._place._replace(cluster=cluster, proc=proc)
        written_us, shown = int(written * SECOND_US), layout.shown(path)
        limits = self._limits.file_s, self._limits.file_mib
        try:
            try:
                with cost_limit(*limits):
                    fact = pilot_output.parse(shown, out, err, place, written_us)
            except (TooSlow, MemoryError) as error:  # most of both goes to the logs in the stderr
                costly = (pilot.err or pilot.files[0]).path
                self._problem(costly, *self._too_costly(error))
                with cost_limit(*limits):
                    fact = pilot_output.parse(shown, out, None, place, written_us)
        except (TooSlow, MemoryError):
            return
        except Exception as error:  # whatever it is, one file must not stop the others
            self._problem(path, ProblemName.PARSER_FAILED, f"{type(error).__name__}: {error}")
            return
        self._problems += fact.problems
        if self._is_copy(fact, out):
            return
        self.facts.append(fact)
        self._took(0, 1 + len(fact.records) + len(fact.runs))

    def _too_costly(self, error: BaseException) -> tuple[ProblemName, str]:
        """Return the problem of a file that costs more than is given to one, and the bound."""
        if isinstance(error, TooSlow):
            return ProblemName.TOO_SLOW, f"more than {self._limits.file_s:g} s of CPU"
        return ProblemName.TOO_MUCH_MEMORY, f"more than {self._limits.file_mib} MiB of memory"

    def _is_copy(self, fact: PilotOutput, out: bytes | None) -> bool:
        """Return whether an output is that of another pilot, which is there under its own name."""
        if out is None or all(
            problem.problem != ProblemName.OTHER_PILOT for problem in fact.problems
        ):
            return False
        pilot_name = pilot_out.parse(out[:_HEADER_BYTES]).name
        return (pilot_name.cluster, pilot_name.proc) in self.outs

    def _open(self, file: FileSeen | None, stack: ExitStack) -> IO[bytes] | None:
        """Open a file; None if there is none, or it is gone or unreadable by now."""
        if file is None:
            return None
        try:
            return stack.enter_context(tail.open_regular(file.path))
        except OSError as error:
            self._fails(file, error)
            return None

    def _whole(self, file: FileSeen | None, stream: IO[bytes] | None, limit: int) -> bytes | None:
        """Return what is in a file, of a large one its begin and its end."""
        if file is None or stream is None:
            return None
        try:
            before = os.fstat(stream.fileno()).st_size
            if before <= limit:
                raw = _read(stream, limit)
            else:
                self._problem(file.path, ProblemName.TOO_LARGE, f"{before} bytes, read {limit}")
                raw = _read(stream, limit - limit // 8)
                stream.seek(before - limit // 8)
                raw += b"\n" + _read(stream, limit // 8)
        except OSError as error:
            self._fails(file, error)
            return None
        self.spent += len(raw)
        listed = file.status.st_size
        if len(raw) < min(listed, limit):
            self._problem(file.path, ProblemName.SHRUNK, f"{listed} bytes, then {len(raw)}")
        return raw

    def _fails(self, file: FileSeen, error: OSError) -> None:
        self._failed(file.path, error)
        self._unreadable |= not isinstance(error, FileNotFoundError)


def _read(stream: IO[bytes], limit: int) -> bytes:
    """Return up to so many bytes; fewer only at the end."""
    parts: list[bytes] = []
    left = limit
    while left > 0 and (part := stream.read(min(left, _PIECE_BYTES))):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


class TooSlow(BaseException):
    """The CPU time is used up; no ``except Exception`` on the way takes it for its own."""


@contextmanager
def cost_limit(seconds: float, memory_mib: int) -> Iterator[None]:
    """Raise TooSlow when the body has used so many seconds of CPU, MemoryError when so many MiB.

    What pilots return is anybody's: a file may be made to be slow to read, or to grow in memory, in
    ways that no bound on bytes foresees.  A timer of the kernel (setitimer(2), ITIMER_PROF)
    interrupts the reading, and the process gets no more address space (setrlimit(2), RLIMIT_AS)
    than it had, and as much more as a file may cost.  In the main thread only, for it is the whole
    process that is interrupted and bounded.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(_number: int, _frame: FrameType | None) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGPROF, late)
    bounds = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_bound(memory_mib, bounds[0]), bounds[1]))
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_AS, bounds)
        signal.signal(signal.SIGPROF, before)


def _bound(memory_mib: int, bound: int) -> int:
    """Return the bound on the address space, in bytes: what it is now, and so much more."""
    with open("/proc/self/statm", "rb", buffering=0) as sizes:  # of each file: no text layer
        pages = int(sizes.read().split()[0])
    most = pages * resource.getpagesize() + (memory_mib << 20)
    return most if bound == resource.RLIM_INFINITY else min(most, bound)
