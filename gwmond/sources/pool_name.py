"""Whose answers a configuration leads to, so that two can be compared."""

from __future__ import annotations

from pathlib import Path

from gwmond.config.settings import Config
from gwmond.sources import child
from gwmond.sources.htcondor.access import host_and_port

_READ_S = 10.0
RECORDING = "recording "
"""With it names begin that are of no pool."""


def pool_name(config: Config) -> str:
    """Return the collectors of a configuration, and the schedds that it is kept to.

    Where this host's HTCondor configuration names the collectors, it is read in a child process;
    raises QueryError.  Empty: nothing names them.
    """
    if config.replay.file:
        return f"{RECORDING}{Path(config.replay.file).resolve()}"
    named = ",".join(config.pool.collectors)
    if not named:
        named, _ = child.run(configured_collectors, deadline_s=_READ_S)
    hosts = ",".join(sorted({_with_port(host) for host in named.replace(",", " ").split()}))
    schedds = ",".join(sorted(config.pool.schedds))
    return f"{hosts} schedds {schedds}" if hosts and schedds else hosts


def configured_collectors() -> str:
    """Return the collectors of this host's HTCondor configuration; empty if it has none."""
    import htcondor2  # noqa: PLC0415 (only ever in a child)

    htcondor2.reload_config()
    return str(htcondor2.param.get("COLLECTOR_HOST", ""))


def _with_port(host: str) -> str:
    """Return a collector with its port, and the name behind that port if it is shared.

    >>> _with_port("CM.example.org"), _with_port("cm:9620?sock=collector")
    ('cm.example.org:9618', 'cm:9620?sock=collector')
    """
    name, port = host_and_port(host.lower())
    _, shared, behind = host.partition("?")
    return f"{name}:{port}{shared}{behind}"
