"""The table of sites as data."""

from __future__ import annotations

import json
from typing import Any

from gwmond.model.facts import EntryKey
from gwmond.model.states import State
from gwmond.reports.sites.sites import (
    SiteRow,
    document,
    down,
    entry_rows,
    entry_state_counts,
    jobs_text,
    reason_detail,
    site_rows,
    verdicts_text,
)
from tests.build.snapshots import BORED, DARK, ODD, STARVING, evaluation, row, snapshot


def of(rows: list[SiteRow], site: str, entry: str | None = None, resource: str = "cpu") -> SiteRow:
    (found,) = [
        r for r in rows if (r.site, r.resource) == (site, resource) and entry in (None, r.entry)
    ]
    return found


def with_rows(*rows: Any) -> list[SiteRow]:
    """The sites of these rows alone."""
    made = evaluation()._replace(rows={(r.entry, r.resource): r for r in rows})
    return site_rows(snapshot(evaluation=made))


def test_entry() -> None:
    """An entry's row has its state, its units and the frontend's pilots, added over groups."""
    found = of(entry_rows(snapshot()), STARVING.site)
    assert found._asdict() == {
        "site": "T2_Starving",
        "entry": "starving-ce1",
        "resource": "cpu",
        "state": "provisioning_bottleneck",
        "reason": "frontend_limit",
        "limits": "TotalGlideinsPerEntry (count=10, limit=10)",
        "capacity_units": 100,
        "provisioned_units": 90,
        "busy_units": 80,
        "spare_units": 10,
        "provisioning_bottleneck_units": 6.5,
        "insufficient_demand_units": 3.5,
        "other_units": 0,
        "untaken_units": 0,
        "registered_pilots": 12,
        "pending_pilots": 0,
        "held_pilots": 2,
        "requested_pilots": 0,
        "matching_idle_jobs": 12,
        "assigned_idle_jobs": 6.5,
        "jobs_whole": True,
        "evidence": "measured",
        "capacity_evidence": "peak",
        "verdicts_checked": 15,
        "verdicts_agreed": 14,
        "unregistered_pilots": 0,
        "failing_reach": "not_known",
        "failing_test": "",
        "hold_reason": "",
        "hold_code": None,
        "hold_share": None,
        "barren": False,
        "probability": 0.727,
        "stalled_jobs": 3,
        "stalled_core_hours": 48.0,
    }


def test_entries_are_in_order() -> None:
    """Entries come by site and entry, each resource on its own."""
    rows = entry_rows(snapshot())
    assert [(r.site, r.entry, r.resource) for r in rows] == sorted(
        (r.site, r.entry, r.resource) for r in rows
    )
    assert len(rows) == 8
    assert {row.resource for row in rows} == {"cpu", "gpu"}


def test_unknown_is_none() -> None:
    """Where pilots are unknown so are their units and number; without an ad, those that wait."""
    found = of(entry_rows(snapshot()), DARK.site)
    assert (found.provisioned_units, found.busy_units, found.registered_pilots) == (None,) * 3
    assert (found.pending_pilots, found.held_pilots, found.requested_pilots) == (None,) * 3
    assert found.other_units == 7


def test_no_pilots_is_zero() -> None:
    """Where pilots are known and there are none, there are none."""
    assert of(entry_rows(snapshot()), ODD.site).registered_pilots == 0


def test_site_adds_its_entries() -> None:
    """A site of two entries is one row, with the sums, and the entry named no more."""
    found = of(site_rows(snapshot()), BORED.site)
    assert (found.entry, found.state) == ("", "insufficient_demand")
    assert (found.capacity_units, found.provisioned_units, found.spare_units) == (60, 30, 30)
    assert found.busy_units == 0  # its pilots are idle
    assert found.insufficient_demand_units == 30
    assert found.registered_pilots == 5
    assert (found.evidence, found.capacity_evidence) == ("estimated", "peak/pledge")


def test_site_of_one_entry_names_it() -> None:
    """A site with a single entry is that entry's row."""
    rows = entry_rows(snapshot())
    assert of(site_rows(snapshot()), STARVING.site) == of(rows, STARVING.site)


def test_site_with_an_entry_that_is_unknown() -> None:
    """What one entry does not tell is unknown for the site."""
    known, dark = EntryKey("S", "a"), EntryKey("S", "b")
    (found,) = with_rows(
        row(known, "cpu", State.FULL, 5, 5),
        row(dark, "cpu", State.UNKNOWN, 7, None, (State.UNKNOWN, "pilots", 7000)),
    )
    assert (found.provisioned_units, found.busy_units, found.registered_pilots) == (None,) * 3
    assert (found.state, found.reason, found.spare_units) == ("unknown", "pilots", 7)


def test_reason_of_a_site_is_that_of_its_state() -> None:
    """A site's reason is of the entry with the site's state, of several that with most spare."""
    bottleneck, unknown = State.PROVISIONING_BOTTLENECK, State.UNKNOWN
    (found,) = with_rows(
        row(EntryKey("S", "a"), "cpu", unknown, 90, 0, (unknown, "pending", 90_000)),
        row(EntryKey("S", "b"), "cpu", bottleneck, 5, 0, (bottleneck, "small", 5000)),
        row(EntryKey("S", "c"), "cpu", bottleneck, 9, 0, (bottleneck, "large", 9000)),
    )
    assert (found.state, found.reason) == ("provisioning_bottleneck", "large")
    assert (found.provisioning_bottleneck_units, found.other_units) == (14, 90)


def test_entries_without_capacity_do_not_decide() -> None:
    """An entry that could run nothing does not say what the site is, unless all are such."""
    nothing = row(EntryKey("S", "a"), "cpu", State.UNKNOWN, 0, 0)
    full = row(EntryKey("S", "b"), "cpu", State.FULL, 5, 5)
    assert [r.state for r in with_rows(nothing, full)] == ["full"]
    assert [r.state for r in with_rows(nothing)] == ["unknown"]


def test_matching_jobs_of_a_site_are_not_doubled() -> None:
    """A job that matches two entries of a site is one job."""
    jobs = evaluation().jobs[STARVING]
    keys = [EntryKey("S", "a"), EntryKey("S", "b")]
    made = evaluation()._replace(
        rows={(key, "cpu"): row(key, "cpu", State.FULL, 5, 5) for key in keys},
        jobs={keys[0]: jobs, keys[1]: jobs},
    )
    (found,) = site_rows(snapshot(evaluation=made))
    assert found.matching_idle_jobs == 12
    assert found.assigned_idle_jobs == 13


def test_jobs_that_could_not_be_asked_for_are_not_zero() -> None:
    """While a schedd is silent no job is not 0, and some jobs are at least so many."""
    some, none = evaluation().jobs[STARVING]._replace(whole=False), evaluation().jobs[DARK]
    keys = [EntryKey("S", "a"), EntryKey("S", "b"), EntryKey("T", "c")]
    made = evaluation()._replace(
        rows={(key, "cpu"): row(key, "cpu", State.FULL, 5, 5) for key in keys},
        jobs=dict(zip(keys, (some, none, none._replace(assigned=0.0)), strict=True)),
    )
    at_s, at_t = site_rows(snapshot(evaluation=made))
    assert (at_s.matching_idle_jobs, at_s.assigned_idle_jobs, at_s.jobs_whole) == (12, 6.5, False)
    assert (at_t.matching_idle_jobs, at_t.assigned_idle_jobs, at_t.jobs_whole) == (
        None,
        None,
        False,
    )
    assert [jobs_text(of) for of in (at_s, at_t)] == [">=12", "?"]
    entries = entry_rows(snapshot(evaluation=made))
    assert [jobs_text(entry) for entry in entries] == [">=12", "?", "?"]


def test_no_job_is_zero_where_all_were_asked_for() -> None:
    """Where all schedds have answered and no job matches, that is 0; assigned to nothing known."""
    jobs = evaluation().jobs[DARK]._replace(whole=True)
    (found,) = [
        site_row
        for site_row in site_rows(snapshot(evaluation=evaluation()._replace(jobs={DARK: jobs})))
        if site_row.site == DARK.site
    ]
    assert (found.matching_idle_jobs, found.assigned_idle_jobs) == (0, None)
    assert jobs_text(found) == "0"


def test_counts_of_states() -> None:
    """Entries are counted by state, and each state is there."""
    assert entry_state_counts(snapshot()) == dict.fromkeys((state.value for state in State), 1)


def test_json() -> None:
    """As JSON rows have names for their columns, and the time and sources that are down."""
    is_down, rows = down(snapshot().sources), site_rows(snapshot())
    data = document(1_700_000_000, is_down, rows, entries=False).record()
    again = json.loads(json.dumps(data))
    assert again["time_epoch_seconds"] == 1_700_000_000
    assert again["sources_down"] == ["ap2 demand"]
    assert set(again["sites"][0]) == set(SiteRow._fields)
    assert [site["provisioned_units"] for site in again["sites"] if site["site"] == DARK.site] == [
        None
    ]


def test_verdicts_that_pilots_checked() -> None:
    """Of a site those of its entries together; of GPUs nothing is checked."""
    rows = site_rows(snapshot())
    found = {(r.site, r.resource): verdicts_text(r) for r in rows if r.verdicts_checked}
    assert found == {("T2_Starving", "cpu"): "93% of 15", ("T2_Bored", "cpu"): "67% of 3"}
    unchecked = of(entry_rows(snapshot()), DARK.site)
    assert (unchecked.verdicts_checked, verdicts_text(unchecked)) == (0, "-")
    assert {r.verdicts_checked for r in rows if r.resource == "gpu"} == {None}
    assert {r.verdicts_checked for r in site_rows(snapshot(verdicts=None))} == {None}


def test_why_pilots_are_held_or_do_not_register_is_in_the_table() -> None:
    """The most frequent reason with its share, and the test that fails."""
    entry = of(entry_rows(snapshot()), STARVING.site)
    held = entry._replace(reason="held_pilots", hold_reason="queue H is full", hold_share=0.75)
    failing = entry._replace(reason="run_but_do_not_register", failing_test="cvmfs.sh")
    assert reason_detail(held) == "queue H is full (75% of those held)"
    assert reason_detail(failing) == "cvmfs.sh"
    assert reason_detail(entry) == ""
