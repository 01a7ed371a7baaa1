"""Check the configuration, then send each query to each daemon once.

Each line has a daemon, a query and its result. Below is what to do about each query that failed.
The ledger, the listen address, [pool] token_directory, the paths of [factory] and the receiver of
traces are tried too, and until when certificates and tokens are valid is shown.
The receiver gets a request without spans.
Nothing is written, neither to HTCondor nor to the ledger.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from gwmond.commands.common import EXIT_OK, EXIT_SOURCES_DOWN, show
from gwmond.config.settings import Config
from gwmond.config.tracing import Export, export_of
from gwmond.config.types import comes_with_service
from gwmond.ledger.database.errors import NOT_THERE, LedgerError, LedgerLocation
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.model.cursor_kinds import SCHEDD_KINDS
from gwmond.model.facts import Status
from gwmond.model.problem_names import ProblemName
from gwmond.model.times import SECOND_US
from gwmond.reports.render import writing
from gwmond.reports.render.document import Document, Paragraph, Part, TextLines
from gwmond.reports.render.formats import number
from gwmond.reports.render.periods import short, span
from gwmond.reports.render.table import Cell, Column, table
from gwmond.service.host import log, places
from gwmond.service.host.credentials import (
    credentials,
    expiring,
    token_directory,
    until,
    without_token,
)
from gwmond.service.host.daemon_client import is_of, is_recorded, running
from gwmond.service.pool.pool import Pool
from gwmond.sources import child, tasks
from gwmond.sources.htcondor.access import Access
from gwmond.sources.htcondor.histories.history_cursor import HistoryLimits
from gwmond.sources.round import Round
from gwmond.web.server import PortError, bind, pem

STATE_DIRECTORY = Path("/var/lib/gwmond")
"""What gwmond.service makes."""
_FEW, _LATELY_S = 100, 3600.0
_START_S = 60.0
UPDATE_S = 300
"""A startd renews its ads so often by default (UPDATE_INTERVAL)."""


class CheckResult(NamedTuple):
    """The outcome of a query, or of a look at our own files; ``remedy``: empty if all is well."""

    status: Status
    remedy: str


def options(parser: argparse.ArgumentParser) -> None:
    writing.add_format(parser, "table", "json")


def execute(config: Config, arguments: argparse.Namespace) -> int:
    """Ask everybody once; 0 when all answered, 3 when some did not."""
    export = export_of(config.traces, os.environ)
    log.configure(config.log.model_copy(update={"level": "error"}))
    pool = Pool.open(config)
    start = _start()
    tick = pool.clock.tick()
    access = pool.access(tick)
    gathered = pool.gatherer.round(access, tick.wall)
    notes = _histories(pool, access, gathered, tick.wall) if config.histories.schedds else []
    gathered = pool.gatherer.last()
    asked = [start, *_without_own_ad(_named(gathered.statuses), gathered)]
    verdicts = [*map(with_remedy, asked), *check_own(config, export), *check_traces(export)]
    notes += _young(gathered, tick.wall)
    show(report(verdicts, notes), arguments.format)
    return EXIT_OK if all(verdict.status.up for verdict in verdicts) else EXIT_SOURCES_DOWN


def _start() -> Status:
    """Start what queries are forked from, so that the seconds of queries are their own."""
    began = time.monotonic()
    try:
        child.run(child.nothing, deadline_s=_START_S)
    except child.QueryError as error:
        return _status("gwmond", "start", error.detail, error.problem)
    return _status("gwmond", "start")._replace(duration_s=time.monotonic() - began)


def _young(gathered: Round, now: float) -> list[str]:
    """Return which collectors may not know all pilots yet, and until when."""
    notes = []
    for (source, kind), answer in sorted(gathered.answers.items()):
        started = answer.value.started if kind == "collector" else None
        if started is not None and now - started < 2 * UPDATE_S:
            until = short((started + 2 * UPDATE_S) * SECOND_US)
            notes.append(
                f"{source} was started {span(round(max(0.0, now - started)) * SECOND_US)} ago. "
                "Pilots may be missing until all have renewed their ads, by "
                f"{until} UTC if they do so every 5 minutes, as is HTCondor's default."
            )
    return notes


def _named(statuses: Sequence[Status]) -> list[Status]:
    """Return how the queries went; if no pool is named, one line for all of them says so."""
    nowhere = [
        status._replace(kind="pool") for status in statuses if status.problem == ProblemName.NO_POOL
    ]
    named = nowhere[:1] + [status for status in statuses if status.problem != ProblemName.NO_POOL]
    if not nowhere and not any(status.kind == "demand" for status in named):
        lacking = ProblemName.NO_SCHEDD
        named.append(_status("schedds", "demand", lacking.meaning, lacking))
    return named


def _without_own_ad(statuses: list[Status], gathered: Round) -> list[Status]:
    """Return how the queries went, with what a collector's answer lacks: an ad of itself."""
    lacking = {
        query
        for query, answer in gathered.answers.items()
        if query[1] == "collector" and not answer.value.own_ad
    }
    lacks = ProblemName.NO_OWN_AD
    return [
        status._replace(problem=lacks, detail=lacks.meaning)
        if status.up and (status.source, status.kind) in lacking
        else status
        for status in statuses
    ]


def _histories(pool: Pool, access: Access, gathered: Round, now: float) -> list[str]:
    """Ask each schedd for the latest records of job runs; return what is worth knowing."""
    limits, notes = HistoryLimits(records=_FEW, queries=1, lookback_s=_LATELY_S), []
    for schedd in gathered.chosen:
        for kind in SCHEDD_KINDS:
            answer = pool.gatherer.run(
                *(schedd.daemon.name, kind, tasks.records, access),
                *(schedd.daemon, kind, "", limits, now),
                keep=False,
            )
            if answer is not None and not answer.kept:
                notes.append(
                    f"{schedd.daemon.name} keeps no epoch history, so of a job that runs several "
                    "times only the last run is known, and what slots show stands in. Set "
                    "JOB_EPOCH_HISTORY = $(SPOOL)/epoch_history there (it is the default of "
                    "HTCondor 25)."
                )
    return notes


def check_own(config: Config, export: Export) -> list[CheckResult]:
    """Check what is ours: ledger, listen address, certificates, tokens, the paths of [factory]."""
    try:
        bind(config.http).close()
        http = _status("http", "listen")
    except PortError as error:
        http = _listening(config, str(error))
    ours = [http, *_with_service(config), *_token_directory(config), *_expiring(config, export)]
    return [check_ledger(config.ledger.url), *map(with_remedy, ours), *check_places(config)]


def _listening(config: Config, error: str) -> Status:
    """Return what listens in our place: this daemon, that of another pool, or another program."""
    named = running(config.http)
    other = is_recorded(named or "") and not config.replay.file  # such as the demo
    if named and (other or not is_of(config, named)):
        error = f"{config.http.listen} is the address of another gwmond, of {unquote(named)}"
    elif named is not None:
        return _status("http", "running")
    return _status("http", "listen", error, ProblemName.PORT)


def _with_service(config: Config) -> Iterator[Status]:
    """Return which files of [http] are there only while the service runs; that is no failure."""
    for key in ("tls_cert", "tls_key", "auth_token_file"):
        path = getattr(config.http, key)
        if path and comes_with_service(path):
            detail = f"{path}: not yet there; made by gwmond.service (LoadCredential)"
            yield _status("http", key, detail)


def _token_directory(config: Config) -> Iterator[Status]:
    """Return whether tokens can be read: where they cannot, HTCondor takes none and is silent."""
    path = token_directory(config)
    if not path:
        return
    try:
        wrong = without_token(path)
    except OSError as error:
        yield _status(
            path, "token_directory", error.strerror or str(error), ProblemName.NO_DIRECTORY
        )
    else:
        yield _status(path, "token_directory")
        for file in wrong:
            yield _status(str(file), "token", "no token", ProblemName.BAD_TOKEN)


def _expiring(config: Config, export: Export) -> Iterator[Status]:
    """Return until when certificates and tokens are valid."""
    now = time.time()
    for credential in credentials(config, export, pem(config.http.tls_cert)):
        problem = expiring(credential, now)
        word = None if problem is None else problem.problem
        yield _status(credential.source, "expiry", until(credential, now), word)


def check_places(config: Config) -> list[CheckResult]:
    """Check the paths of [factory]; its socket may be the daemon's, which runs."""
    return [
        with_remedy(
            _status(place.path, place.key)
            if not place.problem
            or (place.problem == ProblemName.IN_USE and running(config.http) is not None)
            else _status(place.path, place.key, place.detail, place.problem)
        )
        for place in places.places(config)
    ]


def check_traces(export: Export) -> list[CheckResult]:
    """Send the receiver of traces, if there is one, a request without spans."""
    if not export.url:
        return []
    from gwmond.service.host.otlp_client import OtlpClient  # noqa: PLC0415  # slow to import
    from gwmond.traces.otlp import Encoder  # noqa: PLC0415

    client, began = OtlpClient(export), time.monotonic()
    answer = client.post(Encoder(export.service, dict(export.resource)).empty())
    client.close()
    failing, refused = ProblemName.TRACE_EXPORT_FAILING, ProblemName.TRACE_SPANS_REFUSED
    status = (
        _status(client.where, "traces")
        if answer.accepted
        else _status(client.where, "traces", answer.detail, failing if answer.again else refused)
    )
    return [CheckResult(status._replace(duration_s=time.monotonic() - began), answer.remedy)]


def check_ledger(url: str) -> CheckResult:
    """Open the ledger; what is wrong with it has its own remedy."""
    try:
        LedgerReader.open(url).close()
    except LedgerError as error:
        if isinstance(error, LedgerLocation) and error.what == NOT_THERE:
            return with_remedy(_absent(Path(error.where)))
        detail = f"{error.where}: {error.what}"
        return CheckResult(_status("ledger", "open", detail, error.problem), error.remedy)
    return with_remedy(_status("ledger", "open"))


def _absent(path: Path) -> Status:
    """Return whether the daemon can make the ledger at its first start; then it is no failure."""
    directory = path.parent
    detail = f"{path}: not yet there; made at the first start"
    if os.path.isdir(directory):
        if os.access(directory, os.W_OK | os.X_OK, effective_ids=True):
            return _status("ledger", "open", detail)
        return _status("ledger", "open", f"{directory} cannot be written", ProblemName.NO_LEDGER)
    if directory == STATE_DIRECTORY:
        unless = f"else: install -d -m 0750 -o USER_OF_GWMOND {directory}"
        by = f", its directory by gwmond.service (StateDirectory); {unless}"
        return _status("ledger", "open", detail + by)
    return _status("ledger", "open", f"there is no directory {directory}", ProblemName.NO_LEDGER)


def _status(source: str, kind: str, detail: str = "", problem: ProblemName | None = None) -> Status:
    return Status(source, kind, problem is None, 0, 0, 0, None, 0, 0, problem, detail)


def with_remedy(status: Status) -> CheckResult:
    """Return a status with what is to do about its problem."""
    return CheckResult(status, "" if status.problem is None else status.problem.remedy)


def report(verdicts: Sequence[CheckResult], notes: Sequence[str] = ()) -> Document:
    """Return what was found, in all forms."""
    return Document(lambda: _parts(verdicts, notes), lambda: list(map(_record, verdicts)))


def _record(verdict: CheckResult) -> dict[str, object]:
    status = verdict.status
    return {
        "source": status.source,
        "kind": status.kind,
        "ok": status.up,
        "seconds": round(status.duration_s, 3),
        "records": status.records if status.up else None,
        "problem": status.problem or "",
        "detail": status.detail,
        "remedy": verdict.remedy,
    }


def _word(verdict: CheckResult) -> Cell:
    status = verdict.status
    if status.problem is not None:
        return Cell(status.problem, "yellow" if status.up else "red")
    return Cell("not yet", "yellow") if status.detail else Cell("ok", "green")


_COLUMNS: tuple[Column[CheckResult], ...] = (
    Column("source", lambda verdict: verdict.status.source, name=True),
    Column("query", lambda verdict: verdict.status.kind, name=True),
    Column("verdict", _word, text=True),
    Column("ads", lambda verdict: str(verdict.status.records) if verdict.status.up else ""),
    Column("seconds", lambda verdict: number(verdict.status.duration_s, 2)),
)


def _parts(verdicts: Sequence[CheckResult], notes: Sequence[str]) -> Iterator[Part]:
    yield table("", _COLUMNS, verdicts)
    failed: dict[tuple[str, str, str], list[Status]] = {}
    for status, remedy in verdicts:
        if status.problem:
            failed.setdefault((status.source, status.problem, remedy), []).append(status)
    for (source, problem, remedy), statuses in failed.items():
        longest = max(statuses, key=lambda status: status.duration_s)
        query = f"{longest.kind}: " if len({status.detail for status in statuses}) > 1 else ""
        text = f"{source}: {problem}: {query}{longest.detail}"
        yield TextLines("", [text, f"  what to do: {remedy}"])
    if not failed:
        yield TextLines("", ["All is well."])
    for status, _ in verdicts:
        if status.up and status.detail:
            yield TextLines("", [f"note: {status.source}: {status.detail}"])
    if any(verdict.status.kind == "start" for verdict in verdicts):
        yield Paragraph(
            "\ngwmond start: how long Python took to start what makes the queries. The daemon does "
            "that once; the seconds of queries are without it."
        )
    for note in notes:
        yield Paragraph(f"\nnote: {note}")
