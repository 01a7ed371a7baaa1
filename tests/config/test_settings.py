"""The configuration file, its example and its errors."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from gwmond.config import settings as config
from gwmond.config import types
from gwmond.config.settings import Config, ConfigError, Pledge
from gwmond.model.times import parse_duration
from tests.build.configurations import defaults, errors

EXAMPLE = Path(__file__).parent.parent.parent / "etc" / "gwmond.toml"


def flat(table: dict[str, Any], path: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, dict):
            found |= flat(value, f"{path}{name}.")
        else:
            found[path + name] = value
    return found


@pytest.fixture(autouse=True)
def _no_state_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STATE_DIRECTORY", raising=False)


def test_example_has_every_option_with_its_default() -> None:
    """The example file names exactly the options that there are, each with its default."""
    written = flat(tomllib.loads(EXAMPLE.read_text()))
    declared = defaults(Config)
    assert sorted(written) == sorted(declared)
    valid = config.load(EXAMPLE)
    assert valid == Config.model_validate({"ledger": {"url": declared["ledger.url"]}})
    durations = {name for name, value in written.items() if re.fullmatch(r"\d+[a-z]+", str(value))}
    for name, value in written.items():
        default = declared[name]
        plain = list(default) if isinstance(default, tuple) else default
        assert (parse_duration(value) if name in durations else value) == plain, name


@pytest.mark.parametrize("name", ["trial.toml", "large-pool.toml"])
def test_other_examples_say_what_differs(name: str) -> None:
    """They are valid, and each value that they give is another than the default."""
    path = EXAMPLE.with_name(name)
    declared = defaults(Config)
    given = flat(config.load(path).model_dump(exclude_unset=True))
    written = flat(tomllib.loads(path.read_text()))
    assert set(written) == set(given)
    assert {option for option in written if given[option] == declared[option]} == set()


def test_tables_that_are_commented_out() -> None:
    """Of arrays of tables the example shows, commented out, every key and no other."""
    text = EXAMPLE.read_text()
    (block,) = re.findall(r"(?:^#.*\n)*^# \[\[site\.pledge\]\]\n(?:^# .*\n)*", text, re.MULTILINE)
    shown = block[block.index("[[") :].replace("\n# ", "\n")
    (pledge,) = tomllib.loads(shown)["site"]["pledge"]
    assert Pledge.model_validate(pledge).cores == 5000
    named = set(pledge) | set(re.findall(r"# or: (\w+) =", shown))
    assert named == set(Pledge.model_fields)


def test_examples_in_comments_are_valid() -> None:
    """What the example file shows in comments can be used as it is."""
    tried = 0
    section = ""
    for line in EXAMPLE.read_text().splitlines():
        if header := re.fullmatch(r"\[([\w.]+)\]", line):
            section = header[1]
        if (shown := re.match(r"# (\w+ = [\"'\[].*?)(?:   .*)?$", line)) and section != "site":
            for example in shown[1].rstrip(".").split(" and "):
                tried += 1
                config.parse(tomllib.loads(f"[{section}]\n{example}"), "example")
    assert tried >= 5


def test_every_option_is_explained() -> None:
    """In the example file a comment goes before the option, or the group of options."""
    lines = EXAMPLE.read_text().splitlines()
    for number, line in enumerate(lines):
        if re.match(r"\w+ = ", line):
            above = next(text for text in reversed(lines[:number]) if not re.match(r"\w+ = ", text))
            assert above.startswith("# "), line


def test_default_ledger_is_in_the_state_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    """systemd's StateDirectory has the ledger, the first where there are several."""
    assert config.LedgerOptions().url == "sqlite:////var/lib/gwmond/ledger.sqlite"
    monkeypatch.setenv("STATE_DIRECTORY", "/var/lib/other:/var/lib/more")
    assert config.LedgerOptions().url == "sqlite:////var/lib/other/ledger.sqlite"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("60s", 60),
        ("1.5m", 90),
        ("1h30m", 5400),
        ("500ms", 0.5),
        (" 2d ", 172800),
        ("1w", 604800),
        ("1y", 31536000),
        ("1m500ms", 60.5),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    """A duration is one or more numbers, each with its unit."""
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", [60, 60.0, "60", "s", "", "1x", "-5s", "1h 30m", "1m30", None, True]
)
def test_no_durations(text: object) -> None:
    """A number without a unit, or anything else, is refused with an example."""
    with pytest.raises(ValueError, match='such as "60s"'):
        parse_duration(text)


def test_pledges(tmp_path: Path) -> None:
    """A site and an entry may be pledged beside each other, also under one name."""
    path = tmp_path / "gwmond.toml"
    path.write_text(
        "[[site.pledge]]\nsite = 'A'\ncores = 5.5\n"
        "[[site.pledge]]\nentry = 'A'\ncores = 2\nmemory_mib = 1000\ngpus = 3\n"
    )
    assert config.load(path).site.pledge == (
        Pledge(site="A", cores=5.5),
        Pledge(entry="A", cores=2, memory_mib=1000, gpus=3),
    )


def test_file_that_cannot_be_read(tmp_path: Path) -> None:
    """A missing file, a directory, bad TOML and other encodings are each told as what they are."""
    missing = tmp_path / "missing.toml"
    for path, content, said in (
        (missing, None, "cannot read it: No such file or directory"),
        (tmp_path, None, "cannot read it: Is a directory"),
        (tmp_path / "a", b"[poll\n", "not valid TOML: "),
        (tmp_path / "b", b"[poll]\ninterval = '60s'\ninterval = '60s'", "not valid TOML: "),
        (tmp_path / "c", "[log] # Zürich".encode("latin-1"), "not UTF-8 at byte 9"),
    ):
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(ConfigError) as caught:
            config.load(path)
        assert str(caught.value).startswith(f"{path}: {said}")


def test_empty_file_is_valid(tmp_path: Path) -> None:
    """An empty file is the default configuration."""
    path = tmp_path / "gwmond.toml"
    path.write_text("")
    assert config.load(path) == Config()


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """A certificate, a key and a token, as files that are there."""
    made = {}
    for key in ("tls_cert", "tls_key", "auth_token_file"):
        made[key] = str(tmp_path / key)
        Path(made[key]).write_text("content\n")
    return made


@pytest.mark.parametrize(
    ("listen", "address"),
    [
        ("127.0.0.1:9818", ("127.0.0.1", 9818)),
        ("127.9.9.9:1", ("127.9.9.9", 1)),
        ("localhost:80", ("localhost", 80)),
        ("[::1]:9818", ("::1", 9818)),
    ],
)
def test_loopback_needs_nothing(listen: str, address: tuple[str, int]) -> None:
    """On loopback, IPv6 included, neither TLS nor token is asked for."""
    assert config.Http(listen=listen).address == address


@pytest.mark.parametrize("listen", ["0.0.0.0:9818", "10.0.0.1:80", "[::]:9818", "example.org:80"])
def test_beyond_loopback(listen: str, files: dict[str, str], tmp_path: Path) -> None:
    """Beyond loopback TLS and a token are needed, both, or the word that a proxy does it."""
    config.Http.model_validate({"listen": listen, **files})
    config.Http(listen=listen, allow_insecure=True)
    for missing in ((), ("auth_token_file",), ("tls_cert", "tls_key")):
        given = {} if not missing else {k: v for k, v in files.items() if k not in missing}
        lines = [f"[http]\nlisten = '{listen}'", *(f"{k} = '{v}'" for k, v in given.items())]
        (error,) = errors("\n".join(lines), tmp_path)
        assert error.startswith(f"http.listen: {listen} is not loopback: set tls_cert, tls_key")
        assert "allow_insecure = true" in error


@pytest.mark.parametrize("listen", ["9818", "127.0.0.1", ":9818", "127.0.0.1:x", "127.0.0.1:70000"])
def test_bad_addresses(listen: str, tmp_path: Path) -> None:
    """An address needs a host and a port that can be."""
    (error,) = errors(f"[http]\nlisten = '{listen}'", tmp_path)
    assert error.startswith("http.listen: write ADDRESS:PORT")


def test_certificate_and_key_go_together(files: dict[str, str], tmp_path: Path) -> None:
    """A certificate without its key, or a key without certificate, is refused."""
    for key, other in (("tls_cert", "tls_key"), ("tls_key", "tls_cert")):
        (error,) = errors(f"[http]\n{key} = '{files[key]}'", tmp_path)
        assert error == f"http.{key}: goes together with {other}: set both, or none"


@pytest.mark.parametrize("content", [None, "", " \n"])
def test_token_file_must_hold_a_token(content: str | None, tmp_path: Path) -> None:
    """A token file that is missing, or empty, is refused: an empty token would let anybody in."""
    path = tmp_path / "token"
    if content is not None:
        path.write_text(content)
    (error,) = errors(f"[http]\nauth_token_file = '{path}'", tmp_path)
    why = (
        f"cannot read {path}: No such file or directory" if content is None else f"{path} is empty"
    )
    assert error == f"http.auth_token_file: {why}"
    assert config.load(tmp_path / "gwmond.toml").http.auth_token_file == str(path)  # not used


def test_files_that_come_with_the_service(
    files: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before gwmond.service runs its secrets are not there; all other files have to be."""
    monkeypatch.setattr(types, "RUNTIME_DIRECTORY", tmp_path)
    path = tmp_path / "gwmond.toml"
    path.write_text("[http]\n" + "".join(f"{key} = '{file}'\n" for key, file in files.items()))
    Path(files["tls_key"]).unlink()
    assert config.load(path, "soon").http.tls_key == files["tls_key"]
    monkeypatch.setattr(types, "RUNTIME_DIRECTORY", tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="tls_key: cannot read"):
        config.load(path, "soon")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (" interval = 60s # often", 'interval = "60s"'),
        ("interval=s60", 'interval = "…"'),
        ("url = postgresql://gwmond:secret@db/gwmond", 'url = "…"'),
        ("parallel = 08", ""),
        ("busy_duty_cycle = .95", ""),
        ("replicated = True", ""),
        ("collectors = [cm]", ""),
        ("interval = '60s' often", ""),
    ],
)
def test_texts_without_quotes(text: str, hint: str, tmp_path: Path) -> None:
    """Where it is only quotes that are missing, that is said."""
    path = tmp_path / "gwmond.toml"
    path.write_text(f"[poll]\n{text}\n[log]\n")
    with pytest.raises(ConfigError, match=r"not valid TOML: .*\(at line 2, ") as error:
        config.load(path)
    assert str(error.value).partition("are quoted: ")[2] == hint
