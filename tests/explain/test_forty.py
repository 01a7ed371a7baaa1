"""Forty jobs of a real pool, each kept from running by something else: what keeps it is said."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator

import pytest

from gwmond.commands.explain import asked
from gwmond.config.settings import Config
from gwmond.explain.answers import answers
from gwmond.explain.document import first_line
from gwmond.explain.situation import Situation
from gwmond.model.demand.question import Question
from gwmond.model.demand.waiting_job import JobPlace
from gwmond.sources import child
from tests.explain.forty import KINDS, MOVES, forty
from tests.pool.condor import CondorPool

Jobs = tuple[CondorPool, dict[str, tuple[str, str]]]


@pytest.fixture(scope="module")
def jobs() -> Iterator[Jobs]:
    """A busy pilot, one with free slots, and entries that are down, at limits, and filling."""
    with forty() as found:
        yield found


@pytest.fixture
def pool(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> CondorPool:
    """Their pool; this process asks it as a user does."""
    for name, value in jobs[0].client_env().items():
        monkeypatch.setenv(name, value)
    return jobs[0]


def _patient(pool: CondorPool) -> Config:
    poll = {"interval": "10m", "deadline": "5m"}
    return Config.model_validate({"pool": {"collectors": [pool.collector]}, "poll": poll})


ONLY_OF_ONE_JOB = {"not_considered", "held", "running", "removed", "other_universe"}


def test_the_first_line_is_right_for_forty_jobs(jobs: Jobs, pool: CondorPool) -> None:
    """One look at the pool, then each job: what keeps it, in words, and whose move it is.

    Of its group the same is said, but for what only a single job shows.
    """
    explainer = asked(_patient(pool), Question())
    wrong, of_jobs = [], []
    for kind in KINDS:
        schedd, number = jobs[1][kind.name]
        here = explainer.job(number, schedd)
        first, *_ = found = answers(here)
        line = first_line(here, first)
        assert [one.tier for one in found] == sorted(one.tier for one in found)
        assert here.fates.total() == sum(slot.number for slot in here.slots)
        of_jobs.append((kind.name, (first.name, first.mover.value), (schedd, here.job.identity)))
        moves = first.mover.value == MOVES.get(kind.reason, "you")
        if first.name != kind.reason or kind.words not in line or not moves:
            wrong.append((kind.name, first.name, first.mover.value, line))
    assert not wrong
    assert len(KINDS) == 40
    assert not explainer.missing

    groups: defaultdict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
    for group, of_group in explainer.all_jobs():
        first = answers(of_group)[0]
        groups[group.schedd, group.identity].add((first.name, first.mover.value))
    differ = {
        name: of_job
        for name, of_job, group in of_jobs
        if of_job[0] not in ONLY_OF_ONE_JOB and of_job not in groups[group]
    }
    assert not differ


def test_a_job_is_matched_while_the_pool_is_polled(
    jobs: Jobs, pool: CondorPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is asked after the poll, and the answer is that of a job that is asked for then."""
    schedd, number = jobs[1]["busy pilot"]
    config = Config.model_validate({"pool": {"collectors": [pool.collector]}})
    later = asked(config, Question()).job(number, schedd)
    explainer = asked(config, Question(number, schedd))
    monkeypatch.setattr(child, "run", lambda *_, **__: pytest.fail("something is asked"))
    here = explainer.job(number, schedd)

    def places(found: Situation) -> list[JobPlace]:
        return [place._replace(remaining_s=None) for place in found.places]

    assert places(here) == places(later)
    assert (here.job, here.entries.keys()) == (later.job, later.entries.keys())
    assert [one.name for one in answers(here)] == [one.name for one in answers(later)]


def test_its_place_in_the_order(
    jobs: Jobs, pool: CondorPool, run: Callable[..., tuple[int, str, str]]
) -> None:
    """Bob has no idle jobs; those of alice that were submitted before are offered before."""
    schedd, number = jobs[1]["busy pilot"]
    code, out, _ = run(
        "explain", number, "--collector", pool.collector, "--schedd", schedd, "--format", "json"
    )
    assert code == 0
    order = json.loads(out)["order"]
    idle = 'JobStatus == 1 && JobUniverse == 5 && User == "alice@pool.test"'
    before = f"{idle} && ClusterId < {number.split('.')[0]} && AccountingGroup is undefined"
    assert order["own_ahead"] == len(pool.jobs(schedd, before)) > 20
    assert 0 < order["own_ahead_there"] < order["own_ahead"]  # most could not run on that pilot
    assert (order["users"], order["users_ahead"]) == (1, 0)  # the other is alice of group_full
    assert order["share"] > order["used"] == 1
    _, out, _ = run("explain", number, "--collector", pool.collector, "--schedd", schedd)
    assert "Place in the order: 0 of 1 other user with idle jobs are ahead" in out


def test_limits_are_known_of_all_jobs(
    jobs: Jobs, pool: CondorPool, run: Callable[..., tuple[int, str, str]]
) -> None:
    """What keeps one job by policy is said of all idle jobs too, and by the metric of each poll."""
    where = "--collector", pool.collector
    code, out, _ = run("explain", "--all", *where, "--format", "json")
    assert code == 0
    reasons = {one["reason"]: one for one in json.loads(out)["reasons"]}
    names = {"concurrency_limit", "quota", "schedd_limit"}
    wanted = Counter(kind.reason for kind in KINDS if kind.reason in names)
    assert {name: reasons[name]["jobs"] for name in names} == wanted
    assert {reasons[name]["proof"] for name in names} == {"proven"}
    movers = {name: reasons[name]["mover"] for name in names}
    assert movers.pop("schedd_limit") == "the access point's administrator"
    assert set(movers.values()) == {"the pool's administrator"}
    assert "The negotiator said" in reasons["concurrency_limit"]["example"]
    code, out, _ = run("once", *where)
    found: defaultdict[str, float] = defaultdict(float)
    for line in out.splitlines():
        if line.startswith("gwmond_idle_canonical_units{") and 'reason="policy"' in line:
            labels = dict(re.findall(r'(\w+)="([^"]*)"', line))
            found[labels["cause"]] += float(line.rpartition(" ")[2])
    assert found == {name: reasons[name]["units"] for name in names}


def test_when_the_negotiator_ended_its_cycle(
    pool: CondorPool, run: Callable[..., tuple[int, str, str]]
) -> None:
    """As its ad has it, or those of accounting groups if they are later; it is stopped now."""
    names = ["Name", "LastNegotiationCycleTime0", "LastNegotiationCycleEnd0"]
    (ad,) = pool.query("Negotiator", projection=names)
    code, out, _ = run("explain", "--entry", "ne-1", "--collector", pool.collector, "--format=json")
    assert code == 0
    (found,) = json.loads(out)["negotiators"]
    last = max(one["LastUpdate"] for one in pool.query("Accounting", "IsAccountingGroup"))
    name, began, ended = map(ad.get, names)
    assert (found["name"], found["ended"]) == (name, max(ended, last))
    assert began <= found["began"] <= found["ended"]
    assert found["as_of"] is None
    assert found["ended"] > 10**9
