"""List pilots: where and since when they run, what they do, for whom, and where their time goes.

Without options: the pilots that run now. All of it comes from the daemon's ledger, as of the last
poll.
"""

from __future__ import annotations

import argparse
import json
import sys
import time

from rich.console import Console
from rich.text import Text

from gwmond.commands.common import EXIT_FAILED, EXIT_OK
from gwmond.config.settings import Config, ConfigError
from gwmond.ledger.errors import LedgerError
from gwmond.ledger.pilot_reports import PilotFilter
from gwmond.ledger.reader import LedgerReader
from gwmond.model.digits import is_number
from gwmond.model.pilot_facts import Category
from gwmond.model.times import SECOND_US
from gwmond.pilots.silence import silent_before_us
from gwmond.reports.category_time import BADPUT, OF_PILOTS, Kind, hours, part, percent
from gwmond.reports.ledger_reading import Age, add_ledger_option, age_of
from gwmond.reports.ledger_text import nothing
from gwmond.reports.open_runs import as_json as waits_json
from gwmond.reports.open_runs import open_runs, sentence
from gwmond.reports.periods import FORMS_HELP, parse_time, short, span
from gwmond.reports.pilot_tables import PilotLine, as_json, lines, write_csv
from gwmond.reports.table_text import Grid, empty, not_shown, room, show, tell
from gwmond.service import log
from gwmond.service.waiting_periods import later_us, rules

_LIMIT = 1000
_CPU: Kind = ("cpu", "canonical")
_GPU: Kind = ("gpu", "canonical")
_TEXTS = (
    *("site", "entry", "doing", "users", "since (UTC)", "until (UTC)", "heard of (UTC)"),
    *("size", "retires", "dies"),
    *("pilot", "node", "factory", "group"),
)
_HEADERS = (
    *("id", *_TEXTS[:10], "hours", "good", "%", "badput", "own", "uncl.", "open"),
    *("GPU hours", "%", *_TEXTS[10:]),
)
_MAY_BE_LEFT_OUT = {"good", "badput", "own", "uncl."}
_COLOURS = {
    "running": "green",
    "idle": "cyan",
    "open": "cyan",
    "retiring": "yellow",
    "silent": "red",
    "failed": "red",
    "ended": "bright_black",
}
_GOOD, _OTHER = (Category.GOODPUT,), (Category.UNCLASSIFIED,)

_EPILOG = f"""\
examples:
  gwmond pilots                                   what runs now
  gwmond pilots --site T2_US_Demo --sort left     at a site; who retires or dies next comes first
  gwmond pilots --past --from 24h --sort hours    those that ended in the last day, largest first
  gwmond pilots --user alice@cern.ch --from 2h    on which her jobs ran in the last two hours
  gwmond pilots --from 2026-01-31 --to 2026-02-01 --format csv > pilots.csv
  gwmond pilot 4711                               one of them, with all that is known about it

columns (those that do not fit are in a second table below, with the same ids):
  size       cores, memory, GPUs; and how many canonical units that is (1 core + 2 GB)
  doing      running jobs, idle, or retiring (it accepts no new jobs); silent: its ads were not
             renewed for two updates, so it may have been killed; runs, jobs not known: only its
             output shows it, without an end; failed validation, and why (as it advertises until
             it ends); of one that ended: how (shut down: it invalidated its ads; vanished: its
             ads expired; no more jobs: only records of jobs show it; ended: its output, the
             central log or the factory's queue has its end)
  heard of   the last update of its ads at a collector, if it has not ended: hours are up to then
  users      of the jobs that run; of a pilot that ended, of all its jobs
  retires, dies   how long until then; negative: that is past
  hours      canonical hours so far = good + badput + own + uncl. + open; %: good, of what is
             settled; badput: misconfiguration and preemption; own: overhead, no job ever,
             validation failed; uncl.: unclassified; open: not settled, such as the time of
             jobs that run, up to when the pilot was last heard of
  json and csv have every category, in both measures (resource and canonical seconds); attempts
  is empty there if the number of runs is not known.

{FORMS_HELP}
"""


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``gwmond pilots``."""
    parser.epilog = _EPILOG
    which = parser.add_argument_group("which pilots")
    which.add_argument("--site", help="at this site")
    which.add_argument("--entry", help="of this entry")
    which.add_argument("--group", help="of this group (FRONTEND.GROUP as the list shows it)")
    which.add_argument("--user", help="on which this user's jobs ran (as the list shows it)")
    which.add_argument("--name", help="whose name has this in it")
    state = which.add_mutually_exclusive_group()
    state.add_argument("--running", action="store_true", help="that run now (the default)")
    state.add_argument("--past", action="store_true", help="that have ended")
    which.add_argument(
        "--from",
        dest="since",
        metavar="TIME",
        help="that lived at or after TIME; running and past ones, unless one is asked for",
    )
    which.add_argument("--to", dest="until", metavar="TIME", help="that began before TIME")
    shown = parser.add_argument_group("how")
    shown.add_argument(
        "--sort",
        choices=("start", "end", "contact", "name", "id", "site", "left", "hours"),
        default="start",
        help="start, end, contact, id: latest first; left: by time left; hours: largest first",
    )
    shown.add_argument("--reverse", action="store_true", help="the other way round")
    shown.add_argument(
        "--limit", type=_limit, default=_LIMIT, metavar="N", help=f"default {_LIMIT}; 0: all"
    )
    shown.add_argument("--format", choices=("table", "json", "csv"), default="table")
    add_ledger_option(shown)


def execute(config: Config, arguments: argparse.Namespace) -> int:
    """List pilots; 1 when there is no ledger that can be read."""
    log.quiet()
    now_us = round(time.time() * SECOND_US)
    wanted = _wanted(arguments, now_us)
    limit = arguments.limit or None
    try:
        with LedgerReader.open(arguments.ledger or config.ledger.url) as ledger:
            age = age_of(ledger, now_us, config.poll.interval)
            made = lines(
                ledger,
                wanted,
                now_us,
                sort=arguments.sort,
                reverse=arguments.reverse,
                limit=limit and limit + 1,
                silent_before_us=silent_before_us(ledger.cursors()),
                q=config.canonical.memory_mib,
            )
            places = arguments.site, arguments.entry, arguments.group
            waiting = open_runs(ledger, rules(config), later_us(config), places)
            why = "" if made else nothing(ledger, places, arguments.user)
            if why and wanted == PilotFilter(running=True) and ledger.pilot_rows(limit=1):
                why = "none runs now. Those that have ended: gwmond pilots --past --from 24h"
    except LedgerError as error:
        print(f"gwmond: {error}", file=sys.stderr)
        return EXIT_FAILED
    truncated = limit is not None and len(made) > limit
    made = made[:limit]
    if arguments.format == "json":
        found = {**age.as_json(), "truncated": truncated, "not_settled": waits_json(waiting)}
        found["pilots"] = [as_json(line, now_us) for line in made]
        json.dump(found, sys.stdout, indent=2)
        print()
    elif arguments.format == "csv":
        write_csv(made, now_us, sys.stdout)
    else:
        _show(made, age, why, sentence(waiting))
    if why and arguments.format != "table":
        print(f"gwmond: no such pilots: {why}", file=sys.stderr)
    if truncated:
        print(f"gwmond: only {limit} pilots are shown; see --limit", file=sys.stderr)
    if age.warning:
        print(f"gwmond: {age.warning}", file=sys.stderr)
    return EXIT_OK


def _wanted(arguments: argparse.Namespace, now_us: int) -> PilotFilter:
    try:
        since = None if arguments.since is None else parse_time(arguments.since, now_us)
        until = None if arguments.until is None else parse_time(arguments.until, now_us)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    if since is not None and until is not None and since >= until:
        raise ConfigError("the period is empty: --from is not before --to")
    running: bool | None = None
    if arguments.running or (since is None and until is None):
        running = True
    if arguments.past:
        running = False
    places = {name: getattr(arguments, name) for name in ("site", "entry", "group", "user", "name")}
    return PilotFilter(since_us=since, until_us=until, running=running, **places)


def _show(made: list[PilotLine], age: Age, why: str, waiting: str) -> None:
    console = Console(width=room())
    tell(console, age.told)
    if waiting:
        tell(console, waiting)
    if not made:
        tell(console, f"No such pilots: {why}")
        return
    rows = [_cells(line, age.now_us) for line in made]
    zero = empty(_HEADERS, rows, _MAY_BE_LEFT_OUT, {"0.0"})
    used = [
        at for at in range(len(_HEADERS)) if at not in zero and any(len(row[at]) for row in rows)
    ]
    grid = Grid(
        [_HEADERS[at] for at in used],
        [[row[at] for at in used] for row in rows],
        texts=_TEXTS,
        wrapped={"doing": 40, "users": 20},
    )
    show(console, grid)
    if zero:
        tell(console, not_shown(_HEADERS, zero), "bright_black")


def _cells(line: PilotLine, now_us: int) -> list[str | Text]:
    """Return the cells of ``_HEADERS``; what nothing is to be said of is empty."""
    row, key = line.row, line.row.identity
    retire, die = ("" if left is None else span(left) for left in line.left_us(now_us))
    users = line.users if line.state == "ended" else line.users_now
    gpu = line.offered(_GPU)
    return [
        *(str(row.id), key.key.site, key.key.entry),
        Text(line.doing, _COLOURS[line.state]),
        _some(users),
        *(short(row.start_us), short(row.end_us)),
        short(line.heard_us) if row.end_us is None else "",
        size_text(line),
        *(retire, die),
        hours(line.offered(_CPU)),
        hours(part(line.settled, _CPU, _GOOD)),
        percent(line.share(_CPU, _GOOD), 0),
        hours(part(line.settled, _CPU, BADPUT)),
        hours(part(line.settled, _CPU, OF_PILOTS)),
        hours(part(line.settled, _CPU, _OTHER)),
        hours(line.unsettled[_CPU]),
        *((hours(gpu), percent(line.share(_GPU, _GOOD), 0)) if gpu else ("", "")),
        key.name,
        "" if key.node in key.name else key.node,
        *(key.factory, key.group),
    ]


def size_text(line: PilotLine) -> str:
    """Return a pilot's resources in short: ``8c 16000M 1g = 8u``."""
    size = line.size
    gpus = f" {size.gpus:g}g" if size.gpus else ""
    return f"{size.cores:g}c {size.memory_mib:.0f}M{gpus} = {line.canonical_units}u"


def _some(users: tuple[str, ...], most: int = 3) -> str:
    more = f" +{len(users) - most}" if len(users) > most else ""
    return ", ".join(users[:most]) + more


def _limit(text: str) -> int:
    if not is_number(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number")
    return int(text)
