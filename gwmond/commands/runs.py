"""List runs of jobs: where, when and how long they ran, for whom, and how they ended.

Of runs that began in a period, the latest first. All of it comes from the daemon's ledger. The
trace of one: gwmond trace JOB.
"""

from __future__ import annotations

import argparse

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
    usage,
)
from gwmond.config.settings import Config
from gwmond.model.pilot_life import Category
from gwmond.model.pilots.stored_pilots import RunFilter
from gwmond.model.runs.outcomes import OUTCOMES
from gwmond.model.times import SECOND_US, parse_duration
from gwmond.reports.ledger.ledger_reading import nothing
from gwmond.reports.pilots.runs import run_list
from gwmond.reports.render import writing
from gwmond.reports.render.periods import FORMS_HELP
from gwmond.service.host import log

_LIMIT = 1000
_EPILOG = f"""\
examples:
  gwmond runs --user alice --longer-than 6h          her long ones of the last day
  gwmond runs --outcome lost_contact --from 7d       those whose pilots vanished
  gwmond runs --node 'wn42.*' --category misconfiguration_badput --format csv > runs.csv
  gwmond runs --job 4711.0                           all runs of one job

docs/pilots.md says what the outcomes mean; csv and json have phases, bytes and settled time.

{FORMS_HELP}
"""


def options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    which = parser.add_argument_group("which runs")
    add_period(which)
    add_place(which)
    which.add_argument("--user", help="of this user (user@domain, or user of any domain)")
    which.add_argument("--job", help="of this job (cluster.proc, or a GlobalJobId)")
    which.add_argument("--node", help="on this node; * stands for anything")
    which.add_argument(
        "--category", choices=list(map(str, Category)), metavar="NAME", help="of this category"
    )
    which.add_argument(
        "--outcome",
        metavar="NAME",
        choices=OUTCOMES,
        help="that ended so, such as exit_zero",
    )
    which.add_argument(
        "--longer-than", metavar="TIME", help="that ended, and lasted longer (90s, 6h)"
    )
    shown = parser.add_argument_group("how")
    shown.add_argument(
        "--limit", type=limit, default=_LIMIT, metavar="N", help=f"default {_LIMIT}; 0: all"
    )
    writing.add_format(shown, "table", "json", "csv")
    add_ledger_option(shown)


def execute(config: Config, arguments: argparse.Namespace) -> int:
    """List runs; raises LedgerError."""
    log.quiet()
    now_us = now(config, arguments)
    longer = arguments.longer_than
    with usage():
        longer_us = None if longer is None else round(parse_duration(longer) * SECOND_US)
    choice = RunFilter(
        period=period_of(arguments, now_us),
        place=place_of(arguments),
        user=arguments.user,
        job=arguments.job,
        category=Category(arguments.category) if arguments.category else None,
        outcome=arguments.outcome,
        node=arguments.node,
        longer_us=longer_us,
    )
    with opened(config, arguments, now_us) as (ledger, age):
        found = run_list(ledger, age, choice, arguments.limit or None)
        why = "" if found.runs else nothing(ledger, choice.place, choice.user)
    show(found.document, arguments.format)
    complain(why)
    if found.truncated:
        complain(f"only {arguments.limit} runs are shown; see --limit")
    complain(age.warning)
    return EXIT_OK
