"""Pilots that never register, or are held as they come: from polls to an entry's state."""

from __future__ import annotations

import pytest

from gwmond.model.entries.evaluation import SCALE, EntryTime
from gwmond.model.facts import EntryKey, Held, Hold, Limit, Unregistered, Verdict
from gwmond.model.states import State
from gwmond.service.pool.known_entries import EMPTY
from gwmond.service.pool.pool_state import PoolState
from gwmond.sites.site_time import evaluate
from gwmond.sources.htcondor.factory import QueueCount
from tests.build.answers import DAY, Answers
from tests.build.facts import NOW, A, B, by_group, group, pilot, request, totals

_GRACE_S = 15 * 60
HIT = Limit("GlideFactoryMonitorStatus_GlideFactoryLimitTotalGlideinsPerEntry", "count=2, limit=2")


@pytest.fixture
def pool() -> Answers:
    """Two pilots run at each of two entries; at B none registers, and one more waits."""
    found = Answers()
    found.collector(NOW - 30 * DAY)
    found.slots(pilot(A), pilot(A))
    broken = request(B, running=2, total_running=2, pending=1, max_pilots=2, limits=(HIT,))
    found.requests(request(A, running=2, total_running=2), broken)
    found.discovery("ap1")
    found.demand("ap1", group(40))
    return found


def poll(pool: Answers, seconds: int, before: PoolState | None = None) -> PoolState:
    """Poll once a minute, for so long after what was known before."""
    at = NOW if before is None else int(before.memory.contacts.at) + 60
    state = pool.take(EMPTY if before is None else before.memory, at)
    while at < NOW + seconds:
        at += 60
        state = pool.take(state.memory, at)
    return state


def judged(state: PoolState, key: EntryKey = B) -> EntryTime:
    """The state of an entry for CPUs, where all jobs match all entries."""
    facts = state.facts
    verdicts = {
        (g.signature, t.signature): Verdict.YES for g in facts.groups for t in facts.templates
    }
    found = evaluate(facts._replace(verdicts=by_group(verdicts)), int(state.memory.contacts.at))
    return found.rows[key, "cpu"]


def test_an_entry_where_no_pilot_registers_is_a_bottleneck(pool: Answers) -> None:
    """Neither saturated, though one waits, nor full, though the limit is hit: its room is ours."""
    early = poll(pool, _GRACE_S - 60)
    assert judged(early).state is State.FILLING
    state = poll(pool, 3600)
    found = judged(state)
    assert (found.state, found.reason) == (State.PROVISIONING_BOTTLENECK, "run_but_do_not_register")
    assert (found.provisioned, found.spare) == (0, 16)
    assert judged(state, A).reason != "run_but_do_not_register"
    assert state.facts.totals is not None
    assert state.facts.totals[B].unregistered == Unregistered(2, 0, "here")
    assert state.facts.totals[A].unregistered is None


def test_pilots_that_wait_there_take_no_jobs(pool: Answers) -> None:
    """Jobs for which that entry is the only one wait for it, not for its pilots."""
    facts = poll(pool, 3600).facts
    verdicts = {
        (g.signature, t.signature): Verdict.YES if t.entry == B else Verdict.NO
        for g in facts.groups
        for t in facts.templates
    }
    found = evaluate(
        facts._replace(verdicts=by_group(verdicts), asked={B: {"frontend.main": 1}}), NOW + 3600
    )
    assert found.demand["schedd1", "cpu"].absorbed == 0


def test_pilots_that_are_about_to_register_take_jobs(pool: Answers) -> None:
    """Two of four run by the factory's count only, of one group; what is said then is estimated."""
    pool.requests(request(A, running=4, total_running=4), request(B, running=0))
    facts = poll(pool, 120).facts
    assert facts.coming == {A: {"frontend.main": 2}}
    verdicts = {
        (g.signature, t.signature): Verdict.YES for g in facts.groups for t in facts.templates
    }
    found = evaluate(facts._replace(verdicts=by_group(verdicts)), NOW + 120)
    alone = evaluate(facts._replace(verdicts=by_group(verdicts), coming={}), NOW + 120)
    absorbed = [one.demand["schedd1", "cpu"].absorbed for one in (found, alone)]
    assert absorbed == [16 * SCALE, 0]
    assert found.rows[A, "cpu"].evidence == "estimated"
    assert alone.rows[A, "cpu"].evidence == "measured"
    closed = totals(request(A, down=True), request(B, running=0))
    down = evaluate(facts._replace(verdicts=by_group(verdicts), totals=closed), NOW + 120)
    assert down.demand["schedd1", "cpu"].absorbed == 0


def test_a_pilot_that_has_just_ended_is_not_about_to_register(pool: Answers) -> None:
    """The factory counts it for some minutes more; nor is one that did not for a whole grace."""
    pool.requests(request(A, running=2, total_running=2), request(B, running=0))
    state = poll(pool, 120)
    pool.slots(pilot(A))
    assert poll(pool, 180, state).facts.coming == {}
    pool.requests(request(A, running=3, total_running=3), request(B, running=0))
    assert poll(pool, 240, state).facts.coming == {A: {"frontend.main": 1}}
    assert poll(pool, 3600, state).facts.coming == {}


def test_the_factory_s_queue_counts_first(pool: Answers) -> None:
    running = QueueCount(B.entry, "glidein@factory", "frontend.main", "running", 7, 0)
    pool.answer("fs", "queue", (running,))
    totals = poll(pool, 3600).facts.totals
    assert totals is not None
    assert totals[B].unregistered == Unregistered(7, 0, "here")


def test_one_that_registers_meanwhile_begins_the_grace_anew(pool: Answers) -> None:
    state = poll(pool, 3600)
    pool.slots(pilot(A), pilot(B), pilot(B))
    state = poll(pool, 3660, state)
    assert judged(state).reason != "run_but_do_not_register"
    pool.slots(pilot(A))
    assert judged(poll(pool, 3720, state)).reason != "run_but_do_not_register"


def test_what_is_not_surely_seen_proves_nothing(pool: Answers) -> None:
    """While a collector is silent its pilots may have registered there."""
    pool.silent("cm2", "slots")
    totals = poll(pool, 3600).facts.totals
    assert totals is not None
    assert totals[B].unregistered is None


def test_an_entry_where_all_pilots_are_held_is_a_bottleneck(pool: Answers) -> None:
    """At once, also where the factory has removed them, and sends others that wait a moment."""
    of = "glidein@factory", "frontend.main"

    def count(status: str, pilots: int, hold: str = "") -> QueueCount:
        return QueueCount(B.entry, *of, status, pilots, 0, hold)

    waits, removed = count("pending", 1), count("removed", 57, "Account expired in queue H")
    pool.answer("fs", "queue", (waits, removed))
    well = request(A, running=2, total_running=2)
    pool.requests(well, request(B, running=0, pending=1, held=0, requested_idle=1))
    state = poll(pool, 60)
    found = judged(state)
    assert (found.state, found.reason) == (State.PROVISIONING_BOTTLENECK, "held_pilots")
    totals = state.facts.totals
    assert totals is not None
    assert totals[B].held_lately == Held((Hold("Account expired in queue H", None, 57),), most=True)
    assert not totals[A].barren
    pool.answer("fs", "queue", (waits, removed, count("running", 1)))
    assert judged(poll(pool, 60)).state is State.FILLING
