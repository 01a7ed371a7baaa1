"""Forecasts: what follows from a rule and its tries, where it is known what comes."""

from __future__ import annotations

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from gwmond.model.demand.forecast import (
    FEWEST,
    HORIZON_S,
    Forecast,
    Level,
    Levels,
    Starts,
    Tried,
    forecast,
)
from gwmond.model.demand.idle_history import Begun
from gwmond.model.times import HOUR_S

SECONDS = st.floats(1, 1e6)


@given(st.lists(st.tuples(SECONDS, SECONDS | st.just(inf)), min_size=FEWEST, max_size=200), SECONDS)
def test_of_the_tries_as_many_would_have_held_as_is_said(
    tries: list[tuple[float, float]], said_s: float
) -> None:
    """The intervals are within each other, whatever was tried."""
    tried = [Tried(*one) for one in tries]
    found = forecast(said_s, tried)
    assert found is not None
    (a, b), (c, d) = found.nine_tenths, found.half
    assert 0 <= a <= c <= found.middle_s <= d <= b
    for name, part in (("half", 0.5), ("nine_tenths", 0.9)):
        held = 0
        for one in tried:
            least, most = getattr(forecast(one.said_s, tried), name)
            held += least - 1e-6 <= one.took_s <= most * (1 + 1e-9) + 1e-6
        assert held >= part * len(tried) - 1


def test_of_few_tries_nothing_is_said() -> None:
    assert forecast(60.0, [Tried(60.0, 60.0)] * (FEWEST - 1)) is None
    assert forecast(None, [Tried(60.0, 60.0)] * FEWEST) is None


def _tooth(hours: float) -> float:
    """Each day it falls from 20 to 0 within ten hours, and rises again at once."""
    return max(0.0, 20 - 2 * (hours % 24)) if hours % 24 < 20 else 20.0


def test_what_falls_evenly_is_foretold_exactly() -> None:
    """Of something that falls each day as before, the time is known to the step of the polls."""
    steps = [Level(1e9 + 600 * n, _tooth(n / 6)) for n in range(6 * 24 * 5)]
    levels = Levels(steps)
    now_s = 1e9 + 4 * 24 * HOUR_S + 4 * HOUR_S  # six hours before it is at 0
    tried = levels.tried(now_s)
    found = forecast(levels.said_s(now_s), tried)
    assert found is not None
    assert abs(found.middle_s - 6 * HOUR_S) < 1200
    assert found.half[0] <= levels.took_s(now_s) + 600
    assert levels.took_s(now_s) - 600 <= found.half[1]


def test_what_does_not_fall_is_not_foretold() -> None:
    """Nor what nobody looked at for an hour, nor what is there already."""
    still = Levels([Level(1e9 + 600 * n, 5.0) for n in range(100)])
    assert (still.falls_by(1e9 + 60_000), still.said_s(1e9 + 60_000)) == (0.0, None)
    falls = [Level(1e9 + 600 * n, 100.0 - n) for n in range(100)]
    assert Levels(falls).said_s(1e9 + 59_400) is not None
    assert Levels(falls).falls_by(1e9 + 59_400 + 2 * HOUR_S) is None
    assert Levels(falls).said_s(1e9 + 59_400 + 2 * HOUR_S) is None
    assert Levels(falls[:3]).falls_by(1e9 + 1_200) is None
    assert Levels([*falls, Level(1e9 + 60_000, 0.0)]).said_s(1e9 + 60_000) is None
    assert Levels([Level(x.time_s, None) for x in falls]).said_s(1e9 + 59_400) is None


def test_over_the_horizon_is_only_said_to_take_longer() -> None:
    tried = [Tried(HOUR_S, inf)] * FEWEST
    assert forecast(HORIZON_S, tried) == Forecast(FEWEST, inf, (inf, inf), (inf, inf))


def test_a_job_starts_when_those_ahead_have() -> None:
    """At six starts an hour the fifth in the queue waits fifty minutes, known ahead or not."""
    begun = [Begun(1e9 + 600 * n - 3000, 1e9 + 600 * n) for n in range(500)]
    starts, now_s = Starts(begun), 1e9 + 600 * 500
    for ahead in (4, None):
        tried = starts.tried(now_s, counted=ahead is not None)
        found = forecast(starts.said_s(now_s, 0.0, ahead), tried)
        assert found is not None
        assert 2400 <= found.middle_s <= 3600, (ahead, found)
    assert Starts([]).said_s(now_s, 0.0, 4) is None
