"""Show the sites now: state, reason, canonical units, pilots, demand.

A provisioning bottleneck is spare capacity for which jobs wait that could run there; insufficient
demand ("no demand") is spare capacity for which no job waits. Units are canonical: 1 core + 2 GB,
or 1 GPU; "of" says which. "provisioned" is what running pilots hold, "busy" what jobs fill of it.
"asked" is the idle pilots that frontends request. "matching" is the idle
jobs that could run there before they are assigned to sites: a job counts at each site that it
matches, so that many may match where no demand is left. "sure" is how probable it is that
the next pilots meet what the verdict says, by how often those did with verdicts like it.
"""

from __future__ import annotations

import argparse

from gwmond.commands.common import (
    EXIT_FAILED,
    EXIT_OK,
    EXIT_SOURCES_DOWN,
    add_as_of,
    complain,
    past,
    show,
)
from gwmond.config.settings import Config
from gwmond.model.facts import Status
from gwmond.model.problem_names import ProblemName
from gwmond.model.times import SECOND_US
from gwmond.reports.render import writing
from gwmond.reports.sites import sites
from gwmond.service.host import log
from gwmond.service.poller import poll_once
from gwmond.sources.folding import FRONTEND_JOBS
from gwmond.sources.htcondor.order import QUOTAS
from gwmond.sources.registry import SOURCES
from gwmond.sources.round import CLAIMS

_NOT_SHOWN = {CLAIMS, FRONTEND_JOBS, QUOTAS}
"""What collectors are not asked for: nothing in the table rests on it, nor on why jobs wait."""

_EPILOG = """\
examples:
  gwmond sites                                     the worst first
  gwmond sites --entries --collector cm.example.org
  gwmond sites --format csv > sites.csv            all columns, with what the numbers rest on
  gwmond sites --as-of 2026-01-31T14:00:00Z        as the daemon saw them then

states: bottleneck (csv, json: provisioning_bottleneck): no pilot waits, and idle jobs could have
run; no demand (insufficient_demand): no idle job is left for it; filling: pilots wait in the site's
queue; saturated: for so long that the site has no room for us; full: all is provisioned; down: in
downtime; unknown: something needed for a verdict is not known. docs/sites.md and the daemon's page
explain the reasons. This command polls once, so reasons that take minutes to observe
(few_requested, idle_slots_untaken) are only known to the daemon.

"?" is not known, and ">=13" known in part: while a schedd does not answer (or there is no empty
pilot to match jobs with) more jobs may match. csv and json then have jobs_whole false, and no
number (empty, null) where no job is known.

"sure" (csv, json: probability, 0 to 1): a bottleneck was right if a pilot that registered ran a job
within site.verdict_check, insufficient demand if none did; "-" where too few like it were checked.
verdicts_agreed of verdicts_checked, in csv and json, are those of the entry since the ledger began.
docs/verdicts.md says what is not in it: pilots rarely start where demand is missing.
"""


def options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    writing.add_format(parser, "table", "json", "csv")
    parser.add_argument(
        "--entries", action="store_true", help="a line for each entry, not for each site"
    )
    add_as_of(parser)


def execute(config: Config, arguments: argparse.Namespace) -> int:
    """Poll and show; 0, or 3 when some source is down (1: the ledger has no such poll)."""
    log.quiet()
    if arguments.as_of is not None:
        return _of_past(config, arguments)
    snapshot = poll_once(config, frozenset(SOURCES) - _NOT_SHOWN, reasons=False)
    rows = sites.entry_rows(snapshot) if arguments.entries else sites.site_rows(snapshot)
    show(
        sites.document(
            snapshot.pool_time, sites.down(snapshot.sources), rows, entries=arguments.entries
        ),
        arguments.format,
    )
    if not rows and any(source.up for source in snapshot.sources):
        complain(sites.no_site(snapshot))
    down = [s for s in snapshot.sources if not s.up]
    for line in dict.fromkeys(map(_down, down)):
        complain(line)
    if down:
        complain("what to do about that: gwmond check")
    return EXIT_SOURCES_DOWN if down else EXIT_OK


def _of_past(config: Config, arguments: argparse.Namespace) -> int:
    poll = past(config, arguments)
    if poll is None:
        return EXIT_FAILED
    rows = poll.entries if arguments.entries else sites.by_site(poll.entries)
    time_s = poll.time_us / SECOND_US
    show(sites.document(time_s, poll.down, rows, entries=arguments.entries), arguments.format)
    return EXIT_OK


def _down(status: Status) -> str:
    """Return how a query failed; that no pool is named is the same line of each of them."""
    kind = "pool" if status.problem == ProblemName.NO_POOL else status.kind
    return f"{status.source} {kind}: {status.problem}: {status.detail}"
