"""Show the sites now: state, reason, canonical units, pilots, demand.

A provisioning bottleneck is spare capacity for which jobs wait that could run there; insufficient
demand ("no demand") is spare capacity for which no job waits. Units are canonical: 1 core + 2 GB,
or 1 GPU; "of" says which. "provisioned" is what running pilots hold, "busy" what jobs fill of it.
"asked" is the idle pilots that frontends request. "matching" is the idle
jobs that could run there before they are assigned to sites: a job counts at each site that it
matches, so that many may match where no demand is left. "right" is how often pilots that registered
met what had been said of their entry: a job within ten minutes, or none.
"""

from __future__ import annotations

import argparse
import json
import sys

from rich.console import Console
from rich.text import Text

from gwmond.commands.common import EXIT_OK, EXIT_SOURCES_DOWN
from gwmond.config.settings import Config
from gwmond.model.facts import Status
from gwmond.model.snapshot import Snapshot
from gwmond.reports import csv_text
from gwmond.reports.site_table import Row, as_json, entry_rows, jobs_text, site_rows, verdicts_text
from gwmond.reports.table_text import Cell, Grid, empty, not_shown, room, show, tell
from gwmond.service import log
from gwmond.service.poller import poll_once

_EPILOG = """\
examples:
  gwmond sites                                     the worst first
  gwmond sites --entries --collector cm.example.org
  gwmond sites --format csv > sites.csv            all columns, with what the numbers rest on

states: provisioning_bottleneck: no pilot waits, and idle jobs could have run; insufficient_demand:
no idle job is left for it; filling: pilots wait in the site's queue; saturated: for so long that
the site has no room for us; full: all is provisioned; down: in downtime; unknown: something needed
for a verdict is not known. The README says what the reasons mean; the daemon's page does, too. What
lasts for minutes (few_requested, idle_slots_untaken) only the daemon knows: this polls once.

"?" is not known, and ">=13" known in part: while a schedd does not answer (or there is no empty
pilot to match jobs with) more jobs may match. csv and json then have jobs_whole false, and no
number (empty, null) where no job is known.

"right" (csv, json: verdicts_agreed of verdicts_checked, since the ledger began): a bottleneck was
right if a pilot that registered ran a job within site.verdict_check, insufficient demand if it ran
none. It does not say how often a verdict is right: pilots rarely start where demand is missing, and
those that start together share the jobs. docs/verdicts.md says what else is not in it.
"""
_HEADERS = (
    *("state", "reason", "capacity", "provisioned", "busy", "bottleneck", "no demand", "other"),
    *("pilots", "pending", "held", "asked", "matching", "right"),
)
_MAY_BE_LEFT_OUT = {"no demand", "other", "pending", "held", "asked", "right"}
_COLOURS = {
    "provisioning_bottleneck": "red",
    "insufficient_demand": "cyan",
    "filling": "yellow",
    "saturated": "green",
    "full": "green",
    "down": "magenta",
    "unknown": "bright_black",
}


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``gwmond sites``."""
    parser.epilog = _EPILOG
    parser.add_argument("--format", choices=("table", "json", "csv"), default="table")
    parser.add_argument(
        "--entries", action="store_true", help="a line for each entry, not for each site"
    )


def execute(config: Config, arguments: argparse.Namespace) -> int:
    """Poll and show; 0, or 3 when some source is down."""
    log.configure(config.log.model_copy(update={"level": "error"}))
    snapshot = poll_once(config)
    rows = entry_rows(snapshot) if arguments.entries else site_rows(snapshot)
    if arguments.format == "json":
        json.dump(as_json(snapshot, rows), sys.stdout, indent=2)
        print()
    elif arguments.format == "csv":
        csv_text.write(sys.stdout, Row._fields, rows)
    elif rows:
        _show(rows, entries=arguments.entries)
    if not rows and any(source.up for source in snapshot.sources):
        print(f"gwmond: {_none(snapshot)}", file=sys.stderr)
    down = [s for s in snapshot.sources if not s.up]
    for line in dict.fromkeys(map(_down, down)):
        print(f"gwmond: {line}", file=sys.stderr)
    return EXIT_SOURCES_DOWN if down else EXIT_OK


def _none(snapshot: Snapshot) -> str:
    """Return why there may be no site, and what to do next."""
    unnamed = sum(n for (_, word), n in snapshot.problems.items() if word == "no_site")
    if unnamed:
        return (
            f"no site is known: {unnamed} slots do not say at which site they are. Name the "
            "attribute that does: [attributes] site"
        )
    return (
        "no site is known: the collectors show no pilot, and no glideresource ad of a frontend "
        "that asks for any. Are they this pool's (--collector, [pool] collectors)? gwmond check "
        "says what each daemon answered"
    )


def _down(status: Status) -> str:
    """Return how a query failed; that no pool is named is the same line of each of them."""
    kind = "pool" if status.problem == "no_pool" else status.kind
    return f"{status.source} {kind}: {status.problem}: {status.detail}"


def _show(rows: list[Row], *, entries: bool) -> None:
    names = ("site", "entry", "of") if entries else ("site", "of")
    cells: list[list[Cell]] = [
        [
            row.site,
            *((row.entry,) if entries else ()),
            row.resource,
            Text(row.state, _COLOURS[row.state]),
            f"{row.reason}: {row.limits}" if _is_limit(row) else row.reason,
            f"{row.capacity_units}",
            _cell(row.provisioned_units),
            _cell(row.busy_units),
            f"{row.provisioning_bottleneck_units:.0f}",
            f"{row.insufficient_demand_units:.0f}",
            f"{row.other_units:.0f}",
            _cell(row.registered_pilots),
            _cell(row.pending_pilots),
            _cell(row.held_pilots),
            _cell(row.requested_pilots),
            jobs_text(row),
            verdicts_text(row),
        ]
        for row in sorted(rows, key=lambda r: (-r.provisioning_bottleneck_units, r.site, r.entry))
    ]
    headers = (*names, *_HEADERS)
    out = empty(headers, cells, _MAY_BE_LEFT_OUT, {"0"}) if cells else []
    grid = Grid(
        [header for at, header in enumerate(headers) if at not in out],
        [[cell for at, cell in enumerate(row) if at not in out] for row in cells],
        len(names),
        texts=("state", "reason"),
        wrapped={"reason": 24},
        heads=1 if entries else 0,
    )
    console = Console(width=room())
    show(console, grid)
    if out:
        tell(console, not_shown(headers, out), "bright_black")


def _is_limit(row: Row) -> bool:
    return "limit" in row.reason and bool(row.limits)


def _cell(value: int | None) -> str:
    return "?" if value is None else str(value)
