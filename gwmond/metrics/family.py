"""A metric family: one record, with a function from the snapshot to its samples.

A missing fact gives no sample, never a zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from gwmond.model.snapshot import Snapshot

Kind: TypeAlias = Literal["counter", "gauge", "info"]

_UNITS = {"seconds", "bytes", "ratio"}
POLLED = " As of the last poll."


class Sample(NamedTuple):
    """One value; ``created`` is when a counter began (epoch seconds), None before it did."""

    labels: tuple[str, ...]
    value: float
    created: float | None = None


class Family(NamedTuple):
    """One metric family.

    Its kind and its unit follow from its name: a counter ends with ``_total``, and before that is
    the unit, if it has one.  ``help`` says what is measured; ``labels`` are the names of each
    sample's labels, in their order.  ``info``: it has labels, and nothing to be measured.
    """

    name: str
    help: str
    labels: tuple[str, ...]
    samples: Callable[[Snapshot], Iterable[Sample]]
    info: bool = False

    @property
    def kind(self) -> Kind:
        """The type of OpenMetrics."""
        return "info" if self.info else "counter" if self.name.endswith("_total") else "gauge"

    @property
    def unit(self) -> str:
        """A base unit, or empty."""
        last = self.name.removesuffix("_total").rpartition("_")[2]
        return last if last in _UNITS else ""
