"""The demo in the package: a week that is worth looking at, and what follows it; and small."""

from __future__ import annotations

import json
import re
import zipfile
from collections import Counter
from importlib import resources
from pathlib import Path

import pytest

from gwmond.config.settings import DemandOptions
from gwmond.metrics import factory
from gwmond.model.states import State
from gwmond.sources.htcondor import ads, demand, matching, waiting_job
from gwmond.sources.htcondor import factory as htcondor_factory
from gwmond.sources.htcondor.access import Daemon
from gwmond.sources.htcondor.histories import histories
from gwmond.sources.htcondor.pilots import claims, slots
from gwmond.sources.recording.recording import Recording, ReplayAccess
from tests.build.command_line import program
from tests.pool.sandbox import USERS
from tests.recordings.summary import Shown
from tests.simulator import world
from tests.sources.make import ATTRIBUTES, names

MOST_BYTES = 10_000_000
EVERY = 32
HOST = "cm.demo.example"
SCHEDDS = tuple(Daemon(name, "<198.51.100.1:9618>") for name in world.SCHEDDS)


@pytest.fixture(scope="module")
def demo() -> Path:
    """The file in the package."""
    return Path(str(resources.files("gwmond") / "data" / "demo.zip"))


@pytest.fixture(scope="module")
def shown(demo: Path) -> Shown:
    """What the daemon's sources and accounting make of it, some times in its two days."""
    return Shown(**json.loads(program("tests.recordings.summary", demo, "--every", EVERY)))


@pytest.fixture(scope="module")
def texts(demo: Path) -> dict[str, str]:
    """The members of the archive that are text."""
    with zipfile.ZipFile(demo) as archive:
        wanted = [name for name in archive.namelist() if name.endswith(".json")]
        return {name: archive.read(name).decode() for name in wanted}


def test_it_is_the_pool_of_the_simulator(demo: Path, shown: Shown) -> None:
    """Two days after the week, and demand that comes and goes."""
    recording = Recording(str(demo))
    assert recording.duration_s == 2 * 86400
    assert recording.times[0] == world.BEGINS + world.PRESENT_H * 3600 + 300
    assert shown.entries == len(world.ENTRIES)
    assert shown.most_pilots >= 150
    assert shown.most_idle_jobs >= 500


def test_all_states_are_seen(shown: Shown) -> None:
    """Every state, and bottlenecks for several reasons, occur."""
    assert set(shown.states) >= set(State) - {State.UNKNOWN}
    reasons = {r.partition(": ")[2] for r in shown.reasons if "bottleneck" in r}
    assert {"frontend_limit", "factory_limit", "no_match_in_frontend"} <= reasons
    assert shown.changes_a_poll >= 2


def test_factories_and_frontends_tell_all_that_they_can(shown: Shown) -> None:
    """Each of their numbers, also in cores, is there at any time of the day.

    But for the age of a request, which only the factory's collector knows ([pool.wms]).
    """
    assert shown.samples.keys() == {family.name for family in factory.FAMILIES}
    missing = {name for name, number in shown.samples.items() if number < 15}
    assert missing == {"gwmond_entry_request_age_seconds"}, shown.samples


@pytest.mark.parametrize("frame", [0, 60])
def test_templates_are_of_the_slots_that_are_asked_for(demo: Path, frame: int) -> None:
    """Which slot stands for its entry is chosen in the replay as it was when recorded.

    When this fails because the choice is another one now, the recording has to be made again.
    """
    moment = Recording(str(demo)).times[frame]
    access = ReplayAccess(str(demo), moment, 0.0)
    found = access.collector_ads(HOST, slots.query(ATTRIBUTES))
    samples = slots.decode(found, ATTRIBUTES, HOST, moment + 299).samples
    assert len(samples) >= 10
    recorded = names(access.collector_ads(HOST, matching.samples_query(())))
    assert {sample.slot for sample in samples} <= set(recorded)


def test_nothing_is_wrong_but_what_the_days_have(shown: Shown) -> None:
    """No source fails, and no ad is unknown."""
    assert {p.partition(": ")[2] for p in shown.problems} <= {"idle_slots_untaken"}


def test_it_is_small(demo: Path) -> None:
    """It ships in the wheel."""
    assert demo.stat().st_size < MOST_BYTES


def test_it_holds_no_users_and_no_secrets(texts: dict[str, str]) -> None:
    """No user of a real pool, no secret attribute, no address of this world."""
    everything = "".join(texts.values())
    invented = {kind.owner for kind in world.KINDS}
    said = [user for user in USERS if user in everything and user not in invented]
    assert not [user for user in said if re.search(rf"\b{user}\b", everything)]
    attributes = {name.lower() for name in re.findall(r'"(\w+)":', everything)}
    assert not ads.SECRET & attributes
    assert not {"iwd", "out", "err"} & attributes
    found = set(re.findall(r"\d+\.\d+\.\d+\.\d+", everything))
    assert not {ip for ip in found if not ip.startswith(("192.0.2.", "198.51.100.", "127.0.0."))}
    hosts = set(re.findall(r"alias=([\w.-]+)", everything))
    assert not {host for host in hosts if not host.endswith(".example")}


@pytest.mark.parametrize("frame", [0, 100])
def test_claims_are_what_slots_are_busy_with(demo: Path, frame: int) -> None:
    """The cores that jobs have on each pilot are those which its slot has not any more."""
    access = ReplayAccess(str(demo), Recording(str(demo)).times[frame], 0.0)
    busy: Counter[str] = Counter()
    for ad in access.collector_ads(HOST, slots.query(ATTRIBUTES)):
        if "TotalSlotCpus" in ad and "SlotType" in ad:
            busy[histories.startd_of(ad["Name"])] = ad["TotalSlotCpus"] - ad["Cpus"]
    claimed: Counter[str] = Counter()
    for ad in access.collector_ads(HOST, claims.query()):
        claimed[histories.startd_of(ad["Name"])] += ad["Cpus"]
    assert claimed == +busy
    assert claimed.total() > 300


@pytest.mark.parametrize("frame", [0, 100])
def test_each_group_of_idle_jobs_names_a_job_of_the_queue(demo: Path, frame: int) -> None:
    """Single jobs are there as well: as many as the groups have, and running and held ones."""
    access = ReplayAccess(str(demo), Recording(str(demo)).times[frame], 0.0)
    states: Counter[int] = Counter()
    for schedd in SCHEDDS:
        every = waiting_job.query("1.0", (), ATTRIBUTES, DemandOptions())
        jobs = access.job_ads(schedd, every._replace(constraint="true"))
        states.update(ad["JobStatus"] for ad in jobs)
        idle = {f"{ad['ClusterId']}.{ad['ProcId']}" for ad in jobs if ad["JobStatus"] == 1}
        rows = access.job_ads(schedd, demand.query(demand.JobGrouping(ATTRIBUTES, DemandOptions())))
        assert sum(row["JobCount"] for row in rows) == len(idle)
        assert {row["JobIds"].partition(" ")[0] for row in rows} <= idle
    assert states.keys() == {1, 2, 5}


def test_pilots_are_held_for_a_while(demo: Path) -> None:
    """In the factory's queue, with a reason."""
    recording = Recording(str(demo))
    query = htcondor_factory.queue_queries(1200, 0)[0]
    held = []
    for frame in (12, 300):
        access = ReplayAccess(str(demo), recording.times[frame], 0.0)
        rows = access.job_ads(Daemon(world.FACTORY_SCHEDD, ""), query)
        held.append({r["HoldReason"] for r in rows if r["JobStatus"] == 5})
        assert len(rows) > 20
    assert [len(reasons) for reasons in held] == [1, 0]


def test_runs_end_in_many_ways(demo: Path) -> None:
    """What ran at noon is told of in the evening; failures of several kinds are among it."""
    recording = Recording(str(demo))
    noon, evening = (ReplayAccess(str(demo), recording.times[n], 0.0) for n in (72, 284))
    running = {ad["GlobalJobId"] for ad in noon.collector_ads(HOST, claims.query())}
    told: set[str] = set()
    codes: Counter[int] = Counter()
    names = ("GlobalJobId", "VacateReasonCode", "ExitCode", "ExitSignal")
    for schedd in SCHEDDS:
        query = histories.query("epochs")._replace(projection=names)
        for ad in evening.history(schedd, "epochs", query, -1, ""):
            told.add(ad["GlobalJobId"])
            if "VacateReasonCode" in ad:
                codes[ad["VacateReasonCode"]] += 1
    assert len(running & told) > 0.95 * len(running)
    assert {0, 13, 34, 1005, 1008} <= set(codes)


def test_each_stream_has_a_member_for_each_block(demo: Path, texts: dict[str, str]) -> None:
    """And there is what was before."""
    meta = json.loads(texts["meta.json"])
    assert meta["collectors"] == [world.COLLECTOR]
    blocks = -(-len(meta["times"]) // meta["frames_a_block"])
    members = meta["streams"]
    expected = {f"{n:05}/{member}.json" for n in range(blocks) for member in members}
    with zipfile.ZipFile(demo) as archive:
        assert set(archive.namelist()) == expected | {"meta.json", *meta["past"]}
