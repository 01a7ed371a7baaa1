"""Manual pages and completion: as the commands are now, without errors, and useful in a shell."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gwmond import cli
from tests.packaging.built import REPOSITORY, call
from tools.manuals.completion import PLACES, completions, parsers
from tools.manuals.pages import CONFIG, pages

PAGES = sorted((REPOSITORY / "share" / "man").rglob("*.[15]"))
#: What a shell offers for the last word of a line.
_COMPLETE = r"""
source "$1"; shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
_shtab_gwmond gwmond "${!#}" "${@: -2:1}"
printf '%s\n' "${COMPREPLY[@]}"
"""


def program(name: str) -> str:
    """The path of a program; AssertionError with the remedy if it is not installed."""
    found = shutil.which(name)
    assert found, f"no {name}: make setup-test (which installs Debian's package of that name)"
    return found


def shown(page: Path) -> str:
    """A page as a terminal has it, each gap one blank."""
    text = call([program("mandoc"), "-T", "utf8", page])
    return re.sub(r"\s+", " ", re.sub(".\b", "", text))


def test_the_files_are_as_the_commands_are() -> None:
    """Else run: python -m tools.manuals."""
    made = {**pages(), **completions()}
    files = (REPOSITORY / "share").rglob("*")
    assert made.keys() == {str(f.relative_to(REPOSITORY)) for f in files if f.is_file()}
    for name, text in made.items():
        assert (REPOSITORY / name).read_text() == text, f"{name}: python -m tools.manuals"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_has_no_error(page: Path) -> None:
    """By mandoc's checks; a version has no date before it is released."""
    lint = [program("mandoc"), "-T", "lint", "-W", "warning", str(page)]
    said = subprocess.run(lint, capture_output=True, text=True, check=False).stdout
    assert not [line for line in said.splitlines() if "missing date" not in line]


def test_pages_have_all_commands_options_and_examples() -> None:
    """Each option with its help, each example as it is to be typed."""
    for parser in list(parsers(cli.parser(tuple(cli.COMMANDS))))[1:]:
        name = parser.prog.split()[1]
        text = shown(REPOSITORY / f"share/man/man1/gwmond-{name}.1")
        for action in parser._actions:
            assert action.dest == "help" or all(o in text for o in action.option_strings)
        for example in re.findall(r"^  (gwmond .*?)(?:  |$)", parser.epilog or "", re.MULTILINE):
            assert example in text
        assert f"gwmond-{name}(1)" in shown(REPOSITORY / "share/man/man1/gwmond.1")


def test_the_page_of_the_configuration_has_every_option() -> None:
    """With its default, as in etc/gwmond.toml."""
    text = shown(REPOSITORY / "share/man/man5/gwmond.toml.5")
    lines = re.findall(r"^(?:[a-z_]+ = |\[).*$", CONFIG.read_text(), re.MULTILINE)
    assert len(lines) > 80
    assert not [line for line in lines if re.sub(r"\s+", " ", line) not in text]


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("gwmond rep", {"report"}),
        ("gwmond pilot", {"pilot", "pilots"}),
        ("gwmond report --fo", {"--format"}),
        ("gwmond report --format ", {"table", "csv", "json", "markdown", "html"}),
        ("gwmond report --by fa", {"factory", "failure"}),
        ("gwmond ledger ", {"check", "stats", "vacuum", "export"}),
        ("gwmond ledger export --format ", {"parquet", "openmetrics"}),
        ("gwmond run --config gwm", {"gwmond.toml"}),
    ],
)
def test_bash_completes(typed: str, offered: set[str], tmp_path: Path) -> None:
    """Commands, options, choices and files, without starting gwmond."""
    (tmp_path / "gwmond.toml").touch()
    script = REPOSITORY / PLACES["bash"]
    said = call(["bash", "-c", _COMPLETE, "bash", script, *typed.split(" ")], cwd=tmp_path)
    assert set(said.split()) == offered


def test_zsh_reads_its_completion() -> None:
    """It is a function that zsh can load."""
    call([program("zsh"), "-f", "-n", REPOSITORY / PLACES["zsh"]])


def test_the_help_of_gwmond_loads_no_command() -> None:
    """It answers at once, which needs no clock to prove: nothing large is imported."""
    code = "import sys; from gwmond import cli; cli.parser([]); print(*sys.modules)"
    loaded = set(call([sys.executable, "-c", code]).split())
    assert not {"pydantic", "sqlalchemy", "numpy", "rich", "gwmond.commands.report"} & loaded
