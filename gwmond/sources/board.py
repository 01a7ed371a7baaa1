"""A few bytes that a child process and its parent share: what it has done, when it dies."""

from __future__ import annotations

import mmap
import os
from multiprocessing import reduction
from typing import Any, Self


class Board:
    """``size`` bytes, all 0 at first; it goes with the arguments of a task.  Close it after use."""

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
