"""The daemon dies, restarts, reloads and ends; time is accounted once."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable

import pytest

from tests.daemon.running import RunningDaemon, polls
from tests.daemon.scene import PILOT, Scene, pledged
from tests.daemon.scrape import SECONDS, Metrics
from tests.pool.sandbox import wait_until

Start = Callable[..., RunningDaemon]
INTERVAL_S = 6.0
KILLS = 10


@pytest.fixture(scope="module")
def steady(shared_scene: Scene) -> Scene:
    """Two sites which stay as they are: 8 in use, 10 bottleneck, 6 without demand; and 16 idle."""
    shared_scene.pilot("Busy", busy=PILOT)
    shared_scene.resource("Busy", running=1)
    shared_scene.resource("Idle")
    shared_scene.jobs(10, "Busy")
    return shared_scene


def _tables() -> dict[str, dict[str, object]]:
    return pledged(Busy=24, Idle=16) | polls(INTERVAL_S)


def _no_step_back(before: Metrics, after: Metrics) -> None:
    """A zero may go: its state began at the last poll before the end, and was not counted."""
    for labels, value in before.rows(SECONDS).items():
        assert after.get((SECONDS, labels), 0.0) >= value, labels


def _after(seconds: float) -> Callable[..., bool]:
    moment = time.monotonic() + seconds
    return lambda *_: time.monotonic() >= moment


def _spent(first: Metrics, last: Metrics, site: str, state: str = "") -> float:
    return last.seconds(site, state) - first.seconds(site, state)


def _missed(metrics: Metrics) -> float:
    return metrics.seconds("Idle", "unknown", reason="missed_poll")


def test_killed_at_any_moment(steady: Scene, daemon: Start) -> None:
    """Through kill -9 counters never go back, and every second is in them once: what no poll saw
    is unknown if it was longer than two periods, else it is of the state that was found after."""
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    moments = random.Random(seed)
    running = daemon(steady.pool.collector, tables=_tables())
    first = last = running.wait_until("counters", lambda m: m.seconds("Busy") > 0)
    lost, slow, ready = 0.0, _missed(first), True
    for number in range(KILLS):
        if ready:
            after = _after(moments.uniform(0, 1.2 * INTERVAL_S))
            before, last = last, running.wait_until("its moment", after)
            slow += _missed(last) - _missed(before)  # polls that came late by themselves
        else:
            wait_until("its moment", _after(moments.uniform(0, 1.5)), pause=0.02)
        running.kill9()
        wait_until("the children's end", lambda: not running.processes())
        ready = number % 3 != 0 or number == KILLS - 1
        running.start(ready=ready)
        if ready:
            now = running.metrics()
            _no_step_back(last, now)
            without, last = now.accounted_at - last.accounted_at, now
            lost += without if without > 2 * INTERVAL_S - 0.1 else 0
    print(f"{lost:.1f} s were in gaps of more than two periods")
    assert _missed(last) - slow <= 16 * (lost + 0.5)  # which is known to milliseconds

    running.kill9()
    wait_until("a long gap", _after(2.5 * INTERVAL_S))
    running.start()
    now = running.wait_until("unknown time", lambda m: _missed(m) > _missed(last))
    _no_step_back(last, now)
    assert now.reasons("unknown") <= {"missed_poll", "demand"}  # a schedd that answers too late
    assert _missed(now) - _missed(last) >= 16 * 2 * INTERVAL_S

    passed = now.accounted_at - first.accounted_at
    for site, capacity in (("Busy", 24), ("Idle", 16)):
        assert _spent(first, now, site) == pytest.approx(capacity * passed, abs=capacity)
        assert now.seconds(site) <= capacity * (time.time() - running.began)
    seen = passed - (_missed(now) - _missed(first)) / 16
    known = passed - _spent(first, now, "Idle", "unknown") / 16
    for state, units, time_s in (
        ("provisioned", 8, seen),
        ("provisioning_bottleneck", 10, known),
    ):
        assert _spent(first, now, "Busy", state) == pytest.approx(units * time_s, abs=units)
    late = {"timeout", "no_time_left"}  # on a busy machine
    assert not [entry for entry in running.log("problem") if entry["problem"] not in late]


def test_a_reload(steady: Scene, daemon: Start) -> None:
    """SIGHUP adopts a good file and counters go on; a bad one changes nothing and is told."""
    running = daemon(steady.pool.collector, tables=_tables())
    first = running.wait_until("counters", lambda m: m.seconds("Idle") > 0)
    running.configure(_tables() | pledged(Busy=24, Idle=32))
    running.hup()
    second = running.wait_until("the new pledge", lambda m: m.units("Idle", "capacity") == 32)
    assert len(running.log("configuration reloaded")) == 1
    _no_step_back(first, second)
    passed = second.accounted_at - first.accounted_at
    assert _spent(first, second, "Busy") == pytest.approx(24 * passed, abs=24)

    running.config.write_text(running.config.read_text().replace("deadline", "deadlin"))
    running.hup()
    problem = {"source": "gwmond", "problem": "bad_configuration"}
    running.wait_for("gwmond_problems_total", problem, lambda n: n == 1)
    (event,) = running.log("configuration not reloaded, the old one stays")
    for part in (str(running.config), "poll.deadlin", "did you mean 'deadline'"):
        assert part in event["error"]
    third = running.next_polls(2)
    assert third.units("Idle", "capacity") == 32
    passed = third.accounted_at - first.accounted_at
    assert _spent(first, third, "Busy") == pytest.approx(24 * passed, abs=24)

    running.configure(_tables())
    running.hup()
    running.wait_until("the old pledge", lambda m: m.units("Idle", "capacity") == 16)
    assert running.stop()[0] == 0


def test_it_ends_at_once_while_a_query_hangs(scene: Scene, daemon: Start) -> None:
    """SIGTERM ends the daemon with 0 within seconds, whatever it waits for, and no child stays."""
    scene.resource("Slow")
    tables = pledged(Slow=16) | polls(50)
    scene.pool.signal("SCHEDD", signal.SIGSTOP)
    running = daemon(scene.pool.collector, tables=tables, ready=False)
    before: list[int] = []

    def hanging() -> bool:
        """Whether there is a child besides the fork server and multiprocessing's tracker."""
        seen, before[:] = list(before), running.processes()
        return len(before) > 3 and seen == before

    wait_until("a query that hangs", hanging, pause=2)
    code, seconds = running.stop()
    assert code == 0
    assert seconds < 20, "its deadline is 48 s"
    wait_until("the children's end", lambda: not running.processes())
    events = [entry["event"] for entry in running.log()]
    # On a slow machine the query's deadline passes before it is seen to hang: then one of a
    # history hangs, and the other schedd has said that it keeps none of epochs.
    assert [event for event in events if "epoch history" not in event] == ["started", "stopped"]


def test_a_killed_daemon_leaves_no_child(scene: Scene, daemon: Start) -> None:
    """Children of a daemon that was killed -9 end at their deadline, though their query hangs."""
    scene.pool.signal("SCHEDD", signal.SIGSTOP)
    running = daemon(scene.pool.collector, tables=polls(4))
    running.kill9()
    wait_until("the children's end", lambda: not running.processes(), 120)
