"""What benchmarks have in common: processes of their own for what is measured, and what they used.

What is measured must not be a main module: children would import all of that again.
"""

from __future__ import annotations

import cProfile
import json
import os
import pstats
import resource
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
Numbers = dict[str, float]


def say(text: str) -> None:
    """Print how far it is, beside the results."""
    print(f"... {text}", file=sys.stderr, flush=True)


def numbers(text: str) -> list[int]:
    """Return the numbers of an option, with commas between."""
    return [int(word) for word in text.split(",") if word]


def chunks(values: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield values so many at once."""
    rest = iter(values)
    while some := list(islice(rest, size)):
        yield some


def in_child(module: str, asked: dict[str, Any], env: dict[str, str] | None = None) -> Numbers:
    """Return what ``main`` of a module here measures, in a process of its own; see ``answer``."""
    done = subprocess.run(
        [sys.executable, "-c", f"from tests.bench.{module} import main; main()"],
        input=json.dumps(asked),
        env={**os.environ, **(env or {})},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found: Numbers = json.loads(done.stdout.splitlines()[-1])
    return found


def answer(**operations: Callable[..., Numbers]) -> None:
    """Run the operation that the standard input asks for, and print what it returns."""
    asked = json.load(sys.stdin)
    print(json.dumps(operations[asked.pop("what")](**asked)))


def cpu_s() -> float:
    """Return the CPU seconds of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def peak_mib() -> float:
    """Return the largest resident size; getrusage would tell the parent's before exec."""
    status = Path("/proc/self/status").read_text().partition("VmHWM:")[2]
    return int(status.split()[0]) / 1024


@contextmanager
def profiled(path: str) -> Iterator[None]:
    """Write cProfile's output of what is done meanwhile; nothing if there is no path."""
    if not path:
        yield
        return
    with cProfile.Profile() as profiler:
        yield
    pstats.Stats(profiler).dump_stats(path)


def children() -> list[Any]:
    """Return a list to which what each child from now on has used is added."""
    from gwmond.sources import child  # noqa: PLC0415 (bare reading is measured without gwmond)

    usages: list[Any] = []
    run = child.run

    def noted(*args: Any, **options: Any) -> Any:
        value, usage = run(*args, **options)
        usages.append(usage)
        return value, usage

    child.run = noted
    return usages
