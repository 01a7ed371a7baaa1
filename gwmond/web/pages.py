"""The daemon's pages of one poll.

The first is made as the poll ends; the others when they are asked for, of what the poll found: no
page asks HTCondor, and none waits for a poll.
"""

from __future__ import annotations

import threading
import time
from functools import cached_property

from gwmond.model.facts import EntryKey
from gwmond.model.snapshot import Snapshot
from gwmond.reports.render.html import template
from gwmond.reports.time_by_hour import Times, read
from gwmond.web import now, place, problems
from gwmond.web import time as time_page
from gwmond.web.parts import STATE_COLOURS, USES, shown
from gwmond.web.time import Asked


class Pages:
    """The pages of a snapshot; None before the first poll."""

    def __init__(self, snapshot: Snapshot | None, ledger: str = "") -> None:
        """``ledger`` is the URL of the ledger that the page of time reads."""
        self._snapshot = snapshot
        self._ledger = ledger
        self._times: dict[Asked, str] = {}
        self._reading = threading.Lock()
        self._now = now.page(snapshot)

    @property
    def now(self) -> str:
        """The page at ``/``."""
        return shown(self._now, time.time())

    @cached_property
    def _problems(self) -> str:
        return problems.page(self._snapshot)

    @property
    def problems(self) -> str:
        """The page of problems."""
        return shown(self._problems, time.time())

    def site(self, site: str) -> str | None:
        """Return the page of a site; None if it is not known."""
        page = place.site_page(self._snapshot, site) if self._snapshot else None
        return None if page is None else shown(page, time.time())

    def entry(self, site: str, entry: str) -> str | None:
        """Return the page of an entry; None if it is not known."""
        page = place.entry_page(self._snapshot, EntryKey(site, entry)) if self._snapshot else None
        return None if page is None else shown(page, time.time())

    def time(self, asked: Asked) -> str | None:
        """Return the page of time; None if the place is not known.

        The ledger is read once a poll for each page, and for one page at a time.
        """
        s = self._snapshot
        if s is not None and asked.site:
            keys = {key for key, _ in s.evaluation.rows}
            if not any(key.site == asked.site and asked.entry in ("", key.entry) for key in keys):
                return None
        with self._reading:
            if asked not in self._times:
                self._times[asked] = self._time(asked)
            return self._times[asked]

    def _time(self, asked: Asked) -> str:
        if self._snapshot is None:
            return time_page.page(asked, Times((), {}, {}, "The first poll is under way."))
        place = asked.resource, asked.site, asked.entry
        now_s = self._snapshot.pool_time
        return time_page.page(asked, read(self._ledger, asked.range, now_s, *place))


def style_sheet() -> str:
    """Return the style sheet of all pages."""
    return template("pages.css.j2").render(uses=USES, states=STATE_COLOURS)
