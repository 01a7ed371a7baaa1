"""Commands in a directory of somebody else: no Python file of it is run."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gwmond.cli import COMMANDS
from tests.daemon.scrape import Metrics
from tests.pool.ports import free_port
from tests.pool.sandbox import PATIENCE_S, wait_until

INSTALLED = Path(sys.executable).with_name("gwmond")
"""The command as it is installed."""
NAMES = sorted(
    {*sys.stdlib_module_names, "htcondor2", "classad2", "pydantic", "structlog", "sitecustomize"}
    - {"antigravity", "this"}
)
"""What a child may import."""
GREEDY = """
import os
with open({log!r}, "a") as log:
    log.write(os.path.basename({name!r}) + "\\n")
raise ImportError("poisoned")
"""


@pytest.fixture
def poisoned(tmp_path: Path) -> Path:
    """A directory with a Python file for each module that there is; ``log`` has who was run."""
    there = tmp_path / "there"
    there.mkdir()
    for name in NAMES:
        (there / f"{name}.py").write_text(GREEDY.format(log=str(tmp_path / "log"), name=name))
    return there


def was_run(poisoned: Path) -> str:
    log = poisoned.parent / "log"
    return log.read_text() if log.exists() else ""


@contextmanager
def command(poisoned: Path, *words: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Run a command there, on a pool that does not answer; gives it, and where it serves."""
    pool, address = poisoned.parent / "gwmond.toml", f"127.0.0.1:{free_port()}"
    pool.write_text(
        f'[pool]\ncollectors = ["127.0.0.1:{free_port()}"]\n[http]\nlisten = "{address}"\n'
        f'[ledger]\nurl = "sqlite:///{poisoned.parent}/ledger.sqlite"\n'
        '[poll]\ninterval = "3s"\ndeadline = "2s"\n'
    )
    process = subprocess.Popen(
        [*map(str, (INSTALLED, words[0], "--config", pool)), *words[1:]],
        cwd=poisoned,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=(poisoned.parent / "output").open("wb"),
        env={k: v for k, v in os.environ.items() if not k.startswith("PYTHON")},
    )
    try:
        yield process, f"http://{address}/metrics"
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


WORDS = {
    "explain": ["1.0"],
    "pilot": ["1"],
    "trace": ["1.0"],
    "ledger": ["check"],
    "import": ["/nonexistent"],
    "record": ["../recording.gz", "--frames", "1"],
}


def polls(url: str) -> float:
    """How many it has made."""
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
            return Metrics.parse(answer.read().decode()).sum("gwmond_polls_total")
    except OSError:
        return 0


@pytest.mark.parametrize("name", COMMANDS)
def test_no_file_of_the_current_directory_is_run(poisoned: Path, name: str) -> None:
    """Neither by the command nor by its children, whichever command it is."""
    with command(poisoned, name, *WORDS.get(name, [])) as (process, url):
        if name in ("run", "demo"):
            wait_until("it polls", lambda: was_run(poisoned) or polls(url))
        else:
            process.wait(PATIENCE_S)
    assert not was_run(poisoned), (poisoned.parent / "output").read_text()[-2000:]
