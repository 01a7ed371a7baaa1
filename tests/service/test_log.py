"""What is logged of an error that nobody caught."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import logging
from gwmond.config.settings import Log
from gwmond.service.host import log

log.configure(Log(format="{format}"))


def fails(local):
    raise ValueError("it failed")


try:
    fails("what a " + "local variable has")
except ValueError:
    logging.getLogger("uvicorn.error").exception("a request")
    log.event("warning", "a poll", exc_info=True)
"""


@pytest.mark.parametrize("form", ["console", "json"])
def test_a_traceback_has_no_local_variables(form: str) -> None:
    """Of gwmond's own events, and of what other libraries log."""
    program = PROGRAM.replace("{format}", form)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stderr.count("ValueError: it failed") == 2
    assert done.stderr.count("line 10, in fails") == 2
    assert "what a local variable has" not in done.stderr
