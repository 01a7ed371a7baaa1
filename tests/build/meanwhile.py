"""What is done in threads of its own while something else happens."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Self


class Meanwhile:
    """Does some works while its context lasts; each has to end soon once ``_stop`` is set."""

    def __init__(self, *works: Callable[[], None]) -> None:
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=work, daemon=True) for work in works]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(120)
