"""Say why a job is not running, what would change that, and whose move it is.

JOB is cluster.proc, or a GlobalJobId. The pool is asked once: the job from its schedd, slots from
the collectors, entries as gwmond sites sees them. The job is matched with every slot, and with an
empty pilot of each entry and frontend group, also where no pilot runs now.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from gwmond.commands.common import EXIT_FAILED, EXIT_OK, complain, show
from gwmond.config.settings import Config, ConfigError
from gwmond.explain import document as explanation
from gwmond.explain.situation import Situation
from gwmond.model.facts import EntryKey
from gwmond.model.waiting_job import Examined
from gwmond.reports import sites
from gwmond.reports.render import document
from gwmond.service import log
from gwmond.service.poller import Poller, remembered
from gwmond.service.pool import Pool
from gwmond.sources.htcondor import waiting_job
from gwmond.sources.htcondor.access import Daemon

_EPILOG = """\
examples:
  gwmond explain 4711.0
  gwmond explain ap1.example.org#4711.0#1763856000
  gwmond explain 4711.0 --schedd ap1.example.org --site Nebraska     why not there
  gwmond explain 4711.0 --format json | jq -r .first_line

the answer is the first of these that holds: nobody has looked at the job yet; the job does not
wait (held, deferred); no slot and no entry could run it; a limit, a quota or a share; it could run
only where no pilot is (down, limits, nothing requested); pilots are on their way; pilots are there,
but busy or too short-lived; not explained.

"proven" rests on pilots that were seen, "estimated" on what a factory says of its entries, "not
known" where something could not be read. A kind of pilots is those of one entry and frontend group.
This command asks once, so reasons that take minutes to observe are only known to the daemon.
"""


def options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument("job", metavar="JOB", help="cluster.proc, or a GlobalJobId")
    parser.add_argument("--schedd", metavar="NAME", help="in whose queue it is (default: look)")
    parser.add_argument("--site", metavar="SITE", default="", help="why it does not run there")
    document.add_format(parser, "table", "json")


def execute(config: Config, arguments: argparse.Namespace) -> int:
    """Ask, and show; 1 when no queue has such a job, or more than one."""
    if config.replay.file:
        raise ConfigError("replay.file: a recording has no single jobs; give --collector")
    log.configure(config.log.model_copy(update={"level": "error"}))
    schedd, _, rest = arguments.job.partition("#") if "#" in arguments.job else ("", "", "")
    number = rest.partition("#")[0] or arguments.job
    if waiting_job.NUMBER.fullmatch(number) is None:
        raise ConfigError(f"{arguments.job}: a job is cluster.proc (4711.0), or a GlobalJobId")
    pool = Pool.open(config)
    memory, _ = remembered(config)
    poller = Poller(config, pool, None, memory)
    snapshot = poller.poll()
    found = pool.gatherer.last()
    wanted = arguments.schedd or schedd
    asked = [s.daemon for s in found.chosen if wanted in ("", s.daemon.name)]
    if not asked:
        known = ", ".join(sorted(s.daemon.name for s in found.chosen)) or "none"
        complain(f"no schedd {wanted!r} is known to the collectors. Known: {known}")
        return EXIT_FAILED
    terms = waiting_job.Terms(
        pool.targets.collectors,
        tuple(found.templates.values()),
        config.attributes,
        config.demand,
        snapshot.pool_time,
    )
    pool.gatherer.allow(config.poll.deadline)
    examined = [one for daemon in asked if (one := _examine(pool, daemon, number, terms))]
    missing = tuple(f"{s.source} {s.kind}" for s in pool.gatherer.last().statuses if not s.up)
    if len(examined) != 1:
        complain(_not_one(number, asked, examined, missing))
        return EXIT_FAILED
    entries = {
        EntryKey(row.site, row.entry): row
        for row in sites.entry_rows(snapshot)
        if row.resource == "cpu"
    }
    here = Situation(
        *(examined[0], entries, snapshot.pool_time),
        missing=missing,
        site=arguments.site,
    )
    show(explanation.document(here), arguments.format)
    return EXIT_OK


def _examine(pool: Pool, schedd: Daemon, number: str, terms: waiting_job.Terms) -> Examined | None:
    access = pool.access(pool.clock.tick())
    task = waiting_job.examine, access, schedd, number, terms
    return pool.gatherer.run(schedd.name, "job", *task, keep=False)


def _not_one(
    number: str, asked: Sequence[Daemon], examined: Sequence[Examined], missing: Sequence[str]
) -> str:
    """Return why there is no answer, and what to do."""
    if examined:
        names = ", ".join(one.job.schedd for one in examined)
        return f"several schedds have a job {number}: {names}. Say which: --schedd NAME"
    failed = f" Not read: {'; '.join(missing)}." if missing else ""
    where = ", ".join(daemon.name for daemon in asked)
    return (
        f"no job {number} is in the queue of {where}.{failed} A job that has ended: gwmond trace, "
        "or condor_history"
    )
