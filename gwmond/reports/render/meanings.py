"""What people are told of states and reasons: words, meanings as in docs/sites.md, colours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gwmond.model.elapsed import REASONS as UNKNOWN_TIME
from gwmond.model.entries.evaluation import CapacityEvidence
from gwmond.model.states import State
from gwmond.reports.render.table import Cell
from gwmond.sites.reasons import INSUFFICIENT, REASONS, UNKNOWN


class StateInfo(NamedTuple):
    """A state for people.

    What a terminal calls it, and its colour there; when it holds; its colours on light and on dark
    pages, where each state is drawn by itself.
    """

    word: str
    colour: str
    meaning: str
    light: str
    dark: str


STATES: Mapping[State, StateInfo] = {
    State.PROVISIONING_BOTTLENECK: StateInfo(
        *("bottleneck", "red"),
        "no pilot waits at the site, and idle jobs could have run there",
        *("#ee6677", "#ee6677"),
    ),
    State.INSUFFICIENT_DEMAND: StateInfo(
        *("no demand", "cyan"),
        "no pilot waits at the site, and no idle job is left for it: "
        "none matches, or other slots and sites take them",
        *("#bbbbbb", "#8a8f94"),
    ),
    State.FILLING: StateInfo(
        *("filling", "yellow"),
        "pilots wait in the site's queue, none longer than `site.pending_grace`",
        *("#ccbb44", "#ccbb44"),
    ),
    State.SATURATED: StateInfo(
        *("saturated", "green"),
        "a pilot has waited longer than `site.pending_grace`: the site has no room for us",
        *("#228833", "#3aa34c"),
    ),
    State.FULL: StateInfo(
        *("full", "green"),
        "everything that it could run is provisioned, busy or not",
        *("#228833", "#3aa34c"),
    ),
    State.DOWN: StateInfo(
        *("down", "magenta"), "the entry is in downtime", *("#aa3377", "#c45a97")
    ),
    State.UNKNOWN: StateInfo(
        *("unknown", "bright_black"),
        "something needed for a verdict is stale, partial or unreachable",
        *("#66ccee", "#66ccee"),
    ),
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
    "above_pledge": "what runs, which is more than the configuration pledges",
    "peak": "the most that was seen running at once in the last site.peak_window",
    "limit": "the factory's limit times the size of its pilots",
    "none": "not known: there is neither a pledge, nor a peak, nor a limit",
}


def capacity_meanings(evidence: str) -> str:
    """Return what a capacity rests on; of a site evidences of entries are divided by ``/``."""
    return ", and ".join(text for name, text in CAPACITIES.items() if name in evidence.split("/"))


def state_meaning(name: str) -> str:
    """Return when a state holds."""
    return STATES[State(name)].meaning.replace("`", "")


def state_cell(name: str) -> Cell:
    """Return a state as a terminal shows it."""
    info = STATES[State(name)]
    return Cell(info.word, info.colour)


def reason_meaning(name: str) -> str:
    """Return the meaning of a reason; empty if it is not known."""
    return _REASONS.get(name, "")
