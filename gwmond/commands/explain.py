"""Say why a job is not running, or a pilot has none, what would change that, and whose move it is.

JOB is cluster.proc, or a GlobalJobId. The daemon that runs on this host is asked, if it watches the
same pool; the last line says of which poll its answer is. So is gwmond demo where no other pool is
named, and by --ask daemon. If no daemon answers, the pool is asked
once: the job from its schedd, slots from the collectors, entries as gwmond sites sees them. The job
is matched with every slot, and with an empty pilot of each entry and frontend group, also where no
pilot runs now.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from gwmond.commands.common import (
    EXIT_FAILED,
    EXIT_OK,
    EXIT_SOURCES_DOWN,
    add_as_of,
    complain,
    past,
    show,
)
from gwmond.config.settings import Config, ConfigError
from gwmond.model.demand.question import MOST_AD, NOT_READ, POOL, WITHHELD, Question, What
from gwmond.reports.render import writing
from gwmond.reports.render.formats import plain
from gwmond.reports.render.terminal import room
from gwmond.service.host import log
from gwmond.service.host.daemon_client import DaemonReply, NoDaemon, ask, is_of, is_recorded
from gwmond.sources import child
from gwmond.sources.htcondor import waiting_job

if TYPE_CHECKING:
    from gwmond.service.pool.explainer import Explainer

_EPILOG = """\
examples:
  gwmond explain 4711.0
  gwmond explain ap1.example.org#4711.0#1763856000
  gwmond explain 4711.0 --schedd ap1.example.org --site Nebraska     why not there
  gwmond explain 4711.0 --format json | jq -r .first_line
  gwmond explain 4711.0 --ask pool           not the daemon
  gwmond explain --all                       all idle jobs of the pool, by reason
  gwmond explain --all --site Nebraska       why that site, or entry, has none of them
  gwmond explain --all --as-of 2h            why jobs waited two hours ago, as the daemon saw it
  gwmond explain --pilot glidein_3344_123@wn42.example.org     why that pilot has no job
  gwmond explain --ad job.sub                what would happen to such a job (a submit description)
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
known": something could not be read, and the exit code is 3. An entry is a factory's description of
one queue of a site. The pilots of one entry and one frontend group are one kind of pilots. START is
the expression by which a pilot accepts or refuses jobs. Only the daemon knows reasons that take
minutes to observe.
docs/explain.md has all reasons.

root, and the daemon's own user, ask the daemon on its Unix socket (/run/gwmond/http.socket), and
are shown all. Others ask at [http] listen, with the token if auth_token_file can be read; [http]
jobs says whether it shows single jobs and clauses; if not, the pool is asked.
"""


def options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("job", nargs="?", metavar="JOB", help="cluster.proc, or a GlobalJobId")
    what.add_argument("--all", action="store_true", help="all idle jobs, counted by reason")
    what.add_argument(
        "--ad",
        metavar="FILE",
        help="what would happen to such a job: its ad, or how it is submitted",
    )
    what.add_argument("--pilot", metavar="NAME", help="why this pilot has no job, or never had one")
    what.add_argument("--entry", metavar="ENTRY", help="why this entry's pilots have no job")
    parser.add_argument(
        "--schedd", metavar="NAME", help="the schedd that has the job (default: ask all)"
    )
    parser.add_argument(
        "--site", metavar="SITE", default="", help="only why not at this site, or entry"
    )
    add_ask(parser)
    add_as_of(parser)
    writing.add_format(parser, "table", "json")


def add_ask(parser: argparse.ArgumentParser) -> None:
    """Add who is asked."""
    parser.add_argument(
        "--ask",
        choices=("daemon", "pool"),
        help="ask only the daemon, or only the pool (default: the daemon that runs on this host, "
        "if it watches the same pool; else the pool)",
    )


def execute(config: Config, arguments: argparse.Namespace) -> int:
    """Ask, and show; 1 when no queue has such a job, or more than one.

    3 where something that the answer rests on could not be read.
    """
    log.quiet()
    if arguments.as_of is not None:
        return _of_past(config, arguments)
    if arguments.ad is not None:
        arguments.ad = ad_of(arguments.ad)
    question = _question(arguments)
    if config.replay.file and question.what != "all":
        _refuse_recorded(config.replay.file)
    answered = by_daemon_first(config, question, arguments)
    return _by_pool(config, question, arguments.format) if answered is None else answered


def by_daemon_first(
    config: Config, question: Question, arguments: argparse.Namespace
) -> int | None:
    """Show what the daemon answers, and return the exit code; None: the pool is to be asked."""
    if arguments.ask == "pool":
        return None
    try:
        return _by_daemon(config, question, arguments)
    except NoDaemon as error:
        if arguments.ask == "daemon":
            complain(str(error))
            return EXIT_FAILED
        if error.runs:
            complain(f"{error}: the pool is asked")
    return None


def _of_past(config: Config, arguments: argparse.Namespace) -> int:
    """Show why jobs waited at a time of the past: of that single jobs are not kept."""
    from gwmond.reports.sites.polls import idle_document  # noqa: PLC0415

    if not arguments.all:
        raise ConfigError("--as-of is for --all: why one job waited is in gwmond trace JOB")
    poll = past(config, arguments)
    if poll is None:
        return EXIT_FAILED
    show(idle_document(poll, arguments.site), arguments.format)
    return EXIT_OK


def _refuse_recorded(file: str) -> None:
    """Raise ConfigError if a recording has no single jobs and pilots, or is none."""
    from gwmond.service.pool.questions import RECORDED  # noqa: PLC0415 (slow)
    from gwmond.sources.recording.recording import Recording  # noqa: PLC0415

    try:
        if not Recording(file).has_jobs:
            raise ConfigError(f"replay.file: {RECORDED}")
    except ValueError as error:
        raise ConfigError(f"replay.file: {error}") from None


def _by_daemon(config: Config, question: Question, arguments: argparse.Namespace) -> int:
    """Show what the daemon answers; raises NoDaemon where that is no answer of this pool."""
    form = "json" if arguments.format == "json" else "text"
    query = {name: text for name, text in question.query.items() if text}
    path = f"/explain?{urlencode({**query, 'format': form, 'width': room()})}"
    reply = ask(config.http, path)
    name = f"the daemon at {config.http.listen}"
    text = _text(reply, form)
    if reply.status == 403:
        raise NoDaemon(f"{name} shows no single jobs ([http] jobs)", runs=True)
    if reply.status not in {200, 400, 404}:
        raise NoDaemon(f"{name} does not answer this: {text.strip()}", runs=True)
    named = reply.headers.get(POOL.lower(), "")
    wanted = arguments.ask == "daemon" and not arguments.collector and is_recorded(named)
    if not named or not (wanted or is_of(config, named)):
        raise NoDaemon(f"{name} watches another pool, or other schedds", runs=True)
    if WITHHELD.lower() in reply.headers and arguments.ask != "daemon":
        raise NoDaemon(f"{name} shows no clauses of jobs ([http] jobs)", runs=True)
    if is_recorded(named) and not config.replay.file:
        complain(f"{name} replays a recording, as gwmond demo does: this is of no live pool")
    if reply.status == 400:
        raise ConfigError(text.strip())
    if reply.status == 404:
        complain(text.strip())
        return EXIT_FAILED
    sys.stdout.write(text)
    return EXIT_SOURCES_DOWN if NOT_READ.lower() in reply.headers else EXIT_OK


def _text(reply: DaemonReply, form: str) -> str:
    """Return what is written of an answer: nothing that a terminal obeys."""
    if form == "text":
        return plain(reply.text, keep="\n")
    try:
        record = json.loads(reply.text)
    except ValueError:
        return plain(reply.text)
    return f"{json.dumps(record, indent=2)}\n" if reply.status == 200 else str(record["error"])


def _by_pool(config: Config, question: Question, form: str) -> int:
    """Poll the pool, and show what that tells."""
    from gwmond.service.pool.explainer import BadQuestion, NoAnswer, name_of  # noqa: PLC0415 (slow)
    from gwmond.service.pool.questions import explained  # noqa: PLC0415

    try:
        if question.what == "job":
            name_of(question.name)
        explainer = asked(config, question)
        show(explained(config, explainer, question), form)
    except BadQuestion as error:
        raise ConfigError(str(error)) from None
    except NoAnswer as error:
        complain(str(error))
        return EXIT_FAILED
    return EXIT_SOURCES_DOWN if explainer.missing else EXIT_OK


def _question(arguments: argparse.Namespace) -> Question:
    whats: tuple[What, ...] = ("job", "ad", "pilot", "entry")
    named: dict[What, str | None] = {what: getattr(arguments, what) for what in whats}
    what, name = next(((what, name) for what, name in named.items() if name), ("all", ""))
    return Question(name, arguments.schedd or "", arguments.site, what)


def ad_of(file: str) -> str:
    """Return the ad of a file, or of the first job of a submit description; raises ConfigError.

    Without its environment, arguments and files: nothing rests on these.
    """
    try:
        text = Path(file).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--ad: {error}") from None
    if _QUEUE.search(text):
        text = _dry_run(file)
    if not text.lstrip().startswith("["):
        blocks = map(_OLD.findall, re.split(r"\n[ \t]*\n", text))
        text = "\n".join(next(filter(None, blocks), []))
    child.start(files=False, once=True)
    try:
        text, _ = child.run(waiting_job.readable, text, deadline_s=_READ_S)
    except child.QueryError as error:
        raise ConfigError(f"--ad: {error}") from None
    if not text:
        raise ConfigError(f"--ad: {file} is no ad of a job, and no submit description")
    if len(text) > MOST_AD:
        raise ConfigError(f"--ad: the ad has more than {MOST_AD} characters")
    return text


_QUEUE = re.compile(r"^\s*queue\b", re.IGNORECASE | re.MULTILINE)
_OLD = re.compile(r"^\w+\s*=.*$", re.MULTILINE)
"""The lines of an ad in old syntax."""
_DRY_RUN_S, _READ_S = 60, 10.0


def _dry_run(file: str) -> str:
    """Return what condor_submit would submit; raises ConfigError."""
    with tempfile.TemporaryDirectory() as directory:
        into = Path(directory, "ads")
        command = "condor_submit", "-dry-run", str(into), file
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_DRY_RUN_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ConfigError(f"--ad: {shlex.join(command[:2])}: {error}") from None
        if done.returncode != 0 or not into.exists():
            raise ConfigError(f"--ad: condor_submit: {plain(done.stderr.strip() or done.stdout)}")
        return into.read_text()


def asked(config: Config, question: Question) -> Explainer:
    """Poll the pool once; a job is matched while schedds group theirs."""
    from gwmond.service.poller import Poller, remembered  # noqa: PLC0415
    from gwmond.service.pool.explainer import Explainer  # noqa: PLC0415 (slow to load)
    from gwmond.service.pool.pool import Pool  # noqa: PLC0415
    from gwmond.sources.registry import SOURCES  # noqa: PLC0415
    from gwmond.sources.round import CLAIMS, Round  # noqa: PLC0415

    pool = Pool.open(config, once=True, kinds=frozenset(SOURCES) - {CLAIMS})
    memory = remembered(config).memory
    access, site = pool.access(pool.clock.tick()), question.only_at
    early: list[Explainer] = []

    with ThreadPoolExecutor(1, "job") as threads:

        def match(gathered: Round) -> None:
            poll, now = (None, gathered, pool.targets), pool.clock.tick().wall
            early.append(Explainer(config, poll, access, now, site=site))
            threads.submit(early[0].match, question.name, question.schedd)  # else asked once more

        beside = match if question.what == "job" and question.name else None
        snapshot = Poller(config, pool, None, memory, reasons=False).poll(beside=beside)
    poll = snapshot, pool.gatherer.last(), pool.targets
    explainer = Explainer(config, poll, access, snapshot.pool_time, site=site)
    for earlier in early:
        explainer.take(earlier)
    return explainer
