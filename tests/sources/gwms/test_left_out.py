"""What a directory has that is no pilot more, or is not read: each is told, with how many."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from gwmond.ledger.reading.reader import LedgerReader
from gwmond.model.pilots.file_facts import QueueEvent
from gwmond.service import importer
from gwmond.service.accounting import file_readers
from gwmond.sources.gwms import layout
from tests.build import imports
from tests.build.gwms import generate
from tests.build.gwms.directory import GOOD, by_file, fetch, numbers, of, put


@pytest.fixture
def entry(tmp_path: Path) -> Path:
    path = tmp_path / "factory" / "client" / GOOD[0].directory
    path.mkdir(parents=True)
    return path


def test_links_within_a_directory_are_not_followed(entry: Path) -> None:
    """What they lead to is come upon by its own name."""
    good = GOOD[0]
    put(entry, good)
    for kind in ("out", "err"):
        (entry / f"job.555.5.{kind}").symlink_to(f"{good.stem}.{kind}")
    answer = fetch(entry)
    assert (numbers(answer), by_file(answer)) == (of(good), {})


def test_a_copy_under_another_number_is_not_accounted(entry: Path) -> None:
    """Only where the pilot's own output is there; else it counts by its file's number."""
    put(entry, GOOD[0])
    shutil.copy(entry / f"{GOOD[0].stem}.out", entry / "job.77.0.out")
    answer = fetch(entry)
    assert numbers(answer) == of(GOOD[0])
    assert by_file(answer) == {"job.77.0.out": "other_pilot"}
    (entry / f"{GOOD[0].stem}.out").unlink()
    (entry / f"{GOOD[0].stem}.err").unlink()
    assert numbers(fetch(entry)) == [(77, 0)]


def test_a_log_that_is_renamed_is_read_to_its_end(entry: Path) -> None:
    """What was written between the last reading and the renaming counts, as of the same log."""
    log = entry / "condor_activity_20261118_fe.main.log"
    log.write_text(generate.events(GOOD[0]))
    first = fetch(entry)
    with log.open("a") as stream:
        stream.write(generate.events(GOOD[1]))
    log.rename(entry / f"{log.name}.1")
    log.write_text(generate.events(GOOD[2]))
    second = fetch(entry, first.state)
    events = [fact for fact in second.facts if isinstance(fact, QueueEvent)]
    assert {event.name.cluster for event in events} == {GOOD[1].cluster, GOOD[2].cluster}
    assert {event.path for event in events} == {str(log)}
    assert fetch(entry, second.state).facts == ()
    (entry / f"{log.name}.1").rename(entry / f"{log.name}.2")
    assert fetch(entry, second.state).facts == ()


def test_a_file_that_only_has_the_inode_of_a_log_is_not_one(entry: Path) -> None:
    """The numbers of inodes come again; then what the file has is another thing."""
    log = entry / "condor_activity_20261118_fe.main.log"
    log.write_text(generate.events(GOOD[0]))
    state = fetch(entry).state
    log.rename(entry / "notes")
    (entry / "notes").write_text("x" * 100_000)
    answer = fetch(entry, state)
    assert (answer.facts, answer.problems) == ((), ())


def test_what_a_tree_leaves_out_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Directories that are too deep, or too many; a directory with an output's name."""
    deep = tmp_path.joinpath(*map(str, range(layout.MAX_DEPTH + 1)))
    deep.mkdir(parents=True)
    put(deep, GOOD[0])
    for name in "abc":
        (tmp_path / name).mkdir()
        put(tmp_path / name, GOOD[1])
    (tmp_path / "job.1.0.out").mkdir()
    monkeypatch.setattr(layout, "MAX_DIRECTORIES", 2)
    tree = layout.tree(str(tmp_path))
    assert len(tree.directories) == 2
    assert sorted(problem.problem for problem in tree.problems) == [
        "not_a_file",
        "too_deep",
        "too_many_directories",
    ]
    assert {problem.source for problem in tree.problems if problem.problem == "too_deep"} == {
        str(deep)
    }


def test_times_that_cannot_be_are_told_with_their_file(entry: Path) -> None:
    """The epoch itself, the year 5138, and what is long after the file was written."""
    for number, at in ((1, 0), (2, 10**11), (3, GOOD[0].end + 10**7)):
        text = f"Starting glidein_startup.sh at Thu Jan  1 00:00:00 UTC 1970 ({at})\n" + "x" * 20
        path = entry / f"job.{number}.0.out"
        path.write_text(text)
        os.utime(path, (GOOD[0].end, GOOD[0].end))
    put(entry, GOOD[0])
    assert by_file(fetch(entry)) == {f"job.{number}.0.out": "bad_time" for number in (1, 2, 3)}


def test_faults_are_counted_once_each_and_lines_by_their_number(
    entry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many chunks a directory is read in; of lines without a duration also a zero."""
    put(entry, *GOOD[:40])
    outside = tmp_path / "outside"
    outside.write_text("x")
    for number in range(3):
        (entry / f"job.{number}.1.out").symlink_to(outside)
    (entry / "job.5.0.out\n").write_text("x")
    server = tmp_path / "factory" / "server" / "entry_Entry_T2_000"
    server.mkdir(parents=True)
    for day, durations in (("20261118", (-1, 0, 0)), ("20261119", (-1, 5, -1))):
        text = "".join(
            f'<job terminated="2026-11-18T10:00:00Z" client="fe" username="u" id="{number}.0" '
            f'duration="{duration}" condor_started="0" condor_duration="0"></job>\n'
            for number, duration in enumerate(durations)
        )
        (server / f"completed_jobs_{day}.log").write_text(text)
    monkeypatch.setattr(importer, "LIMITS", file_readers.LIMITS._replace(facts=20))
    said = imports.run(tmp_path / "l.sqlite", tmp_path / "factory").stdout
    assert "[no_duration]: 5, such as" in said
    assert "[link_outside]: 3, such as" in said
    assert "[odd_name]: 1, such as" in said


def test_outputs_without_a_header_of_two_users_are_two_pilots(tmp_path: Path) -> None:
    """Two clients of a factory have the same number at an entry, and no header tells them apart."""
    lines = (
        b"Starting glidein_startup.sh at Wed Nov 18 10:00:00 UTC 2026 (1794996000)\n"
        b"=== Glidein ending Wed Nov 18 11:00:00 UTC 2026 (%d) with code 0 after 3600 ===\n"
    )
    factory = tmp_path / "factory"
    for number, user in enumerate(("fe", "fe2")):
        place = factory / "client" / f"user_{user}" / "glidein_i" / "entry_E"
        place.mkdir(parents=True)
        (place / "job.1.0.out").write_bytes(lines % (1794999600 + number))
    ledger = tmp_path / "l.sqlite"
    for _ in range(2):
        assert imports.run(ledger, factory).returncode == 0
        with LedgerReader.open(f"sqlite:///{ledger}") as reader:
            ends = sorted(row.end_us or 0 for row in reader.pilot_rows())
        assert ends == [1794999600 * 10**6, 1794999601 * 10**6]
