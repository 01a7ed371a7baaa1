"""Times in recorded ads, moved to when they are replayed.

All of a pass are moved by the same whole seconds, so that what belongs together stays so: a claim's
public id names the start of its startd, and a job's global id when it was submitted.  By the latter
the jobs of one pass are others than those of the pass before, in claims and histories alike.
"""

from __future__ import annotations

import re
from functools import cache

from gwmond.model.digits import is_number

_EPOCH = re.compile(
    r"^(DaemonStartTime|StatsLastUpdateTime|GLIDEIN_ToRetire|GLIDEIN_ToDie|GLIDEIN_Expire"
    r"|MyCurrentTime|QDate|EnteredCurrent\w+|MonitorSelfTime|LastHeardFrom"
    r"|JobStart|JobCurrent(Start|Finish)\w*|Job(Last)?StartDate|JobDisconnectedDate"
    r"|Transfer(In|Out)(Queued|Started|Finished)|CompletionDate|LastVacateTime|EpochWriteDate)$"
)
_CLAIM = re.compile(r"(?<=>#)[0-9]+(?=#)")
_WITHIN = {
    "GlobalJobId": re.compile(r'(?<=#)[0-9]+(?="$)'),
    "PublicClaimId": _CLAIM,
    "LastPublicClaimId": _CLAIM,
    "ToE": re.compile(r"(?<=\bWhen = )[0-9]+"),
}


def moved(name: str, text: str, shift: int) -> str:
    """Return an attribute's text with its time, if it has one, moved by so many seconds.

    >>> moved("GlobalJobId", '"schedd@host#7.0#1000"', 500)
    '"schedd@host#7.0#1500"'
    """
    if _is_epoch(name):
        return str(int(text) + shift) if is_number(text) and int(text) > 0 else text
    within = _WITHIN.get(name)
    if within is None:
        return text
    return within.sub(lambda found: str(int(found[0]) + shift), text, count=1)


@cache
def _is_epoch(name: str) -> bool:
    return _EPOCH.match(name) is not None
