"""The daemon's pages of one poll.

The first is made as the poll ends, the others when they are asked for, each once, at a desk
(``desks``): whoever asks for many waits, and a poll does not.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Callable, Mapping, Sequence, Sized
from typing import Any, TypeVar

from gwmond.config.settings import Config
from gwmond.model.facts import EntryKey
from gwmond.model.poll.snapshot import Snapshot
from gwmond.model.tour import TourStop
from gwmond.reports.render.html import template
from gwmond.web import (
    advise,
    failures,
    forecast,
    now,
    past,
    pilots,
    place,
    problems,
    report,
    runs,
    user,
)
from gwmond.web import time as time_page
from gwmond.web.asking import (
    AdvisePage,
    FailuresAsked,
    ForecastPage,
    OfPlace,
    PastPage,
    PilotsPage,
    ReportPage,
    RunsPage,
    TimeAsked,
    UserAsked,
)
from gwmond.web.explain import Explanations, Turns
from gwmond.web.parts import STATE_COLOURS, USES, View, shown

MOST_KEPT, MOST_BYTES = 200, 32 << 20
"""So many pages or answers of a poll, and so much of them, stay in memory."""
K = TypeVar("K", bound=Sized)
_SEQUENCE = itertools.count(1)


class NotMade(Exception):
    """It is to be made, which takes too long for an event loop."""


class MadeOnce:
    """What was made of one poll when it was asked for, each once; on an event loop nothing is made.

    Threads of one desk make what others do not.
    """

    def __init__(self) -> None:
        self._kept: dict[tuple[object, ...], Any] = {}
        self._size = 0
        self._lock = threading.Lock()

    def made(self, key: tuple[object, ...], make: Callable[[], K | None]) -> K | None:
        """Return it; raises NotMade."""
        with self._lock:
            if key in self._kept:
                found: K | None = self._kept[key]
                return found
        if asyncio._get_running_loop() is not None:
            raise NotMade
        made = make()
        with self._lock:
            self._kept[key] = made
            self._size += len(made or ())
            while len(self._kept) > MOST_KEPT or (self._size > MOST_BYTES and len(self._kept) > 1):
                self._size -= len(self._kept.pop(next(iter(self._kept))) or ())
        return made


class Pages:
    """The pages of a snapshot, None before the first poll; ``sequence`` is no other one's.

    What is not known has no page: None.  For those that are chosen the ledger is read.
    """

    def __init__(
        self,
        snapshot: Snapshot | None,
        config: Config,
        explanations: Explanations | None = None,
        tour: Sequence[TourStop] = (),
    ) -> None:
        self.explanations = explanations or Explanations(snapshot, None, Turns())
        self.snapshot = snapshot
        self.view = View(snapshot, config, self.explanations.shows_jobs)
        self.sequence = f"{time.time_ns():x}-{next(_SEQUENCE)}"
        self._now = now.page(snapshot, tour)
        self.kept = MadeOnce()

    @property
    def now(self) -> str:
        """The page at ``/``."""
        return shown(self._now, time.time())

    @property
    def problems(self) -> str | None:
        """The page of problems."""
        return self._made(("problems",), lambda: problems.page(self.snapshot))

    @property
    def held(self) -> str | None:
        """The page of held pilots."""
        return self._made(("held",), lambda: place.held_page(self.snapshot))

    def site(self, site: str) -> str | None:
        """Return the page of a site."""
        s = self.snapshot
        return self._made(("site", site), lambda: place.site_page(s, site) if s else None)

    def entry(self, site: str, entry: str) -> str | None:
        """Return the page of an entry."""
        s, key = self.snapshot, EntryKey(site, entry)
        return self._made(("entry", *key), lambda: place.entry_page(s, key) if s else None)

    def chosen(self, asked: OfPlace) -> str | None:
        """Return a page of the ledger, by what is asked for."""
        make = _CHOSEN[type(asked)]
        return self._made((type(asked), *asked.query.values()), lambda: make(self.view, asked))

    def pilot(self, number: int) -> str | None:
        """Return the page of a pilot."""
        return self._made(("pilot", number), lambda: pilots.life_page(self.view, number))

    def trace(self, job: str, pilot: int) -> str | None:
        """Return the page of a trace; None also if it may not be shown."""
        if job and not self.view.shows_jobs:
            return None
        return self._made(("trace", job, pilot), lambda: pilots.trace_page(self.view, job, pilot))

    def _made(self, key: tuple[object, ...], make: Callable[[], str | None]) -> str | None:
        page = self.kept.made(key, make)
        return None if page is None else shown(page, time.time())


_CHOSEN: Mapping[type[OfPlace], Callable[[View, Any], str]] = {
    TimeAsked: time_page.page,
    AdvisePage: advise.page,
    FailuresAsked: failures.page,
    ForecastPage: forecast.page,
    PastPage: past.page,
    PilotsPage: pilots.list_page,
    RunsPage: runs.page,
    ReportPage: report.page,
    UserAsked: user.page,
}


def style_sheet() -> str:
    """Return the style sheet of all pages."""
    return template("pages.css.j2").render(uses=USES, states=STATE_COLOURS)
