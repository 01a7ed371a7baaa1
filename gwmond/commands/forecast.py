"""Forecast when sites are full, and when no waiting job is left for them.

By the polls of the last days that the daemon's ledger keeps. When one job starts: gwmond explain
JOB.
"""

from __future__ import annotations

import argparse

from gwmond.commands.common import EXIT_OK, add_ledger_option, complain, now, opened, show
from gwmond.config.settings import Config
from gwmond.model.facts import Place
from gwmond.reports.ledger.ledger_reading import unknown
from gwmond.reports.render import writing
from gwmond.reports.sites.coming import coming, document
from gwmond.service.host import log

_EPILOG = """\
examples:
  gwmond forecast
  gwmond forecast --site T2_US_Demo --format json

half, nine of ten: so many of such cases took as long. docs/sites.md says how that is found, and how
often it was right. What takes more than 12 hours is only said to take longer.
"""


def options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument("--site", default="", help="only this site")
    writing.add_format(parser, "table", "json", "csv")
    add_ledger_option(parser)


def execute(config: Config, arguments: argparse.Namespace) -> int:
    """Forecast; raises LedgerError."""
    log.quiet()
    now_us = now(config, arguments)
    with opened(config, arguments, now_us) as (ledger, age):
        found = coming(ledger, now_us, arguments.site)
        why = "" if found else unknown(ledger, Place(arguments.site))
    show(document(found, age), arguments.format)
    complain(why)
    complain(age.warning)
    return EXIT_OK
