"""A small file system of its own, to fill up and to make read-only; needs root."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path
from typing import Self


class Tmpfs:
    """A tmpfs of ``kib`` KiB, mounted at ``path`` (made if need be) while in the ``with``."""

    def __init__(self, path: Path, kib: int, mode: int = 0o755) -> None:
        if os.geteuid() != 0:
            raise RuntimeError("this test mounts a tmpfs: run the tests as root (CI does)")
        self.path = path
        self._options = f"size={kib}k,mode={mode:o}"

    def __enter__(self) -> Self:
        self.path.mkdir(exist_ok=True)
        command = ["mount", "-t", "tmpfs", "-o", self._options, "gwmond-test", str(self.path)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(
                f"cannot mount a tmpfs ({done.stderr.strip()}): run the tests where root may "
                "mount, e.g. a container with CAP_SYS_ADMIN"
            )
        return self

    def __exit__(self, *_: object) -> None:
        subprocess.run(["umount", "--lazy", str(self.path)], check=True)

    def read_only(self) -> None:
        subprocess.run(["mount", "-o", "remount,ro", str(self.path)], check=True)

    def writable(self) -> None:
        subprocess.run(["mount", "-o", "remount,rw", str(self.path)], check=True)

    @property
    def _filler(self) -> Path:
        return self.path / "filler"

    def fill(self, left_kib: int = 0) -> None:
        """Take all space but ``left_kib`` KiB; who writes meanwhile may take some of it first."""
        with self._filler.open("wb") as file:
            while (size := self._free_bytes() - left_kib * 1024) > 0:
                try:
                    os.posix_fallocate(file.fileno(), 0, size)
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                else:
                    return

    def _free_bytes(self) -> int:
        free = os.statvfs(self.path)
        return free.f_bavail * free.f_frsize

    def free(self) -> None:
        self._filler.unlink(missing_ok=True)
