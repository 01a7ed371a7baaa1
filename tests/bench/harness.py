"""What benchmarks have in common: processes of their own for what is measured, and what they used.

What is measured must not be a main module: children would import all of that again.
"""

from __future__ import annotations

import contextlib
import cProfile
import json
import os
import pstats
import resource
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from tests.build.meanwhile import Meanwhile
from tests.pool.condor import CondorPool

T = TypeVar("T")
Numbers = dict[str, float]

NO_DNS = "NO_DNS = True\nDEFAULT_DOMAIN_NAME = pool.test\n"
"""For pools.  Each condor_history that a schedd starts looks its host's name up, which takes 5 s
where a resolver drops one of several questions at once; so it does in a network without any.
"""


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


def svg(width: int, height: int, parts: Iterable[str]) -> str:
    """Return a drawing of these lines and texts; texts that name no colour first are grey."""
    body = "\n".join(parts).replace("<text x", '<text fill="#333" x')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        'font-family="sans-serif" font-size="11" fill="none">\n'
        f'<rect width="100%" height="100%" fill="#fff"/>\n{body}\n</svg>\n'
    )


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


def memory_mib(pid: int) -> float:
    """Return what is resident of a process, divided by those who share it; 0 if it has ended."""
    with contextlib.suppress(OSError):
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        return int(text.partition("\nPss:")[2].split()[0]) / 1024
    return 0.0


class Together(Meanwhile):
    """The most memory, in MiB, of a process and all that descend from it, while this lasts."""

    def __init__(self, pid: int) -> None:
        super().__init__(self._watch)
        self._pid, self.peak_mib = pid, 0.0

    def _watch(self) -> None:
        while not self._stop.wait(0.25):
            self.peak_mib = max(self.peak_mib, sum(map(memory_mib, _family(self._pid))))


def _family(pid: int) -> Iterator[int]:
    yield pid
    with contextlib.suppress(OSError):
        for task in list(Path(f"/proc/{pid}/task").iterdir()):
            for child in (task / "children").read_text().split():
                yield from _family(int(child))


def schedds(number: int) -> str:
    """Return the configuration of more schedds of a pool: bench0@pool.test and so on."""
    names = [f"BENCH{n}" for n in range(number)]
    return "".join(map(_schedd, names)) + f"DAEMON_LIST = $(DAEMON_LIST) {' '.join(names)}\n"


def schedd_names(number: int) -> list[str]:
    """Return the names of the schedds that ``schedds`` adds to a pool."""
    return [f"bench{n}@pool.test" for n in range(number)]


def epoch_files(pool: CondorPool, number: int) -> list[Path]:
    """Return where these schedds keep their epoch histories."""
    return [pool.local / f"BENCH{n}" / "epochs" for n in range(number)]


def daemons(pool: CondorPool, number: int) -> list[list[str]]:
    """Return name, address and version of these schedds, once the collector knows them."""
    columns = ["Name", "MyAddress", "CondorVersion"]
    found = []
    for name in schedd_names(number):
        ask = partial(pool.query, "Schedd", f'Name == "{name}"', columns)
        (ad,) = pool.wait_for(f"the schedd {name}", ask)
        found.append([ad[column] for column in columns])
    return found


def _schedd(name: str) -> str:
    return (
        f"{name} = $(SCHEDD)\n{name}_ARGS = -f -local-name {name.lower()}\n"
        f"{name}.SCHEDD_NAME = {name.lower()}@pool.test\n"
        f"{name}.SPOOL = $(LOCAL_DIR)/{name}\n{name}.HISTORY = $(LOCAL_DIR)/{name}/history\n"
        f"{name}.JOB_EPOCH_HISTORY = $(LOCAL_DIR)/{name}/epochs\n"
        f"{name}.SCHEDD_LOG = $(LOG)/{name}Log\n"
        f"{name}.SCHEDD_ADDRESS_FILE = $(LOCAL_DIR)/{name}/.schedd_address\n"
        f"{name}.SCHEDD_DAEMON_AD_FILE = $(LOCAL_DIR)/{name}/.schedd_classad\n"
    )


@contextmanager
def profiled(path: str) -> Iterator[None]:
    """Write cProfile's output of what is done meanwhile; nothing if there is no path."""
    if not path:
        yield
        return
    with cProfile.Profile() as profiler:
        yield
    pstats.Stats(profiler).dump_stats(path)


class ChildCost(NamedTuple):
    """What a child has used, and how many records its answer was made of."""

    cpu_s: float
    peak_mib: float
    records: int


def children() -> list[ChildCost]:
    """Return a list to which each child from now on is added when it ends.

    The answers of all are values with the number of their records.
    """
    from gwmond.sources import child  # noqa: PLC0415 (bare reading is measured without gwmond)

    asked: list[ChildCost] = []
    run = child.run

    def noted(*args: Any, **options: Any) -> Any:
        (value, records), usage = run(*args, **options)
        asked.append(ChildCost(usage.cpu_s, usage.peak_mib, records))
        return (value, records), usage

    child.run = noted
    return asked
