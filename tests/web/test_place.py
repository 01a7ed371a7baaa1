"""The pages of a site, of an entry, and of problems: what they say."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

from gwmond.config.settings import Config
from gwmond.model.facts import EntryKey
from gwmond.model.poll.snapshot import SilentPilot
from gwmond.model.problem_names import ProblemName
from gwmond.web import problems
from gwmond.web.pages import Pages
from gwmond.web.place import entry_page, site_page
from tests.build.facts import NOW
from tests.build.snapshots import BORED, BORED2, DARK, LIMIT, ODD, STARVING, snapshot


def text_of(page: str | None) -> str:
    """Return what a page says, without its tags, in one line."""
    assert page is not None
    main = page[page.index("<main") : page.index("</main>")]
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", main)).split())


def figure(page: str | None, name: str) -> list[str]:
    """Return a figure of each resource of a place."""
    assert page is not None
    return re.findall(rf"<dt>{name}</dt><dd>([^<]*)</dd>", page)


def test_entry_says_why_it_is_idle() -> None:
    """State and reason with their meanings, and the limit that was hit with its value."""
    text = text_of(entry_page(snapshot(), STARVING))
    assert "CPU: provisioning bottleneck" in text
    assert "no pilot waits at the site, and idle jobs could have run there." in text
    assert "frontend limit : The frontend has hit a limit of its configuration" in text
    assert "TotalGlideinsPerEntry (count=10, limit=10)" in text
    assert "the most that was seen running at once" in text


def test_entry_has_its_figures() -> None:
    """Of each resource; of pilots and jobs once."""
    page = entry_page(snapshot(), STARVING)
    assert figure(page, "capacity") == ["100", "4"]
    assert figure(page, "busy") == ["80", "4"]
    assert figure(page, "provisioning bottleneck") == ["6.5", "0.0"]
    assert figure(page, "pilots held") == ["2"]
    assert figure(page, "verdicts right") == ["93% of 15"]


def test_what_is_not_known_is_no_zero() -> None:
    """Question marks, for an entry whose pilots are hidden by a silent collector."""
    page = entry_page(snapshot(), DARK)
    for name in ("provisioned", "busy", "pilots registered", "idle jobs that match"):
        assert figure(page, name) == ["?"]


def test_entry_has_its_frontend_groups() -> None:
    """What each asks for, its pilots, and the limits it has hit."""
    page = entry_page(snapshot(), STARVING)
    assert page is not None
    groups = page[page.index("<h2>Frontend groups") : page.index("<h2>Suspected")]
    assert re.findall(r"group=[\w.]+\">(frontend\.\w+)</a>", groups) == [
        *("frontend.main", "frontend.other")
    ]
    assert f"{LIMIT.name} ({LIMIT.text})" in groups
    assert "80 of 90 cpu, 4 of 4 gpu" in groups


def test_entry_has_its_time() -> None:
    """Hours of capacity by state and reason, hours of pilots by category and outcome."""
    text = text_of(entry_page(snapshot(), STARVING))
    assert "cpu provisioned 90.0 100.0%" in text
    assert "cpu goodput exit zero 1.0 100.0%" in text
    assert "39 of 40 runs failed within five minutes; 9 of 9 jobs compared" in text
    assert "Nothing is accounted yet." in text_of(entry_page(snapshot(), BORED))


def test_site_has_its_entries() -> None:
    """Each with a link to its page; sums are of both."""
    page = site_page(snapshot(), BORED.site)
    assert page is not None
    assert figure(page, "capacity") == ["60"]
    for key in (BORED, BORED2):
        assert f'<a href="entry?site={key.site}&amp;entry={key.entry}">{key.entry}</a>' in page
    assert "the most that was seen running at once in the last site.peak_window, and a" not in page
    assert "a pledge in the configuration, and the most that was seen" in text_of(page)


def test_silent_pilots_are_named_where_they_are() -> None:
    """At their own entry, and nowhere else."""
    shown = snapshot()
    assert shown.pilot_time is not None
    silent = (SilentPilot("<p>@node", BORED, "f.g", round((NOW - 700) * 1e6)),)
    s = replace(shown, pilot_time=shown.pilot_time._replace(silent=silent))
    assert "<p>@node" in text_of(entry_page(s, BORED))
    assert "<p>@node" in text_of(site_page(s, BORED.site))
    assert "Silent pilots" not in text_of(entry_page(s, STARVING))


def test_unknown_places_have_no_page() -> None:
    """Nor has any place before the first poll."""
    assert site_page(snapshot(), "nowhere") is None
    assert entry_page(snapshot(), EntryKey(BORED.site, STARVING.entry)) is None
    assert Pages(None, Config()).site(BORED.site) is None
    assert Pages(None, Config()).entry(*BORED) is None


def test_strange_names_lead_to_their_pages() -> None:
    """A name is escaped in the page, and quoted in addresses."""
    page = site_page(snapshot(), ODD.site)
    assert page is not None
    assert "<b>" not in page
    assert 'href="entry?site=%3Cb%3E%26%22Odd%22%5C&amp;entry=odd"' in page


def test_problems_say_what_to_do() -> None:
    """What fails now is first; each has its meaning and remedy."""
    page = problems.page(snapshot())
    text = text_of(page)
    assert text.index("ap2 timeout 3 fails now") < text.index("cm bad_size 1 ")
    for problem in (ProblemName.TIMEOUT, ProblemName.BAD_SIZE):
        assert problem.meaning in text
        assert problem.remedy in text
    assert "No problem has been counted." in text_of(problems.page(snapshot(problems={})))
    assert "The first poll is under way." in text_of(problems.page(None))
