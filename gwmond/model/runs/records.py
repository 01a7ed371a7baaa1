"""Records of runs of jobs from one source, before their pilot is found.

Units: times are whole microseconds since the epoch, unless a name says seconds.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from gwmond.model.runs.run_facts import RunFact


class JobRecord(NamedTuple):
    """One record of one run of one job; ``fact.pilot`` is None until the pilot is found.

    - ``startd``: the startd's name, what follows the first ``@`` of RemoteHost or of a slot's Name.
    - ``slot``: what precedes it, such as ``slot1_2``; empty where it is not known.
    - ``started``: its DaemonStartTime (epoch seconds, the middle of PublicClaimId), if known.
    - ``factory_job``: its pilot as a job of its factory (``schedd#cluster.proc``), as the job has
      it.
    - ``site``, ``entry``, ``group``, ``factory``: its pilot's, as the job has them, else empty;
      they only count for a pilot that no collector has shown.
    """

    fact: RunFact
    startd: str
    started: int | None = None
    site: str = ""
    entry: str = ""
    group: str = ""
    slot: str = ""
    factory: str = ""
    factory_job: str = ""

    def is_on(self, slots: Collection[str]) -> bool:
        """Return whether it ran on one of these slots, or on a dynamic slot of one."""
        return bool(slots) and self.slot.partition("_")[0] in slots


def group_name(user: str, program: str, batch: str) -> str:
    """Return the name of a job's group, as the ledger has it; the batch may be empty.

    >>> group_name("eve", "run.sh", ""), group_name("eve", "n1", "DAG 7")
    ('eve run.sh', 'eve n1 [DAG 7]')
    """
    return f"{user} {program} [{batch}]" if batch else f"{user} {program}"
