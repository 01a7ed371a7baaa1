"""A Debian of a test's own, in which packages are built, and which then boots its own systemd."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.packaging.built import REPOSITORY, call
from tests.pool.sandbox import CHROOTS
from tests.systemd.machine import Booted

_SYSTEMD = Path(__file__).with_name("debian.sh")
_CHROOT = """
set -eu
root=$1 cache=$2; shift 2
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mkdir -p "$root/pip"
[ ! -d "$cache" ] || mount --bind "$cache" "$root/pip"
exec chroot "$root" "$@"
"""
_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
_NETWORK = ("http_proxy", "https_proxy", "no_proxy", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL")


@contextmanager
def copy() -> Iterator[Path]:
    """The root directory of a Debian that may be written to; it is removed at the end."""
    original = Path(os.environ.get("GWMOND_POOL_CHROOTS", CHROOTS)) / "packaging"
    assert original.is_dir(), (
        f"no {original}: make setup-test (which runs {REPOSITORY}/tests/packaging/setup.sh)"
    )
    work = Path(tempfile.mkdtemp(prefix="gwmond-debian-"))
    try:
        root = work / "root"
        call(["cp", "-a", original, root])
        for link in (root / "etc/systemd/system").glob("*.wants/*"):
            link.unlink()  # what a test starts is enough
        yield root
    finally:
        call(["rm", "-rf", "--one-file-system", work])


def run(root: Path, *command: str) -> str:
    """Run a command in there without booting, with the network and pip's cache of this host."""
    variables = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "PIP_CACHE_DIR": "/pip"}
    variables |= {k: v for k, v in os.environ.items() if k in _NETWORK or k.lower() in _NETWORK}
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    if _CERTIFICATES.exists():
        shutil.copy(_CERTIFICATES, root / "certificates.pem")
        variables["PIP_CERT"] = "/certificates.pem"
    cache = subprocess.run(
        ["python3", "-m", "pip", "cache", "dir"], capture_output=True, text=True, check=False
    ).stdout.strip()
    apart = [
        "unshare",
        "--mount",
        "--pid",
        "--fork",
        "--kill-child=KILL",
        "--propagation",
        "private",
    ]
    inside = ["bash", "-c", _CHROOT, "inside", root, cache or "/nonexistent", *command]
    return call([*apart, *inside], env=variables)


def boot(root: Path) -> Booted:
    """Boot it, with a network of its own that leads nowhere, and a name that is known."""
    (root / "etc/hosts").write_text(f"127.0.0.1 localhost {socket.gethostname()}\n")
    (root / "etc/resolv.conf").write_text("nameserver 127.0.0.1\n")
    return Booted(_SYSTEMD, root, namespaces=["--net"])
