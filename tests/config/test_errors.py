"""What an operator is reported of a wrong configuration: line, key, and what to write instead."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from gwmond.config import settings as config
from gwmond.config.settings import Config, ConfigError, Pledge
from tests.build.configurations import defaults, errors


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[poll]\nintervall = '60s'", "poll.intervall: unknown key; did you mean 'interval'?"),
        ("[metric]\nseries_budget = 5", "metric: unknown key; did you mean 'metrics'?"),
        (
            "[pool.wms]\ncollector = ['a']",
            "pool.wms.collector: unknown key; did you mean 'collectors'?",
        ),
        (
            "[[site.pledge]]\nsite = 'A'\ncores = 1\nmemory = 5",
            "site.pledge[0].memory: unknown key; did you mean 'memory_mib'?",
        ),
        ("[log]\nxyzzy = 1", "log.xyzzy: unknown key; known are: format, level"),
        ("interval = '60s'", "interval: unknown key; it belongs to [poll]"),
    ],
)
def test_unknown_keys(text: str, error: str, tmp_path: Path) -> None:
    """An unknown key is an error at every level, and the nearest known one is named."""
    assert errors(text, tmp_path) == [error]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "[poll]\ninterval = 60",
            'poll.interval: write a duration as a string with its unit, such as "60s", "1h30m" or '
            '"30d" (found 60)',
        ),
        (
            "[poll]\ninterval = '0s'",
            'poll.interval: must be more than 0 (found "0s"); the default is "1m"',
        ),
        (
            "[poll]\ninterval = '200y'",
            'poll.interval: must be at most "100y" (found "200y"); the default is "1m"',
        ),
        (
            "[poll]\ninterval = '30s'",
            "poll.deadline: 45s, the default, must be shorter than poll.interval, 30s: lower it, "
            "or make the interval longer",
        ),
        (
            "[poll]\ndeadline = '2m'",
            "poll.deadline: 120s must be shorter than poll.interval, 60s: lower it, or make the "
            "interval longer",
        ),
        (
            "[poll]\nparallel = 0",
            "poll.parallel: must be more than 0 (found 0); the default is 10",
        ),
        (
            "[poll]\nparallel = 99999999999",
            "poll.parallel: must be at most 1000000000 (found 99999999999); the default is 10",
        ),
        (
            "[poll]\nparallel = '8'",
            'poll.parallel: write a whole number, without quotes (found "8")',
        ),
        (
            "[poll]\nparallel = true",
            "poll.parallel: write a whole number, without quotes (found true)",
        ),
        (
            "[poll]\nbusy_duty_cycle = 1.5",
            "poll.busy_duty_cycle: must be at most 1 (found 1.5); the default is 0.95",
        ),
        ("poll = 5", "poll: is a table: write [poll], and its keys in the lines below (found 5)"),
        ("[[poll]]", "poll: write the table once, in single brackets: [poll]"),
        ("[pool]\ncollectors = 'cm'", 'pool.collectors: write a list: ["cm"]'),
        (
            "[pool]\ncollectors = [5]",
            "pool.collectors[0]: write one text, in quotes (found 5)",
        ),
        (
            "[pool]\ncollectors = ['a, b']",
            'pool.collectors[0]: "a, b" is not one HOST or HOST:PORT: write several as a list, '
            'such as ["cm1.example.org", "cm2.example.org:9620"]',
        ),
        (
            "[pool]\ncollectors = ['https://cm']",
            'pool.collectors[0]: "https://cm": write HOST or HOST:PORT, without https://',
        ),
        (
            "[pool]\ncollectors = ['cm', 'cm:99999']",
            'pool.collectors[1]: "cm:99999": 99999 is no port: write a number from 1 to 65535',
        ),
        (
            "[pool]\nreplicated = 'yes'",
            'pool.replicated: write true or false, without quotes (found "yes")',
        ),
        (
            "[attributes]\nsite = ['A B']",
            'attributes.site[0]: "A B" is no name of a ClassAd attribute: write letters, digits '
            "and _ only",
        ),
        (
            "[log]\nlevel = 'loud'",
            'log.level: write one of "debug", "info", "warning", "error" (found "loud")',
        ),
        (
            "[replay]\nspeed = inf",
            "replay.speed: write a finite number (found inf); the default is 60.0",
        ),
        (
            "[ledger]\nurl = 'mysql://u:secret@h/d'",
            "ledger.url: is neither a path nor a URL of a ledger: write sqlite:////var/lib/gwmond/"
            "ledger.sqlite, a path with a slash, or postgresql://user@host/database",
        ),
        ("[[site.pledge]]\ncores = 5", "site.pledge[0]: give either site or entry"),
        (
            "[[site.pledge]]\nsite = 'A'\nentry = 'a'\ncores = 5",
            "site.pledge[0]: give either site or entry, not both",
        ),
        ("[[site.pledge]]\nsite = 'A'", "site.pledge[0].cores: is required"),
        (
            "[[site.pledge]]\nsite = 'A'\ncores = -1",
            "site.pledge[0].cores: must be at least 0 (found -1)",
        ),
        (
            "[site.pledge]\nsite = 'A'\ncores = 1",
            "site.pledge: write a table [[site.pledge]], in double brackets, for each",
        ),
        (
            "[[site.pledge]]\nsite = 'A'\ncores = 1\n[[site.pledge]]\nsite = 'A'\ncores = 2",
            "site.pledge: more than one for A",
        ),
    ],
)
def test_bad_values(text: str, error: str, tmp_path: Path) -> None:
    """A bad value is told with its key, what is to be written, and what was found."""
    assert errors(text, tmp_path) == [error]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("# a comment\n\n[poll]\nparallel = 4\ninterval = 60", 5),
        ("[pool.wms]\nfactory_schedds = []\ncollectors = [\n 'a',\n 'b c',\n]", 3),
        ("poll.interval = 60", 1),
        ("[site]\n[[site.pledge]]\nsite = 'A'\ncores = 1\n[[site.pledge]]\nsite = 'B'", 5),
        ("[log]\nlevel = 'info'\n[poll]\ninterval = '30s'", 3),
    ],
)
def test_the_line_is_told(text: str, line: int, tmp_path: Path) -> None:
    """The line of the key, else that of the table in which it is missing."""
    path = tmp_path / "gwmond.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=rf"^{re.escape(str(path))}:{line}: "):
        config.load(path)


JARGON = re.compile(
    r"Input should|valid (?:tuple|string|integer|number|dictionary|boolean)|pydantic|model|"
    r"instance|finite_|parsing|<class|None\b"
)
WRONG: dict[str, Any] = {
    "a text": "no such thing",
    "an empty text": "",
    "a number": 5,
    "a negative number": -5,
    "zero": 0,
    "much too large": 10**30,
    "a fraction": 0.25,
    "infinity": float("inf"),
    "no number": float("nan"),
    "true": True,
    "a list": ["a b"],
    "a list of numbers": [1, 2],
    "a list of lists": [["a"]],
    "a table": {"a": 1},
    "tables": [{"a": 1}],
    "nothing in a list": [],
    "a date": tomllib.loads("a = 2026-01-31")["a"],
    "a long text": "x" * 5000,
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize(
    "option", [*defaults(Config), *(f"site.pledge.{key}" for key in Pledge.model_fields)]
)
def test_wrong_types_are_told_in_plain_words(option: str, wrong: str) -> None:
    """Whatever stands for whatever option is taken, or told by its key, in plain words."""
    *sections, key = option.split(".")
    data: Any = {key: WRONG[wrong]}
    if option.startswith("site.pledge"):
        data = [{**({} if key in {"site", "entry"} else {"site": "A"}), "cores": 1, **data}]
    for section in reversed(sections):
        data = {section: data}
    try:
        config.parse(data, "gwmond.toml")
    except ConfigError as error:
        for line in str(error).splitlines():
            assert re.match(r"gwmond\.toml: [a-z_.]+(?:\[0\])?[a-z_.]*(?:\[\d\])?: ", line), line
            assert not JARGON.search(line), line
            assert len(line) < 300
    else:
        assert fits(option, WRONG[wrong]), f"{option} = {WRONG[wrong]!r} was taken"


def fits(option: str, value: object) -> bool:
    """Whether a value has the type of an option's default."""
    pledge = {"site": "", "entry": "", "cores": 0.5, "memory_mib": 0.5, "gpus": 0}
    default = {
        **defaults(Config),
        **{f"site.pledge.{key}": example for key, example in pledge.items()},
    }[option]
    if isinstance(default, float):
        return isinstance(value, float | int) and not isinstance(value, bool)
    if isinstance(default, tuple):
        return isinstance(value, list) and all(isinstance(of, str) for of in value)
    return type(value) is type(default)


@pytest.mark.parametrize("section", Config.model_fields)
@pytest.mark.parametrize("wrong", [5, "text", True, [], [1], [{}]])
def test_what_is_no_table(section: str, wrong: object) -> None:
    """A section that is written as anything else."""
    with pytest.raises(ConfigError) as caught:
        config.parse({section: wrong}, "gwmond.toml")
    assert str(caught.value).startswith(f"gwmond.toml: {section}: ")
    assert f"[{section}]" in str(caught.value)
    assert not JARGON.search(str(caught.value))


def test_all_errors_are_told(tmp_path: Path) -> None:
    """Several errors are all told at once."""
    text = "[poll]\ninterval = 60\nparallel = 'many'\n[log]\nlevle = 'info'\n[nonsense]\n"
    found = [line.partition(":")[0] for line in errors(text, tmp_path)]
    assert sorted(found) == ["log.levle", "nonsense", "poll.interval", "poll.parallel"]


@pytest.mark.parametrize(
    "text",
    [
        "[ledger]\nurl = ['postgresql://me:secret@db/x']",
        "[ledger]\nurl = 'postgresql:/me:secret@db/x'",
        "[ledger]\nurl = 'mysql://me:secret@db/x'",
        "[ledger]\nhours_retention = 'postgresql://me:secret@db/x'",
        "[ledger]\nurls = 'postgresql://me:secret@db/x'",
        "ledger = 'postgresql://me:secret@db/x'",
        "ledger = ['postgresql://me:secret@db/x']",
        "[log]\nlevel = ' postgresql:/me:secret@db/x'",
        "[http]\nlisten = 'postgresql:///secret'",
        "[http]\ntls_cert = 'postgresql://me:secret@db/x'",
        "[http]\nauth_token_file = 'postgresql://me:secret@db/x'",
        "[poll]\nparallel = 'postgresql://me:secret@db/x'",
        "[pool]\ncollectors = 'postgresql://me:secret@db/x'",
    ],
)
def test_no_part_of_a_password_is_shown(text: str, tmp_path: Path) -> None:
    """A ledger's URL at a wrong place, or mistyped, is an error that does not quote the URL."""
    found = errors(text, tmp_path)
    assert found
    assert "secret" not in "".join(found)
