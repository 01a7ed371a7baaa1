"""A metric family: one record, with a function from the snapshot to its samples.

A missing fact gives no sample, never a zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from gwmond.model.poll.snapshot import Exemplar, Snapshot

Kind: TypeAlias = Literal["counter", "gauge", "histogram", "info"]

_UNITS = {"seconds", "bytes", "ratio"}
POLLED = " As of the last poll."


class Sample(NamedTuple):
    """One value; ``created`` is when a counter began (epoch seconds), None before it did.

    Of a histogram the value is the sum of what was observed; ``buckets``: how much was in each.
    ``exemplars``: one of each bucket, of a counter one.
    """

    labels: tuple[str, ...]
    value: float
    created: float | None = None
    buckets: tuple[int, ...] = ()
    exemplars: tuple[Exemplar | None, ...] = ()


def known(
    values: Iterable[tuple[tuple[str, ...], float | None]],
    unit: int = 1,
    created: float | None = None,
) -> Iterator[Sample]:
    """Yield a sample for each value that is known, divided by a unit."""
    return (Sample(labels, value / unit, created) for labels, value in values if value is not None)


class Family(NamedTuple):
    """One metric family.

    Its kind and its unit follow from its name: a counter ends with ``_total``, and before that is
    the unit, if it has one.  ``help`` says what is measured; ``labels`` are the names of each
    sample's labels, in their order.  ``info``: it has labels, and nothing to be measured.
    ``buckets``: the upper bounds of a histogram's, the last is "+Inf".
    """

    name: str
    help: str
    labels: tuple[str, ...]
    samples: Callable[[Snapshot], Iterable[Sample]]
    info: bool = False
    buckets: tuple[str, ...] = ()

    @property
    def kind(self) -> Kind:
        """The type of OpenMetrics."""
        if self.buckets:
            return "histogram"
        return "info" if self.info else "counter" if self.name.endswith("_total") else "gauge"

    @property
    def unit(self) -> str:
        """A base unit, or empty."""
        last = self.name.removesuffix("_total").rpartition("_")[2]
        return last if last in _UNITS else ""
