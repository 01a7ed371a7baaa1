"""Show the whole life of one pilot: what it did when, where its time went, and the evidence.

ID is its number (see gwmond pilots), the name of its startd, or a unique part of that name.
"""

from __future__ import annotations

import argparse
import shutil
import textwrap

from gwmond.commands.common import (
    EXIT_FAILED,
    EXIT_OK,
    add_ledger_option,
    complain,
    now,
    one_pilot,
    opened,
    show,
)
from gwmond.config.settings import Config
from gwmond.reports.ledger.open_runs import rules
from gwmond.reports.pilots import pilot_document, timeline
from gwmond.reports.pilots.story import story_of
from gwmond.reports.render import writing
from gwmond.reports.render.categories import INFOS
from gwmond.service.host import log

_LETTERS = "   ".join(
    f"{info.letter} {(info.category or info.header).replace('_', ' ')}" for info in INFOS
)

_EPILOG = f"""\
examples:
  gwmond pilot 4711
  gwmond pilot glidein_3344_123@wn42.example.org
  gwmond pilot wn42 --format json | jq '.runs[] | {{job, category, rule}}'

the picture: one line for the pilot's own time and one for each run of a job; time runs to the right
{textwrap.fill(_LETTERS, 99, initial_indent="  ", subsequent_indent="  ")}
  small letters: a part of the pilot, beside jobs     ·: jobs use all of it

the tables: each run with the rule (docs/pilots.md) that decided its category, the sources that
reported it (startd, epoch and schedd history, live slot; "inferred": no record of its end came),
HTCondor's codes, and where these sources contradict each other.
"estimated": a documented rule fills in for a missing fact.
Sums are those of the ledger, in both measures; the residual is total minus parts: 0.
"""


def options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument("id", metavar="ID", help="number, startd's name, or a part of the name")
    writing.add_format(parser, "table", "json")
    parser.add_argument(
        "--width", type=int, metavar="COLUMNS", help="of the picture; default: the terminal's"
    )
    parser.add_argument(
        "--lanes",
        type=int,
        default=timeline.MOST,
        metavar="N",
        help=f"runs drawn at most ({timeline.MOST})",
    )
    add_ledger_option(parser)


def execute(config: Config, arguments: argparse.Namespace) -> int:
    """Show it; 1 when there is no such pilot, or more than one; raises LedgerError."""
    log.quiet()
    now_us = now(config, arguments)
    with opened(config, arguments, now_us) as (ledger, age):
        row = one_pilot(ledger, arguments.id)
        if row is None:
            return EXIT_FAILED
        story = story_of(ledger, row, now_us, rules(config))
    width = arguments.width or shutil.get_terminal_size((100, 24)).columns
    made = pilot_document.document(story, age, max(40, width), arguments.lanes)
    show(made, arguments.format)
    if story.pilot.life_now.end_us is None:
        complain(age.warning)
    return EXIT_OK
