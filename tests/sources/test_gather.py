"""Rounds of queries, with daemons feigned inside the child processes."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from gwmond.config.settings import Config
from gwmond.model.facts import EntryKey, Size, Status
from gwmond.model.names import DAY_S, OTHER_ENTRY, SCHEDDS, NameLimits, Names, Standing
from gwmond.sources import child, gather
from gwmond.sources.gather import Gatherer
from gwmond.sources.htcondor import matching, templates
from gwmond.sources.round import Round, Targets
from tests.pool.adtext import Ad, Expr, Value, ad_text
from tests.pool.feign import (
    failed_master,
    glideclient,
    glidefactory,
    glidefactoryclient,
    glidein,
    glideresource,
    partitionable_slot,
)
from tests.sources import child_tasks
from tests.sources.feigned_access import Feigned
from tests.sources.make import NOW, heard

ENTRY = EntryKey("Site", "entry")
BERTH = ENTRY, "frontend.main"
CM = Targets(("cm",), (), ())
Answers = dict[tuple[str, str], Sequence[Mapping[str, Value] | str]]


class World:
    """A pool that a test changes between two rounds."""

    def __init__(self, log: Path, config: Config, targets: Targets) -> None:
        self.answers: Answers = {}
        self.gatherer = Gatherer(config, targets)
        self._log = log

    def also(self, answers: Answers, config: Config | None = None, **targets: Any) -> World:
        """Another pool, with other answers or under another configuration."""
        found = World(self._log, config or options(), CM._replace(**targets))
        found.answers = self.answers | answers
        return found

    def round(self, names: Names | None = None) -> tuple[Round, list[str]]:
        """Ask everybody; also what was asked, as "daemon kind"."""
        self._log.write_text("")
        texts = {
            key: tuple(ad if isinstance(ad, str) else ad_text(ad) for ad in ads)
            for key, ads in self.answers.items()
        }
        found = self.gatherer.round(Feigned(texts, str(self._log)), NOW, names)
        return found, sorted(self.asked())

    def asked(self) -> list[str]:
        """What was asked in the last round, in its order."""
        return self._log.read_text().splitlines()


def options(**poll: Any) -> Config:
    defaults = {"interval": "60s", "deadline": "20s"}
    return Config.model_validate({"poll": defaults | poll})


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A pool of one collector that knows one schedd and one pilot."""
    found = World(tmp_path / "log", options(), CM)
    found.answers = {
        ("cm", "slots"): [slot()],
        ("cm", "templates"): [slot()],
        ("cm", "schedds"): [schedd("ap1", "<ap1>")],
        ("<ap1>", "demand"): [job(3)],
    }
    return found


def slot(name: str = "pilot", cpus: int = 8) -> Ad:
    return heard(partitionable_slot(name, cpus=cpus, started=NOW - 60, now=NOW, glidein=glidein()))


def schedd(name: str, address: str, duty: float = 0.1) -> Ad:
    ad: Ad = {"Name": name, "MyAddress": address, "JobsUnmaterialized": 0}
    return heard(ad | {"RecentDaemonCoreDutyCycle": duty})


def job(count: int) -> Ad:
    return {"JobCount": count, "JobStatus": 1, "RequestCpus": 1, "RequestMemory": 1000}


def status(found: Round, source: str, kind: str) -> Status:
    (one,) = [s for s in found.statuses if (s.source, s.kind) == (source, kind)]
    return one


def idle(found: Round, name: str = "ap1") -> int:
    return sum(group.jobs for group in found.answers[name, "demand"].value.groups)


def test_everybody_is_asked(world: World) -> None:
    """One round asks the collector for all kinds, and each schedd that it knows; for all claims in
    parts."""
    found, asked = world.round()
    kinds = (
        "collector frontendmonitor glideresource masters quotas schedds slots startds submitters"
    )
    expected = "claims", "claims", "claims", "claims", *kinds.split(), "templates"
    assert asked == ["<ap1> demand", *(f"cm {kind}" for kind in expected)]
    assert all(s.up and s.last_success for s in found.statuses)
    assert idle(found) == 3
    assert [s.daemon.name for s in found.chosen] == ["ap1"]
    assert status(found, "cm", "slots").records == 1
    assert found.problems == ()


def test_very_many_ads_are_asked_for_in_parts(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each ad is in one part; of how many there are is known from the last time."""
    monkeypatch.setattr(gather, "_AT_ONCE", {"claims": 3, "slots": 2})
    running = {"State": "Claimed", "SlotType": "Dynamic"}
    world.answers["cm", "claims"] = [
        {"Name": f"slot1_1@p{n}", "GlobalJobId": f"s#{n}.0", "DaemonStartTime": NOW - n, **running}
        for n in range(7)
    ]
    world.answers["cm", "slots"] = [
        {"Name": f"slot1@p{n}", "State": "Unclaimed", "Cpus": 1, "Memory": 2000, **more}
        for n, more in enumerate([*({"DaemonStartTime": NOW - n} for n in range(4)), {}])
    ]
    for parts in ((4, 1), (3, 3)):
        world.gatherer.ask_all_claims()
        found, asked = world.round()
        assert (asked.count("cm claims"), asked.count("cm slots")) == parts
        pilots = found.answers["cm", "slots"].value.pilots
        assert sorted(pilot.name for pilot in pilots) == [f"p{n}" for n in range(5)]
        jobs = [record.fact.job for record in found.answers["cm", "claims"].value.records]
        assert sorted(jobs) == [f"s#{n}.0" for n in range(7)]
        assert status(found, "cm", "claims").records == 7


def test_one_child_at_a_time_has_very_many_ads(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slots and claims are not asked for at once: memory need hold one part only.

    What failed does not wait again: else claims never come where both do not fit in a deadline.
    """
    ask, under_way, most = child.run, Counter[str](), 0
    claims_may_wait, claims_asked = True, threading.Event()

    def noted(task: Callable[..., Any], terms: Any, *rest: Any, **limits: Any) -> Any:
        nonlocal most
        if not rest or rest[0] not in ("slots", "claims"):
            return ask(task, terms, *rest, **limits)
        under_way[rest[0]] += 1
        most = max(most, under_way.total())
        if rest[0] == "claims":
            claims_asked.set()
        assert claims_may_wait or claims_asked.wait(60)
        try:
            return ask(task, terms, *rest, **limits)
        finally:
            under_way[rest[0]] -= 1

    monkeypatch.setattr(child, "run", noted)
    world.answers["cm", "claims"] = ["!denied"]
    _, asked = world.round()
    assert (asked.count("cm claims"), asked.count("cm slots")) == (1, 1)
    assert most == 1
    claims_may_wait, world.answers["cm", "claims"] = False, []
    claims_asked.clear()
    found, asked = world.round()
    assert (asked.count("cm claims"), asked.count("cm slots")) == (4, 1)
    assert status(found, "cm", "claims").up


def test_last_answer_is_kept_and_marked(world: World) -> None:
    """A source that fails keeps its last answer with its age, is marked down, and told of."""
    before, _ = world.round()
    world.answers["cm", "slots"] = ["!denied"]
    after, _ = world.round()
    assert after.answers["cm", "slots"] == before.answers["cm", "slots"]
    assert after.answers["cm", "schedds"].at_s > before.answers["cm", "schedds"].at_s
    failed = status(after, "cm", "slots")
    assert (failed.up, failed.problem, failed.detail, failed.records) == (
        False,
        "denied",
        "as feigned",
        0,
    )
    assert failed.last_success == status(before, "cm", "slots").last_success
    assert [(p.source, p.problem, p.detail) for p in after.problems] == [
        ("cm", "denied", "slots: as feigned")
    ]
    world.answers["cm", "slots"] = [slot()]
    again, _ = world.round()
    assert status(again, "cm", "slots").up
    assert again.problems == ()


def test_bad_ads_are_problems_of_an_answer(world: World) -> None:
    """What was wrong with some ads is told beside what the others say."""
    world.answers["cm", "slots"] = [slot(), slot("bad") | {"Cpus": -1}]
    found, _ = world.round()
    assert [(p.source, p.problem) for p in found.problems] == [("cm", "bad_size")]
    assert status(found, "cm", "slots").up


def test_round_ends_by_its_deadline(world: World) -> None:
    """A silent schedd is given up at the deadline, and the round ends with the other answers.

    What is asked afterwards, of it or of another, has hardly any time: that is no silence of
    theirs, and the query that ate the deadline is named.
    """
    late = world.also({("<ap1>", "demand"): ["~60"]}, options(deadline="12s"))
    began = time.monotonic()
    found, _ = late.round()
    assert time.monotonic() - began < 30
    assert status(found, "ap1", "demand").problem == "timeout"
    assert status(found, "ap1", "demand").detail.startswith("no answer within ")
    assert status(found, "cm", "slots").up
    slow: Any = child_tasks.sleep
    silent = status(found, "ap1", "demand").detail
    late.gatherer.run("ap2", "history", slow)
    of = status(late.gatherer.last(), "ap2", "history")
    assert of.problem == "no_time_left"
    assert of.detail == f"the deadline was used up: ap1 (demand): {silent}"
    late.gatherer.run("ap1", "history", slow)
    of = status(late.gatherer.last(), "ap1", "history")
    assert of.detail.startswith(f"{silent}: asked again in ")


def test_a_silent_schedd_has_one_query_at_work_and_is_left_alone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each time for twice as long; what it was asked last goes on in it.  It is told of always."""
    clock = [0.0]
    real = time.monotonic
    monkeypatch.setattr("gwmond.sources.gather.time.monotonic", lambda: real() + clock[0])
    late = world.also({}, options(interval="10s", deadline="4s"))
    late.round()
    late.answers["<ap1>", "demand"] = ["~60"]
    rounds = []
    for _ in range(16):
        found, asked = late.round()
        rounds.append("<ap1> demand" in asked)
        assert status(found, "ap1", "demand").problem == "timeout"
        assert [p.problem for p in found.problems] == ["timeout"]
        clock[0] += 10.0  # and some for a query
    assert rounds[0]
    when = [number for number, was in enumerate(rounds) if was]
    assert 3 <= len(when) <= 4
    assert all(b - a > 1 for a, b in pairwise(when))
    assert when[2] - when[1] > when[1] - when[0]
    assert "asked again in " in status(found, "ap1", "demand").detail
    late.answers["<ap1>", "demand"] = [job(5)]
    clock[0] += 3600.0
    assert idle(late.round()[0], "ap1") == 5
    late.answers["<ap1>", "demand"] = ["~60"]
    late.round()
    late.answers["cm", "schedds"] = [schedd("ap1", "<moved>")]
    late.answers["<moved>", "demand"] = [job(6)]
    assert idle(late.round()[0], "ap1") == 6


def test_many_silent_schedds(world: World) -> None:
    """A round keeps its deadline, however many are silent; those that answer are soon known."""
    names = [f"ap{number:02}" for number in range(40)]
    answers: Answers = {("cm", "schedds"): [schedd(name, f"<{name}>") for name in names]}
    for number, name in enumerate(names):
        answers[f"<{name}>", "demand"] = ["~60"] if number % 2 else [job(1)]
    late = world.also(answers, options(interval="30s", deadline="6s"))
    slow: Any = child_tasks.sleep
    for _ in range(4):
        began = time.monotonic()
        found, _ = late.round()
        assert time.monotonic() - began < 6 + 3
        for name in names:  # as histories are read
            if status(found, name, "demand").problem == "timeout":
                late.gatherer.run(name, "history", slow)
        assert time.monotonic() - began < 6 + 3
    up = {s.source for s in found.statuses if s.kind == "demand" and s.up}
    assert up == set(names[::2])


def test_many_queries_may_use_up_the_deadline(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where none of them was slow no daemon is accused."""
    world.round()
    world.gatherer.allow(60.0)
    for kind in ("a", "b"):
        world.gatherer.run("ap1", kind, child_tasks.echo, 7, 1)
    monkeypatch.setattr(Gatherer, "left_s", 0.0)
    slow: Any = child_tasks.sleep
    world.gatherer.run("ap2", "history", slow)
    of = status(world.gatherer.last(), "ap2", "history")
    assert of.problem == "no_time_left"
    assert of.detail.startswith("the deadline was used up by 2 queries on a busy host; the longest")


def test_schedd_seen_for_the_first_time_is_asked_in_the_same_round(world: World) -> None:
    """A new schedd needs no second round, a known one is asked once a round."""
    world.round()
    world.answers["cm", "schedds"] = [schedd("ap1", "<ap1>"), schedd("ap2", "<ap2>")]
    world.answers["<ap2>", "demand"] = [job(7)]
    found, asked = world.round()
    assert [a for a in asked if a.endswith("demand")] == ["<ap1> demand", "<ap2> demand"]
    assert idle(found, "ap2") == 7


def test_moved_schedd_is_asked_at_its_new_address(world: World) -> None:
    """A schedd that was restarted elsewhere is asked there in the round in which it is found."""
    world.round()
    world.answers["cm", "schedds"] = [schedd("ap1", "<moved>")]
    world.answers["<ap1>", "demand"] = ["!refused"]
    world.answers["<moved>", "demand"] = [job(5)]
    found, asked = world.round()
    assert [a for a in asked if a.endswith("demand")] == ["<ap1> demand", "<moved> demand"]
    assert status(found, "ap1", "demand").up
    assert idle(found) == 5
    _, asked = world.round()
    assert [a for a in asked if a.endswith("demand")] == ["<moved> demand"]


def test_forgotten_schedd(world: World) -> None:
    """A schedd that no collector knows any more is not asked, and leaves nothing behind."""
    world.round()
    world.answers["cm", "schedds"] = [schedd("ap2", "<ap2>")]
    found, _ = world.round()
    assert [s.daemon.name for s in found.chosen] == ["ap2"]
    assert ("ap1", "demand") not in found.answers
    assert [s.source for s in found.statuses if s.kind == "demand"] == ["ap2"]
    _, asked = world.round()
    assert [a for a in asked if a.endswith("demand")] == ["<ap2> demand"]


def test_schedds_stay_known_while_the_collector_is_silent(world: World) -> None:
    """Schedds are asked at their last address while the collector does not answer."""
    world.round()
    world.answers["cm", "schedds"] = ["!timeout"]
    found, asked = world.round()
    assert "<ap1> demand" in asked
    assert [s.daemon.name for s in found.chosen] == ["ap1"]


def test_busy_schedd_is_asked_less_often(world: World) -> None:
    """Every busy_factor rounds, and at once when it has calmed down; until then it is named."""
    answers: Answers = {("cm", "schedds"): [schedd("ap1", "<ap1>", duty=0.99)]}
    busy = world.also(answers, options(busy_factor=3))
    skipped, asked, named = [], [], []
    for _ in range(5):
        found, of = busy.round()
        skipped.append(status(found, "ap1", "demand").skipped)
        asked.append("<ap1> demand" in of)
        named.append(set(busy.gatherer.busy))
    assert skipped == [0, 1, 2, 0, 1]
    assert asked == [True, False, False, True, False]
    assert named == [set()] + [{"ap1"}] * 4
    assert idle(found) == 3
    busy.answers["cm", "schedds"] = [schedd("ap1", "<ap1>", duty=0.5)]
    busy.round()
    found, of = busy.round()
    assert "<ap1> demand" in of
    assert (status(found, "ap1", "demand").skipped, busy.gatherer.busy) == (0, set())


def test_configured_schedds_only(world: World) -> None:
    """Of the schedds that the collector knows only those of the configuration are asked."""
    config = Config.model_validate({"pool": {"schedds": ["ap2*"]}})
    known = [schedd("ap1", "<ap1>"), schedd("ap2.test", "<ap2>")]
    chosen = world.also({("cm", "schedds"): known}, config)
    found, asked = chosen.round()
    assert [a for a in asked if a.endswith("demand")] == ["<ap2> demand"]
    assert [s.daemon.name for s in found.chosen] == ["ap2.test"]


def test_two_collectors(world: World) -> None:
    """A schedd that two collectors know is asked once; each collector has its own statuses."""
    answers: Answers = {("cm2", kind): ads for (_, kind), ads in world.answers.items()}
    two = world.also(answers, collectors=("cm", "cm2"))
    two.answers["cm2", "slots"] = ["!refused"]
    found, asked = two.round()
    assert [a for a in asked if a.endswith("demand")] == ["<ap1> demand"]
    assert [s.up for s in found.statuses if s.kind == "slots"] == [True, False]
    assert [a for a in asked if a.endswith("templates")] == ["cm templates"]


def test_local_collector_has_a_name(tmp_path: Path) -> None:
    """The collector of this host's configuration is shown as local."""
    found, asked = World(tmp_path / "log", options(), Targets(("",), (), ())).round()
    assert {s.source for s in found.statuses} == {"local"}
    assert " slots" in asked


def test_template_is_fetched_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole ad of a sample is fetched when new, when its size changed and when it is old."""
    found, asked = world.round()
    assert "cm templates" in asked
    assert found.templates[BERTH].size == Size(8, 16384)
    assert found.templates[BERTH].evidence == "measured"
    assert "cm templates" not in world.round()[1]
    world.answers["cm", "slots"] = world.answers["cm", "templates"] = [slot(cpus=16)]
    found, asked = world.round()
    assert "cm templates" in asked
    assert found.templates[BERTH].size == Size(16, 16384)
    monkeypatch.setattr(templates, "TTL_S", -1.0)
    assert "cm templates" in world.round()[1]


def test_template_of_an_entry_without_pilots(world: World) -> None:
    """Where no pilot runs the glideresource ad makes the template, until a pilot does."""
    world.answers["cm", "glideresource"] = [heard(glideresource()), heard(glideresource("e2"))]
    found, _ = world.round()
    assert {k.entry: t.evidence for (k, _), t in found.templates.items()} == {
        "entry": "measured",
        "e2": "estimated",
    }
    world.answers["cm", "slots"] = []
    found, _ = world.round()
    assert found.templates[BERTH].evidence == "estimated"
    world.answers["cm", "slots"] = [slot()]
    found, _ = world.round()
    assert found.templates[BERTH].evidence == "measured"


def test_schedds_are_asked_for_what_start_refers_to(world: World) -> None:
    """In the first round already, for the templates come first; in later ones all at once."""
    start: Ad = {"Start": Expr('TARGET.WantVO == "a"')}
    world.answers["cm", "templates"] = [slot() | start]
    found, asked = world.round()
    (group,) = found.answers["ap1", "demand"].value.groups
    assert "WantVO = undefined" in group.ad
    assert [a for a in asked if a.endswith("demand")] == ["<ap1> demand"]
    log = world.asked()
    assert log.index("cm templates") < log.index("<ap1> demand")
    again, _ = world.round()
    assert again.answers["ap1", "demand"].value.groups == (group,)


def test_a_first_round_does_not_wait_for_a_silent_collector(world: World) -> None:
    """If templates cannot be had in time schedds are asked without them."""
    answers: Answers = {("cm2", "slots"): ["~60"]}
    late = world.also(answers, options(deadline="16s"), collectors=("cm", "cm2"))
    found, _ = late.round()
    assert status(found, "ap1", "demand").up
    assert idle(found) == 3


def test_a_recording_is_not_asked_for_what_start_refers_to(world: World) -> None:
    """Its rows are as they were grouped, so that an absent attribute says nothing."""
    replayed = world.also({}, groups=False)
    for _ in range(2):
        found, _ = replayed.round()
    (group,) = found.answers["ap1", "demand"].value.groups
    assert "undefined" not in group.ad


def test_a_recording_is_not_asked_for_kinds_that_came_later(world: World) -> None:
    """They are not down: nobody had asked for them when it was made."""
    replayed = world.also({}, kinds=frozenset({"slots", "schedds"}))
    found, asked = replayed.round()
    assert {line for line in asked if line.startswith("cm ")} == {
        *("cm schedds", "cm slots", "cm templates")
    }
    assert all(status.up for status in found.statuses)


def test_an_attribute_that_was_left_out_is_not_tried_in_each_round(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stays out, and reported, until some time has passed."""
    world.answers["cm", "templates"] = [slot() | {"Start": Expr("TARGET.Serial > 1")}]
    world.answers["<ap1>", "demand"] = [job(1) | {"Serial": n} for n in range(101)]
    counts = []
    for retry in (3600.0, 3600.0, -1.0, -1.0):
        monkeypatch.setattr(gather, "RETRY_KEY_S", retry)
        found, asked = world.round()
        counts.append(asked.count("<ap1> demand"))
        assert [p.problem for p in found.problems] == ["start_attribute"]
    assert counts == [2, 1, 1, 2]


def test_each_frontend_group_has_its_own_template(world: World) -> None:
    """Of a group that runs pilots a live slot is the template, of another one its ad is."""
    world.answers["cm", "glideresource"] = [
        heard(glideresource(client=f"frontend.{group}")) for group in ("main", "extra")
    ]
    found, _ = world.round()
    assert {group: t.evidence for (_, group), t in found.templates.items()} == {
        "frontend.main": "measured",
        "frontend.extra": "estimated",
    }


def test_factory_schedd(tmp_path: Path) -> None:
    """A factory's schedd is found through the WMS collector, and its queue is asked for."""
    world = World(tmp_path / "log", options(), Targets(("cm",), ("wms",), ("fs",)))
    world.answers["wms", "schedds"] = [schedd("fs", "<fs>"), schedd("other", "<other>")]
    world.answers["<fs>", "queue"] = [{"JobStatus": 2, "JobCount": 4, "GlideinEntryName": "entry"}]
    found, asked = world.round()
    assert [c.pilots for c in found.answers["fs", "queue"].value] == [4]
    assert "<fs> queue_waiting" in asked
    assert not any(a.startswith("<other>") or a.endswith("demand") for a in asked)
    assert found.chosen == ()


def test_wms_collector(tmp_path: Path) -> None:
    """A WMS collector is asked what factories tell and what frontends ask of them."""
    world = World(tmp_path / "log", options(), Targets(("cm",), ("wms",), ()))
    world.answers["wms", "glideclient"] = [heard(glideclient(idle=4))]
    world.answers["wms", "advertised"] = [heard(failed_master(1, 2, dies=9e9))]
    world.answers["wms", "factory"] = [heard(glidefactory(running=5))]
    world.answers["wms", "factoryclient"] = [heard(glidefactoryclient(running=5))]
    found, asked = world.round()
    kinds = "advertised factory factoryclient glideclient schedds"
    assert [a for a in asked if a.startswith("wms ")] == [f"wms {k}" for k in kinds.split()]
    (ask,) = found.answers["wms:wms", "glideclient"].value
    assert (ask.client, ask.idle) == ("frontend.main", 4)
    (entry,) = found.answers["wms:wms", "factory"].value
    (client,) = found.answers["wms:wms", "factoryclient"].value
    assert client.monitor.status_running == entry.numbers.total.status_running == 5
    (failed,) = found.answers["wms:wms", "advertised"].value
    assert (failed.failed, failed.factory_job) == (True, "factory.test#1.0")


def test_factory_schedd_that_is_unknown(tmp_path: Path) -> None:
    """A configured factory schedd that no WMS collector knows is a source that is down."""
    found, _ = World(tmp_path / "log", options(), Targets(("cm",), ("wms",), ("fs",))).round()
    assert (status(found, "fs", "queue").up, status(found, "fs", "queue").problem) == (
        False,
        "unknown_schedd",
    )
    assert [(p.source, p.problem) for p in found.problems] == [("fs", "unknown_schedd")]


def test_what_is_run_after_a_round_is_told_with_it(world: World) -> None:
    """Matching runs after the round: how it went is part of what is known last."""
    world.round()
    world.gatherer.run("gwmond", "matching", matching.evaluate, ["no ad"], [], [(0, 0)])
    found = world.gatherer.last()
    assert not status(found, "gwmond", "matching").up
    assert [p.source for p in found.problems] == ["gwmond"]


def test_few_samples_are_asked_for_at_once_in_a_large_pool(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole ads are large: here one is asked for at once, that known first first."""
    monkeypatch.setattr(gather, "SAMPLES_AT_ONCE", 1)
    names = Names(NameLimits(10, 10, 10, DAY_S))
    names.recall({EntryKey("S3", "e3"): Standing(NOW - 60, NOW)}, {}, NOW, NOW)
    ads = [place(n) for n in range(4)]
    world.answers["cm", "slots"] = world.answers["cm", "templates"] = ads
    found = [{key.site for key, _ in world.round(names)[0].templates} for _ in range(3)]
    assert found == [{"S3"}, {"S3", "S0"}, {"S3", "S0", "S1"}]


def test_names_that_are_not_kept_apart(world: World) -> None:
    """Their pilots are those of one entry that has no template; and the round says who is known."""
    names = Names(NameLimits(2, 10, 10, DAY_S))
    world.answers["cm", "slots"] = world.answers["cm", "templates"] = [place(n) for n in range(4)]
    found, _ = world.round(names)
    pilots = found.answers["cm", "slots"].value.pilots
    kept = {EntryKey("S0", "e0"), EntryKey("S1", "e1")}
    assert {of.entry for of in pilots} == {*kept, OTHER_ENTRY}
    assert {key for key, _ in found.templates} == kept
    assert found.entries is not None
    assert set(found.entries) == kept
    again, _ = world.round(Names(NameLimits(10, 10, 10, DAY_S)))
    assert len({of.entry for of in again.answers["cm", "slots"].value.pilots}) == 4


def test_schedds_beyond_the_limit_are_not_asked(world: World) -> None:
    """Those that were known are, whatever strangers come; one problem's text has the others."""
    names = Names(NameLimits(10, 10, 10, DAY_S, schedds=1))
    world.round(names)
    strangers = [schedd(f"aa{n}", f"<aa{n}>") for n in range(5)]
    world.answers["cm", "schedds"] = [*strangers, schedd("ap1", "<ap1>")]
    found, asked = world.round(names)
    assert [name for name in asked if name.endswith(" demand")] == ["<ap1> demand"]
    assert [one.daemon.name for one in found.chosen] == ["ap1"]
    assert [(told.kind, told.number) for told in names.together] == [("schedds", 5)]


def test_schedds_that_the_configuration_names_come_first(world: World) -> None:
    """A stranger was there before; but its name is not in [pool] schedds."""
    names = Names(NameLimits(10, 10, 10, DAY_S, schedds=1))
    names.note_words(SCHEDDS, {"aa": 1}, NOW - 60)
    config = Config.model_validate({"pool": {"schedds": ["ap*"]}})
    known = [schedd("ap1", "<ap1>"), schedd("aa", "<aa>")]
    named = world.also({("cm", "schedds"): known}, config)
    found, _ = named.round(names)
    assert [one.daemon.name for one in found.chosen] == ["ap1"]


def place(number: int) -> Ad:
    """A pilot at a site of its own."""
    origin = glidein(f"e{number}", f"S{number}")
    name = f"pilot{number}"
    return heard(partitionable_slot(name, started=NOW - 60, now=NOW, glidein=origin))
