"""Whose move it is that an entry gets no more pilots: for each reason, and by what is known."""

from __future__ import annotations

import pytest

from gwmond.explain.evidence import Proof
from gwmond.explain.movers import MOVERS, limited, without_pilots
from gwmond.explain.reasons import Mover
from gwmond.model.facts import Reach
from gwmond.model.states import State
from gwmond.sites.reasons import REASONS
from tests.build.waiting import row

STUCK = State.PROVISIONING_BOTTLENECK

BY_REASON = {
    "no_factory": Mover.POOL,
    "frontend_limit": Mover.FRONTEND,
    "frontend_curb": Mover.FRONTEND,
    "factory_limit": Mover.FACTORY,
    "information_too_old": Mover.FACTORY,
    "few_requested": Mover.FRONTEND,
    "ramp_up": Mover.WAIT,
    "not_acknowledged": Mover.WAIT,
    "not_submitted": Mover.FACTORY,
    "schedd_left_out": Mover.ACCESS_POINT,
    "no_match_in_frontend": Mover.FRONTEND,
    "retiring_counted_as_available": Mover.FRONTEND,
    "idle_slots_counted": Mover.FRONTEND,
    "nothing_requested": Mover.FRONTEND,
    "unexplained": Mover.FRONTEND,
}
BY_EVIDENCE = {"run_but_do_not_register", "held_pilots"}


def test_every_reason_has_a_case() -> None:
    assert BY_REASON.keys() | BY_EVIDENCE == {reason.name for reason in REASONS}
    assert BY_REASON.keys() <= MOVERS.keys()


@pytest.mark.parametrize("reason", BY_REASON)
def test_the_mover_of_a_reason(reason: str) -> None:
    found = limited(row(state=STUCK, reason=reason, limits="5 of 5"))
    assert found is not None
    # What the frontend does not see may only be later than the queue.
    other = {"no_match_in_frontend": Proof.ESTIMATED, "unexplained": Proof.NOT_KNOWN}
    proof = other.get(reason, Proof.PROVEN)
    assert (found.name, found.mover, found.proof) == (reason, BY_REASON[reason], proof)
    assert "5 of 5" in found.text
    assert limited(row(state=State.FULL, reason=reason)) is None


@pytest.mark.parametrize(
    ("reach", "mover", "proof"),
    [
        ("here", Mover.SITE, Proof.ESTIMATED),
        ("group", Mover.FRONTEND, Proof.ESTIMATED),
        ("everywhere", Mover.FACTORY, Proof.ESTIMATED),
        ("not_known", Mover.SITE, Proof.NOT_KNOWN),
    ],
)
@pytest.mark.parametrize("state", [STUCK, State.INSUFFICIENT_DEMAND])
def test_the_mover_of_pilots_that_do_not_register(
    state: State, reach: Reach, mover: Mover, proof: Proof
) -> None:
    """Also where other entries are expected to take the jobs: pilots there take none."""
    entry = row(state=state, unregistered_pilots=2, failing_reach=reach, barren=True)
    found = without_pilots(entry)
    assert (found.name, found.mover, found.proof) == ("run_but_do_not_register", mover, proof)
    assert "validation fails: disk" in without_pilots(entry._replace(failing_test="disk")).text


HOLDS = [
    ("CE job put on hold: non-existent route in JOB_ROUTER_ENTRIES or route job limit", 26, "site"),
    ("held: not picked up by the job router", None, "site"),
    ("Account expired in queue H", 26, "site"),
    ('Error connecting to schedd ce.x: SECMAN:2010:Received "DENIED" from server', 0, "site"),
    ("Error connecting to schedd ce.x: AUTHENTICATE:1003:Failed to authenticate", 0, "factory"),
    ("Failed to get expiration time of proxy /x", 4, "factory"),
    ("via condor_hold (by user gfactory)", 1, "factory"),
    ("Unable to initialize user log", 22, "factory"),
    ("The job's remote status is unknown", 16, "site"),
    ("something else", 26, "site"),
    ("something else", 34, ""),
]


@pytest.mark.parametrize(("reason", "code", "mover"), HOLDS)
def test_the_mover_of_held_pilots_is_who_holds_them(
    reason: str, code: int | None, mover: str
) -> None:
    """By the text of the most frequent reason, else by its code; else it is not known."""
    entry = row(state=STUCK, reason="held_pilots", limits="count=60, limit=50")
    found = limited(entry._replace(hold_reason=reason, hold_code=code, hold_share=0.75))
    assert found is not None
    assert (found.name, found.mover) == (
        "held_pilots",
        Mover.SITE if mover == "site" else Mover.FACTORY,
    )
    assert found.proof is (Proof.ESTIMATED if mover else Proof.NOT_KNOWN)
    assert f"{reason} (75% of those held)" in found.text
    assert "count=60, limit=50" in found.text


def test_held_pilots_of_which_no_queue_is_asked() -> None:
    found = limited(row(state=STUCK, reason="held_pilots"))
    assert found is not None
    assert (found.mover, found.proof) == (Mover.FACTORY, Proof.NOT_KNOWN)


def test_pilots_that_wait_where_all_are_held_are_no_hope() -> None:
    """Whatever the entry's state is."""
    entry = row(state=State.INSUFFICIENT_DEMAND, barren=True, hold_reason="x", hold_share=1.0)
    assert without_pilots(entry).name == "held_pilots"
