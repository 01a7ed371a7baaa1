"""Which pilots are to be booked.

Units: times are microseconds since the epoch.
"""

from __future__ import annotations

from gwmond.pilots.open_pilot import OpenPilot
from gwmond.pilots.rules import FAR_US, Rules


def due(pilot: OpenPilot, now_us: int, known_us: int, rules: Rules) -> bool:
    """Return whether booking a pilot may change anything.

    One that runs is booked every ``refresh_us`` only, which is noted.  One that waits for its end
    is not booked before: its time may then be estimated.
    """
    if pilot.from_us < FAR_US or pilot.booked is None:
        return bool(pilot.known_us) or not pilot.waits
    attempts = pilot.attempts.values()
    limit = min(known_us, pilot.until_us)
    if pilot.end_us is not None and not any(attempt.is_open for attempt in attempts):
        return limit > pilot.mark_us or (pilot.counted is None and known_us >= pilot.end_us)
    if now_us < pilot.booked_at_us + rules.refresh_us:
        return False
    pilot.booked_at_us = now_us
    guard = rules.start_guard_us
    running = [
        attempt for attempt in attempts if attempt.is_open and not attempt.merged.ending.over
    ]
    if any(
        attempt.is_open and (attempt.merged.ending.over or attempt.gone) for attempt in attempts
    ):
        return True
    if pilot.end_us is not None:
        return True
    return limit > pilot.mark_us and all(
        attempt.start_us - guard > pilot.mark_us for attempt in running
    )
