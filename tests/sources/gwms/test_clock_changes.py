"""A host's clock is set to summer time, or back, while a pilot lives."""

from __future__ import annotations

import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gwmond.ledger.reader import LedgerReader
from gwmond.sources.gwms import pilot_err, pilot_output, starter_log
from gwmond.sources.gwms.rare import clock_changes
from gwmond.sources.gwms.texts import Zone
from tests.build.command_line import gwmond
from tests.build.gwms import generate, simulated
from tests.build.gwms.simulated import Job, Pilot
from tests.examples import examples

US, HOUR = 10**6, 3600
EST, EDT = -5 * HOUR, -4 * HOUR
CHANGES = [
    ("America/New_York", datetime(2025, 11, 2, 6, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 3, 8, 7, tzinfo=UTC)),
    ("Europe/Berlin", datetime(2025, 10, 26, 1, tzinfo=UTC)),
    ("Europe/Berlin", datetime(2026, 3, 29, 1, tzinfo=UTC)),
    ("Australia/Sydney", datetime(2026, 4, 4, 16, tzinfo=UTC)),
    ("Australia/Sydney", datetime(2025, 10, 4, 16, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2026, 4, 4, 15, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2025, 10, 4, 15, 30, tzinfo=UTC)),
]
"""To winter and to summer, on both halves of the Earth, by an hour and by half of one."""
AUTUMN = int(CHANGES[0][1].timestamp())
ANY = next(pilot for pilot in simulated.pilots(3, 300) if pilot.kind == "no_history")
each = pytest.mark.parametrize(("zone", "moment"), CHANGES)


@pytest.fixture
def no_zones(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A host without data on time zones."""
    monkeypatch.setattr(zoneinfo, "available_timezones", set)
    _forget()
    yield
    monkeypatch.undo()
    _forget()


def _forget() -> None:
    clock_changes.steps.cache_clear()
    clock_changes.changes_in.cache_clear()


def pilot(zone: str, start: int, hours: float, *runs: tuple[float, float]) -> Pilot:
    """One whose starter logs alone tell of its runs, given in hours from its start."""
    moments = [(start + round(first * HOUR), start + round(last * HOUR)) for first, last in runs]
    end = start + round(hours * HOUR)
    return ANY._replace(
        zone=zone,
        start=start,
        last_script=start + 60,
        condor=(start + 62, end - 20),
        end=end,
        cores=1,
        tells_cores=True,
        tells_memory=True,
        jobs=tuple(Job(700 + n, 1, *of, 0, None) for n, of in enumerate(moments)),
    )


def told(truth: Pilot, err: bytes | None) -> list[tuple[int, int]]:
    """When runs began and ended, as the outputs tell."""
    fact = pilot_output.parse("p", generate.out(truth), err)
    return sorted((run.start_us // US, (run.end_us or 0) // US) for run in fact.runs)


def known(zone: str, *moments: int) -> clock_changes.Offsets:
    one = ANY._replace(zone=zone)
    return tuple((moment, generate.ahead(one, moment)) for moment in moments)


# -- by the rules of time zones


@each
@pytest.mark.parametrize("hours", [(2, 46), (40, 1), (0.01, 0.01)])
def test_the_zones_tell_when_clocks_are_set(
    zone: str, moment: datetime, hours: tuple[float, float]
) -> None:
    """However long before and after it the offsets are known."""
    at = int(moment.timestamp())
    first, last = at - round(hours[0] * HOUR), at + round(hours[1] * HOUR)
    offsets = known(zone, last, first)
    assert offsets[0][1] != offsets[1][1]
    assert clock_changes.steps(offsets)[1] == (at, offsets[0][1])


def test_most_zones_decide() -> None:
    """Havana sets its clocks on the same night as New York, but an hour earlier."""
    first, last = AUTUMN - 5 * HOUR, AUTUMN + 5 * HOUR
    assert known("America/Havana", first, last) == known("America/New_York", first, last)
    assert clock_changes.steps(((first, EDT), (last, EST)))[1] == (AUTUMN, EST)
    early = ((first, EDT), (AUTUMN - 600, EST))
    assert clock_changes.steps(early)[1] == (AUTUMN - HOUR, EST)


@pytest.mark.parametrize(
    ("first", "last"),
    [
        ((AUTUMN - 5 * HOUR, EDT), (AUTUMN + 7 * HOUR, EDT + 2700)),
        ((AUTUMN - 40 * 86400, EDT), (AUTUMN - 30 * 86400, EST)),
        ((AUTUMN - 400 * 86400, EDT), (AUTUMN + 5, EST)),
        ((10**11 - 1000, EDT), (10**11 - 500, EST)),
    ],
)
def test_a_change_of_no_zone_is_in_the_middle(
    first: tuple[int, int], last: tuple[int, int]
) -> None:
    """As are those between times that are none of a pilot's."""
    assert clock_changes.steps((first, last))[1] == ((first[0] + last[0]) // 2, last[1])


def test_without_zones_a_change_is_in_the_middle(no_zones: None) -> None:
    offsets = known("America/New_York", AUTUMN - 2 * HOUR, AUTUMN + 46 * HOUR)
    assert clock_changes.steps(offsets)[1] == (AUTUMN + 22 * HOUR, EST)


def test_an_hour_that_comes_twice_and_one_that_never_comes() -> None:
    """Of two the first that may be; what no clock showed is by one of its two offsets."""
    zone = Zone(known("America/New_York", AUTUMN - 9 * HOUR, AUTUMN + 9 * HOUR))
    twice = AUTUMN + EST + 600
    assert zone.epoch(twice) == AUTUMN - HOUR + 600
    assert zone.epoch(twice, AUTUMN - HOUR + 630) == AUTUMN - HOUR + 600
    assert zone.epoch(twice, AUTUMN - HOUR + 700) == AUTUMN + 600
    late = Zone(known("America/New_York", AUTUMN - 120, AUTUMN + 9 * HOUR))
    assert late.epoch(twice) == AUTUMN + 600
    spring = int(CHANGES[1][1].timestamp())
    zone = Zone(known("America/New_York", spring - 9 * HOUR, spring + 9 * HOUR))
    assert zone.epoch(spring + EST - 1) == spring - 1
    assert zone.epoch(spring + EDT) == spring
    assert zone.epoch(spring + EST + 600) == spring + 600


# -- by the order of lines


def log(zone: str, moments: list[int]) -> bytes:
    one = ANY._replace(zone=zone)
    return "".join(f"{generate.stamp(one, at)} (pid:9) line\n" for at in moments).encode()


@pytest.mark.parametrize("zone", ["America/New_York", "America/Havana"])
def test_lines_that_go_back_tell_when_the_clock_was_set(zone: str, no_zones: None) -> None:
    """Between two lines, and between the nearest of several logs."""
    at = AUTUMN - (HOUR if zone == "America/Havana" else 0)
    before = Zone(known(zone, at - 2 * HOUR, at + 46 * HOUR))
    raw = log(zone, [at - 1000, at - 900, at + 300, at + 9 * HOUR])
    after = before.narrowed(starter_log.walls(raw, at))
    assert after.known == (*before.known, (at - 900, EDT), (at + 300, EST))
    more = after.narrowed(starter_log.walls(log(zone, [at - 1500, at - 10, at + 400]), at))
    assert more.known == (*after.known, (at - 10, EDT))
    assert abs(clock_changes.steps(more.known)[1][0] - at) < 300


def test_what_is_no_change_of_the_clock(no_zones: None) -> None:
    """Lines in disorder, a clock that was put right, a log of another time, and a late clock."""
    zone = Zone(known("America/New_York", AUTUMN - 2 * HOUR, AUTUMN + 2 * HOUR))
    first = AUTUMN + EDT
    for back, at in ((5, 0), (1700, 0), (HOUR, 0), (2 * HOUR, 0), (3000, -9 * HOUR), (3000, 99999)):
        walls = [first + at - 600, first + at, first + at - back, first + at + HOUR]
        assert zone.narrowed(walls) == zone, (back, at)
    spring = int(CHANGES[1][1].timestamp())
    zone = Zone(known("America/New_York", spring - 2 * HOUR, spring + 2 * HOUR))
    assert zone.narrowed([spring + EDT, spring + EDT - 3000]) == zone


@settings(max_examples=examples(60))
@given(
    change=st.sampled_from(CHANGES),
    before=st.integers(HOUR, 40 * HOUR),
    gaps=st.lists(st.integers(1, 880), min_size=8, max_size=30),
    skip=st.integers(1, 7),
)
def test_every_line_is_placed_where_lines_are_near_to_one_another(
    change: tuple[str, datetime], before: int, gaps: list[int], skip: int
) -> None:
    """Each run is found to the second, also in the hour that comes twice."""
    zone, at = change[0], int(change[1].timestamp())
    moments = [at - sum(gaps[:skip])]
    for gap in gaps:
        moments.append(moments[-1] + gap)
    one = ANY._replace(zone=zone)
    raw = "".join(
        f"{generate.stamp(one, moment)} (pid:{n}) Create_Process succeeded, pid=1\n"
        for n, moment in enumerate(moments)
    )
    offsets = known(zone, moments[0] - before, moments[-1] + 9 * HOUR)
    found = starter_log.parse(raw.encode(), Zone(offsets), at).runs
    assert [run.start_us // US for run in found] == moments


def test_lines_between_events_tell_which_hour_it_is() -> None:
    """A run that began before the clock was set and ended in the same hour as it shows again."""
    runs = (AUTUMN - 5000, AUTUMN + 2000), (AUTUMN - 1000, AUTUMN - 900)
    one = ANY._replace(zone="America/New_York")
    zone = Zone(known("America/New_York", AUTUMN - 2 * HOUR, AUTUMN + 9 * HOUR))
    for lines in ([AUTUMN - 200, AUTUMN + 300], []):
        parts = generate.starter(one, Job(1, 1, *runs[0], 0, None)).splitlines(keepends=True)
        raw = "".join(parts[:-2]).encode() + log("America/New_York", lines)
        raw += "".join(parts[-2:]).encode()
        (run,) = starter_log.parse(raw, zone, AUTUMN).runs
        right = AUTUMN + 2000 if lines else AUTUMN - 1600
        assert (run.start_us, run.end_us) == ((AUTUMN - 5000) * US, right * US)


# -- of whole pilots


@each
def test_runs_of_a_pilot(zone: str, moment: datetime) -> None:
    """As its logs tell them, and as its statistics do where the logs were lost."""
    start = int(moment.timestamp()) - 2 * HOUR
    truth = pilot(zone, start, 48, (0.25, 0.5), (1.75, 2.1), (4, 20), (21, 26), (27, 47))
    runs = sorted((job.start, job.end) for job in truth.jobs)
    assert told(truth, generate.err(truth)) == runs
    assert told(truth, None) == runs


def test_another_log_tells_when_the_clock_was_set(no_zones: None) -> None:
    """The startd's has a line every few minutes."""
    truth = pilot("America/New_York", AUTUMN - 2 * HOUR, 48, (0.25, 0.5), (4, 20))
    runs = sorted((job.start, job.end) for job in truth.jobs)
    err = generate.err(truth)
    assert told(truth, err) == [runs[0], (runs[1][0] - HOUR, runs[1][1] - HOUR)]
    every = range(truth.start, truth.end, 300)
    startd = generate.log("StartdLog", log(truth.zone, list(every)))
    assert told(truth, err + startd) == runs


def test_the_result_alone_tells_both_offsets() -> None:
    """Where stdout was lost, the long result has the beginning and the end."""
    truth = pilot("America/New_York", AUTUMN - 2 * HOUR, 48, (0.25, 0.5), (4, 20))
    fact = pilot_output.parse("p", None, generate.err(truth))
    found = [(run.start_us // US, (run.end_us or 0) // US) for run in fact.runs]
    assert found == [(job.start, job.end) for job in truth.jobs]


def test_nothing_more_is_read_where_the_offset_is_always_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The usual case costs nothing."""

    def never(*_: object) -> None:
        raise AssertionError

    for module, name in (
        (clock_changes, "steps"),
        (starter_log, "walls"),
        (pilot_err, "_narrowed"),
    ):
        monkeypatch.setattr(module, name, never)
    truth = pilot("America/New_York", AUTUMN + HOUR, 20, (1, 5), (6, 8))
    runs = [(job.start, job.end) for job in truth.jobs]
    assert told(truth, generate.err(truth)) == told(truth, None) == runs


def test_an_import_over_a_change(tmp_path: Path) -> None:
    """Of 48 hours 41.75 are of jobs, whether clocks go forward or back."""
    for number, (zone, moment) in enumerate(CHANGES):
        start = int(moment.timestamp()) - 2 * HOUR
        truth = pilot(zone, start, 48, (0.25, 1), (4, 20), (21, 26), (27, 47))
        jobs = tuple(job._replace(cluster=job.cluster + 10 * number) for job in truth.jobs)
        truth = truth._replace(cluster=number + 1, number=number, pid=1000 + number, jobs=jobs)
        folder = tmp_path / "factory" / "client" / truth.directory
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in generate.files(truth).items():
            (folder / name).write_bytes(content)
    url = f"sqlite:///{tmp_path}/ledger.sqlite"
    done = gwmond("import", "--ledger", url, tmp_path / "factory")
    assert done.returncode == 0, done.stderr
    with LedgerReader.open(url) as reader:
        rows = list(reader.pilot_rows())
    assert len(rows) == len(CHANGES)
    for row in rows:
        spent = {
            category.value: micros / US / HOUR
            for (resource, measure, category, _), micros in row.settled.items()
            if (resource, measure) == ("cpu", "resource")
        }
        assert spent == {"goodput": 41.75, "pilot_overhead": 6.25}, row.identity
