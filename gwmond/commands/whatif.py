"""Say what a change would move: which entries need pilots then, whose jobs gain, whose lose.

The same idle jobs, pilots and capacities are judged with one change, as gwmond sites judges them.
The daemon that runs on this host is asked, if it watches the same pool; else the pool is polled
once.
"""

from __future__ import annotations

import argparse

from gwmond.commands.common import EXIT_FAILED, EXIT_OK, EXIT_SOURCES_DOWN, complain, show
from gwmond.commands.explain import add_ask, by_daemon_first
from gwmond.config.settings import Config, ConfigError
from gwmond.model.demand.question import Question
from gwmond.model.demand.what_if import CHANGES, what_if
from gwmond.reports.render import writing
from gwmond.service.host import log

_EPILOG = """\
examples:
  gwmond whatif memory cms.production 2000       each of its idle jobs requests 2000 MiB
  gwmond whatif cores cms.production 4
  gwmond whatif pilot CMS_T2_US_Nebraska_Red_gw1 16,32000    new pilots: 16 cores and 32000 MiB
  gwmond whatif limit CMS_T2_US_Nebraska_Red_gw1 200         200 pilots of ours may run there
  gwmond whatif max-idle CMS_T2_US_Nebraska_Red_gw1 50       50 may wait at once
  gwmond whatif start frontend.main 'TARGET.ProjectName =?= "dune"'
  gwmond whatif down Nebraska

"lacking" is what idle jobs could use of an entry's spare capacity: pilots needed there. "soon" are
jobs that free slots and pilots on their way take; "on more pilots" those that could run if these
pilots started; "nowhere" all others. Of a limit: a capacity that was seen, or pledged, stays.

Everything is estimated. "not known": something that the answer rests on could not be read, or
matched in time, and the exit code is 3. docs/whatif.md says how often it was right.
"""


def options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    kinds = "; ".join(f"{kind}: {text}" for kind, text in CHANGES.items())
    parser.add_argument("change", choices=tuple(CHANGES), metavar="CHANGE", help=kinds)
    parser.add_argument("of", metavar="OF", help="of which group, entry, SITE/ENTRY or site")
    parser.add_argument("value", metavar="TO", nargs="?", default="", help="to what")
    add_ask(parser)
    writing.add_format(parser, "table", "json")


def execute(config: Config, arguments: argparse.Namespace) -> int:
    """Ask, and show; 1 where nothing is called so, 3 where something could not be read."""
    log.quiet()
    try:
        what_if(arguments.change, arguments.of, arguments.value)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    question = Question(arguments.of, what="whatif", change=arguments.change, value=arguments.value)
    answered = by_daemon_first(config, question, arguments)
    return _by_pool(config, question, arguments.format) if answered is None else answered


def _by_pool(config: Config, question: Question, form: str) -> int:
    """Poll the pool, and show what that tells."""
    from gwmond.service.poller import Poller, remembered  # noqa: PLC0415 (slow to load)
    from gwmond.service.pool.explainer import NoAnswer  # noqa: PLC0415
    from gwmond.service.pool.pool import Pool  # noqa: PLC0415
    from gwmond.service.pool.whatif import JudgedPoll, answered  # noqa: PLC0415
    from gwmond.sources.registry import SOURCES  # noqa: PLC0415
    from gwmond.sources.round import CLAIMS  # noqa: PLC0415

    pool = Pool.open(config, once=True, kinds=frozenset(SOURCES) - {CLAIMS})
    poller = Poller(config, pool, None, remembered(config).memory, reasons=False)
    snapshot = poller.poll()
    down = tuple(f"{s.source} {s.kind}" for s in snapshot.sources if not s.up)
    assert poller.facts is not None
    polled = JudgedPoll(poller.facts, snapshot.pool_time, down, pool.gatherer.aside)
    try:
        show(answered(config, polled, question, config.poll.deadline), form)
    except NoAnswer as error:
        complain(str(error))
        return EXIT_SOURCES_DOWN if down else EXIT_FAILED
    return EXIT_SOURCES_DOWN if down else EXIT_OK
