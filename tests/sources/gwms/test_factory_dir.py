"""Directories of a factory: read on from where reading stopped, whatever becomes of the files."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from gwmond.model.pilots.file_facts import CentralEvent, CompletedPilot, PilotOutput, QueueEvent
from gwmond.sources import tail
from gwmond.sources.gwms import (
    factory_dir,
    following,
    layout,
    pilot_err,
    pilot_output,
    pilot_reading,
)
from gwmond.sources.gwms.directory_cursor import FileLimits
from tests.build.gwms import figures, generate, simulated
from tests.build.gwms.directory import GOOD, LINES, by_file, fetch, numbers, of, put, read_on, words


@pytest.fixture
def entry(tmp_path: Path) -> Path:
    path = tmp_path / "user_fe" / "glidein_gfactory_instance" / "entry_Entry_T2_000"
    path.mkdir(parents=True)
    return path


def test_pilots_are_read_once_and_again_when_they_change(entry: Path) -> None:
    """Also if only one of the two files has changed; the state does not grow."""
    put(entry, *GOOD[:3])
    first = fetch(entry)
    assert len(numbers(first)) == 3
    assert not first.behind
    assert first.complete_us is not None
    assert fetch(entry, first.state).facts == ()
    time.sleep(0.02)
    with (entry / f"{GOOD[1].stem}.err").open("ab") as stream:
        stream.write(b"\n")
    put(entry, GOOD[3])
    again = fetch(entry, first.state)
    assert numbers(again) == of(GOOD[1], GOOD[3])
    assert len(again.state) < len(first.state) + 10
    assert fetch(entry, again.state).facts == ()


def test_what_may_still_be_written_waits(entry: Path) -> None:
    """A file that changed just now is read a little later, whole."""
    put(entry, GOOD[0])
    now = fetch(entry, later=0)
    assert now.facts == ()
    assert len(fetch(entry, now.state, later=10).facts) == 1


def test_answers_are_bounded_and_resumable(entry: Path) -> None:
    """Facts come in parts, each pilot once; the progress says how many are left."""
    put(entry, *GOOD[:12])
    answers = read_on(entry, facts=4)
    left = [answer.left for answer in answers]
    assert all((answer.complete_us is None) is answer.behind for answer in answers)
    assert sum(len(numbers(answer)) for answer in answers) == 12
    assert left == sorted(left, reverse=True)
    assert left[0] < 12
    assert len(left) > 3


def test_logs_are_followed(entry: Path) -> None:
    """What is added comes; an incomplete line or event waits; a renamed log is the same."""
    done, activity = entry / "completed_jobs_20261118.log", entry / "condor_activity_20261118_x.log"
    event = generate.events(GOOD[0])
    done.write_text(LINES[0] + LINES[1][:50])
    activity.write_text(event[:-8])
    first = fetch(entry)
    assert len([f for f in first.facts if isinstance(f, CompletedPilot)]) == 1
    assert len([f for f in first.facts if isinstance(f, QueueEvent)]) == 3
    with done.open("a") as stream:
        stream.write(LINES[1][50:] + LINES[2])
    done.rename(entry / "completed_jobs_20261117.log")
    with activity.open("a") as stream:
        stream.write(event[-8:])
    second = fetch(entry, first.state)
    assert len([f for f in second.facts if isinstance(f, CompletedPilot)]) == 2
    assert len([f for f in second.facts if isinstance(f, QueueEvent)]) == 1
    assert second.problems == ()
    assert fetch(entry, second.state).facts == ()


def test_a_log_that_shrinks_is_read_again(entry: Path) -> None:
    """It says so; a pilot is known by its name, so that nothing counts twice."""
    done = entry / "completed_jobs_20261118.log"
    done.write_text("".join(LINES[:5]))
    state = fetch(entry).state
    os.truncate(done, len(LINES[0]))
    answer = fetch(entry, state)
    assert (len(answer.facts), words(answer)) == (1, ["truncated_log"])


def test_a_log_is_read_in_parts(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the size of a part, each line comes once."""
    monkeypatch.setattr(tail, "CHUNK_BYTES", 700)
    (entry / "completed_jobs_20261118.log").write_text("".join(LINES[:30]))
    assert sum(len(answer.facts) for answer in read_on(entry, facts=3)) == 30


def test_a_line_of_100_mb_costs_little_memory(entry: Path) -> None:
    """In a log it is passed over; of an output the begin and the end are read."""
    with (entry / "completed_jobs_20261118.log").open("wb") as stream:
        stream.write(LINES[0].encode())
        for _ in range(100):
            stream.write(b"x" * (1 << 20))
        stream.write(b"\n" + LINES[1].encode())
    good = GOOD[0]
    text = generate.out(good)
    middle = text.index(b"=== Last script starting")
    with (entry / f"{good.stem}.out").open("wb") as stream:
        stream.write(text[:middle])
        for _ in range(100):
            stream.write(b"y" * (1 << 20))
        stream.write(b"\n" + text[middle:])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answer = fetch(entry)
    assert words(answer) == ["too_large", "too_long"]
    lines = [fact for fact in answer.facts if isinstance(fact, CompletedPilot)]
    (output,) = (fact for fact in answer.facts if isinstance(fact, PilotOutput))
    assert len(lines) == 2
    assert (output.start_us, output.end_us) == (good.start * 10**6, good.end * 10**6)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000


def test_links_that_lead_outside_are_not_followed(tmp_path: Path, entry: Path) -> None:
    """Neither a file nor a directory; nor is a pipe waited for; a link within is no pilot more.

    Each is told once: by who reads the directory, or where nothing in it is, by who looks for them.
    """
    outside = tmp_path / "outside"
    outside.mkdir()
    put(outside, GOOD[0])
    put(entry, GOOD[1])
    (entry / "job.1.0.out").symlink_to(outside / f"{GOOD[0].stem}.out")
    (entry / "job.2.0.out").symlink_to(entry / f"{GOOD[1].stem}.out")
    (entry / "job.3.0.out").symlink_to(entry / "nothing")
    os.mkfifo(entry / "job.4.0.out")
    (entry / "job.5.0.out").mkdir()
    (entry.parent / "entry_link").symlink_to(outside)
    (entry.parent / "entry_loop").symlink_to(entry.parent)
    answer = fetch(entry)
    assert numbers(answer) == of(GOOD[1])
    assert by_file(answer) == {
        "job.1.0.out": "link_outside",
        "job.3.0.out": "dangling_link",
        "job.4.0.out": "not_a_file",
        "job.5.0.out": "not_a_file",
    }
    tree = layout.tree(str(tmp_path / "user_fe"))
    assert tree.directories == (str(entry),)
    assert [p.source.rpartition("/")[2] for p in tree.problems] == ["entry_link"]
    (entry / f"{GOOD[1].stem}.out").unlink()
    (entry / f"{GOOD[1].stem}.err").unlink()
    (entry / "job.2.0.out").unlink()
    (entry / "job.4.0.out").unlink()
    nothing_to_read = layout.tree(str(tmp_path / "user_fe"))
    assert nothing_to_read.directories == ()
    assert sorted(p.source.rpartition("/")[2] for p in nothing_to_read.problems) == [
        "entry_link",
        "job.1.0.out",
        "job.3.0.out",
        "job.5.0.out",
    ]


def test_names_with_newlines(entry: Path) -> None:
    """Such a name is no pilot's; it is told in a form that can be printed; others go on."""
    put(entry, GOOD[0])
    (entry / "job.7.0.out\n").write_text("x")
    (entry / "job.8.0\n.out").write_text("x")
    log = entry / "condor_activity_20261118_a\nb.log"
    log.write_text("garbage\n...\n" + generate.events(GOOD[0]))
    answer = fetch(entry)
    assert numbers(answer) == of(GOOD[0])
    assert words(answer) == ["garbage", "odd_name", "odd_name"]
    assert all(problem.source.isprintable() for problem in answer.problems)


def test_files_that_vanish_or_shrink_while_they_are_read(
    entry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest goes on, and each is named."""
    put(entry, *GOOD[:4])
    opened = tail.open_regular

    def meddled(path: str) -> object:
        if path.endswith(f"/{GOOD[1].stem}.err"):
            os.unlink(path)
        return opened(path)

    monkeypatch.setattr(tail, "open_regular", meddled)
    fstat = os.fstat

    def shrinking(descriptor: int) -> os.stat_result:
        status = fstat(descriptor)
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        if path.endswith(f"/{GOOD[2].stem}.out"):
            os.truncate(path, 300)
        return status

    monkeypatch.setattr(os, "fstat", shrinking)
    answer = fetch(entry)
    monkeypatch.undo()
    assert len(numbers(answer)) == 4
    assert by_file(answer) == {f"{GOOD[1].stem}.err": "vanished", f"{GOOD[2].stem}.out": "shrunk"}


def test_one_parser_that_fails_is_one_problem(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Should a parser fail after all, its file is named and the others are read."""
    put(entry, *GOOD[:3])
    parse = pilot_output.parse

    def failing(path: str, *rest: Any) -> PilotOutput:
        if GOOD[1].stem in path:
            raise RecursionError("deep")
        return parse(path, *rest)

    monkeypatch.setattr(pilot_output, "parse", failing)
    answer = fetch(entry)
    assert (len(numbers(answer)), words(answer)) == (2, ["parser_failed"])


def test_a_file_that_is_slow_costs_itself(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its stderr is left out and named; what its output says, and the others, are read."""
    put(entry, *GOOD[:3])
    parse = pilot_output.parse

    def slow(path: str, out: bytes | None, err: bytes | None, *rest: Any) -> PilotOutput:
        while GOOD[1].stem in path and err is not None:
            pass
        return parse(path, out, err, *rest)

    monkeypatch.setattr(pilot_output, "parse", slow)
    answer = fetch(entry, file_s=0.2)
    assert (len(numbers(answer)), words(answer)) == (3, ["too_slow"])
    (problem,) = answer.problems
    assert problem.source.endswith(f"{GOOD[1].stem}.err")


def bomb(mib: int) -> bytes:
    """A log of runs that a few KiB of gzip unpack to."""
    line = b'Attribute = "value"\n'
    return generate.log(pilot_err.HISTORY, line * (mib * (1 << 20) // len(line)))


def _read_alone(directory: Path, file_mib: int) -> Any:
    """Read a directory in a process of its own, in which little memory is free to begin with."""
    script = (
        "import json, resource, sys, time\n"
        "import htcondor2\n"  # as in the server that children are forked from
        "from gwmond.sources.gwms import factory_dir\n"
        "from gwmond.sources.gwms.directory_cursor import FileLimits\n"
        "bounds = resource.getrlimit(resource.RLIMIT_AS)\n"
        f"limits = FileLimits(file_mib={file_mib})\n"
        "answer = factory_dir.fetch(sys.argv[1], '', limits, time.time() + 60)\n"
        "assert resource.getrlimit(resource.RLIMIT_AS) == bounds\n"
        "problems = [[p.problem, p.source.rpartition('/')[2]] for p in answer.problems]\n"
        "print(json.dumps([sum(hasattr(f, 'runs') for f in answer.facts), problems]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, str(directory)],
        env={**os.environ, "CONDOR_CONFIG": "ONLY_ENV"},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def test_a_file_that_needs_much_memory_costs_itself(entry: Path) -> None:
    """Its stderr is left out and named; what its output says, and the others, are read."""
    put(entry, *GOOD[:3])
    (entry / f"{GOOD[1].stem}.err").write_bytes(generate.err(GOOD[1]) + bomb(31))
    found = _read_alone(entry, file_mib=16)
    assert found == [3, [["too_much_memory", f"{GOOD[1].stem}.err"]]]
    assert words(fetch(entry)) == []


def test_the_largest_files_cost_no_more_memory_than_is_given(entry: Path, tmp_path: Path) -> None:
    """Pilots' files of the largest size that is read, full of the largest logs."""
    put(entry, GOOD[0])
    err = generate.err(GOOD[0]) + bomb(31) * 12
    (entry / f"{GOOD[0].stem}.err").write_bytes(err + b"x" * (pilot_reading.ERR_BYTES - len(err)))
    (entry / f"{GOOD[0].stem}.out").write_bytes(
        generate.out(GOOD[0]) + b"<a>" * (pilot_reading.OUT_BYTES // 4)
    )
    answer = fetch(entry)
    assert len(numbers(answer)) == 1
    assert "too_much_memory" not in words(answer)


def test_time_that_is_used_up_ends_a_call(entry: Path) -> None:
    """What was read counts, and the next call goes on; each call reads at least one pilot."""
    put(entry, *GOOD[:3])
    found, state = [], ""
    for _ in range(3):
        answer = fetch(entry, state, seconds=0)
        found += [fact.name for fact in answer.facts if isinstance(fact, PilotOutput)]
        state = answer.state
    assert len(found) == len(set(found)) == 3


@pytest.mark.parametrize(
    "state",
    [
        "{",
        "[1]",
        "null",
        "7",
        "[[0,0],[]]",
        '[["a",0,0],[]]',
        "[[0,0,0],[[1]]]",
        '{"a":1}',
        "[[],[]]",
        "[[0,0,0],[],[[1]]]",
        "[[0,0,0],[],[[1,true]]]",
        "[[0,0,0],[],7]",
    ],
)
def test_a_state_that_is_not_understood(entry: Path, state: str) -> None:
    """It counts as a problem, and reading begins anew."""
    put(entry, GOOD[0])
    answer = fetch(entry, state)
    assert words(answer) == ["bad_state"]
    assert len(answer.facts) == 1


def test_clocks_that_are_wrong(entry: Path) -> None:
    """Files from the future wait and are told; if the clock was set back, all is read again."""
    put(entry, GOOD[0])
    early = fetch(entry, later=-10_000)
    assert (early.facts, words(early)) == ((), ["future_files"])
    state = fetch(entry).state
    back = fetch(entry, state, later=-10_000)
    assert "clock_set_back" in words(back)


def test_only_what_is_young_enough_at_first(entry: Path) -> None:
    """At the first call, what was last written before the lookback is left out."""
    for days, pilot in enumerate(GOOD[:4]):
        put(entry, pilot)
        for path in entry.glob(f"{pilot.stem}.*"):
            os.utime(path, (1, time.time() - days * 86400))
    assert len(fetch(entry, lookback_s=1.5 * 86400).facts) == 2


def test_a_directory_of_central_logs(tmp_path: Path) -> None:
    """Followed in the same way; compressed ones are not read."""
    (tmp_path / "starters.log").write_text(figures.FIGURE_7)
    (tmp_path / "starters.log.1.gz").write_bytes(b"\x1f\x8b")
    now = time.time() + 60
    answer = factory_dir.fetch(str(tmp_path), "", FileLimits(), now, following.CENTRAL)
    assert len([fact for fact in answer.facts if isinstance(fact, CentralEvent)]) == 7
    assert answer.problems == ()


def test_the_tree_of_a_factory(tmp_path: Path) -> None:
    """The directories of clients and of the server, with the number of pilots of each."""
    generate.write(tmp_path, 5, 40)
    tree = layout.tree(str(tmp_path))
    assert {Path(one).parts[len(tmp_path.parts)] for one in tree.directories} == {
        "client",
        "server",
    }
    outputs = [path for path in tmp_path.rglob("job.*") if path.suffix in {".out", ".err"}]
    assert sum(tree.pilots) == len({path.with_suffix("") for path in outputs}) > 30
    at = dict(zip(tree.directories, tree.pilots, strict=True))
    assert at[str(outputs[0].parent)] > 0
    assert {at[name] for name in at if "/server/" in name} == {0}
    one = layout.place_of(tree.directories[0])
    assert (one.instance, one.user in simulated.USERS) == (simulated.INSTANCE, True)
