"""Commands of gwmond in this process: another one takes seconds to load what a command needs."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from subprocess import CompletedProcess
from unittest import mock

from gwmond import cli


def gwmond(*words: object) -> CompletedProcess[str]:
    """Run a command to its end; tests of the process itself start one (tests/daemon/running.py)."""
    typed = [str(word) for word in words]
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), mock.patch("gwmond.service.log.configure"):
        code = cli.main(typed)
    return CompletedProcess(typed, code, out.getvalue(), err.getvalue())
