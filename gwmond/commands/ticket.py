"""Say what fails at a site, as a text for its administrators: since when, and at which nodes.

From the pilots and runs that ended there in a period, and the same jobs elsewhere at that time.
No user and no job is named.
"""

from __future__ import annotations

import argparse

from gwmond.commands.common import (
    EXIT_OK,
    add_ledger_option,
    add_period,
    complain,
    now,
    opened,
    period_of,
    show,
)
from gwmond.config.settings import Config
from gwmond.model.facts import Place
from gwmond.reports.failures.ticket import document, faults_at
from gwmond.reports.ledger.ledger_reading import nothing
from gwmond.reports.render.periods import FORMS_HELP
from gwmond.reports.render.writing import add_format
from gwmond.service.host import log

_DEFAULT = "7d"
_EPILOG = """\
examples:
  gwmond ticket T2_US_Demo                        the last 7 days
  gwmond ticket T2_US_Demo --entry CMS_T2_US_Demo_ce1 --from 2d
  gwmond ticket T2_US_Demo --format markdown > ticket.md

A fault: a test of the validation, an outcome of runs that the place is blamed for, or a server of
transfers, in the stretch of time in which it was densest. Run it again later: what has ended well
since then says whether the fault is gone.

{FORMS_HELP}
"""


def options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG.format(FORMS_HELP=FORMS_HELP)
    parser.add_argument("site", metavar="SITE", help="the site's name, as gwmond sites has it")
    parser.add_argument("--entry", help="only this entry")
    add_period(parser, f"{_DEFAULT}, which is 7 days ago")
    parser.set_defaults(since=_DEFAULT)
    add_format(parser, "table", "json", "markdown", "html")
    add_ledger_option(parser)


def execute(config: Config, arguments: argparse.Namespace) -> int:
    """Say it; raises LedgerError."""
    log.quiet()
    now_us = now(config, arguments)
    period, place = period_of(arguments, now_us), Place(arguments.site, arguments.entry or "")
    with opened(config, arguments, now_us) as (ledger, age):
        found = faults_at(ledger, period, place, most=None)
        cause = "" if found else nothing(ledger, place)
    if period.until_us > (age.written_us or 0):
        complain(age.warning)
    complain(cause)
    show(document(arguments.site, period, found, age), arguments.format)
    return EXIT_OK
