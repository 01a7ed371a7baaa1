"""etc/gwmond-path-transfer alone: storages that fail, fill, hang and die (jobs: test_in_a_pool)."""

from __future__ import annotations

import ast
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import classad2
import pytest

from tests.path_transfer import PLUGIN, STORE

JOB = "ap1.example.org#7.0#1700000000"


class Node:
    """A job's directory on a node, and storages: three of file://, three of a plugin."""

    def __init__(self, place: Path) -> None:
        self.scratch, self.bin = place / "scratch", place / "bin"
        for folder in (self.scratch, self.bin, *(place / name for name in "abcxyz")):
            folder.mkdir()
        self.place, self.path = place, dict[str, str]()
        config = self.bin / "condor_config_val"
        config.write_text(f"#!/bin/sh\necho '{STORE}, {PLUGIN}, /not/there'\n")
        config.chmod(0o755)
        path = f"{self.bin}:{os.environ['PATH']}"
        self.env = {"PATH": path, "_CONDOR_JOB_AD": str(self.scratch / ".job.ad")}

    def url(self, letter: str) -> str:
        return f"{'file' if letter in 'abc' else 'store'}://{self.place / letter}/"

    def ad(self, tree: str, **more: object) -> None:
        """Write the job's ad; in `tree` letters stand for storages."""
        paths = "".join(self.url(one) if one in "abcxyz" else one for one in tree)
        values = {"GlobalJobId": JOB, "OutputDestination": "tree://PathTree", "PathTree": paths}
        ad = classad2.ClassAd({"PathTreeRetryFor": 0, **values, **more})
        (self.scratch / ".job.ad").write_text(ad.printOld())

    def write(self, name: str | bytes, content: bytes = b"content") -> Path:
        path = self.scratch / os.fsdecode(name)
        path.write_bytes(content)
        return path

    def command(self, names: Sequence[str | bytes], *options: str) -> list[str]:
        """The call that HTCondor makes for these outputs."""
        ads = []
        for name in map(os.fsdecode, names):
            ad = classad2.ClassAd({"LocalFileName": "L", "Url": "U"})
            text = repr(ad).replace("\n", " ")
            ads.append(
                text.replace('"L"', quoted(f"{self.scratch}/{name}")).replace(
                    '"U"', quoted(f"tree://PathTree/{name}")
                )
            )
        asked = self.scratch / ".tree.in"
        asked.write_text("\n".join(ads) + "\n", errors="surrogateescape")
        files = ["-infile", str(asked), "-outfile", str(self.scratch / ".tree.out")]
        return [sys.executable, str(PLUGIN), *files, *options]

    def send(self, *names: str | bytes, upload: bool = True) -> tuple[int, list[dict[str, Any]]]:
        """Send outputs: the plugin's status, and its ads as HTCondor reads them."""
        command = self.command(names, *["-upload"][: int(upload)])
        done = subprocess.run(
            command, env=self.env, cwd=self.scratch, capture_output=True, timeout=60, check=False
        )
        assert done.stderr == b""
        text = (self.scratch / ".tree.out").read_text(errors="replace")
        return done.returncode, [plain(ad) for ad in classad2.parseAds(text)]

    def run(self, *program: str) -> int:
        """Run a program as the job's executable does, without PATH as there: its status."""
        env = {"_CONDOR_JOB_AD": self.env["_CONDOR_JOB_AD"], **self.path}
        command = [str(PLUGIN), "run", *program]
        return subprocess.run(command, env=env, cwd=self.scratch, check=False).returncode

    def at(self, letter: str) -> dict[str, bytes]:
        """The files at a storage, hidden ones too; not the log, nor the faults."""
        files = (
            path for path in (self.place / letter).iterdir() if path.suffix or path.name[0] != "."
        )
        return {path.name: path.read_bytes() for path in files}

    def asked(self, letter: str) -> list[str]:
        """What the storage's plugin was asked for."""
        log = self.place / letter / ".log"
        return log.read_text().splitlines() if log.exists() else []

    def fault(self, letter: str, name: str, content: str = "") -> Path:
        path = self.place / letter / f".{name}"
        path.write_text(content)
        return path


def quoted(text: str) -> str:
    """A text as HTCondor writes it in the new syntax, whatever its bytes."""
    for plain, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\t", "\\t")):
        text = text.replace(plain, escaped)
    return f'"{text}"'


def plain(value: Any) -> Any:
    """Ads and lists of ads as dictionaries and lists."""
    if isinstance(value, Mapping) or hasattr(value, "items"):
        return {key: plain(one) for key, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list) else value


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def hops(ad: dict[str, Any]) -> list[tuple[str, bool]]:
    """The storages that were tried, by their letters, and whether they took the file."""
    told = ad["DeveloperData"]["Hops"]
    return [(hop["Waypoint"].rstrip("/")[-1], hop["Success"]) for hop in told]


def test_it_says_what_it_is() -> None:
    done = subprocess.run([PLUGIN, "-classad"], capture_output=True, text=True, check=True)
    (ad,) = classad2.parseAds(done.stdout)
    assert (ad["PluginType"], ad["SupportedMethods"]) == ("FileTransfer", "tree")
    assert (ad["MultipleFileSupport"], ad["ProtocolVersion"]) == (True, 2)


def test_it_runs_where_python_is_old() -> None:
    """Enterprise Linux 9 has Python 3.9; nothing but the standard library is imported."""
    tree = ast.parse(PLUGIN.read_text(), feature_version=(3, 9))
    roots = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    roots |= {
        one.name for node in ast.walk(tree) if isinstance(node, ast.Import) for one in node.names
    }
    assert {str(root).partition(".")[0] for root in roots} <= sys.stdlib_module_names
    made = (call.func for call in ast.walk(tree) if isinstance(call, ast.Call))
    typed = (one for func in made if isinstance(func, ast.Subscript) for one in ast.walk(func))
    assert not [one for one in typed if isinstance(one, ast.BitOr)]  # of Python 3.10, when it runs


@pytest.mark.parametrize("storage", ["a", "x"])
def test_an_output_is_delivered(node: Node, storage: str) -> None:
    node.ad(storage)
    node.write("out", b"\0data").chmod(0o640)
    status, (ad,) = node.send("out")
    assert status == 0
    assert node.at(storage) == {"out": b"\0data"}
    told = {key: ad[key] for key in ("TransferSuccess", "TransferFileBytes", "TransferUrl")}
    assert told == {
        "TransferSuccess": True,
        "TransferFileBytes": 5,
        "TransferUrl": "tree://PathTree/out",
    }
    data = ad["DeveloperData"]
    assert data["Waypoint"] == node.url(storage)
    assert data["Sha256"] == hashlib.sha256(b"\0data").hexdigest()
    assert hops(ad) == [(storage, True)]
    if storage == "a":
        assert (node.place / "a/out").stat().st_mode & 0o777 == 0o640


def test_where_a_path_fails_the_next_is_taken(node: Node) -> None:
    node.ad("x;y,z;a")
    fault = node.fault("x", "down")
    node.write("out")
    status, (ad,) = node.send("out")
    assert (status, hops(ad)) == (0, [("x", False), ("y", True), ("z", True)])
    assert [node.at(one) for one in "xyza"] == [{}, {"out": b"content"}, {"out": b"content"}, {}]
    (error,) = ad["TransferErrorData"]
    kinds = (error["ErrorType"], error["FailureType"], error["FailedServer"])
    assert kinds == ("Contact", "Passing", "store://")
    assert error["ErrorString"] == f'{node.url("x")}: it does not \\ "answer"'
    fault.unlink()
    assert hops(node.send("out")[1][0]) == [("x", True)]


def test_each_file_goes_its_own_way_to_one_destination(node: Node) -> None:
    """What was delivered is not sent along the next path."""
    node.ad("a;b")
    (node.place / "a/second").mkdir()  # no file can have that name there
    for name in ("first", "second"):
        node.write(name)
    status, ads = node.send("first", "second")
    assert (status, [hops(ad) for ad in ads]) == (0, [[("a", True)], [("a", False), ("b", True)]])
    assert node.at("b") == {"second": b"content"}


def test_an_outage_is_waited_for_and_no_waypoint_gets_a_file_twice(node: Node) -> None:
    """Graph 2 of the 2010 report: the destination is down, the waypoint before it is not."""
    node.ad("x,y", PathTreeRetryFor=60, PathTreeFirstPause=0.3)
    node.write("out")
    fault = node.fault("y", "down")

    def end() -> None:
        while len(node.asked("y")) < 3:
            time.sleep(0.01)
        fault.unlink()

    ending = threading.Thread(target=end)
    ending.start()
    status, (ad,) = node.send("out")
    ending.join()
    assert (status, node.at("y")) == (0, {"out": b"content"})
    assert node.asked("x") == ["to 'out'"]
    assert set(node.asked("y")) == {"to 'out'"}
    assert ad["DeveloperData"]["Rounds"] == len(node.asked("y")) >= 4
    assert ad["TransferEndTime"] - ad["TransferStartTime"] >= 1  # 0.3 + 0.6 + 1.2, less a fifth


def test_the_time_for_tries_is_bounded(node: Node) -> None:
    node.ad("x;y", PathTreeRetryFor=5, PathTreeFirstPause=10)
    node.write("out")
    for one in "xy":
        node.fault(one, "down")
    status, (ad,) = node.send("out")
    assert (status, ad["TransferSuccess"], ad["TransferFileBytes"]) == (1, False, 0)
    assert ad["TransferError"] == f'{node.url("y")}: it does not \\ "answer"'
    assert (len(ad["TransferErrorData"]), ad["DeveloperData"]["Rounds"]) == (2, 1)


def test_what_no_later_try_mends_is_not_tried_again(node: Node) -> None:
    node.ad("x;y,nowhere://store/dir", PathTreeRetryFor=3600)
    node.write("out")
    node.fault("x", "refuse")
    status, (ad,) = node.send("out")
    assert (status, len(node.asked("x")), len(node.asked("y"))) == (1, 1, 1)
    assert [(one["ErrorType"], one["FailureType"]) for one in ad["TransferErrorData"]] == [
        ("Authorization", "Lasting"),
        ("Resolution", "Lasting"),
    ]
    assert ad["TransferError"] == "nowhere://store/dir: no plugin for 'nowhere'"


@pytest.mark.parametrize("tree", ["", ";", "no waypoint", "tree://PathTree/", "a,,b", "/tmp/x"])
def test_a_tree_that_is_none_is_told_at_once(node: Node, tree: str) -> None:
    node.ad(tree, PathTreeRetryFor=3600)
    node.write("out")
    status, (ad,) = node.send("out")
    assert (status, ad["TransferSuccess"]) == (1, False)
    assert ad["TransferError"]


def test_what_is_not_foreseen_is_an_answer_too(node: Node) -> None:
    """HTCondor runs a job again, and again, whose plugin answers nothing."""
    node.ad("a", PathTreeRetryFor="for ever")
    node.write("out")
    status, (ad,) = node.send("out")
    assert (status, ad["TransferSuccess"]) == (1, False)
    assert "for ever" in ad["TransferError"]


def test_a_plugin_that_dies_or_is_mute_has_sent_nothing(node: Node) -> None:
    node.ad("x;y;z")
    node.write("out")
    node.fault("x", "die")
    node.fault("y", "mute")
    status, (ad,) = node.send("out")
    assert (status, hops(ad)) == (0, [("x", False), ("y", False), ("z", True)])
    dead, mute = ad["TransferErrorData"]
    assert dead["ErrorString"] == f"{node.url('x')}: store_plugin.py ended with -9: "
    assert (dead["ErrorCode"], mute["ErrorCode"]) == (9, 0)


def test_a_slow_storage_is_left_after_its_time(node: Node) -> None:
    node.ad("x", PathTreeHopSeconds=1)
    node.write("out")
    node.fault("x", "slow", "300")
    status, (ad,) = node.send("out")
    assert (status, hops(ad)) == (1, [("x", False)])
    said = f"{node.url('x')}: store_plugin.py ended with 137: timed out after 1.0 seconds"
    assert ad["TransferErrorData"][0]["ErrorString"] == said
    assert node.at("x") == {}


def test_a_storage_that_is_not_mounted_gets_no_directory(node: Node) -> None:
    """Else a copy on the node's own disk would pass for a delivery."""
    node.ad("a;b")
    (node.place / "a").rmdir()
    node.write("out")
    status, (ad,) = node.send("out")
    assert (status, hops(ad)) == (0, [("a", False), ("b", True)])
    assert not (node.place / "a").exists()


def test_a_full_storage_keeps_no_part(node: Node) -> None:
    node.ad("a;b")
    node.write("out", bytes(200_000))
    command = " ".join(node.command(["out"], "-upload"))
    script = f"mount -t tmpfs -o size=100k none {node.place}/a; {command}; ls -A {node.place}/a"
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script],
        env=node.env,
        cwd=node.scratch,
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("", "")
    (ad,) = (plain(one) for one in classad2.parseAds((node.scratch / ".tree.out").read_text()))
    assert hops(ad) == [("a", False), ("b", True)]
    error = ad["TransferErrorData"][0]
    assert error["ErrorString"] == f"{node.url('a')}: No space left on device"
    assert (error["ErrorType"], error["FailureType"], error["ErrorCode"]) == (
        "Transfer",
        "Passing",
        28,
    )


def test_who_is_killed_amid_a_file_leaves_none_of_its_name(node: Node) -> None:
    """The pilot dies; what is left of the copy goes with the next try."""
    node.ad("a")
    with node.write("out").open("wb") as file:
        file.truncate(1 << 28)  # without blocks: the copy takes seconds
    store = node.place / "a"
    process = subprocess.Popen(
        node.command(["out"], "-upload"), env=node.env, cwd=node.scratch, start_new_session=True
    )
    while not sent(store):
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert sent(store) > 0
    assert not (store / "out").exists()
    node.write("out", b"small")
    assert node.send("out")[0] == 0
    assert {path.name: path.read_bytes() for path in store.iterdir()} == {"out": b"small"}


def sent(store: Path) -> int:
    """Bytes of a copy in progress."""
    return sum(path.stat().st_size for path in store.glob(".path-tree-*"))


HOSTILE = [
    b"a;b,c",
    b'say "no" \\ $(touch x) `id` %2e%2E %41',
    b"-upload",
    b"line\nTransferSuccess = true",
    b"] [ Url = x",
    b"\xff\xfe\x80",
    "\u4e2d\u6587 \U0001f600".encode(),
    b"tab\t\x01\x7f",
    b"#?&=@:*~",
    b"n" * 255,
]


@pytest.mark.parametrize("storage", ["a", "x"])
def test_hostile_names_are_names(node: Node, storage: str) -> None:
    node.ad(storage)
    for number, name in enumerate(HOSTILE):
        node.write(name, b"%d" % number)
    status, ads = node.send(*HOSTILE)
    store = node.place / storage
    assert status == 0, ads
    found = {
        path.name.encode(errors="surrogateescape"): path.read_bytes() for path in store.iterdir()
    }
    found.pop(b".log", None)
    assert found == {name: b"%d" % number for number, name in enumerate(HOSTILE)}
    assert len(ads) == len(HOSTILE)


@pytest.mark.parametrize("name", ["../b/out", "x/../../b/out", "/etc/passwd", ".", "..", ""])
def test_a_name_leads_nowhere_else(node: Node, name: str) -> None:
    node.ad("a", PathTreeRetryFor=3600)
    node.write("out")
    (node.scratch / "x").mkdir()
    status, (ad,) = node.send(name)
    assert (status, ad["TransferErrorData"][0]["ErrorType"]) == (1, "Specification")
    assert (node.at("a"), node.at("b")) == ({}, {})


def test_what_is_no_file_is_told_and_hinders_no_other(node: Node) -> None:
    node.ad("a", PathTreeRetryFor=3600)
    node.write("out")
    os.mkfifo(node.scratch / "pipe")
    (node.scratch / "folder").mkdir()
    status, ads = node.send("pipe", "folder", "gone", "out")
    assert (status, [ad["TransferSuccess"] for ad in ads]) == (1, [False, False, False, True])
    assert node.at("a") == {"out": b"content"}


def test_only_files_of_a_pattern_are_sent(node: Node) -> None:
    node.ad("a", PathTreeFiles=r".*\.root|log")
    for name in ("x.root", "log", "core.123", "log2"):
        node.write(name)
    status, ads = node.send("x.root", "log", "core.123", "log2")
    assert (status, sorted(node.at("a"))) == (0, ["log", "x.root"])
    left = [(ad["DeveloperData"]["LeftOut"], ad["TransferFileBytes"]) for ad in ads]
    assert left == [(False, 7), (False, 7), (True, 0), (True, 0)]


@pytest.mark.parametrize(("size", "way"), [(9, "y"), (10, "xy")])
def test_small_outputs_pass_waypoints_over(node: Node, size: int, way: str) -> None:
    node.ad("x,y", PathTreeAtLeast=10)
    node.write("out", bytes(size))
    assert "".join(letter for letter, _ in hops(node.send("out")[1][0])) == way


def test_it_is_for_outputs_alone(node: Node) -> None:
    node.ad("a")
    status, (ad,) = node.send("out", upload=False)
    assert (status, ad["TransferError"]) == (1, ": 'out': tree:// is for outputs")


def test_the_plugins_of_the_job_come_first(node: Node) -> None:
    """As HTCondor brings them: beside the job's files, whatever the path in the ad."""
    shutil.copy(STORE, node.scratch / "mine.py")
    (node.bin / "condor_config_val").write_text("#!/bin/sh\nexit 1\n")
    shop = f"shop://{node.place}/x"
    plugins = "tree=/home/a/gwmond-path-transfer;shop=/home/a/mine.py"
    node.ad("", PathTree=shop, TransferPlugins=plugins)
    node.write("out")
    status, (ad,) = node.send("out")
    assert (status, node.at("x")) == (0, {"out": b"content"}), ad


def test_in_a_pilot_the_starter_shows_where_htcondor_is(node: Node) -> None:
    """Its programs are in no PATH there."""
    node.ad("x")
    node.write("out")
    (node.place / "sbin").mkdir()
    starter = shutil.copy("/bin/sh", node.place / "sbin/condor_starter")
    command = " ".join(node.command(["out"], "-upload"))
    env = {**node.env, "PATH": "/usr/bin:/bin"}
    subprocess.run([starter, "-c", f"{command}; exit $?"], env=env, cwd=node.scratch, check=True)
    assert node.at("x") == {"out": b"content"}


# -- a program that has run already

_PROGRAM = "echo ran >>{ran}; echo content >out; mkdir -p sub; echo more >sub/more; exit 3"


def restarted(node: Node, starts: int, tree: str, **more: object) -> None:
    """The job starts on another node: nothing is left of its directory."""
    shutil.rmtree(node.scratch)
    node.scratch.mkdir()
    node.ad(tree, NumShadowStarts=starts, **more)


@pytest.mark.parametrize("tree", ["a,b", "x,y"])
def test_a_program_that_ran_is_not_run_again(node: Node, tree: str) -> None:
    """The pilot died while the destination was down; the next one sends what the waypoint has."""
    ran = node.place / "ran"
    program = ("sh", "-c", _PROGRAM.format(ran=ran))
    first, last = tree[0], tree[2]
    away = (node.place / last).rename(node.place / "away")
    restarted(node, 1, tree)
    if first == "x":
        node.path = {"_CONDOR_BIN": str(node.bin)}  # else its plugin is not found
    assert node.run(*program) == 3
    assert node.send("out")[0] == 1
    restarted(node, 2, tree)
    assert (node.run(*program), ran.read_text()) == (3, "ran\n")
    away.rename(node.place / last)
    asked = len(node.asked(first))
    status, (ad,) = node.send("out")
    assert (status, hops(ad)) == (0, [(last, True)])
    assert (node.place / last / "out").read_text() == "content\n"
    assert len(node.asked(first)) == asked


@pytest.mark.parametrize(
    "case", ["changed", "other arguments", "completed", "first", "outside", "torn"]
)
def test_a_program_is_run_again_where_its_outputs_are_not_sure(node: Node, case: str) -> None:
    ran = node.place / "ran"
    program = ["sh", "-c", _PROGRAM.format(ran=ran)]
    restarted(node, 1, "a,x")
    node.fault("x", "down")
    node.run(*program)
    node.send("out")
    (record,) = (node.place / "a").glob("path-tree-*.json")
    restarted(node, 1 if case == "first" else 2, "a,x", NumJobCompletions=int(case == "completed"))
    if case == "changed":
        (node.place / "a/out").write_text("other")
    elif case == "other arguments":
        program.append("argument")
    elif case == "outside":
        record.write_text(record.read_text().replace('"out"]', '"../out"]'))
    elif case == "torn":
        record.write_text(record.read_text()[:40])
    node.run(*program)
    assert ran.read_text() == "ran\nran\n"
    assert (node.scratch / "out").read_text() == "content\n"
    assert not (node.place / "out").exists()


def test_no_word_is_left_before_all_outputs_are_there(node: Node) -> None:
    restarted(node, 1, "a,x")
    node.fault("x", "down")
    node.run("sh", "-c", "echo 1 >one; echo 2 >two")
    (node.place / "a/two").mkdir()
    node.send("one", "two")
    assert list((node.place / "a").glob("path-tree-*")) == []


def test_the_end_of_a_program_is_its_own(node: Node) -> None:
    restarted(node, 1, "a")
    assert node.run("sh", "-c", "kill -TERM $$") == -signal.SIGTERM
    assert node.run("true") == 0
