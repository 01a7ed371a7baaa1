"""What reading in a directory of a factory returns, and how far it was read."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeAlias, TypeVar

import msgspec

from gwmond.model.facts import Problem
from gwmond.model.problem_names import ProblemName
from gwmond.sources.tail import FollowedLog

if TYPE_CHECKING:
    from gwmond.model.pilots.file_facts import FileFact
    from gwmond.sources.gwms.zones import ZoneSample


F_co = TypeVar("F_co", covariant=True)

Position: TypeAlias = tuple[int, int, int]
"""When a pilot's files last changed (ctime, nanoseconds since the epoch), cluster, proc."""

Number: TypeAlias = tuple[int, int]
"""A pilot's cluster and proc."""


class FileLimits(NamedTuple):
    """How much one call takes: facts (runs count too), bytes, and seconds of CPU, about.

    ``file_s``: more CPU time than that is given to no file; what was not read of it is left out.
    ``file_mib``: more memory than that is given to no file, besides the file itself.
    ``lookback_s``: at the first call, what was last written before is left out.
    """

    facts: int = 5000
    size: int = 256 << 20
    lookback_s: float = float("inf")
    seconds: float = 10
    file_s: float = 10
    file_mib: int = 512


class ParsedLog(NamedTuple, Generic[F_co]):
    """Facts of whole records of a log, and how many were wrong in which way.

    ``local``: the facts with times of no zone.
    """

    facts: tuple[F_co, ...]
    wrong: Counter[ProblemName]
    local: tuple[F_co, ...] = ()


class FileAnswer(NamedTuple):
    """What one call returned.

    - ``state``: to be stored with these facts, and given to the next call.
    - ``complete_us``: all that was written before is known; None while ``behind``, and where the
      status of a file could not be read.
    - ``left``: how many pilots of the directory are still to be read.
    - ``size``: how many bytes were read; ``weight``: how many facts, as the limit counts them.
    - ``samples``: by how much times without a zone differ from outputs.
    - ``path``: the directory, where several were read.
    """

    facts: tuple[FileFact, ...]
    state: str
    complete_us: int | None
    behind: bool
    left: int
    problems: tuple[Problem, ...]
    size: int
    weight: int = 0
    samples: tuple[ZoneSample, ...] = ()
    path: str = ""


class DirectoryState(NamedTuple):
    """A cursor: the last pilot taken, the logs, and pilots before it that could not be read yet."""

    taken: Position = (0, 0, 0)
    logs: tuple[FollowedLog, ...] = ()
    unread: tuple[Number, ...] = ()
    begun: bool = False

    def dump(self) -> str:
        """Return the state as text."""
        return json.dumps(self[:3], separators=(",", ":"))


def read(text: str, source: str, problems: list[Problem]) -> DirectoryState:
    """Return the state that a text says; a text not understood (``bad_state``) says none."""
    try:
        return load(text)
    except ValueError as error:
        problems.append(Problem(source, ProblemName.BAD_STATE, str(error)[:200]))
        return DirectoryState()


def load(text: str) -> DirectoryState:
    """Return the state that a text says; raises ValueError for one that is none."""
    if not text:
        return DirectoryState()
    return msgspec.convert(json.loads(text), DirectoryState)._replace(begun=True)
