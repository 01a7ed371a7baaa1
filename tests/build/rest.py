"""What REST serves in tests: a poll that knows the places of a ledger with pilots."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from gwmond.config.settings import Http
from gwmond.metrics.render import Exposition
from gwmond.model.demand.submitters import SubmitterCount, UsersNow
from gwmond.model.entries.evaluation import EntryTime
from gwmond.model.entries.suspects import Finding, Suspect
from gwmond.model.facts import EntryKey
from gwmond.model.poll.snapshot import Snapshot
from gwmond.model.states import State
from gwmond.model.units import Resource
from gwmond.web.app import create
from gwmond.web.connections import Listener
from gwmond.web.explain import Explanations, Turns
from gwmond.web.pages import Pages
from gwmond.web.server import Server, bind
from tests.build.pilot_ledger import BASE, LAST
from tests.build.snapshots import row, snapshot
from tests.build.web import Waiting, with_ledger

NOW_S = float(BASE + LAST)
JOB = f"schedd.example.org#1.0#{BASE}"
SUSPECT = Suspect(
    "node",
    "wn1.example.org",
    "entry-a",
    "Site-A",
    Finding(40, 12, 1.5, 1e-7, 2e-7),
    "ends_too_soon",
    60,
    30,
)
USERS = UsersNow(
    (
        SubmitterCount("ap1", "alice@example.org", "", 12, 2, 0, BASE + LAST - 180),
        SubmitterCount("ap1", "cms.alice@example.org", "", 30, 0, 1, BASE + LAST - 60),
        SubmitterCount("ap2", "cms.alice@example.org", "", 8, 1, 0, BASE + LAST - 60),
        SubmitterCount("ap2", "bob@example.org", "", 0, 0, 0, BASE + LAST - 60),
        SubmitterCount("ap2", "dune.dan@example.org", "", None, 4, 0, BASE + LAST - 60),
    ),
    frozenset(("cms",)),
    complete=True,
)


@dataclass
class Polled:
    """What the application sees of a daemon between two polls."""

    pages: Pages
    exposition: Exposition = field(default_factory=lambda: Exposition(b"", b"# EOF\n"))

    @property
    def snapshot(self) -> Snapshot | None:
        return self.pages.snapshot

    def ready(self) -> str:
        return ""


@contextmanager
def serve(daemon: Any, **http: Any) -> Iterator[tuple[Server, Listener]]:
    """A real server of what a daemon shows, with options of [http]."""
    options = Http(listen="127.0.0.1:0", **http)
    listener = bind(options)
    app = create(daemon, options.auth_token_file, (), listener.connections)
    server = Server(app, listener, options)
    server.start()
    try:
        yield server, listener
    finally:
        server.stop()


def polled(url: str, *, shows_jobs: bool = True, turns: Turns | None = None) -> Polled:
    """Return what is served as of the last time of ``pilot_ledger``."""
    shown = snapshot()
    rows: dict[tuple[EntryKey, Resource], EntryTime] = dict(shown.evaluation.rows) | {
        (key, "cpu"): row(key, "cpu", State.FULL, 4, 4)
        for key in (EntryKey("Site-A", "entry-a"), EntryKey("Site-A", "entry-a2"))
    }
    evaluation = shown.evaluation._replace(rows=rows)
    assert shown.pilot_time is not None
    pilot_time = shown.pilot_time._replace(suspects=(SUSPECT,))
    made = replace(
        shown, evaluation=evaluation, pool_time=NOW_S, pilot_time=pilot_time, users=USERS
    )
    explanations = Explanations(made, Waiting() if shows_jobs else None, turns or Turns())
    return Polled(Pages(made, with_ledger(url), explanations))
