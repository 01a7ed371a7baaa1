"""Collectors that are of no help, and the configuration of a daemon that watches one."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.pool.ports import free_port

KINDS = ("refuses", "silent", "unknown")


@contextmanager
def collector(kind: str) -> Iterator[str]:
    """The address of a collector that refuses, accepts but never answers, or has no such name."""
    if kind == "silent":
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen(64)
            yield f"127.0.0.1:{listener.getsockname()[1]}"
    else:
        yield f"127.0.0.1:{free_port()}" if kind == "refuses" else "collector.invalid:9618"


def config_text(collector: str, port: int, *, ledger: str = "", http: str = "") -> str:
    """A configuration that polls often and serves at that port of loopback."""
    url = f'[ledger]\nurl = "sqlite:///{ledger}"\n' if ledger else ""
    return (
        f'[pool]\ncollectors = ["{collector}"]\n'
        '[poll]\ninterval = "3s"\ndeadline = "2s"\n'
        f'[http]\nlisten = "127.0.0.1:{port}"\n{http}\n{url}'
    )


def write_config(directory: Path, collector: str, port: int) -> Path:
    """Write such a configuration, the ledger in the same directory."""
    path = directory / "gwmond.toml"
    path.write_text(config_text(collector, port, ledger=str(directory / "ledger.sqlite")))
    return path
