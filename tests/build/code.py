"""The code of the package: its files, what they import and what they call."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).parents[2] / "gwmond"
FILES = sorted(PACKAGE.rglob("*.py"))


class Import(NamedTuple):
    module: str
    line: int
    lazy: bool  # within a function, or only for type checkers


def imports(path: Path, text: str | None = None) -> Iterator[Import]:
    """Every import of a file, which may have another text."""
    package = ["gwmond", *path.relative_to(PACKAGE).parts[:-1]]

    def walk(node: ast.AST, lazy: bool) -> Iterator[Import]:
        for inner in ast.iter_child_nodes(node):
            if isinstance(inner, ast.Import):
                yield from (Import(alias.name, inner.lineno, lazy) for alias in inner.names)
            elif isinstance(inner, ast.ImportFrom):
                base = package[: len(package) - inner.level + 1] if inner.level else []
                module = ".".join([*base, *([inner.module] if inner.module else [])])
                yield Import(module, inner.lineno, lazy)
                for alias in inner.names:  # the name may be a module of its own
                    yield Import(f"{module}.{alias.name}", inner.lineno, lazy)
            else:
                deeper = isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
                yield from walk(inner, lazy or deeper or _is_type_checking(inner))

    return walk(ast.parse(path.read_text() if text is None else text), lazy=False)


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def name(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def calls(paths: Iterable[Path]) -> Iterator[tuple[str, str]]:
    """Every call in these files: the file, and what is called."""
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                yield name(path), ast.unparse(node.func)
