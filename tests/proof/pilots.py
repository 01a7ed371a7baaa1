"""The pilots of the scenario, and what their pool needs beside its usual configuration."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tests.pool.adtext import Value

UNIT_MIB = 2000

POOL_CONFIG = """
JOB_EPOCH_HISTORY = $(SPOOL)/epoch_history
# The second schedd's shadows and history helpers are not told its local name.
SCHEDD2_ENVIRONMENT = "_CONDOR_JOB_EPOCH_HISTORY=$(LOCAL_DIR)/spool2/epoch_history"
# One shadow for each run of each job, so that runs can be seen from outside.
SHADOW_WORKLIFE = 0
# A killed pilot's ads are gone after at most twice that.  It is much more than a daemon that is
# killed again and again may take for a usual gap between two updates.  Pilots say so (attrs_of).
CLASSAD_LIFETIME = 60
# A job prefers by its own rank; else it is offered to the killed pilot as long as that has ads.
NEGOTIATOR_PRE_JOB_RANK = 0
# A pilot is given one job in each cycle.
NEGOTIATOR_INTERVAL = 2
NEGOTIATOR_CYCLE_DELAY = 1
NEGOTIATOR_MIN_INTERVAL = 1
"""


class Machine(NamedTuple):
    """One pilot: its cores (with a unit's memory each), site, entry, and how long it lives.

    ``own`` is the category of the time in which it runs no job.
    """

    cores: int
    site: str
    entry: str
    own: str = "pilot_overhead"
    lifetime: float = 3600.0


PILOTS: dict[str, Machine] = {
    "steady": Machine(8, "Alpha", "alpha_main"),
    "idle": Machine(1, "Alpha", "alpha_main", own="decision_problem"),
    "graceful": Machine(4, "Beta", "beta_main"),
    "killed": Machine(4, "Beta", "beta_other"),
    "drained": Machine(4, "Gamma", "gamma_main"),
    "sick": Machine(4, "Gamma", "gamma_main"),
    "brief": Machine(1, "Gamma", "gamma_main", lifetime=40),
    "shelter": Machine(8, "Alpha", "alpha_other"),
}


def config_of(name: str, directory: Path) -> str:
    """Additional configuration: all run on one host, and are nodes of their own."""
    text = f"NETWORK_HOSTNAME = {name}.node.test\n"
    return text + (f"USER_JOB_WRAPPER = {directory / 'wrapper.sh'}\n" if name == "sick" else "")


def attrs_of(name: str) -> dict[str, Value]:
    """What the pilot says of itself."""
    number = list(PILOTS).index(name)
    return {
        "ProofPilot": name,
        "ClassAdLifetime": 60,
        "GLIDEIN_Site": PILOTS[name].site,
        "GLIDEIN_Entry_Name": PILOTS[name].entry,
        "GLIDEIN_Factory": "proof_factory",
        "GLIDEIN_Name": "proof",
        "GLIDEIN_Schedd": "schedd_glideins1@factory.test",
        "GLIDEIN_ClusterId": 100 + number // 4,
        "GLIDEIN_ProcId": number % 4,
        "GLIDECLIENT_Name": "proof_frontend.main",
        "GLIDECLIENT_Group": "main",
    }
