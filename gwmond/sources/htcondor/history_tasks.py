"""Tasks of child processes that read records of job runs; each returns a value and a count.

One module of its own, so that the fork server loads it (``child._PRELOAD``) and no child has to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from gwmond.sources.child import QueryError
from gwmond.sources.htcondor import ads, claims, history_fetch, history_files
from gwmond.sources.htcondor.access import Daemon, Query
from gwmond.sources.htcondor.history_cursor import HistoryAnswer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gwmond.sources.htcondor.access import Access
    from gwmond.sources.htcondor.history_cursor import Limits

T = TypeVar("T")
Counted = tuple[T, int]


def records(
    access: Access, daemon: Daemon, kind: str, cursor_state: str, limits: Limits, now: float
) -> Counted[HistoryAnswer]:
    """Ask a schedd (``epochs``, ``history``) or a startd (``startd_history``) for records."""
    try:
        answer = history_fetch.fetch(access, daemon, kind, cursor_state, limits, now)
    except QueryError as error:
        if error.problem != "not_kept":
            raise
        return HistoryAnswer((), cursor_state, None, False, None, None, (), 0, kept=False), 0
    return answer, answer.read


def file_records(
    pattern: str, cursor_state: str, limits: Limits, now: float
) -> Counted[HistoryAnswer]:
    """Read startds' history files on this machine that match a pattern."""
    answer = history_files.fetch(pattern, cursor_state, limits, now)
    return answer, answer.read


def collector_claims(
    access: Access, host: str, since: float | None, now: float
) -> Counted[claims.Claims]:
    """Ask a collector for slots that run a job, or only for jobs begun ``since`` (epoch)."""
    found = access.collector_ads(host, claims.query(since))
    return claims.decode(found, host, now), len(found)


def locate_startds(access: Access, host: str, names: Sequence[str]) -> Counted[tuple[Daemon, ...]]:
    """Ask a collector where startds can be reached."""
    wanted = " || ".join(f"Name == {_quoted(name)}" for name in names)
    query = Query("locate", "StartDaemon", wanted, ("Name", "MyAddress", "CondorVersion"))
    found = access.collector_ads(host, query)
    daemons = []
    for ad in found:
        name, address = ads.text(ad, "Name"), ads.text(ad, "MyAddress")
        if name is not None and address is not None:
            daemons.append(Daemon(name, address, ads.text(ad, "CondorVersion") or ""))
    return tuple(daemons), len(found)


def _quoted(text: str) -> str:
    import classad2  # noqa: PLC0415 (only ever in a child)

    return str(classad2.quote(text))
