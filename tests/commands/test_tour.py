"""The tour of ``gwmond demo``: each link leads to a page that shows what it says."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest

from gwmond.sources.recording.recording import Recording
from tests.build import demos
from tests.build.command_line import gwmond
from tests.build.recordings import make
from tests.pool.sandbox import PATIENCE_S, wait_until

SHOWN = (
    ("starves since Saturday", "no match in frontend", "provisioning bottleneck"),
    ("The node that ate", "early_exit", "misconfiguration"),
    ("A week of the pool", "insufficient demand", "goodput"),
    ("What failed this week", "Tagus_ce1", "Po_ce1"),
    ("fail their validation", "check_cvmfs.sh", "Neckar_ce1"),
    ("A downtime", "down", "Elbe"),
    ("A limit of our own", "frontend limit", "TotalGlideinsPerEntry"),
    ("Jobs that wait for ever", "too large", "Tamise"),
    ("Why one of these does not run", "condor_qedit", "RequestCpus"),
    ("Pilots that are held", "Oder_ce1", "the site"),
    ("never ran a job", "never ran a job", "decision problem"),
    ("The life of a pilot", "exit_zero", "goodput"),
    ("A job that began", "transfer_input_failed", "exit_zero"),
)
"""Of each stop, a part of its sentence, and what its page has to have."""


ASKED = "--ask", "daemon"
TOUR = Recording(str(resources.files("gwmond") / "data" / "demo.zip")).tour


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A demo that has polled, and what it prints."""
    config = tmp_path_factory.mktemp("tour") / "gwmond.toml"
    with demos.demo([sys.executable, "-m", "gwmond"], config) as at:
        yield at, config.parent / "log"


@pytest.fixture
def url(started: tuple[str, Path]) -> str:
    """Where it is."""
    return started[0]


def page(url: str) -> str:
    """What a browser gets."""
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
        text: str = answer.read().decode()
    return text


def test_the_first_page_has_the_tour(url: str) -> None:
    """All stops, in their order; no sentence says that there are none of something."""
    found = re.findall(r'<li><a href="([^"]*)">([^<]*)</a></li>', page(f"{url}/"))
    assert [(html.unescape(link), html.unescape(text)) for link, text in found] == [
        (stop.link, stop.text) for stop in TOUR
    ]
    assert len(TOUR) == len(SHOWN)
    assert "Its time is now Wednesday, 2026-03-18" in page(f"{url}/")
    assert not [stop.text for stop in TOUR if re.search(r"\b0 (of|jobs|pilots|more)", stop.text)]


@pytest.mark.parametrize("number", range(len(SHOWN)))
def test_a_stop_shows_what_it_says(url: str, number: int) -> None:
    """The page is there, and has the words; a busy machine may not read all of it at once."""
    said, *words = SHOWN[number]
    stop = TOUR[number]
    assert said in stop.text

    def shows() -> bool:
        shown = " ".join(re.sub(r"<[^>]*>", " ", page(f"{url}/{stop.link}")).split())
        return all(word in shown or word.replace(" ", "_") in shown for word in words)

    wait_until(f"{words} at {stop.link}", shows)


def test_the_terminal_has_the_tour(started: tuple[str, Path]) -> None:
    """With addresses to open, and by which time; nothing is written for programs."""
    url, text = started[0], started[1].read_text()
    assert "begins on Wednesday, 2026-03-18 10:05 UTC" in text
    assert "started" in text
    assert '{"' not in text
    for stop in TOUR:
        assert f"{stop.text}\n    {url}/{stop.link}\n" in text


def test_what_the_terminal_says_of_commands(started: tuple[str, Path]) -> None:
    """They have the week before the demo's time, which is not the machine's."""
    found = re.findall(r"^    \S*gwmond (.*)$", started[1].read_text(), re.MULTILINE)
    assert [line.split()[0] for line in found] == ["report", "changes", "advise", "explain"]
    for line in found[:3]:
        done = gwmond(*line.split())
        assert (done.returncode, done.stderr) == (0, "")
        assert "Tagus" in done.stdout
        assert "2026-03-18" in done.stdout


def test_the_demo_explains_a_job_to_a_terminal(started: tuple[str, Path]) -> None:
    """As the terminal has it, or where nothing names a pool; not to who names another one."""
    (line,) = re.findall(r"^    \S*gwmond (explain .*)$", started[1].read_text(), re.MULTILINE)
    words = line.split()
    assert words.count("--config") == 1
    for of, pool in ((words, "cm.example.org"), ([w for w in words if w not in ASKED], "")):
        command = [sys.executable, "-m", "gwmond", *of]
        env = {**os.environ, "CONDOR_CONFIG": "ONLY_ENV", "_CONDOR_COLLECTOR_HOST": pool}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
        assert (done.returncode, done.stdout[:11]) == (0, "NOT RUNNING")
        assert "replays a recording" in done.stderr
    other = gwmond(*words, "--collector", "cm.example.org")
    assert (other.returncode, other.stdout) == (1, "")


def test_a_recording_without_a_past_has_none(tmp_path: Path) -> None:
    """No page but the demo's first one has a tour."""
    assert Recording(str(make(tmp_path / "r.zip", "epochs", [[]]).path)).tour == ()
