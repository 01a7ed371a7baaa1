"""How often Python looks for cycles of objects that nobody holds any more.

gwmond keeps very many objects for long (pilots, runs), which are looked through each time, and
makes few cycles: with Python's own thresholds a quarter of a poll of 20,000 pilots goes there.
"""

from __future__ import annotations

import atexit
import gc
from collections.abc import Iterator
from contextlib import contextmanager

RUNNING = 50_000
"""So many more objects, for a process that runs for months: a scrape may wait for a collection."""
COMMAND = 300_000
"""For a command, or a child that lives for one answer: more than the packages make."""


def collect_after(objects: int) -> None:
    """Look for cycles among so many new objects, and among four times as many that are not old.

    All else waits meanwhile: half a second among four million.  Those that are old are looked
    through by whoever asks for it (``gc.collect``).
    """
    gc.set_threshold(objects, 4, 100_000)


def leave_at_exit() -> None:
    """End this process without a last look for cycles: the system takes its memory back.

    That look is a quarter or more of the CPU of a command on a small ledger.  What has to be
    written or closed does not wait for it.
    """
    atexit.register(gc.freeze)


@contextmanager
def few_collections(objects: int) -> Iterator[None]:
    """Look for cycles after so many more objects; what is in memory before is left out."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    collect_after(objects)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
