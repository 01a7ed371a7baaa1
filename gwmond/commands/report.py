"""Report where pilots' time went: hours, shares, efficiency, by site, user, day and more.

Both measures (resource and canonical time), CPUs and GPUs; as a table, CSV, JSON, Markdown, or
one HTML file with plots, to be mailed or printed.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from pathlib import Path

from gwmond.commands.common import (
    EXIT_FAILED,
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
    replacing,
    usage,
)
from gwmond.config.settings import Config, ConfigError
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.reports.factory_tools import analyze
from gwmond.reports.factory_tools.analyze import STYLES, AnalyzeQuestion, asked
from gwmond.reports.failures.failures import MOST
from gwmond.reports.ledger.ledger_reading import Age, nothing, unknown
from gwmond.reports.render import writing
from gwmond.reports.render.categories import INFOS
from gwmond.reports.render.document import Document
from gwmond.reports.render.periods import FORMS_HELP
from gwmond.reports.report import report_document
from gwmond.reports.report.gather import gather
from gwmond.reports.report.groupings import GROUPINGS, listed, parse_by
from gwmond.reports.report.report import Scope
from gwmond.reports.report.report_document import DEFINITIONS
from gwmond.service.host import log

_OWN = " - ".join(info.header for info in INFOS if info.category and not info.of_jobs)
_CATEGORIES = "\n".join(
    textwrap.fill(
        f"{info.header:<19}{info.meaning}", 99, initial_indent="  ", subsequent_indent=" " * 21
    )
    for info in INFOS
    if info.category
)
_EPILOG = f"""\
examples:
  gwmond report                                      the last 24 hours, by site
  gwmond report --from 7d --by entry                 with the figures of analyze_entries
  gwmond report --from 2026-01-01 --to 2026-02-01 --by user --format csv --output january.csv
  gwmond report --from 30d --by site,day --format html --output month.html
  gwmond report --from 7d --by failure,entry         why validations failed, and where
  gwmond report --from 7d --failures                 failed validations: by class and test, where
  gwmond report --from 7d --failures --entry X --limit 0      at all nodes of an entry
  gwmond report --from 7d --by site,phase            time of input, program and output of runs
  gwmond report --from 7d --by site,part             what pilots had idle, by part: validation, tail
  gwmond report --from 7d --by transfer,site         runs whose transfers failed: by server
  gwmond report --from 2d --by hour --site T2_US_Demo
  gwmond report --style analyze-entries --sort waste          in the layout of GlideinWMS's tools
  gwmond report --style analyze-frontends --by group          frontends, without their entries

what is counted:
  by {listed("time_spent")}:
    all time spent in the period. The ledger has it by the hour, so the period is made wider until
    it begins and ends with an hour (UTC).
  by {listed("runs_ended")}:
    the runs of jobs that ENDED in the period, each with its whole length. Time of pilots without
    jobs belongs to no user and is left out.
  by {listed("pilots_ended")}:
    the pilots that ENDED in the period, each with its whole life. Together with
    {listed("runs_ended")}, category or outcome: the runs
    that ENDED in the period; not part. failure: of the validation.
  A pilot or run ends in exactly one period, so reports of adjacent periods sum up. Numbers of
  pilots and runs are always of those that ended in the period.

what is shown (shares are of settled time):
  efficiency     {DEFINITIONS["efficiency"]}
  utilization    the share of time in which jobs ran, whatever became of them:
                 (total - {_OWN}) / total
  estimated      the share that rests on an estimate
  settled        settled / (settled + not settled); the category of the rest may still change
  runs open      of the runs that ended, how many are not settled yet
  bottleneck, no demand   by site or entry: spare capacity of the sites for which jobs waited, or
                 not, in canonical hours
  columns of analyze_entries are of pilots that ended, in core-hours of their whole lives:
    strt, 0job   pilots in which HTCondor never started, that never ran a job; each in % of the
                 pilots of which that is known
    fval         time of pilots whose validation failed; in % of time, as those that follow
    idle         other time without jobs: overhead, validation that passed, pilots without jobs
    unkn         time about which nothing is known (fval + idle + unkn = wst)
    wst, badp    all time without jobs; all time but that of runs that exited 0
    job h        wall-clock hours of a run, on average
    used / total its efficiency: time in which jobs ran / all time (that above is goodput / time)
    jobs: n/k    pilots with an unknown number of jobs (5+n/k: 5 on the others)
    ~            rests on pilots whose jobs are known from statistics only

categories, by the headers of their columns (docs/pilots.md):
{_CATEGORIES}

--style prints what GlideinWMS's tools of that name print, in their layout, from records: each pilot
that ended in the period with its whole life, in wall-clock time of pilots (analyze-entries), or
means over time of what clients and the factory advertised (analyze-frontends). In analyze-entries
"time validating" and val are the time until validation ended, of all pilots; fval is that of pilots
whose validation failed, as above. docs/analyze.md has each line's definition, and how the original
differs. Where the originals have options:
  -x HOURS: --from HOURSh; -f FRONTEND: --group; -s: --sort; -m: --by group (in slots).
  analyze-entries takes the period as it is, not whole hours.

csv has a column for each value of json, named by its path: categories, cpu, resource_seconds and
goodput are categories_cpu_resource_seconds_goodput; json has the definitions.

{FORMS_HELP}
"""


def options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    add_period(parser)
    parser.add_argument(
        "--by",
        metavar="WHAT",
        help=f"one of these, or two with a comma between: {', '.join(GROUPINGS)} (default: site; "
        "with --style: entry or group, default entry)",
    )
    parser.add_argument("--style", choices=STYLES, help="in the layout of this tool of GlideinWMS")
    parser.add_argument(
        "--sort", metavar="COLUMN", help="with --style: the largest of this column first"
    )
    add_place(parser)
    parser.add_argument(
        "--hours-only",
        action="store_true",
        help="fast also for long periods: no numbers of pilots and runs, and no figures of "
        f"analyze_entries (only with {listed('time_spent')})",
    )
    parser.add_argument(
        "--failures",
        action="store_true",
        help="failed validations first: by class and test, then also by entry and node, those "
        "where most pilots failed first (csv: only the lines by entry and node, all of them)",
    )
    parser.add_argument(
        "--limit",
        type=limit,
        metavar="N",
        help=f"with --failures: lines by entry and node (default {MOST}; 0: all; csv, json: all)",
    )
    writing.add_format(parser, "table", "csv", "json", "markdown", "html")
    parser.add_argument("--output", type=Path, metavar="FILE", help="instead of standard output")
    add_ledger_option(parser)


def execute(config: Config, arguments: argparse.Namespace) -> int:
    """Report; 1 when the file cannot be written; raises LedgerError."""
    log.quiet()
    if arguments.limit is not None and not arguments.failures:
        raise ConfigError("--limit is for --failures")
    now_us = now(config, arguments)
    scope = _scope(arguments, now_us) if arguments.style is None else _asked(arguments, now_us)
    terminal = arguments.output is None and sys.stdout.isatty()
    with opened(config, arguments, now_us) as (ledger, age):
        if isinstance(scope, AnalyzeQuestion):
            made, empty = analyze.document(ledger, scope, age)
            pilots = scope.style == "analyze-entries"  # the other one is of ads
        else:
            made, empty = _report(ledger, scope, age, config, arguments)
            pilots = True
        text = writing.text(made, arguments.format, terminal=terminal)
        cause = (nothing if pilots else unknown)(ledger, scope.place) if empty else ""
    if scope.period.until_us > (age.written_us or 0):
        complain(age.warning)
    complain(cause and f"nothing in this period: {cause}")
    if arguments.output is None:
        sys.stdout.write(text)
        return EXIT_OK
    try:
        with replacing(arguments.output) as file:
            file.write(text)
    except OSError as error:
        complain(f"cannot write {arguments.output}: {error.strerror}")
        return EXIT_FAILED
    return EXIT_OK


def _report(
    ledger: LedgerReader, scope: Scope, age: Age, config: Config, arguments: argparse.Namespace
) -> tuple[Document, bool]:
    """Return a report, and whether there is nothing in it."""
    counted, failures = not arguments.hours_only, arguments.failures
    report = gather(ledger, scope, config, counted=counted, failures=failures)
    report = report._replace(most=MOST if arguments.limit is None else arguments.limit)
    return report_document.document(report, age), not report.groups


def _asked(arguments: argparse.Namespace, now_us: int) -> AnalyzeQuestion:
    """Return what a style is asked for."""
    if arguments.failures:
        raise ConfigError("--failures: not with --style")
    if arguments.format == "html" or arguments.hours_only:
        option = "--hours-only" if arguments.hours_only else "--format html"
        forms = ", ".join(analyze.FORMS)
        raise ConfigError(f"{option}: not with --style, whose formats are {forms}")
    period, place = period_of(arguments, now_us), place_of(arguments)
    question = AnalyzeQuestion(arguments.style, period, place, sort=arguments.sort)
    with usage():
        return asked(question, arguments.by)


def _scope(arguments: argparse.Namespace, now_us: int) -> Scope:
    if arguments.sort is not None:
        raise ConfigError(f"--sort is for --style {' or '.join(STYLES)}")
    with usage():
        by = parse_by(arguments.by or "site")
    scope = Scope(period_of(arguments, now_us).whole_hours, by, place_of(arguments))
    if arguments.hours_only and scope.basis != "time_spent":
        raise ConfigError(f"--hours-only: hours are not known by {', '.join(by)}")
    return scope
