"""What a residual is made of: every cause alone, and all of them at once."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gwmond.model.factory.jobs import FactoryJob
from gwmond.model.factory.reconciliation import (
    Cause,
    CausePart,
    Reconciled,
    Reconciliation,
)
from gwmond.model.factory.totals import FactoryKind, FactoryLife, FactoryLives, RunTime
from gwmond.model.pilot_life import Category
from gwmond.model.pilots.file_facts import CompletedPilot, PilotName
from gwmond.model.times import HOUR_US, SECOND_US, Period
from gwmond.reports.ledger.ledger_reading import Age
from gwmond.reports.reconcile.reconcile import reconcile, unexplained_ratio
from gwmond.reports.reconcile.reconcile_document import (
    NO_LINES,
    NO_LINES_WRITTEN,
    document,
    explanations,
    record,
    tables,
    total,
)
from gwmond.reports.render.formats import hours, percent
from gwmond.reports.render.writing import text

H = HOUR_US
SINCE = 1_000 * H
PERIOD = Period(SINCE, SINCE + 24 * H)
K = FactoryKind


def life(start: float, end: float | None, number: str = "1.0", **changes: object) -> FactoryLife:
    """A pilot of 4 cores; times are hours of the period."""
    end_us = None if end is None else SINCE + round(end * H)
    made = FactoryLife("ce1", number, SINCE + round(start * H), end_us, "files", False, 4.0)
    return made._replace(**changes)  # type: ignore[arg-type]


def job(
    start: float,
    end: float | None,
    written: float | None = None,
    duration: float | None = None,
    jobs_s: int | None = None,
) -> FactoryJob:
    """The same as a job of its factory; with a line that was written then, if it was."""
    line = None
    if written is not None:
        seconds = None if duration is None else round(duration * 3600)
        line = CompletedPilot(
            *("", PilotName(), SINCE + round(written * H), seconds, True, seconds),
            *(2, jobs_s, None, None, 0, 0, 0, 0),
        )
    started = SINCE + round(start * H)
    ended = None if end is None else SINCE + round(end * H)
    return FactoryJob(
        "g", "fe", "FE.main", started - 60 * SECOND_US, started, ended, end is not None, line
    )


def compared(
    *pairs: tuple[FactoryLife | None, FactoryJob | None], extra_s: int = 0, told: bool = True
) -> Reconciled:
    """One entry with these pilots; the factory's sums follow from its lines, and some more."""
    jobs: dict[tuple[str, str], list[FactoryJob]] = {}
    lines = seconds = 0
    for number, (one, other) in enumerate(pairs):
        if other is None:
            continue
        jobs.setdefault(("ce1", one.number if one else f"{number}.9"), []).append(other)
        if other.line and PERIOD.since_us <= (other.line.written_us or 0) < PERIOD.until_us:
            lines, seconds = lines + 1, seconds + (other.line.duration_s or 0)
    numbers = {("ce1", K.SUMMARY_PILOTS): lines, ("ce1", K.SUMMARY_SECONDS): seconds + extra_s}
    known = FactoryLives(
        lives=[one for one, _ in pairs if one is not None],
        jobs=jobs,
        numbers=numbers if told else {},
        reported=frozenset({"ce1"} if told else ()),
        runs={},
        posted={},
    )
    (row,) = reconcile(known, PERIOD, PERIOD.until_us)
    return row


CAUSES = {
    Cause.OUTSIDE: (life(-2, 3), job(-2, 3, 3.1, 5), CausePart(1, 2 * H)),
    Cause.RUNNING: (life(20, None), job(20, None), CausePart(1, -4 * H)),
    Cause.LINE_LATER: (
        life(20, 23.9),
        job(20, 23.9, 24.1, 3.9),
        CausePart(1, -round(3.9 * H)),
    ),
    Cause.LINE_EARLIER: (life(-2, 0.5), job(-2, -1, -0.9, 1), CausePart(1, -H // 2)),
    Cause.NO_LINE: (life(2, 5), job(2, 5), CausePart(1, -3 * H)),
    Cause.NO_DURATION: (life(2, 5), job(2, 5, 5.1, 0), CausePart(1, -3 * H)),
    Cause.ONLY_JOBS: (life(2, 5, "", origin="jobs"), None, CausePart(1, -3 * H)),
    Cause.ESTIMATED: (
        life(2, 5, estimated=True),
        job(2, 5, 5.1, 3.5),
        CausePart(1, H // 2),
    ),
    Cause.NOT_RECORDED: (life(2, 5), None, CausePart(1, -3 * H)),
    Cause.UNKNOWN_PILOT: (None, job(2, 5, 5.1, 3), CausePart(1, 3 * H)),
    Cause.DIFFERENT: (life(2, 5), job(2, 5, 5.1, 2), CausePart(1, -H)),
}


@pytest.mark.parametrize("cause", CAUSES)
def test_a_cause_alone(cause: Cause) -> None:
    """It is the whole residual, and explains it or does not."""
    one, other, part = CAUSES[cause]
    row = compared((one, other))
    assert row.parts == {cause: part}
    assert row.residual_us == part.us
    explained = cause not in {
        Cause.NOT_RECORDED,
        Cause.UNKNOWN_PILOT,
        Cause.DIFFERENT,
    }
    assert row.unexplained_us == (0 if explained else part.us)
    assert (row.unexplained_ratio or 0) > 0 or explained
    assert any(cause.value.replace("_", " ") in text for text in explanations([row]))


def test_lines_that_were_read_twice() -> None:
    """What the sums have beside the lines that are known one by one."""
    row = compared((life(2, 5), job(2, 5, 5.1, 3)), extra_s=3 * 3600)
    assert row.parts == {Cause.REPEATED_LINES: CausePart(1, 3 * H)}


def test_a_pilot_that_agrees() -> None:
    """Nothing differs, whole life within the period; the number of its schedd comes again."""
    again = job(-200, -190, -189.9, 10)
    one, other = life(2, 5), job(2, 5, 5.1, 3)
    known = FactoryLives(
        lives=[one],
        jobs={("ce1", "1.0"): [again, other]},
        numbers={("ce1", K.SUMMARY_SECONDS): 3 * 3600},
        reported=frozenset({"ce1"}),
        runs={},
        posted={},
    )
    (row,) = reconcile(known, PERIOD, PERIOD.until_us)
    assert (row.residual_us, row.parts, row.unexplained_ratio) == (0, {}, 0.0)
    assert (row.ended, row.pilots_us, row.pilot_core_us) == (1, 3 * H, 12 * H)


def test_unexplained_does_not_cancel() -> None:
    """An hour too much and an hour too little are two that nobody explains."""
    row = compared((life(2, 5, "1.0"), job(2, 5, 5.1, 2)), (life(2, 5, "2.0"), job(2, 5, 5.1, 4)))
    assert row.residual_us == row.unexplained_us == 0
    assert row.unexplained_ratio == pytest.approx(1 / 3)
    assert unexplained_ratio([row]) == pytest.approx(1 / 3)


@pytest.mark.parametrize(("hours_told", "share"), [(4, 1 / 4), (1, -2 / 3), (3, 0)])
def test_shares_are_of_the_larger(hours_told: float, share: float) -> None:
    """The residual and what is unexplained, of 3 h of gwmond's, in the same per cent."""
    row = compared((life(2, 5), job(2, 5, 5.1, hours_told)))
    silent = compared((life(2, 5), job(2, 5)), told=False)
    for one in (row, total([row, silent])):
        assert record(one)["residual_ratio"] == pytest.approx(share)
        assert record(one)["unexplained_ratio"] == pytest.approx(abs(share))
    cells = tables([row])[0].rows[0]
    assert (cells[11], cells[13]) == (percent(share), percent(abs(share)))


def test_no_factory_numbers_is_not_zero() -> None:
    """Where the factory tells nothing there is no residual, and nothing to be explained."""
    row = compared((life(2, 5), job(2, 5)), told=False)
    assert (row.pilots_us, row.factory_us, row.residual_us) == (3 * H, None, None)
    assert (row.unexplained_us, row.unexplained_ratio, row.parts) == (None, None, {})
    assert unexplained_ratio([row]) is None
    assert record(row)["factory_pilot_seconds"] is None
    assert "no factory numbers" in tables([row])[0].rows[0]


@pytest.mark.parametrize(
    ("told_s", "fit"), [(8000, "real"), (2000, "divided"), (5000, "neither"), (8050, "real")]
)
def test_whether_jobs_time_is_divided_by_cores(told_s: int, fit: str) -> None:
    """TextLines of new factories have real sums, of old ones sums divided by the pilot's cores."""
    row = compared((life(2, 5, jobs_wall_us=8000 * SECOND_US), job(2, 5, 5.1, 3, told_s)))
    assert row.fits == {fit: 1}
    assert record(row)["factory_job_seconds_are"] == fit
    single = compared(
        (life(2, 5, cores=1.0, jobs_wall_us=8000 * SECOND_US), job(2, 5, 5.1, 3, 8000))
    )
    assert record(single)["factory_job_seconds_are"] == "either"


def test_jobs_by_records_and_by_category() -> None:
    """The difference is what the canonical rule shares out; what is open is not in categories."""
    known = FactoryLives(
        lives=[life(2, 5)],
        jobs={},
        numbers={},
        reported=frozenset(),
        runs={"ce1": RunTime(10 * H, 2 * H, 3 * H)},
        posted={("ce1", Category.GOODPUT): 10 * H, ("ce1", Category.PREEMPTION_BADPUT): 2 * H},
    )
    (row,) = reconcile(known, PERIOD, PERIOD.until_us)
    assert row.shared_core_us == H
    assert record(row)["job_core_seconds_by_summaries"] == 3 * 3600
    assert tables([row])[1].rows[0][:6] == ("ce1", "10.00", "2.00", "3.00", "12.00", "1.00")


_HOURS = st.integers(-40, 60).map(lambda n: n / 2)
_LIVES = st.tuples(_HOURS, st.none() | st.integers(0, 40), st.booleans(), st.sampled_from("fjc"))
_LINES = st.none() | st.tuples(st.integers(0, 60), st.none() | st.integers(0, 80))


@given(st.lists(st.tuples(_LIVES, st.none() | _LINES, st.booleans()), max_size=12))
def test_parts_sum_to_the_residual(
    drawn: list[tuple[tuple[float, int | None, bool, str], tuple[int, int | None] | None, bool]],
) -> None:
    """Whatever is told of whatever pilots: each microsecond of the residual has one cause."""
    pairs: list[tuple[FactoryLife | None, FactoryJob | None]] = []
    for number, ((start, length, estimated, origin), line, known) in enumerate(drawn):
        end = None if length is None else start + length / 2
        one = life(start, end, f"{number}.0", estimated=estimated, origin=origin)
        if end is not None and end <= 0 and line is None:
            continue
        other = None
        if known or line is not None:
            written = None if line is None else start + (length or 0) / 2 + line[0] / 4
            duration = None if line is None or line[1] is None else line[1] / 2
            other = job(start, end, written, duration)
        pairs.append((one, other))
    row = compared(*pairs, extra_s=0)
    assert row.residual_us == sum(part.us for part in row.parts.values())
    explained = sum(
        part.us
        for cause, part in row.parts.items()
        if cause
        not in {
            Cause.NOT_RECORDED,
            Cause.UNKNOWN_PILOT,
            Cause.DIFFERENT,
        }
    )
    assert row.unexplained_us == (row.residual_us or 0) - explained


def test_tables_have_a_cell_for_each_header() -> None:
    """Also with causes that only some entries have."""
    rows = [compared((one, other)) for one, other, _ in CAUSES.values()]
    for some in product(rows, rows):
        for table in tables(some):
            assert {len(cells) for cells in table.lines} == {len(table.headers)}


def test_the_sum_of_all_entries() -> None:
    """A line of all of them; what differs is of those with numbers of the factory."""
    told = compared((life(2, 5), job(2, 5, 5.1, 2)))
    silent = compared((life(2, 5), job(2, 5)), told=False)
    silent.entry = "ce2"
    assert tables([told])[0].total is None
    sums = tables([told, silent])[0].total or ()
    assert (sums[0], sums[2], sums[8]) == ("all", "6.00", "2.00")
    assert sums[10:] == tables([told])[0].rows[0][10:]
    assert (tables([told, silent])[1].total or ())[0] == "all"
    assert tables([told, silent])[0].note == (
        "all: 1 of 2 entries have factory numbers, and what is residual is of these; "
        "3.00 of the hours are of the others."
    )
    assert [tables(of)[0].note for of in ([told], [silent], [told, told])] == ["", "", ""]


def test_no_negative_zero() -> None:
    assert (hours(-1, 2), percent(-1e-9)) == ("0.00", "0.0%")


def test_without_any_line_the_servers_directory_is_named() -> None:
    assert explanations([compared((life(2, 5), job(2, 5)), told=False)])[-1] == NO_LINES
    assert NO_LINES not in explanations([compared((life(2, 5), job(2, 5, 5.1, 2)))])


def test_without_any_line_though_pilots_ended_the_factorys_defect_is_named() -> None:
    """Its event logs have their ends: GlideinWMS 3.10.17 and later writes no line then."""
    row = compared((life(2, 5), job(2, 5)), told=False)
    row.numbers[K.QUEUE_ENDED] = 1
    assert explanations([row])[-1] == NO_LINES_WRITTEN


def test_columns_that_are_all_zero_are_named_below() -> None:
    """What is explained to the last second has no column of zeros; what is not has."""
    age = Age("sqlite", PERIOD.until_us, PERIOD.until_us, False)

    def shown(one: FactoryLife, other: FactoryJob) -> str:
        found = Reconciliation(PERIOD, [compared((one, other))], 0)
        return text(document(found, age), "table")

    explained = shown(life(2, 5), job(2, 5, 5.1, 3))
    assert "Not shown, as all of it rounds to 0: not settled, by summaries, shared." in explained
    assert "Not shown, as all of it rounds to 0: unexplained h, unexplained %." in explained
    assert "  unexplained" in shown(life(2, 5), job(2, 5, 5.1, 2)).split("Not shown")[0]
