"""Sites that a test sets up in a real pool: feigned pilots, what the frontend says, real jobs."""

from __future__ import annotations

import itertools
from typing import Any

from tests.daemon.running import patient, polls
from tests.pool import feign
from tests.pool.adtext import literal
from tests.pool.condor import CondorPool
from tests.pool.sandbox import USERS

#: A feigned pilot of this many cores is as many canonical units.
PILOT = 8


#: What takes ads out again that this command puts into a collector.
INVALIDATING = {
    "UPDATE_STARTD_AD": "INVALIDATE_STARTD_ADS",
    "UPDATE_AD_GENERIC": "INVALIDATE_ADS_GENERIC",
    "UPDATE_LICENSE_AD": "INVALIDATE_LICENSE_ADS",
    "UPDATE_MASTER_AD": "INVALIDATE_MASTER_ADS",
}

Tables = dict[str, dict[str, object]]

#: Configuration in which pilots' time is settled within seconds.
QUICK: Tables = {
    **patient(4),
    "pilots": {
        "settle_delay": "3s",
        "outcome_wait": "20s",
        "silent_wait": "20s",
        "verdict_after": "10s",
        "end_tolerance": "5s",
        "assumed_end": "8s",
        "claims_every": "3s",
    },
}

#: The same for tests of what is decided by the interval of polls: as often as it is configured.
PUNCTUAL: Tables = {**QUICK, **polls(4)}

#: Attributes of real pilots.
REAL = {"GLIDEIN_Site": "Real", "GLIDEIN_Entry_Name": "e-Real"}


def pledged(**cores: int) -> Tables:
    """Configuration in which sites have promised this many cores, and so canonical units."""
    return {"site": {"pledge": [{"site": site, "cores": n} for site, n in cores.items()]}}


def at(*sites: str) -> str:
    """Requirements of a job that may run at these sites."""
    return " || ".join(f"TARGET.GLIDEIN_Site =?= {literal(site)}" for site in sites)


class Scene:
    """What is feigned in one pool; an entry is called ``e-SITE`` unless said otherwise."""

    def __init__(self, pool: CondorPool) -> None:
        self.pool = pool
        self._numbers = itertools.count(1)

    def pilot(
        self,
        site: str,
        *,
        busy: int = 0,
        cpus: int = PILOT,
        gpus: int = 0,
        entry: str = "",
        client: str = "frontend.main",
        name: str = "",
        started: float | None = None,
        **more: Any,
    ) -> str:
        """Feign a pilot with ``busy`` one-core jobs; its name. With a name it is updated."""
        name = name or f"p{next(self._numbers)}-{site}@feigned".lower()
        glidein = feign.glidein(entry or f"e-{site}", site, client=client)
        memory = 2048 * cpus
        children = [
            feign.dynamic_slot(name, n + 1, glidein=glidein, started=started) for n in range(busy)
        ]
        whole = feign.partitionable_slot(
            name,
            cpus=cpus,
            memory=memory,
            gpus=gpus,
            children=children,
            glidein=glidein,
            started=started,
            **more,
        )
        self.pool.advertise([whole, *children], "UPDATE_STARTD_AD")
        return name

    def withdraw(self, name: str) -> None:
        """Take a feigned pilot out of the collector, as it does itself when it ends."""
        self.pool.invalidate("Machine", "INVALIDATE_STARTD_ADS", f'Machine == "{name}"')

    def clear(self) -> None:
        """Take all feigned ads and all jobs out of the pool, for those who use the pool next."""
        for kind, command in feign.COMMANDS.items():
            if kind != "DaemonMaster":  # the pool's own masters are of this kind
                self.pool.invalidate(kind, INVALIDATING[command])
        for schedd in self.pool.schedds:
            for user in USERS:
                self.pool.remove(schedd, user=user)
        self.pool.wait_for("an empty pool", self._is_empty)

    def _is_empty(self) -> bool:
        return not any(self.pool.jobs(schedd) for schedd in self.pool.schedds)

    def resource(self, site: str, entry: str = "", **said: Any) -> None:
        """Feign what the frontend says of the site's entry (tests.pool.feign.glideresource)."""
        ad = feign.glideresource(entry or f"e-{site}", site, **said)
        self.pool.advertise([ad], "UPDATE_AD_GENERIC")

    def jobs(self, n: int, *sites: str, schedd: int = 0, **commands: Any) -> int:
        """Submit jobs that may run at these sites (and, for these are feigned, stay idle)."""
        commands.setdefault("requirements", at(*sites))
        return self.pool.submit(self.pool.schedds[schedd], n, **commands)

    def remove(self, cluster: int, schedd: int = 0) -> None:
        """Remove jobs again."""
        self.pool.remove(self.pool.schedds[schedd], f"ClusterId == {cluster}")
