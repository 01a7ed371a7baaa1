"""Tasks of child processes that read GlideinWMS's files; each returns a value and a count."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from gwmond.sources.gwms import factory_dir, layout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gwmond.sources.gwms.directory_cursor import FileAnswer, FileLimits

T = TypeVar("T")
Counted = tuple[T, int]


class Directory(NamedTuple):
    """A directory to be read, and how far it was."""

    path: str
    state: str


class DirectoryAnswer(NamedTuple):
    """What reading on in a directory gave."""

    path: str
    answer: FileAnswer


def find(roots: Sequence[str], *, sizes: bool = False) -> Counted[tuple[layout.Tree, ...]]:
    """Find the directories below some roots that have files of pilots."""
    trees = tuple(layout.tree(root, sizes=sizes) for root in roots)
    return trees, sum(len(of.directories) for of in trees)


def read(
    wanted: Sequence[Directory], limits: FileLimits, now: float
) -> Counted[tuple[DirectoryAnswer, ...]]:
    """Read on in directories, one after the other, until the limits are reached."""
    answers: list[DirectoryAnswer] = []
    facts = size = 0
    for directory in wanted:
        left = limits._replace(facts=limits.facts - facts, size=limits.size - size)
        if left.facts <= 0 or left.size <= 0:
            break
        answer = factory_dir.fetch(directory.path, directory.state, left, now)
        answers.append(DirectoryAnswer(directory.path, answer))
        facts += len(answer.facts)
        size += answer.size
    return tuple(answers), facts
