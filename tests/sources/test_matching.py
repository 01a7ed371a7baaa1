"""Could a job run on an empty pilot?"""

from __future__ import annotations

import subprocess
import sys

import classad2
import pytest

from gwmond.config.settings import Attributes
from gwmond.model.facts import EntryKey, Size, Template, Verdict
from gwmond.sources.htcondor import matching
from gwmond.sources.htcondor.pilots.slots import SampleSlot
from tests.pool.adtext import Ad, Expr, Value, ad_text
from tests.pool.feign import dynamic_slot, glidein, glideresource, partitionable_slot, static_slot
from tests.sources.make import ATTRIBUTES, NOW, attributes, classad, classads

ENTRY = EntryKey("T2_US_Example", "ce1")
STARTED = NOW - 36_000
LIFETIME = 172_800
YES, NO, POSSIBLE = Verdict.YES, Verdict.NO, Verdict.POSSIBLE


def busy(**more: Value) -> Ad:
    """A live slot in the middle of its life, half of it in use."""
    children = [dynamic_slot("pilot", i, cpus=2, memory=4096) for i in (1, 2)]
    origin = glidein(
        "ce1", "T2_US_Example", to_retire=STARTED + LIFETIME - 3600, to_die=STARTED + LIFETIME
    )
    ad = partitionable_slot(
        "pilot", children=children, glidein=origin, started=STARTED, now=NOW - 300
    )
    used: Ad = {
        "RemoteOwner": "alice@pool.test",
        "RemoteUser": "alice@pool.test",
        "JobId": "4.0",
        "AccountingGroup": "cms.alice",
        "ClientMachine": "ap.test",
        "TotalTimeClaimedBusy": 17,
        "LoadAvg": 1.5,
        "ClaimId": "<secret>",
        "ChildClaimIds": ["<secret>"],
        "TotalSlotDisk": 20_000_000.0,
        "GLIDEIN_CMSSite": "T2_US_Example",
        "HAS_SINGULARITY": True,
        "GLIDEIN_REQUIRED_OS": "any",
        "HAS_CVMFS_cms_cern_ch": True,
    }
    return ad | used | more


def measured(ad: Ad, by: Attributes = ATTRIBUTES) -> Template:
    sample = SampleSlot(ENTRY, str(ad["Name"]), Size(8, 16384))
    (template,) = matching.templates_from_slots(classads(ad), [sample], by)
    return template


def value(template: Template, name: str) -> object:
    return classad(template.ad).eval(name)


def ends(template: Template, name: str) -> str:
    return str(classad(template.ad).lookup(name))


def test_versions_are_told() -> None:
    """Of HTCondor its number, of configurations all signatures; what is missing is not there."""
    signed = {"GLIDEIN_Signature": "f1", "GLIDEIN_Entry_Signature": "e1"}
    version = "$CondorVersion: 25.14.1 2026-09-24 BuildID: 1 $"
    found = dict(measured(busy(CondorVersion=version, **signed)).versions)
    assert found == {"htcondor": "25.14.1", "factory_configuration": "f1 e1"}
    assert measured(busy(CondorVersion="")).versions == ()


def test_size_is_restored() -> None:
    """An empty pilot has its whole size free, whatever runs on the slot now."""
    template = measured(busy())
    found = [value(template, name) for name in ("Cpus", "Memory", "GPUs", "Disk")]
    assert found == [8, 16384, 0, 20_000_000]
    assert value(template, "TotalSlotCpus") == 8
    assert (value(template, "State"), value(template, "Activity")) == ("Unclaimed", "Idle")
    assert template.size == Size(8, 16384)
    assert template.evidence == "measured"


def test_an_empty_pilot_starts_when_it_is_matched() -> None:
    """Its ends move on with time, as a template is kept for long; its lifetime stays."""
    template = measured(busy())
    assert ends(template, "GLIDEIN_ToDie") == f"time() + {LIFETIME}"
    assert ends(template, "GLIDEIN_ToRetire") == f"time() + {LIFETIME - 3600}"
    assert template.lifetime_s == LIFETIME


def test_configured_times_are_moved() -> None:
    """The configured attributes for a pilot's ends are moved, whatever their names."""
    by = Attributes(retire=("MyRetire",), die=("MyEnd",))
    ad = busy(MyRetire=STARTED + 500, MyEnd=STARTED + 1000)
    template = measured(ad, by)
    assert (ends(template, "MyRetire"), ends(template, "MyEnd")) == (
        "time() + 500",
        "time() + 1000",
    )
    assert template.lifetime_s == 1000


def test_user_attributes_are_gone() -> None:
    """Who uses the slot now, its load and its secrets are not in the template."""
    text = measured(busy()).ad
    left = attributes(text)
    for name in (
        *("RemoteOwner", "RemoteUser", "JobId", "AccountingGroup", "ClientMachine"),
        *("ClaimId", "ChildClaimIds", "ChildCpus", "NumDynamicSlots", "TotalTimeClaimedBusy"),
        *("LoadAvg", "MyCurrentTime", "DaemonStartTime", "EnteredCurrentState", "MyAddress"),
    ):
        assert name.lower() not in left
    assert not any(secret in text for secret in ("alice", "secret"))
    assert {"arch", "opsys", "glidein_site", "has_singularity", "requirements"} <= left


def test_identity_stays_as_time_goes_by() -> None:
    """The same slot later, with another job, is the same template, so that verdicts stay."""
    later = busy(Cpus=1, Memory=1, State="Claimed", TotalTimeClaimedBusy=999, JobId="5.0")
    assert measured(busy()).signature == measured(later).signature
    assert measured(busy()).signature != measured(busy(HAS_SINGULARITY=False)).signature


def test_lifetime_that_is_not_told() -> None:
    """Without an end, or without a start, the lifetime is unknown and times stay."""
    ad = busy()
    del ad["DaemonStartTime"]
    template = measured(ad)
    assert template.lifetime_s is None
    assert value(template, "GLIDEIN_ToDie") == STARTED + LIFETIME
    endless = {k: v for k, v in busy().items() if not k.startswith("GLIDEIN_To")}
    assert measured(endless).lifetime_s is None


def test_only_samples_become_templates() -> None:
    """An ad that was not asked for, or is gone, makes no template."""
    sample = SampleSlot(ENTRY, "slot1@gone", Size(1, 1))
    assert matching.templates_from_slots(classads(busy()), [sample], ATTRIBUTES) == ()


def test_samples_are_asked_for_by_name() -> None:
    """The query names the sampled slots, and no name can break out of it."""
    query = matching.samples_query(["slot1@a", 'slot1@b") || true || ("', "slot1@c\\"])
    assert query.projection == ()
    wanted = classad2.ExprTree(query.constraint)
    assert wanted.eval(classad('[ Name = "SLOT1@A" ]')) is True
    assert wanted.eval(classad('[ Name = "slot1@b\\") || true || (\\"" ]')) is True
    assert wanted.eval(classad('[ Name = "slot1@c\\\\" ]')) is True
    assert wanted.eval(classad('[ Name = "slot1@d" ]')) is False


def test_template_of_a_glideresource_ad() -> None:
    """Without a pilot the entry's own attributes make a template, estimated."""
    ad = classad(glideresource("ce1", "T2_US_Example", HAS_SINGULARITY=True))
    template = matching.template_from_glideresource(ad, ENTRY, Size(8, 16000), 3600)
    assert (value(template, "Cpus"), value(template, "HAS_SINGULARITY")) == (8, True)
    assert (template.evidence, template.lifetime_s) == ("estimated", 3600)


def job(requirements: str = "true", **more: Value) -> Ad:
    """An idle job as a GroupBy row has it."""
    ad: Ad = {
        "RequestCpus": 4,
        "RequestMemory": 8000,
        "RequestDisk": 100_000,
        "JobUniverse": 5,
        "Requirements": Expr(requirements),
    }
    return ad | more


def verdict(job_ad: Ad, slot: Ad, *, estimated: bool = False) -> Verdict:
    if estimated:
        ad = classad(glideresource("ce1", "T2_US_Example") | slot)
        template = matching.template_from_glideresource(ad, ENTRY, Size(8, 16384), LIFETIME)
        template = matching.with_start(template, ())
    else:
        template = measured(busy() | slot)
    ((found,), pairs) = matching.evaluate([ad_text(job_ad)], [template], [(0, 0)])
    assert pairs == 1
    return found


SUBMIT = (
    '(TARGET.Arch == "X86_64") && (TARGET.OpSys == "LINUX") && (TARGET.Disk >= RequestDisk)'
    " && (TARGET.Memory >= RequestMemory) && (TARGET.Cpus >= RequestCpus)"
    " && ((TARGET.FileSystemDomain == MY.FileSystemDomain) || (TARGET.HasFileTransfer))"
)
CMS = (
    'stringListMember(GLIDEIN_CMSSite,DESIRED_Sites) && ((REQUIRED_OS =?= "any") '
    '|| (GLIDEIN_REQUIRED_OS =?= "any") || stringListMember(GLIDEIN_REQUIRED_OS,REQUIRED_OS))'
    " && (time() < GLIDEIN_ToRetire)"
    " && (MaxWallTimeMins * 60 < GLIDEIN_ToDie - time())"
)
FERMILAB = (
    "((isUndefined(target.GLIDEIN_Site) == FALSE) ? (stringListIMember(target.GLIDEIN_Site,"
    "my.DESIRED_Sites)) : FALSE) && (isUndefined(target.HAS_CVMFS_cms_cern_ch) == FALSE)"
)
OSPOOL = "(HAS_SINGULARITY == true) && (TARGET.OpSysMajorVer >= 8) && SINGULARITY_CAN_USE_SIF"


@pytest.mark.parametrize(
    ("requirements", "more", "live"),
    [
        (SUBMIT, {"FileSystemDomain": "ap.test"}, YES),
        (SUBMIT.replace("X86_64", "aarch64"), {"FileSystemDomain": "ap.test"}, NO),
        (SUBMIT, {"FileSystemDomain": "ap.test", "RequestMemory": 20000}, NO),
        (SUBMIT, {"FileSystemDomain": "ap.test", "RequestCpus": 8, "RequestMemory": 16384}, YES),
        (CMS, {"DESIRED_Sites": "T1_X,T2_US_Example", "MaxWallTimeMins": 60}, YES),
        (CMS, {"DESIRED_Sites": "T1_X", "MaxWallTimeMins": 60}, NO),
        (
            CMS,
            {"DESIRED_Sites": "T2_US_Example", "MaxWallTimeMins": LIFETIME // 60 + 1},
            NO,
        ),
        (FERMILAB, {"DESIRED_Sites": "t2_us_example,Other"}, YES),
        (FERMILAB, {"DESIRED_Sites": "Other"}, NO),
        (OSPOOL, {}, NO),
        (OSPOOL.rpartition(" && ")[0], {}, YES),
        ("GLIDEIN_Site =?= undefined", {}, NO),
        ('TARGET.GLIDEIN_Site != "T2_US_Example"', {}, NO),
        ("1", {}, YES),
        ("0", {}, NO),
        ("undefined", {}, NO),
        ("error", {}, NO),
        ('"text"', {}, NO),
        ("TARGET.NoSuch > 3", {}, NO),
        ("(TARGET.NoSuch ?: 0) < 3", {}, YES),
    ],
)
def test_requirements_of_real_pools(requirements: str, more: Ad, live: Verdict) -> None:
    """Requirements as experiments write them are judged as HTCondor would on an empty pilot."""
    assert verdict(job(requirements, **more), {}) == live


@pytest.mark.parametrize(
    ("requirements", "estimated"),
    [
        ('GLIDEIN_Site == "T2_US_Example"', YES),
        ('GLIDEIN_Site == "Other"', NO),
        ('GLIDEIN_Site == "Other" && TARGET.HAS_SINGULARITY', NO),
        ("TARGET.HAS_SINGULARITY", POSSIBLE),
        ("TARGET.HAS_SINGULARITY =?= true", POSSIBLE),
        ("isUndefined(TARGET.HAS_CVMFS_cms_cern_ch) == FALSE", POSSIBLE),
        ('stringListMember("cvmfs", TARGET.FEATURES)', POSSIBLE),
        (FERMILAB, POSSIBLE),
        (FERMILAB.replace("DESIRED_Sites", "NoSites"), NO),
        ('TARGET.HAS_SINGULARITY =?= true && GLIDEIN_Site == "Other"', NO),
        ("MY.RequestCpus == 4 && TARGET.HAS_X =?= true", POSSIBLE),
        ("MY.RequestCpus == 5 && TARGET.HAS_X =?= true", NO),
        ('TARGET.Arch == "X86_64" && TARGET.Memory >= RequestMemory', POSSIBLE),
        ("TARGET.Memory >= RequestMemory", YES),
        ("TARGET.Memory >= 2 * RequestMemory + 1000", NO),
    ],
)
def test_undefined_against_an_estimate_is_possible(requirements: str, estimated: Verdict) -> None:
    """What the glideresource ad does not tell may be so on a pilot; what it tells decides."""
    wants = job(requirements, DESIRED_Sites="T2_US_Example", NoSites="Other")
    found = verdict(wants, {}, estimated=True)
    assert found == estimated


DEFAULT = "(TARGET.FileSystemDomain == MY.FileSystemDomain) || TARGET.HasFileTransfer"


@pytest.mark.parametrize("requirements", [DEFAULT, SUBMIT])
def test_what_a_pilot_may_have_is_not_sought_in_the_job(requirements: str) -> None:
    """As condor_submit writes it: the ad of an entry says neither the domain nor the plugin."""
    wants = job(requirements, FileSystemDomain="ap.test")
    assert verdict(wants, {}, estimated=True) == POSSIBLE


REAL_START = (
    "(true && (SiteWMS_WN_Draining is false)) && ((true) && (true) && (true) && ((WantGroup is"
    ' "main") && stringListMember(GLIDEIN_Site,ifThenElse(isUndefined(DESIRED_Sites),'
    '"T2_US_Example,SiteB",DESIRED_Sites),","))) && (((GLIDEIN_ToRetire is undefined) ||'
    " (CurrentTime < GLIDEIN_ToRetire))) && (true)"
)
"""Of a pilot of a real GlideinWMS, 3.10.17+: frontend's and group's START, and the pilot's own."""
REAL_QUERY = (
    "((JobUniverse==5)&&(GLIDEIN_Is_Monitor =!= TRUE)&&(JOB_Is_Monitor =!= TRUE))"
    ' && (WantGroup=?="main")'
)
NOTHING = Expr("undefined")
MAIN: Ad = {"WantGroup": "main", "DESIRED_Sites": NOTHING}


@pytest.mark.parametrize(
    ("more", "by_pilots", "by_query", "by_nothing"),
    [
        (MAIN, POSSIBLE, YES, Verdict.UNKNOWN),
        (MAIN | {"WantGroup": "ligo"}, NO, NO, Verdict.UNKNOWN),
        (MAIN | {"WantGroup": NOTHING}, NO, NO, Verdict.UNKNOWN),
        (MAIN | {"DESIRED_Sites": "SiteB"}, NO, YES, Verdict.UNKNOWN),
        (MAIN | {"Requirements": Expr('GLIDEIN_Site == "SiteB"')}, NO, NO, NO),
        (MAIN | {"Requirements": Expr('GLIDECLIENT_Group == "cms"')}, NO, NO, NO),
    ],
)
def test_the_start_of_a_group_is_that_of_its_pilots_elsewhere(
    more: Ad, by_pilots: Verdict, by_query: Verdict, by_nothing: Verdict
) -> None:
    """Else the jobs that the group counts; where neither is known, nothing is."""
    slot = busy(START=Expr(REAL_START), Requirements=Expr("START"), SiteWMS_WN_Draining=False)
    there = measured(slot)
    ads = (
        classad(glideresource("ce2", "T2_US_Example") | {matching.JOB_QUERY: query})
        for query in (REAL_QUERY, "")
    )
    here = [matching.template_from_glideresource(ad, ENTRY, Size(8, 16384), None) for ad in ads]
    monitors: Ad = {"GLIDEIN_Is_Monitor": NOTHING, "JOB_Is_Monitor": NOTHING}
    text = ad_text(job("true") | monitors | more)
    templates = [
        matching.with_start(here[0], [there.start]),
        *(matching.with_start(one, ()) for one in here),
    ]
    found, _ = matching.evaluate([text], templates, [(0, 0), (0, 1), (0, 2)])
    assert found == [by_pilots, by_query, by_nothing]
    assert {"WantGroup", "DESIRED_Sites"} <= set(templates[0].refers)


@pytest.mark.parametrize(
    ("start", "found"),
    [
        ("TARGET.RequestCpus <= MY.Cpus", YES),
        ("TARGET.RequestCpus > MY.Cpus", NO),
        ('TARGET.x509UserProxyVOName == "cms"', POSSIBLE),
        ('TARGET.x509UserProxyVOName =?= "cms"', POSSIBLE),
        ('x509UserProxyVOName =?= "cms"', POSSIBLE),
        ("stringListMember(GLIDEIN_Site, TARGET.DESIRED_Sites)", POSSIBLE),
        ("stringListMember(GLIDEIN_Site, DESIRED_Sites) =?= true", POSSIBLE),
        ('TARGET.VO == "lhcb"', NO),
        ('VO == "lhcb"', NO),
        ('VO == "lhcb" && stringListMember(GLIDEIN_Site, DESIRED_Sites)', NO),
        ('VO == "cms" && stringListMember(GLIDEIN_Site, DESIRED_Sites)', POSSIBLE),
        ('VO == "cms" && TARGET.WantsOther =!= true', YES),
        (f'TARGET.VO == "cms" && GLIDEIN_ToRetire > {NOW}', YES),
        ("false", NO),
    ],
)
def test_start_of_the_pilot(start: str, found: Verdict) -> None:
    """A START expression that asks for what the group does not carry leaves it possible."""
    slot: Ad = {"Start": Expr(start), "Requirements": Expr("START && (WithinResourceLimits)")}
    assert verdict(job("true", VO="cms"), slot) == found


NO_LIMITS: Ad = {
    name: Expr("undefined")
    for name in measured(busy()).refers
    if name not in ("RequestCpus", "RequestMemory", "RequestDisk")
}
"""What a job lacks to which the slot's WithinResourceLimits refers."""


@pytest.mark.parametrize(
    ("start", "found"),
    [
        ('TARGET.WantVO == "a"', NO),
        ('WantVO == "a"', NO),
        ("TARGET.WantVO =?= undefined", YES),
        ("TARGET.WantVO =!= true", YES),
        ('TARGET.WantVO == "a" || TARGET.Owner == "x"', POSSIBLE),
    ],
)
def test_start_on_an_attribute_that_jobs_are_known_to_lack(start: str, found: Verdict) -> None:
    """Undefined is not met, as in HTCondor; what the group does not carry stays possible."""
    slot: Ad = {"Start": Expr(start), "Requirements": Expr("START && (WithinResourceLimits)")}
    assert verdict(job("true", WantVO=Expr("undefined"), **NO_LIMITS), slot) == found


@pytest.mark.parametrize(
    ("start", "found"),
    [
        ("GLIDEIN_Flag == true", POSSIBLE),
        ("TARGET.GLIDEIN_Flag == true", NO),
        ("TARGET.GLIDEIN_Flag == true || GLIDEIN_Flag == true", POSSIBLE),
        ('stringListMember(TARGET.GLIDEIN_Flag, "a,b")', NO),
        ("TARGET.GLIDEIN_Flag =!= true", YES),
    ],
)
def test_what_a_glideresource_ad_lacks_may_be_the_pilots_own(start: str, found: Verdict) -> None:
    """That no job has an attribute proves something only where START says whose it is."""
    slot: Ad = {"GlideClientConstraintFactoryCondorExpr": start}
    wants = job("true", GLIDEIN_Flag=Expr("undefined"))
    assert verdict(wants, slot, estimated=True) == found


@pytest.mark.parametrize(
    ("start", "found"),
    [
        ("TARGET.Serial =!= 7", POSSIBLE),
        ("TARGET.Serial == 7", POSSIBLE),
        ("TARGET.WantVO =!= 7", YES),
        ('TARGET.WantVO == "b" && TARGET.Serial =!= 7', NO),
    ],
)
def test_what_depends_on_an_attribute_that_was_left_out_is_possible(
    start: str, found: Verdict
) -> None:
    """Also where START happens to be true without it."""
    slot: Ad = {"Start": Expr(start), "Requirements": Expr("START && (WithinResourceLimits)")}
    wants = job("true", WantVO="a", **{matching.UNGROUPED: True}, **NO_LIMITS)
    assert verdict(wants, slot) == found


def test_what_start_refers_to() -> None:
    """The job's attributes, through the pilot's own, with TARGET or without; not the pilot's."""
    start = Expr('(TARGET.Owner == "a") && VO =?= "x" && GLIDEIN_Site == "Y" && Ours')
    slot = busy(Start=start, Ours=Expr("TARGET.Deep > 1 && Memory > 1"))
    refers = measured(slot).refers
    assert {"Owner", "VO", "Deep", "RequestCpus"} <= set(refers)
    assert not {"GLIDEIN_Site", "Ours", "Memory", "START", "WithinResourceLimits"} & set(refers)
    assert list(refers) == sorted(refers, key=str.lower)
    assert matching.start_references(classad("[ a = 1 ]")) == ()


def test_matching_leaves_ads_as_they_are() -> None:
    """An ad that was matched with one is the same for the next."""
    slot = classad('[ Requirements = VO == "cms" && User =?= "x"; Place = "A" ]')
    wants = classad('[ Requirements = Place == "A" && Has =?= true; VO = "cms" ]')
    before = str(slot), str(wants)
    found = [matching.match(wants, slot, estimated=True) for _ in range(2)]
    assert found == [POSSIBLE, POSSIBLE]
    assert (str(slot), str(wants)) == before


def test_attributes_are_looked_up_in_both_ads() -> None:
    """An attribute without MY or TARGET is found in the other ad, in a process of its own too."""
    script = (
        "from gwmond.sources.htcondor import matching\n"
        "from gwmond.model.facts import EntryKey, Size, Template\n"
        'slot = \'[ Site = "A"; Requirements = VO == "cms" ]\'\n'
        "template = Template(EntryKey('a', 'a'), slot, '', Size(1, 1), None, 'measured')\n"
        'job = \'[ VO = "cms"; Requirements = Site == "A" ]\'\n'
        "print(*matching.evaluate([job], [template], [(0, 0)])[0])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "yes\n"


def test_static_slot_as_template() -> None:
    """A claimed static slot stands for an empty one as well as a free one does."""
    ad = static_slot("pilot", state=("Claimed", "Busy"), cpus=8, memory=16384, glidein=glidein())
    assert verdict(job("TARGET.Cpus >= 4"), ad) == YES


def test_ad_without_requirements_asks_for_nothing() -> None:
    """An ad that has no Requirements takes anything."""
    assert matching.match(classad("[ a = 1 ]"), classad("[ b = 1 ]"), estimated=False) == YES


def test_pairs_are_answered_in_their_order() -> None:
    """Each pair has its verdict at its own place."""
    templates = [measured(busy()), measured(busy(GLIDEIN_Site="Other"))]
    jobs = [ad_text(job(f'GLIDEIN_Site == "{site}"')) for site in ("T2_US_Example", "Other")]
    pairs = [(1, 0), (0, 0), (0, 1), (1, 1)]
    assert matching.evaluate(jobs, templates, pairs) == ([NO, YES, NO, YES], 4)


def test_an_empty_pilot_has_all_of_its_resources() -> None:
    """Also those that a pool names itself, and GPUs that a job wants by their properties."""
    used: Ad = {
        "Licences": 0,
        "TotalSlotLicences": 2,
        "GPUs_GPU_a_1": Expr("[ Capability = 2.0 ]"),
        "GPUs_GPU_b_2": Expr("[ Capability = 8.0 ]"),
        "AssignedGPUs": "GPU-a-1,GPU-b-2",
        "AvailableGPUs": Expr("{ GPUs_GPU_a_1 }"),
        "Requirements": True,
    }
    template = measured(busy(**used))
    assert value(template, "Licences") == 2
    for wanted, verdict in (
        ("TARGET.Licences >= 2", YES),
        ("countMatches(MY.RequireGPUs, TARGET.AvailableGPUs) >= 1", YES),
        ("countMatches(MY.RequireGPUs, TARGET.AvailableGPUs) >= 2", NO),
    ):
        job: Ad = {"Requirements": Expr(wanted), "RequireGPUs": Expr("Capability > 4")}
        (found,), _ = matching.evaluate([ad_text(job)], [template], [(0, 0)])
        assert found is verdict, wanted
