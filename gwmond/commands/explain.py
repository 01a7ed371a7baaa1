"""Say why a job is not running, or a pilot has none, what would change that, and whose move it is.

JOB is cluster.proc, or a GlobalJobId. The pool is asked once: the job from its schedd, slots from
the collectors, entries as gwmond sites sees them. The job is matched with every slot, and with an
empty pilot of each entry and frontend group, also where no pilot runs now.
"""

from __future__ import annotations

import argparse

from gwmond.commands.common import EXIT_FAILED, EXIT_OK, complain, now, show
from gwmond.config.settings import Config, ConfigError
from gwmond.explain import all_jobs
from gwmond.explain import document as explanation
from gwmond.explain.place_document import place_document
from gwmond.explain.sent_for import sent_for_document
from gwmond.ledger.errors import LedgerError
from gwmond.ledger.reader import LedgerReader
from gwmond.reports.pilot_story import find
from gwmond.reports.render import document
from gwmond.reports.render.document import Document
from gwmond.reports.sent_for import sent_for
from gwmond.service import log
from gwmond.service.explainer import BadQuestion, Explainer, NoAnswer, name_of
from gwmond.service.poller import Poller, remembered
from gwmond.service.pool import Pool
from gwmond.sources.registry import SOURCES
from gwmond.sources.round import CLAIMS

_EPILOG = """\
examples:
  gwmond explain 4711.0
  gwmond explain ap1.example.org#4711.0#1763856000
  gwmond explain 4711.0 --schedd ap1.example.org --site Nebraska     why not there
  gwmond explain 4711.0 --format json | jq -r .first_line
  gwmond explain --all                       all idle jobs of the pool, by reason
  gwmond explain --all --site Nebraska       why that site, or entry, has none of them
  gwmond explain --pilot glidein_3344_123@wn42.example.org     why that pilot has no job
  gwmond explain --entry CMS_T2_US_Nebraska_Red_gw1            why that entry's pilots have none

the answer is the first of these that holds: the negotiator has not looked at the job yet; the job
does not wait for a pilot (held, deferred); no slot and no entry could run the job; a limit, a quota
or a share of the pool is used up; the job could run only at entries without pilots (down, limits,
nothing requested); pilots are on their way; pilots are there, but busy or too short-lived; not
explained.

--pilot and --entry match all idle jobs of the pool with one pilot as it is and as it was when it
was empty, or with empty pilots of one entry. The answer is the first of these that holds: no job
can start there (busy, retiring, failed validation, entry down); no idle job could run there, and
what keeps the most from it; the entry has no pilot; what is left of pilots is too small, or ends
too soon; jobs fit, and nobody gives them to it (no negotiator, or a late one; others come first).

a pilot that no collector shows any more is looked up in the ledger, by its startd's name, a part of
the name, or its number: for what demand it was sent, and who took these jobs meanwhile.

"proven" rests on pilots that were seen, "estimated" on what a factory says of its entries. "not
known": something could not be read. An entry is a factory's description of one queue of a site.
The pilots of one entry and one frontend group are one kind of pilots. START is the expression by
which a pilot accepts or refuses jobs. This command asks once, so only the daemon knows reasons that
take minutes to observe. docs/explain.md has all reasons.
"""


def options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("job", nargs="?", metavar="JOB", help="cluster.proc, or a GlobalJobId")
    what.add_argument("--all", action="store_true", help="all idle jobs, counted by reason")
    what.add_argument("--pilot", metavar="NAME", help="why this pilot has no job, or never had one")
    what.add_argument("--entry", metavar="ENTRY", help="why this entry's pilots have no job")
    parser.add_argument(
        "--schedd", metavar="NAME", help="the schedd that has the job (default: ask all)"
    )
    parser.add_argument(
        "--site", metavar="SITE", default="", help="only why not at this site, or entry"
    )
    document.add_format(parser, "table", "json")


def execute(config: Config, arguments: argparse.Namespace) -> int:
    """Ask, and show; 1 when no queue has such a job, or more than one."""
    log.configure(config.log.model_copy(update={"level": "error"}))
    if not arguments.all and config.replay.file:
        raise ConfigError("replay.file: a recording has no single jobs; give --collector, or --all")
    try:
        if arguments.job:
            name_of(arguments.job)
        explainer = _asked(config, arguments.site)
        if arguments.entry or arguments.pilot:
            answer = _place(config, explainer, arguments)
        elif arguments.all:
            found = all_jobs.causes(
                explainer.all_jobs(arguments.schedd), explainer.memory_per_unit_mib
            )
            there = explainer.entries_there if arguments.site else {}
            answer = all_jobs.document(found, explainer.missing, there)
        else:
            answer = explanation.document(explainer.job(arguments.job, arguments.schedd))
    except BadQuestion as error:
        raise ConfigError(str(error)) from None
    except NoAnswer as error:
        complain(str(error))
        return EXIT_FAILED
    show(answer, arguments.format)
    return EXIT_OK


def _place(config: Config, explainer: Explainer, arguments: argparse.Namespace) -> Document:
    """Return why the entry, or the pilot, has no job; raises NoAnswer."""
    if arguments.entry:
        return place_document(explainer.place(explainer.entry(arguments.entry)))
    pilot = explainer.pilot(arguments.pilot)
    if pilot is not None:
        return place_document(explainer.place(pilot.entry, pilot))
    return _past(config, arguments.pilot)


def _past(config: Config, name: str) -> Document:
    """Return why a pilot that no collector shows had no job, by the ledger; raises NoAnswer."""
    missing = f"the collectors know no pilot {name}"
    try:
        with LedgerReader.open(config.ledger.url) as ledger:
            found = find(ledger, name)
            if len(found) == 1:
                return sent_for_document(sent_for(ledger, found[0], now()))
    except LedgerError as error:
        raise NoAnswer(f"{missing}. {error}") from None
    if found:
        numbers = ", ".join(str(row.id) for row in found[:20])
        raise NoAnswer(f"{missing}; several of the ledger fit, give a number: {numbers}")
    raise NoAnswer(f"{missing}, nor does the ledger. gwmond pilots --past lists those that ended")


def _asked(config: Config, site: str) -> Explainer:
    """Ask the pool once."""
    pool = Pool.open(config, once=True, kinds=frozenset(SOURCES) - {CLAIMS})
    memory, _ = remembered(config)
    snapshot = Poller(config, pool, None, memory).poll()
    poll = snapshot, pool.gatherer.last(), pool.targets
    access = pool.access(pool.clock.tick())
    return Explainer(config, poll, access, snapshot.pool_time, site=site)
