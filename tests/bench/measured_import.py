"""One measured operation of the import's benchmark, in a process of its own; prints JSON.

It must not be the main module: children would import all of that again.
"""

from __future__ import annotations

import binascii
import cProfile
import json
import os
import pstats
import re
import resource
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

Numbers = dict[str, float]
_BLOB = re.compile(rb"^begin-base64 644 -\n(.*?)^====", re.M | re.S)


def main() -> None:
    """Run the operation that the standard input describes."""
    asked = json.load(sys.stdin)
    operations: dict[str, Callable[..., Numbers]] = {
        "floor": _floor,
        "parse": _parse,
        "import": _import,
    }
    print(json.dumps(operations[asked.pop("what")](**asked)))


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _peak() -> float:
    """Return the largest resident size in MiB; getrusage would tell the parent's before exec."""
    status = Path("/proc/self/status").read_text().partition("VmHWM:")[2]
    return int(status.split()[0]) / 1024


def _floor(tree: str) -> Numbers:
    """Read every byte, decode and unpack what is compressed, and nothing else."""
    size = unpacked = files = 0
    began, cpu = time.perf_counter(), _cpu()
    for directory, _, names in os.walk(tree):
        for name in names:
            descriptor = os.open(f"{directory}/{name}", os.O_RDONLY)
            raw = os.read(descriptor, os.fstat(descriptor).st_size)
            os.close(descriptor)
            files, size = files + 1, size + len(raw)
            for found in _BLOB.finditer(raw):
                unpacked += len(zlib.decompress(binascii.a2b_base64(found[1]), wbits=31))
    wall, used = time.perf_counter() - began, _cpu() - cpu
    return {
        "wall": wall,
        "cpu": used,
        "peak": _peak(),
        "size": size,
        "files": files,
        "unpacked": unpacked,
    }


def _parse(tree: str) -> Numbers:
    """Read and parse all, chunk by chunk, as an import's child does; nothing is kept."""
    import classad2  # noqa: F401, PLC0415 (as in the fork server: not measured)

    from gwmond.service.file_readers import LIMITS  # noqa: PLC0415
    from gwmond.sources.gwms import factory_dir, layout  # noqa: PLC0415

    facts = problems = 0
    began, cpu = time.perf_counter(), _cpu()
    for directory in layout.tree(tree).directories:
        state, behind = "", True
        while behind:
            answer = factory_dir.fetch(directory, state, LIMITS, time.time() + 3600)
            state, behind = answer.state, answer.behind
            facts += len(answer.facts)
            problems += len(answer.problems)
    wall, used = time.perf_counter() - began, _cpu() - cpu
    return {
        "wall": wall,
        "cpu": used,
        "peak": _peak(),
        "facts": facts,
        "problems": problems,
    }


def _import(tree: str, ledger: str, processes: int, profile: str) -> Numbers:
    """Do what ``gwmond import`` does, into an empty ledger."""
    from gwmond.config.settings import Config  # noqa: PLC0415
    from gwmond.ledger.store import Ledger  # noqa: PLC0415
    from gwmond.service import importer, log  # noqa: PLC0415
    from gwmond.sources import child  # noqa: PLC0415

    config = Config()
    log.configure(config.log.model_copy(update={"level": "error"}))
    costs: list[child.Usage] = []
    run = child.run

    def counted(*args: Any, **options: Any) -> tuple[Any, child.Usage]:
        result, usage = run(*args, **options)
        costs.append(usage)
        return result, usage

    child.run = counted
    child.start()
    profiler = cProfile.Profile()
    if profile:
        profiler.enable()
    began, cpu = time.perf_counter(), _cpu()
    store = Ledger.open(f"sqlite:///{ledger}")
    done = importer.Importer(config, store, processes).run([tree])
    store.close()
    wall, used = time.perf_counter() - began, _cpu() - cpu
    if profile:
        profiler.disable()
        pstats.Stats(profiler).dump_stats(profile)
    return {
        "wall": wall,
        "cpu": used + sum(cost.cpu_s for cost in costs),
        "parent_cpu": used,
        "peak": _peak(),
        "child_peak": max(cost.peak_mib for cost in costs),
        "children": len(costs),
        "outputs": done.outputs,
        "problems": done.problems.total(),
        "bytes": Path(ledger).stat().st_size,
    }
