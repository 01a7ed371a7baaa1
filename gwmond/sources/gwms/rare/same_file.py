"""Files of a directory that are there under several names: each is read under one of them.

A link is not another pilot.  Of a file's names the one counts that is no symbolic link, and whose
number the output itself has; of a stderr, which has none, the one that is kept of the stdout.
While that cannot be read, nothing is read of the pilots that it may be of.
"""

from __future__ import annotations

import os
from collections import defaultdict
from typing import TYPE_CHECKING

from gwmond.model.facts import Problem
from gwmond.model.pilot_evidence import PilotName
from gwmond.model.problem_names import ProblemName
from gwmond.sources import tail
from gwmond.sources.gwms import layout, pilot_out
from gwmond.sources.gwms.pilot_output import job_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gwmond.sources.gwms.layout import Found

_HEADER_BYTES = 65536


def once(
    directory: str,
    files: Iterable[Found],
    problems: list[Problem],
    wanted: Callable[[str], bool],
    unseen: list[str],
) -> list[Found]:
    """Return files, each once; another name that a factory gives is a problem (``same_file``).

    All names of a file of which one has to be chosen and cannot be for now go to ``unseen``.
    """
    by_inode: defaultdict[tuple[int, int], list[Found]] = defaultdict(list)
    for found in files:
        by_inode[found.status.st_dev, found.status.st_ino].append(found)
    kept: list[Found] = []
    numbers = set[tuple[int, int]]()
    for same in sorted(by_inode.values(), key=_has_no_stdout):
        read = [file for file in same if wanted(file.name)]
        if not read:
            kept += same
            continue
        several = len(read) > 1
        own = [file for file in read if several and not _is_link(directory, file)] or read
        try:
            first = own[0] if len(own) == 1 else min(own, key=_preferred(own, numbers))
        except OSError as error:
            problems.append(layout.unreadable(own[0].path, error))
            unseen += [file.name for file in read]
            continue
        if not _is_elsewhere(directory, first):
            kept.append(first)
            read.remove(first)
            if named := job_file(first.name):
                numbers.add((named.cluster, named.proc))
        for file in read:
            if layout.is_wanted(file.name):
                path = layout.shown(os.path.join(directory, file.name))
                problems.append(
                    Problem(path, ProblemName.SAME_FILE, f"is {layout.shown(first.path)}")
                )
    return kept


def pilot_named(header: bytes | None) -> PilotName:
    """Return what the begin of an output says that its pilot is."""
    return pilot_out.parse((header or b"")[:_HEADER_BYTES]).name


def _has_no_stdout(files: list[Found]) -> bool:
    return not any((named := job_file(file.name)) and named.kind == "out" for file in files)


def _preferred(
    files: list[Found], kept: set[tuple[int, int]]
) -> Callable[[Found], tuple[object, ...]]:
    """Return the order of a file's names; ``kept``: the pilots of which an output is kept.

    Raises OSError where the file cannot be read.
    """
    pilot_name = (
        pilot_named(_header(files[0].path))
        if any(job_file(file.name) for file in files)
        else PilotName()
    )
    known = (
        {(pilot_name.cluster, pilot_name.proc)}
        if pilot_name.cluster is not None and pilot_name.proc is not None
        else kept
    )

    def order(found: Found) -> tuple[object, ...]:
        named = job_file(found.name)
        other = named is None or (named.cluster, named.proc) not in known
        err = named is not None and named.kind != "out"
        return other, err, found.name

    return order


def _is_link(directory: str, found: Found) -> bool:
    return found.path != os.path.join(directory, found.name)


def _is_elsewhere(directory: str, found: Found) -> bool:
    """Return whether it is a link to a file that is come upon in a directory of its own."""
    return _is_link(directory, found) and layout.is_wanted(os.path.basename(found.path))


def _header(path: str) -> bytes:
    with tail.open_regular(path) as stream:
        return stream.read(_HEADER_BYTES)
