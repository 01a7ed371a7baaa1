"""gwmond's source distribution and wheel, built as ``make dist`` builds them."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

REPOSITORY = Path(__file__).parent.parent.parent
VERSION = str(tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["version"])


def call(command: Sequence[object], **options: object) -> str:
    """What a program prints; AssertionError with all of its output if it fails."""
    ended = subprocess.run(  # type: ignore[call-overload]
        [*map(str, command)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
        **options,
    )
    assert ended.returncode == 0, f"{command}\n{ended.stdout}"
    return str(ended.stdout)


def tracked() -> list[str]:
    """The repository's files, those not added yet included."""
    listed = call(["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=REPOSITORY)
    return [name for name in listed.split("\0") if name and (REPOSITORY / name).exists()]


def copy_of_repository(place: Path) -> Path:
    """A copy, in which builds may leave what they like."""
    for name in tracked():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(REPOSITORY / name, place / name)
    return place


def build(source: Path, output: Path) -> None:
    """Build a source distribution, and a wheel from this, with the locked setuptools."""
    module = [sys.executable, "-m", "build", "--no-isolation"]
    call([*module, "--outdir", output, source])
