"""Account what pilots and their factory left in a factory's directories, however old.

PATH is a directory with the logs, or one above: all directories below it are searched. It should
have both of a factory's log directories, client and server (best is /var/log/gwms-factory itself):
  client/.../job.*.out, job.*.err       what each pilot wrote: validation, its startd's history
  client/.../condor_activity_*.log      when pilots began and ended, by the factory's queue
  server/.../completed_jobs_*.log       the factory's own line on each pilot (gwmond reconcile)
--central-log FILE... reads logs of pilots' daemons besides (RFC 5424; docs/central-log.md), before
or after the directories. Name them last: all words that follow are taken for log files.
Old condor_activity logs have no time zone: give the factory's with --timezone if it is not this
host's. What was imported with a wrong one stays wrong: import into another ledger then.
Each pilot is accounted once, together with what the ledger already has of it; an import may be
interrupted, killed and repeated: it continues where it stopped. Its progress counts the
pilots whose outputs existed when it searched for directories, also those of earlier imports. Files
that this user may not read are named, and left for the next import; the first one fails if there
are no others. Stop the daemon before, as it locks the ledger, or import into another: --ledger.

Examples:
  gwmond import /var/log/gwms-factory
  gwmond import --ledger sqlite:////tmp/past.sqlite /backup/factory-logs
  gwmond report --ledger sqlite:////tmp/past.sqlite --from 2025-10-01 --to 2025-11-01
                                                   then see the result (import prints the period)
  gwmond import /var/log/gwms-factory --central-log /var/log/pilots/*.log
  gwmond import /backup/factory-logs --openmetrics past.om      and give it to Prometheus

--openmetrics writes all that the ledger then holds of the time before the daemon's first poll: the
same as gwmond ledger export --format openmetrics, which explains it.
"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from gwmond.commands import backfilling
from gwmond.commands.common import (
    EXIT_FAILED,
    EXIT_OK,
    add_ledger_option,
    complain,
)
from gwmond.config.settings import Config, ConfigError
from gwmond.ledger.database import location
from gwmond.ledger.database.errors import LedgerError
from gwmond.ledger.reading import hourly
from gwmond.ledger.store import Ledger
from gwmond.model.problem_names import ProblemName
from gwmond.reports.ledger import ledger_reading
from gwmond.reports.ledger.ledger_reading import reach_times
from gwmond.service.host import log
from gwmond.service.importer import Imported, Importer
from gwmond.sources import child
from gwmond.sources.gwms.following import COMPRESSED
from gwmond.sources.gwms.zones import zone_of
from gwmond.sources.tail import PACKED


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="PATH",
        help="a directory of a factory's logs: client and server, or above",
    )
    parser.add_argument(
        "--central-log",
        dest="logs",
        nargs="+",
        action="extend",
        default=[],
        metavar="FILE",
        help="logs of pilots' daemons, also compressed with gzip (.gz)",
    )
    parser.add_argument(
        "--timezone",
        metavar="NAME",
        help="the factory's, as Europe/Zurich, for times without one ([factory] timezone)",
    )
    add_ledger_option(parser)
    parser.add_argument("--processes", type=int, default=2, metavar="N", help="that read at once")
    parser.add_argument(
        "--openmetrics",
        metavar="FILE",
        help="then write the past for Prometheus (docs/backfill.md)",
    )
    parser.add_argument(
        "--to",
        dest="last",
        metavar="TIME",
        help="with --openmetrics: its end, if not the daemon's first poll",
    )
    backfilling.add_options(parser, "--openmetrics")
    parser.set_defaults(first=None)


def execute(config: Config, arguments: argparse.Namespace) -> int:
    """Import; 0, or 1 when there was nothing to read, nothing could be, or the ledger failed."""
    log.configure(config.log.model_copy(update={"level": "error"}))
    if not arguments.paths and not arguments.logs:
        raise ConfigError("name a directory, or a log with --central-log")
    if why := next(filter(None, map(_no_directory, arguments.paths)), None) or next(
        filter(None, map(_no_log, arguments.logs)), None
    ):
        complain(why)
        return EXIT_FAILED
    if arguments.processes < 1:
        raise ConfigError("--processes: at least 1")
    if arguments.timezone is not None:
        config = _in_zone(config, arguments.timezone)
    backfilling.check(arguments)
    if arguments.openmetrics == "-":
        raise ConfigError("--openmetrics needs a file")
    if arguments.openmetrics is None and (arguments.last or arguments.label):
        raise ConfigError("--to and --label are for --openmetrics")
    if arguments.openmetrics is not None and (why := backfilling.unwritable(arguments.openmetrics)):
        complain(f"cannot write {arguments.openmetrics}: {why}")
        return EXIT_FAILED
    child.start()
    written = EXIT_OK
    try:
        ledger = Ledger.open(arguments.ledger or config.ledger.url)
        try:
            before = _read_until(ledger)
            importer = Importer(config, ledger, arguments.processes)
            try:
                with ledger_reading.progress(kept=True) as report:
                    imported = importer.run(arguments.paths, arguments.logs, report)
            except KeyboardInterrupt:
                complain(
                    f"interrupted after {importer.stored} outputs of pilots were read. What was "
                    "read is kept: repeat the command to go on"
                )
                raise
            new = _read_until(ledger) != before
            hours = reach_times(hourly.reach(ledger))
            code = _say(imported, bool(arguments.paths), new, hours, report_command(arguments))
            if arguments.openmetrics is not None:
                written = backfilling.write(ledger, arguments, arguments.openmetrics)
        finally:
            ledger.close()
    except (LedgerError, child.QueryError) as error:
        complain(str(error))
        return EXIT_FAILED
    return max(code, written)


def _in_zone(config: Config, name: str) -> Config:
    """Return a configuration with another time zone of the factory; raises ConfigError."""
    try:
        zone_of(name)
    except ValueError as error:
        raise ConfigError(f"--timezone: {error}: write a name such as Europe/Zurich") from None
    factory = config.factory.model_copy(update={"timezone": name})
    return config.model_copy(update={"factory": factory})


def _no_directory(path: str) -> str | None:
    """Return why nothing can be read below a path, if so."""
    if Path(path).is_dir():
        return None
    if Path(path).exists():
        return f"{path}: is a file: name the directory that it is in, or one above"
    return f"{path}: no such directory"


def _no_log(path: str) -> str | None:
    """Return why a path is not read as a central log, if so."""
    if Path(path).is_dir():
        return f"{path}: is a directory: name the logs in it, and other directories before them"
    if not Path(path).is_file():
        return f"{path}: no such file"
    if Path(path).suffix in COMPRESSED - {PACKED}:
        return f"{path}: is compressed, and not by gzip: unpack it first"
    return None


def report_command(arguments: argparse.Namespace) -> str:
    """Return the command that reports what was imported, from the same ledger."""
    words = ["gwmond", "report"]
    ledger = arguments.ledger and location.parse(arguments.ledger).shown  # without its password
    for option, value in (("--config", arguments.config), ("--ledger", ledger)):
        words += [option, str(value)] if value is not None else []
    return shlex.join(words)


def _read_until(ledger: Ledger) -> dict[tuple[str, str], str]:
    """Return how far each source was read."""
    return {key: cursor.state for key, cursor in ledger.cursors().items()}


def _say(
    imported: Imported, asked: bool, new: bool, hours: tuple[str, str] | None, report: str
) -> int:
    if asked:
        print(
            f"{imported.outputs} outputs of pilots in {imported.directories} directories were read"
        )
    if imported.logs:
        print(f"{imported.lines} lines about pilots in {imported.logs} central logs were read")
    for problem, number in imported.problems.most_common():
        example = next(example for example in imported.examples if example.problem == problem)
        print(f"  {problem.shown}: {number}, such as {example.source}: {example.detail}")
    read = imported.facts or imported.logs or hours is not None
    if imported.problems[ProblemName.UNREADABLE] and not read:
        complain(
            "nothing could be read of what is there to be: let this user read it, and import again"
        )
        return EXIT_FAILED
    if asked and not imported.directories:
        complain(
            "no job.*.out or job.*.err, no condor_activity_*.log and no "
            "completed_jobs_*.log below these directories"
        )
        return EXIT_FAILED
    if imported.problems[ProblemName.UNREADABLE]:
        print("what could not be read is left for the next import: let this user read it")
    if not new:
        print("nothing is new since the last import")
    if hours is not None:
        since, until = hours
        print(f"the ledger has {since} to {until}: {report} --from {since} --to {until}")
    return EXIT_OK
