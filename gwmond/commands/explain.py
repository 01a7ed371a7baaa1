"""Say why a job is not running, what would change that, and whose move it is.

JOB is cluster.proc, or a GlobalJobId. The pool is asked once: the job from its schedd, slots from
the collectors, entries as gwmond sites sees them. The job is matched with every slot, and with an
empty pilot of each entry and frontend group, also where no pilot runs now.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import TypeVar

from gwmond.commands.common import EXIT_FAILED, EXIT_OK, complain, show
from gwmond.config.settings import Config, ConfigError
from gwmond.explain import all_jobs
from gwmond.explain import document as explanation
from gwmond.explain.situation import Situation, is_at
from gwmond.model.facts import DemandGroup, EntryKey
from gwmond.model.waiting_job import Examined
from gwmond.reports import sites
from gwmond.reports.render import document
from gwmond.service import log
from gwmond.service.poller import Poller, remembered
from gwmond.service.pool import Pool
from gwmond.sources.htcondor import waiting_job
from gwmond.sources.htcondor.access import Daemon
from gwmond.sources.round import DEMAND

T = TypeVar("T")

_EPILOG = """\
examples:
  gwmond explain 4711.0
  gwmond explain ap1.example.org#4711.0#1763856000
  gwmond explain 4711.0 --schedd ap1.example.org --site Nebraska     why not there
  gwmond explain 4711.0 --format json | jq -r .first_line
  gwmond explain --all                       all idle jobs of the pool, by reason
  gwmond explain --all --site Nebraska       why that site, or entry, has none of them

the answer is the first of these that holds: the negotiator has not looked at the job yet; the job
does not wait for a pilot (held, deferred); no slot and no entry could run the job; a limit, a quota
or a share of the pool is used up; the job could run only at entries without pilots (down, limits,
nothing requested); pilots are on their way; pilots are there, but busy or too short-lived; not
explained.

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
    if arguments.all:
        return _all(_Look(config, arguments.site), arguments)
    if config.replay.file:
        raise ConfigError("replay.file: a recording has no single jobs; give --collector, or --all")
    schedd, _, rest = arguments.job.partition("#") if "#" in arguments.job else ("", "", "")
    number = rest.partition("#")[0] or arguments.job
    if waiting_job.NUMBER.fullmatch(number) is None:
        raise ConfigError(f"{arguments.job}: a job is cluster.proc (4711.0), or a GlobalJobId")
    look = _Look(config, arguments.site)
    asked = look.schedds(arguments.schedd or schedd)
    examined = [one for daemon in asked if (one := look.job(daemon, number)) is not None]
    if len(examined) != 1:
        complain(_not_one(number, asked, examined, look.missing))
        return EXIT_FAILED
    show(explanation.document(look.situation(examined[0])), arguments.format)
    return EXIT_OK


def _all(look: _Look, arguments: argparse.Namespace) -> int:
    groups = [group for daemon in look.schedds(arguments.schedd) for group in look.groups(daemon)]
    groups.sort(key=lambda group: -group.jobs)
    examined = look.run("gwmond", waiting_job.examine_groups, groups)
    if examined is None:
        complain(f"the jobs could not be matched: {'; '.join(look.missing)}")
        return EXIT_FAILED
    here = [(group, look.situation(one)) for group, one in zip(groups, examined, strict=True)]
    found = all_jobs.causes(here, look.memory_per_unit_mib)
    there = look.entries_there if arguments.site else {}
    show(all_jobs.document(found, look.missing, there), arguments.format)
    return EXIT_OK


class _Look:
    """The pool as one poll sees it, and what is asked besides."""

    def __init__(self, config: Config, site: str) -> None:
        self._pool = Pool.open(config, once=True)
        self._config, self._site = config, site
        self.memory_per_unit_mib = config.canonical.memory_mib
        memory, _ = remembered(config)
        self._snapshot = Poller(config, self._pool, None, memory).poll()
        self._found = self._pool.gatherer.last()
        self._pool.gatherer.allow(config.poll.deadline)
        self._terms = waiting_job.ExplainTerms(
            self._pool.targets.collectors,
            tuple(t for key, t in self._found.templates.items() if is_at(key[0], site)),
            config.attributes,
            config.demand,
            self._snapshot.pool_time,
        )
        self._entries = {
            EntryKey(row.site, row.entry): row
            for row in sites.entry_rows(self._snapshot)
            if row.resource == "cpu"
        }

    @property
    def missing(self) -> tuple[str, ...]:
        """What could not be read, in words."""
        return tuple(
            f"{s.source} {s.kind}" for s in self._pool.gatherer.last().statuses if not s.up
        )

    @property
    def entries_there(self) -> dict[EntryKey, sites.SiteRow]:
        """The entries of the site that is asked for."""
        return {key: row for key, row in self._entries.items() if is_at(key, self._site)}

    def schedds(self, name: str | None) -> list[Daemon]:
        """Return the schedds, or the one of this name; raises ConfigError if there is none."""
        known = [schedd.daemon for schedd in self._found.chosen]
        asked = [daemon for daemon in known if name in (None, "", daemon.name)]
        if not asked and name:
            names = ", ".join(sorted(daemon.name for daemon in known)) or "none"
            raise ConfigError(f"--schedd: the collectors know no schedd {name}. Known: {names}")
        return asked

    def groups(self, schedd: Daemon) -> tuple[DemandGroup, ...]:
        """Return the groups of a schedd's idle jobs."""
        answer = self._found.answers.get((schedd.name, DEMAND))
        return answer.value.groups if answer is not None else ()

    def job(self, schedd: Daemon, number: str) -> Examined | None:
        """Return a job of a schedd, if its queue has it."""
        access = self._pool.access(self._pool.clock.tick())
        return self.run(schedd.name, waiting_job.examine, access, schedd, number)

    def run(self, source: str, task: Callable[..., tuple[T, int]], *arguments: object) -> T | None:
        """Run a query in a child."""
        every = *arguments, self._terms
        return self._pool.gatherer.run(source, "explain", task, *every, keep=False)

    def situation(self, examined: Examined) -> Situation:
        """Return all that the explanation of a job rests on."""
        now = self._snapshot.pool_time
        return Situation(examined, self._entries, now, self.missing, site=self._site)


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
