"""Makes the pictures of docs/gallery.md: ``python -m tools.pictures`` (Chromium, pngquant).

Pages of the demo, of an empty pool and of 200 sites, in a window of a laptop, light or dark, and on
a phone.  ``--all DIRECTORY`` writes each page in all windows there, to be looked at.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Browser, sync_playwright

from gwmond.model.entries.evaluation import EntryTime
from gwmond.model.facts import EntryKey
from gwmond.model.states import State
from gwmond.model.units import Resource
from tests.build.rest import serve
from tests.build.snapshots import row, snapshot
from tests.build.web import Daemon

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
HEIGHT, TALL, PHONE, LAPTOP, DESK = 900, 1250, 390, 1366, 1920
"""Pixels of windows: heights, and widths."""
_START_S, _TRIES = 300, 6
_OPTIONS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


class Shot(NamedTuple):
    """A picture: of which pool and page, in which window, light or dark."""

    name: str
    pool: str
    path: str
    width: int = LAPTOP
    dark: bool = False
    height: int = HEIGHT


PAGES = {
    "now": "/",
    "time": "/time?last=7d",
    "pilots": "/pilots?which=past",
    "failures": "/failures?last=7d",
    "users": "/user?last=7d",
    "user": "/user?last=7d&user=bob@demo.example",
    "explain": "/explain",
    "explain-all": "/explain?all=1",
    "site": "/site?site=Glomma",
    "entry": "/entry?site=Adige&entry=Adige_ce1",
    "held": "/held",
    "problems": "/problems",
    "runbooks": "/runbooks",
}
"""Pages of the demo by the names of their pictures; a pilot's and a trace are those of the tour."""
TOUR = {
    "pilot": r'href="(pilot\?id=\d+)',
    "trace": r'href="(trace\?job=[^"]+)',
    "explain-job": r'href="(explain\?job=[^"]+)',
}
UNKEPT = {"now", "problems"}
KEPT = (
    Shot("now", "demo", "now", height=TALL),
    Shot("now-dark", "demo", "now", dark=True, height=TALL),
    *(Shot(name, "demo", name) for name in (*PAGES, *TOUR) if name not in UNKEPT),
    *(Shot(f"{name}-phone", "demo", name, PHONE) for name in ("now", "entry", "pilots")),
    Shot("now-empty", "empty", "now"),
    Shot("now-200-sites", "many", "now"),
)


@contextmanager
def demo() -> Iterator[str]:
    """Run the demo until its poll is that of the tour's last day; its address."""
    with tempfile.TemporaryDirectory() as directory:
        config = Path(directory, "gwmond.toml")
        config.write_text('[http]\nlisten = "127.0.0.1:0"\n')
        command = [sys.executable, "-m", "gwmond", "demo", "--config", str(config)]
        output = Path(directory, "log")
        with output.open("w") as log:
            running = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            end = time.monotonic() + _START_S
            while time.monotonic() < end and running.poll() is None:
                found = re.search(r"\burl=(http://\S+)", output.read_text())
                if found and b'id="sites"' in urllib.request.urlopen(found[1]).read():
                    yield found[1]
                    return
                time.sleep(1)
            raise TimeoutError(output.read_text())
        finally:
            running.terminate()
            running.wait()


@contextmanager
def pool(sites: int) -> Iterator[str]:
    """Serve a poll of so many sites."""
    states = [state for state in State if state != State.UNKNOWN]
    rows: dict[tuple[EntryKey, Resource], EntryTime] = {}
    for number in range(sites):
        key, units = EntryKey(f"T2_Site_{number:03}", f"ce{number:03}"), 40 * (number % 17 + 1)
        state = states[number % len(states)]
        used = units // 2 if state in {State.PROVISIONING_BOTTLENECK, State.FILLING} else units
        parts = [(state, "factory_limit", 1000 * (units - used))] if used < units else []
        rows[key, "cpu"] = row(key, "cpu", state, units, used, *parts)
    made = snapshot()
    evaluation = made.evaluation._replace(rows=rows)
    now = time.time()
    up = [status._replace(last_success=now) for status in made.sources if status.up]
    quiet = replace(made, sources=tuple(up), pilot_time=None, names=None, idle=(), held=())
    if not sites:
        quiet = replace(quiet, entries={}, requests=(), pilots={})
        evaluation = evaluation._replace(demand={}, jobs={}, idle=())
    made = replace(quiet, evaluation=evaluation, made_at=now, pool_time=now)
    with serve(Daemon(made)) as (server, _):
        yield server.url


def take(browser: Browser, url: str, shot: Shot, into: Path, *, whole: bool = False) -> None:
    """Write a picture of a window, or of a whole page."""
    scheme = "dark" if shot.dark else "light"
    window = {"width": shot.width, "height": shot.height}
    page = browser.new_page(viewport=window, color_scheme=scheme)  # type: ignore[arg-type]
    path = PAGES.get(shot.path)
    if path is None:
        page.goto(url)
        found = re.search(TOUR[shot.path], page.content())
        assert found, shot.path
        path = "/" + found[1].replace("&amp;", "&")
    for _ in range(_TRIES):  # a busy machine may not read the ledger in time
        page.goto(url + path)
        page.wait_for_timeout(1500)
        if not page.locator("p.down[role=alert]").count():
            break
    else:
        raise TimeoutError(f"{path}: the ledger is not read in time")
    page.screenshot(path=into, full_page=whole)
    page.close()
    if not whole:
        quant = ["pngquant", "--force", "--ext", ".png", "--strip", "64", str(into)]
        subprocess.run(quant, check=True)


def every(pools: dict[str, str]) -> Iterator[Shot]:
    """Yield each page in all windows."""
    for kind in pools:
        for name in (*PAGES, *(TOUR if kind == "demo" else ())):
            for width in (PHONE, LAPTOP, DESK):
                for dark in (False, True):
                    look = "dark" if dark else "light"
                    yield Shot(f"{kind}-{name}-{width}-{look}", kind, name, width, dark)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="only these pictures (default: all)")
    parser.add_argument("--all", type=Path, help="write all pages in all windows there")
    parser.add_argument("--demo", help="the address of a demo that runs already")
    asked = parser.parse_args()
    into: Path = asked.all or PICTURES
    into.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        playwright = stack.enter_context(sync_playwright())
        launch = playwright.chromium.launch
        browser = launch(executable_path="/usr/bin/chromium", args=[*_OPTIONS])
        stack.callback(browser.close)
        pools = {
            "demo": asked.demo or stack.enter_context(demo()),
            "empty": stack.enter_context(pool(0)),
            "many": stack.enter_context(pool(200)),
        }
        for shot in every(pools) if asked.all else KEPT:
            if shot.name in asked.names or not asked.names:
                to = into / f"{shot.name}.png"
                take(browser, pools[shot.pool], shot, to, whole=bool(asked.all))


if __name__ == "__main__":
    main()
