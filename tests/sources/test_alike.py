"""Slots that are alike in what a job and they refer to are judged once; no others are."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import classad2
import htcondor2  # noqa: F401 (names are looked up in both ads once it has been loaded)
import pytest

from gwmond.config.settings import DemandOptions
from gwmond.model.demand.waiting_job import JobPlace
from gwmond.model.facts import DemandGroup, EntryKey, Size, Template, Verdict
from gwmond.sources.htcondor import matching, waiting_job
from gwmond.sources.htcondor.access import Daemon, Query
from gwmond.sources.htcondor.places import ExplainTerms
from tests.pool.adtext import Ad, Expr, Value, ad_text
from tests.pool.feign import glidein, partitionable_slot
from tests.sources.feigned_access import Feigned, Unasked
from tests.sources.make import ATTRIBUTES, NOW, classad

START = (
    "TARGET.Blacklisted =!= True && StartsJobs && (ifThenElse(Cpus > 4, Big, Small)) "
    "&& (Text isnt undefined) && (GLIDEIN_ToRetire - time() > 60)"
)
WANTED = (
    'TARGET.GLIDEIN_Site == "Red" && TARGET.Memory >= RequestMemory && MY.WantsIt '
    '&& (TARGET.Level ?: 3) > 2 && eval(TARGET.Text) && stringListMember("a", TARGET.List)'
)
JOB: Ad = {
    "ClusterId": 1,
    "ProcId": 0,
    "JobStatus": 1,
    "JobUniverse": 5,
    "RequestCpus": 1,
    "RequestMemory": Expr("MemoryOf * 2"),
    "MemoryOf": 1000,
    "Requirements": Expr(WANTED),
    "WantsIt": Expr('TARGET.Kind is "new"'),
}

Examine = Callable[[list[Ad]], Counter[JobPlace]]


def slot(number: int, **changed: Value) -> Ad:
    """One of many that differ in what nobody refers to, and in what was changed."""
    origin = glidein("ce1", "Red", to_retire=NOW + 90_000, to_die=NOW + 90_000 + number)
    ad = partitionable_slot(
        f"pilot{number}", cpus=8, memory=16384, glidein=origin, started=NOW - number, now=NOW
    )
    known: Ad = {"Requirements": Expr("START"), "Start": Expr(START), "Kind": "new", "List": "a,b"}
    more: Ad = {"StartsJobs": True, "Big": True, "Small": False, "Text": "Hidden", "Hidden": True}
    more |= {"GLIDEIN_ToRetire": 4_000_000_000}
    return ad | known | more | {"Cpus": 8, "Memory": 16384} | changed


@pytest.fixture
def evaluations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The expressions that were evaluated."""
    found: list[str] = []
    holds = matching.holds

    def counted(expression: object, *rest: object, **more: object) -> bool | None:
        found.append(str(expression))
        return holds(expression, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(matching, "holds", counted)
    return found


@pytest.fixture
def examine(tmp_path: Path) -> Examine:
    """Match the job with slots, and return how many places are alike, without their lifetimes."""

    def places(slots: list[Ad]) -> Counter[JobPlace]:
        answers = {("ap", "job"): (ad_text(JOB),), ("cm", "slots"): tuple(map(ad_text, slots))}
        access = Feigned(answers, str(tmp_path / "log"))
        terms = ExplainTerms(("cm",), (), ATTRIBUTES, DemandOptions(), NOW)
        found, _ = waiting_job.find(access, Daemon("ap", "ap"), "1.0", terms)
        assert found is not None
        examined, _ = waiting_job.examine(access, *found, terms)
        counted: Counter[JobPlace] = Counter()
        for place in examined.places:
            counted[place._replace(number=1, remaining_s=None)] += place.number
        return counted

    return places


def test_alike_slots_are_judged_once(examine: Examine, evaluations: list[str]) -> None:
    """But for the one clause whose text does not say to what it refers."""
    (alone,) = examine([slot(0)])
    assert (alone.blocked, alone.refusals) == ((), ())
    assert len(evaluations) == 11
    evaluations.clear()
    assert examine([slot(number) for number in range(500)]) == {alone: 500}
    assert Counter(evaluations) == {
        text: 500 if text.startswith("eval") else 1 for text in evaluations
    }
    assert len(set(evaluations)) == 11


@pytest.mark.parametrize(
    ("changed", "blocked", "refusals"),
    [
        ({"GLIDEIN_Site": "Blue"}, "GLIDEIN_Site", ""),
        ({"Memory": 1999}, "Memory", ""),
        ({"Kind": "old"}, "WantsIt", ""),
        ({"Level": 2}, "Level", ""),
        ({"List": "b"}, "stringListMember", ""),
        ({"List": Expr('strcat("b", Kind)')}, "stringListMember", ""),
        ({"Hidden": False}, "eval", ""),
        ({"StartsJobs": False}, "", "StartsJobs"),
        ({"StartsJobs": Expr("TARGET.RequestCpus > 1")}, "", "RequestCpus"),
        ({"StartsJobs": Expr("TARGET.MemoryOf + Offset < 1000"), "Offset": 1}, "", "MemoryOf"),
        ({"Big": Expr("Small")}, "", "Big"),
        ({"Cpus": 4}, "", "Big"),
        ({"Big": 0}, "", "Big"),
        ({"GLIDEIN_ToRetire": NOW - 9_000_000}, "", "GLIDEIN_ToRetire"),
        ({"Requirements": Expr("START && Never")}, "", "Never"),
        ({"Start": False}, "", "START"),
    ],
)
def test_one_other_attribute_is_enough(
    changed: Ad, blocked: str, refusals: str, examine: Examine
) -> None:
    """Of many alike slots the one that differs is judged apart, and rightly."""
    slots = [slot(number) for number in range(20)]
    (usual,) = examine(slots)
    slots.insert(10, slot(99, **changed))
    found = examine(slots)
    assert found.pop(usual) == 20
    ((place, number),) = found.items()
    assert number == 1
    wanted = WANTED.split(" && ")
    assert [blocked in wanted[i] for i in place.blocked] == [True] * bool(blocked)
    assert [refusals in text for text in place.refusals] == [True] * bool(refusals)


OVERLAPS: Ad = {
    "TotalSlotCpus": 16,
    "RealCpus": 8,
    "ChildBusyCpus": [8],
    "StartsJobs": Expr(
        "ifThenElse(isList(MY.ChildBusyCpus), sum(MY.ChildBusyCpus), TotalSlotCpus - Cpus)"
        " + TARGET.RequestCpus <= RealCpus"
    ),
}
"""A pilot that sends output while the next job runs (etc/condor/overlap.conf)."""


@pytest.mark.parametrize(
    ("changed", "only_full"),
    [
        ({"Memory": 100, "TotalSlotMemory": 16384}, True),
        ({"Memory": 100, "TotalSlotMemory": 1999}, False),
        ({"Memory": 100, "TotalSlotMemory": 16384, "GLIDEIN_Site": "Blue"}, False),
        ({"Cpus": 0, "StartsJobs": Expr("Cpus >= TARGET.RequestCpus"), "TotalSlotCpus": 8}, True),
        ({"Cpus": 0, "StartsJobs": Expr("Cpus >= TARGET.RequestCpus"), "TotalSlotCpus": 0}, False),
        ({"List": "b"}, False),
        (OVERLAPS, True),
        (OVERLAPS | {"RealCpus": 0}, False),
    ],
)
def test_slots_that_are_only_full(changed: Ad, only_full: bool, examine: Examine) -> None:
    """A slot counts as full if it would match without the jobs that run on it."""
    (usual,) = examine([slot(1)])
    found = examine([*(slot(number) for number in range(9)), slot(9, **changed)])
    assert found.pop(usual) == 9
    ((place, _),) = found.items()
    assert (place.matches, place.only_full) == (False, only_full)


_VALUES: dict[str, tuple[Value, ...]] = {
    "GLIDEIN_Site": ("Red", "red", "Blue"),
    "Memory": (1999, 2000, 2000.0, "2000"),
    "Kind": ("new", "New", "old", Expr("Text"), Expr("undefined")),
    "Level": (1, 3, True, Expr("TARGET.RequestCpus + 2"), Expr("error"), Expr("Other"), -1),
    "Other": (3, 2, Expr("TARGET.MemoryOf / 500")),
    "List": ("a", Expr('"b"'), Expr('strcat("a,", Kind)'), *3 * (Expr('join(",", Items)'),)),
    "Items": (["a"], ["b"], ["b", "a"]),
    "Text": ("Hidden", "Other > 2", Expr("TARGET.Nothing"), "new"),
    "Hidden": (True, False, Expr("Memory > 1999"), 1),
    "StartsJobs": (True, False, 1, "true", Expr("Other > TARGET.RequestCpus"), Expr("'Hidden'")),
    "Cpus": (2, 8),
    "Big": (True, Expr("MY.Small"), Expr("Level > 2")),
    "Small": (True, False, Expr("TARGET.WantsIt"), Expr('MY["Hidden"]')),
    "Start": (Expr(START), Expr("StartsJobs && Small"), Expr("TARGET.WantsIt"), True),
    "GLIDEIN_ToRetire": (NOW, 4_000_000_000, Expr("Other * 1000000000")),
    "GLIDEIN_Entry_Name": ("ce1", "ce2"),
    "State": ("Unclaimed", "Owner"),
}


@pytest.mark.parametrize("seed", range(6))
def test_each_is_judged_as_if_it_were_alone(seed: int, examine: Examine) -> None:
    """Slots with values and expressions drawn by lot, some of them absent."""
    lot = random.Random(seed)
    slots = []
    for number in range(150):
        ad = slot(number)
        for name in lot.sample(sorted(_VALUES), lot.randint(1, 7)):
            ad[name] = lot.choice(_VALUES[name])
            if lot.random() < 0.1:
                del ad[name]
        slots.append(ad)
    alone: Counter[JobPlace] = Counter()
    for ad in slots:
        alone += examine([ad])
    assert examine(slots) == alone
    assert len(alone) > 20


@dataclass
class Pool(Unasked):
    """Collectors that send what a query asks for, and no more; a job in a schedd."""

    slots: dict[str, list[Ad]]

    def collector_ads(self, host: str, query: Query) -> list[classad2.ClassAd]:
        wanted = {name.lower() for name in query.projection}
        return [
            classad({name: value for name, value in ad.items() if name.lower() in wanted})
            for ad in self.slots[host]
        ]

    def job_ads(self, schedd: Daemon, query: Query) -> list[classad2.ClassAd]:
        del schedd, query
        return [classad(JOB)]


def examined(pool: Pool, *templates: Template) -> list[JobPlace]:
    terms = ExplainTerms(tuple(pool.slots), templates, ATTRIBUTES, DemandOptions(), NOW)
    found, _ = waiting_job.find(pool, Daemon("ap", "ap"), "1.0", terms)
    assert found is not None
    return list(waiting_job.examine(pool, *found, terms)[0].places)


def test_a_slot_that_several_collectors_have_is_one() -> None:
    """As each of a pair of collectors has all."""
    both = [slot(1), slot(2)]
    places = examined(Pool({"cm1": both, "cm2": [*both, slot(3)]}))
    assert sum(place.number for place in places) == 3


def test_what_only_some_slots_refer_to_is_asked_for() -> None:
    """Pilots that began after START was changed, which the known empty pilot does not show."""
    started = [
        slot(1),
        slot(2, Start=Expr("Certified && Fresh"), Certified=Expr("Good"), Good=True),
    ]
    started[1]["Fresh"] = True
    found = examined(Pool({"cm": started}))
    assert [place.refusals for place in found] == [(), ()]


def test_what_jobs_are_not_grouped_by_refutes_no_start() -> None:
    """START refers to what each job has of its own, which a group of them does not say."""
    start = 'TARGET.QDate < 2000000000 && TARGET.VO is "cms"'
    entry = EntryKey("Red", "ce1")
    template = Template(
        *(entry, ad_text(slot(1, Start=Expr(start))), "t", Size(8, 16384), None, "measured")
    )
    wanted = '[Requirements = true; GwmondUngrouped = true; RequestCpus = 1; VO = "%s"]'
    groups = [
        DemandGroup("ap", "", vo, wanted % vo, 5, Size(1, 1000), None) for vo in ("cms", "dune")
    ]
    terms = ExplainTerms((), (template,), ATTRIBUTES, DemandOptions(), NOW)
    cms, dune = (one.places for one in waiting_job.examine_groups(groups, terms)[0])
    assert [(place.refusals, place.evidence) for place in cms] == [((), "estimated")]
    assert [place.refusals for place in dune] == [('TARGET.VO is "cms"',)]


def test_what_jobs_are_known_not_to_have_may_be_the_pilots_own() -> None:
    """Where only an ad of the factory shows the pilot; as polls match it."""
    glideresource = "[Requirements = Ready && Quick; Memory = 4000; Cpus = 2]"
    template = Template(EntryKey("S", "E"), glideresource, "t", Size(2, 4000), None, "estimated")
    ad = "[Requirements = true; Ready = undefined; Quick = true]"
    group = DemandGroup("ap", "", "x", ad, 5, Size(1, 1000), None)
    terms = ExplainTerms((), (template,), ATTRIBUTES, DemandOptions(), NOW)
    (found,), _ = waiting_job.examine_groups([group], terms)
    assert [place.matches for place in found.places] == [True]
    group = group._replace(ad='[Requirements = TARGET.OpSys == "WINDOWS" && TARGET.Cpus > 1]')
    (windows,), _ = waiting_job.examine_groups([group], terms)
    assert [(one.blocked, one.untold) for one in windows.places] == [((), (0,))]
    template = template._replace(start="Ready && Quick")
    assert matching.evaluate([ad], [template], [(0, 0)])[0] == [Verdict.POSSIBLE]
