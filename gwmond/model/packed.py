"""Very many values in little memory: they are pickled, and one part of them is read at a time."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Generic, TypeVar

T = TypeVar("T")

_AT_ONCE = 5000


class Packed(Generic[T]):
    """Values in their order, which can be read several times; what pickle knows can be packed.

    125,000 claims are 15 MB so, and 100 MB as objects.
    """

    def __init__(self, values: Iterable[T] = ()) -> None:
        rest = iter(values)
        parts = iter(lambda: list(islice(rest, _AT_ONCE)), [])
        self._parts = tuple((len(part), pickle.dumps(part, protocol=5)) for part in parts)

    @classmethod
    def joined(cls, every: Iterable[Packed[T]]) -> Packed[T]:
        """Return the values of all, one after the other."""
        packed = cls()
        packed._parts = tuple(part for one in every for part in one._parts)
        return packed

    def parts(self) -> Iterator[list[T]]:
        """Yield all values, so many at once as are packed together."""
        for _, part in self._parts:
            yield pickle.loads(part)

    def __iter__(self) -> Iterator[T]:
        return chain.from_iterable(self.parts())

    def __len__(self) -> int:
        return sum(number for number, _ in self._parts)
