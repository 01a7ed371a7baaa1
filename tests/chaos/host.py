"""A host whose wall clock and disk can be spoilt, by what ``host.c`` reads from a file."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path


class Host:
    """The host of the programs that have ``env``; without a C compiler that is empty."""

    def __init__(self, directory: Path, name: str) -> None:
        self._file, library = directory / f"{name}.host", directory / "host.so"
        self.spoil()
        self.env: dict[str, str] = {}
        compiler = shutil.which("cc")
        if compiler is not None:
            if not library.exists():
                source = str(Path(__file__).with_name("host.c"))
                command = [compiler, "-shared", "-fPIC", "-o", str(library), source]
                subprocess.run(command, check=True)
            self.env = {"LD_PRELOAD": str(library), "GWMOND_CHAOS_HOST": str(self._file)}

    def spoil(self, *, ahead_s: int = 0, flush_ms: int = 0, broken: bool = False) -> None:
        """Step its clock, slow its disk, or make its writes fail; all of it, or nothing."""
        self._file.touch()
        with self._file.open("r+b") as file:  # in place, for it is mapped into memory
            file.write(struct.pack("lll", ahead_s, flush_ms, broken))
