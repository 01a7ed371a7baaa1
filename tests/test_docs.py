"""The pages name only what exists: links, files, commands, options, metrics, dependencies."""

from __future__ import annotations

import ast
import contextlib
import functools
import io
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pydantic
import pytest

from gwmond import cli
from gwmond.config.settings import Config
from gwmond.explain import reasons as job_reasons
from gwmond.metrics.catalog import TOPICS
from gwmond.model.elapsed import REASONS as UNKNOWN_TIME
from gwmond.model.problem_names import ProblemName
from gwmond.reports.render.categories import INFOS
from gwmond.sites.reasons import REASONS, UNKNOWN
from gwmond.traces.spans import CONTRACT
from tests.promql import ROOT

PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")))
#: Files of text in which pages are named.
ETC = [file for file in (ROOT / "etc").rglob("*") if file.is_file()]
NAMING = (*PAGES, *ETC, ROOT / "systemd" / "gwmond.service")
METRICS = {family.name for families in TOPICS.values() for family in families}

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_PATH = re.compile(r"(?<![\w/.-])((?:gwmond|tests|docs|etc|systemd)/[\w/.-]*[\w/])(?![\w*…]|/…)")
_METRIC = re.compile(r"\bgwmond_[a-z_]+[a-z]\b(?![_…*])")
_OPTION = re.compile(r"`(?:\[([a-z.]+)\] )?([a-z_]+(?:\.[a-z_]+)?)`")
_COMMAND = re.compile(r"`(gwmond [a-z][^`]*)`")


def _anchor(title: str) -> str:
    """The anchor that GitHub makes of a title."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _anchors(page: Path) -> set[str]:
    return {_anchor(line.lstrip("# ")) for line in page.read_text().splitlines() if line[:1] == "#"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """Links within the repository lead to a file, and to a title in it."""
    for link in _LINK.findall(page.read_text()):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), f"{page.name}: {link}"
        assert not anchor or anchor in _anchors(target), f"{page.name}: {link}"


def test_every_page_is_reached_from_the_readme() -> None:
    """A page that nothing leads to is not found."""
    linked = set(_LINK.findall((ROOT / "README.md").read_text()))
    assert {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")} <= linked


def test_named_files_exist() -> None:
    """Paths of this repository in the pages, and pages that the code and the settings name."""
    texts = {page: page.read_text() for page in NAMING}
    for source in (ROOT / "gwmond").rglob("*.py"):
        texts[source] = "\n".join(re.findall(r"docs/[\w-]+\.md", source.read_text()))
    missing = [
        f"{page.relative_to(ROOT)}: {path}"
        for page, text in texts.items()
        for path in _PATH.findall(re.sub(r"\S+://\S+", "", text))
        if path != CONTRACT and not (ROOT / path).exists()
    ]
    rooms = re.findall(r"`([a-z]+/[a-z_/]+\.py)`", texts[ROOT / "CONTRIBUTING.md"])
    for path in rooms:
        if not (ROOT / path).exists() and not (ROOT / "gwmond" / path).exists():
            missing.append(f"CONTRIBUTING.md: {path}")
    assert len(rooms) > 10
    assert not missing


def _commands() -> Iterator[tuple[str, str]]:
    """What is typed in the pages: a page's name, a command of gwmond."""
    for page in PAGES:
        text = page.read_text()
        lines = re.sub(r"\\\n\s*", "", text).splitlines()
        for line in lines:
            if match := re.match(r" {4,}(?:\S*=\S+ )*(?:/opt/gwmond/bin/)?(gwmond [a-z].*)", line):
                yield page.name, re.sub(r"\s+(#|\||>).*", "", match[1])
        for command in _COMMAND.findall(re.sub(r"\n\s*", " ", text)):
            yield page.name, command.replace("\\|", "|")


@functools.cache
def _help(*words: str) -> str:
    """What a command prints with --help."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text), pytest.raises(SystemExit):
        cli.main([*words, "--help"])
    return text.getvalue()


def test_commands_and_their_options_exist() -> None:
    """Each ``gwmond COMMAND --option`` of the pages is one that the command's help has."""
    seen = 0
    for page, command in _commands():
        words = shlex.split(command.replace("…", ""))[1:]
        if words == ["COMMAND", "--help"]:
            continue
        assert words[0] in cli.COMMANDS, f"{page}: {command}"
        named = words[:2] if words[0] == "ledger" and words[1:] else words[:1]
        options = set(re.findall(r"(?<!\S)\[?(-[-\w]+)", _help(*named)))
        asked = {word.partition("=")[0] for word in words if re.match(r"--?\w", word)}
        assert asked <= options, f"{page}: {command}"
        seen += len(asked)
    assert seen > 30


#: Of a text: a command, and what follows it in the same clause.
_ADVISED = re.compile(r"\bgwmond ([a-z]+)((?:[ \n]+[^\s.,;:()|`\"]+)*)")


def _texts(file: Path) -> Iterator[str]:
    """What a program says, or a file that people read: texts of code, whole files else."""
    if file.suffix != ".py":
        yield file.read_text()
        return
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_commands_that_texts_advise_exist() -> None:
    """So do the commands that explanations, advice, problems, errors, pages and alerts name."""
    found = [file for file in (ROOT / "gwmond").rglob("*") if file.suffix in {".py", ".html"}]
    wrong, seen = [], 0
    for file in (*found, *ETC):
        if file.suffix not in {".py", ".html", ".yml", ".toml", ".sh", ".json"}:
            continue
        for text in _texts(file):
            for command, rest in _ADVISED.findall(text):
                asked = set(re.findall(r"(?<!\S)(--[a-z][-a-z]*)", rest))
                if command not in cli.COMMANDS:
                    wrong += [f"{file.name}: gwmond {command}{rest}"] if asked else []
                    continue
                named = [command]
                if command == "ledger" and (more := re.match(r"\s+([a-z]+)", rest)):
                    named.append(more[1])
                options = set(re.findall(r"--[a-z][-a-z]*", _help(*named))) if asked else set()
                wrong += [f"{file.name}: gwmond {command} {one}" for one in asked - options]
                seen += len(asked)
    assert seen > 40
    assert not wrong


def _options(section: type[pydantic.BaseModel], prefix: str = "") -> Iterator[str]:
    for name, field in section.model_fields.items():
        yield f"{prefix}{name}"
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, pydantic.BaseModel):
            yield from _options(kind, f"{prefix}{name}.")


def test_named_options_of_the_configuration_exist() -> None:
    """``section.option`` and ``[section] option`` are options."""
    options = set(_options(Config))
    sections = {option.partition(".")[0] for option in options}
    seen = 0
    for page in PAGES:
        for table, name in _OPTION.findall(re.sub(r"\n\s*", " ", page.read_text())):
            option = f"{table}.{name}" if table else name
            if table or ("." in name and name.partition(".")[0] in sections):
                if option.rpartition(".")[2] in ("md", "py", "lock", "sqlite", "toml"):
                    continue
                assert option in options, f"{page.name}: {option}"
                seen += 1
    assert seen > 30


def test_named_metrics_exist() -> None:
    """Each gwmond_... of the pages is a metric, or a function that jobs may call."""
    script = (ROOT / "etc/gwmond-trace.sh").read_text()
    functions = set(re.findall(r"^(gwmond_\w+)\(\)", script, re.MULTILINE))
    for page in PAGES:
        assert not set(_METRIC.findall(page.read_text())) - METRICS - functions, page.name


def test_named_problems_exist() -> None:
    """What a page calls a problem has its row in docs/problems.md."""
    named: set[str] = set()
    for page in PAGES:
        text = re.sub(r"\s+", " ", page.read_text())
        for names in re.findall(r"\bproblems? \(?(`[a-z_]+`(?:, `[a-z_]+`)*)", text):
            named |= set(re.findall(r"\w+", names))
    assert len(named) > 10
    assert named <= set(ProblemName)


def test_dependencies_are_listed() -> None:
    """docs/install.md has the packages of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    packages = {re.match(r"[\w-]+", text)[0].lower() for text in project["dependencies"]}  # type: ignore[index]
    text = (ROOT / "docs" / "install.md").read_text().partition("## Dependencies")[2]
    rows = [line.split("|")[1] for line in text.splitlines()[4:] if line.startswith("|")]
    listed = {word for row in rows for word in re.findall(r"[\w-]+", re.sub(r"\(.*\)", "", row))}
    assert {word.lower() for word in listed} == packages


def test_categories_are_explained() -> None:
    """The table has the words that help and reports have."""
    rows = (ROOT / "docs" / "pilots.md").read_text().splitlines()
    for info in INFOS:
        assert info.category is None or f"| `{info.category}` | {info.meaning} |" in rows


def test_reasons_of_jobs_are_explained() -> None:
    """docs/explain.md has each of them in its tier, and with its mover."""
    text = (ROOT / "docs" / "explain.md").read_text()
    rows = [line.split("|") for line in text.splitlines() if re.match(r"\| \d \| `", line)]
    known = [one for one in vars(job_reasons).values() if isinstance(one, job_reasons.Reason)]
    for reason in known:
        there = [row for row in rows if f"`{reason.name}`" in row[2] and int(row[1]) == reason.tier]
        assert there, reason
        movers = {step.mover.value.rpartition(": ")[2] for step in reason.steps[:1]}
        assert all(any(mover in row[4] for row in there) for mover in movers), reason


def test_reasons_are_explained() -> None:
    """docs/sites.md has each reason of a bottleneck, and of what is unknown."""
    rows = [line for line in (ROOT / "docs" / "sites.md").read_text().splitlines() if "| `" in line]
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert {*UNKNOWN, *UNKNOWN_TIME, *(reason.name for reason in REASONS)} <= named
