"""A real GlideinWMS: factory, frontend and glideins that run real jobs, in a machine of its own.

Three pools of HTCondor (``etc/*.conf``): the factory's (``wms``), the users' (``user``), and that
of the sites' batch system (``site``), whose jobs are the glideins. Files are where RPMs have them.
What is not as elsewhere: all is on one host; loops take ten seconds; glideins retire early, give up
sooner when idle, and their ads live for 150 seconds (``SOONER``, ``etc/loopback.sh``).
"""

from __future__ import annotations

import base64
import os
import re
import secrets
import shutil
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.glideinwms import source
from tests.glideinwms.machine import Machine
from tests.pool.sandbox import PATIENCE_S, Process, wait_until

COLLECTORS = {"user": "127.0.0.1:9618", "wms": "127.0.0.1:9718", "site": "127.0.0.1:9818"}
SCHEDD, FACTORY_SCHEDD = "ap1@user.gwms.test", "factory@wms.gwms.test"
FACTORY, FRONTEND = "/var/lib/gwms-factory", "/var/lib/gwms-frontend"
#: Where pilots' output and the factory's logs of them are.
CLIENT_LOGS = "/var/log/gwms-factory/client"
_ETC = Path(__file__).parent / "etc"
_ROOT = Path(__file__).parents[2]
_CODE = "/usr/lib/python3/dist-packages/glideinwms"
_HOMES = {"gfactory": FACTORY, "frontend": FRONTEND}

#: Changes of GlideinWMS's source: file, what is there, what replaces it.
#: The factory's parser of event logs compares bytes with texts since an event 028 follows each
#: (GlideinWMS issues 646 and 649): no pilot ever completes, and there are no completed_jobs logs.
MENDED = (
    "lib/condorLogParser.py",
    "    # keep the old status unless you really want to change\n",
    "    old_status, new_status = (\n"
    "        s.decode() if isinstance(s, bytes) else s for s in (old_status, new_status)\n    )\n",
)
#: What takes too long for a test. A glidein lives for ten minutes at least. It looks whether it is
#: to end for want of jobs when it updates its ads, every five minutes. The same time is the
#: resolution of the factory's statistics.
SOONER = (
    ("creation/web_base/condor_startup.sh", "\nmin_glidein=600\n", "\nmin_glidein=30\n"),
    (
        "creation/web_base/condor_config",
        "\nUPDATE_INTERVAL = $RANDOM_INTEGER(270, 370",
        "\nUPDATE_INTERVAL = $RANDOM_INTEGER(45, 55",
    ),
    (
        "creation/web_base/condor_config",
        "\nMASTER_UPDATE_INTERVAL = $RANDOM_INTEGER(270, 330",
        "\nMASTER_UPDATE_INTERVAL = $RANDOM_INTEGER(45, 55",
    ),
    ("factory/glideFactoryMonitoring.py", "self.rrd_step = 300", "self.rrd_step = 10"),
)


@dataclass(frozen=True)
class Entry:
    """An entry of the factory, which has a queue of the sites' batch system."""

    name: str
    cores: int = 1
    #: glideins at most
    limit: int = 10
    queue: str = "A"
    #: after this many seconds a glidein takes no more jobs; None: after 47 minutes
    retire_s: int | None = None
    broken: bool = False
    #: pilots send output while the next job runs, by the lines of docs/overlap.md
    overlap: bool = False

    def xml(self) -> str:
        """It in the factory's configuration."""
        life = ("GLIDEIN_Max_Walltime", 3600)
        if self.retire_s is not None:
            life = ("GLIDEIN_Retire_Time", self.retire_s)
        script = (
            '<file absfname="/gwms/etc/broken.sh" const="True" executable="True" period="0" '
            'untar="False" wrapper="False"/>'
        )
        return _filled(
            "entry.xml",
            NAME=self.name,
            CPUS=self.cores,
            LAYOUT="fixed" if self.cores == 1 else "partitionable",
            GLIDEINS=self.limit,
            QUEUE=self.queue,
            MEMORY=1500 * self.cores,
            LIFE=f'name="{life[0]}" value="{life[1]}"',
            FILES=script if self.broken else "".join(_overlap_lines("file")) * self.overlap,
            ATTRS="".join(_overlap_lines("attr")) * self.overlap,
        )


@dataclass(frozen=True)
class Group:
    """A group of the frontend; jobs say with ``WantGroup`` that they are its."""

    name: str
    #: of the factory's entries
    entries: str = "True"
    #: glideins of an entry, and glideins of the group from which on half is requested
    most: int = 10
    curb: int = 30
    #: what START has besides
    start: str = "True"

    def xml(self) -> str:
        """It in the frontend's configuration."""
        return _filled(
            "group.xml",
            NAME=self.name,
            FACTORY_QUERY=self.entries,
            MAX=self.most,
            CURB=self.curb,
            START=self.start,
        )


def _overlap_lines(element: str) -> list[str]:
    """What docs/overlap.md adds to an entry; here all its pilots are to have it."""
    text = (_ROOT / "docs/overlap.md").read_text().replace('value="50"', 'value="100"')
    return re.findall(rf"<{element} [^`]*?/>", text)


def _filled(template: str, **values: object) -> str:
    text = (_ETC / template).read_text()
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    return text


class GlideinWMS:
    """One; a context manager. ``start_*`` begin its parts, everything ends with the machine."""

    def __init__(
        self, entries: Sequence[Entry], groups: Sequence[Group], *, mended: bool = True
    ) -> None:
        """``mended``: without the defect because of which there are no completed_jobs logs."""
        self.entries, self.groups = entries, groups
        self._source = source.found()
        self._changes = (*SOONER, *((MENDED,) if mended else ()))
        self.machine = Machine()
        self._started: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        try:
            self.machine.start()
            self._install()
            self._start_pools()
            self.start_factory()
            self.start_frontend()
        except BaseException as error:
            error.add_note(self.logs())
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.machine.stop()
        for process in self._started.values():
            process.wait(PATIENCE_S)

    def logs(self) -> str:
        """The ends of what its programs have printed."""
        texts = []
        for log in sorted(self.machine.file("gwms").glob("*.out")):
            texts.append(f"{log.name}: {log.read_text(errors='replace')[-1500:]}")
        return "\n".join(texts)

    # -- its parts

    def _install(self) -> None:
        code = self.machine.file(_CODE)
        source.unpack(self._source, code)
        for name, before, after in self._changes:
            text = (code / name).read_text()
            assert before in text, f"{name} has no {before!r}"
            (code / name).write_text(text.replace(before, after, 1))
        etc = self.machine.file("gwms/etc")
        etc.mkdir(parents=True)
        for path in _ETC.iterdir():
            (etc / path.name).write_bytes(path.read_bytes())
            (etc / path.name).chmod(0o755 if path.suffix == ".sh" else 0o644)
        for path in (_ROOT / "etc/condor").glob("overlap.*"):
            shutil.copy(path, self.machine.file("/etc/gwms-factory"))
        self.write_configuration()
        self._sh(_DIRECTORIES)
        self._make_keys()
        self._sh(_OWNERS)

    def write_configuration(self) -> None:
        """Write the configurations of factory and frontend anew."""
        for name, values in (
            ("factory", {"ENTRIES": "\n".join(entry.xml() for entry in self.entries)}),
            ("frontend", {"GROUPS": "\n".join(group.xml() for group in self.groups)}),
        ):
            xml = "glideinWMS.xml" if name == "factory" else "frontend.xml"
            path = self.machine.file(f"/etc/gwms-{name}/{xml}")
            path.write_text(_filled(f"{name}.xml", **values))

    def _make_keys(self) -> None:
        """A signing key for the three pools; the frontend has one for the glideins' tokens."""
        keys = self.machine.file("gwms/user/passwords.d")
        for name in ("POOL", "FRONTEND"):
            self._secret(keys / name, base64.b64encode(secrets.token_bytes(36)))
        for pool in ("wms", "site"):
            self._secret(
                self.machine.file(f"gwms/{pool}/passwords.d/POOL"), (keys / "POOL").read_bytes()
            )
        own = self.machine.file(FRONTEND)
        self._secret(own / "passwords.d/FRONTEND", (keys / "FRONTEND").read_bytes())
        tokens = [
            ("wms", "gfactory", f"{FACTORY}/.condor/tokens.d/gfactory"),
            ("wms", "vofrontend_service", f"{FRONTEND}/.condor/tokens.d/frontend"),
            ("user", "scitoken", f"{FRONTEND}/scitoken"),
            *((pool, "condor", f"/gwms/{pool}/tokens.d/condor") for pool in COLLECTORS),
        ]
        for pool, who, path in tokens:
            make = ["condor_token_create", "-identity", f"{who}@gwms.test"]
            self._secret(self.machine.file(path), self.run("root", pool, *make).encode())

    def _secret(self, path: Path, content: bytes) -> None:
        path.touch(mode=0o600)
        path.write_bytes(content)

    def _start_pools(self) -> None:
        for pool in COLLECTORS:
            self._spawn(pool, "root", pool, "condor_master", "-f")
        web = ("python3", "-m", "http.server", "--bind", "127.0.0.1", "--directory", "/gwms/www")
        self._spawn("web", "frontend", "user", *web, "8080")
        for pool, kind in (("wms", "Scheduler"), ("user", "Scheduler"), ("site", "Machine")):
            self._wait_for_ad(pool, kind)

    def start_factory(self) -> None:
        """Configure and start the factory."""
        reconfig = (f"{_CODE}/creation/reconfig_glidein", "-force_delete", "-xml")
        xml = "/etc/gwms-factory/glideinWMS.xml"
        work = f"{FACTORY}/work-dir"
        self._serve("factory", "gfactory", "wms", work, (*reconfig, xml), "glideFactory.py")
        self._wait_for_ad("wms", "glidefactory")

    def start_frontend(self) -> None:
        """Configure and start the frontend."""
        reconfig = (
            f"{_CODE}/creation/reconfig_frontend",
            "-xml",
            "/etc/gwms-frontend/frontend.xml",
        )
        work = f"{FRONTEND}/vofrontend"
        self._serve("frontend", "frontend", "user", work, reconfig, "glideinFrontend.py")
        self._wait_for_ad("wms", "glideclient")

    def reconfigure_frontend(self, groups: Sequence[Group]) -> None:
        """Stop the frontend, give it other groups, and start it: as its administrator does."""
        self.groups = groups
        self.write_configuration()
        for process in self._of_frontend():
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGTERM)
        wait_until("the frontend's end", lambda: not self._of_frontend(), pause=0.5)
        self.start_frontend()

    def _of_frontend(self) -> list[Process]:
        """Its processes, but for those that are about to be started."""
        programs = f"{_CODE}/frontend/"
        return [
            process
            for process in self.machine.processes()
            if process.argv[0].endswith("python3") and any(programs in a for a in process.argv)
        ]

    def _serve(
        self, name: str, user: str, pool: str, work: str, reconfig: Sequence[str], program: str
    ) -> None:
        self.run(user, pool, "python3", *reconfig, "-update_scripts", "yes", cwd=work)
        self._spawn(name, user, pool, "python3", f"{_CODE}/{name}/{program}", work, cwd=work)

    def _wait_for_ad(self, pool: str, kind: str) -> None:
        query = ("condor_status", "-any", "-constraint", f'MyType=="{kind}"', "-af", "Name")
        wait_until(
            f"a {kind} in pool {pool}",
            lambda: self.run("root", pool, *query, check=False).strip(),
            pause=0.5,
        )

    # -- commands in it

    def _as(self, user: str, pool: str, command: Sequence[str], cwd: str) -> list[str]:
        home = _HOMES.get(user, f"/gwms/home/{user}" if user != "root" else "/root")
        inside = self.machine.as_user(user, pool, command, home)
        return ["env", "-C", cwd or "/", *inside]

    def run(self, user: str, pool: str, *command: str, cwd: str = "", check: bool = True) -> str:
        """What a command prints that a user runs, with the configuration of a pool."""
        done = self.machine.run(self._as(user, pool, command, cwd), {})
        if check and done.returncode:
            raise RuntimeError(
                f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"[-4000:]
            )
        return done.stdout

    def _sh(self, script: str) -> None:
        done = self.machine.run(["bash", "-euc", script], {})
        assert done.returncode == 0, done.stderr

    def _spawn(self, name: str, user: str, pool: str, *command: str, cwd: str = "") -> None:
        inside = ["setsid", *self._as(user, pool, command, cwd)]
        with (self.machine.file("gwms") / f"{name}.out").open("ab") as log:
            self._started[name] = self.machine.spawn(inside, {}, log)

    # -- what tests do with it

    def submit(self, user: str, group: str, seconds: int, *lines: str, count: int = 1) -> list[str]:
        """Submit jobs for a group that sleep so long; their ids (CLUSTER.PROC)."""
        text = "\n".join(
            (
                "executable = /bin/sh",
                "transfer_executable = false",
                f"arguments = \"-c 'sleep {seconds}; exit ${{EXIT:-0}}'\"",
                "should_transfer_files = YES",
                "when_to_transfer_output = ON_EXIT",
                f'+WantGroup = "{group}"',
                *lines,
                f"queue {count}\n",
            )
        )
        home = f"/gwms/home/{user}"
        path = self.machine.file(home) / f"{secrets.token_hex(4)}.sub"
        path.write_text(text)
        command = ("condor_submit", "-terse", f"{home}/{path.name}")
        told = self.run(user, "user", *command, cwd=home)
        cluster = told.split(".")[0]
        return [f"{cluster}.{process}" for process in range(count)]

    def ads(self, user: str, pool: str, *command: str) -> list[dict[str, str]]:
        """The ads that condor_q, condor_status or condor_history prints (``-long`` is added)."""
        text = self.run(user, pool, *command, "-long")
        ads = []
        for block in re.split(r"\n\s*\n", text):
            pairs = (line.partition(" = ") for line in block.splitlines() if " = " in line)
            ad = {name: value.strip('"') for name, _, value in pairs}
            if ad:
                ads.append(ad)
        return ads

    def downtime(self, command: str, entry: str) -> None:
        """``down`` or ``up``, as the factory's operator does."""
        tool = f"{_CODE}/factory/manageFactoryDowntimes.py"
        arguments = ("-dir", ".", "-cmd", command, "-entry", entry)
        self.run("gfactory", "wms", "python3", tool, *arguments, cwd=f"{FACTORY}/work-dir")

    def analyze_entries(self) -> str:
        """What GlideinWMS's tool of that name prints of the last two hours."""
        tool = f"{_CODE}/factory/tools/analyze_entries"
        words = ("--source", f"{FACTORY}/work-dir", "-x", "2")
        return self.run("gfactory", "wms", "python3", tool, *words, check=False)

    def crash(self, name: str) -> None:
        """Kill all of a glidein (its GLIDEIN_MASTER_NAME) at once, as a node's end does."""
        host = f"MASTER_NAME = {name.partition('@')[0]}\n"
        (config,) = (
            path
            for path in self.machine.file("gwms/site/execute").glob("dir_*/glide_*/condor_config")
            if host in path.read_text(errors="replace")
        )
        known = {process.pid: process for process in self.machine.processes()}
        glidein = f"/{config.parent.name}/condor_config"
        first = next(p for p in known.values() if p.condor_config.endswith(glidein))
        # Up to the starter of the site: jobs' starters are the glidein's own.
        while (above := known[first.parent]).condor_config.endswith(glidein) or (
            "starter" not in above.argv[0]
        ):
            first = above
        doomed = [first.pid]
        for pid in doomed:  # grows
            doomed += [p.pid for p in known.values() if p.parent == pid]
        for pid in doomed:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


_DIRECTORIES = f"""
for p in wms user site; do
    mkdir -p /gwms/$p/run /gwms/$p/log /gwms/$p/lock /gwms/$p/spool /gwms/$p/execute
    mkdir -p /gwms/$p/passwords.d /gwms/$p/tokens.d
    chown condor:condor /gwms/$p /gwms/$p/run /gwms/$p/log /gwms/$p/lock /gwms/$p/spool
    chmod 1777 /gwms/$p/log; chmod 755 /gwms/$p/execute
    chmod 700 /gwms/$p/passwords.d /gwms/$p/tokens.d
    chown condor:condor /gwms/$p/execute
done
mkdir -p /gwms/js /gwms/www; : >/gwms/js/javascriptrrd.wlibs.js
cd {FACTORY}; mkdir -p work-dir/lock web-area/stage client-proxies/user_frontend server-credentials
mkdir -p web-area/monitor/lock web-area/monitor/jslibs web-area/monitor/total .condor/tokens.d
mkdir -p /var/log/gwms-factory/server/factory {CLIENT_LOGS}/user_frontend
ln -s {FACTORY}/web-area/monitor work-dir/monitor; ln -s /var/log/gwms-factory work-dir/log
cd {FRONTEND}; mkdir -p vofrontend/lock web-area/stage tokens.d passwords.d .condor/tokens.d
mkdir -p web-area/monitor/lock web-area/monitor/jslibs web-area/monitor/total
mkdir -p /var/log/gwms-frontend/frontend
ln -s {FRONTEND}/web-area/monitor vofrontend/monitor
ln -s {FACTORY}/web-area /gwms/www/factory; ln -s {FRONTEND}/web-area /gwms/www/vofrontend
chmod 700 {FACTORY}/client-proxies/user_frontend passwords.d
for u in alice bob; do mkdir -p /gwms/home/$u; chown $u:$u /gwms/home/$u; done
"""
_OWNERS = f"""
chown -R gfactory:gfactory {FACTORY} /var/log/gwms-factory /etc/gwms-factory
chown -R frontend:frontend {FRONTEND} /var/log/gwms-frontend /etc/gwms-frontend
"""
