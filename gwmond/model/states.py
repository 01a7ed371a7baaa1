"""The states of an entry: the causes of its spare time."""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """What the spare time of an entry is put down to; in the order of ``overall``."""

    PROVISIONING_BOTTLENECK = "provisioning_bottleneck"
    FILLING = "filling"
    SATURATED = "saturated"
    UNKNOWN = "unknown"
    INSUFFICIENT_DEMAND = "insufficient_demand"
    FULL = "full"
    DOWN = "down"
