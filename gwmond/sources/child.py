"""One child process a query, with a hard deadline.

The bindings hold the global interpreter lock while they wait for the network, some of their calls
never return, and each leaks a little.  So no query runs in the daemon: a fork server that has the
bindings loaded forks a child for each (about 5 ms), the child sends back plain facts and ends, and
one that is late is killed.  Nothing of HTCondor is ever called in the parent.  A command that polls
once starts no server, which would load all again: its own process loads what queries need, and
forks them.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import mmap
import multiprocessing
import os
import pickle
import resource
import signal
import sys
import threading
from collections.abc import Callable
from multiprocessing import reduction, resource_tracker
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, Self, TypeVar

from gwmond.model.problem_names import ProblemName
from gwmond.sources.garbage import COMMAND, collect_after

T = TypeVar("T")

_NICER = 10
"""A scrape needs a core for a moment, and some thirty children ask and decode then."""
_OF_A_SERVICE = "INVOCATION_ID"
"""What systemd tells a service, which has a control group: priorities count within it alone.

Elsewhere a busy host would starve queries of a lower priority.
"""
_STACK = 120 << 20
"""Bytes.  A schedd has 8 MiB: what it lives through, a child does."""
_context: Any = multiprocessing.get_context("forkserver")
#: What the fork server loads.  Whatever a child would import by itself costs it 80 ms: options come
#: pickled as models of gwmond.config.settings.
PRELOAD = ["htcondor2", "classad2", "gwmond.config.settings", "gwmond.sources.tasks"]
PRELOAD_FILES = "gwmond.sources.gwms_tasks"


class QueryError(Exception):
    """A query failed."""

    def __init__(self, problem: ProblemName, detail: str) -> None:
        super().__init__(problem, detail)
        self.problem = problem
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.problem}: {self.detail}" if self.detail else self.problem


class Stopped(Exception):
    """The daemon ends, and every query with it."""


class Usage(NamedTuple):
    """What a child cost: CPU seconds and its largest resident size in MiB.

    ``took_s``: of a child that does several things, how long this one took; 0 if it was all.
    """

    cpu_s: float
    peak_mib: float
    took_s: float = 0.0


_live: set[Any] = set()
_lock = threading.Lock()
_forking = threading.Lock()
"""Held to start and to close a child: one that is forked has no other child's end of a pipe."""
_stopping = threading.Event()


def start(*, files: bool = True, once: bool = False) -> None:
    """Prepare the fork server; call it once, before threads exist.

    ``files``: queries read files of GlideinWMS, too, so what reads them is loaded.  ``once``: this
    process ends soon, and is the fork server itself.  Without any HTCondor configuration on this
    host, the bindings get an empty configuration, else they warn.
    """
    global _context  # noqa: PLW0603
    _no_current_directory()
    if "CONDOR_CONFIG" not in os.environ and not os.path.exists("/etc/condor/condor_config"):
        os.environ["CONDOR_CONFIG"] = "ONLY_ENV"
    _context = multiprocessing.get_context("fork" if once else "forkserver")
    if once:
        threading.stack_size(_STACK)  # of threads that fork: their children go on with it
        for module in PRELOAD:
            importlib.import_module(module)
    else:
        # Else every child runs the program's file, such as bin/gwmond, before its task (3 ms).
        vars(sys.modules["__main__"]).pop("__file__", None)
        _context.set_forkserver_preload([*PRELOAD, *([PRELOAD_FILES] if files else [])])


def _no_current_directory() -> None:
    """Keep the current directory out of the path where started interpreters look for modules.

    ``python -c``, which the fork server is, begins its path with it, unless PYTHONSAFEPATH is set
    (docs.python.org/3/using/cmdline.html); an empty part of PYTHONPATH stands for it, too.
    """
    os.environ["PYTHONSAFEPATH"] = "1"
    for paths in (sys.path, python_path := os.environ.get("PYTHONPATH", "").split(os.pathsep)):
        paths[:] = [path for path in paths if os.path.isabs(path)]
    if python_path:
        os.environ["PYTHONPATH"] = os.pathsep.join(python_path)
    else:
        os.environ.pop("PYTHONPATH", None)


def allow_cpu(seconds: float) -> None:
    """Have this process, a child, end unless it asks again within so much CPU time.

    The kernel ends it (SIGPROF), whatever library is at work then.
    """
    signal.setitimer(signal.ITIMER_PROF, seconds)


def nothing() -> None:
    """Do nothing, in a child: how long that takes is how long Python takes to start."""


def stop() -> None:
    """Kill every query, for the process ends: they, and all that is asked later, raise Stopped."""
    _stopping.set()
    with _lock:
        for process in _live:
            process.kill()


def check_stopped() -> None:
    """Raise Stopped if the process ends."""
    if _stopping.is_set():
        raise Stopped


def run(
    task: Callable[..., T], *args: Any, deadline_s: float, memory_mib: int = 8192
) -> tuple[T, Usage]:
    """Run ``task(*args)`` in a child and return its result and what it cost.

    Raises QueryError: ``timeout`` when the deadline passes (the child is killed), ``crashed`` when
    it dies, else the word that the task's own QueryError carries.  Stopped: see ``stop``.
    """
    late = threading.Event()

    def kill() -> None:
        late.set()
        with contextlib.suppress(ValueError):  # it has just ended, and was closed
            process.kill()

    try:
        process, receiver = _started(deadline_s, memory_mib, task, args)
    except Exception as error:  # no memory, no file descriptor, an argument that does not pickle
        if _stopping.is_set():
            raise Stopped from None
        raise QueryError(
            ProblemName.FAILED, f"no process: {type(error).__name__}: {error}"
        ) from None
    with _lock:
        _live.add(process)
        if _stopping.is_set():
            process.kill()
    timer = threading.Timer(deadline_s, kill)
    timer.daemon = True
    timer.start()
    try:
        payload = receiver.recv_bytes()  # ends with EOFError when the child dies or is killed
    except (EOFError, OSError):
        process.join(1)
        if _stopping.is_set():
            raise Stopped from None
        if late.is_set():
            raise QueryError(
                ProblemName.TIMEOUT, f"no answer within {rounded(deadline_s)} s"
            ) from None
        raise QueryError(ProblemName.CRASHED, f"exit code {process.exitcode}") from None
    finally:
        timer.cancel()
        receiver.close()
        with _lock:
            _live.discard(process)
        process.kill()
        while process.exitcode is None:  # another thread that forks may be waiting for it, too
            process.join(1)
        with _forking:  # who starts a child looks at all that are not closed
            process.close()
    result: T | QueryError
    result, usage = pickle.loads(payload)
    if isinstance(result, QueryError):
        raise result
    return result, usage


def rounded(seconds: float) -> str:
    """Return seconds as people read them.

    >>> rounded(24.3508), rounded(4.49889), rounded(0.5), rounded(120)
    ('24', '4.5', '0.5', '120')
    """
    return f"{seconds:.0f}" if seconds >= 10 else f"{seconds:.2g}"


def _started(
    deadline_s: float, memory_mib: int, task: Callable[..., Any], args: tuple[Any, ...]
) -> tuple[Any, Connection]:
    """Start a child; return its process, and what its answer is received from.

    No Ctrl-C reaches the child, nor the fork server, which may be started by this: both inherit
    what is blocked here; the resource tracker would unblock it when it is started.
    """
    if _context.get_start_method() == "forkserver":
        resource_tracker.ensure_running()
    with _forking:
        receiver, sender = _context.Pipe(duplex=False)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            process = _context.Process(
                target=child_main, args=(sender, deadline_s, memory_mib, task, args), daemon=True
            )
            process.start()
        except BaseException:
            receiver.close()
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            sender.close()
    return process, receiver


def child_main(
    sender: Connection,
    deadline_s: float,
    memory_mib: int,
    task: Callable[..., Any],
    args: tuple[Any, ...],
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.alarm(int(deadline_s) + 5)  # should the parent die first
    os.umask(0o077)
    if _OF_A_SERVICE in os.environ:
        with contextlib.suppress(OSError):  # a sandbox may forbid it
            os.nice(_NICER)
    gc.freeze()  # what the fork server has loaded stays, and in memory that all children share
    collect_after(COMMAND)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # it may have tokens
        most = resource.getrlimit(resource.RLIMIT_STACK)[1]
        if most == resource.RLIM_INFINITY or most >= _STACK:
            resource.setrlimit(resource.RLIMIT_STACK, (_STACK, most))
        resource.setrlimit(resource.RLIMIT_AS, (memory_mib << 20, memory_mib << 20))
    try:
        payload = _pickled(task(*args))
    except QueryError as error:
        payload = _pickled(error)
    except MemoryError:
        payload = _pickled(
            QueryError(ProblemName.TOO_LARGE, f"answer needs more than {memory_mib} MiB")
        )
    except Exception as error:  # whatever it is, the parent hears of it
        payload = _pickled(QueryError(ProblemName.FAILED, f"{type(error).__name__}: {error}"))
    with contextlib.suppress(OSError):  # nobody waits any more: the parent has died
        sender.send_bytes(payload)
        sender.close()


def used() -> Usage:
    """Return what this process has cost up to now."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    return Usage(own.ru_utime + own.ru_stime, own.ru_maxrss / 1024)


def _pickled(result: Any) -> bytes:
    return pickle.dumps((result, used()), protocol=5)


class Board:
    """``size`` bytes that a child and its parent share: what it has done, when it dies.

    All are 0 at first.  It goes with the arguments of a task.  Close it after use.
    """

    def __init__(self, size: int) -> None:
        self._take(os.memfd_create("gwmond-board"), size)

    def _take(self, descriptor: int, size: int) -> None:
        self._descriptor, self._size = descriptor, size
        os.ftruncate(descriptor, size)
        self.marks = mmap.mmap(descriptor, size)

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (reduction.DupFd(self._descriptor), self._size)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.marks.close()
        os.close(self._descriptor)


def _received(handle: Any, size: int) -> Board:
    board = Board.__new__(Board)
    board._take(handle.detach(), size)
    return board
