"""Check the configuration, then ask every daemon once and say what came of it.

Each line has a daemon, a kind of query, a verdict, and where it failed, what to do about it.
Nothing is written: neither to HTCondor nor to the ledger.
"""

from __future__ import annotations

import argparse
import json
import os
import ssl
import sys
import urllib.request

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gwmond import cli, log, places
from gwmond.config import Config
from gwmond.historian import SCHEDD_KINDS
from gwmond.ledger.errors import LedgerError, LedgerLocation
from gwmond.ledger.location import SqliteFile, parse
from gwmond.ledger.reader import LedgerReader
from gwmond.pool import Pool
from gwmond.sources import history_tasks
from gwmond.sources.access import Access
from gwmond.sources.history_cursor import Limits
from gwmond.sources.round import Round, Status
from gwmond.web.server import PortError, bind

REMEDIES = {
    "refused": "Is the daemon running? Is the port right (HTCondor's is 9618)?",
    "unknown_host": "Check the name in [pool] collectors, and this host's DNS.",
    "unreachable": "Check the network and the firewalls between here and there.",
    "timeout": "It accepts connections and stays silent, or is overloaded: see its log, or give "
    "[poll] deadline more time.",
    "denied": "Give this host READ: on the central manager, condor_token_create -identity "
    "gwmond@POOL -authz READ, and put the token in [pool] token_directory.",
    "bad_constraint": "Check [demand] constraint: it must be a ClassAd expression.",
    "crashed": "A query's process died: see the log; more than [poll] memory_limit_mib?",
    "too_large": "Raise [poll] memory_limit_mib.",
    "no_ledger": "Make the directory of [ledger] url, writable for the user that runs gwmond.",
    "port": "Stop the other process, or configure another [http] listen.",
    **places.REMEDIES,
    "none": "Name collectors that know schedds, or look at the collector's verdict above.",
}
_FEW, _LATELY_S = 100, 3600.0
_ELSE = "See the message, and the daemon's own log."


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``gwmond check``."""
    parser.add_argument("--format", choices=("table", "json"), default="table")


def execute(config: Config, arguments: argparse.Namespace) -> int:
    """Ask everybody once; 0 when all answered, 3 when some did not."""
    log.configure(config.log.model_copy(update={"level": "error"}))
    pool = Pool.open(config)
    tick = pool.clock.tick()
    access = pool.access(tick)
    found = pool.gatherer.round(access, tick.wall)
    notes = _histories(pool, access, found, tick.wall) if config.histories.schedds else []
    found = pool.gatherer.last()
    statuses = [*found.statuses, *_local(config)]
    if not any(status.kind == "demand" for status in statuses):
        statuses.append(_failure("schedds", "demand", "none", "no schedd is known to ask"))
    if arguments.format == "json":
        rows = [
            {
                "source": s.source,
                "kind": s.kind,
                "ok": s.up,
                "seconds": round(s.duration_s, 3),
                "records": s.records if s.up else None,
                "problem": s.problem,
                "detail": s.detail,
                "remedy": _remedy(s),
            }
            for s in statuses
        ]
        json.dump(rows, sys.stdout, indent=2)
        print()
    else:
        _table(statuses)
        for note in notes:
            print(f"\nnote: {note}")
    return cli.EXIT_OK if all(s.up for s in statuses) else cli.EXIT_SOURCES_DOWN


def _histories(pool: Pool, access: Access, found: Round, now: float) -> list[str]:
    """Ask each schedd for the latest records of job runs; return what is worth knowing."""
    if not pool.tells_runs:
        return []
    limits, notes = Limits(records=_FEW, queries=1, lookback_s=_LATELY_S), []
    for schedd in found.chosen:
        for kind in SCHEDD_KINDS:
            answer = pool.gatherer.run(
                *(schedd.daemon.name, kind, history_tasks.records, access),
                *(schedd.daemon, kind, "", limits, now),
                keep=False,
            )
            if answer is not None and not answer.kept:
                notes.append(
                    f"{schedd.daemon.name} keeps no epoch history, so of a job that runs several "
                    "times only the last run is told, and what slots show stands in. Set "
                    "JOB_EPOCH_HISTORY = $(SPOOL)/epoch_history there (it is the default of "
                    "HTCondor 25)."
                )
    return notes


def _local(config: Config) -> list[Status]:
    """Check what is ours: the ledger, the address to listen on, the paths of [factory]."""
    results = []
    try:
        LedgerReader.open(config.ledger.url).close()
        results.append(_success("ledger", "open"))
    except LedgerLocation as error:
        if _can_be_made(config.ledger.url):
            results.append(_success("ledger", "open"))
        else:
            results.append(_failure("ledger", "open", "no_ledger", error.what))
    except LedgerError as error:
        results.append(_failure("ledger", "open", "ledger", str(error)))
    try:
        bind(config.http).close()
        results.append(_success("http", "listen"))
    except PortError as error:
        ours = _is_gwmond(config)
        results.append(
            _success("http", "running") if ours else _failure("http", "listen", "port", str(error))
        )
    return results + _places(config)


def _places(config: Config) -> list[Status]:
    """Check the paths of [factory]; its socket may be the daemon's, which runs."""
    return [
        _success(of.path, of.key)
        if not of.problem or (of.problem == "in_use" and _is_gwmond(config))
        else _failure(of.path, of.key, of.problem, of.detail)
        for of in places.places(config)
    ]


def _is_gwmond(config: Config) -> bool:
    """Return whether it is the daemon itself that listens there already."""
    scheme = "https" if config.http.tls_cert else "http"
    context = ssl._create_unverified_context()
    try:
        with urllib.request.urlopen(
            f"{scheme}://{config.http.listen}/-/healthy", timeout=2, context=context
        ) as answer:
            return bool(answer.read().startswith(b"gwmond"))
    except OSError:
        return False


def _can_be_made(url: str) -> bool:
    """Return whether the daemon will be able to make a ledger that does not exist yet."""
    location = parse(url)
    return isinstance(location, SqliteFile) and os.access(location.path.parent, os.W_OK)


def _success(source: str, kind: str) -> Status:
    return Status(source, kind, True, 0, 0, 0, None, 0, 0, "", "")


def _failure(source: str, kind: str, problem: str, detail: str) -> Status:
    return Status(source, kind, False, 0, 0, 0, None, 0, 0, problem, detail)


def _remedy(status: Status) -> str:
    return "" if status.up else REMEDIES.get(status.problem, _ELSE)


def _table(statuses: list[Status]) -> None:
    table = Table("source", "query", "verdict", "ads", "seconds", box=None)
    for s in statuses:
        verdict = "[green]ok[/]" if s.up else f"[red]{s.problem}[/]"
        records = str(s.records) if s.up else ""
        table.add_row(Text(s.source), s.kind, verdict, records, f"{s.duration_s:.2f}")
    console = Console(soft_wrap=True)
    console.print(table)
    failed = {(s.source, s.problem): s for s in statuses if not s.up}
    for status in failed.values():
        console.print(f"\n{status.source}: {status.problem}: {status.detail}", markup=False)
        console.print(f"  what to do: {_remedy(status)}", markup=False)
    if not failed:
        console.print("\nAll is well.")
