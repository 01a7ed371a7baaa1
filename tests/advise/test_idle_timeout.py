"""The advised timeouts, against entries whose best timeout is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from gwmond.advise.idle_timeout import GRID_S, LEAST_WAITS, WaitArrays, best, wasted
from gwmond.advise.judge import SETTINGS, timeout_line
from gwmond.advise.samples import MOST, Ratio, Reservoir, quantile, survival
from gwmond.model.facts import EntryKey
from tests.build.simulated_entry import Entry, tally

KEY = EntryKey("Site-A", "entry-a")
ENTRIES = (
    Entry(),
    Entry(short=0.5, short_s=200, long_s=20_000, validation_s=600, max_tail_s=2700),
    Entry(short=0.9, short_s=100, long_s=3000, max_tail_s=1200, sizes=(4,)),
    Entry(short=0.3, short_s=30, long_s=4000, validation_s=120, run_s=4000),
)
SEEDS = 16


@pytest.mark.parametrize("entry", ENTRIES)
def test_the_best_timeout_of_a_known_entry_is_in_the_interval(entry: Entry) -> None:
    """An interval of 90 % has it in that part of the samples, or more: timeouts are of a grid.

    What is advised wastes little more than the best; what it saves has a true interval, too.
    """
    covered: dict[bool, list[bool]] = {True: [], False: []}
    saved: list[bool] = []
    worse: list[float] = []
    for seed in range(SEEDS):
        seen = tally(entry, 120, seed)
        for first, now_s in ((True, entry.max_idle_s), (False, entry.max_tail_s)):
            line = timeout_line(KEY, seen, first=first)
            assert line is not None
            assert line.timeout is not None
            assert line.setting == SETTINGS[first]
            timeout = line.timeout
            right = entry.best(timeout.curve[-1][0], first=first)
            covered[first].append(timeout.interval_s[0] <= right <= timeout.interval_s[1])
            at = np.array([timeout.best_s, right, now_s], dtype=np.float64)
            wasting, least, now = entry.waste(at, first=first)
            worse.append(wasting / least - 1)
            if timeout.saved_s is not None:
                low, high = timeout.saved_interval_s
                saved.append(low <= now - wasting <= high)
    assert np.mean(covered[True]) >= 0.7
    assert np.mean(covered[False]) >= 0.7
    assert np.mean(covered[True] + covered[False]) >= 0.85
    assert np.mean(worse) < 0.06
    assert np.mean(saved or [True]) >= 0.65


def test_more_pilots_narrow_the_interval() -> None:
    """By the sum over some entries that are alike."""
    widths = {150: 0, 600: 0}
    for number in widths:
        for seed in range(4):
            waits = WaitArrays(*tally(Entry(), number, seed).waits[True].columns)
            found = best(waits, _cost(400))
            assert found is not None
            widths[number] += found.interval_s[1] - found.interval_s[0]
    assert widths[600] < 0.8 * widths[150]


def _cost(mean_s: float) -> Ratio:
    """What it takes to replace a pilot, exactly."""
    found = Ratio()
    for _ in range(LEAST_WAITS):
        found.add(mean_s, 1)
    return found


def test_jobs_that_come_at_a_steady_rate_have_no_best_time() -> None:
    """Seldom: do not wait at all.  Often: wait for as long as can be judged, and say so."""
    seldom = timeout_line(
        KEY, tally(Entry(short=0, long_s=9000, max_idle_s=9000), 150, 3), first=False
    )
    assert seldom is not None
    assert seldom.timeout is not None
    assert seldom.timeout.best_s == GRID_S[0]
    often = timeout_line(KEY, tally(Entry(short=1, short_s=250), 150, 3), first=True)
    assert often is not None
    assert often.timeout is not None
    assert often.timeout.open_ended


def test_waits_that_all_end_soon_are_worth_waiting_for() -> None:
    """A job comes after two to four minutes, always: what is advised is longer than that."""
    lengths = np.linspace(120, 230, 60)
    found = best(WaitArrays(np.arange(60.0), lengths, np.ones(60), np.ones(60)), _cost(240))
    assert found is not None
    assert (found.best_s, found.interval_s, found.arrives) == (240, (240, 240), 1)
    assert dict(found.curve)[found.best_s] == pytest.approx(175)
    cut = np.where(np.arange(60) % 2, 0.0, 1.0)  # half of them were cut off: the end is not known
    found = best(WaitArrays(np.arange(60.0), lengths, cut, np.ones(60)), _cost(240))
    assert found is not None
    assert found.curve[-1][0] < 230


def test_too_few_waits_say_nothing() -> None:
    """Of an entry with some pilots its numbers are known, but no timeout is advised."""
    line = timeout_line(KEY, tally(Entry(), 9, 1), first=True)
    assert line is not None
    assert (line.waits, line.timeout, line.saved_micros) == (9, None, None)
    one = np.zeros(LEAST_WAITS), *(np.ones(LEAST_WAITS) for _ in range(3))
    assert best(WaitArrays(*one), _cost(100)) is None  # all of one pilot


def test_survival_is_that_of_scipy() -> None:
    """With ties, weights of 1, and weights that repeat what was observed."""
    draw = np.random.default_rng(7)
    lengths = np.sort(draw.integers(1, 40, 300).astype(np.float64))
    ended = draw.integers(0, 2, 300).astype(np.float64)
    data = stats.CensoredData(lengths[ended == 1], right=lengths[ended == 0])
    theirs = stats.ecdf(data).sf
    times, lasting = survival(lengths, ended)
    points = np.arange(0, 30, dtype=np.float64)
    assert lasting[np.flatnonzero(times == 20)[-1]] == pytest.approx(
        theirs.evaluate(np.array([20.0]))[0]
    )
    order = np.lexsort((-ended, lengths))
    weights = draw.integers(0, 4, (1, 300)).astype(np.float64)
    ours, _ = wasted(lengths[order], ended[order], np.ones((1, 300)), np.zeros(1), points)
    assert ours[0] == pytest.approx(theirs.evaluate(points))
    often = np.repeat(order, weights[0].astype(int))
    again = stats.CensoredData(
        lengths[often][ended[often] == 1], right=lengths[often][ended[often] == 0]
    )
    ours, idle = wasted(lengths[order], ended[order], weights, np.zeros(1), points)
    assert ours[0] == pytest.approx(stats.ecdf(again).sf.evaluate(points))
    fine = np.arange(0, 29, 0.001)
    area = stats.ecdf(again).sf.evaluate(fine).sum() * 0.001
    assert idle[0, -1] == pytest.approx(area, rel=0.001)


def test_quantiles_of_what_was_cut_off() -> None:
    """A length that was cut off is at least that long; beyond what was seen nothing is said."""
    lengths = np.array([1.0, 2.0, 3.0, 4.0])
    assert quantile(lengths, np.ones(4), 0.5) == 2
    assert quantile(lengths, np.array([1.0, 0.0, 1.0, 1.0]), 0.5) == 3
    assert quantile(lengths, np.array([1.0, 0.0, 0.0, 0.0]), 0.5) is None


def test_a_sample_is_bounded_and_fair() -> None:
    """Late rows have the same chance as early ones."""
    sample = Reservoir(2)
    for number in range(50_000):
        sample.add(number, -number)
    one, other = sample.columns
    assert (sample.seen, one.size) == (50_000, MOST)
    assert np.array_equal(one, -other)
    assert np.mean(one) == pytest.approx(25_000, rel=0.05)
