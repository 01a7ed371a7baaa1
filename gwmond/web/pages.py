"""The daemon's pages of one poll.

The first is made as the poll ends, the others when they are asked for, each once, at a desk
(``desks``): whoever asks for many waits, and a poll does not.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Callable, Sized
from typing import Any, TypeVar

from gwmond.config.settings import Config
from gwmond.model.facts import EntryKey
from gwmond.model.poll.snapshot import Snapshot
from gwmond.model.times import SECOND_US
from gwmond.reports.ledger.ledger_reading import Unreadable
from gwmond.reports.render.html import template
from gwmond.reports.sites.time_by_hour import RANGES, Times, read
from gwmond.web import failures, now, pilots, place, problems
from gwmond.web import time as time_page
from gwmond.web.asking import FailuresAsked, PilotsPage, TimeAsked
from gwmond.web.explain import Explanations, Turns
from gwmond.web.parts import STATE_COLOURS, USES, shown

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
    """The pages of a snapshot, None before the first poll; ``sequence`` is no other one's."""

    def __init__(
        self, snapshot: Snapshot | None, config: Config, explanations: Explanations | None = None
    ) -> None:
        self.explanations = explanations or Explanations(snapshot, None, Turns())
        self.snapshot, self.config = snapshot, config
        self.sequence = f"{time.time_ns():x}-{next(_SEQUENCE)}"
        self._now = now.page(snapshot)
        self.kept = MadeOnce()

    @property
    def shows_jobs(self) -> bool:
        """Whether jobs and their users are named."""
        return self.explanations.shows_jobs

    @property
    def now(self) -> str:
        """The page at ``/``."""
        return shown(self._now, time.time())

    @property
    def problems(self) -> str | None:
        """The page of problems."""
        return self._made(("problems",), lambda: problems.page(self.snapshot))

    def site(self, site: str) -> str | None:
        """Return the page of a site; None if it is not known."""
        s = self.snapshot
        return self._made(("site", site), lambda: place.site_page(s, site) if s else None)

    def entry(self, site: str, entry: str) -> str | None:
        """Return the page of an entry; None if it is not known."""
        s, key = self.snapshot, EntryKey(site, entry)
        return self._made(("entry", *key), lambda: place.entry_page(s, key) if s else None)

    def time(self, choice: TimeAsked) -> str | None:
        """Return the page of time, for which the ledger is read."""
        return self._made(("time", *choice.query.values()), lambda: self._time(choice))

    def failures(self, chosen: FailuresAsked) -> str | None:
        """Return the page of failures, for which the ledger is read."""
        return self._made(
            ("failures", *chosen.query.values()),
            lambda: failures.page(
                self.config, self.snapshot, self._now_us, chosen, shows_jobs=self.shows_jobs
            ),
        )

    def pilots(self, chosen: PilotsPage) -> str | None:
        """Return the list of pilots, for which the ledger is read."""
        return self._made(
            ("pilots", *chosen.query.values()),
            lambda: pilots.list_page(
                self.config, self.snapshot, self._now_us, chosen, shows_jobs=self.shows_jobs
            ),
        )

    def pilot(self, number: int) -> str | None:
        """Return the page of a pilot, for which the ledger is read; None if there is none."""
        return self._made(
            ("pilot", str(number)),
            lambda: pilots.life_page(self.config, self._now_us, number, shows_jobs=self.shows_jobs),
        )

    def trace(self, job: str, pilot: int) -> str | None:
        """Return the page of a trace, for which the ledger is read; None if none may be shown."""
        if job and not self.shows_jobs:
            return None
        return self._made(
            ("trace", job, str(pilot)),
            lambda: pilots.trace_page(
                self.config, self._now_us, job, pilot, shows_jobs=self.shows_jobs
            ),
        )

    def trace_form(self, job: str, pilot: int, error: str = "") -> str:
        """Return the page that asks for a trace; ``error``: why there is none."""
        return pilots.trace_form(job, pilot, error, shows_jobs=self.shows_jobs)

    @property
    def _now_us(self) -> int:
        """The pool's time of the last poll."""
        now_s = self.snapshot.pool_time if self.snapshot else time.time()
        return round(now_s * SECOND_US)

    def _made(self, key: tuple[str, ...], make: Callable[[], str | None]) -> str | None:
        page = self.kept.made(key, make)
        return None if page is None else shown(page, time.time())

    def _time(self, choice: TimeAsked) -> str:
        now_s = self._now_us / SECOND_US
        where = choice.resource, choice.place
        try:
            times, error = read(self.config.ledger.url, RANGES[choice.last], now_s, *where), ""
        except Unreadable as unreadable:
            times, error = Times(), str(unreadable)
        return time_page.page(self.snapshot, choice, times, error)


def style_sheet() -> str:
    """Return the style sheet of all pages."""
    return template("pages.css.j2").render(uses=USES, states=STATE_COLOURS)
