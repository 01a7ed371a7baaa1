"""What is to be looked at again, and when.

Units: times are microseconds since the epoch.
"""

from __future__ import annotations

from heapq import heappop, heappush


class Agenda:
    """Names and times, at most one pending time of each that counts: the earliest."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, str]] = []
        self._next: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, name: str, due_us: int) -> None:
        """Have a name looked at then; if it is before, then it has to be added again."""
        if name not in self._next or due_us < self._next[name]:
            self._next[name] = due_us
            heappush(self._heap, (due_us, name))

    def take(self, now_us: int) -> set[str]:
        """Return the names that are due, and forget them."""
        found: set[str] = set()
        while self._heap and self._heap[0][0] <= now_us:
            due_us, name = heappop(self._heap)
            if self._next.get(name) == due_us:
                del self._next[name]
            found.add(name)
        return found
