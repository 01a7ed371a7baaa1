"""The report in the layout of analyze_frontends, from what was watched."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from gwmond.model.factory.totals import FactoryKey, FactoryKind
from gwmond.model.times import HOUR_US, Period
from gwmond.reports.factory_tools.analyze_frontends import FrontendMeans, records, text, watched

PAGE = Path(__file__).parents[2] / "docs" / "analyze.md"
HOURS = Period(10 * HOUR_US, 12 * HOUR_US)


def told(
    hour: int, entry: str, client: str, seconds: int = 3600, **values: float
) -> dict[FactoryKey, int]:
    """Values that were shown for so many seconds of an hour."""
    found = {FactoryKey(hour, entry, client, FactoryKind.WATCHED_SECONDS): seconds}
    for name, value in values.items():
        amount = FactoryKind(f"{name}_seconds")
        found[FactoryKey(hour, entry, client, amount)] = round(value * seconds)
        shown = FactoryKind(f"{name}_watched_seconds")
        found[FactoryKey(hour, entry, client, shown)] = seconds
    return found


ALL = {
    "client_slots_total": 40,
    "client_slots_running": 30,
    "client_slots_idle": 10,
    "asked_idle": 2,
    "client_jobs_running": 100,
    "client_jobs_here": 30,
    "client_jobs_idle": 7,
    "status_running": 50,
}
TOLD = {
    **told(10, "X", "fe.main", **ALL),
    **told(11, "X", "fe.main", 1800, **{**ALL, "client_slots_total": 100, "asked_idle": 0}),
    **told(11, "X", "other.gpu", status_running=5, client_jobs_idle=1),
    **told(11, "Y", "fe.main", client_slots_total=0, client_slots_idle=0, status_running=0),
    FactoryKey(11, "Z", "fe.main", FactoryKind.QUEUE_STARTED): 3,
}


@pytest.fixture
def of() -> FrontendMeans:
    return watched(TOLD, HOURS)


def test_means_over_the_time_told(of: FrontendMeans) -> None:
    """An hour of 40 and half an hour of 100 registered slots are 60 on average."""
    line = of.line("fe.main", "X")
    assert line == {
        "Regd": 60,
        "Claimd": 30,
        "Unmtchd": 10,
        "ReqIdle": pytest.approx(4 / 3),
        "JobRun": 100,
        "JobHere": 30,
        "JobIdle": 7,
        "RunDiff": -10,
        "%UM": pytest.approx(10 / 60),
        "%RD": -10 / 50,
    }
    assert of.watched_s == 5400


def test_absent_is_not_zero(of: FrontendMeans) -> None:
    """What was never advertised is None; a share of nothing as well."""
    line = of.line("other.gpu", "X")
    assert {name for name, value in line.items() if value is not None} == {"JobIdle"}
    nothing = of.line("fe.main", "Y")
    assert [nothing[name] for name in ("Regd", "RunDiff", "%UM", "%RD")] == [0, 0, None, None]
    shown = "\n".join(text(of, entries=True, sort=None))
    assert re.search(
        r"^frontend_other\.gpu .*\n^X( +-){3} \| +- \| +- +- +1\.0 \|( +-){3}$", shown, re.M
    )
    assert "Z" not in of.entries()


def test_all_frontends_are_summed(of: FrontendMeans) -> None:
    """Over the clients of which it is known; RunDiff where both of its parts are."""
    line = of.line(entry="X")
    assert (line["Regd"], line["JobIdle"], line["RunDiff"]) == (60, 8, -10)
    assert of.line()["%UM"] == pytest.approx(10 / 60)


def test_records_have_every_part_once(of: FrontendMeans) -> None:
    found = {(one["part"], one["frontend"], one["entry"]): one for one in records(of)}
    assert set(found) == {
        ("total", None, None),
        *(("entry", None, entry) for entry in "XY"),
        *(("frontend", client, None) for client in ("fe.main", "other.gpu")),
        *(("frontend_entry", "fe.main", entry) for entry in "XY"),
        ("frontend_entry", "other.gpu", "X"),
    }
    x = found["frontend_entry", "fe.main", "X"]
    assert (x["client_slots_total"], x["run_diff"]) == (60, -10)
    unknown = found["frontend_entry", "other.gpu", "X"]
    assert (unknown["client_slots_total"], unknown["client_jobs_idle"]) == (None, 1)


def test_wanted() -> None:
    """Only what is asked for."""
    found = watched(TOLD, HOURS, lambda client, entry: (client, entry) == ("fe.main", "Y"))
    assert (found.frontends, found.entries()) == (["fe.main"], ["Y"])


def test_sorted() -> None:
    """The largest first; what is not known comes last."""

    found = watched({**TOLD, **told(10, "Q", "zz", client_slots_total=1000)}, HOURS)

    def names(sort: str | None) -> list[str]:
        told = "\n".join(text(found, entries=False, sort=sort))
        return re.findall(r"^frontend_(\S+) +[-\d]", told, re.MULTILINE)

    assert names(None) == ["fe.main", "other.gpu", "zz"]
    assert names("Regd") == ["zz", "fe.main", "other.gpu"]


def test_golden(of: FrontendMeans) -> None:
    assert "\n".join(text(of, entries=True, sort=None)).startswith(GOLDEN)
    assert textwrap.indent(GOLDEN, "    ") in PAGE.read_text()


def test_nothing_was_watched() -> None:
    """It is said."""
    (line,) = text(watched({}, HOURS), entries=True, sort=None)
    assert "No ad" in line


# ruff: noqa: E501
GOLDEN = """\
----------------------------------------
Period of 2.0 hours:

Registered:     432.0K ( 120.0 hours -  60.0 slots)
Claimed:        216.0K (  60.0 hours -  30.0 slots -  50.0%)
Unmatched :      72.0K (  20.0 hours -  10.0 slots -  16.7%)

Requested Idle:   9.6K (   2.7 hours -   1.3 slots)

Jobs Running:   720.0K ( 200.0 hours - 100.0 slots)
Jobs Run Here:  216.0K (  60.0 hours -  30.0 slots)
Jobs Idle:       57.6K (  16.0 hours -   8.0 slots)

RunDiff (Running-ClientRegistered): -72.0K ( -20.0 hours - -10.0 slots - -20.0%)

----------------------------------------
----------------------------------------
Per Entry (all frontends) stats for 2.0 hours.

                      Regd  Claimd Unmtchd | ReqIdle |  JobRun JobHere JobIdle | RunDiff    %UM    %RD
X                     60.0    30.0    10.0 |     1.3 |   100.0    30.0     8.0 |   -10.0  16.7% -20.0%
Y                      0.0       -     0.0 |       - |       -       -       - |     0.0      -      -

----------------------------------------
----------------------------------------
Per Entry (per frontend) stats for 2.0 hours.

frontend_fe.main      Regd  Claimd Unmtchd | ReqIdle |  JobRun JobHere JobIdle | RunDiff    %UM    %RD
X                     60.0    30.0    10.0 |     1.3 |   100.0    30.0     7.0 |   -10.0  16.7% -20.0%
Y                      0.0       -     0.0 |       - |       -       -       - |     0.0      -      -

frontend_other.gpu    Regd  Claimd Unmtchd | ReqIdle |  JobRun JobHere JobIdle | RunDiff    %UM    %RD
X                        -       -       - |       - |       -       -     1.0 |       -      -      -

----------------------------------------
"""
