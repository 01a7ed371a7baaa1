"""What is believed of the time between two updates of ads."""

from __future__ import annotations

import pytest

from gwmond.model.pilots.update_gaps import UpdateGaps

NOW = 1_795_782_000
SHORT = (8, 6, 6, 6, 5, 5, 5, 4, 4, 2)
"""Of a real pool of HTCondor 25, whose pilots of six minutes ended before their timer came round
twice (UPDATE_INTERVAL 300): all are changes of state."""
LONG = (230, 221, 204, 200, 196, 96, 91, 83)


def test_changes_of_state_that_are_about_equal_are_no_timer() -> None:
    """Ads lived for longer without an update: two thirds of their lifetime count."""
    found = UpdateGaps().add(NOW, SHORT, LONG)
    assert found.regular is None
    assert found.two_updates(900) == 600
    assert UpdateGaps().add(NOW, SHORT, LONG[:4]).regular == 6


def test_a_timer_is_believed_though_some_updates_are_lost() -> None:
    hours = UpdateGaps()
    for hour in range(3):
        hours = hours.add(NOW + 3600 * hour, [300] * 15, [900, 700, 650])
    assert hours.regular == 300


def test_nor_do_daemons_that_were_stopped_for_a_while_make_it_doubtful() -> None:
    """Of a timer of five seconds; each update counts, though only the longest times are kept."""
    assert UpdateGaps().add(NOW, [5] * 400, [40] * 30).regular == 5


@pytest.mark.parametrize("others", [(), LONG])
def test_it_is_stored_and_read(others: tuple[int, ...]) -> None:
    found = UpdateGaps().add(NOW - 3600, SHORT).add(NOW, (), others).add(NOW, SHORT[:2], others[:1])
    assert UpdateGaps.of(found.text) == found


@pytest.mark.parametrize("text", ["", ",", "7", "7 x", "7 5,x", "8 5;7 5", "7,", ",5", "-7 5"])
def test_nothing_is_made_of_another_text(text: str) -> None:
    assert UpdateGaps.of(text) == UpdateGaps()
