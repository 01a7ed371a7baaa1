"""A factory's directory of simulated pilots, and what reading on in it returns."""

from __future__ import annotations

import time
from pathlib import Path

from gwmond.model.pilots.file_facts import PilotOutput
from gwmond.sources.gwms import factory_dir
from gwmond.sources.gwms.directory_cursor import FileAnswer, FileLimits
from tests.build.gwms import generate, simulated

PILOTS = list(simulated.pilots(3, 200))
GOOD = [pilot._replace(entry=0) for pilot in PILOTS if pilot.kind == "good"]
LINES = [line for pilot in PILOTS if (line := generate.completed(pilot))]
"""Of completed_jobs."""
Number = tuple[int | None, int | None]


def put(directory: Path, *pilots: simulated.Pilot) -> list[Path]:
    """Write the outputs of pilots, and return where they are."""
    files = [file for pilot in pilots for file in generate.files(pilot).items()]
    for name, content in files:
        (directory / name).write_bytes(content)
    return [directory / name for name, _ in files]


def fetch(directory: Path, state: str = "", later: float = 60, **limits: float) -> FileAnswer:
    """Read on in a directory, so many seconds later than now."""
    most = FileLimits()._replace(**limits)  # type: ignore[arg-type]
    return factory_dir.fetch(str(directory), state, most, time.time() + later)


def read_on(directory: Path, **limits: float) -> list[FileAnswer]:
    """Read a directory until nothing is left."""
    answers = list[FileAnswer]()
    while not answers or answers[-1].behind:
        assert len(answers) < 100
        state = answers[-1].state if answers else ""
        answers.append(fetch(directory, state, 60, **limits))
    return answers


def numbers(answer: FileAnswer) -> list[Number]:
    """The pilots of which outputs were read, in their order."""
    outputs = (fact.name for fact in answer.facts if isinstance(fact, PilotOutput))
    return [(name.cluster, name.proc) for name in outputs]


def of(*pilots: simulated.Pilot) -> list[Number]:
    """The numbers of pilots."""
    return [(pilot.cluster, pilot.proc) for pilot in pilots]


def words(answer: FileAnswer) -> list[str]:
    """The problems that were told."""
    return sorted(problem.problem for problem in answer.problems)


def by_file(answer: FileAnswer) -> dict[str, str]:
    """The problem of each file."""
    return {problem.source.rpartition("/")[2]: problem.problem for problem in answer.problems}
