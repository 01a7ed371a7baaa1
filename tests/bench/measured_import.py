"""One measured operation of the import's benchmark; see ``harness``."""

from __future__ import annotations

import binascii
import os
import re
import time
import zlib
from pathlib import Path

from tests.bench.harness import Numbers, answer, children, cpu_s, peak_mib, profiled

_BLOB = re.compile(rb"^begin-base64 644 -\n(.*?)^====", re.M | re.S)


def main() -> None:
    """Run the operation that the standard input describes."""
    answer(floor=_floor, parse=_parse, whole=_import)


def _floor(tree: str) -> Numbers:
    """Read every byte, decode and unpack what is compressed, and nothing else."""
    size = unpacked = files = 0
    began, cpu = time.perf_counter(), cpu_s()
    for directory, _, names in os.walk(tree):
        for name in names:
            descriptor = os.open(f"{directory}/{name}", os.O_RDONLY)
            raw = os.read(descriptor, os.fstat(descriptor).st_size)
            os.close(descriptor)
            files, size = files + 1, size + len(raw)
            for found in _BLOB.finditer(raw):
                unpacked += len(zlib.decompress(binascii.a2b_base64(found[1]), wbits=31))
    wall, used = time.perf_counter() - began, cpu_s() - cpu
    return {
        "wall": wall,
        "cpu": used,
        "peak": peak_mib(),
        "size": size,
        "files": files,
        "unpacked": unpacked,
    }


def _parse(tree: str) -> Numbers:
    """Read and parse all, chunk by chunk, as an import's child does; nothing is kept."""
    import classad2  # noqa: F401, PLC0415 (as in the fork server: not measured)

    from gwmond.service.accounting.file_readers import LIMITS  # noqa: PLC0415
    from gwmond.sources.gwms import factory_dir, layout  # noqa: PLC0415

    facts = problems = 0
    began, cpu = time.perf_counter(), cpu_s()
    for directory in layout.tree(tree).directories:
        state, behind = "", True
        while behind:
            answer = factory_dir.fetch(directory, state, LIMITS, time.time() + 3600)
            state, behind = answer.state, answer.behind
            facts += len(answer.facts)
            problems += len(answer.problems)
    wall, used = time.perf_counter() - began, cpu_s() - cpu
    return {
        "wall": wall,
        "cpu": used,
        "peak": peak_mib(),
        "facts": facts,
        "problems": problems,
    }


def _import(tree: str, ledger: str, processes: int, profile: str) -> Numbers:
    """Do what ``gwmond import`` does, into an empty ledger."""
    from gwmond.config.settings import Config  # noqa: PLC0415
    from gwmond.ledger.store import Ledger  # noqa: PLC0415
    from gwmond.service import importer  # noqa: PLC0415
    from gwmond.service.host import log  # noqa: PLC0415
    from gwmond.sources import child  # noqa: PLC0415

    config = Config()
    log.configure(config.log.model_copy(update={"level": "error"}))
    costs = children()
    child.start()
    began, cpu = time.perf_counter(), cpu_s()
    with profiled(profile), Ledger.open(f"sqlite:///{ledger}") as store:
        done = importer.Importer(config, store, processes).run([tree])
    wall, used = time.perf_counter() - began, cpu_s() - cpu
    return {
        "wall": wall,
        "cpu": used + sum(cost.cpu_s for cost in costs),
        "parent_cpu": used,
        "peak": peak_mib(),
        "child_peak": max(cost.peak_mib for cost in costs),
        "children": len(costs),
        "outputs": done.outputs,
        "problems": done.problems.total(),
        "bytes": Path(ledger).stat().st_size,
    }
