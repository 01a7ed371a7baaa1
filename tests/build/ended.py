"""A pilot that has ended."""

from __future__ import annotations

from gwmond.model.facts import Size
from gwmond.model.pilot_life import SizeStep
from gwmond.model.pilots.stored_pilots import PilotRow
from tests.ledger.pilot_batches import HOUR, pilot_at

ORIGIN = 1_700_000_000 * 10**6
LIFE = 4 * HOUR
LATE = ORIGIN + 100 * HOUR


def pilot(**changes: object) -> PilotRow:
    """A pilot of four cores and four hours that has ended, and is closed."""
    some = pilot_at(1, LATE)
    assert some is not None
    row = some.row._replace(
        start_us=ORIGIN,
        end_us=ORIGIN + LIFE,
        steps=(SizeStep(ORIGIN, Size(4, 8000)),),
        assumed={},
        settled={},
        ran_jobs=False,
    )
    return row._replace(**changes)  # type: ignore[arg-type]
