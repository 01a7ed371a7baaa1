"""The ledger against a dictionary, over any course of batches, prunes and restarts."""

from __future__ import annotations

import tempfile
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gwmond.ledger.rows.pilot_prune import Retention
from gwmond.ledger.store import Ledger
from gwmond.model.elapsed import Tick
from gwmond.model.poll.batch import Batch
from gwmond.model.times import HOUR_S
from gwmond.model.totals import SiteKey, from_columns, split_hours, to_columns
from gwmond.model.units import MICRO
from tests.examples import examples
from tests.ledger.batches import EPOCH, SITE, key, totals

site_times = st.dictionaries(
    st.tuples(st.integers(EPOCH // HOUR_S, EPOCH // HOUR_S + 6), st.integers(0, 3).map(key)),
    st.integers(0, 10**17),
    max_size=6,
)
SiteTime: TypeAlias = dict[tuple[int, SiteKey], int]
Step: TypeAlias = SiteTime | int | None
steps: st.SearchStrategy[Step] = st.one_of(site_times, st.integers(0, 10), st.none())


@settings(max_examples=examples(30))
@given(st.lists(steps, max_size=8))
def test_any_course(course: list[Step]) -> None:
    """Totals are the exact sums, and the residual is 0, after each batch, prune and restart."""
    wanted: Counter[SiteKey] = Counter()
    before: Tick | None = None
    batches = 0
    with tempfile.TemporaryDirectory() as directory:
        url = str(Path(directory) / "ledger.sqlite")
        ledger = Ledger.open(url)
        for number, step in enumerate(course):
            if step is None:
                ledger.close()
                ledger = Ledger.open(url)
            elif isinstance(step, int):
                ledger.prune(EPOCH + step * HOUR_S, Retention(hours_s=0))
            else:
                now = Tick(EPOCH + number / 3, number / 7, number, "boot")
                changed = ledger.commit(Batch(batches, 0, tick=now, site_time=step))
                before, batches = now, batches + 1
                for (_, series), micros in step.items():
                    wanted[series] += micros
                assert {key: total.net for key, total in changed.site.items()} == {
                    key: wanted[key] for _, key in step
                }
            state = ledger.load()
            assert state.tick == before
            assert totals(state) == dict(wanted)
            assert ledger.check()[SITE].micros == 0
        ledger.close()


bounded = settings(max_examples=examples(200))
HOUR_US = HOUR_S * MICRO
amounts = st.integers(0, 10**20)
starts = st.integers(0, 2 * 10**9 * MICRO)
lengths = st.one_of(st.integers(0, 100), st.integers(0, 50 * HOUR_US))


@bounded
@given(amounts, starts, lengths)
def test_nothing_is_lost_or_made(micros: int, start: int, length: int) -> None:
    """The shares sum to the amount, whatever the interval."""
    assert sum(share for _, share in split_hours(micros, start, start + length)) == micros


@bounded
@given(amounts, starts, lengths)
def test_shares_are_proportional(micros: int, start: int, length: int) -> None:
    """Each share is within one micro of its hour's exact part, and belongs to a touched hour."""
    shares = dict(split_hours(micros, start, start + length))
    assert list(shares) == sorted(shares)
    for hour, share in shares.items():
        low, high = max(start, hour * HOUR_US), min(start + length, (hour + 1) * HOUR_US)
        exact = Fraction(micros * (high - low), length) if length else Fraction(micros)
        assert share > 0
        assert abs(share - exact) < 1
        assert hour == start // HOUR_US or low < high


@pytest.mark.parametrize(
    ("micros", "start_s", "end_s", "shares"),
    [
        (60, 0, 60, [(0, 60)]),
        (60, 3600, 3600, [(1, 60)]),
        (60, 3540, 3600, [(0, 60)]),
        (1, 3599, 3601, [(1, 1)]),
        (7, 0, 3 * 3600, [(0, 2), (1, 2), (2, 3)]),
        (0, 0, 7200, []),
    ],
)
def test_table(micros: int, start_s: int, end_s: int, shares: list[tuple[int, int]]) -> None:
    """An end on the hour gives nothing to the next; what rounding leaves goes to the later hour."""
    assert list(split_hours(micros, start_s * MICRO, end_s * MICRO)) == shares


@pytest.mark.parametrize(("micros", "start", "end"), [(-1, 0, 1), (1, 2, 1)])
def test_nonsense_is_refused(micros: int, start: int, end: int) -> None:
    """A negative amount or an end before the start is an error, not a guess."""
    with pytest.raises(ValueError, match="cannot divide"):
        list(split_hours(micros, start, end))


@bounded
@given(st.integers(0, 10**30))
def test_columns_hold_any_amount(micros: int) -> None:
    """Whole seconds and micros are the amount, and the micros are less than a second."""
    whole, rest = to_columns(micros)
    assert 0 <= rest < MICRO
    assert from_columns(whole, rest) == micros
