"""The command line."""

from __future__ import annotations

import ast
import csv
import json
import re
import subprocess
import sys
from argparse import Namespace
from base64 import urlsafe_b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias
from unittest import mock

import pytest

from gwmond import __version__, cli
from gwmond.commands import check, common
from gwmond.config import types
from gwmond.config.settings import Config, ConfigError, Http, Traces
from gwmond.config.tracing import Export
from gwmond.ledger.database.classify import KEEP
from gwmond.ledger.store import Ledger
from gwmond.metrics import catalog
from gwmond.metrics.render import render
from gwmond.model.facts import EntryKey, Status
from gwmond.model.poll.snapshot import Snapshot
from gwmond.model.problem_names import ProblemName
from gwmond.reports.sites.sites import SiteRow
from gwmond.sources.registry import SOURCES
from gwmond.web.server import bind
from tests.build.snapshots import BORED, evaluation, row, snapshot, status
from tests.pool.ports import free_port
from tests.unprivileged import unprivileged


@pytest.fixture(autouse=True)
def _no_configuration_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    monkeypatch.setattr("gwmond.service.host.log.configure", lambda _options: None)


def arguments(*given: str) -> Namespace:
    return cli.parser(given).parse_args(given)


def configuration(*given: str) -> Config:
    return common.configuration(arguments("sites", *given))


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str], str]:
    """Writes a configuration file."""

    def write(text: str) -> str:
        path = tmp_path / "gwmond.toml"
        path.write_text(text)
        return str(path)

    return write


def test_commands_seldom_look_for_cycles() -> None:
    """Loading a command makes tens of thousands of objects that stay."""
    code = (
        "import gc; from gwmond import cli; before = gc.get_stats()[0]['collections'];"
        "cli.main(['report', '--from', 'never']); print(gc.get_stats()[0]['collections'] - before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "never" in done.stderr
    assert int(done.stdout) < 10


def test_commands_end_without_a_look_for_cycles() -> None:
    """Python would free all that was loaded, one by one, before the system frees the process."""
    code = (
        "from gwmond.cli import main\n"
        "class Cycle:\n"
        "    def __init__(self):\n"
        "        self.me = self\n"
        "    def __del__(self, print=print):\n"
        "        print('freed')\n"
        "cycle = Cycle()\n"
    )

    def printed(code: str) -> str:
        command = [sys.executable, "-c", code]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert printed(code) == "freed\n"
    assert printed(f"{code}main(['pilots', '--config', '/nowhere'])") == ""


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_help_of_each_command(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each command explains itself, with the options that all have; some query a pool."""
    with pytest.raises(SystemExit) as left:
        cli.main([command, "--help"])
    assert left.value.code == 0
    said = capsys.readouterr().out
    assert f"usage: gwmond {command}" in said
    assert "--config FILE" in said
    assert "--log-level" in said
    assert "%%" not in said  # argparse does not format all of it
    assert len(said.split("options:")[0].splitlines()) > 3
    asking = command in {"run", "once", "check", "sites", "explain", "whatif", "record"}
    assert ("--collector HOST[:PORT]" in said) == asking  # others would ignore it


def test_help_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    """The help names each command and what it does, examples and exit codes."""
    with pytest.raises(SystemExit) as left:
        cli.main(["--help"])
    assert left.value.code == 0
    said = capsys.readouterr().out
    for command, what in cli.COMMANDS.items():
        words = r"\s+".join(map(re.escape, what.split()))
        assert re.search(rf"^ +{command}\s+{words}", said, re.MULTILINE)
    assert "exit codes: 0 success; 1 failure; 2 bad configuration or usage; 3" in said


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    """The version is that of the package."""
    with pytest.raises(SystemExit) as left:
        cli.main(["--version"])
    assert left.value.code == 0
    assert capsys.readouterr().out == f"gwmond {__version__}\n"


@pytest.mark.parametrize(
    "given", [[], ["nonsense"], ["sites", "--nonsense"], ["sites", "--format", "xml"], ["record"]]
)
def test_bad_usage(given: list[str]) -> None:
    """Bad usage is exit code 2."""
    with pytest.raises(SystemExit) as left:
        cli.main(given)
    assert left.value.code == 2


def test_bad_configuration(file: Callable[[str], str], capsys: pytest.CaptureFixture[str]) -> None:
    """A bad configuration is exit code 2, and every line of what is wrong on standard error."""
    path = file("[poll]\nintervall = '60s'\n[nonsense]\n")
    assert cli.main(["sites", "--config", path]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"gwmond: {path}:2: ")
    assert f"\n{path}:3: nonsense: " in said.err
    assert "did you mean 'interval'" in said.err
    assert "nonsense: unknown key" in said.err


def test_without_options_the_defaults_hold() -> None:
    """Without options the configuration is the default one."""
    assert configuration() == Config()


def test_collector_overrides(file: Callable[[str], str]) -> None:
    """Collectors of the command line take the place of those configured, and of a replay."""
    path = file(
        "[pool]\ncollectors = ['a']\nschedds = ['s']\n[replay]\nfile = '/x'\n[log]\nlevel = 'error'"
    )
    assert configuration("--config", path).pool.collectors == ("a",)
    found = configuration(
        "--config", path, "--collector", "b", "--collector", "c:9620", "--log-level", "debug"
    )
    assert found.pool.collectors == ("b", "c:9620")
    assert found.pool.schedds == ("s",)
    assert found.replay.file == ""
    assert found.log.level == "debug"


@pytest.mark.parametrize("collector", ["", "a, b", "a b"])
def test_bad_collector(collector: str) -> None:
    """A collector that cannot be one is refused, naming the option."""
    with pytest.raises(ConfigError, match=r"^--collector: pool.collectors\[0\]"):
        configuration("--collector", collector)


Polled: TypeAlias = Callable[..., tuple[int, str, str]]


@pytest.fixture
def polled(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Polled:
    """Runs a command that polls this; returns its exit code, output and errors."""

    def run(command: str, *given: str, found: Snapshot | None = None) -> tuple[int, str, str]:
        shown = found or snapshot()
        monkeypatch.setattr(f"gwmond.commands.{command}.poll_once", lambda *_, **__: shown)
        return cli.main([command, *given]), *capsys.readouterr()

    return run


def test_sites_asks_for_what_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither runs of jobs nor what frontends count is in a row, nor why jobs wait."""
    poll = mock.Mock(return_value=snapshot())
    monkeypatch.setattr("gwmond.commands.sites.poll_once", poll)
    cli.main(["sites"])
    assert SOURCES.keys() - poll.call_args.args[1] == {"claims", "frontendmonitor", "quotas"}
    assert poll.call_args.kwargs == {"reasons": False}


ALL_UP = (status("cm", "slots"), status("ap1", "demand"))


@pytest.mark.parametrize("command", ["once", "sites"])
def test_exit_codes_of_sources(command: str, polled: Polled) -> None:
    """When all sources are up it is exit code 0, else 3."""
    assert polled(command, found=snapshot(sources=ALL_UP))[0] == 0
    assert polled(command)[0] == 3


@pytest.mark.parametrize("style", ["text", "openmetrics"])
def test_once(style: str, polled: Polled) -> None:
    """Once prints what a scrape would get, in either format."""
    made = render(catalog.FAMILIES, snapshot(), 10_000)
    assert polled("once", "--format", style)[1].encode() == getattr(made, style)


def test_sites_as_a_table(polled: Polled) -> None:
    """The table has a line a site, the worst first, unknown numbers as ?, and what is down."""
    _, out, errors = polled("sites")
    lines = out.splitlines()
    first = next(n for n, line in enumerate(lines) if line.startswith("T2_"))
    assert lines[first].split()[:3] == ["T2_Starving", "cpu", "bottleneck"]
    assert "frontend" in lines[first]
    assert "Total" in lines[first + 1]  # ...GlideinsPerEntry
    assert sum(line.startswith("T2_Bored") for line in lines) == 1  # one table
    assert sum(bool(re.match("T2_Bored +cpu +no demand", line)) for line in lines) == 1
    dark = " ".join(line for line in lines if "T2_Dark" in line)
    # ap2 is silent: 0 jobs is not known; no verdict was checked
    assert (dark.count("?"), dark.split()[-2:]) == (7, ["?", "-"])
    assert max(map(len, lines)) <= 120
    assert errors == (
        "gwmond: ap2 demand: timeout: what happened <to> ap2\n"
        "gwmond: what to do about that: gwmond check\n"
    )


def test_sites_where_no_pool_is_named(polled: Polled) -> None:
    """It is said once, not for each kind of query."""
    nowhere = tuple(
        status("local", kind)._replace(
            up=False, problem=ProblemName.NO_POOL, detail="no pool is named"
        )
        for kind in ("slots", "schedds")
    )
    _, _, errors = polled("sites", found=snapshot(sources=(*nowhere, status("ap2", "demand"))))
    assert [line for line in errors.splitlines() if "no_pool" in line] == [
        "gwmond: local pool: no_pool: no pool is named"
    ]


def test_entries_as_a_table(polled: Polled) -> None:
    """With --entries the table has a line an entry, below its site where there is little room."""
    lines = polled("sites", "--entries")[1].splitlines()
    at = lines.index(BORED.site)
    assert [line.split()[:2] for line in lines[at + 1 : at + 3]] == [
        ["bored-ce1", "cpu"],
        ["bored-ce2", "cpu"],
    ]
    assert max(map(len, lines)) <= 120


@pytest.mark.parametrize("name", ["[/]", "[red]x", "[link=http://x]y[/link]", "\\"])
def test_table_takes_names_as_they_are(name: str, polled: Polled) -> None:
    """No site can break or colour the table by its name."""
    full = row(EntryKey(name, name), "cpu", evaluation().rows[BORED, "cpu"].state, 5, 5)
    made = evaluation()._replace(rows={(full.entry, "cpu"): full})
    words = polled("sites", "--entries", found=snapshot(evaluation=made))[1].split()
    assert words[words.index(name) : words.index(name) + 3] == [name, name, "cpu"]


def test_sites_as_json_and_csv(polled: Polled) -> None:
    """JSON and CSV have the same columns, with their names."""
    sites = json.loads(polled("sites", "--format", "json")[1])["sites"]
    rows = list(csv.DictReader(polled("sites", "--format", "csv")[1].splitlines()))
    assert [r["site"] for r in rows] == [s["site"] for s in sites]
    assert tuple(rows[0]) == SiteRow._fields == tuple(sites[0])
    (dark,) = ((r, s) for r, s in zip(rows, sites, strict=True) if r["site"] == "T2_Dark")
    assert [record["matching_idle_jobs"] for record in dark] == ["", None]
    assert [record["jobs_whole"] for record in dark] == ["False", False]


def test_check_of_a_pool_that_is_not_there(
    file: Callable[[str], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Check names each query that failed, why, and what to do; what is well is said as well."""
    path = file(
        f"[pool]\ncollectors = ['127.0.0.1:{free_port()}']\n"
        f"[ledger]\nurl = '{tmp_path}/ledger.sqlite'\n[http]\nlisten = '127.0.0.1:0'\n"
    )
    assert cli.main(["check", "--config", path]) == 3
    told = capsys.readouterr().out
    assert (told.count(": refused: "), told.count("what to do: is the daemon running,")) == (1, 1)
    assert "no schedd is known to ask" in told
    assert cli.main(["check", "--config", path, "--format", "json"]) == 3
    found = json.loads(capsys.readouterr().out)
    queries = [f for f in found if f["source"].startswith("127.0.0.1")]
    assert {(q["ok"], q["problem"]) for q in queries} == {(False, "refused")}
    assert all("is the daemon running" in q["remedy"] for q in queries)
    assert {f["kind"]: f["ok"] for f in found if f not in queries} == {
        "start": True,
        "open": True,
        "listen": True,
        "demand": False,
    }
    assert not (tmp_path / "ledger.sqlite").exists()


def test_check_of_the_directory_of_tokens(tmp_path: Path) -> None:
    """HTCondor is silent about one that it cannot read, and is denied later."""

    def checked(path: str) -> check.CheckResult:
        config = Config.model_validate(
            {
                "pool": {"token_directory": path},
                "http": {"listen": "127.0.0.1:0"},
                "ledger": {"url": f"{tmp_path}/ledger.sqlite"},
            }
        )
        found = [
            one
            for one in check.check_own(config, Export(Traces()))
            if one.status.kind == "token_directory"
        ]
        assert len(found) == 1
        return found[0]

    assert checked(str(tmp_path)).status.up
    missing = checked(f"{tmp_path}/none")
    assert (missing.status.up, missing.status.problem) == (False, "no_directory")
    assert missing.status.detail == "No such file or directory"
    assert "correct the path in the configuration" in missing.remedy


def test_check_of_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is none, of those that the service's variable names; another answer than none."""
    from gwmond.commands import check  # noqa: PLC0415

    parts = (b'{"alg": "HS256"}', b'{"iss": "pool.test"}', b"signature")
    token = ".".join(urlsafe_b64encode(part).decode().rstrip("=") for part in parts)
    for name, text in {
        "good": f"# comment\n{token}\n",
        "empty": "\n",
        ".hidden": "x",
        "cut": token[:30],
        "garbage": f"{token}\nno.token.here",
    }.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("_CONDOR_SEC_TOKEN_DIRECTORY", str(tmp_path))
    found = check.check_own(
        Config.model_validate({"ledger": {"url": f"{tmp_path}/l.sqlite"}}), Export(Traces())
    )
    wrong = [one.status for one in found if one.status.kind == "token"]
    assert [status.source for status in wrong] == [f"{tmp_path}/cut", f"{tmp_path}/garbage"]
    assert {status.problem for status in wrong} == {"bad_token"}


def test_check_of_this_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Check tells of a directory that is missing and of a port that is taken."""
    listener = bind(Http(listen="127.0.0.1:0"))
    config = Config.model_validate(
        {
            "ledger": {"url": f"{tmp_path}/missing/ledger.sqlite"},
            "http": {"listen": f"127.0.0.1:{listener.getsockname()[1]}"},
        }
    )
    verdicts = check.check_own(config, Export(Traces()))
    found = {verdict.status.source: verdict.status for verdict in verdicts}
    listener.close()
    assert (found["ledger"].up, found["ledger"].problem) == (False, "no_ledger")
    assert (found["http"].up, found["http"].problem) == (False, "port")
    assert found["ledger"].detail == f"there is no directory {tmp_path}/missing"
    (tmp_path / "ledger.sqlite").write_bytes(b"no database" * 1000)
    config = Config.model_validate({"ledger": {"url": f"{tmp_path}/ledger.sqlite"}})
    monkeypatch.setattr(types, "RUNTIME_DIRECTORY", tmp_path / "run")
    token = {"listen": "127.0.0.1:0", "auth_token_file": f"{tmp_path}/run/token"}
    (*_, later) = check.check_own(
        config.model_copy(update={"http": Http.model_validate(token)}), Export(Traces())
    )
    assert (later.status.kind, later.status.up) == ("auth_token_file", True)
    assert "made by gwmond.service" in later.status.detail
    (ledger,) = (
        of for of in check.check_own(config, Export(Traces())) if of.status.source == "ledger"
    )
    assert (ledger.status.problem, ledger.remedy) == ("corrupt", KEEP)
    common.show(check.report([*verdicts, check.with_remedy(status("[/]", "slots"))]), "table")
    said = capsys.readouterr().out
    assert "what to do: make the directory of [ledger] url" in said
    assert "[/]" in said


def test_check_before_the_first_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A ledger that the first start makes is no failure, though it is said; one that it cannot
    make is."""
    state, closed = tmp_path / "state", tmp_path / "closed"
    monkeypatch.setattr(check, "STATE_DIRECTORY", state)
    verdict = check.check_ledger(f"sqlite:///{state}/ledger.sqlite")
    absent = verdict.status
    assert absent.up
    assert absent.detail.startswith(f"{state}/ledger.sqlite: not yet there; made at the first")
    assert "gwmond.service" in absent.detail
    state.mkdir()
    empty = check.check_ledger(f"sqlite:///{state}/ledger.sqlite").status
    assert (empty.up, empty.detail) == (True, absent.detail.partition(", its directory")[0])
    common.show(check.report([verdict]), "table")
    said = capsys.readouterr().out
    assert "not yet" in said.partition("\n\n")[0]
    assert f"All is well.\n\nnote: ledger: {absent.detail}" in said
    closed.mkdir(0o555)
    with unprivileged():
        other = check.check_ledger(f"sqlite:///{closed}/ledger.sqlite").status
    assert (other.problem, other.detail) == ("no_ledger", f"{closed} cannot be written")
    missing = check.check_ledger(f"{state}/a/b")
    assert missing.status.problem == "no_ledger"
    assert missing.remedy.startswith("make the directory of [ledger] url")
    Ledger.open(f"{state}/ledger.sqlite").close()
    there = check.check_ledger(f"{state}/ledger.sqlite").status
    assert (there.up, there.detail) == (True, "")


def test_check_of_a_ledger_has_its_own_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One remedy: that of what is wrong, which may not be that the directory is missing."""
    long, cut = f"{tmp_path}/{'x' * 300}", tmp_path / "cut.sqlite"
    cut.write_bytes(b"no database" * 1000)
    kept = tmp_path / "kept.sqlite"
    Ledger.open(str(kept)).close()
    kept.chmod(0)
    server = "postgresql://user:secretpw@127.0.0.1:1/x"
    with unprivileged():
        found = {
            url: check.check_ledger(url)
            for url in (str(tmp_path), "sqlite:///:memory:", long, str(cut), str(kept), server)
        }
    assert [of.status.problem for of in found.values()] == [
        *("location", "location", "location", "corrupt", "readonly", "unreachable")
    ]
    assert found[str(tmp_path)].status.detail == f"{tmp_path}: is a directory"
    assert found[str(tmp_path)].remedy == "Name a file in a directory."
    assert found[long].remedy == "Give a shorter path."
    assert "run the command as root" in found[str(kept)].remedy
    assert "database, user and password" in found[server].remedy
    assert found[server].status.detail.startswith("postgresql://user:***@127.0.0.1:1/x: ")
    common.show(check.report([*found.values()]), "table")
    said = " ".join(capsys.readouterr().out.split())
    assert said.count("what to do: ") == len(found)
    for of in found.values():
        assert of.remedy not in of.status.detail
        assert said.count(f"{of.status.detail} what to do: {of.remedy}") == 1


def test_check_names_the_longest_failure(capsys: pytest.CaptureFixture[str]) -> None:
    """The query of a daemon that waited is named, and those that came too late say so."""

    def late(kind: str, seconds: float, problem: ProblemName, detail: str) -> check.CheckResult:
        return check.with_remedy(
            Status("ap1", kind, False, seconds, 0, 0, None, 0, 0, problem, detail)
        )

    hurried = (
        ProblemName.NO_TIME_LEFT,
        "the deadline was used up: ap1 (demand): no answer within 20 s",
    )
    late_ones = [
        late("demand", 20.4, ProblemName.TIMEOUT, "no answer within 20 s"),
        late("epochs", 1.1, *hurried),
        late("history", 1.0, *hurried),
    ]
    common.show(check.report(late_ones), "table")
    said = capsys.readouterr().out.partition("\n\n")[2]
    assert said.startswith("ap1: timeout: no answer within 20 s\n")
    assert f"\nap1: no_time_left: {hurried[1]}\n" in said
    assert said.count("what to do") == 2


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (["record", "x.zip", "--every", "5"], "--every: write a duration"),
        (["record", "/no/such/place.zip"], "/no/such/place.zip: cannot write it"),
        (["record", __file__], f"{__file__}: it exists: name another file, or replace it with"),
        (["demo", "--speed", "0"], "--speed: replay.speed: must be more than 0"),
        (["demo", "--recording", "/no/such.zip"], "--recording: /no/such.zip: cannot read it"),
        (["demo", "--recording", __file__], f"--recording: {__file__}: not a recording made by"),
    ],
)
def test_bad_options_of_commands(
    given: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a command cannot use is exit code 2, with a sentence, before it promises anything."""
    assert cli.main(given) == 2
    said = capsys.readouterr()
    assert error in said.err
    assert said.out == ""


def test_recording_of_a_recording(
    file: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A replayed pool is not recorded again."""
    assert cli.main(["record", "x.zip", "--config", file("[replay]\nfile = 'y.zip'")]) == 2
    assert "replay.file" in capsys.readouterr().err


def test_run_where_the_port_is_taken(
    file: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Run fails with exit code 1 when it cannot listen, and names the option."""
    listener = bind(Http(listen="127.0.0.1:0"))
    listen = f"127.0.0.1:{listener.getsockname()[1]}"
    assert cli.main(["run", "--config", file(f"[http]\nlisten = '{listen}'")]) == 1
    listener.close()
    assert f"gwmond: http.listen: {listen} is in use" in capsys.readouterr().err


def test_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C ends with the exit code that shells expect, and no traceback."""

    def interrupt(_config: Any, _arguments: Any) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("gwmond.commands.sites.execute", interrupt)
    assert cli.main(["sites"]) == 130


def test_interrupted_while_it_starts() -> None:
    """The same while commands are loaded, which takes most of the first second."""
    script = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # ignored in a shell's "&"
        "class Interrupt:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'gwmond.commands.sites': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "from gwmond import cli\nsys.exit(cli.main(['sites']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_reader_that_has_seen_enough() -> None:
    """When the reader of the output goes away there is neither traceback nor failure."""
    script = (
        "import sys\nfrom gwmond import cli\nfrom gwmond.commands import sites\n"
        "def flood(config, arguments):\n"
        "    while True: sys.stdout.write('x' * 65536)\n"
        "sites.execute = flood\nsys.exit(cli.main(['sites']))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.read(10) == b"x" * 10
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    assert process.wait(120) == 0


def test_as_a_module() -> None:
    """python -m gwmond is gwmond."""
    done = subprocess.run(
        [sys.executable, "-m", "gwmond", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"gwmond {__version__}\n"


def test_an_old_python_gets_one_sentence() -> None:
    """What is read first is such that Python 3.9 can read it, and says what is needed."""
    first = Path(cli.__file__).parent / "__init__.py"
    ast.parse(first.read_text(), feature_version=(3, 9))
    old = "import sys; sys.version_info = (3, 9, 18); import gwmond.cli"
    done = subprocess.run([sys.executable, "-c", old], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert re.fullmatch(
        r"gwmond: Python 3.11 or later is needed, and \S+ is 3.9: the README says .*\n", done.stderr
    )


def test_check_of_the_paths_of_a_factory(tmp_path: Path) -> None:
    """What run refuses, or goes without, check tells; each with a remedy."""
    plain, good = tmp_path / "plain", tmp_path / "good"
    plain.touch()
    good.mkdir()

    def found(**factory: Any) -> list[tuple[str, str | None]]:
        config = Config.model_validate({"factory": factory})
        verdicts = check.check_places(config)
        assert list(tmp_path.rglob("*.new")) == []
        return [(verdict.status.kind, verdict.status.problem) for verdict in verdicts]

    assert found(directories=[str(good)], central_logs=[str(good)]) == [
        ("directories", None),
        ("central_logs", None),
    ]
    assert found(directories=[str(tmp_path / "no")]) == [("directories", "no_directory")]
    assert found(central_logs=[str(plain)]) == [("central_logs", "no_directory")]
    assert found(log_socket=str(plain)) == [("log_socket", "place")]
    assert found(log_socket=str(tmp_path / "no" / "socket")) == [("log_socket", "place")]
    assert found(log_socket=str(good / "socket")) == [("log_socket", None)]


def test_a_ledger_without_a_slash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A mere name is that of a file in this directory."""
    monkeypatch.chdir(tmp_path)
    assert cli.main(["ledger", "stats", "--ledger", "k2.sqlite"]) == 1
    assert f"ledger {tmp_path}/k2.sqlite: does not exist" in capsys.readouterr().err
    Ledger.open(f"{tmp_path}/k2.sqlite").close()
    assert cli.main(["ledger", "stats", "--ledger", "k2.sqlite"]) == 0


def test_a_ledger_that_is_a_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["report", "--ledger", str(tmp_path)]) == 1
    assert "is a directory" in capsys.readouterr().err
