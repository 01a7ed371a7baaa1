"""Which jobs could run where, when one of them, or one pilot, is made to stop that."""

from __future__ import annotations

import gc
import time
import weakref
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gwmond.config.settings import Config
from gwmond.model.entries.evaluation import SCALE
from gwmond.model.facts import DemandGroup, EntryKey, Size, Template, Verdict
from gwmond.model.problem_names import ProblemName
from gwmond.model.states import State
from gwmond.service.pool import matcher as matcher_module
from gwmond.service.pool.explainer import Explainer
from gwmond.service.pool.matcher import Matcher, dumped, loaded
from gwmond.sources import child
from gwmond.sources.gather import Gatherer
from gwmond.sources.round import Targets
from tests.build.polls import ENTRY, Polls, job
from tests.pool.adtext import Expr
from tests.pool.feign import glidein, partitionable_slot
from tests.sources.make import NOW, heard

_AT_LIMIT = f'(regexp("^(a+)+$", "{"a" * 28}b") =?= true)'
"""Takes PCRE to its match limit: 0.1 s of CPU time."""
COSTLY = f"ifThenElse(TARGET.Empty is undefined, {' || '.join([_AT_LIMIT] * 60)}, true)"
"""Costs only with an empty pilot: 6 s."""
SLOW = f"{_AT_LIMIT} || true"
"""Within what a pair may cost, but not with every pilot."""
CRASHES = " || ".join(["TARGET.a"] * 1_000_000)
SITES = [f"S{number}" for number in range(20)]


def group(name: str, requirements: str = "true", accounting_group: str = "cms") -> DemandGroup:
    ad = f'[Requirements = {requirements}; Name = "{name}"]'
    size = Size(1, 1000)
    return DemandGroup("ap1", accounting_group, name, ad, 3, size, None, sample=f"{name}.0")


def template(site: str, start: str = "true") -> Template:
    ad = f"[Requirements = {start}]"
    return Template(EntryKey(site, f"e{site}"), ad, site, Size(8, 16000), None, "measured", "f.g")


class World:
    def __init__(self, deadline: int = 50) -> None:
        config = Config.model_validate({"poll": {"deadline": f"{deadline}s"}})
        self.gatherer = Gatherer(config, Targets((), (), ()))
        self.now = 0.0
        self.matcher = Matcher(self.gatherer, lambda: self.now)
        self._deadline = deadline

    def match(
        self, groups: list[DemandGroup], templates: list[Template]
    ) -> tuple[dict[tuple[str, str], Verdict], list[tuple[str, str, str, int | None]]]:
        self.gatherer.allow(self._deadline)
        problems = self.matcher.match(groups, templates)
        return self.pairs, [tuple(problem) for problem in problems]  # type: ignore[misc]

    @property
    def pairs(self) -> dict[tuple[str, str], Verdict]:
        rows = self.matcher.verdicts.items()
        return {(group, name): verdict for group, row in rows for name, verdict in row.items()}

    @property
    def up(self) -> bool:
        return self.gatherer.last().statuses[0].up


def others(groups: list[DemandGroup], templates: list[Template]) -> dict[tuple[str, str], Verdict]:
    return {(g.signature, t.signature): Verdict.YES for g in groups for t in templates}


@pytest.mark.parametrize("hostile", [COSTLY, SLOW, CRASHES], ids=["costly", "slow", "crashes"])
def test_a_job_that_stops_matching_stops_its_own(hostile: str) -> None:
    """Others' verdicts arrive; the job has none, is named, and is not tried again for an hour."""
    world = World()
    bad, good = group("9", hostile), [group(str(n)) for n in range(5)]
    templates = [template(site) for site in SITES]
    verdicts, problems = world.match([bad, *good], templates)
    assert {p: v for p, v in verdicts.items() if p[0] != "9"} == others(good, templates)
    assert {v for p, v in verdicts.items() if p[0] == "9"} <= {Verdict.YES}  # before it was slow
    assert len([p for p in verdicts if p[0] == "9"]) < 15
    assert world.up
    text = "9.0 (jobs like it: 3; group cms)"
    assert problems == [("ap1", ProblemName.COSTLY_JOB, text, 1)]
    since = time.monotonic()
    assert world.match([bad, *good], templates)[1] == [("ap1", ProblemName.COSTLY_JOB, text, 0)]
    assert time.monotonic() - since < 0.1  # no child
    world.now = matcher_module.ASIDE_S
    assert world.match([group("9"), *good], templates)[1] == []
    assert len(world.pairs) == 6 * len(templates)


def test_a_child_that_failed_holds_nothing_of_a_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that refers to itself by its frames would keep all that a poll has in them."""
    world = World()

    def late(*_: object, **__: object) -> None:
        raise child.QueryError(ProblemName.TIMEOUT, "no answer")

    def poll() -> weakref.ref[set[str]]:
        held = {"much"}
        assert world.match([group("1")], [template("S")])[0] == {}
        return weakref.ref(held)

    monkeypatch.setattr(child, "run", late)
    gc.disable()
    try:
        assert poll()() is None
    finally:
        gc.enable()


def test_a_start_that_stops_matching_stops_its_own() -> None:
    """A pilot's START is named as that of its entry and frontend group; all jobs match others."""
    world = World()
    groups = [group(str(n)) for n in range(5)]
    templates = [template(site) for site in SITES]
    bad = template("Bad", COSTLY.replace("true)", "true) "))
    verdicts, problems = world.match(groups, [bad, *templates])
    assert verdicts == others(groups, templates)
    assert problems == [("entries", ProblemName.COSTLY_START, "Bad/eBad (frontend group f.g)", 1)]


def test_a_start_beside_costly_jobs_is_not_set_aside() -> None:
    """Jobs that are costly with every pilot, each of which failed with the same one so far."""
    world = World()
    jobs = [group(f"9{n}", COSTLY + f" || {n} == 0") for n in range(3)]
    only = template("S")
    named = [problem[1] for problem in world.match(jobs, [only])[1]]
    assert named == [ProblemName.COSTLY_JOB] * 3
    assert world.match([*jobs, group("1")], [only])[0] == {("1", "S"): Verdict.YES}


def test_a_pilot_whose_attribute_stops_others_requirements_is_set_aside() -> None:
    """It fails in the jobs' expressions, and these match all other pilots."""
    world = World()
    groups = [group(str(n), "TARGET.Trap =!= 1") for n in range(5)]
    templates = [template(site) for site in SITES]
    trap = COSTLY.replace("TARGET.Empty", "Empty")
    bad = template("Bad")._replace(ad=f"[Requirements = true; Trap = {trap}]")
    verdicts, problems = world.match(groups, [bad, *templates])
    assert verdicts == others(groups, templates)
    assert ("entries", ProblemName.COSTLY_START, "Bad/eBad (frontend group f.g)", 1) in problems


def test_one_pair_that_cannot_be_evaluated_names_the_job() -> None:
    """Where there is one pilot only, and other jobs match it."""
    world = World()
    verdicts, problems = world.match([group("9", COSTLY), group("1")], [template("S")])
    assert verdicts == {("1", "S"): Verdict.YES}
    assert [(one[1], one[2].partition(" ")[0]) for one in problems] == [("costly_job", "9.0")]


def test_an_accounting_group_with_many_such_jobs_keeps_no_others() -> None:
    """More than the deadline has time for: others are matched before most of them are tried."""
    world = World(deadline=6)
    bad = [group(f"9{n}", COSTLY + f" || {n} == 0", "evil") for n in range(60)]
    good = [group(str(n)) for n in range(5)]
    templates = [template(site) for site in SITES]
    verdicts, problems = world.match([*bad, *good], templates)
    assert verdicts == others(good, templates)
    assert not world.up
    assert {one[1] for one in problems} == {ProblemName.COSTLY_JOB}
    last = world.gatherer.last().problems[-1]
    assert last.problem == ProblemName.MATCHING_LATE
    before = len(problems)
    more = world.match([*bad, *good], templates)[1]
    assert len(more) > before  # it does not begin with the same ones
    assert sum(one[3] or 0 for one in more) == len(more) - before


def test_a_text_that_is_no_ad_is_one_that_cannot_be_matched() -> None:
    world = World()
    broken = group("9")._replace(ad="no ad")
    verdicts, _ = world.match([broken, group("1")], [template("S")])
    assert verdicts == {("1", "S"): Verdict.YES}


@pytest.mark.parametrize("hostile", [COSTLY, " || ".join(["TARGET.a"] * 400_000)])
def test_a_poll_with_such_a_job(tmp_path: Path, hostile: str) -> None:
    """The demand of its schedd is read, the jobs of others have their state, the job is named."""
    polls = Polls(tmp_path)
    polls.children = True
    bad = job(1, hostile) | {"JobIds": "77.0"}
    polls.pool.answers["<ap1>", "demand"] = [bad, job(12)]
    found = polls.poll(0)
    assert found.evaluation.jobs[ENTRY].ours.matching == 12
    row = found.evaluation.rows[ENTRY, "cpu"]
    assert row.state is State.PROVISIONING_BOTTLENECK
    unknown = {part.amount // SCALE for part in row.parts if part.state is State.UNKNOWN}
    assert unknown <= {1}  # that of the job itself, which is slow to read
    if hostile == COSTLY:
        assert found.problems["ap1", ProblemName.COSTLY_JOB] == 1
        polls.poll()
        assert found.problems["ap1", ProblemName.COSTLY_JOB] == 1


def test_explain_beside_such_a_job_and_such_a_pilot(tmp_path: Path) -> None:
    """Another job is explained; what was not looked at is said, without a job's number."""
    polls = Polls(tmp_path)
    polls.children = True
    origin = glidein("bad", "Bad")
    bad = partitionable_slot("q", started=NOW - 60, now=NOW, glidein=origin, Cpus=0)
    bad |= {"Requirements": Expr("START"), "Start": Expr(COSTLY.replace("Empty", "Nothing"))}
    for kind in ("slots", "templates"):
        polls.pool.answers["cm", kind] = [*polls.pool.answers["cm", kind], heard(bad, NOW)]
    costly = job(1, COSTLY) | {"JobIds": "77.0"}
    good = job(12) | {"ClusterId": 4, "ProcId": 0, "JobUniverse": 5}
    polls.pool.answers["<ap1>", "demand"] = [costly, job(12), job(2, "TARGET.Cpus > 2")]
    polls.pool.answers["<ap1>", "job"] = [good]
    snapshot = polls.poll(0)
    assert snapshot.problems["ap1", ProblemName.COSTLY_JOB] == 1
    assert snapshot.problems["entries", ProblemName.COSTLY_START] == 1
    explainer = Explainer(
        polls.config,
        (snapshot, polls.pool.gatherer.last(), polls.pool.targets),
        polls.pool.access(polls.pool.clock.tick()),
        NOW,
    )
    here = explainer.job("4.0")
    assert [place.entry for place in here.places if place.matches] == [ENTRY]
    assert (
        here.missing
        == explainer.missing
        == (
            "START of frontend.main at bad (too much CPU time)",
            "Requirements of 1 job of nobody at ap1 (too much CPU time)",
        )
    )
    assert [group.jobs for group, _ in explainer.all_jobs()] == [12, 2]
    assert explainer.left_out() == 0
    assert explainer.place(ENTRY).missing == explainer.missing


@given(rows=st.lists(st.dictionaries(st.sampled_from("abc"), st.sampled_from(Verdict))))
def test_dumped_verdicts_are_the_same(rows: list[dict[str, Verdict]]) -> None:
    """Those that are missing, too; rows that were one object are one again."""
    verdicts = {f"group {number}": row for number, row in enumerate([*rows, *rows])}
    again = loaded(dumped(verdicts))
    assert again == verdicts
    assert len({id(row) for row in again.values()}) == len(rows)


@pytest.mark.parametrize("text", ["", "%", "e30=", dumped({})[:-4]])
def test_what_cannot_be_read_is_evaluated_again(text: str) -> None:
    assert loaded(text) == {}


def test_another_version_evaluates_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rules, or its HTCondor's, may differ."""
    text = dumped({"group": {"template": Verdict.YES}})
    assert loaded(text)
    monkeypatch.setattr(matcher_module, "__version__", "0.0.1")
    assert loaded(text) == {}
