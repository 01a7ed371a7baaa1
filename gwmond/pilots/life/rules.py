"""What the accounting of pilots goes by: its periods, and what more is expected."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from gwmond.model.runs.endings import EARLY_US
from gwmond.model.times import SECOND_US
from gwmond.model.units import DEFAULT_MEMORY_MIB
from gwmond.pilots.early.comparison import WINDOW_US

FAR_US = 1 << 62
"""Later than any time."""

EARLIEST_US = 10**15
"""No clock shows less (September 2001): there was no pilot before."""

LATEST_US = 10**16
"""No clock shows more (the year 2286); what does is garbage."""


def sane(*times_us: int | None) -> bool:
    """Return whether times are such as a clock shows, or not known."""
    for time_us in times_us:  # all() takes longer, for each ad of each poll
        if time_us is not None and not EARLIEST_US <= time_us < LATEST_US:
            return False
    return True


LATER_US = 7 * 86400 * SECOND_US
"""By so much later everything that waits is decided."""


class ExpectedInput(Enum):
    """What more may be reported: what waits for anything else does so as if it were much later."""

    EVERYTHING = "everything"
    NO_FILES = "no files"  # an import has read all; a daemon's sources may report more
    NOTHING = "nothing"  # an import has read all

    @property
    def ahead_us(self) -> int:
        """How much later it is for what waits."""
        return LATER_US if self is ExpectedInput.NOTHING else 0

    @property
    def files_ahead_us(self) -> int:
        """How much later it is for what waits for files."""
        return 0 if self is ExpectedInput.EVERYTHING else LATER_US


class Rules(NamedTuple):
    """Periods in microseconds, except ``memory_per_unit_mib``: MiB of a canonical unit.

    - ``outcome_wait``: a claim that is gone without a record is given up after this.
    - ``missing_wait``: the same where the job's schedd is silent.
    - ``verdict``: how long it stays open whether an early failure is the pilot's doing.
    - ``end_tolerance``: a run that ended this long before its pilot may have ended with it.
    - ``start_guard``: a run may have begun this much before its slot says so.
    - ``linger``: how long what is settled is kept in memory for late facts, and how long after a
      start a pilot's output is waited for that may have grown before.
    - ``quiet``: a pilot known from jobs only has ended when no job ran for so long; one of which
      the output has no end, when that was not written to for so long.
    - ``check``: a pilot that registers checks the verdict on its entry by whether it runs a job
      within this time.
    - ``refresh``: how often the idle time of a pilot is posted; of very many, less often
      (``posting.RefreshTurns``).
    """

    memory_per_unit_mib: int = DEFAULT_MEMORY_MIB
    outcome_wait_us: int = 3600 * SECOND_US
    missing_wait_us: int = 86400 * SECOND_US
    verdict_us: int = WINDOW_US
    early_us: int = EARLY_US
    end_tolerance_us: int = 300 * SECOND_US
    start_guard_us: int = 60 * SECOND_US
    linger_us: int = 1800 * SECOND_US
    quiet_us: int = 3600 * SECOND_US
    refresh_us: int = 300 * SECOND_US
    check_us: int = 600 * SECOND_US
