"""A metric family: one record, with a function from the snapshot to its samples.

A missing fact gives no sample, never a zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from gwmond.model.snapshot import Snapshot

Kind: TypeAlias = Literal["counter", "gauge", "info"]

POLLED = " As of the last poll."


class Sample(NamedTuple):
    """One value; ``created`` is when a counter began (epoch seconds), None before it did."""

    labels: tuple[str, ...]
    value: float
    created: float | None = None


class Family(NamedTuple):
    """One metric family.

    ``unit`` is a base unit or empty; ``help`` says what is measured; ``labels`` are the names of
    each sample's labels, in their order.  Counters have ``_total`` in ``name``.
    """

    name: str
    kind: Kind
    unit: str
    help: str
    labels: tuple[str, ...]
    samples: Callable[[Snapshot], Iterable[Sample]]
