"""The daemon's pages of one poll.

The first is made as the poll ends; the others when they are asked for, of what the poll found: no
page asks HTCondor, and none waits for a poll.
"""

from __future__ import annotations

import time
from functools import cached_property

from gwmond.model.facts import EntryKey
from gwmond.model.snapshot import Snapshot
from gwmond.reports.render.html import template
from gwmond.web import now, place, problems
from gwmond.web.parts import USES, shown


class Pages:
    """The pages of a snapshot; None before the first poll."""

    def __init__(self, snapshot: Snapshot | None) -> None:
        self._snapshot = snapshot
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


def style_sheet() -> str:
    """Return the style sheet of all pages."""
    return template("pages.css.j2").render(uses=USES)
