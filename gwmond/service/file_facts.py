"""From what reading a factory's directories gave to the book: facts, cursors, problems.

What was read of a directory and how far goes to the keeper together, so that both are stored in
one transaction: facts are taken in exactly once, whoever reads, the daemon or an import.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gwmond.config.settings import Config
from gwmond.model.cursor_kinds import FACTORY_FILES
from gwmond.model.facts import Cursor, Problem
from gwmond.model.pilot_evidence import PilotOutput
from gwmond.service.pilot_keeper import PilotKeeper
from gwmond.sources.gwms.directory_cursor import FileLimits
from gwmond.sources.gwms.zones import Sample
from gwmond.sources.gwms_tasks import Directory, DirectoryAnswer

LIMITS = FileLimits(facts=4000, size=64 << 20)
"""How much is read at once, so that memory and the time of a transaction stay bounded."""


def daemon_limits(config: Config) -> FileLimits:
    """Return how much the daemon reads at once: so much that a query ends before its deadline."""
    seconds = min(LIMITS.seconds, config.poll.deadline / 4)
    lookback_s = config.histories.lookback
    return LIMITS._replace(lookback_s=lookback_s, seconds=seconds, file_s=seconds)


class Taken(NamedTuple):
    """How many outputs of pilots were taken in, and what was wrong with files.

    ``samples``: by how much times without a zone differ from outputs; ``facts``: how many of all
    kinds.
    """

    outputs: int
    problems: tuple[Problem, ...]
    samples: tuple[Sample, ...] = ()
    facts: int = 0


def wanted(keeper: PilotKeeper, paths: Iterable[str], zone: str) -> list[Directory]:
    """Return directories to be read, each from where its reading stopped.

    ``zone``: the factory's time zone by its name; empty: this host's.
    """
    cursors = ((path, keeper.cursor(path, FACTORY_FILES)) for path in paths)
    return [
        Directory(path, cursor.state if cursor is not None else "", zone=zone)
        for path, cursor in cursors
    ]


def read_on(waiting: deque[str], answers: Sequence[DirectoryAnswer]) -> None:
    """Take what was read off a queue of directories; what is unfinished stays the first, in order.

    ``answers`` are of the first ones that wait.
    """
    for _ in answers:
        waiting.popleft()
    waiting.extendleft(answer.path for answer in reversed(answers) if answer.answer.behind)


def take(keeper: PilotKeeper, answers: Iterable[DirectoryAnswer]) -> Taken:
    """Let the keeper take in what was read, and how far; raises LedgerError."""
    outputs, facts, problems, samples = 0, 0, list[Problem](), list[Sample]()
    for path, answer in answers:
        keeper.report(answer.facts, Cursor(path, FACTORY_FILES, answer.state, answer.complete_us))
        problems += answer.problems
        samples += answer.samples
        facts += len(answer.facts)
        outputs += sum(isinstance(fact, PilotOutput) for fact in answer.facts)
    return Taken(outputs, tuple(problems), tuple(samples), facts)
