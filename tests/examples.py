"""How many random examples Hypothesis tries, and that `make test` tries the same ones each time.

``make test`` takes a sixth of the stated number of examples, derandomized: it passes or fails for
what changed in the code.  ``make bench BENCH_ARGS=examples`` takes many more, other ones each time;
what it finds becomes a fixed ``@example``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from itertools import permutations
from typing import TypeVar

from hypothesis import HealthCheck, settings

T = TypeVar("T")

VARIABLE = "GWMOND_EXAMPLES"
"""In the environment: how many times as many examples as usual, and random ones."""

FACTOR = int(os.environ.get(VARIABLE, "0"))


def examples(usual: int) -> int:
    """How many examples a test tries: a sixth of the usual number, or many times as many."""
    return usual * FACTOR if FACTOR else max(usual // 6, 10)


def orders(things: Sequence[T]) -> Iterable[tuple[T, ...]]:
    """Orders of some things: all orders of up to three, and all where many examples are tried.

    Of more, each thing is twice in each place: so each comes before and after each other one.
    """
    if FACTOR or len(things) <= 3:
        return permutations(things)
    turned = [(*things[n:], *things[:n]) for n in range(len(things))]
    return [*turned, *(order[::-1] for order in turned)]


def load_profile() -> None:
    """Make this the default for all settings; to be called before test modules are imported."""
    settings.register_profile(
        "gwmond",
        max_examples=examples(100),
        derandomize=not FACTOR,
        database=None,
        deadline=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("gwmond")
