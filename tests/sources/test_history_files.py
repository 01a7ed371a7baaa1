"""History files of startds: read on from where reading stopped, whatever became of the file."""

from __future__ import annotations

import json
import os
import resource
from pathlib import Path

import pytest

from gwmond.sources import tail
from gwmond.sources.child import QueryError
from gwmond.sources.htcondor.histories import history_files
from gwmond.sources.htcondor.histories.history_cursor import HistoryAnswer, HistoryLimits
from tests.build.histories import RECORDINGS
from tests.sources import make  # noqa: F401 (starts the fork server before the bindings)

NOW = 1_795_240_000
LIMITS = HistoryLimits(records=1000)
ROWS = json.loads((RECORDINGS / "startd_history.json").read_text())


def text(row: dict[str, str]) -> str:
    """A record as a startd writes it; with a secret that must not be read."""
    lines = [f"{name} = {value}" for name, value in row.items()]
    lines.insert(3, 'Environment = "TOKEN=secret"')
    return "\n".join([*lines, "*** Offset = 0 ClusterId = 1 CompletionDate = 1", ""])


RECORDS = [text(row) for row in ROWS]


def fetch(path: Path, state: str = "", limits: HistoryLimits = LIMITS) -> HistoryAnswer:
    return history_files.fetch(str(path), state, limits, NOW)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "startd_history"


def append(path: Path, *records: str) -> None:
    with path.open("a") as stream:
        stream.write("".join(records))


def test_records_are_read_once(file: Path) -> None:
    """All at first, then what is added; an incomplete record waits for its banner."""
    append(file, *RECORDS[:5])
    first = fetch(file)
    assert len(first.records) == 5
    assert (first.complete_us, first.behind, first.gap, first.problems) == (
        NOW * 10**6,
        False,
        None,
        (),
    )
    half = len(RECORDS[5]) // 2
    append(file, RECORDS[5][:half])
    second = fetch(file, first.state)
    assert second.records == ()
    append(file, RECORDS[5][half:-5])
    third = fetch(file, second.state)
    assert third.records == ()
    append(file, RECORDS[5][-5:])
    fourth = fetch(file, third.state)
    assert len(fourth.records) == 1
    assert fourth.gap is None
    assert fetch(file, fourth.state).records == ()


def test_answers_are_bounded(file: Path) -> None:
    """A large file comes in parts."""
    append(file, *RECORDS)
    state, number, calls = "", 0, 0
    while True:
        answer = fetch(file, state, HistoryLimits(records=4))
        state, number, calls = answer.state, number + len(answer.records), calls + 1
        assert len(answer.records) <= 4
        assert (answer.complete_us is None) is answer.behind
        if not answer.behind:
            break
    assert (number, calls) == (len(RECORDS), len(RECORDS) // 4 + 1)


def test_rotation_is_followed(file: Path) -> None:
    """A renamed file is read to its end, then the new one; that a read one goes later is no gap."""
    append(file, *RECORDS[:3])
    state = fetch(file).state
    append(file, *RECORDS[3:5])
    rotated = file.with_name("startd_history.20260101T000000")
    file.rename(rotated)
    append(file, *RECORDS[5:7])
    answer = fetch(file, state)
    assert (len(answer.records), answer.gap) == (4, None)
    rotated.unlink()
    again = fetch(file, answer.state)
    assert (again.records, again.gap) == ((), None)


def test_a_rotated_file_that_was_not_read_is_a_gap(file: Path) -> None:
    """A rotated file that goes before it was read to its end has taken records along."""
    append(file, *RECORDS[:3])
    state = fetch(file, limits=HistoryLimits(records=1)).state
    file.unlink()
    append(file, RECORDS[5])
    answer = fetch(file, state)
    assert len(answer.records) == 1
    assert answer.gap is not None
    assert answer.gap.end_us == NOW * 10**6


@pytest.mark.parametrize("size", [0, 1000])
def test_truncation_is_a_gap(file: Path, size: int) -> None:
    """A file that is shorter, or begins in another way, is read anew."""
    append(file, *RECORDS[:3])
    state = fetch(file).state
    os.truncate(file, 0)
    append(file, RECORDS[4][:size], *RECORDS[4 : 4 + (0 if size == 0 else 5)])
    answer = fetch(file, state)
    assert answer.gap is not None
    assert "truncated" in answer.gap.detail
    assert fetch(file, answer.state).gap is None


def test_garbage_is_one_problem_with_a_number(file: Path) -> None:
    """Broken records are skipped and counted, those around them come."""
    append(file, RECORDS[0], "what is this\n*** x\n", "A = = 3\n*** x\n", "*** x\n")
    append(file, RECORDS[1], "x" * 3_000_000 + "\n*** x\n", RECORDS[2].replace("GlobalJobId", "G"))
    append(file, RECORDS[3])
    answer = fetch(file)
    assert len(answer.records) == 3
    assert sorted((p.problem, p.detail) for p in answer.problems) == [
        ("garbage", "3 records"),
        ("no_job", "1 records"),
        ("too_long", "1 records"),
    ]
    assert {p.source for p in answer.problems} == {str(file)}


def test_a_line_of_100_mb_costs_little_memory(file: Path) -> None:
    """A line without an end is not held."""
    with file.open("wb") as stream:
        stream.write(RECORDS[0].encode() + b'Cmd = "')
        for _ in range(100):
            stream.write(b"x" * (1 << 20))
        stream.write(b'"\n*** x\n' + RECORDS[1].encode())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answer = fetch(file)
    assert len(answer.records) == 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000


def test_links_that_lead_elsewhere_are_not_followed(tmp_path: Path) -> None:
    """Neither a file nor a directory outside; and no pipe is waited for."""
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    inside.mkdir()
    append(outside / "startd_history", RECORDS[0])
    (inside / "startd_history").symlink_to(outside / "startd_history")
    (inside / "d").symlink_to(outside)
    os.mkfifo(inside / "startd_history_fifo")
    answer = fetch(inside / "startd_history*")
    assert answer.records == ()
    assert [p.problem for p in answer.problems] == ["link_outside"]
    deep = fetch(inside / "*" / "startd_history")
    assert deep.records == ()
    assert [p.problem for p in deep.problems] == ["link_outside"]


def test_many_files_and_old_ones(tmp_path: Path) -> None:
    """A pattern reads all that match; at the first call those of before the lookback do not."""
    for number in range(4):
        (tmp_path / f"pilot{number}").mkdir()
        append(tmp_path / f"pilot{number}" / "startd_history", RECORDS[number])
        os.utime(tmp_path / f"pilot{number}" / "startd_history", (NOW, NOW - number * 86400))
    pattern = tmp_path / "*" / "startd_history"
    answer = fetch(pattern, limits=HistoryLimits(lookback_s=1.5 * 86400))
    assert len(answer.records) == 2
    append(tmp_path / "pilot3" / "startd_history", RECORDS[5])
    assert len(fetch(pattern, answer.state).records) == 1


@pytest.mark.parametrize(
    "state", ["{", "[1]", '[["a"]]', "null", "7", "[[1,2,3,4,5,6,7]]", '{"a":1}']
)
def test_a_state_that_is_not_understood(file: Path, state: str) -> None:
    """It counts as a problem, and reading begins anew."""
    append(file, RECORDS[0])
    answer = fetch(file, state)
    assert [p.problem for p in answer.problems] == ["bad_state"]
    assert len(answer.records) == 1


@pytest.mark.parametrize("pattern", ["startd_history", "*/startd_history"])
def test_a_directory_that_is_gone_is_no_gap(tmp_path: Path, pattern: str) -> None:
    """The query fails, so that the source is down; when it is back reading goes on."""
    root = tmp_path / "spool"
    file = root / ("startd_history" if "*" not in pattern else "node1/startd_history")
    file.parent.mkdir(parents=True)
    append(file, *RECORDS[:3])
    first = fetch(root / pattern)
    assert len(first.records) == 3
    root.rename(tmp_path / "elsewhere")
    with pytest.raises(QueryError, match=f"unreadable: {root}: No such file"):
        fetch(root / pattern, first.state)
    (tmp_path / "elsewhere").rename(root)
    append(file, RECORDS[3])
    again = fetch(root / pattern, first.state)
    assert (len(again.records), again.gap) == (1, None)
    file.unlink()
    assert fetch(root / pattern, again.state).gap is not None


def test_a_file_that_cannot_be_read_is_a_problem(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says so, and what was known of it stays."""
    append(file, RECORDS[0])
    state = fetch(file).state

    def denied(path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    with monkeypatch.context() as patch:
        patch.setattr(tail, "open_regular", denied)
        answer = fetch(file, state)
    assert [p.problem for p in answer.problems] == ["unreadable"]
    assert (answer.gap, json.loads(answer.state)) == (None, json.loads(state))
