"""What is advised of a job's attributes was tried: HTCondor's own matching accepts the job then."""

from __future__ import annotations

import htcondor2  # noqa: F401 (names are looked up in both ads once it has been loaded)
import pytest

from gwmond.model.facts import EntryKey, Evidence, Size, Template
from gwmond.sources.htcondor.ads import parse
from gwmond.sources.htcondor.alike import Values
from gwmond.sources.htcondor.edits import edits
from gwmond.sources.htcondor.places import Asking, EmptyPilots, free_slot
from tests.pool.adtext import Ad, Expr, Value, ad_text
from tests.sources.make import ATTRIBUTES

_DEFAULTS = (
    '(TARGET.Arch == "X86_64") && (TARGET.OpSys == "LINUX") && (TARGET.Disk >= RequestDisk) && '
    "(TARGET.Memory >= RequestMemory) && (TARGET.HasFileTransfer)"
)
"""What condor_submit adds to a user's Requirements."""
JOB: Ad = {
    "ClusterId": 1,
    "RequestCpus": 1,
    "RequestMemory": 1000,
    "RequestDisk": 1000,
    "FileSystemDomain": "ap.example.org",
}
PILOT: Ad = {
    "Cpus": 8,
    "Memory": 16000,
    "Disk": 2_000_000,
    "GPUs": 1,
    "HasFileTransfer": True,
    "Arch": "X86_64",
    "OpSys": "LINUX",
    "OpSysAndVer": "AlmaLinux9",
    "GLIDEIN_Site": "Nebraska",
    "GLIDEIN_Entry_Name": "ne-1",
    "HAS_SINGULARITY": True,
    "GLIDEIN_ToDie": Expr("time() + 7200"),
    "FileSystemDomain": "wn.example.org",
    "GPUs_a": Expr("[ Capability = 7.5; GlobalMemoryMb = 16000 ]"),
    "AvailableGPUs": Expr("{ GPUs_a }"),
    "Requirements": Expr("START"),
}


def template(ad: Ad, size: Size, evidence: Evidence = "measured", entry: str = "ne-1") -> Template:
    key = EntryKey("Nebraska", entry)
    return Template(key, ad_text(ad), "s", size, None, evidence, "fe.main")


def found(
    wanted: str, start: str = "true", pilot: Ad | None = None, gpus: int = 1, **more: Value
) -> list[str]:
    """Return the attributes and values that are advised first; the job matches with these."""
    requirements = Expr(f"({wanted}) && {_DEFAULTS}")
    asking = Asking(parse(ad_text({**JOB, "Requirements": requirements, **more})))
    told = PILOT | {"START": Expr(start)} | (pilot or {})
    empty = EmptyPilots([template(told, Size(8, 16000, gpus))])
    made = edits(asking, ATTRIBUTES, empty, empty.places(asking), 10)
    if not made:
        return []
    for change in made[0].changes:
        asking.ad[change.name] = parse(f"[x = {change.value}]").lookup("x")
    assert Asking(asking.ad).at(empty.every[0]).matches
    assert made[0].opened == ((EntryKey("Nebraska", "ne-1"), "fe.main"),)
    return [f"{one.name} = {one.value}" for one in made[0].changes]


def test_a_job_that_matches_needs_none() -> None:
    assert found("true") == []


@pytest.mark.parametrize(
    ("wanted", "instead"),
    [
        ('TARGET.GLIDEIN_Site == "Nebrasca"', 'TARGET.GLIDEIN_Site == "Nebraska"'),
        ('TARGET.GLIDEIN_Site =?= "nebraska"', 'TARGET.GLIDEIN_Site is "Nebraska"'),
        (
            'stringListMember(TARGET.GLIDEIN_Site, "Wisconsin,Nebrska")',
            'stringListMember(TARGET.GLIDEIN_Site,"Wisconsin,Nebraska")',
        ),
        ("TARGET.HAS_SINGULARTY =?= true", "TARGET.HAS_SINGULARITY is true"),
        ("TARGET.Memory >= 64000", "TARGET.Memory >= 16000"),
    ],
)
def test_a_clause_is_rewritten(wanted: str, instead: str) -> None:
    """A word, the case of one, an attribute, or a number: the rest of Requirements stays."""
    (change,) = found(wanted)
    assert change.startswith(f"Requirements = ({instead}) && (TARGET.Arch == ")


@pytest.mark.parametrize(
    "wanted",
    ['TARGET.OpSysAndVer == "AlmaLinux8"', 'TARGET.GLIDEIN_Site == "Atlantis"', "TARGET.HAS_ROOT"],
)
def test_a_clause_that_wants_something_else_is_left_out(wanted: str) -> None:
    """Words that differ in their digits alone mean something else."""
    (change,) = found(wanted)
    assert change.startswith('Requirements = (TARGET.Arch == "X86_64") && ')
    assert "HasFileTransfer" in change


@pytest.mark.parametrize("wanted", ["TARGET.HasDocker", "TARGET.HasSingularity =?= true"])
def test_what_a_job_needs_is_not_left_out(wanted: str) -> None:
    """Without the clause the job would start, and fail."""
    assert found(wanted, pilot={"HAS_SINGULARITY": False, "HAS_DOCKERS": False}) == []


@pytest.mark.parametrize(
    ("start", "job", "changes"),
    [
        ("TARGET.RequestCpus >= 4", {}, ["RequestCpus = 4"]),
        ("TARGET.RequestCpus > 4", {}, ["RequestCpus = 5"]),
        ("TARGET.RequestMemory < 500", {}, ["RequestMemory = 499"]),
        ("TARGET.RequestGPUs > 0", {}, ["RequestGPUs = 1"]),
        ("TARGET.MaxWallTimeMins <= 1440", {"MaxWallTimeMins": 43200}, ["MaxWallTimeMins = 1440"]),
        ('stringListMember(TARGET.VO, "cms,ligo")', {"VO": "lgo"}, ['VO = "ligo"']),
        (
            'stringListMember(GLIDEIN_Site, TARGET.DESIRED_Sites, ",")',
            {"DESIRED_Sites": "Wisconsin,Nebrasca"},
            ['DESIRED_Sites = "Wisconsin,Nebraska"'],
        ),
        ("TARGET.Blacklisted =!= true", {"Blacklisted": True}, []),
        ('TARGET.VO == "cms"', {"VO": "dune"}, []),
        ('TARGET.Owner == "alicia"', {"Owner": "alice"}, []),
    ],
)
def test_what_start_asks_of_a_job(start: str, job: Ad, changes: list[str]) -> None:
    """What asks for more gets more, and no more than that; who somebody is nobody changes."""
    assert found("true", start, None, 1, **job) == changes


def test_what_is_left_of_a_pilot() -> None:
    """A walltime that fits has a margin, for the pilot grows older."""
    start = "time() + TARGET.MaxWallTimeMins * 60 < GLIDEIN_ToDie"
    (change,) = found("true", start, MaxWallTimeMins=43200)
    assert 100 < int(change.removeprefix("MaxWallTimeMins = ")) < 110


GPUS = "countMatches(MY.RequireGPUs, TARGET.AvailableGPUs) >= RequestGPUs"


@pytest.mark.parametrize(
    ("wants", "instead"),
    [
        ("Capability >= 8.0", "(Capability >= 7.5)"),
        (
            "Capability >= 8.0 && GlobalMemoryMb > 8000",
            "(Capability >= 7.5) && (GlobalMemoryMb > 8000)",
        ),
        ('DeviceName == "H100" && Capability >= 6.0', "(Capability >= 6.0)"),
        (
            'DeviceName == "H100" && Capability >= 8.0 && GlobalMemoryMb >= 40000 && Level > 1',
            "(Capability >= 7.5) && (GlobalMemoryMb >= 16000)",
        ),
    ],
)
def test_the_properties_of_gpus(wants: str, instead: str) -> None:
    """A GPU is asked for as before, of those that there are."""
    assert found(GPUS, RequestGPUs=1, RequireGPUs=Expr(wants)) == [f"RequireGPUs = {instead}"]


def test_fewer_gpus_and_lesser_ones() -> None:
    """Neither change alone is enough."""
    changes = found(GPUS, RequestGPUs=4, RequireGPUs=Expr("Capability >= 8.0"))
    assert changes == ["RequestGPUs = 1", "RequireGPUs = (Capability >= 7.5)"]


@pytest.mark.parametrize(
    ("wanted", "pilot"),
    [
        ("TARGET.GPUs >= RequestGPUs", {"GPUs": 0, "AvailableGPUs": Expr("{ }")}),
        (GPUS, {"GPUs": 0, "AvailableGPUs": Expr("undefined")}),
    ],
)
def test_who_wants_a_gpu_is_told_to_do_without_only_where_there_is_none(
    wanted: str, pilot: Ad
) -> None:
    """Never to leave out the clause: a job would start without its GPU."""

    def advised(has: Ad, gpus: int) -> list[str]:
        better = Expr("Capability >= 2.0")
        return found(wanted, "true", has, gpus, RequestGPUs=3, RequireGPUs=better)

    assert advised({}, 1) == ["RequestGPUs = 1"]
    assert advised(pilot, 1) == []
    assert advised(pilot, 0) == ["RequestGPUs = 0"]


@pytest.mark.parametrize(
    ("wanted", "free", "advised"),
    [
        ("true", 9000, "9000"),
        ("true", 16000, "16000"),
        ("true", 7000, "16000"),
        ("Memory == 5", 7000, "7000"),
        ('GLIDEIN_Stie == "Nebraska" && Memory == 5', 7000, "7000"),
    ],
)
def test_what_a_free_slot_takes_comes_first(wanted: str, free: int, advised: str) -> None:
    """A request if it is at least half of what an empty pilot has."""
    requirements, request = Expr(f"{wanted} && {_DEFAULTS}"), 64000 if wanted == "true" else 100
    asking = Asking(parse(ad_text(JOB | {"RequestMemory": request, "Requirements": requirements})))
    told = PILOT | {"START": Expr("true")}
    empty = EmptyPilots([template(told, Size(8, 16000, 1))])
    now = asking.at(empty.every[0])._replace(kind="slot", size=Size(8, free, 1))
    del told["GLIDEIN_Site"]  # to which the job does not refer
    slots = [free_slot(now, Values(parse(ad_text(told | {"Memory": free}))))]
    found = edits(asking, ATTRIBUTES, empty, empty.places(asking), 10, slots)
    assert found[0].changes[-1].now == advised
    assert (found[0].free, found[0].sure) == (advised == str(free), True)
    assert found[-1].changes[-1].now == "16000"


def test_what_pilots_that_are_seen_need_comes_before_what_others_say() -> None:
    """Ads of factories refuse nothing by cores: these with less memory are no nearer."""
    wanted = JOB | {"RequestCpus": 64, "RequestMemory": 512000, "Requirements": Expr(_DEFAULTS)}
    asking = Asking(parse(ad_text(wanted)))
    told = PILOT | {"Requirements": Expr("TARGET.RequestCpus <= MY.Cpus")}
    templates = [template(told, Size(8, 16000, 1))]
    for memory in (16000, 20000, 32000, 64000):
        ad: Ad = {"Memory": memory, "Disk": 2_000_000, "Requirements": True}
        templates.append(template(ad, Size(8, memory, 0), "estimated", f"of-{memory}"))
    empty = EmptyPilots(templates)
    best = edits(asking, ATTRIBUTES, empty, empty.places(asking), 10)[0]
    assert {one.name: one.now for one in best.changes} == {
        "RequestCpus": "8",
        "RequestMemory": "16000",
    }
    assert best.sure


@pytest.mark.parametrize("own", ["TARGET.Cpus >= RequestCpus", "TARGET.Cpus >= 1"])
def test_a_pilot_that_only_its_factory_shows_is_too_small(own: str) -> None:
    """Also for a job with a clause of its own about cores, to which condor_submit adds none."""
    asking = Asking(parse(ad_text(JOB | {"RequestCpus": 64, "Requirements": Expr(own)})))
    ad: Ad = {"Cpus": 8, "Memory": 16000, "Requirements": True}
    empty = EmptyPilots([template(ad, Size(8, 16000, 0), "estimated")])
    places = empty.places(asking)
    assert [place.matches for place in places] == [False]
    (found,) = edits(asking, ATTRIBUTES, empty, places, 10)
    assert [(one.name, one.now) for one in found.changes] == [("RequestCpus", "8")]


def test_more_than_one_change() -> None:
    wanted = 'TARGET.GLIDEIN_Site == "Nebrasca" && TARGET.Level > 3'
    site, memory, level = found(wanted, RequestMemory=64000, Level="4", pilot={"Level": 3})
    assert 'TARGET.GLIDEIN_Site == "Nebraska"' in site
    assert memory.startswith("Requirements = ")
    assert level == "RequestMemory = 16000"


def test_a_number_in_quotes() -> None:
    assert found("MY.Wanted <= TARGET.Cpus", Wanted="4") == ["Wanted = 4"]
