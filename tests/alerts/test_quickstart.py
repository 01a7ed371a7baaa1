"""docs/quickstart.md on a machine that has nothing of gwmond: its commands are run as they stand.

Only places, ports and waiting times are others.  The pool is real, and answers only who has a
token; a stand-in for systemd notes what it is asked to run, and the test runs that.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.daemon.scene import Scene
from tests.packaging.built import REPOSITORY, copy_of_repository
from tests.pool.condor import CondorPool
from tests.pool.ports import free_port
from tests.pool.prometheus import Store
from tests.pool.tokens import TOKEN_POOL, make_key
from tests.systemd.manager import Manager

PAGE = (REPOSITORY / "docs/quickstart.md").read_text()
SITE = "T2_Starved"
PATIENCE_S = 300
_NOTES = (
    '#!/bin/sh\nfor word in "$(basename "$0")" "$@"; do printf "%s\\0" "$word"; done >"$NOTED"\n'
)


class Documented(Store):
    """A Prometheus that is started as the page says."""

    def __init__(self) -> None:
        super().__init__("prometheus", "/-/ready")

    close = Store.stop

    def begin(self, command: list[str]) -> None:
        self._args += [*command[1:], "--log.level=warn", "--rules.alert.resend-delay=1s"]
        self.start()


class Reader:
    """Somebody who does what the page says; ``done`` are the headings whose commands were run."""

    def __init__(self, directory: Path, pool: CondorPool, prometheus: Store) -> None:
        self.directory, self.pool = directory, pool
        self.repository = copy_of_repository(directory / "repository")
        self.port = free_port()
        self.done: list[str] = []
        self._others = {
            "/opt/gwmond": str(directory / "opt"),
            "/etc/": f"{directory}/etc/",
            "/var/lib/": f"{directory}/var/",
            "cm.example.org": pool.collector,
            "127.0.0.1:9818": f"127.0.0.1:{self.port}",
            "127.0.0.1:19090": prometheus.listen,
            "for: 1m": "for: 2s",
        }
        self._noted = directory / "noted"
        programs = directory / "programs"
        programs.mkdir()
        for name in ("systemd-run", "systemctl"):
            (programs / name).write_text(_NOTES)
            (programs / name).chmod(0o755)
        self._env = {
            **{name: os.environ[name] for name in ("PIP_INDEX_URL",) if name in os.environ},
            "PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin:{Path(sys.executable).parent}",
            "HOME": str(directory),
            "CONDOR_CONFIG": "ONLY_ENV",
            "NOTED": str(self._noted),
            "COLUMNS": "200",
            "PIP_CACHE_DIR": str(Path.home() / ".cache/pip"),
            "PIP_NO_COMPILE": "1",  # little of what is installed is used
        }

    def commands(self, heading: str) -> str:
        """The commands below a heading, with the test's places."""
        text = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
        found = "".join(re.findall(r"^    (.*\n)", text, re.MULTILINE))
        assert found, heading
        self.done.append(heading)
        for theirs, ours in self._others.items():
            found = found.replace(theirs, ours)
        self._env |= dict(re.findall(r"^export (\w+)=(.*)$", found, re.MULTILINE))
        return found

    def run(self, commands: str, *, fails: bool = False) -> str:
        """Run commands; what they print."""
        ended = subprocess.run(
            ["bash", "-ec", commands],
            cwd=self.repository,
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        assert (ended.returncode != 0) is fails, f"{commands}\n{ended.stdout}"
        return ended.stdout

    def noted(self) -> tuple[dict[str, str], list[str]]:
        """Options and command of what systemd was asked last."""
        words = self._noted.read_text().split("\0")[:-1]
        at = next((n for n, word in enumerate(words[1:], 1) if not word.startswith("--")), 1)
        options = dict(word[2:].split("=", 1) for word in words[1:at])
        return options, words[at:]

    def start(self, manager: Manager) -> None:
        """Start gwmond as systemd would, with the protocol that the page asks for."""
        options, command = self.noted()
        assert options["service-type"] == "notify"
        name, _, value = options["setenv"].partition("=")
        manager.start(
            command=command,
            cwd="/",
            environ={"CONDOR_CONFIG": "ONLY_ENV", name: value},
        )
        manager.expect("READY=1")

    def edit(self, path: str, *pairs: tuple[str, str]) -> None:
        """Change a file of those that the page has installed: what is the test's alone."""
        file = self.directory / "etc" / path
        text = file.read_text()
        for theirs, ours in pairs:
            assert theirs in text, theirs
            text = text.replace(theirs, ours)
        file.write_text(text)


@pytest.fixture
def pool() -> Iterator[CondorPool]:
    """A pool whose collector answers only who has a token, or is of the pool."""
    with CondorPool(config=TOKEN_POOL) as pool:
        make_key(pool)
        yield pool


def test_the_quickstart(pool: CondorPool, tmp_path: Path) -> None:
    """Every command works, and what the page promises is there."""
    scene = Scene(pool)
    scene.resource(SITE, requested_idle=0, limits={"TotalGlideinsPerEntry": (1, 1)})
    scene.jobs(20, SITE)
    prometheus = Documented()
    reader = Reader(tmp_path, pool, prometheus)
    reader.run(reader.commands("Install"))
    reader.edit("gwmond/gwmond.toml", ('"15s"', '"8s"'), ('"12s"', '"7900ms"'))
    with (reader.directory / "etc/gwmond/gwmond.toml").open("a") as config:
        config.write(f'[http]\nlisten = "127.0.0.1:{reader.port}"\n')

    check = reader.commands("Check")
    assert "condor_token_create" in reader.run(check, fails=True)
    _token(reader)
    assert "FAIL" not in reader.run(check)

    (tmp_path / "run").mkdir()
    with closing(prometheus), Manager(tmp_path / "run", watchdog_s=60) as manager:
        reader.run(reader.commands("Run"))
        reader.start(manager)
        reader.run(_scrape(reader))
        prometheus.begin(reader.noted()[1])
        prometheus.wait_for('gwmond_source_up{job="gwmond"} == 1')

        starve, _, sites = reader.commands("Starve a site on purpose").partition(f"{tmp_path}/opt")
        reader.run(starve)
        reader.edit("gwmond/gwmond.toml", ("[site]\n", '[site]\ncollector_distrust = "1ms"\n'))
        signalled = ["kill", "--kill-whom=main", "--signal=HUP", "gwmond-trial"]
        assert reader.noted()[1] == signalled
        manager.signal(signal.SIGHUP)
        firing = f'ALERTS{{alertname="GwmondSiteStarved",alertstate="firing",site="{SITE}"}}'
        prometheus.wait_for(firing, timeout=PATIENCE_S)
        assert "count=1, limit=1" in reader.run(f"{tmp_path}/opt{sites}")

        _alert(reader.run(reader.commands("Read the alert")))
        asked = reader.run(reader.commands("Ask what the dashboard asks"))
        assert re.search(r'state="provisioning_bottleneck"} => [1-9]', asked)
        shown = reader.run(reader.commands("Read the page and the report"))
        assert "TotalGlideinsPerEntry (count=1, limit=1)" in shown
        report = shown.partition("</html>")[2]
        assert not list(tmp_path.glob("etc/prometheus")), "that is the host's own"
        assert re.search(rf"{SITE}\b.* [0-9]+\.[0-9]", report)
        reader.run(reader.commands("Stop"))
        assert reader.noted()[1] == ["stop", "gwmond-trial", "prometheus-trial"]
    assert set(reader.done) == set(re.findall(r"^## (.*)$", PAGE, re.MULTILINE))


def _token(reader: Reader) -> None:
    """Make the token on the central manager, and install it."""
    create, _, install = reader.commands("Get a token").partition("\n")
    mask, _, made_by = create.partition("; ")
    assert (mask.strip(" ("), made_by[-1]) == ("umask 077", ")")
    words = shlex.split(made_by[:-1])
    assert words[-2:] == [">", "gwmond.token"]
    made = reader.pool.tool(*words[:-2])
    assert made.returncode == 0, made.stderr
    (reader.repository / "gwmond.token").write_text(made.stdout)
    reader.run(install)


def _scrape(reader: Reader) -> str:
    """The commands that set Prometheus up; its times and the port are the test's."""
    file = f"{reader.directory}/etc/gwmond/prometheus/prometheus.yml"
    fast = (
        "s/scrape_interval: 30s/scrape_interval: 1s/",
        "s/evaluation_interval: 60s/evaluation_interval: 1s/",
        f"s/127.0.0.1:9818/127.0.0.1:{reader.port}/",
    )
    edits = " ".join(f"-e '{edit}'" for edit in fast)
    return reader.commands("Scrape").replace(
        "promtool check", f"sed -i {edits} {file}\npromtool check"
    )


def _alert(answer: str) -> None:
    """It names the site, the reason and the entry."""
    shown, _, rest = answer.partition('{"status"')
    assert 'alertname="GwmondSiteStarved", alertstate="firing"' in shown
    alerts = json.loads(f'{{"status"{rest}')["data"]["alerts"]
    (starved,) = (a for a in alerts if a["labels"]["alertname"] == "GwmondSiteStarved")
    assert starved["labels"]["site"] == SITE
    said = starved["annotations"]["description"]
    assert f"The main reason is frontend_limit at entry e-{SITE}." in said
    assert f"Limit hit: GlideClientLimitTotalGlideinsPerEntry (e-{SITE})." in said
    assert re.search(r"lost \d+\.\d\d core-hours .* that could run there now: \d+\.", said)
