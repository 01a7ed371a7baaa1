"""Where a factory keeps what pilots returned, and which files in there are read.

Known layouts: ``user_U/glidein_I/entry_E`` below /var/log/gwms-factory/client (outputs and event
logs), and ``entry_E`` below /var/log/gwms-factory/server (completed_jobs).  A copied tree may be
cut at any of these, so that any directory counts in which there are files with the right names.

No link is followed: what is within the root is come upon by its own name.  A link that leads out of
the root or nowhere is a problem, as is all that is left out though it might be a pilot's.
"""

from __future__ import annotations

import errno
import os
import re
from typing import TYPE_CHECKING, NamedTuple

from gwmond.model.facts import Problem
from gwmond.model.pilots.file_facts import EVENT_LOG, PilotName
from gwmond.model.problem_names import ProblemName
from gwmond.sources.gwms import texts
from gwmond.sources.gwms.pilot_output import job_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAX_DEPTH = 8
MAX_DIRECTORIES = 100_000
COMPLETED = re.compile(r"completed_jobs_[0-9]{8}\.log")
_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})


class Tree(NamedTuple):
    """The directories that have files to read, sorted.

    ``pilots``: of how many pilots each has outputs, by their names when it was listed.
    """

    directories: tuple[str, ...]
    pilots: tuple[int, ...]
    problems: tuple[Problem, ...]


class FileSeen(NamedTuple):
    """A regular file: its name, the path to open, and its status."""

    name: str
    path: str
    status: os.stat_result


def place_of(directory: str) -> PilotName:
    """Return what a directory's path says about the pilots in it.

    >>> place = place_of("/x/user_fe/glidein_gfactory_instance/entry_CMS_T2")
    >>> place.user, place.instance, place.entry
    ('fe', 'gfactory_instance', 'CMS_T2')
    """
    labels = {"user": "", "glidein": "", "entry": ""}
    for part in directory.split(os.sep):
        word, _, rest = part.partition("_")
        if word in labels and rest:
            labels[word] = texts.label(rest)
    return PilotName(user=labels["user"], instance=labels["glidein"], entry=labels["entry"])


def tree(root: str) -> Tree:
    """Return where there is something to read below a root.

    What is wrong within a directory that has something to read is reported by who reads it.
    """
    real = os.path.realpath(root)
    directories: dict[str, int] = {}
    problems: list[Problem] = []
    waiting = [(real, 0)]
    while waiting:
        directory, depth = waiting.pop()
        has_files = False
        jobs: set[str] = set()
        within: list[Problem] = []
        try:
            with os.scandir(directory) as entries:
                for entry in entries:
                    if entry.is_symlink():
                        within += _link(real, entry)
                    elif entry.is_dir(follow_symlinks=False):
                        within += _no_file(entry) if is_wanted(entry.name) else []
                        if depth < MAX_DEPTH:
                            waiting.append((entry.path, depth + 1))
                        else:
                            why = f"more than {MAX_DEPTH} levels below {shown(real)}"
                            problems.append(Problem(shown(entry.path), ProblemName.TOO_DEEP, why))
                    elif is_wanted(entry.name):
                        has_files = True
                        if entry.name.startswith("job."):
                            jobs.add(entry.name.rpartition(".")[0])
        except OSError as error:
            problems.append(
                Problem(shown(directory), ProblemName.UNREADABLE, error.strerror or str(error))
            )
        if has_files and len(directories) < MAX_DIRECTORIES:
            directories[directory] = len(jobs)
            continue
        problems += within
        if has_files:
            why = f"not among the first {MAX_DIRECTORIES} below {shown(real)}"
            problems.append(Problem(shown(directory), ProblemName.TOO_MANY_DIRECTORIES, why))
    paths = tuple(sorted(directories))
    return Tree(paths, tuple(directories[path] for path in paths), tuple(problems))


def is_wanted(name: str) -> bool:
    """Return whether a file of this name is read."""
    return bool(job_file(name) or COMPLETED.fullmatch(name) or EVENT_LOG.fullmatch(name))


def files_in(
    directory: str,
    problems: list[Problem],
    wants: Callable[[str], bool] = is_wanted,
    unseen: list[str] | None = None,
) -> Iterator[FileSeen]:
    """Yield the regular files of a directory; anything else with a wanted name is a problem.

    The names of files of which the status cannot be read for now are added to ``unseen``.  Raises
    OSError where the directory cannot be listed to its end.
    """
    with os.scandir(directory) as entries:
        for entry in entries:
            try:
                if entry.is_symlink():
                    problems += _link(os.path.realpath(directory), entry)
                elif entry.is_file():
                    yield FileSeen(entry.name, entry.path, entry.stat())
                elif (is_wanted if entry.is_dir() else wants)(entry.name):
                    problems += _no_file(entry)
            except OSError as error:
                problems.append(unreadable(entry.path, error))
                if unseen is not None and not isinstance(error, FileNotFoundError):
                    unseen.append(entry.name)


def unreadable(path: str, error: OSError) -> Problem:
    """Return a problem for a file that cannot be read: it is gone, or cannot be for now."""
    word = ProblemName.VANISHED if isinstance(error, FileNotFoundError) else ProblemName.UNREADABLE
    return Problem(shown(path), word, (error.strerror or str(error))[:300])


def _link(root: str, entry: os.DirEntry[str]) -> list[Problem]:
    """Return a problem for a link that leads out of a root, or nowhere."""
    path = os.path.realpath(entry.path)
    if os.path.commonpath((root, path)) != root:
        return [Problem(shown(entry.path), ProblemName.LINK_OUTSIDE, shown(path))]
    if is_wanted(entry.name) and _leads_nowhere(path):
        return [Problem(shown(entry.path), ProblemName.DANGLING_LINK, shown(path))]
    return []


def _leads_nowhere(path: str) -> bool:
    """Return whether there is nothing at a path; False where that is not known for now."""
    try:
        os.stat(path)
    except OSError as error:
        return error.errno in _GONE
    return False


def _no_file(entry: os.DirEntry[str]) -> list[Problem]:
    kind = "a directory" if entry.is_dir() else "neither a file nor a directory"
    return [Problem(shown(entry.path), ProblemName.NOT_A_FILE, f"is {kind}")]


def shown(path: str) -> str:
    r"""Return a path as one can print it, whatever bytes it has.

    >>> shown("a\nb")
    'a\\nb'
    """
    if path.isprintable():
        return path
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in path)
