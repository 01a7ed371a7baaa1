"""How problems are counted, how long they last, and that each has its meaning in the docs."""

from __future__ import annotations

import json
import pickle
import re
import subprocess
import sys
from pathlib import Path

import gwmond
from gwmond.ledger.database import errors
from gwmond.model.facts import Problem
from gwmond.model.problem_names import ProblemName
from gwmond.service.host import problem_help
from gwmond.service.host.problems import Counting, Lasting, Scans, occurrences

DOCS = Path(gwmond.__file__).parent.parent / "docs"

LINK = Problem("/x/a.out", ProblemName.LINK_OUTSIDE, "/etc/passwd")
LINES = Problem("/x/a.log", ProblemName.GARBAGE, "3 lines", 3)


def test_each_problem_has_a_meaning_and_a_remedy() -> None:
    """A name is a word for metrics; the meaning goes to the log, and ends an import."""
    assert all(re.fullmatch("[a-z0-9_]+", problem.value) for problem in ProblemName)
    assert all(problem.name == problem.value.upper() for problem in ProblemName)
    assert all(problem.meaning and problem.remedy for problem in ProblemName)
    assert list(ProblemName) == sorted(ProblemName)
    assert ProblemName.BAD_TIME.shown == "impossible times [bad_time]"


def test_a_problem_comes_through_a_pipe_as_it_was() -> None:
    """As from the process of a query; in JSON a problem is its word."""
    assert pickle.loads(pickle.dumps(ProblemName.DENIED)) is ProblemName.DENIED
    assert json.dumps([ProblemName.DENIED, f"{ProblemName.DENIED}"]) == '["denied", "denied"]'


def test_each_ledger_error_has_a_problem_of_its_own() -> None:
    """Another one would be counted under the same word."""
    kinds = errors.LedgerError.__subclasses__()
    assert len({kind.problem for kind in kinds}) == len(kinds)


def test_page_is_made_from_the_code() -> None:
    """docs/problems.md is what the code says, and the README leads to it."""
    remedy = "Run: python -m gwmond.service.host.problem_help > docs/problems.md"
    assert (DOCS / "problems.md").read_text() == problem_help.page(), remedy
    done = subprocess.run(
        [sys.executable, "-m", "gwmond.service.host.problem_help"],
        capture_output=True,
        check=True,
        text=True,
    )
    assert done.stdout == problem_help.page()
    rows = [line for line in done.stdout.splitlines() if line.startswith("| `")]
    assert [row.split("`")[1] for row in rows] == list(ProblemName)
    assert {row.count("|") for row in rows} == {4}
    assert "(docs/problems.md)" in (DOCS.parent / "README.md").read_text()


def test_what_is_named_counts_once_and_records_each() -> None:
    """A link that is come upon twice is one; lines are as many as there are."""
    counting = Counting()
    told = [LINK, LINES, LINK, LINK._replace(source="/x/b.out"), LINES]
    assert [counting.new(problem) for problem in told] == [1, 3, 0, 1, 3]


def test_what_a_look_finds_lasts_until_the_next() -> None:
    """It is counted once a look, and is over when a look does not find it any more."""
    looks = Scans("factory")
    looks.begin()
    found = looks.problems([LINK, LINK, LINES])
    looks.end()
    assert [(problem.source, problem.problem, occurrences(problem)) for problem in found] == [
        ("factory", "link_outside", 1),
        ("factory", "garbage", 3),
    ]
    assert found[0].detail == "/x/a.out: /etc/passwd"
    between = looks.problems([])
    assert {problem.problem: occurrences(problem) for problem in between} == {
        "link_outside": 0,
        "garbage": 0,
    }
    looks.begin()
    assert {problem.problem for problem in looks.problems([])} == {"link_outside", "garbage"}
    again = looks.problems([LINK])
    assert {problem.problem: occurrences(problem) for problem in again} == {
        "link_outside": 1,
        "garbage": 0,
    }
    looks.end()
    assert {problem.problem for problem in looks.problems([])} == {"link_outside"}


def test_a_look_that_fails_ends_nothing() -> None:
    """What was found before lasts beside the failure, which others count, until a look succeeds."""
    looks = Scans("factory")
    looks.begin()
    looks.problems([LINES])
    looks.end()
    for _ in range(2):
        looks.begin()
        looks.end(Problem("factory", ProblemName.NO_ROOT, "directories: /x"))
        found = {problem.problem: occurrences(problem) for problem in looks.problems([])}
        assert found == {"garbage": 0, "no_root": 0}
    looks.begin()
    looks.end()
    assert looks.problems([]) == []


def test_what_comes_now_and_then_lasts_for_a_while() -> None:
    """It is told with each poll until none has come since a time that is given."""
    lasting = Lasting()

    def told(problems: list[Problem], at: float) -> dict[str, int]:
        return {
            problem.problem: occurrences(problem)
            for problem in lasting.problems(problems, at, at - 10)
        }

    assert told([LINES], 100) == {"garbage": 3}
    assert told([], 105) == {"garbage": 0}
    assert told([LINES._replace(records=2), LINK], 109) == {"garbage": 2, "link_outside": 1}
    assert told([LINK], 118) == {"link_outside": 1, "garbage": 0}
    assert told([], 119) == {"link_outside": 0}
    assert told([LINES], 140) == {"garbage": 3}
    assert lasting.problems([], 140, 140) == []
