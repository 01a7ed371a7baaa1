"""The pages in a real browser: script, keyboard, phone, contrast, what is said to the blind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.build import hours_ledger, pilot_ledger
from tests.build.rest import serve
from tests.build.snapshots import snapshot
from tests.build.web import Daemon, Waiting

# Without these the browser asks its makers' servers for news.
_OPTIONS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
PHONE = 390
PATHS = (
    *(
        "/pilots",
        "/advise",
        "/runs?longer_than=",
        "/forecast",
        "/past",
        "/report?by=project&then_by=outcome",
        "/failures?last=30d",
        "/time?group=frontend.main",
    ),
    *(
        "/",
        "/time",
        "/time?last=30d&site=T2_Starving",
        "/problems",
        "/runbooks",
        "/site?site=T2_Bored",
        "/entry?site=T2_Starving&entry=starving-ce1",
    ),
    "/entry?site=T2_Dark&entry=dark-ce1",
    *("/held", "/user", "/user?user=alice"),
    *("/explain", "/explain?job=4711.0&schedd=ap1", "/explain?job=0.0"),
    *("/trace", "/trace?pilot=99", "/trace?job=a"),
    *("/explain?pilot=p1", "/explain?entry=E&site=S", "/explain?all", "/nosuch"),
    "/explain?whatif=memory&of=cms&value=2000",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=[*_OPTIONS])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> str:
    return hours_ledger.write(tmp_path_factory.mktemp("ledger"))


@pytest.fixture
def daemon(ledger: str) -> Daemon:
    return Daemon(snapshot(), ledger=ledger, asked=Waiting())


@pytest.fixture
def url(daemon: Daemon) -> Iterator[str]:
    with serve(daemon) as (server, _):
        yield server.url


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A tab in which nothing is written to the console, and whose clock the test has."""
    page = browser.new_page()
    page.clock.install()
    said: list[str] = []
    page.on("console", lambda message: _note(said, message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    yield page
    page.close()
    assert said == []


def _note(said: list[str], text: str) -> None:
    """Note what is written to the console; that a page is answered with 404 is the browser's."""
    if "the server responded with a status of 404" not in text:
        said.append(text)


def sites(page: Page) -> list[str]:
    """Return the sites in their order, of the rows that are shown; a mark is in the same cell."""
    names = page.locator("#sites tbody tr:visible td:first-child")
    return [name.split("\n")[0] for name in names.all_inner_texts()]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_can_be_read_by_all(browser: Browser, page: Page, url: str, scheme: str) -> None:
    """Contrast, names, headings, landmarks: axe finds nothing."""
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    for path in PATHS:
        page.goto(url + path)
        found = Axe().run(page)
        assert found.violations_count == 0, found.generate_report()


def test_a_pilot_can_be_read_by_all(page: Page, daemon: Daemon, url: str, tmp_path: Path) -> None:
    """The same of the list of pilots, one pilot's life and its trace, at the width of a phone."""
    daemon.ledger = str(tmp_path / "ledger.sqlite")
    pilot_ledger.write(daemon.ledger)
    page.set_viewport_size({"width": PHONE, "height": 844})
    page.goto(f"{url}/pilots?which=past")
    links = {"Pilots": "2", "Pilot 2": "Its trace, as a waterfall"}
    for heading in (*links, "Trace of pilot 2  glidein_2@wn2.example.org"):
        expect(page.get_by_role("heading", level=1)).to_have_text(heading)
        found = Axe().run(page)
        assert found.violations_count == 0, found.generate_report()
        assert page.evaluate("document.documentElement.scrollWidth") == PHONE
        for picture in page.locator("svg[role=img]").all():  # whose letters can be read
            assert (picture.bounding_box() or {"width": 0})["width"] > PHONE
        if heading in links:
            page.get_by_role("link", name=links[heading], exact=True).click()


@pytest.mark.parametrize("path", ["/explain?all", "/explain?job=4711.0", "/explain?entry=E&site=S"])
def test_long_texts_are_read_on_a_phone_without_scrolling(page: Page, url: str, path: str) -> None:
    """Each cell is a line, with the name of its column."""
    page.set_viewport_size({"width": PHONE, "height": 844})
    page.goto(url + path)
    tables = page.locator(".wide:has(.tall)").all()
    assert tables
    for table in tables:
        assert table.evaluate("box => box.scrollWidth <= box.clientWidth")
        said = "cell => getComputedStyle(cell, '::before').content"
        assert table.locator("td").first.evaluate(said) != "none"


def divided(page: Page, cells: str) -> list[str]:
    """Return the words in these elements that go over several lines."""
    found: list[str] = page.evaluate(
        """cells => [...document.querySelectorAll(cells)].flatMap(cell =>
          [...cell.childNodes].filter(node => node.nodeType == 3).flatMap(text =>
            [...text.data.matchAll(/\\S+/g)].filter(word => {
              const range = document.createRange();
              range.setStart(text, word.index);
              range.setEnd(text, word.index + word[0].length);
              return range.getClientRects().length > 1;
            }).map(String)))""",
        cells,
    )
    return found


@pytest.mark.parametrize("width", [PHONE, 1366, 1920])
def test_names_in_the_list_of_pilots_are_whole(
    page: Page, daemon: Daemon, url: str, tmp_path: Path, width: int
) -> None:
    """No name, time or word is divided; what its time was spent on is drawn, and said in words."""
    daemon.ledger = str(tmp_path / "ledger.sqlite")
    pilot_ledger.write(daemon.ledger, hostile="_of_a_Distant_University")
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(f"{url}/pilots?which=all")
    assert divided(page, ".list *") == []
    time = page.locator("tr", has_text="glidein_1@wn1").locator("td", has=page.locator(".bar"))
    words = [text.split() for text in time.locator("span").all_inner_texts()]
    drawn = time.locator("rect").evaluate_all(
        "parts => parts.map(part => [part.className.baseVal, +part.getAttribute('width')])"
    )
    assert [look for look, _ in drawn] == ["c-goodput", "c-pilot_overhead", "c-preemption_badput"]
    assert [f"{width:.0f}%" for _, width in drawn] == [word[-1] for word in words]
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_tables_of_pilots_and_groups_fit_a_laptop(
    page: Page, daemon: Daemon, url: str, tmp_path: Path
) -> None:
    """At 1366 pixels nothing is scrolled sideways, and no number and no heading is divided."""
    daemon.ledger = str(tmp_path / "ledger.sqlite")
    pilot_ledger.write(daemon.ledger, hostile="_of_a_Distant_University")
    page.set_viewport_size({"width": 1366, "height": 768})
    lists = [f"/pilots?which={which}" for which in ("running", "past", "all")]
    places = "/site?site=T2_Bored", "/entry?site=T2_Starving&entry=starving-ce1"
    for path in (*lists, "/pilot?id=1", *places):
        page.goto(url + path)
        wide = page.evaluate(
            """() => [...document.querySelectorAll(".wide")]
              .filter(box => box.scrollWidth > box.clientWidth).map(box => box.innerText)"""
        )
        assert (path, wide) == (path, [])
        assert page.locator(":is(.names, .list) table").count()
        assert (path, divided(page, ".names :is(th, button, td.n), .list *")) == (path, [])


def test_pages_fit_a_phone(page: Page, url: str) -> None:
    """Only tables are scrolled sideways, and those that are say so."""
    page.set_viewport_size({"width": PHONE, "height": 844})
    cut = 0
    for path in PATHS:
        page.goto(url + path)
        assert page.evaluate("document.documentElement.scrollWidth") == PHONE
        for box in page.locator(".wide:visible").all():
            is_cut, said = box.evaluate(
                """box => [box.scrollWidth > box.clientWidth,
                  getComputedStyle(box, "::before").content]"""
            )
            assert ("more to the right" in said) == is_cut
            cut += is_cut
    assert cut > 5


@pytest.mark.parametrize("width", [PHONE, 1280])
def test_words_of_tables_are_whole(page: Page, url: str, width: int) -> None:
    """States and reasons go over several lines, but no word of them does."""
    page.set_viewport_size({"width": width, "height": 844})
    for path in ("/", "/site?site=T2_Bored"):
        page.goto(url + path)
        broken = page.evaluate(
            """() => [...document.querySelectorAll("td[title]")].flatMap(cell =>
              [...cell.textContent.matchAll(/\\S+/g)].filter(word => {
                const range = document.createRange();
                range.setStart(cell.firstChild, word.index);
                range.setEnd(cell.firstChild, word.index + word[0].length);
                return range.getClientRects().length > 1;
              }).map(String))"""
        )
        assert broken == []


def test_rows_are_filtered(page: Page, url: str) -> None:
    """By all words that are typed, in any column; how many is said aloud."""
    page.goto(url)
    box = page.get_by_label("Only rows with these words")
    box.fill("t2 BOTTLENECK")
    assert sites(page) == ["T2_Starving"]
    expect(page.locator(".filter [role=status]")).to_have_text("1 of 7 rows")
    box.fill("")
    assert len(sites(page)) == 7


def test_rows_are_sorted_by_keyboard(page: Page, url: str) -> None:
    """Numbers largest first, then smallest first; what is not known is no number."""
    page.goto(url)
    heading = page.locator("#sites th", has_text="capacity").last
    heading.locator("button").focus()
    page.keyboard.press("Enter")
    expect(heading).to_have_attribute("aria-sort", "descending")
    assert sites(page)[:3] == ["T2_Starving", "T2_Bored", "T2_Busy"]
    page.keyboard.press("Enter")
    expect(heading).to_have_attribute("aria-sort", "ascending")
    assert sites(page)[:2] == ["T2_Starving", "T2_Down"]


def test_a_page_renews_itself(page: Page, daemon: Daemon, url: str) -> None:
    """What the next poll found is shown, sorted and filtered as before; the focus stays."""
    page.goto(url)
    page.get_by_label("Only rows with these words").fill("T2")
    by_site = page.locator("#sites th button").first
    by_site.click()
    before = sites(page)
    assert before == sorted(before)
    shown = snapshot()
    rows = {
        at: row._replace(capacity=row.capacity._replace(units=row.capacity.units + 1000))
        for at, row in shown.evaluation.rows.items()
    }
    daemon.snapshot = replace(shown, evaluation=shown.evaluation._replace(rows=rows))
    page.clock.fast_forward(15_000)
    expect(page.locator("#sites tbody")).to_contain_text("1100")
    assert sites(page) == before
    expect(by_site).to_be_focused()
    expect(page.locator(".filter [role=status]")).to_have_text("6 of 7 rows")


def test_a_page_shows_the_first_poll_when_it_ends(page: Page, daemon: Daemon, url: str) -> None:
    """Whoever opened the page too early need not do so again."""
    daemon.snapshot = None
    page.goto(url)
    expect(page.locator("main")).to_contain_text("The first poll is under way.")
    daemon.snapshot = snapshot()
    page.clock.fast_forward(15_000)
    expect(page.locator("#sites")).to_contain_text("T2_Starving")


def test_links_lead_to_the_entry(page: Page, url: str) -> None:
    """From the site in the table to its page, from there to its entries and back."""
    page.goto(url)
    page.get_by_role("link", name="T2_Bored").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("T2_Bored")
    page.get_by_role("link", name="bored-ce2").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("T2_Bored / bored-ce2")
    page.get_by_role("link", name="T2_Bored").click()
    page.get_by_role("link", name="gwmond").click()
    expect(page.locator("#sites")).to_contain_text("T2_Bored")


def test_time_is_drawn(page: Page, url: str) -> None:
    """A chart of each, with the colours of their legends and air above; values without a mouse."""
    page.goto(f"{url}/time")
    expect(page.locator(".chart canvas")).to_have_count(2)
    chart = page.locator(".chart").first
    colours = chart.evaluate(
        """box => {
          const canvas = box.querySelector("canvas");
          const width = canvas.width, height = canvas.height;
          const pixels = canvas.getContext("2d").getImageData(0, 0, width, height).data;
          const found = new Set();
          const above = 4 * 12 * (width / box.clientWidth) * width;
          if (pixels.slice(0, above).some((value, at) => at % 4 === 3 && value === 255)) return [];
          for (let at = 0; at < pixels.length; at += 4) {
            if (pixels[at + 3] === 255) found.add(`rgb(${pixels.slice(at, at + 3).join(", ")})`);
          }
          return [...found];
        }"""
    )
    section = page.locator("section").first
    legend = section.locator(".legend i").evaluate_all(
        "fields => fields.map(field => getComputedStyle(field).backgroundColor)"
    )
    assert set(legend) <= set(colours)
    box = chart.locator(".u-over").bounding_box()
    assert box is not None
    expect(chart.locator(".u-legend")).to_contain_text("2023-11-14 21:00")
    expect(chart.locator(".u-legend")).to_contain_text("130.0")
    page.mouse.move(box["x"] + box["width"] - 3 - box["width"] / 12, box["y"] + 20)
    expect(chart.locator(".u-legend")).to_contain_text("2023-11-14 19:00")
    expect(chart.locator(".u-legend")).to_contain_text("?")
    page.get_by_role("link", name="30 days").click()
    expect(page.locator(".choice a[aria-current]").first).to_have_text("30 days")


@pytest.mark.parametrize("script", [True, False])
def test_pilots_are_chosen_by_keyboard(
    browser: Browser, daemon: Daemon, url: str, tmp_path: Path, script: bool
) -> None:
    """Without script, too: a node, then Enter; what was chosen stays, and leads to failures."""
    daemon.ledger = str(tmp_path / "ledger.sqlite")
    pilot_ledger.write(daemon.ledger)
    context = browser.new_context(java_script_enabled=script)
    page = context.new_page()
    page.goto(f"{url}/pilots?which=past")
    page.get_by_label("Node").focus()
    page.keyboard.type("wn1*")
    page.keyboard.press("Enter")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.get_by_label("Node")).to_have_value("wn1*")
    page.get_by_role("link", name="Failures").click()
    page.get_by_label("Site").press_sequentially("Site-A")
    page.get_by_label("Site").press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("of Site-A")
    assert page.url.startswith(f"{url}/failures?last=24h&site=Site-A")
    context.close()


@pytest.mark.parametrize("script", [True, False])
def test_a_job_is_asked_for(browser: Browser, url: str, script: bool) -> None:
    """From the first page, by keyboard: its number, then Enter; why it waits comes first."""
    context = browser.new_context(java_script_enabled=script)
    page = context.new_page()
    page.goto(url)
    page.get_by_role("link", name="Why jobs are not running").click()
    page.get_by_label("Job").press_sequentially("4711.0")
    page.get_by_label("Job").press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("NOT RUNNING for 3h03m: ")
    expect(page.get_by_label("Job")).to_have_value("4711.0")
    page.get_by_role("link", name="The same as JSON").click()
    expect(page.locator("body")).to_contain_text('"first_line": "NOT RUNNING for 3h03m: ')
    context.close()


def test_an_entry_is_asked_for(page: Page, url: str) -> None:
    """From its page, and by its name in the form; all jobs by a link."""
    page.goto(f"{url}/site?site=T2_Bored")
    page.get_by_role("link", name="why", exact=True).first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("of T2_Bored HAS NO JOB: ")
    page.get_by_role("link", name="A pilot").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Why does a pilot have no job?")
    page.get_by_label("Pilot").press_sequentially("glidein_1@wn1")
    page.get_by_label("Pilot").press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Pilot glidein_1@wn1 HAS NO JOB")
    page.get_by_role("link", name="All idle jobs").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("3 idle jobs of ")


def test_pages_say_the_same_without_script(browser: Browser, url: str) -> None:
    """Only what needs script is not there."""
    context = browser.new_context(java_script_enabled=False)
    plain = context.new_page()
    plain.goto(url)
    assert len(sites(plain)) == 7
    expect(plain.locator(".filter")).to_be_hidden()
    assert plain.locator("th button").count() == 0
    context.close()


def test_nothing_but_the_pages_own_script_runs(browser: Browser, url: str) -> None:
    """The policy of a page stops a script, and a style, that somebody got into its text."""
    tab = browser.new_page()
    answer = tab.goto(url)
    assert answer is not None
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    tab.evaluate(
        """() => {
          const script = document.createElement("script");
          script.textContent = "document.title = 'mine'";
          document.body.append(script);
          document.querySelector("main").setAttribute("style", "display: none");
        }"""
    )
    assert tab.title() != "mine"
    expect(tab.locator("main")).to_be_visible()
    tab.close()


def test_an_address_has_order_and_words(page: Page, url: str) -> None:
    """Who is sent it sees the same rows in the same order; a page of the ledger can be sorted."""
    page.goto(url)
    page.get_by_label("Only rows with these words").fill("T2")
    page.locator("#sites th", has_text="capacity").last.locator("button").click()
    shown, address = sites(page), page.url
    assert shown[0] == "T2_Starving"
    page.goto(f"{url}/time")
    page.goto(address)
    assert sites(page) == shown
    expect(page.get_by_label("Only rows with these words")).to_have_value("T2")
    page.goto(f"{url}/time#sort=0.0.0d")
    page.locator("summary").first.click()
    first = page.locator("details th").first
    expect(first).to_have_attribute("aria-sort", "descending")


def test_a_place_shows_its_last_days(page: Page, url: str) -> None:
    """The charts of its page of time, on its own page."""
    page.goto(f"{url}/entry?site=T2_Starving&entry=starving-ce1")
    expect(page.locator("[data-trend] h2").first).to_have_text("Its last 7 days")
    expect(page.locator("[data-trend] .chart canvas").first).to_be_visible()
