"""What the page at ``/`` says at its top, and how it explains what it shows."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from gwmond.model.entries.confidence import NO_CHECKS
from gwmond.model.entries.evaluation import EntryTime
from gwmond.model.facts import EntryKey
from gwmond.model.poll.snapshot import IdleReason, SilentPilot
from gwmond.model.problem_names import ProblemName
from gwmond.model.states import State
from gwmond.model.units import Resource
from gwmond.web import now
from gwmond.web.parts import shown
from tests.browser import LAPTOP, PAPER, Layout, layout, printed
from tests.build.facts import NOW
from tests.build.snapshots import evaluation, row, snapshot, status
from tests.build.web import as_file, page


def test_landing_page_says_at_its_top_what_is_down() -> None:
    """How many queries, of which sources, why and since when; those are first in their table."""
    sources = (
        status("ap1", "demand"),
        status("ap2", "demand", ProblemName.TIMEOUT),
        status("ap2", "epochs", ProblemName.TIMEOUT),
        status("ap2", "history", ProblemName.DENIED, last_success=None),
        status("cm", "slots"),
    )
    text = page(snapshot(sources=sources), NOW + 55.0)
    top = " ".join(text[: text.index("<h2>")].split())
    assert '<a class="bad" href="#sources">3 of 5 queries to sources fail</a>' in top
    since = "no answer since 2023-11-14 22:13:15 UTC, 1m00s ago"
    assert f"<strong>ap2</strong> demand, epochs (timeout, {since})" in top
    assert "<strong>ap2</strong> history (denied, no answer since gwmond started)" in top
    table = text[text.index('<h2 id="sources">') :]
    assert re.findall(r'<tr><td class="name">(\w+)</td><td>(\w+)', table) == [
        *(("ap2", "demand"), ("ap2", "epochs"), ("ap2", "history")),
        *(("ap1", "demand"), ("cm", "slots")),
    ]
    assert "<td>never</td>" in table
    assert "<td>1m00s ago</td>" in table


def test_landing_page_of_very_many_sources_that_are_down() -> None:
    """The first few are named, the others counted; names are escaped."""
    sources = tuple(status(f"<{n}>", "demand", ProblemName.TIMEOUT) for n in range(9))
    text = page(snapshot(sources=sources), NOW)
    top = " ".join(text[: text.index("<h2>")].split())
    assert "9 of 9 queries to sources fail" in top
    assert (top.count("<strong>&lt;"), "; and 3 more." in top) == (6, True)


def test_landing_page_without_anything_down() -> None:
    """Nothing is said of it then."""
    text = page(snapshot(sources=(status("cm", "slots"),)), NOW)
    assert 'class="down"' not in text
    assert "fails" not in text[text.index("<main") : text.index("<h2>")]


def test_landing_page_of_very_many_sites() -> None:
    """The first thousand, those with the largest bottlenecks first, and how many more there are."""
    seen = snapshot()
    (at, key), *_ = seen.evaluation.rows.items()
    rows = {
        (EntryKey(f"S{n:04}", "e"), at[1]): key._replace(entry=EntryKey(f"S{n:04}", "e"))
        for n in range(1200)
    }
    text = page(snapshot(evaluation=seen.evaluation._replace(rows=rows)), NOW)
    assert text.count('<tr><td class="name"><a href="site?site=S0') == 1000
    assert "<p>And 200 more: <code>gwmond sites</code> shows all." in text
    assert "more: <code>" not in page(seen, NOW)


def test_landing_page_says_what_is_taken_together() -> None:
    """How many names of which kind, and where they are named."""
    assert "98000 entries are taken together as <em>other</em>" in page(snapshot(), NOW)
    assert "taken together" not in page(replace(snapshot(), names=None), NOW)


def test_landing_page_is_made_once_and_its_ages_as_it_is_asked_for() -> None:
    """A page that was made at a poll is the page of any moment after it."""
    text = now.page(snapshot())
    for later in (0.0, 53.5, 4000.0):
        assert shown(text, NOW + later) == page(snapshot(), NOW + later)


def test_landing_page_says_how_old_it_is() -> None:
    """The age by this machine's clock, beside the pool's time; a clock set back is no age."""
    assert "As of 2023-11-14 22:13:20 UTC, polled 53s ago." in page(snapshot(), NOW + 53.5)
    assert "polled 0s ago" in page(snapshot(), NOW - 100)


def test_landing_page_says_what_colours_and_numbers_are() -> None:
    """Each state of the bar has its colour explained; matching jobs are so before assignment."""
    text = page(snapshot(), NOW)
    legend = " ".join(
        text[text.index('<ul class="legend">') : text.index('<h2 id="sources">')].split()
    )
    for state in ("provisioning bottleneck", "insufficient demand", "filling", "saturated"):
        assert state in legend
    for state in ("down", "unknown"):
        assert state in legend
    assert "idle jobs that could run there, before they are assigned to sites" in legend
    assert '<a href="#meanings">' in legend
    assert "matching jobs before assign\u00adment" in text


def test_landing_page_explains_states_that_no_site_has() -> None:
    """Whoever looks for a word finds it, whatever sites are doing."""
    nothing = snapshot().evaluation._replace(rows={}, demand={}, jobs={})
    text = page(snapshot(evaluation=nothing, entries={}, pilots={}), NOW)
    assert [state for state in State if f"<dt>{state.replace('_', ' ')}</dt><dd>" not in text] == []


def test_landing_page_says_how_sure_verdicts_are_once_some_were_checked() -> None:
    """No column without a value, and no words on it, as on a new ledger."""
    new = snapshot()
    assert "how probable" not in page(replace(new, confidence=NO_CHECKS), NOW)
    text = page(new, NOW)
    assert text.count("how probable") == 2
    starving = text[text.index(">T2_Starving") :].partition("<tr>")[0]
    assert '<td class="n">73%' in starving


def test_landing_page_names_pilots_that_are_silent() -> None:
    """With when each was heard of last; of many the first, and how many more."""
    shown = snapshot()
    assert shown.pilot_time is not None
    pilots = tuple(
        SilentPilot(f"<{n}>@node", EntryKey("Site", "ce"), "f.g", round((NOW - 700 - n) * 1e6))
        for n in range(22)
    )
    assert "Silent pilots" not in page(shown, NOW)
    text = page(replace(shown, pilot_time=shown.pilot_time._replace(silent=pilots)), NOW)
    section = text[text.index("Silent pilots") : text.index('<h2 id="sources">')]
    assert (
        '<a href="site?site=Site">Site</a></td><td><a href="entry?site=Site&amp;entry=ce">ce</a>'
        "</td><td>&lt;0&gt;@node</td><td>2023-11-14 22:01:40 UTC, 11m40s ago" in section
    )
    assert (section.count("@node"), "And 2 more." in section) == (20, True)


def test_landing_page_on_a_laptop_and_on_paper(tmp_path: Path) -> None:
    """A real browser has nothing to scroll sideways: large numbers and long names."""
    name = "T2_US_Some_University_Of_A_Distant_State"
    rows = [
        row(EntryKey(name, f"e{n}"), "cpu", state, 123_456, 65_432)._replace(reason=reason)
        for n, (state, reason) in enumerate(
            (state, "retiring_counted_as_available") for state in State
        )
    ]
    made = evaluation()
    by_key: dict[tuple[EntryKey, Resource], EntryTime] = {
        (key.entry._replace(site=f"{name}{n}"), "cpu"): key for n, key in enumerate(rows)
    }
    sources = tuple(
        status(f"schedd{n}@a-long-name.example.org", "demand", ProblemName.TIMEOUT)
        for n in range(9)
    )
    silent = tuple(
        SilentPilot(f"glidein_{n}_123456789@wn{n}.example.org", EntryKey(name, "e"), "fe.main", 0)
        for n in range(30)
    )
    s = snapshot(evaluation=made._replace(rows={**made.rows, **by_key}), sources=sources)
    assert s.pilot_time is not None
    mover, cause = "the frontend's administrator", "retiring_counted_as_available"
    idle = tuple(IdleReason("no_pilot", cause, name, mover, 1e5, 1e6 + n, 1e4) for n in range(22))
    whole = replace(s, pilot_time=s.pilot_time._replace(silent=silent), idle=idle)
    text = as_file(page(whole, NOW))
    assert "And 2 more." in text
    assert layout(text, LAPTOP, tmp_path) == Layout([], 5)
    assert layout(printed(text), PAPER, tmp_path) == Layout([], 5)


def test_a_site_where_jobs_end_too_soon_is_marked() -> None:
    """Whatever its state is: the mark leads to what fails there."""
    text = now.page(snapshot())
    mark = '<a href="failures?site=T2_Starving">suspected black hole</a>'
    assert text.count('<a href="failures?site=') == text.count(mark) >= 1


def test_an_empty_pool_says_what_to_do() -> None:
    """As the command does; a pool whose sources are all down says that instead."""
    empty = snapshot().evaluation._replace(rows={})
    assert "No site is known: the collectors show no pilot" in page(snapshot(evaluation=empty), NOW)
    down = (status("cm", "slots", ProblemName.TIMEOUT),)
    assert "No site is known" not in page(snapshot(evaluation=empty, sources=down), NOW)
    assert "No site is known" not in page(snapshot(), NOW)


def test_many_sites_are_summed_first() -> None:
    """All together by resource, then the ten largest bottlenecks, then each; of few only each.

    The uses add up to the capacity, also where a site is saturated: what is left is not spare.
    """
    short, key = State.PROVISIONING_BOTTLENECK, [EntryKey(f"S{n:02}", "e") for n in range(12)]
    rows = [row(key[n], "cpu", short, 50 + n, 50, (short, "", n * 1000)) for n in range(12)]
    rows[0] = row(key[0], "cpu", State.SATURATED, 100, 50)
    known = {(r.entry, r.resource): r for r in rows}
    text = page(snapshot(evaluation=evaluation()._replace(rows=known)), NOW)
    top = text[text.index("<h2>Sites</h2>") : text.index('id="sites"')]
    # cpu, sites, capacity, provisioned, busy, bottleneck, insufficient demand, other, saturated
    assert re.findall(r"<td[^>]*>([^<]*)</td>", top)[:4] == ["cpu", "12", "716", "600"]
    assert re.findall(r"<td[^>]*>([^<]*)</td>", top)[5:] == ["66", "0", "0", "50"]
    assert re.findall(r">(S\d\d)</a> (\d+)", top) == [
        (f"S{n:02}", str(n)) for n in range(11, 1, -1)
    ]
    few = page(snapshot(), NOW)
    assert "The largest bottlenecks" not in few
