"""How problems are counted, how long they last, and that each has its meaning in the docs."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import gwmond
from gwmond.ledger import errors
from gwmond.model.facts import Problem
from gwmond.service import problem_help
from gwmond.service.problem_words import FILES, SOURCES, WORDS, explained, told
from gwmond.service.problems import Counting, Lasting, Scans, occurrences

PACKAGE = Path(gwmond.__file__).parent
DOCS = PACKAGE.parent / "docs"
_AT = {"Problem": 1, "QueryError": 0, "_problem": 1, "_once": 1, "_leave": 1, "_failed": 2}
_AT |= {"failed": 0, "once": 1}
_COUNTERS = {"wrong", "left_out", "unused"}
_NO_PROBLEMS = {"not_kept"}
"""A schedd that keeps no epoch history is no problem: it is said once, in words."""

LINK = Problem("/x/a.out", "link_outside", "/etc/passwd")
LINES = Problem("/x/a.log", "garbage", "3 lines", 3)


def words_of(path: Path) -> Iterator[str]:
    """The words of problems that a file of the package has as they are."""
    for node in ast.walk(ast.parse(path.read_text())):
        for given in _words(node):
            parts = [given]
            for one in parts:
                parts += [one.body, one.orelse] if isinstance(one, ast.IfExp) else []
                if isinstance(one, ast.Constant) and isinstance(one.value, str):
                    yield one.value


def _words(node: ast.AST) -> Iterator[ast.expr]:
    """The expressions in a node that say which problem something has."""
    if isinstance(node, ast.Call):
        name, of = _name(node.func)
        at = _AT.get(name)
        if at is not None and at < len(node.args):
            yield node.args[at]
        elif name == "append" and of == "wrong":
            yield from node.args
    elif isinstance(node, ast.Subscript) and _name(node.value)[0] in _COUNTERS:
        yield node.slice
    elif isinstance(node, ast.Tuple) and len(node.elts) == 2:
        where, word = node.elts  # of a pilot's output
        if isinstance(where, ast.Constant) and where.value in {"out", "err", "xml"}:
            yield word
    elif isinstance(node, ast.FunctionDef) and _is_word_or_else(node.returns):
        returns = [of for of in ast.walk(node) if isinstance(of, ast.Return)]
        yield from (of.value for of in returns if of.value is not None)


def _is_word_or_else(returns: ast.expr | None) -> bool:
    """Whether a function returns something, or a word that says what is wrong."""
    return returns is not None and "str" in ast.unparse(returns).split(" | ")[1:]


def _name(expr: ast.expr) -> tuple[str, str]:
    """The last name of ``a.b`` or ``b``, and the one before."""
    if isinstance(expr, ast.Attribute):
        return expr.attr, _name(expr.value)[0]
    return (expr.id if isinstance(expr, ast.Name) else ""), ""


def test_every_word_has_its_meaning() -> None:
    """Whatever a problem is called, it is known what that means and what to do."""
    used = {word for path in sorted(PACKAGE.rglob("*.py")) for word in words_of(path)}
    used -= _NO_PROBLEMS
    assert {"unreadable", "denied", "other_pilot", "no_entry", "ambiguous", "no_time"} <= used
    assert sorted(word for word in used if word not in WORDS) == []
    kinds = set(errors.LedgerError.__subclasses__()) - {errors.LedgerConflict}
    ledger = {"conflict", *(kind("", "", "").problem for kind in kinds)}
    assert sorted(word for word in ledger if word not in WORDS) == []


def test_every_word_has_a_remedy() -> None:
    """A word is in one of both tables; what it means goes to the log, and ends an import."""
    assert not set(FILES) & set(SOURCES)
    assert all(of.meaning and of.remedy for of in WORDS.values())
    assert (told("bad_time"), told("no_such")) == ("impossible times [bad_time]", "no_such")
    assert (set(explained("denied")), explained("no_such")) == ({"meaning", "remedy"}, {})


def test_page_is_made_from_the_code() -> None:
    """docs/problems.md is what the code says, and the README leads to it."""
    remedy = "Run: python -m gwmond.service.problem_help > docs/problems.md"
    assert (DOCS / "problems.md").read_text() == problem_help.page(), remedy
    done = subprocess.run(
        [sys.executable, "-m", "gwmond.service.problem_help"],
        capture_output=True,
        check=True,
        text=True,
    )
    assert done.stdout == problem_help.page()
    rows = [line for line in done.stdout.splitlines() if line.startswith("| `")]
    assert sorted(row.split("`")[1] for row in rows) == sorted(WORDS)
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
        looks.end(Problem("factory", "no_root", "directories: /x"))
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
