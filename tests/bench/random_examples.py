"""Many random examples of every property that Hypothesis tests, other ones each time.

What fails is printed with a line that reproduces the failure; the example becomes an ``@example``
of the test.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from tests.examples import VARIABLE


def main() -> None:
    """Run the tests that Hypothesis drives; exit with their status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20, help="as many examples as make test has")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    command = [sys.executable, "-m", "pytest", "-q", "-m", "hypothesis", "--timeout", "7200"]
    command += ["-n", str(options.workers), "--dist", "load"]
    environment = {**os.environ, VARIABLE: str(options.times)}
    sys.exit(subprocess.run(command, env=environment, check=False).returncode)
