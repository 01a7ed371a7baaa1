"""The command line: which commands there are, and the options that all of them take."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from gwmond import __version__
from gwmond.commands.common import (
    EXIT_BAD_CONFIG,
    EXIT_FAILED,
    EXIT_OK,
    complain,
    configuration,
    ledger_error,
)
from gwmond.sources.garbage import COMMAND, collect_after, leave_at_exit

if TYPE_CHECKING:
    from gwmond.config.settings import Config


COMMANDS = {
    "run": "run the daemon: poll, account, serve metrics, pages and REST",
    "once": "poll every source once and print the metrics",
    "check": "check the configuration, and ask every daemon once",
    "sites": "show the sites now: state, reason, capacity, pilots, demand",
    "forecast": "say when sites are full, and when no waiting job is left for them",
    "explain": "say why a job is not running, what would change that, and whose move it is",
    "whatif": "say what a change would move: a request, pilots' size, a limit, START, a site down",
    "pilots": "list pilots: where they run, what they do, for whom, and where their time goes",
    "pilot": "show the whole life of one pilot as a timeline, with the evidence for each part",
    "runs": "list runs of jobs: where, when and how long, for whom, and how they ended",
    "trace": "show the trace of one job or pilot as a waterfall, or as OpenTelemetry's JSON",
    "report": "report where pilots' time went in a period: as a table, CSV, JSON, Markdown, HTML",
    "ticket": "say what fails at a site, since when and at which nodes, for its administrators",
    "changes": "say since when more is lost at which site, what was changed then, what that did",
    "advise": "say what would waste less of the pilots' time: timeouts, requests, lifetimes",
    "reconcile": "compare the time of pilots with that of jobs and with the factory's own numbers",
    "ledger": "check the ledger, show its size, compact it, export it (Parquet, OpenMetrics)",
    "import": "account what pilots left in a factory's directories",
    "record": "record a pool into a file that gwmond demo replays",
    "demo": "run the daemon on a recorded pool, at accelerated speed",
}

_ASKING = frozenset({"run", "once", "check", "sites", "explain", "whatif", "record"})
"""Commands that query a pool; all others read the ledger, files or a recording."""

_MODULES = {"import": "import_"}  # a word that Python has taken

_EPILOG = """\
examples:
  gwmond demo                                try it, without any HTCondor
  gwmond check --collector cm.example.org    can this host see that pool?
  gwmond sites --collector cm.example.org    which sites lack pilots, and which lack jobs
  gwmond run --config /etc/gwmond/gwmond.toml

Without --config and --collector, this host's own HTCondor configuration names the pool.
exit codes: 0 success; 1 failure; 2 bad configuration or usage; 3 some sources are down.
"""


class Command(Protocol):
    """What a module in gwmond.commands offers."""

    def options(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's own options."""

    def execute(self, config: Config, arguments: argparse.Namespace) -> int:
        """Run the command and return its exit code."""


def parser(argv: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser of a command line; only commands that the line names are loaded."""
    formatter = argparse.RawDescriptionHelpFormatter
    top = argparse.ArgumentParser(
        "gwmond",
        description="Accounts the time of GlideinWMS pilots, and says why a site is idle: too few\n"
        "pilots although jobs wait, or no idle job that could run there.",
        epilog=_EPILOG,
        formatter_class=formatter,
    )
    top.add_argument("--version", action="version", version=f"gwmond {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, summary in COMMANDS.items():
        if name not in argv:
            commands.add_parser(name, help=summary)
            continue
        command = _module(name)
        sub = commands.add_parser(
            name,
            help=summary,
            description=(sys.modules[command.__name__].__doc__ or summary),  # type: ignore[attr-defined]
            formatter_class=formatter,
        )
        sub.add_argument(
            "--config",
            type=Path,
            metavar="FILE",
            help="configuration file (TOML; every option is explained in etc/gwmond.toml)",
        )
        if name in _ASKING:
            sub.add_argument(
                "--collector",
                action="append",
                metavar="HOST[:PORT]",
                help="watch the pool of this collector; may be given several times, and overrides "
                "[pool] collectors",
            )
        else:
            sub.set_defaults(collector=None)
        sub.add_argument(
            "--log-level",
            choices=("debug", "info", "warning", "error"),
            help="overrides [log] level",
        )
        command.options(sub)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    collect_after(COMMAND)
    leave_at_exit()
    argv = sys.argv[1:] if argv is None else argv
    try:
        arguments = parser(argv).parse_args(argv)
        return _execute(arguments)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK


def _execute(arguments: argparse.Namespace) -> int:
    from gwmond.config.settings import ConfigError  # noqa: PLC0415 (pydantic takes a while to load)

    try:
        return _module(arguments.command).execute(configuration(arguments), arguments)
    except ConfigError as error:
        complain(str(error))
        return EXIT_BAD_CONFIG
    except ledger_error() as error:
        complain(str(error))
        return EXIT_FAILED


def _module(name: str) -> Command:
    module: Command = importlib.import_module(f"gwmond.commands.{_MODULES.get(name, name)}")
    return module
