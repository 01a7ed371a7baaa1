"""Metrics of negotiators: their last cycle, by their own ads."""

from __future__ import annotations

from gwmond.metrics.family import POLLED, Family, Sample

TOPIC = "Demand"
FAMILIES = (
    Family(
        "gwmond_negotiator_cycle_seconds",
        "gauge",
        "seconds",
        "How long a negotiator's last cycle took, by its own ad. Unit: seconds." + POLLED,
        ("negotiator",),
        lambda s: (
            Sample((one.name,), one.cycle_s)
            for one in s.reported.negotiator
            if one.cycle_s is not None
        ),
    ),
    Family(
        "gwmond_negotiator_matches",
        "gauge",
        "",
        "Matches that a negotiator made in its last cycle, by its own ad. Unit: matches." + POLLED,
        ("negotiator",),
        lambda s: (
            Sample((one.name,), one.matches)
            for one in s.reported.negotiator
            if one.matches is not None
        ),
    ),
)
