"""Alerts in a simulated pool: soon where places fail jobs, and none where nothing is wrong.

``python -m tests.bench alerts`` has whole weeks (docs/alerts.md).
"""

from __future__ import annotations

from tests.alerts.causes import Past, causes, is_right
from tests.alerts.played import Firing, firing
from tests.alerts.rules import alerts
from tests.bench.alerts import play
from tests.simulator.pool import Pool
from tests.simulator.story import Event, What

BADPUT = "GwmondMisconfigurationBadput"
BEGINS_H, ENDS_H = 6.0, 8.0
FAULTS = (
    Event(What.STORAGE, "Tagus", BEGINS_H, ENDS_H, 0.7),
    Event(What.BLACK_HOLE, "wn04.po", BEGINS_H, ENDS_H),
)


def played(seed: int, events: tuple[Event, ...], hours: float) -> tuple[list[Firing], Past]:
    """What fires in the first hours of a week, from Wednesday's early morning on."""
    samples, past, _ = play(Pool(seed, events), hours)
    return firing(samples, list(alerts())), past


def test_places_that_fail_jobs_fire_within_the_hour_and_until_they_are_mended() -> None:
    """From the first run that fails on; and nothing fires at any other place."""
    fired, past = played(32, FAULTS, ENDS_H + 0.5)
    true = causes(past)
    for alert, place in ((BADPUT, "Po"), ("GwmondTransferFailures", "Tagus")):
        (one,) = [one for one in fired if (one.alert, one.place) == (alert, place)]
        (cause,) = [cause for cause in true[alert] if cause.place == place]
        assert cause.large
        assert one.begins_h - cause.begins_h < 1
        assert one.ends_h > ENDS_H
    names = {BADPUT, "GwmondTransferFailures", "GwmondSiteNoDemand"}
    assert {one.alert for one in fired} <= names
    assert all(is_right(one, true[one.alert], 0) for one in fired)
