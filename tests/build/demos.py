"""``gwmond demo``, and the same replay at a slower pace, as processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.daemon.running import toml
from tests.pool.ports import free_port
from tests.pool.sandbox import PATIENCE_S, wait_until
from tests.promql import ROOT


@contextmanager
def demo(gwmond: Sequence[str], config: Path, *arguments: str, tables: str = "") -> Iterator[str]:
    """Its URL once it has polled. Writes the configuration; the log is beside it."""
    listen = f"127.0.0.1:{free_port()}"
    text = f"[http]\nlisten = '{listen}'\n[ledger]\nurl = '{config.parent}/live.sqlite'\n"
    config.write_text(text + tables)
    command = [*gwmond, "demo", "--config", str(config), *arguments]
    with (config.parent / "log").open("wb") as log:
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *command],
            cwd=config.parent,
            env={**os.environ, "CONDOR_CONFIG": "ONLY_ENV"},
            stdout=log,
            stderr=log,
        )
    try:

        def ready() -> bool:
            assert process.poll() is None, (config.parent / "log").read_text()
            try:
                urllib.request.urlopen(f"http://{listen}/-/ready", timeout=5).close()
            except OSError:
                return False
            return True

        wait_until("the demo", ready)
        yield f"http://{listen}"
        process.terminate()
        assert process.wait(PATIENCE_S) == 0
    finally:
        process.kill()
        process.wait()


@contextmanager
def replay(directory: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The demo's pool, polled every 20 s, for a machine with much to do: "host:port", the process.

    What it writes to its log is a note to a test that fails.
    """
    listen = f"127.0.0.1:{free_port()}"
    tables: dict[str, dict[str, object]] = {
        "http": {"listen": listen},
        "ledger": {"url": f"{directory}/ledger.sqlite"},
        "poll": {"interval": "20s", "deadline": "19s"},
        "replay": {"file": f"{ROOT}/gwmond/data/demo.zip"},
    }
    (directory / "gwmond.toml").write_text(toml(tables))
    command = [sys.executable, "-m", "gwmond", "run", "--config", f"{directory}/gwmond.toml"]
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *command],
            env={**os.environ, "CONDOR_CONFIG": "ONLY_ENV"},
            stdout=log,
            stderr=log,
        )
    try:
        yield listen, process
    except (TimeoutError, AssertionError) as error:
        error.add_note((directory / "log").read_text()[-2000:])
        raise
    finally:
        process.kill()
        process.wait()
