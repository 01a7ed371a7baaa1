"""The report in the layout of analyze_entries: numbers, and text."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from gwmond.model.times import Period
from gwmond.reports.factory_tools.analyze_entries import (
    SHARES,
    Analysis,
    block,
    entries_text,
    frontends_text,
    records,
)
from gwmond.reports.stored.stored_pilot import KnownJobs
from gwmond.reports.stored.wall_clock import WallClock, WallClockSums
from tests.build.gwms.figures import FIGURE_10

PAGE = Path(__file__).parents[2] / "docs" / "analyze.md"
US = 10**6
DAY = Period(0, 86_400 * US)


def pilot(
    entry: str = "T2_X", frontend: str = "fe.main", *, jobs: int = 3, validation: int | None = 310
) -> WallClock:
    """A pilot of one core: 10,000 s, of these 6000 s with jobs, 5000 s of these that exited 0."""
    used, good = (6000, 5000) if jobs else (0, 0)
    return WallClock(
        frontend=frontend,
        entry=entry,
        life_us=10_000 * US,
        used_us=used * US,
        good_us=good * US,
        validation_us=None if validation is None else validation * US,
        jobs=KnownJobs((), jobs, started=True, ran=jobs > 0),
        lengths_us=(used // jobs * US,) * jobs if jobs else (),
        settled=True,
        pruned=False,
        size_assumed=False,
    )


def failed(entry: str = "T2_X", frontend: str = "fe.main") -> WallClock:
    """A pilot in which HTCondor never started, of 1200 s."""
    life = 1200
    return pilot(entry, frontend, jobs=0)._replace(
        life_us=life * US,
        validation_us=life * US,
        jobs=KnownJobs((), 0, started=False, ran=False),
    )


def analysis(*pilots: WallClock) -> Analysis:
    found = Analysis(DAY)
    for one in pilots:
        found.add(one)
    return found


FOUR = (pilot(), failed(), pilot("T2_Y", jobs=0), pilot("T2_Y", "other.gpu", validation=None))


def test_sums_by_hand() -> None:
    """Sums over what is known; what is not is left out there, and counted."""
    sums = analysis(*FOUR).row()
    assert sums == WallClockSums(
        pilots=4,
        jobs=6,
        numbered=4,
        failed=1,
        known_started=4,
        without_jobs=2,
        known_jobs=4,
        lengths_us=12_000 * US,
        known_lengths=6,
        time=31_200 * US,
        used=12_000 * US,
        good=10_000 * US,
        failed_us=1200 * US,
        started_us=31_200 * US,
        validated_us=21_200 * US,
        validating_us=(310 + 1200 + 310) * US,
        idle_us=(3690 + 9690) * US,
        known_validation=3,
        settled=4,
    )
    assert (sums.waste, sums.badput, sums.nosuccess) == (19_200 * US, 21_200 * US, 2000 * US)
    assert sums.not_known == 4000 * US
    assert SHARES["val"](sums) == (310 + 1200 + 310) / 21_200
    assert SHARES["idle"](sums) == (3690 + 9690) / 21_200
    (record,) = (one for one in records(analysis(*FOUR)) if one["part"] == "total")
    assert (record["average_job_length_seconds"], record["nosuccess_seconds"]) == (2000, 2000)
    assert record["efficiency"] == 12_000 / 31_200
    assert record["goodput_fraction"] == 10_000 / 31_200


def test_validation_and_idle_are_what_is_wasted() -> None:
    """Of pilots whose validation is known, exactly."""
    sums = analysis(*FOUR[:3]).row()
    assert sums.validation is not None
    assert sums.idle is not None
    assert (sums.validation + sums.idle, sums.not_known) == (sums.waste, None)


def test_nothing_known_is_not_zero() -> None:
    """Where no validation is known, none is told, and no idle time."""
    found = analysis(pilot(validation=None))
    record = next(iter(records(found)))
    assert (record["validating_seconds"], record["idle_share"], record["wst_share"]) == (
        None,
        None,
        0.4,
    )
    assert re.search(r"T2_X +0\.0% +0\.0% +0\.0% \| +- +- +40\.0% ", "\n".join(entries_text(found)))
    assert WallClockSums().validation == 0


def test_parts_sum_up() -> None:
    """Entries, frontends and entries of frontends have the same sums."""
    every = list(records(analysis(*FOUR)))
    (whole,) = (record for record in every if record["part"] == "total")
    for part in ("entry", "frontend", "frontend_entry"):
        some = [record for record in every if record["part"] == part]
        for name in ("pilots", "jobs", "time_seconds", "used_seconds", "wasted_seconds"):
            assert sum(record[name] for record in some) == whole[name]
    assert (
        len({(record["part"], record["frontend"], record["entry"]) for record in every})
        == len(every)
        == 8
    )


def test_sorted() -> None:
    """The largest first, what is not known last; else by name."""
    found = analysis(pilot("a", validation=None), pilot("b"), failed("c"), pilot("d", jobs=0))

    def names(sort: str | None) -> str:
        text = "\n".join(entries_text(found, sort)).split("Per Entry (per frontend)")[0]
        return "".join(re.findall(r"^([abcd]) ", text, re.MULTILINE))

    assert names(None) == "abcd"
    assert names("val") == "cbda"  # 100 %, twice 3.1 % by name, unknown
    assert names("time") == "abdc"
    assert names("waste") == "dabc"


def test_figure_10_has_no_line_that_ours_has_not() -> None:
    """The same labels, in the same form; ours has decimals, and ``nosuccess`` besides."""

    def parsed(text: str) -> dict[str, list[str]]:
        found = {}
        for line in text.splitlines():
            for label, rest in re.findall(
                r"((?:^|(?<=  ))[A-Za-z][\w/ ]*): +([^|]*?)(?=  G|$)", line
            ):
                found[label] = re.findall(r"[a-z%/]+", re.sub(r"\d[\d.]*[KMGRh]?", "", rest))
        return found

    found = analysis(*FOUR)
    ours = parsed("\n".join(block(found.row("fe.main"), 86_400, found.row())))
    figure = parsed(FIGURE_10.split(":", 1)[1])
    assert len(figure) == 11
    assert set(ours) - set(figure) == {"nosuccess"}
    assert {name: ours[name] for name in figure} == figure


def test_golden() -> None:
    """The text, which the page that explains it has, too."""
    text = "\n".join(entries_text(analysis(pilot("T2_X"), pilot("T2_X", "other.gpu", jobs=0))))
    assert GOLDEN in text
    assert textwrap.indent(GOLDEN, "    ") in PAGE.read_text()
    assert "\n".join(frontends_text(analysis(pilot(), failed()))).endswith(GOLDEN_FRONTENDS)
    names = re.findall(r"^frontend_.*:$", text, re.MULTILINE)
    assert names == ["frontend_fe.main:", "frontend_other.gpu:"]


def test_each_table_of_entries_ends_with_its_total() -> None:
    """Of all entries, and of those of each frontend.

    Of four pilots 31,200 s, 12,000 s of these with jobs and 10,000 s with jobs that exited 0.
    """
    lines = entries_text(analysis(*FOUR))
    totals = [n for n, line in enumerate(lines) if line.startswith("Total/Average ")]
    shown = [lines[n].split() for n in totals]
    assert [(of[1], of[3], of[7], of[-1]) for of in shown] == [
        ("25.0%", "50.0%", "61.5%", "4"),
        ("33.3%", "66.7%", "71.7%", "3"),  # 15,200 of 21,200 s
        ("0.0%", "0.0%", "40.0%", "1"),
    ]


def test_no_line_is_wider_than_a_terminal() -> None:
    """100 columns, also where numbers are large; a longer name takes more."""
    large = pilot()._replace(life_us=10**6 * US, used_us=6 * 10**5 * US)
    lines = entries_text(analysis(*[large] * 999, *FOUR))
    assert max(map(len, lines)) <= 100
    name = "CMSHTPC_T2_US_Wisconsin_cmsgrid01"
    lines = entries_text(analysis(*FOUR, pilot(name)))
    rows = [line for line in lines if line.count("|") == 3]
    assert {line.index("|") for line in rows} == {len(name) + 22}


def test_names_cannot_command_a_terminal() -> None:
    text = "\n".join(entries_text(analysis(pilot("x\x1b[2J\n", "f\x07"))))
    assert "\nx?[2J? " in text
    assert "\nfrontend_f?:\n" in text


# ruff: noqa: E501
GOLDEN = """\
Total Glideins: 2
Total Jobs: 3 (Avg jobs/glidein: 1.50, avg job len: 0.56h)

Total time:             20.0K (   5.6 hours -   0.2 slots)
Total time used:         6.0K (   1.7 hours -   0.1 slots -  30.0%)
Total time validating:  620.0 (   0.2 hours -   0.0 slots -   3.1%)
Total time idle:        13.4K (   3.7 hours -   0.2 slots -  66.9%)
Total time wasted:      14.0K (   3.9 hours -   0.2 slots -  70.0%)
Total badput:           15.0K (   4.2 hours -   0.2 slots -  75.0%)
Total nosuccess:         1.0K (   0.3 hours -   0.0 slots -   5.0%)
Time used/time wasted: 0.4
Time efficiency: 0.30  Goodput fraction: 0.25

----------------------------------------
----------------------------------------
Per Entry (all frontends) stats for 24.0 hours.

                strt   fval   0job |    val   idle    wst   badp |    waste     time |  total
T2_X            0.0%   0.0%  50.0% |   3.1%  66.9%  70.0%  75.0% |      3.9      5.6 |      2
Total/Average   0.0%   0.0%  50.0% |   3.1%  66.9%  70.0%  75.0% |      3.9      5.6 |      2
"""
GOLDEN_FRONTENDS = """\
Units: Slots       total|   used     u%|    val     v%|   idle     i%|  waste     w%|  usd/wst     eff
frontend_fe.main     0.1|    0.1  53.6%|    0.0  13.5%|    0.0  32.9%|    0.1  46.4%|     1.15    0.54"""
