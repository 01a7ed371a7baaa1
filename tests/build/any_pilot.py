"""Strategies for pilots of any kind, sensible or not."""

from __future__ import annotations

from hypothesis import strategies as st

from gwmond.model.facts import Size
from gwmond.model.pilot_life import PilotLife, Run, Validation
from tests.build.pilots import BROKEN, CUT, FAILED, GOOD, HELD, HOUR, job, pilot

CORES = st.sampled_from([0, 0.1, 0.333, 0.5, 1, 1, 2, 3, 8, 12])
MEMORY = st.sampled_from([0, 1, 100, 999.5, 1000, 2000, 2000, 3000, 7000, 50000])
CHIPS = st.sampled_from([0, 0, 0, 0.5, 1, 2, 5])
SIZES = st.builds(Size, CORES, MEMORY, CHIPS)
PILOT_SIZES = st.sampled_from(
    [Size(8, 16000, 2), Size(4, 7000), Size(2.5, 3000, 1), Size(0, 0), SIZES]
).flatmap(lambda of: of if isinstance(of, st.SearchStrategy) else st.just(of))
# Whole seconds, fractions of them, and times outside of the life.
TIMES = st.integers(-600, 3 * HOUR) | st.floats(-10, 2 * HOUR, allow_nan=False)
ESTIMATED = st.lists(st.tuples(TIMES, TIMES), max_size=1)
OUTCOMES = st.sampled_from([GOOD, FAILED, BROKEN, CUT, HELD, CUT._replace(evidence="estimated")])


@st.composite
def runs(draw: st.DrawFn, name: str, *, finished: bool = False) -> Run:
    """Any run: skewed, empty, backwards, oversubscribed, perhaps running."""
    start = draw(TIMES)
    end = draw(st.none() | TIMES | st.just(start))
    outcome = draw(OUTCOMES if finished else st.none() | OUTCOMES)
    return job(name, start, end, draw(SIZES), outcome)


@st.composite
def pilots(draw: st.DrawFn, *, finished: bool = False) -> PilotLife:
    """Any pilot; a finished one is settled from its start to its end."""
    names = "abcdefgh"[: draw(st.integers(0, 8))]
    steps = draw(st.lists(st.tuples(TIMES, PILOT_SIZES), max_size=3))
    end = draw(TIMES) if finished else draw(st.none() | TIMES)
    return pilot(
        *(draw(runs(name, finished=finished)) for name in names),
        start=draw(st.sampled_from([0, 0, 1800.5])),
        end=end,
        now=draw(TIMES),
        steps=[(draw(st.just(0) | TIMES), draw(PILOT_SIZES)), *steps],
        validation=Validation.PASSED if finished else draw(st.sampled_from(Validation)),
        known_until=None if finished else draw(st.none() | TIMES),
        estimates=(draw(ESTIMATED), draw(ESTIMATED), draw(ESTIMATED)),
    )
