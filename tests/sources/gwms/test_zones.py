"""Times without a zone in a factory's logs: read in the zone that is named, else found wrong."""

from __future__ import annotations

import os
import subprocess
import time
from datetime import UTC
from pathlib import Path

import pytest

from gwmond.model.facts import Problem
from gwmond.model.pilots.file_facts import QueueEvent
from gwmond.model.times import SECOND_US
from gwmond.sources.gwms import completed_jobs, factory_dir, zones
from gwmond.sources.gwms.directory_cursor import FileAnswer, FileLimits
from tests.build.gwms import generate, simulated
from tests.build.gwms.directory import put
from tests.build.imports import command, totals

PILOTS = [
    pilot._replace(entry=1)
    for pilot in simulated.pilots(5, 200)
    if pilot.kind in {"good", "idle", "evicted"}
][:12]
"""The logs of entry 1 have dates of the old form, which are in UTC."""


@pytest.fixture
def entry(tmp_path: Path) -> Path:
    path = tmp_path / "client" / PILOTS[0].directory
    path.mkdir(parents=True)
    for pilot in PILOTS:
        for file in put(path, pilot):
            os.utime(file, (pilot.end, pilot.end))
    day = time.strftime("%Y%m%d", time.gmtime(min(job.start for job in PILOTS)))
    log = path / f"condor_activity_{day}_fe.main.log"
    log.write_text("".join(map(generate.events, PILOTS)))
    return path


def fetch(entry: Path, zone: str) -> FileAnswer:
    now = time.time() + 60
    return factory_dir.fetch(str(entry), "", FileLimits(), now, zone=zones.zone_of(zone))


def wrong(entry: Path, zone: str) -> list[Problem]:
    """What is said of the logs of one directory."""
    judge = zones.Judge(zone)
    judge.add(fetch(entry, zone).samples)
    return judge.problems()


def test_the_zone_that_is_named_counts(entry: Path) -> None:
    """Events are where the simulation has them, and nothing is wrong."""
    answer = fetch(entry, "UTC")
    told = {fact.at_us // SECOND_US for fact in answer.facts if isinstance(fact, QueueEvent)}
    assert {job.start for job in PILOTS} <= told
    assert len(answer.samples) == len(PILOTS)
    assert wrong(entry, "UTC") == []


def test_a_zone_that_does_not_fit_is_told_with_what_it_should_be(entry: Path) -> None:
    """Events differ from the outputs' epochs by the same whole hours."""
    (problem,) = wrong(entry, "America/Los_Angeles")
    assert problem.problem == "other_zone"
    assert problem.source.endswith(".log")
    assert "UTC+00:00" in problem.detail
    assert "earlier by their outputs" in problem.detail


def test_a_few_pilots_or_ones_that_differ_tell_nothing(entry: Path) -> None:
    """Two pilots are too few; and where each differs by something else, it is no zone."""
    outs = sorted(entry.glob("job.*.out"))
    for number, path in enumerate(outs):
        text = path.read_bytes()
        for pilot in PILOTS:
            if pilot.stem == path.stem:
                for at in (pilot.start, pilot.end):
                    moved = f"({at + 7200 * number})".encode()
                    text = text.replace(f"({at})".encode(), moved)
        path.write_bytes(text)
    assert wrong(entry, "America/Los_Angeles") == []
    for path in outs[2:]:
        path.unlink()
    assert wrong(entry, "America/Los_Angeles") == []


def test_logs_with_few_pilots_are_judged_together() -> None:
    """Each is named; one that has enough of its own is judged by these, and said once."""
    judge = zones.Judge("UTC")
    at_us = PILOTS[0].start * SECOND_US
    judge.add(zones.ZoneSample(f"log{number}", -32, at_us) for number in range(4))
    judge.add([zones.ZoneSample("other", 0, at_us)] * 5)
    assert [problem.source for problem in judge.problems()] == ["log0", "log1", "log2", "log3"]
    assert judge.problems() == []
    judge.add(zones.ZoneSample("log9", -32, at_us) for _ in range(2))
    assert judge.problems() == []


def test_a_summary_without_a_zone() -> None:
    """Its time is known only if the zone is named."""
    line = generate.completed(PILOTS[0])
    zoned = completed_jobs.parse("p", line.encode()).facts[0]
    at = line.index('terminated="') + len('terminated="')
    wall = line[at : line.index('"', at)][:19]
    bare = line.replace(line[at : line.index('"', at)], wall).encode()
    assert zoned.written_us is not None
    assert completed_jobs.parse("p", bare).facts[0].written_us is None
    told = completed_jobs.parse("p", bare, zone=UTC).facts[0].written_us
    assert told is not None
    assert (told - zoned.written_us) % (900 * SECOND_US) == 0


def _import(entry: Path, ledger: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*command(ledger, entry), *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "TZ": "America/Los_Angeles"},
    )


def test_an_import_on_a_host_of_another_zone(entry: Path, tmp_path: Path) -> None:
    """It says that the zone is wrong, and with --timezone it accounts as a host in UTC does."""
    for path in list(entry.glob("job.*"))[::2]:
        path.unlink()  # of these only the queue tells
    here, there, away = (tmp_path / f"{name}.sqlite" for name in ("here", "there", "away"))
    unfit = _import(entry, away)
    assert "[other_zone]: 1, such as" in unfit.stdout
    named = _import(entry, there, "--timezone", "UTC")
    assert "other_zone" not in named.stdout
    assert _import(entry, here, "--timezone", "Etc/UTC").returncode == 0
    assert totals(here) == totals(there) != totals(away)
    odd = _import(entry, there, "--timezone", "Mars/Olympus")
    assert odd.returncode == 2
    assert "Mars/Olympus" in odd.stderr
