"""The colours of gwmond's own pages: a category or a state looks the same everywhere.

Those of dark pages, as Grafana's are unless one chooses otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping

from gwmond.model.states import State
from gwmond.reports.render.categories import INFOS
from gwmond.web.parts import STATE_COLOURS, USES

_PAGE = {use.name: use.dark for use in USES}

CATEGORIES: Mapping[str, str] = {
    info.category.value: info.dark for info in INFOS if info.category is not None
}
_NO_TIME = {State.FULL, State.SATURATED}
CAPACITY: Mapping[str, str] = {
    name: dark for name, (_, dark) in STATE_COLOURS.items() if name not in _NO_TIME
}
"""By the label ``state`` of canonical units and seconds of sites."""
USE: Mapping[str, str] = {
    "busy": _PAGE["busy"],
    "idle": _PAGE["insufficient_demand"],
    "remainder": _PAGE["other"],
}
"""By the label ``use`` of the pilots' canonical units."""
STATES: Mapping[State, str] = {state: STATE_COLOURS[state][1] for state in State}
