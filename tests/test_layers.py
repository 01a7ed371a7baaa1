"""Rules of the architecture, held by reading the code."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gwmond.sources import child
from tests.build.code import FILES, PACKAGE, calls, imports, name
from tests.pool.ports import free_port

BINDINGS = {"htcondor2", "classad2", "htcondor", "classad"}
# What the pure core may import besides itself.
PURE = {
    *(
        "__future__",
        "abc",
        "base64",
        "bisect",
        "collections",
        "dataclasses",
        "enum",
        "fnmatch",
        "fractions",
        "functools",
        "hashlib",
    ),
    *("array", "copy", "random"),  # random: with a seed
    *("heapq", "itertools", "json", "math", "operator", "re", "statistics", "types", "typing"),
    *("highspy", "msgspec", "numpy"),  # msgspec: immutable records
    "pickle",  # in memory
    *("google", "opentelemetry"),  # protobuf, and its messages of spans
}
#: The rooms of the package, and which others each may import.
ROOMS: dict[str, set[str]] = {
    "model": set(),
    "config": {"model"},
    "sources": {"model", "config"},
    "sites": {"model"},
    "pilots": {"model"},
    "traces": {"model"},
    "ledger": {"model", "pilots"},
    "reports": {"model", "config", "sites", "pilots", "ledger", "traces"},
    "explain": {"model", "sites", "reports"},
    "advise": {"model", "pilots", "ledger", "reports"},
    "metrics": {"model", "config", "sites", "pilots", "ledger", "reports", "traces"},
    "web": {"model", "config", "sites", "metrics", "reports", "traces", "advise"},
    "service": {
        *("model", "config", "sources", "sites", "pilots", "ledger", "reports", "metrics", "web"),
        *("traces", "explain"),
    },
    "commands": {
        *("model", "config", "sources", "sites", "pilots", "ledger", "reports", "metrics", "web"),
        *("service", "traces", "explain", "advise"),
    },
}
#: Rooms within rooms, from the lowest up: each imports only those before it; "" is what stands in
#: the room itself.
WITHIN: dict[str, tuple[str, ...]] = {
    "model": ("", "runs", "pilots", "entries", "demand", "factory", "poll"),
    "pilots": ("early", "life", "memory", "runs", "sources", "factory", ""),
    "ledger": ("database", "rows", "reading", "export", ""),
    "reports": (
        *("render", "stored", "ledger", "sites", "factory_tools", "failures", "changes"),
        *("pilots", "reconcile", "report", ""),
    ),
    "service": ("host", "pool", "accounting", ""),
}
AT_THE_TOP = {"__init__.py", "__main__.py", "cli.py"}
CORE = (
    *("model/", "sites/", "pilots/", "traces/"),
    "reports/changes/since.py",
    *("advise/idle_timeout.py", "advise/judge.py", "advise/samples.py", "advise/tally.py"),
)
MAY_PRINT = {"cli.py", "metrics/catalog.py", "service/host/problem_help.py"}
CLOCKS = {"time", "datetime", "sched", "asyncio"}


def is_core(path: Path) -> bool:
    return name(path).startswith(CORE)


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


def test_only_sources_import_the_bindings() -> None:
    """Only sources know HTCondor's bindings, and never load them where the daemon would."""
    wrong = [
        (name(path), one)
        for path in FILES
        for one in imports(path)
        if one.module.partition(".")[0] in BINDINGS
        and not (one.lazy and name(path).startswith("sources/"))
    ]
    assert wrong == []


def test_core_is_pure() -> None:
    """The model, sites and pilots import nothing that reads, waits, logs or stores."""
    wrong = [
        (name(path), one)
        for path in FILES
        if is_core(path)
        for one in imports(path)
        if one.module.partition(".")[0] not in PURE | {"gwmond"}
    ]
    assert wrong == []


def test_core_reads_no_clock_and_no_file() -> None:
    """Time is an argument in the core, and facts are all that the core knows."""
    forbidden = {"open", "input", "print", "exec", "eval"}
    wrong = [
        (where, called)
        for where, called in calls(path for path in FILES if is_core(path))
        if called in forbidden or called.partition(".")[0] in CLOCKS | {"os", "sys", "random"}
    ]
    assert wrong == []


def test_only_commands_print() -> None:
    """Nothing but a command writes to standard output; the rest logs."""
    silent = [p for p in FILES if name(p) not in MAY_PRINT and not name(p).startswith("commands/")]
    wrong = [found for found in calls(silent) if found[1] in {"print", "sys.stdout.write"}]
    assert wrong == []


def test_each_room_imports_only_what_it_may() -> None:
    """Imports between the rooms have one direction; nothing but the command line is at the top."""
    at_top = {name(path) for path in FILES if path.parent == PACKAGE}
    assert at_top == AT_THE_TOP
    assert {name(path).partition("/")[0] for path in FILES} - at_top == set(ROOMS)
    wrong = [
        (name(path), one.module)
        for path in FILES
        if path.parent != PACKAGE
        for room in [name(path).partition("/")[0]]
        for one in imports(path)
        if one.module.startswith("gwmond.") and not one.module.startswith("gwmond.__version__")
        if one.module.split(".")[1] not in {room, *ROOMS[room]}
    ]
    assert wrong == []


def _room_within(module: str, outer: str) -> str:
    """Return which room of another one a module of it is in."""
    inner = module.removeprefix(f"gwmond.{outer.replace('/', '.')}.").partition(".")[0]
    return inner if inner in WITHIN[outer] else ""


@pytest.mark.parametrize("outer", WITHIN)
def test_rooms_within_a_room_have_an_order(outer: str) -> None:
    """Imports go down; and there are no other rooms within it."""
    order = WITHIN[outer]
    here = [path for path in FILES if name(path).startswith(f"{outer}/")]
    rooms = {path.parent.relative_to(PACKAGE / outer).parts[:1] for path in here}
    assert rooms == {(room,) if room else () for room in order}
    prefix = f"gwmond.{outer.replace('/', '.')}."
    wrong = [
        (name(path), one.module)
        for path in here
        for of in [_room_within("gwmond." + name(path).replace("/", "."), outer)]
        for one in imports(path)
        if one.module.startswith(prefix)
        if order.index(_room_within(one.module, outer)) > order.index(of)
    ]
    assert wrong == []


def test_no_circle_of_files() -> None:
    """No file needs itself by way of others, also not for its types only."""
    modules = {
        ".".join(("gwmond", name(path).removesuffix(".py").replace("/", "."))) for path in FILES
    }
    graph = {
        ".".join(("gwmond", name(path).removesuffix(".py").replace("/", "."))): {
            one.module for one in imports(path)
        }
        & modules
        for path in FILES
    }
    while free := {module for module, needed in graph.items() if not needed & graph.keys()}:
        for module in free:
            del graph[module]
    assert graph == {}


def test_modules_say_what_they_are() -> None:
    """Every module begins with a sentence of what it is."""
    wrong = [
        name(p)
        for p in FILES
        if p.stat().st_size and not ast.get_docstring(ast.parse(p.read_text()))
    ]
    assert wrong == []


def test_rooms_say_what_comes_in_and_what_goes_out() -> None:
    """And what may never be there."""
    pages = {
        name(path): ast.get_docstring(ast.parse(path.read_text())) or ""
        for path in FILES
        if path.name == "__init__.py" and "migrations" not in path.parts
    }
    del pages["__init__.py"]
    assert {
        path
        for path, page in pages.items()
        for words in ("In: ", "Out: ", "Never here: ")
        if words not in page.replace("\n", " ")
    } == set()


def _python(code: str, without: str = "") -> subprocess.CompletedProcess[str]:
    """Run code in a Python of its own, on a host without an HTCondor configuration.

    ``without``: a variable of the environment that is not passed on.
    """
    inherited = {name: value for name, value in os.environ.items() if name != without}
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env={**inherited, "CONDOR_CONFIG": "ONLY_ENV"},
        capture_output=True,
        text=True,
        check=True,
    )


_UNNEEDED = {"alembic", "fastapi", "sqlalchemy.dialects.postgresql", "uvicorn"}
_FILES = {"numpy", "gwmond.sources.gwms_tasks"}
_NEVER = {"numpy", "structlog", "htcondor2", "gwmond.sources.child"}
_READERS = ("pilots", "pilot", "trace", "report", "reconcile")
_WRITERS = {
    "gwmond.service.accounting.ledger_keeper",
    "gwmond.pilots.accounting",
    "gwmond.pilots.runs.matcher",
    "gwmond.service.accounting.history_readers",
}


@pytest.mark.parametrize(
    ("modules", "unneeded"),
    [
        ("gwmond.cli", {"numpy", "pydantic", "sqlalchemy", "structlog"}),
        (",".join(child.PRELOAD), {*_UNNEEDED, "sqlalchemy", "structlog", "rich", *_FILES}),
        *((f"gwmond.commands.{of}", {*_UNNEEDED, *_WRITERS, *_NEVER}) for of in _READERS),
        *((f"gwmond.commands.{of}", {*_UNNEEDED, *_WRITERS}) for of in ("sites", "once", "check")),
        *(
            (f"gwmond.commands.{of}", {"asyncio", "sqlalchemy", "structlog"})
            for of in ("sites", "once")
        ),
    ],
)
def test_what_starts_often_loads_little(modules: str, unneeded: set[str]) -> None:
    """The command line, and the server from which each query is forked, load what they need."""
    done = _python(f"import sys, {modules}; print(*sys.modules)")
    assert unneeded & set(done.stdout.split()) == set()


def test_numpy_starts_no_threads() -> None:
    """There would be one for each core, whatever the host has."""
    code = "import os, gwmond.sites.flow; print(len(os.listdir('/proc/self/task')))"
    assert _python(code, without="OPENBLAS_NUM_THREADS").stdout == "1\n"


def test_sites_loads_no_logging_even_where_much_is_wrong() -> None:
    """No collector answers, so there are problems; the command prints them itself."""
    argv = ["sites", "--collector", f"127.0.0.1:{free_port()}"]
    code = f"import sys; from gwmond.cli import main; print(main({argv}), *sys.modules)"
    done = _python(code)
    assert "refused the connection" in done.stderr
    printed = done.stdout.splitlines()[-1].split()
    assert printed[0] == "3"
    assert not {"structlog", "sqlalchemy"} & set(printed)


def loose_digits(tree: ast.AST) -> Iterator[int]:
    """Lines in which a text may have digits of any script; bytes have only those of ASCII."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in {"isdigit", "isdecimal", "isnumeric"}:
            yield node.lineno
        elif isinstance(node, ast.Call) and ast.unparse(node.func).startswith("re."):
            texts = (of.value for of in ast.walk(node.args[0]) if isinstance(of, ast.Constant))
            if any(isinstance(of, str) and r"\d" in of for of in texts):
                yield node.lineno


def test_digits_are_those_of_ascii() -> None:
    """Where strangers write numbers; gwmond.model.digits says what is one."""
    found = {
        str(path.relative_to(PACKAGE)): lines
        for path in FILES
        if (lines := [*loose_digits(ast.parse(path.read_text()))])
    }
    assert set(found) == {"model/digits.py", "sources/gwms/pilot_out.py"}, found


def test_no_test_imports_another_test() -> None:
    """What several of them need is in ``tests/build``."""
    other = re.compile(
        r"^(from|import) tests\.([\w.]*\.)?test_|^from tests\S* import .*\btest_", re.M
    )
    files = Path(__file__).parent.rglob("*.py")
    assert [path for path in files if other.search(path.read_text())] == []
