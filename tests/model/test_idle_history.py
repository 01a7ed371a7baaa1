"""Since when groups of jobs wait for which reason."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gwmond.model.demand.idle_history import A_DAY, SEVERAL, GroupKey, WaitInterval, WaitLog, Waits

MINUTE = 60_000_000
KEY: GroupKey = ("ap1", "g")


def waits(cause: str) -> Waits:
    return Waits("w", "no_pilot", cause, "S")


@given(st.lists(st.tuples(st.integers(1, 9), st.sampled_from([None, "a", "b"])), max_size=40))
def test_intervals_follow_each_other_and_say_what_was_found(
    polls: list[tuple[int, str | None]],
) -> None:
    """After each poll, as stored: none overlap, one lasts if the group is there, with its cause."""
    log, stored, now = WaitLog(), dict[int, WaitInterval](), 0
    for minutes, cause in polls:
        now += minutes * MINUTE
        found = {} if cause is None else {KEY: waits(cause)}
        for row in log.step(now, found, 5 * MINUTE):
            stored[row.since_us] = row
        rows = sorted(stored.values(), key=lambda row: row.since_us)
        ends = [row.until_us for row in rows]
        assert all(
            end is not None and end <= later.since_us
            for end, later in zip(ends, rows[1:], strict=False)
        )
        lasting = [row for row in rows if row.until_us is None]
        assert [row.cause for row in lasting] == ([] if cause is None else [cause])
    again = WaitLog([row for row in stored.values() if row.until_us is None], now)
    last = {KEY: waits(polls[-1][1])} if polls and polls[-1][1] else {}
    assert again.step(now + MINUTE, last, 5 * MINUTE) == []


def test_after_a_gap_nothing_is_known_of_it() -> None:
    log = WaitLog()
    log.step(MINUTE, {KEY: waits("a")}, 3 * MINUTE)
    log.step(2 * MINUTE, {KEY: waits("a")}, 3 * MINUTE)
    ended, begun = log.step(60 * MINUTE, {KEY: waits("a")}, 3 * MINUTE)
    assert (ended.since_us, ended.until_us) == (MINUTE, 2 * MINUTE)
    assert (begun.since_us, begun.until_us) == (60 * MINUTE, None)


def test_reasons_that_come_and_go_are_bounded() -> None:
    """Of one group at most so many intervals begin in a day; the last of them is several."""
    log, begun = WaitLog(), 0
    for number in range(200):
        rows = log.step(number * MINUTE, {KEY: waits("ab"[number % 2])}, 5 * MINUTE)
        begun += sum(row.until_us is None for row in rows)
    assert begun == A_DAY + 1
    assert (rows, log.step(200 * MINUTE, {}, 5 * MINUTE)[0].cause) == ([], SEVERAL)
