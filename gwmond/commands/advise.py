"""Say what would waste less of the pilots' time: idle timeouts, requests, lifetimes, transfers.

From the pilots that ended in a period and their runs, as the ledger has them. Each line has what
it rests on, and its uncertainty; where too few pilots or runs say something, so does gwmond.
"""

from __future__ import annotations

import argparse

from gwmond.advise.document import MOST, document
from gwmond.advise.gather import gather
from gwmond.commands.common import (
    EXIT_OK,
    add_ledger_option,
    add_period,
    add_place,
    complain,
    limit,
    now,
    opened,
    period_of,
    place_of,
    show,
)
from gwmond.config.settings import Config
from gwmond.reports.ledger.ledger_reading import nothing, progress
from gwmond.reports.render.periods import FORMS_HELP
from gwmond.reports.render.writing import add_format
from gwmond.service.host import log

_EPILOG = f"""\
examples:
  gwmond advise                                   the last 7 days, all entries
  gwmond advise --from 30d --entry CMS_T2_US_Nebraska_Red
  gwmond advise --from 2026-01-01 --to 2026-02-01 --format html > january.html
  gwmond advise --format json | jq '.idle_timeouts[] | [.entry, .setting, .best_seconds]'

what is advised:
  the largest losses    in words, of all time of the pilots that ended in the period
  idle timeouts         GLIDEIN_Max_Idle (before the first job) and GLIDEIN_Max_Tail (after a job):
                        which wastes least, by how long pilots have waited for jobs
  runs lost             how long runs need, and how much time their pilots had left
  requests              memory and cores that runs held, and used
  pilots                how many were asked for, and how many never ran a job
  stage-out             what it would gain to send output while the next job runs, and what it
                        gains where some pilots do

Longer periods say more. Nothing is changed: the settings are the factory's and the frontend's.
docs/advise.md explains each column, and how far the advice was checked.

{FORMS_HELP}
"""
_DEFAULT = "7d"


def options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    add_period(parser, f"{_DEFAULT}, which is 7 days ago")
    parser.set_defaults(since=_DEFAULT)
    add_place(parser)
    parser.add_argument(
        "--limit",
        type=limit,
        default=MOST,
        metavar="N",
        help=f"lines of each table (default {MOST}; 0: all; json: all)",
    )
    add_format(parser, "table", "json", "markdown", "html")
    add_ledger_option(parser)


def execute(config: Config, arguments: argparse.Namespace) -> int:
    """Advise; raises LedgerError."""
    log.quiet()
    now_us = now(config, arguments)
    period, place = period_of(arguments, now_us), place_of(arguments)
    with opened(config, arguments, now_us) as (ledger, age), progress() as report:
        memory_mib = config.canonical.memory_mib
        advice = gather(ledger, period, place, memory_per_unit_mib=memory_mib, progress=report)
        cause = "" if advice.pilots else nothing(ledger, place)
    if period.until_us > (age.written_us or 0):
        complain(age.warning)
    complain(cause and f"no pilot ended in this period: {cause}")
    show(document(advice, age, arguments.limit), arguments.format)
    return EXIT_OK
