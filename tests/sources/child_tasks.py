"""What children are told to do by the tests of gwmond.sources.child."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
import time
from typing import Any, NoReturn

from gwmond.model.problem_names import ProblemName
from gwmond.sources.child import QueryError


def echo(*given: Any) -> Any:
    return given


def many(size: int) -> bytes:
    return b"x" * size


def modules() -> list[str]:
    return sorted(sys.modules)


def deny() -> NoReturn:
    raise QueryError(ProblemName.DENIED, "not for you")


def fail() -> NoReturn:
    raise ZeroDivisionError("nothing to divide by")


def unpicklable() -> Any:
    return lambda: None


def sleep() -> None:
    time.sleep(60)


def loop() -> NoReturn:
    """As the bindings do: never return, never let another thread run."""
    sys.setswitchinterval(1000)
    while True:
        pass


def stop() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def ignore_signals() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)
    time.sleep(60)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def leave(code: int) -> None:
    os._exit(code)


def allocate(mib: int) -> int:
    return len(bytearray(mib << 20))


def surroundings() -> tuple[list[str], int, list[str], tuple[int, int]]:
    """Where modules are looked for, the umask, what is open, how large a core dump may be."""
    opened = []
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # the directory's own
            opened.append(os.readlink(f"/proc/self/fd/{number}"))
    return sys.path, os.umask(0), opened, resource.getrlimit(resource.RLIMIT_CORE)
