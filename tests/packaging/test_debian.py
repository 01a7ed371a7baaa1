"""The Debian package, built, installed, upgraded, removed and purged under a real systemd."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ledger.release import RELEASES, unpack
from tests.packaging import debian
from tests.packaging.built import REPOSITORY, VERSION
from tests.systemd.machine import Booted

CONFIG = "/etc/gwmond/gwmond.toml"
LEDGER = "/var/lib/gwmond/ledger.sqlite"
NEXT = "999.0"
#: The version that made the ledger, which the service upgrades.
OLD = "0.1.0.dev0"
_GET = "import urllib.request as u; u.urlopen('http://127.0.0.1:9818/-/healthy')"
ANSWERS = ("python3", "-c", _GET)
#: A host on which HTCondor may not change the kernel, and does not wait to start a daemon again.
_CONDOR = (
    "NETWORK_INTERFACE = 127.0.0.1\nENABLE_KERNEL_TUNING = False\nMASTER_BACKOFF_CONSTANT = 1\n"
)
#: The next version: an example with one more line, and what says which version it is.
_NEXT = rf"""
set -eu
dpkg-deb -R "$1" /next
sed -i 's/^Version: .*/Version: {NEXT}/' /next/DEBIAN/control \
    /next/usr/lib/gwmond/lib/python3*/site-packages/gwmond-*.dist-info/METADATA
echo '# New in {NEXT}.' >>/next/etc/gwmond/gwmond.toml
dpkg-deb -Znone -b /next /out/next.deb
rm -rf /next
"""


@pytest.fixture(scope="module")
def root(dist: Path) -> Iterator[Path]:
    """A Debian with both packages in /out."""
    with debian.copy() as root:
        shutil.copytree(dist, root / "dist")
        shutil.copy(REPOSITORY / "packaging/deb.sh", root / "deb.sh")
        (root / "out").mkdir()
        debian.run(root, "/deb.sh", "/dist", "/out")
        (package,) = (root / "out").iterdir()
        package.rename(root / "out/gwmond.deb")
        debian.run(root, "bash", "-c", _NEXT, "next", "/out/gwmond.deb")
        yield root


def run(machine: Booted, *command: str) -> str:
    """What a command prints, which must succeed."""
    ended = machine.run("env", "DEBIAN_FRONTEND=noninteractive", *command)
    assert ended.returncode == 0, f"{command}\n{ended.stdout}{ended.stderr}"
    return ended.stdout


def expect_service(machine: Booted, version: str) -> None:
    """It runs as its user, in that version, and answers."""
    machine.wait_state("active", "running")
    (user,) = set(run(machine, "ps", "-o", "user=", "-p", str(machine.pid)).split())
    assert user == "gwmond"
    run(machine, *ANSWERS)
    started = f'"version": "{version}"'
    log = ("journalctl", "--output", "cat", f"_PID={machine.pid}")
    machine.wait_for(f"{started} in the log", lambda: started in run(machine, *log))


def expect_reports(machine: Booted) -> None:
    """The command of the package reads the service's ledger, which has what it had."""
    told = RELEASES / OLD / "accounted" / "site,category.csv"
    period = ("--from", "2023-11-14", "--to", "2023-11-17", "--format", "csv")
    report = ("gwmond", "report", "--config", CONFIG, "--by", "site,category", *period)
    # The first poll upgrades a ledger of before.
    machine.wait_for("a ledger that is upgraded", lambda: machine.run(*report).returncode == 0)
    assert run(machine, *report) == told.read_text()


def test_a_package_is_installed_upgraded_removed_and_purged(root: Path, tmp_path: Path) -> None:
    """User, unit and configuration come and go with it. The ledger stays, whatever happens."""
    with debian.boot(root) as machine:
        said = run(machine, "apt-get", "install", "-y", "/out/gwmond.deb")
        expect_service(machine, VERSION)
        assert run(machine, "systemctl", "is-enabled", "gwmond") == "enabled\n"
        assert "gwmond.toml" in run(machine, "dpkg-query", "-W", "-f", "${Conffiles}", "gwmond")
        modes = run(
            machine, "stat", "-c", "%a %U", CONFIG, "/etc/gwmond/tokens.d", "/var/lib/gwmond"
        )
        assert modes.splitlines() == ["644 root", "700 root", "700 gwmond"]
        assert run(machine, "gwmond", "--version") == f"gwmond {VERSION}\n"

        run(machine, "systemctl", "stop", "gwmond")
        shutil.copy(unpack(OLD, "accounted", tmp_path), root / "out/ledger")
        run(machine, "install", "-o", "gwmond", "-g", "gwmond", "-m", "640", "/out/ledger", LEDGER)
        run(machine, "sed", "-i", r's/^\([a-z]*_retention\) = .*/\1 = "99y"/', CONFIG)
        run(machine, "systemctl", "start", "gwmond")
        expect_service(machine, VERSION)
        expect_reports(machine)

        first = machine.pid
        said = run(
            machine,
            "apt-get",
            "install",
            "-y",
            "-o",
            "Dpkg::Options::=--force-confold",
            "/out/next.deb",
        )
        expect_service(machine, NEXT)
        assert machine.pid != first
        expect_reports(machine)
        assert 'pilots_retention = "99y"' in (root / CONFIG[1:]).read_text()
        assert f"# New in {NEXT}." in (root / f"{CONFIG[1:]}.dpkg-dist").read_text()

        said = run(machine, "apt-get", "remove", "-y", "gwmond")
        assert f"the ledger stays in {Path(LEDGER).parent}" in said
        assert machine.run("systemctl", "is-active", "gwmond").stdout == "inactive\n"
        assert (root / CONFIG[1:]).exists()
        assert not (root / "usr/lib/gwmond").exists()

        said = run(machine, "apt-get", "purge", "-y", "gwmond")
        assert f"the ledger stays in {Path(LEDGER).parent}" in said
        assert not (root / "etc/gwmond").exists()
        assert (root / LEDGER[1:]).exists()

        run(machine, "apt-get", "install", "-y", "/out/gwmond.deb")
        expect_service(machine, VERSION)
        assert "All sums up" in run(machine, "gwmond", "ledger", "check", "--config", CONFIG)


def test_condor_master_keeps_gwmond_running(root: Path) -> None:
    """As a daemon of DAEMON_LIST: started as its user, started again, stopped and started."""
    (root / "etc/condor/config.d/99-test.conf").write_text(_CONDOR)
    with debian.boot(root) as machine:
        if machine.run("gwmond", "--version").returncode:
            run(machine, "apt-get", "install", "-y", "/out/gwmond.deb")
        run(machine, "systemctl", "disable", "--now", "gwmond")
        shutil.copy(root / "usr/share/gwmond/condor/50-gwmond.conf", root / "etc/condor/config.d")
        run(machine, "systemctl", "start", "condor")

        def running(other: str = "") -> str:
            """The number of its process, once it is another one and answers."""

            def found() -> str:
                pid = machine.run("pgrep", "-o", "-u", "gwmond", "-f", "gwmond run").stdout.strip()
                return pid if pid != other and not machine.run(*ANSWERS).returncode else ""

            return machine.wait_for("gwmond", found)

        first = running()
        run(machine, "kill", "-KILL", first)
        second = running(first)
        run(machine, "condor_off", "-daemon", "gwmond")
        log = root / "var/log/condor/MasterLog"
        ended = f"The GWMOND (pid {second}) exited with status 0"
        machine.wait_for(ended, lambda: ended in log.read_text())
        run(machine, "condor_on", "-daemon", "gwmond")
        running(second)
        assert '"event": "started"' in run(machine, "journalctl", "-o", "cat", "-t", "gwmond")
        run(machine, "systemctl", "stop", "condor")


def test_a_container_runs_what_its_file_says(root: Path) -> None:
    """Its commands, in the Debian that its image begins with; the image itself is not built."""
    text = (REPOSITORY / "packaging/Containerfile").read_text()

    def words(instruction: str) -> list[str]:
        (found,) = re.findall(rf"^{instruction} (?:.*CMD )?(\[.*\])$", text, re.MULTILINE)
        return [str(word) for word in json.loads(found)]

    health, daemon = words("HEALTHCHECK"), words("ENTRYPOINT") + words("CMD")
    assert (root / "out/gwmond.deb").exists()
    with debian.boot(root) as machine:
        if machine.run("gwmond", "--version").returncode:
            run(machine, "apt-get", "install", "-y", "/out/gwmond.deb")
        run(machine, "systemctl", "disable", "--now", "gwmond")
        run(machine, "install", "-d", "-o", "gwmond", "-g", "gwmond", "/var/lib/gwmond")
        assert machine.run(*health).returncode == 1
        run(
            machine,
            "systemd-run",
            "--unit=container",
            "--uid=gwmond",
            "--remain-after-exit",
            *daemon,
        )
        machine.wait_for("health", lambda: machine.run(*health).returncode == 0)
        run(machine, "systemctl", "kill", "--kill-whom=main", "container")
        ended = ("systemctl", "show", "--property=SubState,ExecMainStatus", "container")
        machine.wait_for("the end", lambda: "SubState=exited" in run(machine, *ended))
        assert "ExecMainStatus=0\n" in run(machine, *ended)


def test_the_package_has_what_a_debian_expects(root: Path) -> None:
    """Manual pages, completion, examples and documents are where Debian has them."""
    listed = debian.run(root, "dpkg-deb", "-c", "/out/gwmond.deb")
    files = {line.split()[5][1:] for line in listed.splitlines()}
    assert {
        "/usr/bin/gwmond",
        "/usr/lib/systemd/system/gwmond.service",
        "/usr/lib/sysusers.d/gwmond.conf",
        "/usr/share/doc/gwmond/changelog.gz",
        "/usr/share/doc/gwmond/copyright",
        "/usr/share/doc/gwmond/install.md",
        "/usr/share/gwmond/condor/50-gwmond.conf",
        "/usr/share/gwmond/gwmond-path-transfer",
        "/usr/share/gwmond/prometheus/gwmond-alerts.yml",
        "/usr/share/man/man1/gwmond-report.1.gz",
        "/usr/share/man/man5/gwmond.toml.5.gz",
        "/usr/share/bash-completion/completions/gwmond",
        "/usr/share/zsh/vendor-completions/_gwmond",
        "/usr/share/gwmond/grafana/dashboards/gwmond-overview.json",
    } <= files
    places = ("/etc/gwmond/", "/usr/lib/gwmond/", "/usr/lib/systemd/", "/usr/lib/sysusers.d/")
    allowed = (*places, "/usr/share/", "/usr/bin/gwmond")
    assert not [name for name in files if not name.endswith("/") and not name.startswith(allowed)]
    depends = debian.run(root, "dpkg-deb", "-f", "/out/gwmond.deb", "Depends")
    assert re.search(r"python3 \(>= 3\.(\d+)\), python3 \(<< 3\.(?!\1)\d+\)", depends)
