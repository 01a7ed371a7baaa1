"""The manual pages, in the language of man(7).

argparse-manpage leaves out what follows the options in a command's help, with all examples.
"""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

from gwmond import __version__, cli

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "etc" / "gwmond.toml"
_EXAMPLE = re.compile(r"# (\[\[|[a-z_]+ = | )")


def pages() -> dict[str, str]:
    """The text of each page, by its path in the repository."""
    top = cli.parser(tuple(cli.COMMANDS))
    commands = _commands(top)
    found = {"share/man/man1/gwmond.1": _overview(top)}
    for name, parser in commands.items():
        found[f"share/man/man1/gwmond-{name}.1"] = _command(name, parser)
    found["share/man/man5/gwmond.toml.5"] = _configuration(CONFIG.read_text())
    return found


def _commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The parsers of its commands by their names; none where it has no commands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def _escaped(text: str) -> str:
    r"""Text that troff prints as it is: "-" is one that can be copied, no line is a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    return re.sub(r"^([.])", r"\\&\1", text, flags=re.MULTILINE)


def _text(text: str) -> list[str]:
    """Paragraphs, to be filled."""
    blocks = [_escaped(inspect.cleandoc(block)) for block in re.split(r"\n\s*\n", text.strip())]
    return "\n.PP\n".join(blocks).split("\n")


def _verbatim(text: str) -> list[str]:
    return [".nf", *_escaped(text).split("\n"), ".fi"]


def _page(title: str, section: int, name: str, summary: str, body: list[str]) -> str:
    head = f'.TH "{_escaped(title.upper())}" {section} "" "gwmond {__version__}" "gwmond"'
    lines = ['.\\" Made by: python -m tools.manuals', head, ".SH NAME"]
    lines += [f"{_escaped(name)} \\- {_escaped(summary)}", *body]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _overview(top: argparse.ArgumentParser) -> str:
    body = [".SH SYNOPSIS", ".B gwmond", ".RI [ options ]", ".I COMMAND", ".RI [ arguments ]"]
    body += [".SH DESCRIPTION", *_text(top.description or ""), ".SH COMMANDS"]
    for name, summary in cli.COMMANDS.items():
        body += [".TP", f".BR gwmond\\-{name} (1)", _escaped(summary)]
    body += [".SH OPTIONS", *_options(top), *_epilog(top.epilog or "")]
    body += [".SH FILES", ".TP", ".I /etc/gwmond/gwmond.toml", "the configuration"]
    body += [".TP", ".I /var/lib/gwmond/ledger.sqlite", "the ledger of the service"]
    others = [*(f".BR gwmond\\-{name} (1)," for name in cli.COMMANDS), ".BR gwmond.toml (5)"]
    summary = "where the time of GlideinWMS pilots goes, and why a site is idle"
    return _page("gwmond", 1, "gwmond", summary, [*body, ".SH SEE ALSO", *others])


def _command(name: str, parser: argparse.ArgumentParser) -> str:
    body = [".SH SYNOPSIS", *_synopsis(f"gwmond {name}", parser)]
    body += [".SH DESCRIPTION", *_text(parser.description or ""), ".SH OPTIONS", *_options(parser)]
    if actions := _commands(parser):
        body += [".SH ACTIONS"]
        for action, sub in actions.items():
            body += [f'.SS "gwmond {name} {action}"', *_synopsis(f"gwmond {name} {action}", sub)]
            body += [".PP", *_text(sub.description or ""), *_options(sub)]
    body += [*_epilog(parser.epilog or ""), ".SH SEE ALSO", ".BR gwmond (1),"]
    return _page(
        f"gwmond-{name}", 1, f"gwmond-{name}", cli.COMMANDS[name], [*body, ".BR gwmond.toml (5)"]
    )


def _arguments(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        if action.help is not argparse.SUPPRESS and action.dest != "help":
            yield action


def _operand(action: argparse.Action) -> str:
    """What follows an option, or stands for a positional argument."""
    if action.nargs == 0:
        return ""
    if isinstance(action.metavar, str):
        return action.metavar
    if action.choices is not None:
        return "{" + ",".join(map(str, action.choices)) + "}"
    return action.dest.upper()


def _synopsis(typed: str, parser: argparse.ArgumentParser) -> list[str]:
    lines = [f".B {_escaped(typed)}"]
    for action in _arguments(parser):
        operand = _escaped(_operand(action))
        if action.option_strings:
            option = _escaped(action.option_strings[-1])
            value = f"\\ \\fI{operand}\\fR" if operand else ""
            lines.append(f"[\\fB{option}\\fR{value}]")
        else:
            many = "\\ ..." if action.nargs in ("*", "+", argparse.PARSER) else ""
            whole = f"\\fI{operand}\\fR{many}"
            lines.append(f"[{whole}]" if action.nargs in ("?", "*") else whole)
    return lines


def _options(parser: argparse.ArgumentParser) -> list[str]:
    lines: list[str] = []
    for action in _arguments(parser):
        if isinstance(action, argparse._SubParsersAction):
            continue
        operand = _escaped(_operand(action))
        names = ", ".join(f"\\fB{_escaped(name)}\\fR" for name in action.option_strings)
        lines += [
            ".TP",
            " ".join(part for part in (names, f"\\fI{operand}\\fR" * bool(operand)) if part),
        ]
        told = (action.help or "one of these") % {**vars(action), "prog": parser.prog}
        lines.append(_escaped(told))
    return lines


def _epilog(text: str) -> list[str]:
    """What follows the options: a title and lines below it, or lines, all as they are."""
    lines: list[str] = []
    for block in re.split(r"\n\n+", text.strip("\n")):
        title, _, rest = block.partition("\n")
        if title.endswith(":") and not title.startswith(" "):
            lines += [f'.SH "{_escaped(title[:-1].upper())}"', *_verbatim(rest)]
        elif block:
            lines += [*([] if lines else [".SH NOTES"]), ".PP", *_verbatim(block)]
    return lines


def _configuration(text: str) -> str:
    """The page of the configuration: its sections, options with defaults, and their comments."""
    head, _, rest = text.partition("\n\n")
    about = "\n".join(line.lstrip("# ") for line in head.splitlines())
    body = [".SH DESCRIPTION", *_text(re.sub("^gwmond: example configuration. ", "", about))]
    comment: list[str] = []
    keys: list[str] = []

    def option() -> None:
        for number, key in enumerate(keys):
            body.extend([".TQ" if number else ".TP", f"\\fB{_escaped(key)}\\fR"])
        body.extend(_comment(comment, filled=bool(keys)))
        keys.clear()
        comment.clear()

    for line in [*rest.splitlines(), "["]:
        if line.startswith("["):
            option()
            if line != "[":
                body += [f'.SH "{_escaped(line)}"']
        elif line.startswith("#"):
            if keys:
                option()
            comment.append(line)
        elif line:
            keys.append(line)
    body += [".SH FILES", ".I /etc/gwmond/gwmond.toml", ".SH SEE ALSO"]
    return _page(
        "gwmond.toml",
        5,
        "gwmond.toml",
        "configuration of gwmond",
        [*body, ".BR gwmond (1),", ".BR gwmond\\-check (1)"],
    )


def _comment(lines: list[str], *, filled: bool) -> list[str]:
    """Sentences are filled; examples, which are indented or settings, stay lines."""
    found = [] if filled or not lines else [".PP"]
    for line in lines:
        words = _escaped(line[1:].strip())
        found += [".br", words, ".br"] if _EXAMPLE.match(line) else [words]
    return [line for before, line in zip(["", *found], found, strict=False) if line != before]
