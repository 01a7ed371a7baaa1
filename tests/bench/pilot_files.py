"""Outputs of simulated pilots, for the benchmark of the import: two trees of a factory's.

``all`` has every output as it came back; ``text`` has some of the same without what is compressed
in stderr (the embedded logs and the long result), so that there is nothing but text to read.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.build.gwms import generate, simulated

ALL, TEXT = "all", "text"
SEED = 1
_PACKED = (b"\nMasterLog\n", b"\n=== Encoded XML description")


class Written(NamedTuple):
    """How many pilots have outputs, and their files and bytes."""

    pilots: int
    files: int
    size: int

    def plus(self, other: Written) -> Written:
        """Return both together."""
        return Written(*map(sum, zip(self, other, strict=True)))


def write(root: Path, pilots: int, text: int, processes: int = 2) -> dict[str, Written]:
    """Write the trees below a directory: so many pilots' outputs, and so many of them as text.

    There are as many outputs as asked for, so some more pilots, for some return none.
    """
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes) as pool:
        asked = [(root, pilots, text, part, processes) for part in range(processes)]
        parts = pool.starmap(_write_part, asked)
    found = {ALL: Written(0, 0, 0), TEXT: Written(0, 0, 0)}
    for part in parts:
        found = {name: found[name].plus(part[name]) for name in found}
    return found


def _returned(number: int) -> Iterator[simulated.Pilot]:
    """Yield so many pilots that returned files."""
    # Each pilot has its own random numbers, so the first are the same however many there are.
    every = simulated.pilots(SEED, 2 * number + 1000)
    return itertools.islice((job for job in every if job.kind != "no_files"), number)


def _write_part(root: Path, pilots: int, text: int, part: int, parts: int) -> dict[str, Written]:
    counted = {ALL: Written(0, 0, 0), TEXT: Written(0, 0, 0)}
    for number, pilot in enumerate(itertools.islice(_returned(pilots), part, None, parts)):
        files = generate.files(pilot)
        counted[ALL] = counted[ALL].plus(_put(root / ALL, pilot, files))
        if number * parts + part < text:
            plain = {name: _without_packed(raw) for name, raw in files.items()}
            counted[TEXT] = counted[TEXT].plus(_put(root / TEXT, pilot, plain))
    return counted


def _without_packed(raw: bytes) -> bytes:
    ends = [at for mark in _PACKED if (at := raw.find(mark)) >= 0]
    return raw[: min(ends) + 1] if ends else raw


def _put(tree: Path, pilot: simulated.Pilot, files: dict[str, bytes]) -> Written:
    directory = f"{tree}/{pilot.directory}"
    os.makedirs(directory, exist_ok=True)
    for name, raw in files.items():
        with open(f"{directory}/{name}", "wb", buffering=0) as stream:
            stream.write(raw)
    return Written(1, len(files), sum(map(len, files.values())))
