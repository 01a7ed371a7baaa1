"""The colours of gwmond's own pages: a category or a state looks the same everywhere.

Those of dark pages, as Grafana's are unless one chooses otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping

from gwmond.model.states import State
from gwmond.reports.categories import INFOS
from gwmond.web.parts import USES

_PAGE = {use.name: use.dark for use in USES}

CATEGORIES: Mapping[str, str] = {
    info.category.value: info.dark for info in INFOS if info.category is not None
}
CAPACITY: Mapping[str, str] = {
    "provisioned": _PAGE["not_busy"],
    "provisioning_bottleneck": _PAGE["provisioning_bottleneck"],
    "insufficient_demand": _PAGE["insufficient_demand"],
    "filling": _PAGE["other"],  # the page has one colour for the three that are left
    "down": "#aa3377",
    "unknown": "#66ccee",
}
"""By the label ``state`` of canonical units and seconds of sites."""
USE: Mapping[str, str] = {
    "busy": _PAGE["busy"],
    "idle": _PAGE["insufficient_demand"],
    "remainder": _PAGE["other"],
}
"""By the label ``use`` of the pilots' canonical units."""
STATES: Mapping[State, str] = {
    **{state: CAPACITY[state] for state in State if state in CAPACITY},
    State.FULL: _PAGE["busy"],
    State.SATURATED: _PAGE["not_busy"],
}
