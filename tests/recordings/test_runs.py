"""Claims and histories in recordings: what is asked of the replay comes as the daemons told it."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gwmond.sources.child import QueryError
from gwmond.sources.htcondor import ads
from gwmond.sources.htcondor.access import Query
from gwmond.sources.htcondor.histories import history_fetch
from gwmond.sources.htcondor.histories.history_cursor import HistoryLimits
from gwmond.sources.htcondor.pilots import claims
from gwmond.sources.recording import recorded_runs, recording
from gwmond.sources.recording.deltas import Ad
from gwmond.sources.recording.recording import Recording, ReplayAccess
from gwmond.sources.recording.replayed_runs import moved
from tests.build.recordings import BEGIN, CLAIMS, EVERY_S, HOST, NEVER, SHIFT_S, Made, make, write
from tests.examples import examples
from tests.sources.fake_history import SCHEDD, FakeHistory, Row
from tests.sources.make import classad


def rows(number: int, first: int = 1) -> list[Row]:
    return [Row(first + n, 1, BEGIN - 5 + first + n) for n in range(number)]


def ids(found: Sequence[object]) -> list[tuple[object, object]]:
    return [(ad["GlobalJobId"], ad["NumShadowStarts"]) for ad in found]  # type: ignore[index]


ROWS = st.builds(Row, st.integers(1, 6), st.integers(1, 3), st.integers(BEGIN, BEGIN + 9))
FRAMES = st.lists(st.lists(ROWS, max_size=5), min_size=1, max_size=7)
CONSTRAINTS = ("true", "NumShadowStarts > 1", "(ClusterId + ProcId) % 2 == 0", "Absent > 1")


@settings(max_examples=examples(150))
@given(
    st.sampled_from(recorded_runs.KINDS),
    FRAMES,
    st.data(),
    st.sampled_from(CONSTRAINTS),
    st.sampled_from([-1, 0, 1, 2, 3, 50]),
    st.integers(1, 3),
)
def test_a_replayed_history_answers_as_the_schedd_did(
    kind: str,
    frames: list[list[Row]],
    data: st.DataObject,
    constraint: str,
    match: int,
    block: int,
) -> None:
    """Newest first, since before the constraint, match after it, at any instant of the pass."""
    told: set[Row] = set()
    distinct: list[list[Row]] = []
    for new in frames:
        distinct.append([])
        for row in new:
            record = row._replace(run=1, time=0) if kind == "history" else row  # a job leaves once
            if record not in told:
                told.add(record)
                distinct[-1].append(row)
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as directory:
        patch.setattr(recording, "FRAMES_A_BLOCK", block)
        made = make(Path(directory) / "r.zip", kind, distinct)
        frame = data.draw(st.integers(0, len(frames) - 1))
        cluster = data.draw(st.sampled_from([0, 1, 2, 3]))
        since = "" if cluster == 0 else f'GlobalJobId =?= "schedd@fake#{cluster}.0#1"'
        query = Query(kind, "", constraint, ("GlobalJobId", "NumShadowStarts"))
        expected = FakeHistory(kind, made.written[frame])
        asked = SCHEDD, kind, query, match, since
        assert ids(made.at(frame).history(*asked)) == ids(expected.history(*asked))


def test_only_what_is_asked_for_comes(tmp_path: Path) -> None:
    """The projection is applied; a bad expression is told as by a schedd."""
    made = make(tmp_path / "r.zip", "epochs", [rows(2)])
    query = NEVER._replace(projection=("globaljobid", "ClusterId"))
    (found, _) = made.at(0).history(SCHEDD, "epochs", query, -1, "")
    got = {name.lower() for name in found.keys()}  # noqa: SIM118
    assert got == {"globaljobid", "clusterid", "procid"}
    for bad in (NEVER._replace(constraint="A = = 3"), NEVER):
        with pytest.raises(QueryError, match="bad_constraint"):
            made.at(0).history(SCHEDD, "epochs", bad, -1, "" if bad != NEVER else "A = = 3")


@pytest.mark.parametrize("kind", recorded_runs.KINDS)
def test_a_cursor_goes_on_from_pass_to_pass(tmp_path: Path, kind: str) -> None:
    """Each record comes once in each pass, as of another job; none before the first pass."""
    frames = [rows(20), *([row] for row in rows(4, first=21)), []]
    made = make(tmp_path / "r.zip", kind, frames)
    duration = round(Recording(str(made.path)).duration_s)
    state, seen = "", []
    for turn, frame in itertools.product(range(3), range(len(frames))):
        access = made.at(frame, SHIFT_S + turn * duration)
        now = access.time + access.shift
        answer = history_fetch.fetch(access, SCHEDD, kind, state, HistoryLimits(records=50), now)
        assert (answer.gap, answer.problems, answer.behind) == (None, (), False)
        state = answer.state
        seen.append([record.fact.job for record in answer.records])
    assert [len(jobs) for jobs in seen] == [20, 1, 1, 1, 1, 0] * 3
    jobs = list(itertools.chain.from_iterable(seen))
    assert len(set(jobs)) == len(jobs) == 72


def test_a_backlog_of_a_pass_is_drained_like_any_other(tmp_path: Path) -> None:
    """More than a call takes, also where a new pass begins."""
    made = make(tmp_path / "r.zip", "epochs", [rows(40), rows(3, first=41)])
    duration = round(Recording(str(made.path)).duration_s)
    state, jobs = "", []
    for turn, frame in ((0, 0), (0, 1), (1, 0), (1, 1)):
        access = made.at(frame, turn * duration)
        for _ in range(200):
            now = access.time + access.shift
            answer = history_fetch.fetch(
                access, SCHEDD, "epochs", state, HistoryLimits(records=10), now
            )
            assert answer.gap is None
            state = answer.state
            jobs += [record.fact.job for record in answer.records]
            if not answer.behind:
                break
        assert not answer.behind
    assert len(set(jobs)) == 86


def test_silence_is_replayed(tmp_path: Path) -> None:
    """A schedd that did not answer in a frame does not; one without epochs says that."""
    stream = recorded_runs.stream(SCHEDD.name, "history")
    told: list[dict[str, list[Ad]]] = [{}, {stream: []}, {}]
    frames = {float(BEGIN + EVERY_S * n): {CLAIMS: [], **answers} for n, answers in enumerate(told)}
    made = Made(write(tmp_path / "r.zip", frames), [])
    assert made.at(1).history(SCHEDD, "history", NEVER, -1, "") == []
    for frame, kind, problem in ((0, "history", "unreachable"), (1, "epochs", "not_kept")):
        with pytest.raises(QueryError, match=problem):
            made.at(frame).history(SCHEDD, kind, NEVER, -1, "")
    with pytest.raises(QueryError, match="unreachable"):
        made.at(2).history(SCHEDD, "history", NEVER, -1, "")
    with pytest.raises(QueryError, match="unreachable"):
        made.at(1).history(SCHEDD._replace(name="other"), "history", NEVER, -1, "")
    assert made.at(1).history(SCHEDD, "startd_history", NEVER, -1, "") == []


def test_claims_are_narrowed_like_a_collector_does(tmp_path: Path) -> None:
    """Jobs begun since are asked for, but as a pass begins, when all jobs are new."""
    slots: list[Ad] = [
        {"Name": f'"slot1_{n}@p"', "JobStart": str(BEGIN + 1000 * n), "GlobalJobId": f'"s#{n}.0#1"'}
        for n in range(4)
    ]
    path = write(tmp_path / "r.zip", {BEGIN + number: {CLAIMS: slots} for number in (0, 4000)})
    for at, since, number in ((1, 2500, 4), (4001, None, 4), (4001, 2000, 2), (4001, 2001, 1)):
        access = ReplayAccess(str(path), float(BEGIN + at), float(SHIFT_S))
        query = claims.query(None if since is None else BEGIN + since + SHIFT_S)
        assert len(access.collector_ads(HOST, query)) == number


def test_an_ad_that_was_old_stays_old(tmp_path: Path) -> None:
    """The ads of a pilot that was killed do not come to life in the replay."""
    found = [
        classad({"Name": f"slot1@{n}", "LastHeardFrom": BEGIN - age})
        for n, age in enumerate((0, 300, 500))
    ]
    told = {f"collector/{HOST}/slots": recording.dump(found, ("Name", "LastHeardFrom"))}
    path = write(tmp_path / "r.zip", {BEGIN: told})
    access = ReplayAccess(str(path), BEGIN + 10.0, float(SHIFT_S))
    ads_ = access.collector_ads(HOST, Query("slots", "Startd", "", ()))
    heard = [ads.integer(ad, "LastHeardFrom") for ad in ads_]
    assert heard == [BEGIN + 10 + SHIFT_S, BEGIN + 10 + SHIFT_S, BEGIN - 500 + SHIFT_S]


def test_an_ad_that_is_not_renewed_any_more_is_not_heard_until_that_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a pilot that was killed would outlive its jobs, and these be lost by no pilot's end."""
    monkeypatch.setattr(recording, "FRAMES_A_BLOCK", 2)
    path, stream = tmp_path / "r.zip", f"collector/{HOST}/slots"
    frames: dict[float, dict[str, list[Ad]]] = {}
    last = {"killed": BEGIN - 50, "alive": BEGIN + 900}
    for at in range(BEGIN, BEGIN + 901, 300):
        found = [
            classad({"Name": f"slot1@{name}", "LastHeardFrom": min(at, heard)})
            for name, heard in last.items()
        ]
        frames[at] = {stream: recording.dump(found, ("Name", "LastHeardFrom"))}
    write(path, frames)
    for when in frames:
        access = ReplayAccess(str(path), when, 0.0)
        ads_ = access.collector_ads(HOST, Query("slots", "Startd", "", ()))
        assert [ads.integer(ad, "LastHeardFrom") for ad in ads_] == [BEGIN - 50, when]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("ToE", "[ When = 100; HowCode = 0 ]", "[ When = 150; HowCode = 0 ]"),
        ("PublicClaimId", '"<>#100#7#..."', '"<>#150#7#..."'),
        ("JobCurrentFinishTransferOutputDate", "-1", "-1"),
        ("CompletionDate", "0", "0"),
        ("GlobalJobId", '"odd"', '"odd"'),
        ("ExitCode", "100", "100"),
        ("JobStatus", "4", "4"),
    ],
)
def test_what_moves_and_what_does_not(name: str, text: str, expected: str) -> None:
    """Times do, wherever they stand; what only looks like one does not."""
    assert moved(name, text, 50) == expected
