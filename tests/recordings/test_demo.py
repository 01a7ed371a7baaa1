"""The recording in the package: a pool that is worth looking at, and small."""

from __future__ import annotations

import json
import re
import zipfile
from collections import Counter
from importlib import resources
from pathlib import Path

import pytest

from gwmond.metrics import factory
from gwmond.model.states import State
from gwmond.sources.htcondor import ads, matching
from gwmond.sources.htcondor.access import Daemon
from gwmond.sources.htcondor.histories import histories
from gwmond.sources.htcondor.pilots import claims, slots
from gwmond.sources.recording.recording import Recording, ReplayAccess
from tests.build.command_line import program
from tests.pool.sandbox import USERS
from tests.recordings.summary import Shown
from tests.sources.make import ATTRIBUTES, names

MOST_BYTES = 8_000_000
EVERY = 32
HOST = "cm.demo.example"
SLOTS = f"collector/{HOST}/slots"
CLAIMS = f"collector/{HOST}/claims"
SCHEDDS = tuple(Daemon(f"schedd{n}@demo.example", "<198.51.100.1:9618>") for n in (1, 2, 3, 4))


@pytest.fixture(scope="module")
def demo() -> Path:
    """The file in the package."""
    return Path(str(resources.files("gwmond") / "data" / "demo.zip"))


@pytest.fixture(scope="module")
def shown(demo: Path) -> Shown:
    """What the daemon's sources and accounting make of it, nine times in its day."""
    return Shown(**json.loads(program("tests.recordings.summary", demo, "--every", EVERY)))


@pytest.fixture(scope="module")
def texts(demo: Path) -> dict[str, str]:
    """The members of the archive."""
    with zipfile.ZipFile(demo) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def test_it_is_a_day_of_a_large_pool(demo: Path, shown: Shown) -> None:
    """24 hours, 60 sites, thousands of pilots, and demand that comes and goes."""
    assert Recording(str(demo)).duration_s == 86400
    assert shown.frames == 288 // EVERY
    assert (shown.sites, shown.entries) == (60, 80)
    assert shown.most_pilots >= 3000
    assert shown.least_pilots <= shown.most_pilots / 2
    assert shown.most_idle_jobs >= 3000


def test_all_states_are_seen(shown: Shown) -> None:
    """Every state, and bottlenecks for many reasons, occur in the course of the day."""
    assert set(shown.states) == {state.value for state in State}
    reasons = {r.partition(": ")[2] for r in shown.reasons if "bottleneck" in r}
    assert {"frontend_limit", "factory_limit", "held_pilots", "no_match_in_frontend"} <= reasons
    assert shown.changes_a_poll >= 10


def test_factories_and_frontends_tell_all_that_they_can(shown: Shown) -> None:
    """Each of their numbers, also in cores, is there at any time of the day.

    But for the age of a request, which only the factory's collector knows ([pool.wms]).
    """
    assert shown.samples.keys() == {family.name for family in factory.FAMILIES}
    missing = {name for name, number in shown.samples.items() if number < 60}
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
    assert len(samples) >= 40
    recorded = names(access.collector_ads(HOST, matching.samples_query(())))
    assert {sample.slot for sample in samples} <= set(recorded)


def test_nothing_is_wrong_but_what_the_day_has(shown: Shown) -> None:
    """The only problems are schedds that did not answer."""
    assert {p.partition(": ")[2] for p in shown.problems} <= {"unreachable"}


def test_the_first_minutes_have_changes(demo: Path) -> None:
    """Who looks at the beginning sees pilots come within the first ten frames."""
    recording = Recording(str(demo))
    first, tenth = (recording.frame(SLOTS, recording.times[n]) or {} for n in (0, 9))
    assert len(first) >= 500
    assert len(set(tenth) - set(first)) >= 100


def test_it_is_small(demo: Path) -> None:
    """It ships in the wheel."""
    assert demo.stat().st_size < MOST_BYTES


def test_it_holds_no_users_and_no_secrets(texts: dict[str, str]) -> None:
    """No user of the pool that was recorded, no secret attribute, no address of this world."""
    everything = "".join(texts.values())
    said = [user for user in USERS if user in everything]  # quicker than to look for whole words
    assert not [user for user in said if re.search(rf"\b{user}\b", everything)]
    attributes = {name.lower() for name in re.findall(r'"(\w+)":', everything)}
    assert not ads.SECRET & attributes
    assert not {"iwd", "out", "err"} & attributes
    users = {"Owner", "User", "RemoteOwner", "RemoteUser"}
    for name in users:
        found = set(re.findall(rf'"{name}":"\\"([^"]*)', everything))
        assert all(re.fullmatch(r"user-[0-9a-f]{8}(@demo\.example)?\\", user) for user in found)
    found = set(re.findall(r"\d+\.\d+\.\d+\.\d+", everything))
    assert not {ip for ip in found if not ip.startswith(("192.0.2.", "198.51.100."))}
    hosts = set(re.findall(r"alias=([\w.-]+)", everything))
    assert not {host for host in hosts if not host.endswith(".example")}


@pytest.mark.parametrize("frame", [0, 100])
def test_claims_are_what_slots_are_busy_with(demo: Path, frame: int) -> None:
    """The cores that jobs have on each pilot are those which its slot has not any more."""
    access = ReplayAccess(str(demo), Recording(str(demo)).times[frame], 0.0)
    busy: Counter[str] = Counter()
    for ad in access.collector_ads(HOST, slots.query(ATTRIBUTES)):
        busy[histories.startd_of(ad["Name"])] = ad["TotalSlotCpus"] - ad["Cpus"]
    claimed: Counter[str] = Counter()
    for ad in access.collector_ads(HOST, claims.query()):
        claimed[histories.startd_of(ad["Name"])] += ad["Cpus"]
    assert claimed == +busy
    assert claimed.total() > 5000


def test_the_day_has_runs_that_end_in_many_ways(demo: Path) -> None:
    """What ran at noon is told of in the evening; failures of all kinds are among it."""
    recording = Recording(str(demo))
    noon, evening = (ReplayAccess(str(demo), recording.times[n], 0.0) for n in (72, 240))
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
    assert {0, 12, 13, 34, 45, 1005, 1008} <= set(codes)


def test_rows_are_those_of_real_schedds(texts: dict[str, str]) -> None:
    """Each stream has a member for each block, and rows of jobs are what a schedd makes of them."""
    meta = json.loads(texts["meta.json"])
    assert meta["collectors"] == ["cm.demo.example"]
    blocks = -(-len(meta["times"]) // meta["frames_a_block"])
    members = meta["streams"]
    expected = {f"{n:05}/{member}.json" for n in range(blocks) for member in members}
    assert set(texts) == expected | {"meta.json"}
    rows = texts["00000/schedd/schedd1@demo.example/demand.json"]
    assert "TARGET.HasFileTransfer" in rows
    assert "DESIRED_Sites" in rows
