"""Say since when more is lost at which site, and what was changed: limits, START, versions.

From hourly totals, and the pilots and runs that ended in a period.  An effect is against sites
where nothing was changed.
"""

from __future__ import annotations

import argparse

from gwmond.commands.common import (
    EXIT_OK,
    add_ledger_option,
    add_period,
    add_place,
    complain,
    now,
    opened,
    period_of,
    place_of,
    show,
)
from gwmond.config.settings import Config
from gwmond.reports.changes.document import document
from gwmond.reports.changes.gather import found_in
from gwmond.reports.ledger.ledger_reading import nothing
from gwmond.reports.render.periods import FORMS_HELP
from gwmond.reports.render.writing import add_format
from gwmond.service.host import log

_DEFAULT = "7d"
_EPILOG = """\
examples:
  gwmond changes                                  all sites and groups, the last 7 days
  gwmond changes --site T2_US_Demo --from 30d     and its entries
  gwmond changes --group cms.main --format json

What began less than half a day ago is seldom told from chance: gwmond ticket finds faults sooner.

{FORMS_HELP}
"""


def options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG.format(FORMS_HELP=FORMS_HELP)
    add_place(parser)
    add_period(parser, f"{_DEFAULT}, which is 7 days ago")
    parser.set_defaults(since=_DEFAULT)
    add_format(parser, "table", "json", "markdown", "html")
    add_ledger_option(parser)


def execute(config: Config, arguments: argparse.Namespace) -> int:
    """Say it; raises LedgerError."""
    log.quiet()
    now_us = now(config, arguments)
    period, place = period_of(arguments, now_us), place_of(arguments)
    with opened(config, arguments, now_us) as (ledger, age):
        found = found_in(ledger, period, place)
        cause = "" if found.losses or found.changes else nothing(ledger, place)
    if period.until_us > (age.written_us or 0):
        complain(age.warning)
    complain(cause)
    show(document(place, found, age), arguments.format)
    return EXIT_OK
