"""From slot ads, and StartD ads, to pilots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from gwmond.config.settings import Attributes
from gwmond.model.facts import EntryKey, Pilot, Size
from gwmond.sources.htcondor.pilots import slots, startds
from gwmond.sources.htcondor.pilots.slots import SampleSlot, Slots
from gwmond.sources.htcondor.pilots.startds import Startds
from tests.pool.adtext import Ad, Expr, Value
from tests.pool.feign import dynamic_slot, glidein, partitionable_slot, startd_ad, static_slot
from tests.sources.make import ATTRIBUTES, NOW, classads, heard

ENTRY = EntryKey("Site", "entry")
GROUP = "frontend.main"


def decode(*ads: Mapping[str, Value], now: float = NOW, by: Attributes = ATTRIBUTES) -> Slots:
    return slots.decode(classads(*ads), by, "cm", now)


def pilot(*ads: Mapping[str, Value], now: float = NOW) -> Pilot:
    """The one pilot of these slots, of which nothing was wrong."""
    found = decode(*ads, now=now)
    assert not found.problems
    assert len(found.pilots) == 1
    return found.pilots[0]


IDLE = ("Unclaimed", "Idle")


def slot(
    name: str = "pilot",
    more: Mapping[str, Value] | None = None,
    *,
    cpus: int = 8,
    gpus: int = 0,
    children: Sequence[Mapping[str, Value]] = (),
    state: tuple[str, str] = IDLE,
) -> Ad:
    """A partitionable slot of 8 cores and 16384 MiB, with ``more`` attributes."""
    ad = partitionable_slot(
        name,
        cpus=cpus,
        gpus=gpus,
        children=children,
        state=state,
        started=NOW - 3600,
        now=NOW,
        glidein=glidein(),
    )
    return heard(ad) | dict(more or {})


def static(index: int = 1, *, cpus: int = 1, state: tuple[str, str] = IDLE) -> Ad:
    """A static slot of 1 core and 2048 MiB."""
    ad = static_slot("pilot", index, cpus=cpus, state=state, started=NOW - 3600, glidein=glidein())
    return heard(ad)


def test_query_projects_what_is_decoded() -> None:
    """The query asks for no dynamic slots, for every configured attribute, and no secret."""
    by = Attributes(site=("MySite",), die=("MyEnd",))
    query = slots.query(by)
    assert {"Name", "TotalSlotCpus", "ChildState", "MySite", "MyEnd"} <= set(query.projection)
    assert "Dynamic" in query.constraint
    assert not any("Claim" in name or "Token" in name for name in query.projection)


def test_partitionable_slot_with_lists_of_its_children() -> None:
    """A partitionable slot's lists tell its jobs, what is left over is free."""
    children = [dynamic_slot("pilot", 1), dynamic_slot("pilot", 2, cpus=2, memory=4096)]
    found = pilot(slot(children=children))
    assert found.size == Size(8, 16384)
    assert found.jobs == (Size(1, 2048), Size(2, 4096))
    assert found.free == (Size(5, 10240),)
    assert found.accepting


def test_children_that_run_nothing_are_no_jobs() -> None:
    """Of the children only those claimed or just being preempted run a job."""
    children = [
        dynamic_slot("pilot", i + 1, cpus=i + 1, state=(state, "Idle"))
        for i, state in enumerate(("Claimed", "Preempting", "Unclaimed", "Delete"))
    ]
    assert [job.cores for job in pilot(slot(cpus=16, children=children)).jobs] == [1, 2]


def test_gpus_of_children() -> None:
    """Children's GPUs are counted, and a list of them that is too short means none."""
    children = [dynamic_slot("pilot", 1, gpus=1), dynamic_slot("pilot", 2)]
    ad = slot(gpus=2, children=children)
    assert pilot(ad).jobs == (Size(1, 2048, 1), Size(1, 2048, 0))
    assert pilot(ad | {"ChildGPUs": [1]}).jobs == (Size(1, 2048, 1), Size(1, 2048, 0))
    assert pilot(ad).free == (Size(6, 12288, 1),)


def test_absurd_children_are_no_jobs() -> None:
    """A child whose size makes no sense is left out."""
    ad = slot() | {"Cpus": 5, "ChildCpus": [1, -1, 1], "ChildMemory": [1000, 1000, 1e12]}
    assert pilot(ad | {"ChildState": ["Claimed"] * 3}).jobs == (Size(1, 1000),)
    idle = {"ChildState": ["Claimed", "Unclaimed"], "ChildActivity": ["Idle", "Idle"]}
    assert pilot(ad | idle).idle_claims == 1
    assert pilot(ad | {"ChildState": ["Claimed"], "ChildActivity": ["Busy"]}).idle_claims == 0


@pytest.mark.parametrize("lists", ["absent", "unlike", "undefined"])
def test_slot_without_usable_lists(lists: str) -> None:
    """Where the children's lists say nothing, all that is not free is as one job."""
    ad = slot(children=[dynamic_slot("pilot", i) for i in (1, 2)])
    if lists == "absent":
        ad = {name: value for name, value in ad.items() if not name.startswith("Child")}
    else:
        ad |= {"ChildCpus": [1, 1, 1] if lists == "unlike" else Expr("{ 1, undefined }")}
    assert pilot(ad).jobs == (Size(2, 4096),)
    assert pilot(ad | {"Cpus": 8, "Memory": 16384}).jobs == ()


def test_dynamic_slots_are_not_counted_again() -> None:
    """Dynamic slots change nothing: their partitionable slot has told of them."""
    child = heard(dynamic_slot("pilot", 1, started=NOW - 3600, glidein=glidein()))
    assert decode(slot(children=[child]), child) == decode(slot(children=[child]))


def test_dynamic_slot_without_parent_is_no_pilot() -> None:
    """A dynamic slot alone tells nothing certain of a pilot."""
    assert decode(heard(dynamic_slot("pilot", 1, glidein=glidein()))) == Slots((), (), ())


def test_full_partitionable_slot_has_nothing_free() -> None:
    """A slot whose cores are used up offers nothing, but one with a GPU left does."""
    assert pilot(slot(more={"Cpus": 0})).free == ()
    assert pilot(slot(more={"Cpus": 0}, gpus=1)).free == (Size(0, 16384, 1),)


def test_static_slots_of_one_startd() -> None:
    """Static slots of a startd are one pilot: claimed ones run a job each, the others are free."""
    ads = [static(1, state=("Claimed", "Busy")), static(2), static(3, state=("Preempting", "X"))]
    found = pilot(*ads)
    assert found.size == Size(3, 6144)
    assert found.jobs == (Size(1, 2048), Size(1, 2048))
    assert found.free == (Size(1, 2048),)


def test_several_partitionable_slots_of_one_startd() -> None:
    """A startd with a slot for each of its kinds is one pilot with all of them."""
    found = pilot(slot(), slot(more={"Name": "slot2@pilot", "TotalSlotCpus": 2, "Cpus": 2}))
    assert found.size == Size(10, 32768)
    assert found.free == (Size(8, 16384), Size(2, 16384))


def test_slots_belong_to_the_startd_of_their_name() -> None:
    """A startd's name may hold an @ itself: only the slot is cut off."""
    found = decode(slot("glidein_1@host.test"), slot("glidein_2@host.test"))
    assert [p.name for p in found.pilots] == ["glidein_1@host.test", "glidein_2@host.test"]


@pytest.mark.parametrize("mark", ["IsDataSlot", "IS_MONITOR_VM", "Offline", "Absent"])
@pytest.mark.parametrize("value", [True, 1, "True"])
def test_what_is_no_resource(mark: str, value: Value) -> None:
    """Data slots, monitoring slots and ads of machines that are off are no pilots."""
    assert decode(slot(more={mark: value})) == Slots((), (), ())
    assert len(decode(slot(more={mark: False})).pilots) == 1


@pytest.mark.parametrize(
    "more",
    [
        {"Cpus": Expr("undefined")},
        {"Cpus": -1},
        {"Cpus": 1e9},
        {"Memory": 1e12},
        {"Memory": Expr('real("NaN")')},
        {"GPUs": -1},
        {"GPUs": 1e9},
        {"TotalSlotCpus": 1e9},
        {"TotalSlotCpus": -8},
        {"TotalSlotMemory": 1e300},
        {"TotalSlotGPUs": 1e300},
    ],
    ids=str,
)
def test_absurd_sizes_are_a_problem(more: Ad) -> None:
    """A slot of a size that cannot be is counted; its pilot is there, with a size not known."""
    found = decode(slot(more=more))
    (key,) = found.pilots
    assert (key.name, key.size, key.free, key.jobs) == ("pilot", None, (), ())
    assert key.accepting
    assert found.samples == ()
    assert [(p.source, p.problem, p.detail) for p in found.problems] == [
        ("cm", "bad_size", "slot1@pilot")
    ]


def test_one_absurd_slot_of_several() -> None:
    """The others tell what can be known of their startd."""
    found = decode(slot(), slot(more={"Name": "slot2@pilot", "Cpus": -1}))
    assert [key.size for key in found.pilots] == [Size(8, 16384)]
    assert [p.detail for p in found.problems] == ["slot2@pilot"]


@pytest.mark.parametrize("more", [{"TotalSlotCpus": 0}, {"TotalSlotMemory": 1}], ids=str)
def test_a_size_that_no_pilot_has(more: Ad) -> None:
    """No cores, or a megabyte of memory, are dummies: the size is not known."""
    found = decode(slot(more=more))
    assert [key.size for key in found.pilots] == [None]
    assert found.samples == ()


def test_slot_without_name_is_a_problem() -> None:
    """An ad without a name cannot be told apart from others."""
    ad = slot()
    del ad["Name"]
    found = decode(ad)
    assert found.pilots == ()
    assert [p.problem for p in found.problems] == ["no_name"]


def test_slot_without_site_is_kept_and_a_problem() -> None:
    """A pilot that names neither site nor entry is counted under one unknown site."""
    ad = {k: v for k, v in slot().items() if k not in ("GLIDEIN_Site", "GLIDEIN_Entry_Name")}
    found = decode(ad)
    assert found.pilots[0].entry == EntryKey("unknown", "unknown")
    assert [(p.problem, p.detail) for p in found.problems] == [("no_site", "pilot")]


@pytest.mark.parametrize(
    ("site", "entry", "key"),
    [
        ("Site", "entry", ENTRY),
        ("Site", None, EntryKey("Site", "Site")),
        (None, "entry", EntryKey("entry", "entry")),
        ("", "entry", EntryKey("entry", "entry")),
    ],
)
def test_entry_falls_back(site: str | None, entry: str | None, key: EntryKey) -> None:
    """Of site and entry one stands for the other where that is missing."""
    ad = slot() | {
        "GLIDEIN_Site": Expr("undefined") if site is None else site,
        "GLIDEIN_Entry_Name": Expr("undefined") if entry is None else entry,
    }
    assert pilot(ad).entry == key


def test_configured_attributes() -> None:
    """Site and entry come from the first configured attribute that is defined."""
    by = Attributes(site=("NoSuch", "FileSystemDomain"), entry=())
    found = decode(slot("cluster.test"), by=by)
    assert found.pilots[0].entry == EntryKey("cluster.test", "cluster.test")


@pytest.mark.parametrize(
    ("name", "group", "said"),
    [
        ("frontend.main", "main", "frontend.main"),
        ("frontend", "main", "frontend.main"),
        ("frontend", None, "frontend"),
        (None, "main", "main"),
        (None, None, ""),
    ],
)
def test_group_is_named_as_in_glideresource_ads(
    name: str | None, group: str | None, said: str
) -> None:
    """Frontend and group make one name, whether or not the frontend's has the group in it."""
    nothing = Expr("undefined")
    ad = slot() | {"GLIDECLIENT_Name": name or nothing, "GLIDECLIENT_Group": group or nothing}
    assert pilot(ad).group == said


@pytest.mark.parametrize("state", ["Drained", "Owner", "Delete", "Shutdown"])
def test_slot_in_a_state_that_refuses(state: str) -> None:
    """A pilot whose slot takes no jobs is not accepting, and still shows what is free."""
    found = pilot(slot(state=(state, "Retiring")))
    assert not found.accepting
    assert found.free == (Size(8, 16384),)


@pytest.mark.parametrize("mark", ["Draining", "GLIDEIN_Failed"])
def test_draining_or_failed(mark: str) -> None:
    """A draining startd, and one that failed validation, take no jobs."""
    assert not pilot(slot(more={mark: True})).accepting


def test_one_closed_static_slot_does_not_close_the_others() -> None:
    """Of several slots the closed one offers nothing, the open ones do."""
    found = pilot(static(1, state=("Owner", "Idle")), static(2))
    assert found.accepting
    assert found.free == (Size(1, 2048),)
    assert found.size == Size(2, 4096)


@pytest.mark.parametrize(
    ("more", "accepting"),
    [
        ({"GLIDEIN_ToRetire": NOW}, False),
        ({"GLIDEIN_ToRetire": NOW + 1}, True),
        ({"GLIDEIN_ToDie": NOW - 1}, False),
        ({"GLIDEIN_ToRetire": NOW + 1, "GLIDEIN_ToDie": NOW - 1}, True),
        ({"GLIDEIN_ToRetire": Expr("undefined"), "GLIDEIN_ToDie": NOW - 1}, False),
    ],
)
def test_retired(more: Ad, accepting: bool) -> None:
    """A pilot past its time to retire, or to die where that alone is told, takes no jobs."""
    assert pilot(slot(more=more)).accepting is accepting


@pytest.mark.parametrize(
    ("die", "left"), [(None, None), (NOW + 1799, 1200), (NOW + 599, 0), (NOW - 5, 0)]
)
def test_remaining_time(die: int | None, left: int | None) -> None:
    """The time left is cut to ten minutes, and unknown where no end is told."""
    assert pilot(slot(more={} if die is None else {"GLIDEIN_ToDie": die})).remaining_s == left


def at(heard_at: float, name: str = "old", **more: Value) -> Ad:
    return heard(slot(name, more), heard_at)


def test_stale_by_its_own_lifetime() -> None:
    """An ad is stale past its own lifetime, or 15 minutes where it names none."""
    fresh = at(NOW, "fresh")
    assert len(decode(fresh, at(NOW - 900)).pilots) == 2
    assert len(decode(fresh, at(NOW - 901)).pilots) == 1
    assert len(decode(fresh, at(NOW - 901, ClassAdLifetime=1800)).pilots) == 2
    assert len(decode(fresh, at(NOW - 61, ClassAdLifetime=60)).pilots) == 1


@pytest.mark.parametrize("skew", [-86400, -700, 0, 300, 86400])
def test_clock_of_the_collector(skew: int) -> None:
    """Ages are told by the collector's clock, however far that is from ours."""
    newest, stale = at(NOW + skew, "newest"), at(NOW + skew - 1000)
    assert [p.name for p in decode(newest, stale).pilots] == ["newest"]
    assert len(decode(newest, at(NOW + skew - 500)).pilots) == 2


def test_all_ads_a_little_old() -> None:
    """Where clocks agree, ours tells that all ads are stale since the collector last cleaned."""
    assert len(decode(at(NOW - 500, ClassAdLifetime=400)).pilots) == 0
    assert len(decode(at(NOW - 300, ClassAdLifetime=400)).pilots) == 1


def test_ad_without_a_time_is_fresh() -> None:
    """An ad that has no time is taken as it is, beside others."""
    ad = slot("untold")
    del ad["LastHeardFrom"]
    found = decode(ad, at(NOW - 5000, "stale"), at(NOW, "fresh"))
    assert [p.name for p in found.pilots] == ["untold", "fresh"]


def test_sample_is_of_the_commonest_size() -> None:
    """The slot that stands for an entry is of the size that most accepting pilots have."""
    found = decode(
        slot("big", cpus=64),
        slot("a"),
        slot("b"),
        slot("c", {"Draining": True}, cpus=64),
        slot("d", {"Draining": True}, cpus=64),
    )
    began = NOW - 3600
    sample = SampleSlot(ENTRY, "slot1@a", Size(8, 16384), GROUP, "", began, pilots=2)
    assert found.samples == (sample,)


def test_a_sample_for_each_frontend_group() -> None:
    """Pilots of two groups at one entry differ by their START: each group has a sample."""
    other = glidein(client="frontend.other")
    found = decode(slot("a"), slot("b", other, cpus=4), slot("c", other, cpus=4), slot("d"))
    assert {(s.group, s.slot) for s in found.samples} == {
        (GROUP, "slot1@a"),
        ("frontend.other", "slot1@b"),
    }


def test_the_sample_is_of_the_newest_pilots_configuration() -> None:
    """However many pilots began before the frontend was reconfigured."""
    old, new = ({"GLIDECLIENT_Group_Signature": version} for version in ("zz", "aa"))
    found = decode(
        slot("a", old), slot("b", old), slot("c", {**new, "DaemonStartTime": NOW - 60}, cpus=4)
    )
    (sample,) = found.samples
    assert (sample.slot, sample.version, sample.started) == ("slot1@c", "aa", NOW - 60)


def test_sample_of_a_startd_with_static_slots() -> None:
    """An empty pilot of static slots offers one job no more than its largest slot."""
    found = decode(static(1), static(2, cpus=2), static(3))
    (sample,) = found.samples
    assert (sample.slot, sample.size) == ("slot2@pilot", Size(2, 2048))


def test_no_sample_of_pilots_that_refuse() -> None:
    """A pilot that takes no jobs says nothing of what an empty one would take."""
    assert decode(slot(more={"Draining": True})).samples == ()


def test_what_else_a_pilot_tells() -> None:
    """A pilot has its startd's start, factory and the time it was heard of last."""
    found = pilot(slot() | {"Name": "slot1@p"}, slot() | {"Name": "slot2@p", "LastHeardFrom": NOW})
    assert (found.name, found.started, found.factory) == ("p", NOW - 3600, "factory")
    assert found.last_heard == NOW


def test_samples_do_not_depend_on_the_order_of_ads() -> None:
    """The slot that stands for an entry is the same whatever the order in which ads come."""
    ads = [slot(f"p{n}@node") for n in (3, 1, 2)]
    there, back = decode(*ads).samples, decode(*ads[::-1]).samples
    assert there == back
    assert there[0].slot == "slot1@p1@node"


# -- StartD ads


def decode_startds(*ads: Mapping[str, Value]) -> Startds:
    return startds.decode(classads(*ads), ATTRIBUTES, NOW)


def startd(name: str = "pilot", **more: Value) -> Ad:
    return heard(startd_ad(name, started=NOW - 60, now=NOW, glidein=glidein())) | more


def test_pilot_by_its_startd() -> None:
    """A StartD ad tells who a pilot is and its size, but neither free slots nor jobs."""
    (found,) = decode_startds(startd(TotalGPUs=2)).pilots
    assert (found.name, found.entry, found.group) == (
        "pilot",
        ENTRY,
        GROUP,
    )
    assert (found.size, found.started, found.last_heard) == (Size(8, 16384, 2), NOW - 60, NOW)
    assert (found.free, found.jobs, found.accepting) == ((), (), False)


def test_unused_pilots() -> None:
    """A pilot whose startd has started no job is unused."""
    found = decode_startds(startd("new", JobStarts=0), startd("used", JobStarts=3))
    assert found.unused == {"new"}


def test_ads_that_tell_nothing_new() -> None:
    """Ads made up from a slot's (no JobStarts), of monitors, absurd or stale ones are left out."""
    found = decode_startds(
        startd("no_count", JobStarts=Expr("undefined")),
        startd("monitor", IS_MONITOR_VM=True),
        startd("absurd", TotalCpus=1e9),
        startd("negative", TotalMemory=-1),
        startd("stale", LastHeardFrom=NOW - 1000),
        startd("fine"),
    )
    assert [p.name for p in found.pilots] == ["fine"]


def test_query_of_startds() -> None:
    """The query asks for the attributes by which pilots are distinguished."""
    query = startds.query(ATTRIBUTES)
    assert query.ad_type == "StartDaemon"
    assert {"Name", "JobStarts", "TotalCpus", "GLIDEIN_Site"} <= set(query.projection)
