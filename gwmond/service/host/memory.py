"""What a poll has freed is given back to the system."""

from __future__ import annotations

import ctypes
import gc

_library = ctypes.CDLL(None)
COLLECT_EVERY = 60
"""Polls: an hour by default.  It takes 0.2 s of CPU with 20,000 pilots."""


def give_back(polls: int) -> None:
    """Give the system the memory that is free after so many polls.

    Now and then all objects are looked through for cycles that nobody holds any more.  asyncio and
    SQLAlchemy leave some with each page, and Python, which looks at new objects (see ``garbage``),
    would come to the old ones after months.

    What a poll has freed lies between what is kept, and C's library (glibc; others may have no such
    function) keeps it: with 20,000 pilots each of ten polls took 10 to 50 MiB more than the last.
    """
    if polls % COLLECT_EVERY == 0:
        gc.collect()
    if (trim := getattr(_library, "malloc_trim", None)) is not None:
        trim(0)
