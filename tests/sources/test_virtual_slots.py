"""Virtual slots of a real startd, configured as GlideinWMS does (GLIDEIN_Resource_Slots).

The lines are those of creation/web_base/condor_startup.sh for ``ioslot,2,200,<type>``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from gwmond.config.settings import Attributes
from gwmond.model.facts import Size
from gwmond.model.runs.run_facts import JobRecord
from gwmond.sources import child, tasks
from gwmond.sources.htcondor.access import LiveAccess, Terms
from gwmond.sources.htcondor.histories.history_cursor import HistoryLimits
from gwmond.sources.round import CLAIMS, SLOTS, STARTDS
from tests.pool.condor import CondorPool
from tests.sources import history_scenario

CORES, MEMORY_MIB = 8, 20000
GWMS = """
EXTRA_SLOTS_NUM = 0
EXTRA_CPUS_NUM = 0
EXTRA_MEMORY_MB = 0
EXTRA_SLOTS_START = True
NUM_CPUS = 8+$(EXTRA_SLOTS_NUM)+$(EXTRA_CPUS_NUM)
MEMORY = 20000+$(EXTRA_MEMORY_MB)
SLOT_TYPE_1 = cpus=8
NUM_SLOTS = 1
MACHINE_RESOURCE_GPUs = 0
MACHINE_RESOURCE_ioslot = 2
EXTRA_SLOTS_NUM = $(EXTRA_SLOTS_NUM)+$(MACHINE_RESOURCE_ioslot)
IS_SLOT_ioslot = SlotTypeID==3
EXTRA_SLOTS_START = ifThenElse((SlotTypeID==3), TARGET.Requestioslot>0, ($(EXTRA_SLOTS_START)))
START = ($(START)) && ($(EXTRA_SLOTS_START))
"""
STATIC = """
SLOT_TYPE_3 = cpus=1, ioslot=1, ram=100
SLOT_TYPE_3_PARTITIONABLE = FALSE
NUM_SLOTS_TYPE_3 = $(MACHINE_RESOURCE_ioslot)
"""
PARTITIONABLE = """
SLOT_TYPE_3 = cpus=$(MACHINE_RESOURCE_ioslot), ioslot=$(MACHINE_RESOURCE_ioslot), ram=200
SLOT_TYPE_3_PARTITIONABLE = TRUE
NUM_SLOTS_TYPE_3 = 1
"""


def ask(pool: CondorPool, kind: str) -> Any:
    terms = Terms(LiveAccess(), pool.collector, Attributes(), time.time())
    ((found, _), _) = child.run(tasks.ask, terms, kind, deadline_s=60)
    return found


@pytest.fixture(scope="module", params=[STATIC, PARTITIONABLE], ids=["static", "partitionable"])
def pool(request: pytest.FixtureRequest, htcondor: str) -> Iterator[CondorPool]:
    with CondorPool(htcondor=htcondor) as running:
        config = GWMS + request.param
        running.start_pilot("p1", cores=CORES, memory=MEMORY_MIB, config=config)
        running.wait_for("all slots", lambda: len(running.query("Startd")) > 1)
        yield running


def test_a_pilot_has_the_cores_that_are_there(pool: CondorPool) -> None:
    """Eight cores and all of the memory; nothing of a virtual slot is free for jobs."""
    found = ask(pool, SLOTS)
    (pilot,) = found.pilots
    assert pilot.size == Size(CORES, MEMORY_MIB)
    assert pilot.free == (Size(CORES, MEMORY_MIB - 200),)
    assert {"slot1"}.isdisjoint(pilot.virtual_slots)
    assert pilot.virtual_slots
    assert [sample.slot for sample in found.samples] == ["slot1@p1@pool.test"]
    startds = ask(pool, STARTDS)
    assert [pilot.size for pilot in startds.pilots] in (
        [],
        [None],
    )  # which slots there are: not known


def test_a_job_on_a_virtual_slot(pool: CondorPool) -> None:
    """It takes memory and no cores; all records of it name the slot, of an ordinary job too."""
    schedd = pool.schedds[0]
    pool.submit(schedd, seconds=20, request_ioslot=1, request_memory=50)
    pool.submit(schedd, seconds=20)

    def both() -> Any:
        found = ask(pool, SLOTS).pilots
        return found[0] if found and len(found[0].jobs) == 2 else None

    pilot = pool.wait_for("both jobs", both)
    assert sorted(job.cores for job in pilot.jobs) == [0, 1]
    assert all(job.memory_mib > 0 for job in pilot.jobs)
    assert [free.cores for free in pilot.free] == [CORES - 1]
    claims = pool.wait_for(
        "claims", lambda: found if len(found := ask(pool, CLAIMS).records) == 2 else None
    )
    assert sorted(record.is_on(pilot.virtual_slots) for record in claims) == [False, True]
    daemon = history_scenario.daemon(pool, "Schedd", schedd)

    def history() -> tuple[JobRecord, ...] | None:
        args = LiveAccess(), daemon, "history", "", HistoryLimits(), time.time()
        ((answer, _), _) = child.run(tasks.records, *args, deadline_s=60)
        return answer.records if len(answer.records) == 2 else None

    records = pool.wait_for("their records", history, 120)
    assert sorted(record.is_on(pilot.virtual_slots) for record in records) == [False, True]
