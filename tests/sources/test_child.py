"""One child process a query."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing import forkserver
from pathlib import Path

import pytest

from gwmond.sources import child
from gwmond.sources.child import QueryError
from tests.pool.ports import free_port
from tests.pool.sandbox import wait_until
from tests.sources import child_tasks as tasks


@pytest.fixture(autouse=True)
def fork_server() -> None:
    """Children of the fork server, as the daemon's are."""
    child.start()


def test_what_a_child_is_born_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No relative path, nothing that is open in the daemon, files for nobody else, no core."""
    monkeypatch.setattr(sys, "path", ["", ".", *sys.path])
    child.start()
    assert sys.path[0] != ""
    with (tmp_path / "of the daemon").open("w") as opened:
        os.set_inheritable(opened.fileno(), True)
        path, umask, has_open, core = child.run(tasks.surroundings, deadline_s=60)[0]
    assert [one for one in path if not os.path.isabs(one)] == []
    assert umask == 0o077
    assert core == (0, 0)
    assert not [one for one in has_open if "of the daemon" in one or one.startswith("socket:")]


def problem(task: Callable[..., object], *args: object, deadline_s: float = 60) -> QueryError:
    with pytest.raises(QueryError) as caught:
        child.run(task, *args, deadline_s=deadline_s, memory_mib=1024)
    return caught.value


def server_pid() -> int:
    pid: int = forkserver._forkserver._forkserver_pid  # type: ignore[attr-defined]
    return pid


def children() -> list[str]:
    """Processes that the fork server has and nobody has waited for."""
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            text = status.read_text()
        except OSError:  # it ended just now
            continue
        if f"\nPPid:\t{server_pid()}\n" in text:
            found.append(text)
    return found


def test_result_and_what_it_cost() -> None:
    """The result comes back as it is, with the child's CPU time and memory."""
    value, usage = child.run(tasks.echo, 1, "two", None, deadline_s=60)
    assert value == (1, "two", None)
    assert 0 < usage.cpu_s < 5
    assert 5 < usage.peak_mib < 1024


_NICENESS = """\
import os
from gwmond.sources import child
child.start(files=False)
print(os.nice(0), child.run(os.nice, 0, deadline_s=60)[0])
"""


@pytest.mark.parametrize(("service", "lower"), [({"INVOCATION_ID": "1"}, 10), ({}, 0)])
def test_children_of_a_service_come_behind_it(service: dict[str, str], lower: int) -> None:
    """A scrape does not wait for queries; without a control group these would wait for all."""
    env = {name: value for name, value in os.environ.items() if name != "INVOCATION_ID"}
    told = subprocess.run(
        [sys.executable, "-c", _NICENESS],
        env=env | service,
        capture_output=True,
        text=True,
        check=True,
    )
    own, niceness = map(int, told.stdout.split())
    assert niceness == min(19, own + lower)


def test_large_result() -> None:
    """A result larger than any pipe's buffer comes back whole."""
    value, usage = child.run(tasks.many, 50 << 20, deadline_s=60)
    assert len(value) == 50 << 20
    assert usage.peak_mib > 50


def test_children_find_everything_loaded() -> None:
    """A child imports nothing: bindings, decoders and configuration are in the fork server."""
    loaded, usage = child.run(tasks.modules, deadline_s=60)
    assert {"htcondor2", "classad2", "gwmond.sources.tasks", "gwmond.config.settings"} <= set(
        loaded
    )
    assert usage.cpu_s < 0.2


def test_own_error() -> None:
    """A task's own error comes out with its word."""
    error = problem(tasks.deny)
    assert (error.problem, error.detail) == ("denied", "not for you")
    assert str(error) == "denied: not for you"


def test_exception_becomes_an_error() -> None:
    """Any exception of a task is told by its type and text."""
    error = problem(tasks.fail)
    assert (error.problem, error.detail) == (
        "failed",
        "ZeroDivisionError: nothing to divide by",
    )


def test_what_cannot_be_sent() -> None:
    """A result, or an argument, that cannot be pickled is an error, not a crash of either side."""
    assert problem(tasks.unpicklable).problem == "failed"
    assert problem(tasks.echo, threading.Lock()).problem == "failed"


@pytest.mark.parametrize("task", [tasks.sleep, tasks.loop, tasks.stop, tasks.ignore_signals])
def test_late_child_is_killed(task: Callable[[], None]) -> None:
    """A child that sleeps, loops, is stopped or ignores signals is killed at its deadline, by as
    much later as on this machine any child takes longer than it should."""
    child.run(tasks.echo, deadline_s=60)  # the fork server runs
    began = time.monotonic()
    child.run(tasks.echo, deadline_s=60)
    usual = time.monotonic() - began
    began = time.monotonic()
    error = problem(task, deadline_s=0.5004)
    took = time.monotonic() - began
    assert error.problem == "timeout"
    assert error.detail == "no answer within 0.5 s"
    assert 0.5 <= took < 10 + 10 * usual
    wait_until("the child to be gone", lambda: not children())


def test_crash() -> None:
    """A child that dies is a crash, told by its exit code."""
    assert str(problem(tasks.die)) == "crashed: exit code -9"
    assert str(problem(tasks.leave, 3)) == "crashed: exit code 3"


_FORKS = """
import os, time
from concurrent.futures import ThreadPoolExecutor
from gwmond.sources import child
from tests.sources import child_tasks
waitpid = os.waitpid
def slow(pid, flags):
    found = waitpid(pid, flags)
    time.sleep(0.02 if found[0] else 0)
    return found
os.waitpid = slow
child.start(once=True)
with ThreadPoolExecutor(8) as threads:
    asked = [threads.submit(child.run, child_tasks.echo, n, deadline_s=60) for n in range(200)]
    print(sum(future.result()[0][0] for future in asked))
"""


def test_a_command_forks_children_from_many_threads() -> None:
    """A child whose end another thread sees first, as that forks, is waited for all the same."""
    script = f"import sys\nsys.path.append({os.getcwd()!r}){_FORKS}"
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False
    )
    assert (ended.stdout, ended.stderr) == ("19900\n", "")


def test_memory_limit() -> None:
    """A child that needs more memory than it may is told so."""
    error = problem(tasks.allocate, 2048)
    assert error.problem == "too_large"
    assert "1024 MiB" in error.detail
    assert child.run(tasks.allocate, 100, deadline_s=60, memory_mib=1024)[0] == 100 << 20


def test_fork_server_that_was_killed() -> None:
    """When the fork server is gone the next query has a new one."""
    child.run(tasks.echo, deadline_s=60)
    before = Path(f"/proc/{server_pid()}/stat")
    os.kill(server_pid(), signal.SIGKILL)
    wait_until("its end", lambda: not before.exists() or ") Z " in before.read_text())
    assert child.run(tasks.echo, 1, deadline_s=60)[0] == (1,)


def test_nothing_is_left() -> None:
    """After many runs, good and bad, no process, file descriptor or thread is left."""

    def some() -> None:
        child.run(tasks.echo, deadline_s=60)
        problem(tasks.fail)
        problem(tasks.die)
        problem(tasks.echo, threading.Lock())
        problem(tasks.sleep, deadline_s=0.05)

    def left() -> tuple[int, int, int]:
        wait_until("the children to be waited for", lambda: not children())
        return len(os.listdir("/proc/self/fd")), threading.active_count(), len(children())

    some()
    before = left()
    for _ in range(10):
        some()
    assert all(now <= then for now, then in zip(left(), before, strict=True))
    assert before[2] == 0


def test_many_at_once() -> None:
    """Runs in several threads do not mix up their results."""
    results: dict[int, object] = {}

    def run(number: int) -> None:
        results[number] = child.run(tasks.echo, number, deadline_s=60)[0]

    threads = [threading.Thread(target=run, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {number: (number,) for number in range(16)}


ALONE = """
import sys
from gwmond.config.settings import Config
from gwmond.service.poller import Poller, poll_once
from gwmond.service.pool.pool import Pool

config = Config.model_validate({
    "pool": {"collectors": ["127.0.0.1:%d"]},
    "ledger": {"url": "%s"},
})
snapshot = %s
print(sorted({(s.up, str(s.problem)) for s in snapshot.sources}))
print([name for name in %s if name in sys.modules])
"""


@pytest.mark.parametrize(
    ("polled", "unneeded"),
    [
        ("Poller(config, Pool.open(config), None).poll()", ("htcondor2", "classad2")),
        ("poll_once(config)", ("multiprocessing.popen_forkserver", "sqlalchemy")),
    ],
    ids=["daemon", "command"],
)
def test_what_polls_does_not_load(polled: str, unneeded: tuple[str, ...], tmp_path: Path) -> None:
    """Of a collector that refuses.  The daemon has not loaded HTCondor; a command that polls once
    has started no fork server, and loads no database where there is no ledger."""
    script = ALONE % (free_port(), tmp_path / "ledger.sqlite", polled, unneeded)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=240
    )
    assert done.stdout.splitlines()[-2:] == ["[(False, 'refused')]", "[]"]


def test_ctrl_c_reaches_neither_children_nor_the_fork_server() -> None:
    """SIGINT is blocked there from their first moment on, and in nobody else."""
    child.run(tasks.echo, 1, deadline_s=60)
    status = Path(f"/proc/{server_pid()}/status").read_text()
    blocked, ignored = (
        int(status.partition(f"\n{name}:\t")[2].split()[0], 16) for name in ("SigBlk", "SigIgn")
    )
    assert (blocked | ignored) >> (signal.SIGINT - 1) & 1
    assert blocked >> (signal.SIGINT - 1) & 1
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_a_parent_that_died(capfd: pytest.CaptureFixture[str]) -> None:
    """The answer that nobody waits for is dropped without a word."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    receiver.close()
    context = multiprocessing.get_context("fork")
    process = context.Process(target=child.child_main, args=(sender, 20, 1 << 20, tasks.echo, (1,)))
    process.start()
    process.join()
    assert process.exitcode == 0
    assert capfd.readouterr().err == ""
