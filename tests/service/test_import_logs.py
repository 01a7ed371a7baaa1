"""`gwmond import --central-log` of logs whose lines are known, beside outputs and without them."""

from __future__ import annotations

import gzip
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gwmond.config.settings import Config
from gwmond.ledger.database.errors import LedgerError
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.ledger.store import Ledger
from gwmond.model.cursor_kinds import IMPORTED_LOG
from gwmond.model.runs.run_facts import Source
from gwmond.service.accounting.imported_logs import LogPlace
from gwmond.service.importer import Importer
from gwmond.sources import child
from tests.build.command_line import gwmond
from tests.build.gwms import generate, simulated
from tests.build.imports import Totals, pilots, totals

NUMBER, SEED = 120, 11
ENDED = "condor_master (condor_MASTER) pid 11 EXITING WITH STATUS 0"
UNSENT = "Failed to send job exit status to shadow"
CONTAINER = "FATAL: container creation failed: mount docker://image: no such file"


@pytest.fixture(scope="module")
def factory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A factory's directory without event logs, so that the ends of some pilots are not known."""
    directory = tmp_path_factory.mktemp("factory")
    generate.write(directory, SEED, NUMBER)
    for log in directory.rglob("condor_activity_*"):
        log.unlink()
    return directory


def line(pilot: simulated.Pilot, at: float, program: str, message: str) -> bytes:
    """A line that calls a pilot by one of the three kinds of names, with its host's short name."""
    site = f'GLIDEIN_ResourceName="CE" GLIDEIN_Site="{pilot.site}"'
    names = {
        0: f'{site} GLIDEIN_Name="{pilot.startd}"',
        1: f'GLIDEIN_Schedd="{simulated.SCHEDD}" GLIDEIN_ClusterId="{pilot.cluster}" '
        f'GLIDEIN_ProcId="{pilot.proc}"',
        2: f'GLIDEIN_Site="{pilot.site}" GLIDEIN_Entry_Name="{pilot.entry_name}"',
    }
    data = f'[cat="D_ALWAYS" {names[pilot.number % 3]}]'
    when = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
    node = pilot.node.partition(".")[0]
    return f"<149>1 {when} {node} {program} 11 - {data} {message}\n".encode()


def lines(number: int = NUMBER) -> Iterator[tuple[float, bytes]]:
    """What pilots' daemons said of their ends and of their runs."""
    for pilot in simulated.pilots(SEED, number):
        end = pilot.end - 7.5
        yield end, line(pilot, end, "condor_master", ENDED)
        for job in pilot.jobs:
            if job.cluster % 3 == 0:
                yield job.end, line(pilot, job.end, "condor_starter", UNSENT)
            elif job.cluster % 3 == 1:
                yield job.start, line(pilot, job.start + 20, "glidein_stderr", CONTAINER)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three logs in the order of time; with lines that are none, and of unknown pilots."""
    directory = tmp_path_factory.mktemp("logs")
    every = [one for _, one in sorted(lines())]
    third = -(-len(every) // 3)
    made = []
    for number in range(3):
        path = directory / f"pilots.{number}.log"
        some = every[number * third : (number + 1) * third]
        stranger = b'<149>1 2025-10-10T00:00:00Z n condor_master 1 - [GLIDEIN_Name="glidein_1_1"] '
        path.write_bytes(b"garbage\n" + b"".join(some) + stranger + ENDED.encode() + b"\n")
        made.append(path)
    return made


def command(ledger: Path, *paths: Path, logs: list[Path] = []) -> list[str]:  # noqa: B006
    named = ["--central-log", *map(str, logs)] if logs else []
    call = [sys.executable, "-m", "gwmond", "import", "--ledger", f"sqlite:///{ledger}"]
    return [*call, *map(str, paths), *named]


def run(
    ledger: Path,
    *paths: Path,
    logs: list[Path] = [],  # noqa: B006
) -> subprocess.CompletedProcess[str]:
    """Import, to the end."""
    done = gwmond(*command(ledger, *paths, logs=logs)[3:])
    assert done.returncode == 0, done.stderr
    return done


def take(ledger: Path, *paths: Path, logs: Sequence[Path] = ()) -> None:
    """Import in this process, which is quicker."""
    child.start()
    with Ledger.open(f"sqlite:///{ledger}") as opened:
        Importer(Config(), opened).run([*map(str, paths)], logs=[*map(str, logs)])


def ends(ledger: Path) -> dict[str, tuple[str, int | None]]:
    """How and when each pilot ended."""
    return {job: (row.end_source, row.end_us) for job, row in pilots(ledger).items()}


def read_logs(ledger: Path) -> dict[str, str]:
    """How far each log was read; nothing before there is a ledger."""
    try:
        with LedgerReader.open(f"sqlite:///{ledger}") as reader:
            return {
                source: cursor.state
                for (source, kind), cursor in reader.cursors().items()
                if kind == IMPORTED_LOG
            }
    except LedgerError:
        return {}


def is_sound(ledger: Path) -> bool:
    return gwmond("ledger", "check", "--ledger", ledger).returncode == 0


@pytest.fixture(scope="module")
def plain(factory: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger without logs."""
    ledger = tmp_path_factory.mktemp("plain") / "ledger.sqlite"
    run(ledger, factory)
    return ledger


@pytest.fixture(scope="module")
def both(factory: Path, logs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger into which both were imported at once."""
    ledger = tmp_path_factory.mktemp("both") / "ledger.sqlite"
    said = run(ledger, factory, logs=logs).stdout
    assert "lines about pilots in 3 central logs were read" in said
    assert "[garbage]: 3, such as" in said
    assert "[no_pilot]: " in said
    return ledger


def told_of_runs(ledger: Path) -> set[str]:
    """Pilots with runs of which a central log told something, as the factory's jobs."""
    rows = pilots(ledger)
    with LedgerReader.open(f"sqlite:///{ledger}") as reader:
        runs = reader.runs_of([row.id for row in rows.values()])
    return {
        job
        for job, row in rows.items()
        for run in runs.get(row.id, ())
        if any(fact.source is Source.CENTRAL_LOG for fact in run.facts)
    }


def test_what_logs_tell(plain: Path, both: Path) -> None:
    """Ends that nothing else told, and runs, by whatever a line calls a pilot."""
    known, before = ends(both), ends(plain)
    assert known.keys() == before.keys()
    told, ended, of_runs = told_of_runs(both), set(), set()
    for truth in simulated.pilots(SEED, NUMBER):
        job = f"{truth.cluster}.{truth.proc}"
        if job in told:
            of_runs.add(truth.number % 3)
        if known.get(job) != before.get(job):
            ended.add(truth.number % 3)
            assert known[job] == ("central_log", round((truth.end - 7.5) * 10**6))
    # Where an output tells the startd's name, it tells all else, too: they are by site and host.
    assert ended == of_runs == {0, 1, 2}
    assert "lost_contact" in {series[3] for series in totals(both)}
    assert totals(both) != totals(plain)
    assert is_sound(both)


def test_the_order_makes_no_difference(
    both: Path, plain: Path, factory: Path, logs: list[Path], tmp_path: Path
) -> None:
    """Logs after outputs, before them, and one between: the same totals and the same ends."""
    wanted: Totals = totals(both)
    after = tmp_path / "after.sqlite"
    after.write_bytes(plain.read_bytes())
    take(after, logs=logs[::-1])
    before = tmp_path / "before.sqlite"
    take(before, logs=logs)
    assert totals(before) == {}
    take(before, factory)
    between = tmp_path / "between.sqlite"
    take(between, logs=logs[:1])
    take(between, factory, logs=logs[1:2])
    take(between, logs=logs[2:])
    for ledger in (after, before, between):
        assert ends(ledger) == ends(both), ledger
        assert totals(ledger) == wanted, ledger
        assert is_sound(ledger)


def test_killed_and_repeated(both: Path, factory: Path, logs: list[Path], tmp_path: Path) -> None:
    """Killed as soon as the first chunk of logs is stored, also in the midst; then to the end."""
    ledger = tmp_path / "ledger.sqlite"
    killed = 0
    for stop in (1, 2, 3):
        with subprocess.Popen(
            command(ledger, factory, logs=logs), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:
            while process.poll() is None and len(read_logs(ledger)) < stop:
                time.sleep(0.002)
            process.kill()
        killed += process.returncode == -signal.SIGKILL
    assert killed
    run(ledger, factory, logs=logs)
    assert (ends(ledger), totals(ledger)) == (ends(both), totals(both))
    assert is_sound(ledger)


def test_again_is_nothing(both: Path, factory: Path, logs: list[Path]) -> None:
    """Neither with the directories nor without: no line is read, and nothing changes."""
    before, places = totals(both), read_logs(both)
    for paths in ((factory,), ()):
        said = run(both, *paths, logs=logs).stdout
        assert "nothing is new since the last import" in said
        assert "central logs" not in said
    assert (totals(both), read_logs(both)) == (before, places)


def test_a_log_that_grew_is_read_on(plain: Path, logs: list[Path], tmp_path: Path) -> None:
    """And a copy of it under another name counts nothing twice."""
    ledger = tmp_path / "ledger.sqlite"
    ledger.write_bytes(plain.read_bytes())
    whole = b"".join(log.read_bytes() for log in logs)
    at_once = tmp_path / "whole.log"
    at_once.write_bytes(whole)
    other = tmp_path / "other.sqlite"
    other.write_bytes(plain.read_bytes())
    take(other, logs=[at_once])
    growing = tmp_path / "growing.log"
    cut = len(whole) // 2
    growing.write_bytes(whole[:cut])
    take(ledger, logs=[growing])
    with growing.open("ab") as stream:
        stream.write(whole[cut:])
    take(ledger, logs=[growing])
    assert totals(ledger) == totals(other) != totals(plain)
    take(ledger, logs=[at_once])
    assert totals(ledger) == totals(other)


def test_logs_that_are_packed(plain: Path, logs: list[Path], tmp_path: Path) -> None:
    """As they are unpacked; of one that is cut off, or damaged, all before, and it is named."""
    unpacked, ledger = tmp_path / "unpacked.sqlite", tmp_path / "ledger.sqlite"
    packed = [tmp_path / f"{log.name}.1.gz" for log in logs]
    for log, to in zip(logs, packed, strict=True):
        to.write_bytes(gzip.compress(log.read_bytes()))
    for path in (unpacked, ledger):
        path.write_bytes(plain.read_bytes())
    take(unpacked, logs=logs)
    said = run(ledger, logs=packed).stdout
    assert totals(ledger) == totals(unpacked) != totals(plain)
    assert "in 3 central logs were read" in said
    assert "nothing is new" in run(ledger, logs=packed).stdout
    whole = packed[0].read_bytes()
    cut_off, other_sum = whole[: len(whole) // 2], whole[:-9] + b"x" * 9
    for damaged in (cut_off, other_sum, whole[:600] + whole[900:]):
        cut = tmp_path / "cut.log.gz"
        cut.write_bytes(damaged)
        some = tmp_path / "some.sqlite"
        some.write_bytes(plain.read_bytes())
        said = run(some, logs=[cut]).stdout
        some_read = damaged in {cut_off, other_sum}
        assert ("in 1 central logs were read" in said) == some_read, said
        assert "cut.log.gz" in said
        assert "damaged" in said or "CRC" in said or "Not a gzipped" in said, said


def test_what_cannot_be_read(logs: list[Path], tmp_path: Path) -> None:
    """It is said before anything is read, and no ledger is made."""
    ledger = tmp_path / "ledger.sqlite"
    packed = tmp_path / "pilots.log.xz"
    packed.touch()
    for named, code, why in (
        ([tmp_path / "none"], 1, "none: no such file"),
        ([*logs, tmp_path], 1, "is a directory: name the logs in it"),
        ([packed], 1, "is compressed, and not by gzip: unpack it first"),
        ([], 2, "name a directory, or a log with --central-log"),
    ):
        done = gwmond(*command(ledger, logs=named)[3:])
        assert (done.returncode, why in done.stderr) == (code, True), done.stderr
    assert not ledger.exists()


def test_a_log_that_is_gone(factory: Path, logs: list[Path], tmp_path: Path) -> None:
    """Its lines could not be accounted when it was there, and cannot be any more: it is said."""
    ledger, log = tmp_path / "ledger.sqlite", tmp_path / "pilots.log"
    log.write_bytes(logs[0].read_bytes())
    take(ledger, logs=[log])
    log.unlink()
    said = run(ledger, factory).stdout
    assert "[log_gone]: 1, such as" in said


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '["", 5, ""]', '["x", null, ""]', '["", -1, ""]', "[1, 2, 3]", "null"]
)
def test_a_place_that_is_not_understood_is_the_begin(text: str) -> None:
    assert LogPlace.load(text) == LogPlace()


def test_a_place_comes_back() -> None:
    place = LogPlace("", 0, "abc")
    assert LogPlace.load(place.dump()) == place
