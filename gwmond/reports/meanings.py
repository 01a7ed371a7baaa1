"""The meaning of states and reasons, as in docs/sites.md."""

from __future__ import annotations

from gwmond.model.elapsed import REASONS as UNKNOWN_TIME
from gwmond.model.evaluation import CapacityEvidence
from gwmond.model.states import State
from gwmond.sites.reasons import INSUFFICIENT, REASONS, UNKNOWN

STATES: dict[State, str] = {
    State.PROVISIONING_BOTTLENECK: "no pilot waits at the site, and idle jobs could have run there",
    State.INSUFFICIENT_DEMAND: "no pilot waits at the site, and no idle job is left for it: "
    "none matches, or other slots and sites take them",
    State.FILLING: "pilots wait in the site's queue, none longer than `site.pending_grace`",
    State.SATURATED: "a pilot has waited longer than `site.pending_grace`: the site has no room "
    "for us",
    State.FULL: "everything that it could run is provisioned, busy or not",
    State.DOWN: "the entry is in downtime",
    State.UNKNOWN: "something needed for a verdict is stale, partial or unreachable",
}

_REASONS: dict[str, str] = {
    **{reason.name: reason.description for reason in REASONS},
    **INSUFFICIENT,
    **UNKNOWN,
    **UNKNOWN_TIME,
    "young_collector": "a collector was just restarted, and fewer pilots are seen than before",
    "collector": "a collector does not answer, and fewer pilots are seen than before; or no pilot "
    "renews its ad",
}
CAPACITIES: dict[CapacityEvidence, str] = {
    "pledge": "a pledge in the configuration",
    "peak": "the most that was seen running at once in the last site.peak_window",
    "limit": "the factory's limit times the size of its pilots",
    "none": "not known: there is neither a pledge, nor a peak, nor a limit",
}


def capacity_meanings(evidence: str) -> str:
    """Return what a capacity rests on; of a site evidences of entries are divided by ``/``."""
    return ", and ".join(text for name, text in CAPACITIES.items() if name in evidence.split("/"))


def state_meaning(name: str) -> str:
    """Return when a state holds."""
    return STATES[State(name)].replace("`", "")


def reason_meaning(name: str) -> str:
    """Return the meaning of a reason; empty if it is not known."""
    return _REASONS.get(name, "")
