"""The unit file, read as systemd reads it, with the comments that stand above its settings."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
UNIT = REPOSITORY / "systemd" / "gwmond.service"


@dataclass(frozen=True)
class Setting:
    """One line ``name=value``, and the nearest comment above it."""

    section: str
    name: str
    value: str
    comment: str


def settings() -> list[Setting]:
    """Every setting of the unit, in its order."""
    found: list[Setting] = []
    section, comment, fresh = "", "", True
    for line in UNIT.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            section, comment = line.strip("[]"), ""
        elif line.startswith("#"):
            comment = line if fresh else f"{comment}\n{line}"
        elif line:
            name, _, value = line.partition("=")
            found.append(Setting(section, name, value, comment))
        fresh = not line.startswith("#")
    return found


def values(name: str) -> list[str]:
    """All values of the settings with that name."""
    return [setting.value for setting in settings() if setting.name == name]


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run systemd-analyze, which needs no running systemd for what is asked of it here."""
    program = shutil.which("systemd-analyze")
    if program is None:
        raise RuntimeError("systemd-analyze is not installed: apt-get install systemd")
    return subprocess.run(
        [program, *arguments], capture_output=True, text=True, timeout=240, check=False
    )
