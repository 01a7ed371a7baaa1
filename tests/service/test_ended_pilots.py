"""A pilot whose end its factory's event log told: its ads stay until they expire."""

from __future__ import annotations

from pathlib import Path

import pytest

from gwmond.explain.answers import answers
from gwmond.explain.reasons import Explanation
from gwmond.model.pilots.file_facts import PilotName, QueueEvent, QueueState
from gwmond.model.poll.snapshot import Snapshot
from gwmond.model.times import SECOND_US
from gwmond.reports.sites.sites import cpu_rows
from gwmond.service.poller import Poller, remembered
from gwmond.service.pool.explainer import Explainer
from gwmond.service.pool.known_entries import EMPTY
from tests.build.polls import ENTRY, Polls, job
from tests.pool.feign import glidein, partitionable_slot
from tests.sources.make import NOW, heard

KILLED = QueueEvent(
    "/x/condor_activity_20231114_frontend.main.log",
    PilotName(instance="glidein", entry="entry", user="fe", cluster=7, proc=0),
    QueueState.KILLED,
    (NOW + 30) * SECOND_US,
)


@pytest.fixture
def polls(tmp_path: Path) -> Polls:
    """A busy pilot, which is a job of its factory."""
    found = Polls(tmp_path)
    own = glidein(GLIDEIN_Schedd="factory", GLIDEIN_ClusterId=7, GLIDEIN_ProcId=0)
    slot = partitionable_slot("p", started=NOW - 600, now=NOW, glidein=own, Cpus=0)
    for kind in ("slots", "templates", "explain"):
        found.pool.answers["cm", kind] = [heard(slot, NOW)]
    old = {"StatsLastUpdateTime": NOW, "StatsLifetime": 86400}
    found.pool.answers["cm", "collector"] = [old]
    waits = job(12) | {"ClusterId": 4, "ProcId": 0, "JobUniverse": 5}
    found.pool.answers["<ap1>", "job"] = [waits]
    return found


def units(found: Snapshot) -> tuple[int | None, ...]:
    row = cpu_rows(found)[ENTRY]
    return row.registered_pilots, row.provisioned_units, row.spare_units


def explained(polls: Polls, snapshot: Snapshot) -> Explanation:
    poll = snapshot, polls.pool.gatherer.last(), polls.pool.targets
    access = polls.pool.access(polls.pool.clock.tick())
    return answers(Explainer(polls.config, poll, access, NOW).job("4.0"))[0]


def test_it_has_no_slots(polls: Polls) -> None:
    """Nor do jobs wait for one of its jobs to end; a command that polls once says the same."""
    before = polls.poll(0)
    assert units(before) == (1, 8, 72)
    assert explained(polls, before).name == "pilots_busy"
    polls.keeper.add_facts([KILLED], None)
    polls.poll(60)
    after = polls.poll(60)
    assert units(after) == (0, 0, 80)
    assert after.silent == {"p"}
    assert explained(polls, after).name == "nothing_requested"
    memory = remembered(polls.config).memory
    assert memory.ended == {"p": NOW + 30}
    once = Poller(polls.config, polls.pool, None, memory, reasons=False).poll()
    assert units(once) == (0, 0, 80)
    assert units(Poller(polls.config, polls.pool, None, EMPTY, reasons=False).poll())[0] == 1
