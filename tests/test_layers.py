"""Rules of the architecture, held by reading the code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = Path(__file__).parent.parent / "gwmond"
FILES = sorted(PACKAGE.rglob("*.py"))
MAX_LINES = 320
BINDINGS = {"htcondor2", "classad2", "htcondor", "classad"}
# What the pure core may import besides itself.
PURE = {
    *(
        "__future__",
        "abc",
        "bisect",
        "collections",
        "dataclasses",
        "enum",
        "fractions",
        "functools",
    ),
    *("heapq", "itertools", "math", "operator", "re", "statistics", "types", "typing"),
    *("numpy", "scipy"),
}
CORE = {"gwmond.accounting", "gwmond.facts", "gwmond.monitor", "gwmond.units"}
OWN = {"facts.py", "monitor.py", "units.py"}  # of the core, besides the accounting
MAY_PRINT = {"cli.py", "metrics/catalog.py", "problem_help.py"}
CLOCKS = {"time", "datetime", "sched", "asyncio"}


class Import(NamedTuple):
    module: str
    line: int
    lazy: bool  # within a function, or only for type checkers


def imports(path: Path, text: str | None = None) -> Iterator[Import]:
    """Every import of a file, which may have another text."""
    package = ["gwmond", *path.relative_to(PACKAGE).parts[:-1]]

    def walk(node: ast.AST, lazy: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from (Import(alias.name, child.lineno, lazy) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                base = package[: len(package) - child.level + 1] if child.level else []
                module = ".".join([*base, *([child.module] if child.module else [])])
                yield Import(module, child.lineno, lazy)
                for alias in child.names:  # the name may be a module of its own
                    yield Import(f"{module}.{alias.name}", child.lineno, lazy)
            else:
                deeper = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
                yield from walk(child, lazy or deeper or _is_type_checking(child))

    return walk(ast.parse(path.read_text() if text is None else text), lazy=False)


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def name(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def is_core(path: Path) -> bool:
    return name(path).startswith("accounting/") or name(path) in OWN


files = pytest.mark.parametrize("path", FILES, ids=name)
core = pytest.mark.parametrize("path", [path for path in FILES if is_core(path)], ids=name)


def test_imports_are_seen() -> None:
    """The reader of imports finds them wherever they are, and which are lazy."""
    source = (
        "import a.b\nfrom c import d\nfrom . import e\nfrom .f import g\n"
        "if typing.TYPE_CHECKING:\n    import h\n"
        "try:\n    import i\nexcept ImportError: pass\n"
        "class K:\n    def j(self):\n        if 1:\n            import k\n"
    )
    here = PACKAGE / "sources" / "no_such_file.py"
    found = {one.module: one.lazy for one in imports(here, source)}
    assert found == {
        "a.b": False,
        "c": False,
        "c.d": False,
        "gwmond.sources": False,
        "gwmond.sources.e": False,
        "gwmond.sources.f": False,
        "gwmond.sources.f.g": False,
        "h": True,
        "i": False,
        "k": True,
    }


@files
def test_only_sources_import_the_bindings(path: Path) -> None:
    """Only sources know HTCondor's bindings, and never load them where the daemon would."""
    found = [one for one in imports(path) if one.module.partition(".")[0] in BINDINGS]
    assert not found or name(path).startswith("sources/"), found
    assert all(one.lazy for one in found), found


@core
def test_core_is_pure(path: Path) -> None:
    """The accounting, facts and units import nothing that reads, waits, logs or stores."""
    for one in imports(path):
        if one.module.startswith("gwmond"):
            inside = any(one.module == part or one.module.startswith(f"{part}.") for part in CORE)
            assert inside, one
        else:
            assert one.module.partition(".")[0] in PURE, one


@core
def test_core_reads_no_clock_and_no_file(path: Path) -> None:
    """Time is an argument in the accounting, and facts are all that it knows."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            assert called not in {"open", "input", "print", "exec", "eval"}, called
            assert called.partition(".")[0] not in CLOCKS | {"os", "sys", "random"}, called


@files
def test_files_are_short(path: Path) -> None:
    """No file is longer than what one reads in one go."""
    assert len(path.read_text().splitlines()) <= MAX_LINES


@files
def test_only_commands_print(path: Path) -> None:
    """Nothing but a command writes to standard output; the rest logs."""
    if name(path) in MAY_PRINT or name(path).startswith("commands/"):
        return
    calls = [
        node.lineno
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("print", "sys.stdout.write")
    ]
    assert calls == []


@files
def test_direction(path: Path) -> None:
    """Sources know nothing of what is made of their facts, nor does the ledger of who writes it."""
    forbidden = {
        "sources/": ("metrics", "web", "commands", "ledger", "daemon", "poller", "keeper"),
        "ledger/": ("metrics", "web", "commands", "sources", "daemon", "poller", "config"),
        "metrics/": ("web", "commands", "daemon", "poller", "keeper"),
        "web/": ("commands", "daemon", "poller", "keeper"),
    }
    for folder, others in forbidden.items():
        if name(path).startswith(folder):
            for one in imports(path):
                assert one.module.removeprefix("gwmond.").split(".")[0] not in others or (
                    not one.module.startswith("gwmond.")
                ), one


@files
def test_modules_say_what_they_are(path: Path) -> None:
    """Every module begins with a sentence of what it is."""
    if path.stat().st_size:
        assert ast.get_docstring(ast.parse(path.read_text()))
