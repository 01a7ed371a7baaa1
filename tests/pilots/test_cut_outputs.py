"""Outputs that are cut off: which execution of a job they are is the same in whatever order."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from gwmond.model.pilots.file_facts import FileFact
from tests.build.pilot_files import SIZE, S, event, output, us
from tests.build.play import T0, Play
from tests.examples import orders

QUEUE = {
    "started": event(S.STARTED, 100),
    "held": event(S.HELD, 1100),
    "released": event(S.RELEASED, 5100),
    "again": event(S.STARTED, 5400),
}


def lives(facts: Sequence[FileFact], *, apart: bool) -> list[tuple[float, float, str]]:
    """What comes of facts that are told one after the other; ``apart``: hours apart."""
    play, at = Play(), 400_000
    for fact in facts:
        play.add_facts([fact], SIZE)
        play.poll(at)
        if apart:
            play.rest(at + 60, hours=3)
            at += 4 * 3600
        at += 600
    play.rest(at, hours=8)
    return sorted(
        (row.start_us / 1e6 - T0, (row.end_us or 0) / 1e6 - T0, row.end_source)
        for row in play.stored.pilots.values()
    )


@pytest.mark.parametrize("apart", [False, True])
def test_the_second_execution_is_that_of_an_output_without_a_head(apart: bool) -> None:
    """It began well after the first was held; that ended then, and the output is not its."""
    facts: list[FileFact] = [
        *QUEUE.values(),
        output(None, 10_395, condor_start_us=us(5500)),
    ]
    found = {tuple(lives(order, apart=apart)) for order in orders(facts)}
    assert len(found) == 1
    ((first, second),) = found
    assert first == (100, 1100, "queue")
    assert second[:2] == (5400, 10_395)
