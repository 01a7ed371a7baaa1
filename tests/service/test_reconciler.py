"""A factory whose event logs have ends of pilots, and that writes no completed_jobs."""

from __future__ import annotations

from gwmond.model.factory.totals import FactoryKind as K
from gwmond.service.accounting.reconciler import Reconciler

DAY = 86400.0
ENDED = ("e", "c", K.QUEUE_ENDED)
LINE = ("e", "c", K.SUMMARY_PILOTS)


def test_no_line_for_a_day() -> None:
    """It is told after a day and as long as it lasts; a line ends it."""
    reconciler = Reconciler("sqlite:////nowhere")
    assert not reconciler.step(1e9, [])
    assert not reconciler.step(1e9, [ENDED])
    assert not reconciler.step(1e9 + DAY - 1, [ENDED])
    for more in (0, 60):
        (problem,) = reconciler.step(1e9 + DAY + more, [ENDED])
        assert (problem.source, problem.problem) == ("factory", "no_completed_jobs")
    assert not reconciler._lineless(1e9 + 2 * DAY, {ENDED[2], LINE[2]})
