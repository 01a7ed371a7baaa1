"""List pilots: where and since when they run, what they do, for whom, and where their time goes.

Without options: the pilots that run now. All of it comes from the daemon's ledger, as of the last
poll.
"""

from __future__ import annotations

import argparse

from gwmond.commands.common import (
    EXIT_OK,
    add_ledger_option,
    complain,
    limit,
    now,
    opened,
    place_of,
    show,
    usage,
)
from gwmond.config.settings import Config, ConfigError
from gwmond.model.pilots.stored_pilots import PilotFilter
from gwmond.reports.ledger.ledger_reading import as_of, nothing
from gwmond.reports.ledger.open_runs import later_us, open_runs, rules
from gwmond.reports.pilots.listing import PilotList, stored_pilots
from gwmond.reports.render import writing
from gwmond.reports.render.categories import INFO, within
from gwmond.reports.render.periods import FORMS_HELP, parse_time
from gwmond.service.host import log

_LIMIT = 1000


def _within(column: str) -> str:
    """Return the categories that a column has."""
    return f"{column}: {', '.join(INFO[category].header for category in within(column))}"


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
             it ends); of one that ended: how (shut down: it invalidated its ads; ad expired: its
             ads expired; no more jobs: only records of jobs show it; ended: its output, the
             central log or the factory's queue has its end)
  heard of   the last update of its ads at a collector, if it has not ended: hours are up to then
  users      of the jobs that run; of a pilot that ended, of all its jobs
  retires, dies   how long until then; negative: that is past
  hours      canonical hours so far = good + badput + own + uncl. + open; %: good, of what is
             settled; open: not settled, such as the time of jobs that run, up to when the pilot
             was last heard of; {_within("badput")};
             {_within("own")}; {_within("uncl.")}
  json and csv have every category, in both measures (resource and canonical seconds); runs
  is empty there if the number of runs is not known.

{FORMS_HELP}
"""


def options(parser: argparse.ArgumentParser) -> None:
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
        "--limit", type=limit, default=_LIMIT, metavar="N", help=f"default {_LIMIT}; 0: all"
    )
    writing.add_format(shown, "table", "json", "csv")
    add_ledger_option(shown)


def execute(config: Config, arguments: argparse.Namespace) -> int:
    """List pilots; raises LedgerError."""
    log.quiet()
    now_us = now(config, arguments)
    choice = _wanted(arguments, now_us)
    most = arguments.limit or None
    with opened(config, arguments, now_us) as (ledger, age):
        rows = stored_pilots(
            ledger,
            choice,
            as_of(ledger, config, now_us),
            sort=arguments.sort,
            reverse=arguments.reverse,
            limit=most and most + 1,
        )
        waiting = open_runs(ledger, rules(config), later_us(config), choice.place)
        why = "" if rows else nothing(ledger, choice.place, choice.user)
        if why and choice == PilotFilter(running=True) and ledger.pilot_rows(limit=1):
            why = "none runs now. Those that have ended: gwmond pilots --past --from 24h"
    truncated = most is not None and len(rows) > most
    pilots = PilotList(age, rows[:most], truncated, waiting, why)
    show(pilots.document, arguments.format)
    if why and arguments.format != "table":
        complain(f"no such pilots: {why}")
    if truncated:
        complain(f"only {most} pilots are shown; see --limit")
    complain(age.warning)
    return EXIT_OK


def _wanted(arguments: argparse.Namespace, now_us: int) -> PilotFilter:
    with usage():
        since = None if arguments.since is None else parse_time(arguments.since, now_us)
        until = None if arguments.until is None else parse_time(arguments.until, now_us)
    if since is not None and until is not None and since >= until:
        raise ConfigError("the period is empty: --from is not before --to")
    running: bool | None = None
    if arguments.running or (since is None and until is None):
        running = True
    if arguments.past:
        running = False
    who = arguments.user, arguments.name
    return PilotFilter(since, until, running, place_of(arguments), *who)
