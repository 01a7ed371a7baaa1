"""The daemon: polls on a schedule in one thread, serves in another, and obeys signals."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from queue import Empty, SimpleQueue
from types import FrameType
from typing import TYPE_CHECKING

import structlog
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler

from gwmond import __version__
from gwmond.config.settings import Config, ConfigError
from gwmond.config.tracing import Export, export_of
from gwmond.metrics import catalog
from gwmond.metrics.render import Exposition, render
from gwmond.model.facts import Problem
from gwmond.model.poll.snapshot import Credential, Snapshot
from gwmond.model.problem_names import ProblemName
from gwmond.reports.sites.sites import entry_state_counts
from gwmond.service.accounting import file_readers
from gwmond.service.accounting.ledger_keeper import LedgerKeeper
from gwmond.service.host.credentials import credentials, expiring
from gwmond.service.host.log import configure
from gwmond.service.host.log_socket import LogSocket
from gwmond.service.host.memory import give_back
from gwmond.service.host.sdnotify import Notifier
from gwmond.service.poller import Poller
from gwmond.service.pool.known_entries import EMPTY, Memory
from gwmond.service.pool.pool import Pool
from gwmond.service.pool.questions import PageQuestions
from gwmond.sources import child
from gwmond.sources.garbage import RUNNING, few_collections
from gwmond.web.app import create
from gwmond.web.explain import Explanations, Turns
from gwmond.web.local import listening, socket_path
from gwmond.web.pages import Pages
from gwmond.web.server import Server, bind

if TYPE_CHECKING:
    from gwmond.service.trace_export import TraceExporter

log = structlog.get_logger()
_EMPTY = Exposition(b"", b"# EOF\n")
_STUCK_POLLS = 5
_WAKE_S = 1.0
_CLOCK_STEP_S = 2.0
_LEAST_DRAIN_S = 1.0
_GIVEN_UP_S = 15.0
"""A poll that has not ended so long after SIGTERM is given up: systemd kills after 30 s."""

_SWITCH_S = 0.0005  # a scrape shall not wait for a poll's evaluation to give way (default: 5 ms)


class Service:
    """Everything that runs under ``gwmond run``; ``reload`` reads the configuration anew."""

    def __init__(self, config: Config, reload: Callable[[], Config]) -> None:
        self.config = config
        self._reload = reload
        self._notifier = Notifier()
        sys.setswitchinterval(_SWITCH_S)
        self.listener = bind(config.http)
        self._server: Server | None = None
        self._credentials: tuple[Credential, ...] = ()
        self._pool = Pool.open(config)
        self._keeper = LedgerKeeper(config)
        self._log_socket = file_readers.listen(None, config)
        self._export = export_of(config.traces, os.environ)
        self._exporter: TraceExporter | None = None
        self._poller = Poller(config, self._pool, self._keeper, socket=self._log_socket)
        self._next: tuple[Config, LogSocket | None] | None = None
        self._stop = self._hup = False
        self._wake: SimpleQueue[None] = SimpleQueue()
        self._poll_began: float | None = None
        self._polling = threading.Lock()  # held during a poll, and from the end on
        self.snapshot: Snapshot | None = None
        self.exposition = _EMPTY
        self._turns, self._shows_jobs = Turns(), config.http.shows_jobs
        self.pages = self._pages(None)

    def ready(self) -> str:
        """Return why the daemon has nothing to show yet; empty when it has."""
        return "" if self.snapshot is not None else "the first poll is under way"

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT."""
        config = self.config
        http = config.http
        app = create(self, http.auth_token_file, http.hosts, self.listener.connections)
        server = self._server = Server(app, self.listener, http)
        if (local := listening(socket_path())) is not None:
            server.serve_locally(create(_ShownJobs(self), ""), local)
        server.start()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._signalled)
        scheduler = BackgroundScheduler(
            executors={"default": ThreadPoolExecutor(1)}, timezone="UTC"
        )
        scheduler.add_job(
            self.poll_once,
            "interval",
            seconds=config.poll.interval,
            id="poll",
            max_instances=1,
            coalesce=True,
            misfire_grace_time=None,
            next_run_time=datetime.now(UTC),
        )
        scheduler.start()
        self._trace(config, self._export)
        self._notifier.ready()
        self._notifier.status(f"serving {server.url}; the first poll is under way")
        log.info("started", version=__version__, url=server.url)
        try:
            with few_collections(RUNNING):
                self._wait(scheduler)
        finally:
            self._notifier.stopping()
            child.stop()
            scheduler.shutdown(wait=False)
            server.stop()
            self._end()

    def _end(self) -> None:
        """Close all once no poll is under way; it ends with its stage, and without its queries.

        A poll that takes too long is given up, and the process with it: it is one transaction of
        the ledger, so nothing is stored of it, and what it accounted is accounted later.
        """
        self._stop = True
        if not self._polling.acquire(timeout=_GIVEN_UP_S):
            log.warning("stopped during a poll, of which nothing is stored")
            os._exit(0)
        if self._exporter is not None:
            self._exporter.stop()
        self._keeper.close()
        for socket in {self._log_socket, self._next[1] if self._next else None}:
            if socket is not None:
                socket.close()
        log.info("stopped")

    def _wait(self, scheduler: BackgroundScheduler) -> None:
        """Feed the watchdog and reload when asked, until told to stop."""
        interval_s = self._notifier.watchdog_interval_s
        fed = 0.0
        wall_ahead = time.time() - time.monotonic()
        while not self._stop:
            with contextlib.suppress(Empty):
                self._wake.get(timeout=min(_WAKE_S, (interval_s or _WAKE_S) / 2))
            if self._hup and not self._stop:
                self._hup = False
                self.read_again(scheduler)
            now = time.monotonic()
            if abs(time.time() - now - wall_ahead) > _CLOCK_STEP_S:
                wall_ahead = time.time() - now
                log.warning("the clock was stepped")
                self._poll_soon(scheduler)  # its next time was planned by the old clock
            if interval_s is not None and now - fed >= interval_s / 2 and not self._stuck(now):
                self._notifier.watchdog()
                fed = now

    def _stuck(self, now: float) -> bool:
        """Return whether a poll has been under way for far longer than its deadline."""
        began = self._poll_began
        return began is not None and now - began > _STUCK_POLLS * self.config.poll.interval

    def _signalled(self, number: int, _frame: FrameType | None) -> None:
        """Note it; a SimpleQueue, unlike an Event or a lock, may be used in signal handlers."""
        if number == signal.SIGHUP:
            self._hup = True
        else:
            self._stop = True
        self._wake.put(None)

    def read_again(self, scheduler: BackgroundScheduler) -> None:
        """Read the configuration anew; it holds from the next poll, which comes at once."""
        self._notifier.reloading()
        try:
            config = self._reload()
            export_of(config.traces, os.environ)
            Pool(config)  # a recording that cannot be read is a bad configuration, too
            before = self._next[1] if self._next is not None else self._log_socket
            socket = file_readers.listen(before, config)
            if before is not None and before not in {socket, self._log_socket}:
                before.close()
        except ConfigError as error:
            log.error("configuration not reloaded, the old one stays", error=str(error))
            self._poller.failed(ProblemName.BAD_CONFIGURATION)
        else:
            if config.http != self.config.http:
                log.warning("a change of [http] needs a restart")
            self._next = config, socket
            scheduler.reschedule_job("poll", trigger="interval", seconds=config.poll.interval)
            self._poll_soon(scheduler)
            log.info("configuration reloaded")
        self._notifier.ready()

    def _poll_soon(self, scheduler: BackgroundScheduler) -> None:
        if self._poll_began is None:
            scheduler.modify_job("poll", next_run_time=datetime.now(UTC))

    def poll_once(self) -> None:
        """Poll once; whatever happens is logged, and the next poll comes."""
        if not self._polling.acquire(blocking=False):
            return  # all ends
        self._poll_began = time.monotonic()
        try:
            if (following := self._next) is not None:
                self._next = None
                self._adopt(*following)
            exporter = self._exporter
            noticed = self.listener.connections.problems()
            noticed += exporter.problems() if exporter is not None else []
            noticed += self._expiring()
            snapshot = self._poller.poll(noticed)
            self._show(snapshot)
            self._notifier.status(_status(snapshot))
            self._drain(snapshot)
            give_back(snapshot.polls)
        except child.Stopped:
            pass
        except Exception:
            log.exception("poll failed")
            self._poller.failed(ProblemName.POLL_FAILED)
        finally:
            self._poll_began = None
            self._polling.release()

    def _expiring(self) -> list[Problem]:
        """Look at certificates and tokens; return which expire soon."""
        served = self._server.certificate if self._server is not None else ""
        self._credentials = tuple(credentials(self.config, self._export, served))
        problems = (expiring(credential, time.time()) for credential in self._credentials)
        return [problem for problem in problems if problem is not None]

    def _drain(self, snapshot: Snapshot) -> None:
        """Read more of a backlog of job records, until the next poll is due."""
        due = (self._poll_began or time.monotonic()) + self.config.poll.interval
        while self._poller.behind and not self._stop and self._next is None:
            left = due - time.monotonic()
            if left < _LEAST_DRAIN_S:
                return
            snapshot = self._poller.drain(snapshot, min(left, self.config.poll.deadline))
            self._show(snapshot)

    def _show(self, snapshot: Snapshot) -> None:
        """Make all that is served of a snapshot; what it settled can be exported."""
        if (exporter := self._exporter) is not None:
            exporter.wake()
            snapshot = replace(snapshot, traces=exporter.status(self._keeper.corrected))
        snapshot = replace(snapshot, credentials=self._credentials)
        exposition = render(catalog.FAMILIES, snapshot, self.config.metrics.series_budget)
        self.snapshot, self.exposition, self.pages = snapshot, exposition, self._pages(snapshot)

    def _pages(self, snapshot: Snapshot | None) -> Pages:
        """Return the pages of a poll; who may ask for jobs changes with a restart only."""
        return self.pages_for(snapshot, shows_jobs=self._shows_jobs)

    def pages_for(self, snapshot: Snapshot | None, *, shows_jobs: bool) -> Pages:
        """Return the pages of a poll, for who is shown jobs or not."""
        polled = self._pool, snapshot, self._poller.facts
        asked = PageQuestions(self.config, *polled, shows_jobs=shows_jobs)
        recording = self._pool.recording
        tour = recording.tour if recording is not None else ()
        return Pages(snapshot, self.config, Explanations(snapshot, asked, self._turns), tour)

    def _adopt(self, config: Config, socket: LogSocket | None) -> None:
        """Go on under a new configuration, with what is remembered."""
        pool = Pool(config)
        configure(config.log)
        if config.ledger != self.config.ledger:
            self._keeper.close()
            self._keeper = LedgerKeeper(config)
        self._trace(config, export_of(config.traces, os.environ))
        memory: Memory = self._poller.memory if config.ledger == self.config.ledger else EMPTY
        if config.replay == self.config.replay:
            pool.clock = self._pool.clock
        self._pool = pool
        if self._log_socket is not None and socket is not self._log_socket:
            self._log_socket.close()
        self._log_socket = socket
        self._poller = self._poller.successor(config, pool, self._keeper, memory, socket)
        self.config = config

    def _trace(self, config: Config, export: Export) -> None:
        """Export traces as the configuration says, and go on with what is counted."""
        before, same_ledger = self._exporter, config.ledger == self.config.ledger
        self._keeper.traced = bool(export.url)
        if before is not None and export == self._export and same_ledger:
            return
        if before is not None:
            before.stop()
        self._export, self._exporter = export, None
        if export.url:
            from gwmond.service.trace_export import TraceExporter  # noqa: PLC0415 (few export)

            keeper = self._keeper
            counts = before.counts if before is not None else None
            self._exporter = TraceExporter(export, config.ledger, lambda: keeper.ledger, counts)
            self._exporter.start()


def _status(snapshot: Snapshot) -> str:
    states = ", ".join(
        f"{n} {state.replace('_', ' ')}" for state, n in entry_state_counts(snapshot).items() if n
    )
    down = sorted({s.source for s in snapshot.sources if not s.up})
    ledger = "" if snapshot.ledger.up else "; ledger not written"
    return f"entries: {states or 'none'}{'; down: ' + ', '.join(down) if down else ''}{ledger}"


class _ShownJobs:
    """What the daemon shows on its Unix socket: the same, with jobs; made when it is asked for."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._pages = service.pages_for(None, shows_jobs=True)

    @property
    def snapshot(self) -> Snapshot | None:
        return self._service.snapshot

    @property
    def exposition(self) -> Exposition:
        return self._service.exposition

    @property
    def pages(self) -> Pages:
        if self._pages.snapshot is not (snapshot := self._service.snapshot):
            self._pages = self._service.pages_for(snapshot, shows_jobs=True)
        return self._pages

    def ready(self) -> str:
        return self._service.ready()
