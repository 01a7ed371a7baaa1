"""Completion for bash and zsh, by shtab: commands, options, their choices, files, directories."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import shtab

from gwmond import cli
from gwmond.reports.report.groupings import GROUPINGS

PLACES = {
    "bash": "share/bash-completion/completions/gwmond",
    "zsh": "share/zsh/site-functions/_gwmond",
}
_FILES = ("FILE", "FILE|-", "PATH")


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The parser and those of its commands."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for sub in action.choices.values():
                yield from parsers(sub)


def completions() -> dict[str, str]:
    """The text of each file, by its path in the repository."""
    found = {}
    for shell, place in PLACES.items():
        top = cli.parser(tuple(cli.COMMANDS))
        for parser in parsers(top):
            for action in parser._actions:
                if "--by" in action.option_strings:
                    action.choices = list(GROUPINGS)
                elif action.metavar == "DIR":
                    action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
                elif action.type is Path or action.metavar in _FILES:
                    action.complete = shtab.FILE  # type: ignore[attr-defined]
        found[place] = shtab.complete(top, shell)
    return found
