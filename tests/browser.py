"""A real browser, asked how wide a page is."""

from __future__ import annotations

import json
import re
import subprocess
from html import unescape
from pathlib import Path
from typing import NamedTuple

from tests.pool.sandbox import PATIENCE_S

_OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
    *("--allow-file-access-from-files", "--virtual-time-budget=3000"),
)
_FRAME = """<!doctype html><meta charset=utf-8><body>
<iframe id=page src="{page}" style="width:{width}px;height:900px;border:0"></iframe>
<script>
const frame = document.getElementById("page");
frame.onload = () => {{
  const page = frame.contentDocument;
  const wide = [page.documentElement, ...page.querySelectorAll(".wide, pre")]
    .filter(box => box.scrollWidth > box.clientWidth)
    .map(box => `${{box.scrollWidth}} px of ${{box.clientWidth}}: ${{box.innerText.slice(0, 60)}}`);
  const tables = page.querySelectorAll("table").length;
  document.body.textContent = JSON.stringify({{scrolled: wide, tables: tables}});
}};
</script>
"""


class Layout(NamedTuple):
    """What has to be scrolled sideways, and how many tables there are."""

    scrolled: list[str]
    tables: int


def chromium(*options: str, profile: Path) -> str:
    """Run the browser; its standard output."""
    command = ["chromium", *_OPTIONS, f"--user-data-dir={profile}", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    return done.stdout


LAPTOP = 1280
"""Pixels across."""
PAPER = 1032
"""Pixels across a sheet of A4 on its side, without the margins of 12 mm."""


def printed(page: str) -> str:
    """Return a page that looks on a screen as it does on paper."""
    return page.replace("@media print", "@media all")


def layout(page: str, width: int, directory: Path) -> Layout:
    """Lay a page out in a window of so many pixels."""
    (directory / "page.html").write_text(page)
    (directory / "frame.html").write_text(_FRAME.format(page="page.html", width=width))
    dom = chromium(
        "--dump-dom", f"file://{directory / 'frame.html'}", profile=directory / "profile"
    )
    body = re.search(r"<body>(\{.*\})\s*</body>", dom, re.DOTALL)
    assert body, dom[:2000]
    found = json.loads(unescape(body[1]))
    return Layout(found["scrolled"], found["tables"])
