"""A ledger of nine pilots that ended, of which seven failed validation.

Eight are known from their outputs, and lived for ``LIFE`` seconds; the ninth only advertised.
"""

from __future__ import annotations

from gwmond.ledger.store import Ledger
from gwmond.model.facts import Pilot
from gwmond.model.pilot_life import Validation
from gwmond.model.pilots.file_facts import Failure, FailureClass, PilotName, PilotOutput
from gwmond.model.times import SECOND_US
from gwmond.pilots.accounting import PilotAccounting
from gwmond.pilots.life.rules import Rules
from tests.build.accounting import Steps
from tests.build.play import shown

BASE = 1_700_006_400  # 2023-11-15 00:00 UTC
LIFE = 1200
HOSTILE = "<b>|n*"
NODE = Failure(FailureClass.WN_RESOURCE, "main/validate_node.sh")
PROXY = Failure(FailureClass.VO_PROXY, "check_proxy.sh")
PILOTS = [
    *(("e1", "n1", NODE, 8),) * 3,
    ("e1", "n1", PROXY, 8),
    ("e1", "n1", None, 8),  # passed
    ("e1", HOSTILE, NODE, 4),
    ("e2", "n1", PROXY, 1),
    ("e2", "n2", None, 1),  # passed
]


def _output(number: int, entry: str, node: str, failure: Failure | None, cores: int) -> PilotOutput:
    name = PilotName(
        *("factory", "instance", entry, number, 0, "schedd", "frontend", "main"),
        site="Site",
        node=node,
    )
    return PilotOutput(
        f"job.{number}.0.out",
        name,
        BASE * SECOND_US,
        (BASE + LIFE) * SECOND_US,
        validation=Validation.FAILED if failure else Validation.PASSED,
        failure=failure,
        activations=None if failure else 0,
        cores=cores,
        memory_mib=cores * 1000,  # half as many canonical units
    )


def _advertised(heard: int) -> Pilot:
    ad = shown("glidein_1_2@n3", BASE - 1_700_000_400, factory_job="schedd#99.0", entry="e2")
    return ad._replace(
        size=None,
        node="n3",
        last_heard=BASE + heard,
        dies=BASE + LIFE,
        failed=True,
        failure="check_proxy.sh",
    )


def write(url: str) -> None:
    """Make the ledger."""
    with Ledger.open(url) as writer:
        steps = Steps(PilotAccounting(writer.load(), Rules(refresh_us=0)), writer)
        steps.add_facts([_output(n, *failure) for n, failure in enumerate(PILOTS)])
        for at, ads in ((0, [_advertised(0)]), (LIFE, [_advertised(900)]), (86_400, [])):
            now_us = (BASE + at) * SECOND_US
            steps.add_ads(now_us, 60 * SECOND_US, ads, complete=True)
            steps.settle(now_us, now_us)
            steps.store(now_us)
