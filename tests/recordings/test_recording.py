"""Recordings: what is written is what is read, without secrets and user names."""

from __future__ import annotations

import json
import string
import tempfile
import zipfile
from pathlib import Path

import classad2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gwmond.config.settings import DemandOptions
from gwmond.service.host.clock import ReplayClock, SystemClock
from gwmond.sources.child import QueryError
from gwmond.sources.htcondor import demand, glideresource, matching
from gwmond.sources.htcondor import factory as factories
from gwmond.sources.htcondor.access import Daemon, Query
from gwmond.sources.htcondor.pilots import advertised, slots
from gwmond.sources.recording import deltas, recording
from gwmond.sources.recording.deltas import Ad, Answer
from gwmond.sources.recording.recording import Recording, ReplayAccess
from tests.build import recordings
from tests.build.histories import parsed
from tests.examples import examples
from tests.pool import feign
from tests.pool.adtext import Ad as AdOfValues
from tests.pool.adtext import Expr
from tests.sources.make import ATTRIBUTES as ATTRIBUTES_OF_POOL
from tests.sources.make import classad

ATTRIBUTES = st.sampled_from(["Cpus", "Memory", "State", "Requirements", "JobCount"])
TEXTS = st.one_of(
    st.integers(-5, 5).map(str),
    st.text(string.ascii_letters + 'äß"\\ ', max_size=6).map(json.dumps),
)
ADS = st.dictionaries(ATTRIBUTES, TEXTS, max_size=4)
ANSWERS = st.dictionaries(st.sampled_from("abcdef"), ADS, max_size=4)
STREAMS = ("collector/c:9618/slots", "collector/c:9618/schedds", "schedd/s@x/demand")
SLOTS = STREAMS[0]
FRAMES = st.lists(st.dictionaries(st.sampled_from(STREAMS), ANSWERS), min_size=1, max_size=9)


def named(answer: Answer) -> list[Ad]:
    return [{"Name": json.dumps(name), **ad} for name, ad in answer.items()]


def by_text(found: list[Ad]) -> list[list[tuple[str, str]]]:
    return sorted(sorted(ad.items()) for ad in found)


def write(path: Path, *frames: dict[str, list[Ad]]) -> Recording:
    """A recording of a frame each minute."""
    asked = {"collectors": ["c:9618"], "factory_schedds": []}
    told = {60.0 * number: frame for number, frame in enumerate(frames)}
    return Recording(str(recordings.write(path, told, asked)))


def everything(path: Path) -> str:
    """All that a recording's members say."""
    with zipfile.ZipFile(path) as archive:
        return "".join(archive.read(name).decode() for name in archive.namelist())


@given(ANSWERS, ANSWERS)
def test_a_difference_makes_the_second_answer_of_the_first(before: Answer, after: Answer) -> None:
    """Applying what changed to an answer gives the next one; nothing is left of what vanished."""
    assert deltas.apply(before, deltas.difference(before, after)) == after
    assert deltas.difference(after, after) == {}


@settings(max_examples=examples(60))
@given(FRAMES, st.integers(1, 4))
def test_every_frame_is_read_as_it_was_written(frames: list[dict[str, Answer]], block: int) -> None:
    """Each stream of each frame comes back, however frames fall into blocks; or that it failed."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as directory:
        patch.setattr(recording, "FRAMES_A_BLOCK", block)
        written = [{s: named(answer) for s, answer in frame.items()} for frame in frames]
        found = write(Path(directory) / "r.zip", *written)
        assert found.names("collectors") == ["c:9618"]
        for number, frame in enumerate(written):
            for stream in STREAMS:
                for time in (60.0 * number, 60.0 * number + 59):
                    answer = found.frame(stream, time)
                    read = None if answer is None else by_text(list(answer.values()))
                    assert read == (by_text(frame[stream]) if stream in frame else None)


def test_ads_that_look_alike_are_all_kept(tmp_path: Path) -> None:
    """Ads without names, such as those of clusters, do not take the place of each other."""
    alike: list[Ad] = [{"TotalSubmitProcs": "10"}, {"TotalSubmitProcs": "10"}]
    answer = write(tmp_path / "r.zip", {STREAMS[2]: alike}).frame(STREAMS[2], 0)
    assert answer is not None
    assert list(answer.values()) == alike


CANARIES = dict.fromkeys(
    (
        *("TransferKey", "TransferSocket", "Environment", "ClaimId", "MySecretKey", "Arguments"),
        *("x509userproxysubject", "AuthTokenId", "Whatever", "PrivateNetworkName"),
    ),
    "canary",
)


def asked_of(query: Query, ad: AdOfValues, *more: str) -> dict[str, str]:
    """What is recorded of one ad with canaries in it."""
    (kept,) = recording.dump([classad({**ad, **CANARIES})], (*query.attributes, *more))
    return kept


def test_only_what_is_asked_for_is_recorded() -> None:
    """Of whole ads what is used, and what their START refers to; nothing else, by any name."""
    slot = feign.partitionable_slot("pilot@host", glidein=feign.glidein()) | {
        "Requirements": Expr("Start"),
        "Start": Expr("SiteIsOpen && MySecretKey isnt undefined"),
        "SiteIsOpen": Expr("Closing =!= true"),
        "Closing": False,
        "Unrelated": 3,
        "LastHeardFrom": 1,
    }
    kept = asked_of(matching.samples_query(["x"]), slot, "GLIDEIN_Site", "LastHeardFrom")
    names = {"Name", "Requirements", "SiteIsOpen", "Closing", "GLIDEIN_Site"}
    assert names <= set(kept)
    assert not {"Unrelated", "LastHeardFrom", "GLIDEIN_Factory"} & set(kept)
    assert "canary" not in json.dumps(kept)
    factory, client = feign.glideresource(), feign.glidefactoryclient()
    for query, ad in ((glideresource.QUERY, factory), (factories.CLIENTS, client)):
        kept = asked_of(query, ad)
        assert "Name" in kept
        assert "canary" not in json.dumps(kept)


def test_a_name_that_users_refer_to_is_no_way_to_a_secret() -> None:
    """Jobs whose Requirements refer to secrets have what they refer to left out."""
    row: AdOfValues = {
        "JobCount": 3,
        "JobIds": "1.0 1.1",
        "Requirements": Expr("MY.MySecretKey == TARGET.ClaimId && Wanted && TARGET.HasIt"),
        "Wanted": Expr("Needed"),
        "Needed": Expr("TARGET.Also"),
        **CANARIES,
    }
    names = (
        *demand.query(demand.JobGrouping(ATTRIBUTES_OF_POOL, DemandOptions())).attributes,
        "JobCount",
    )
    (kept,) = recording.dump([classad(row)], names)
    assert set(kept) == {"JobCount", "Requirements", "Wanted", "Needed"}
    assert {"HasIt", "Also"} == recording.referred([classad(row)], names)


def test_a_path_that_only_requirements_name_is_not_kept(tmp_path: Path) -> None:
    """Such as that of a proxy; and nobody but its owner may read a recording."""
    row: AdOfValues = {
        "JobCount": 3,
        "Requirements": Expr('MyFile =!= "" && MySite == TARGET.GLIDEIN_Site'),
        "MyFile": "/home/alice/x509up_u1000",
        "MySite": "T2_US_Example",
    }
    names = demand.query(demand.JobGrouping(ATTRIBUTES_OF_POOL, DemandOptions())).attributes
    (kept,) = recording.dump([classad(row)], (*names, "JobCount"))
    assert set(kept) == {"JobCount", "Requirements", "MySite"}
    file = tmp_path / "r.zip"
    for overwrite in (False, True):
        recording.Writer(file, {}, overwrite=overwrite).close()
        assert file.stat().st_mode & 0o777 == 0o600
        file.chmod(0o644)
    with pytest.raises(FileExistsError):
        recording.Writer(file, {})


def test_a_recorded_ad_of_an_entry_says_what_the_whole_ad_says() -> None:
    """Nothing that is read of glideresource and glidefactoryclient ads is left out."""
    limits = {"limits": {"TotalGlideinsPerEntry": (1, 2)}, "curbs": {"IdleGlideinsGlobal": (3, 4)}}
    factory_limits = {"HeldGlideinsPerEntry": (5, 6)}
    ad = feign.glideresource(pending=5, running=3, factory_limits=factory_limits, **limits)  # type: ignore[arg-type]
    ad |= {"GlideClientConstraintFactoryCondorExpr": "Mine && TARGET.VO == 1", "Mine": True}
    client = feign.glidefactoryclient(pending=5, limits=factory_limits)
    now = 1_700_000_000
    whole, parts = classad(ad), recorded(glideresource.QUERY, ad)
    read = [
        glideresource.decode([given], ATTRIBUTES_OF_POOL, "cm", now) for given in (whole, parts)
    ]
    assert read[0].requests == read[1].requests
    assert read[0].entries == read[1].entries
    assert [t.refers for r in read for t in r.templates] == [("VO",), ("VO",)]
    clients = [
        factories.decode_clients([given], now)
        for given in (classad(client), recorded(factories.CLIENTS, client))
    ]
    assert clients[0] == clients[1]


def recorded(query: Query, ad: AdOfValues) -> classad2.ClassAd:
    (kept,) = recording.dump([classad(ad)], (*query.attributes, "GLIDEIN_Site"))
    return parsed(kept)


def test_user_names_become_the_same_pseudonyms_everywhere(tmp_path: Path) -> None:
    """Users known by an attribute or as submitters are nowhere in the file, not even in texts."""
    frames: dict[str, list[Ad]] = {
        "collector/c:9618/submitters": [
            {"Name": '"analysis.top.alice@pool.test"', "ScheddName": '"s@x"'},
            {"Name": '"bob@pool.test"', "ScheddName": '"s@x"'},
        ],
        "collector/c:9618/slots": [
            {"Name": '"slot1@a"', "RemoteOwner": '"carol@pool.test"', "Site": '"Bobcat"'}
        ],
        "schedd/s@x/demand": [
            {
                "JobCount": "3",
                "Owner": '"dave"',
                "Requirements": 'TARGET.RemoteOwner == "alice" || TARGET.Group == "x.bob"',
            }
        ],
    }
    found = write(tmp_path / "r.zip", frames)
    text = everything(tmp_path / "r.zip")
    assert not [user for user in ("alice", "bob@", "bob\\", "carol", "dave") if user in text]
    assert "Bobcat" in text
    (row,) = (found.frame("schedd/s@x/demand", 0) or {}).values()
    submitters = (found.frame("collector/c:9618/submitters", 0) or {}).values()
    names = [ad["Name"].partition("@")[0].rpartition(".")[2].strip('"') for ad in submitters]
    assert row["Requirements"].startswith(f'TARGET.RemoteOwner == "{names[0]}"')
    assert row["Requirements"].endswith(f'"x.{names[1]}"')


def test_an_interrupted_recording_that_was_closed_is_whole(tmp_path: Path) -> None:
    """A recording that ends in the middle of a block has all frames until then."""
    frames = [{SLOTS: named({"a": {"Cpus": str(n)}})} for n in range(recording.FRAMES_A_BLOCK + 2)]
    found = write(tmp_path / "r.zip", *frames)
    assert len(found.times) == recording.FRAMES_A_BLOCK + 2
    assert found.duration_s == 60 * len(frames)
    assert [
        ad["Cpus"] for t in found.times for ad in (found.frame(SLOTS, t) or {}).values()
    ] == list(map(str, range(len(frames))))


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.95, 0.999])
def test_a_truncated_file_is_refused(tmp_path: Path, share: float) -> None:
    """What is left of a file that was cut is no recording, wherever it was cut."""
    path = tmp_path / "r.zip"
    write(path, {SLOTS: named({name: {"Cpus": "1"} for name in "abcdefghij"})})
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(ValueError, match="not a recording made by gwmond record"):
        Recording(str(path))


@pytest.mark.parametrize("meta", ["", "[]", "{}", '{"version": 0, "times": [1]}', '{"version": 2}'])
def test_what_is_no_recording_is_refused(tmp_path: Path, meta: str) -> None:
    """An archive that is not ours, or of another version, is refused with a reason."""
    with zipfile.ZipFile(tmp_path / "r.zip", "w") as archive:
        archive.writestr("meta.json", meta)
    with pytest.raises(ValueError, match="recording"):
        Recording(str(tmp_path / "r.zip"))


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    """The message names the file."""
    with pytest.raises(ValueError, match=r"missing\.zip"):
        Recording(str(tmp_path / "missing.zip"))


def test_replayed_ads_are_of_now(tmp_path: Path) -> None:
    """Epochs are moved and ads are heard now; other numbers and strings stay as they are."""
    ad = {"Name": '"slot1@a"', "DaemonStartTime": "1000", "GLIDEIN_ToDie": "2000", "Cpus": "8"}
    write(tmp_path / "r.zip", {SLOTS: [ad]}, {})
    access = ReplayAccess(str(tmp_path / "r.zip"), 30.0, 500.0)
    (found,) = access.collector_ads("c:9618", Query("slots", "Startd", "", ()))
    names = ("Name", "DaemonStartTime", "GLIDEIN_ToDie", "Cpus", "LastHeardFrom")
    assert [found[name] for name in names] == ["slot1@a", 1500, 2500, 8, 530]


def test_a_failed_validation_that_was_advertised(tmp_path: Path) -> None:
    """It is the same pilot when replayed: why, of which job, and when it was to end."""
    ad = feign.failed_validation(17, 4, dies=2000, now=1000) | {"LastHeardFrom": 1000}
    live = slots.decode([classad(ad)], ATTRIBUTES_OF_POOL, "cm", 1000).pilots
    query = slots.query(ATTRIBUTES_OF_POOL)
    write(tmp_path / "r.zip", {SLOTS: recording.dump([classad(ad)], query.attributes)})
    access = ReplayAccess(str(tmp_path / "r.zip"), 0.0, 500.0)
    found = slots.decode(access.collector_ads("c:9618", query), ATTRIBUTES_OF_POOL, "cm", 500)
    assert found.pilots == tuple(
        key._replace(started=1500, dies=2500, last_heard=500) for key in live
    )
    assert [key.failed for key in live] == [True]


def test_what_factories_are_told_is_replayed(tmp_path: Path) -> None:
    """Of a failed validation: the end that is announced is moved with the replay."""
    query = advertised.masters_query(ATTRIBUTES_OF_POOL)
    ad = feign.failed_master(17, 4, dies=2000, now=1000) | {"LastHeardFrom": 1000}
    kept = recording.dump([classad(ad)], query.attributes)
    write(tmp_path / "n.zip", {"collector/w:9618/advertised": kept})
    access = ReplayAccess(str(tmp_path / "n.zip"), 0.0, 500.0)
    (found,) = access.collector_ads("w:9618", query)
    assert (found["GLIDEIN_Failed"], found["GLIDEIN_ToDie"]) == (True, 2500)


def test_kinds_of_sources_are_those_that_were_asked_for(tmp_path: Path) -> None:
    """Also those that never answered; of a recording that does not list them, those that did."""
    write(tmp_path / "r.zip", {STREAMS[2]: []}, {SLOTS: []})
    assert Recording(str(tmp_path / "r.zip")).kinds == {"slots"}
    kinds = {"kinds": ["slots", "negotiators"]}
    recordings.write(tmp_path / "k.zip", {0.0: {SLOTS: []}}, kinds)
    assert Recording(str(tmp_path / "k.zip")).kinds == {"slots", "negotiators"}


def test_a_stream_that_failed_fails_when_replayed(tmp_path: Path) -> None:
    """What did not answer when recorded is unreachable in the replay, and only that."""
    write(tmp_path / "r.zip", {STREAMS[2]: []}, {SLOTS: []})
    schedd, query = Daemon("s@x", "<192.0.2.1:9618>"), Query("demand", "", "", ())
    assert ReplayAccess(str(tmp_path / "r.zip"), 0.0, 0.0).job_ads(schedd, query) == []
    with pytest.raises(QueryError, match="did not answer when recorded"):
        ReplayAccess(str(tmp_path / "r.zip"), 60.0, 0.0).job_ads(schedd, query)


def test_single_jobs_and_pilots_are_found_where_they_were_recorded(tmp_path: Path) -> None:
    """By the constraint of the query; a recording without them knows none."""
    jobs = [{"ClusterId": "7", "ProcId": str(n), "JobPrio": str(n)} for n in range(3)]
    seen = [{"Name": f'"slot1@{n}"', "SlotType": '"Partitionable"'} for n in "ab"]
    stream, of_slots = "schedd/ap/job", "collector/c:9618/slots"
    path = tmp_path / "r.zip"
    assert write(path, {stream: jobs, of_slots: seen}).has_jobs
    access, schedd = ReplayAccess(str(path), 0.0, 0.0), Daemon("ap", "<x>")
    query = Query("job", "", "ClusterId == 7 && ProcId == 1", ("JobPrio",))
    assert [ad["JobPrio"] for ad in access.job_ads(schedd, query)] == [1]
    every = slots.query(ATTRIBUTES_OF_POOL)
    only = every._replace(constraint=f'{every.constraint} && (Name == "slot1@b")')
    assert [len(access.collector_ads("c:9618", asked)) for asked in (every, only)] == [2, 1]
    assert access.collector_ads("c:9618", Query("negotiators", "Negotiator", "", ())) == []
    without = tmp_path / "without.zip"
    assert not write(without, {of_slots: seen}).has_jobs
    assert ReplayAccess(str(without), 0.0, 0.0).job_ads(schedd, query) == []


def test_epochs_are_moved_alike_throughout_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pilot's start does not waver between polls of one pass; the next pass is later by one."""
    clock = ReplayClock(1000.0, 600.0, 60.0)
    begin = clock.tick()
    seen = [clock.position(begin._replace(wall=begin.wall + 0.07 * n)) for n in range(20_000)]
    assert {p.shift for p in seen[: int(600 / 0.07)]} == {seen[0].shift}
    assert sorted({p.shift - seen[0].shift for p in seen}) == [0.0, 600.0, 1200.0]
    assert all(p.shift == int(p.shift) for p in seen)
    assert all(1000 <= p.time < 1600 for p in seen)
    real = SystemClock().tick()
    assert abs(seen[0].time + seen[0].shift - real.wall) < 60
