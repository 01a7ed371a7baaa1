"""The periods of the configuration that decide when pilots' time is settled."""

from __future__ import annotations

from gwmond.config.settings import Config
from gwmond.model.times import SECOND_US
from gwmond.pilots.life.rules import Rules

_JUDGED_EVERY_S = 60.0


def rules(config: Config) -> Rules:
    """Return the periods of the configuration."""
    pilots = config.pilots

    def us(seconds: float) -> int:
        return round(seconds * SECOND_US)

    return Rules(
        memory_per_unit_mib=config.canonical.memory_mib,
        outcome_wait_us=us(pilots.outcome_wait),
        missing_wait_us=us(max(pilots.silent_wait, pilots.outcome_wait)),
        verdict_us=us(pilots.verdict_after),
        end_tolerance_us=us(pilots.end_tolerance),
        start_guard_us=min(us(pilots.settle_delay), 60 * SECOND_US),
        linger_us=us(max(pilots.settle_delay, pilots.end_tolerance) * 2),
        quiet_us=us(pilots.assumed_end),
        refresh_us=us(min(300.0, 2.5 * pilots.settle_delay)),
        check_us=us(config.site.verdict_check),
    )


def later_us(config: Config) -> int:
    """Return by how much later than it is due a decision falls: polls, and settle_delay."""
    seconds = config.pilots.settle_delay + 2 * config.poll.interval + _JUDGED_EVERY_S
    return round(seconds * SECOND_US)
