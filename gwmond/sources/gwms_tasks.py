"""Tasks of child processes that read GlideinWMS's files; each returns a value and a count."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from gwmond.model.problem_names import ProblemName
from gwmond.sources.child import QueryError
from gwmond.sources.gwms import central_log, directory_cursor, factory_dir, following, layout, zones

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gwmond.model.pilots.file_facts import CentralEvent
    from gwmond.sources.gwms.directory_cursor import FileAnswer, FileLimits, ParsedLog

T = TypeVar("T")
Counted = tuple[T, int]


class Directory(NamedTuple):
    """A directory to be read, and how far it was; ``central``: of central logs.

    ``zone``: the factory's time zone by its name; empty: this host's.
    """

    path: str
    state: str
    central: bool = False
    zone: str = ""


def find(roots: Sequence[str], there: bool = False) -> Counted[tuple[layout.Tree, ...]]:
    """Find the directories below some roots that have files of pilots.

    If one has to be ``there``: raises QueryError (``no_root``) where none can be listed.
    """
    if there:
        _list_one(roots)
    trees = tuple(layout.tree(root) for root in roots)
    return trees, sum(len(tree.directories) for tree in trees)


def read(
    directories: Sequence[Directory], limits: FileLimits, now: float, roots: Sequence[str] = ()
) -> Counted[tuple[FileAnswer, ...]]:
    """Read on in directories, one after the other, until the limits are reached.

    Only the last one that was read may be unfinished.  Raises QueryError (``no_root``) where there
    are ``roots`` of which none can be listed.
    """
    _list_one(roots)
    answers: list[FileAnswer] = []
    facts = weight = size = 0
    began = time.process_time()
    for directory in directories:
        left = limits._replace(
            facts=limits.facts - weight,
            size=limits.size - size,
            seconds=limits.seconds - (time.process_time() - began),
        )
        if left.facts <= 0 or left.size <= 0 or left.seconds <= 0:
            break
        kinds = following.CENTRAL if directory.central else following.FACTORY
        zone = zones.zone_of(directory.zone)
        answer = factory_dir.fetch(directory.path, directory.state, left, now, kinds, zone)
        answers.append(answer._replace(path=directory.path))
        facts += len(answer.facts)
        weight += answer.weight
        size += answer.size
        if answer.behind:
            break
    return tuple(answers), facts


def _list_one(roots: Sequence[str]) -> None:
    errors = []
    for root in roots:
        try:
            os.scandir(root).close()
        except OSError as error:
            errors.append(f"{layout.shown(root)}: {error.strerror or error}")
        else:
            return
    if errors:
        raise QueryError(ProblemName.NO_ROOT, "; ".join(errors)[:1000])


def read_log(log: Directory, limits: FileLimits, now: float) -> Counted[FileAnswer]:
    """Read on in one central log; its ``path`` is the file's."""
    answer = following.fetch_log(log.path, log.state, limits, now)
    return answer, len(answer.facts)


def log_offset(state: str) -> int:
    """Return how far a central log is read by such a state, in bytes."""
    logs = directory_cursor.load(state).logs
    return logs[0].offset if logs else 0


def log_from(state: str, offset: int) -> str:
    """Return the state of a central log that is to be read from an earlier byte on."""
    before = directory_cursor.load(state)
    logs = tuple(log._replace(offset=offset, passing=False) for log in before.logs)
    return before._replace(logs=logs).dump()


def central_lines(
    path: str, lines: Sequence[bytes], failure: str = ""
) -> Counted[ParsedLog[CentralEvent]]:
    """Read lines of a central log that arrived on a socket; their number is counted.

    With nothing to read and a ``failure`` (why nothing arrives) it raises QueryError.
    """
    if failure and not lines:
        raise QueryError(ProblemName.UNREACHABLE, failure)
    return central_log.parse(layout.shown(path), b"\n".join(lines)), len(lines)
