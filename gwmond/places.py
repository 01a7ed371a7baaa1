"""Whether the paths of [factory] can be used, as far as that can be said without using them."""

from __future__ import annotations

import os
from typing import NamedTuple

from gwmond import log_socket
from gwmond.config import Config
from gwmond.log_socket import PlaceError, PlaceTaken

REMEDIES = {
    "no_directory": "Make it and let gwmond's user read it, or correct the path in [factory].",
    "unreadable": "Let gwmond's user read it: setfacl -R -m u:gwmond:rX DIRECTORY.",
    "place": "The message says what; until then gwmond run does not start.",
    "in_use": "Stop the other process, or configure another [factory] log_socket.",
}
"""What to do about each problem."""


class Place(NamedTuple):
    """A configured path; ``problem`` is empty where there is none, else a word of ``REMEDIES``."""

    key: str
    path: str
    problem: str = ""
    detail: str = ""


def places(config: Config) -> list[Place]:
    """Return all paths of [factory]; none for a recording, which has no files."""
    if config.replay.file:
        return []
    of = config.factory
    found = [_directory("directories", path) for path in of.directories]
    found += [_directory("central_logs", path) for path in of.central_logs]
    return found + ([_socket(of.log_socket)] if of.log_socket else [])


def _directory(key: str, path: str) -> Place:
    if not os.path.isdir(path):
        return Place(key, path, "no_directory", "is no directory, or cannot be seen")
    if not os.access(path, os.R_OK | os.X_OK):
        return Place(key, path, "unreadable", "cannot be read")
    return Place(key, path)


def _socket(path: str) -> Place:
    try:
        log_socket.check(path)
    except PlaceTaken as error:
        return Place("log_socket", path, "in_use", str(error))
    except PlaceError as error:
        return Place("log_socket", path, "place", str(error))
    return Place("log_socket", path)
