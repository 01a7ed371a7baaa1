"""Whose move it is that an entry gets no more pilots: for each reason, and by what is known."""

from __future__ import annotations

import pytest

from gwmond.explain.movers import MOVERS, comes_to_nothing, limited, without_pilots
from gwmond.explain.situation import Mover, Proof
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
    assert (found.name, found.mover, found.proof) == (reason, BY_REASON[reason], Proof.PROVEN)
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
    entry = row(state=state, unregistered_pilots=2, registered_pilots=0, failing_reach=reach)
    found = without_pilots(entry)
    assert (found.name, found.mover, found.proof) == ("run_but_do_not_register", mover, proof)
    assert comes_to_nothing(entry)
    assert "validation fails: disk" in without_pilots(entry._replace(failing_test="disk")).text
    assert not comes_to_nothing(entry._replace(registered_pilots=2))
