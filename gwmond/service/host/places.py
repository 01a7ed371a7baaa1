"""Whether the paths of [factory] can be used, as far as a few of their files show.

Who may list a directory may perhaps not read what is in it: so a file of each kind is opened in
some of the directories.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

from gwmond.config.settings import Config
from gwmond.model.problem_names import ProblemName
from gwmond.service.host import log_socket
from gwmond.service.host.log_socket import PlaceError, PlaceTaken
from gwmond.sources import tail
from gwmond.sources.gwms import following, layout
from gwmond.sources.gwms.pilot_output import job_file

MOST_DIRECTORIES, MOST_FILES = 1000, 5000
"""So many directories are looked into, and in each at so many files."""


class CheckedPath(NamedTuple):
    """A configured path."""

    key: str
    path: str
    problem: ProblemName | None = None
    detail: str = ""


def places(config: Config) -> list[CheckedPath]:
    """Return all paths of [factory]; none for a recording, which has no files."""
    if config.replay.file:
        return []
    factory = config.factory
    deep = layout.MAX_DEPTH
    checked = [_directory("directories", path, _of_factory, deep) for path in factory.directories]
    checked += [_directory("central_logs", path, _of_daemons, 0) for path in factory.central_logs]
    return checked + ([_socket(factory.log_socket)] if factory.log_socket else [])


def _directory(key: str, path: str, kind: Callable[[str], str], depth: int) -> CheckedPath:
    if not os.path.isdir(path):
        return CheckedPath(
            key, path, ProblemName.NO_DIRECTORY, "is no directory, or cannot be seen"
        )
    if not os.access(path, os.R_OK | os.X_OK):
        return CheckedPath(key, path, ProblemName.UNREADABLE, "cannot be read")
    try:
        _try(path, kind, depth)
    except OSError as error:
        return CheckedPath(key, path, ProblemName.UNREADABLE, str(error))
    return CheckedPath(key, path)


def _of_factory(name: str) -> str:
    named = job_file(name)
    return named.kind if named else "log" if layout.is_wanted(name) else ""


def _of_daemons(name: str) -> str:
    return "log" if following.kind_of(name, following.CENTRAL) else ""


def _try(root: str, kind: Callable[[str], str], depth: int) -> None:
    """Open a file of each kind in each directory below a root; raises OSError if one cannot be."""
    waiting = deque([(root, 0)])
    for _ in range(MOST_DIRECTORIES):
        if not waiting:
            return
        directory, below = waiting.popleft()
        opened = {""}
        with suppress(FileNotFoundError), os.scandir(directory) as entries:
            for entry in islice(entries, MOST_FILES):
                if entry.is_dir(follow_symlinks=False):
                    waiting += [(entry.path, below + 1)] if below < depth else []
                    continue
                name = kind(entry.name)
                if name not in opened and entry.is_file(follow_symlinks=False):
                    with suppress(FileNotFoundError):
                        tail.open_regular(entry.path).close()
                    opened.add(name)


def _socket(path: str) -> CheckedPath:
    try:
        log_socket.check(path)
    except PlaceTaken as error:
        return CheckedPath("log_socket", path, ProblemName.IN_USE, str(error))
    except PlaceError as error:
        return CheckedPath("log_socket", path, ProblemName.PLACE, str(error))
    return CheckedPath("log_socket", path)
