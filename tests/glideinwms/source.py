"""Where GlideinWMS's own source is, of which nothing is in this repository."""

from __future__ import annotations

import os
import shutil
import tarfile
from pathlib import Path

import pytest

#: Beside the checkout.
BESIDE = Path(__file__).parents[3] / "shared/gwms/glideinwms.tgz"
#: If set, tests that are left out for want of a source fail.
MUST = "GWMOND_TEST_GLIDEINWMS"
_CHROOTS = "/var/cache/gwmond-pool"  # as in setup.sh


def chroot() -> Path:
    """The Debian that setup.sh makes for it."""
    return Path(os.environ.get("GWMOND_POOL_CHROOTS", _CHROOTS)) / "glideinwms"


def found() -> Path:
    """GlideinWMS's source, a directory or a .tgz; skips the test (or fails it) if there is none."""
    named = os.environ.get("GLIDEINWMS_SOURCE")
    for path in (Path(named) if named else BESIDE, chroot().with_name("glideinwms-source")):
        if path.exists():
            return path
    why = "no source of GlideinWMS (GLIDEINWMS_SOURCE, or network for tests/glideinwms/setup.sh)"
    if os.environ.get(MUST):
        pytest.fail(why)
    pytest.skip(why)


def unpack(source: Path, into: Path) -> None:
    """Put a copy of the source into a directory, without its repository."""
    if source.is_dir():
        ignored = shutil.ignore_patterns(".git", "unittests", "doc")
        shutil.copytree(source, into, dirs_exist_ok=True, ignore=ignored, symlinks=True)
        return
    with tarfile.open(source) as archive:
        archive.extractall(into, filter="tar")
