"""Commands of gwmond in this process: another one takes seconds to load what a command needs.

And programs of the tests in processes of their own.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from subprocess import CompletedProcess
from unittest import mock

from gwmond import cli


def gwmond(*words: object) -> CompletedProcess[str]:
    """Run a command to its end; tests of the process itself start one (tests/daemon/running.py)."""
    typed = [str(word) for word in words]
    out, err = io.StringIO(), io.StringIO()
    with (
        redirect_stdout(out),
        redirect_stderr(err),
        mock.patch("gwmond.service.host.log.configure"),
    ):
        try:
            code = cli.main(typed)
        except SystemExit as wrong:  # of argparse
            code = int(wrong.code or 0)
    return CompletedProcess(typed, code, out.getvalue(), err.getvalue())


def program(module: str, *words: object) -> str:
    """Return what a program of the tests prints; raises CalledProcessError.

    It is found in the current directory, also where this process has started children
    (``child.start`` sets PYTHONSAFEPATH).
    """
    command = [sys.executable, "-m", module, *map(str, words)]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=280, env=env)
    return done.stdout
