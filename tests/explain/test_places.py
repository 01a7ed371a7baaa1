"""Why a pilot or an entry has no job: the answer of each rule; obstacles add up."""

from __future__ import annotations

from typing import Any

import pytest

from gwmond.explain.evidence import Proof
from gwmond.explain.place_document import place_document, place_line
from gwmond.explain.places import PlaceSituation, place_answers
from gwmond.explain.reasons import Explanation, Mover
from gwmond.model.demand.order import Limits, Negotiator, ScheddLoad
from gwmond.model.demand.waiting_job import JobPlace
from gwmond.model.facts import DemandGroup, Rejection, Size
from gwmond.model.states import State
from gwmond.reports.render.writing import text
from tests.build.places import AT, FITTING, group, here, pilot
from tests.build.waiting import place, row


def first(situation: PlaceSituation) -> Explanation:
    return place_answers(situation)[0]


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"failed": True, "failure": "disk"}, "validation_failed"),
        ({"free": (), "jobs": (Size(8, 16000),)}, "busy"),
        ({"jobs": (Size(1, 2000),) * 2, "idle_claims": 1, "free": ()}, "busy"),
        ({"jobs": (Size(1, 2000),) * 2, "idle_claims": 2}, "claimed_idle"),
        ({"accepting": False, "retires": 9_000}, "retiring"),
        ({"accepting": False}, "retiring"),
    ],
)
def test_a_pilot_that_takes_no_jobs(changed: dict[str, Any], name: str) -> None:
    """Whatever is idle."""
    assert first(here(FITTING, pilots=(pilot(**changed),))).name == name
    assert first(here(pilots=(pilot(**changed),))).name == name


def test_busy_pilots_of_an_entry_that_a_limit_keeps_from_more() -> None:
    """The limit, its number, and whose it is."""
    hit = "GlideClientLimitTotalGlideinsPerEntry: count=6, limit=6"
    found = {"registered_pilots": 1, "reason": "frontend_limit", "limits": hit}
    limited = row(state=State.PROVISIONING_BOTTLENECK.value, **found)
    busy = (pilot(free=(), jobs=(Size(8, 16000),)),)
    answer = first(here(FITTING, pilots=busy, startd="", entry=limited))
    assert (answer.name, answer.mover) == ("busy", Mover.FRONTEND)
    assert "count=6, limit=6" in answer.text
    assert "limit" in answer.change
    full = limited._replace(state=State.FULL.value)
    assert first(here(FITTING, pilots=busy, startd="", entry=full)).mover is Mover.WAIT
    assert first(here(FITTING, pilots=busy, entry=limited)).mover is Mover.WAIT


@pytest.mark.parametrize(
    ("places", "changed", "name", "mover"),
    [
        ((place(blocked=(1,)),), {}, "requirements", Mover.USERS),
        ((place(refusals=("VO == 1",)),), {}, "start", Mover.FRONTEND),
        ((place(blocked=(0,)),), {"size": Size(9, 1)}, "too_large", Mover.USERS),
        ((place(remaining_s=60),), {"walltime_s": 61}, "too_long", Mover.USERS),
        ((), {}, "not_examined", Mover.USERS),
    ],
)
def test_no_job_could_run_there(
    places: tuple[JobPlace, ...], changed: dict[str, Any], name: str, mover: Mover
) -> None:
    """The obstacle of most jobs is the answer; without idle jobs that is the answer."""
    other = group(1), (place(refusals=("X",)),)
    found = first(here(other, (group(**changed), places)))
    assert (found.name, found.mover, found.proof) == (name, mover, Proof.PROVEN)
    assert found.text.startswith("0 of 4 idle jobs could run there. 3 of 4: ")
    assert first(here()).name == "no_idle_job"
    unread = first(here(missing=("ap demand",)))
    assert unread.proof is Proof.NOT_KNOWN
    assert unread.text.endswith("is not known")


@pytest.mark.parametrize(
    ("places", "changed", "name"),
    [
        ((place(),), {"size": Size(3, 2000)}, "remainder_too_small"),
        ((place(),), {"size": Size(1, 4001)}, "remainder_too_small"),
        ((place(),), {"walltime_s": 3601}, "too_short_lived"),
        ((place(), place(kind="slot", refusals=("Night",))), {}, "refused_now"),
        ((place(), place(kind="slot", blocked=(1,))), {}, "refused_now"),
    ],
)
def test_jobs_fit_an_empty_pilot_only(
    places: tuple[JobPlace, ...], changed: dict[str, Any], name: str
) -> None:
    found = first(here((group(**changed), places)))
    assert found.name == name
    assert "could run on an empty pilot, but none on what is free" in found.text


def test_nobody_gives_jobs() -> None:
    """Without a negotiator, with a late one, before its turn; else others come first."""
    young = pilot(started=9_990)
    assert first(here(FITTING, negotiators=())).name == "no_negotiator"
    assert (
        first(here(FITTING, negotiators=(Negotiator("cm", None, 9_000),))).name == "negotiator_late"
    )
    two = Negotiator("a", None, 9_000), Negotiator("b", None, 9_990)
    assert first(here(FITTING, negotiators=two)).name == "not_given"
    known = Negotiator("cm", None, 9_000)
    slow, old = known._replace(period_s=400), known._replace(as_of=9_250)  # its ad is not newer
    for one in (slow, old):
        assert first(here(FITTING, negotiators=(one,))).name == "not_given"
    assert first(here(FITTING, negotiators=(known._replace(as_of=9_350),))).name == (
        "negotiator_late"
    )
    for unknown in (None, (Negotiator("cm", None, None),)):
        found = first(here(FITTING, negotiators=unknown))
        assert (found.name, found.proof) == ("not_given", Proof.ESTIMATED)
    assert first(here(FITTING, pilots=(young,))).name == "new"
    assert first(here(FITTING, pilots=(young,), startd="")).name == "not_given"


def test_what_the_negotiator_said() -> None:
    """A limit that it named, or that is advertised, keeps jobs; else its last words are quoted."""
    said = Rejection("concurrency limit user.alice reached", 9_000, 3)
    limited = here((group(rejections=(said,)), (place(),)))
    found = first(limited)
    assert (found.name, found.proof) == ("concurrency_limit", Proof.PROVEN)
    assert "3 idle jobs fit what is free, but for a limit. The negotiator said: con" in found.text
    assert found.change == "Jobs with the same limit that end, or a higher limit"
    hidden = first(limited.without_expressions)
    assert (hidden.name, "alice" in hidden.text) == ("concurrency_limit", False)
    full = Limits({}, {"ap": ScheddLoad(5, 5)})
    assert first(here(FITTING, limits=full)).name == "schedd_limit"
    both = here(FITTING, (group(rejections=(said,)), (place(),)))
    assert [one.name for one in place_answers(both)] == ["not_given"]
    quoted = here(FITTING, FITTING, words=(("no match found", 2),))
    text = "6 idle jobs fit what is free, and none was given to it; the negotiator's last word: "
    assert text + '"no match found" of 4' in first(quoted).text
    assert "no match found" not in first(quoted.without_expressions).text


def test_an_entry_without_pilots() -> None:
    """Down comes first; then whether any job could run there; then what keeps pilots away."""

    def answer(*found: tuple[DemandGroup, tuple[JobPlace, ...]], **changed: Any) -> str:
        entry = row(**changed)
        return first(here(*found, pilots=(), startd="", entry=entry)).name

    limit = {"state": State.PROVISIONING_BOTTLENECK, "reason": "frontend_limit"}
    assert answer(FITTING, state=State.DOWN) == "down"
    assert answer(state=State.DOWN) == "down"
    assert answer(FITTING, **limit) == "frontend_limit"
    assert answer(FITTING, pending_pilots=2) == "pilots_pending"
    assert answer((group(), (place(blocked=(0,)),)), **limit) == "requirements"
    assert answer(FITTING, state=State.INSUFFICIENT_DEMAND) == "assigned_elsewhere"
    assert first(here(FITTING, pilots=(), startd="")).name == "unexplained"
    never = {"unregistered_pilots": 2, "barren": True, "pending_pilots": 1}
    assert answer(FITTING, **never) == "run_but_do_not_register"


def test_pilots_of_an_entry_are_taken_together() -> None:
    """One with room is enough; jobs that run are counted."""
    full = pilot(name="q", free=(), jobs=(Size(8, 16000),))
    found = here(FITTING, pilots=(full, pilot()), startd="")
    assert first(found).name == "not_given"
    assert place_line(found, first(found)).startswith("Entry E of S HAS 1 JOB: 3 idle jobs fit")


def test_a_pilot_ends_when_its_ad_says() -> None:
    """To the second, not in the steps in which pilots are grouped."""
    soon = pilot(dies=int(AT) + 450, remaining_s=0)
    assert "It ends in 7m30s." in text(place_document(here(FITTING, pilots=(soon,))), "table")


def test_all_forms() -> None:
    """A document has the obstacles of all idle jobs, which add up, and what was not read."""
    situation = here(
        FITTING, (group(5), (place(blocked=(0,)),)), missing=("cm2 slots",), entry=row()
    )
    made = place_document(situation)
    shown = text(made, "table")
    assert shown.startswith("Pilot p HAS NO JOB: 3 idle jobs fit what is free")
    for part in ("cm2 slots could not be read", "requirements", "cm ended its last cycle 10s ago"):
        assert part in shown
    record: Any = made.record()
    assert sum(one["jobs"] for one in record["obstacles"]) == record["jobs_idle"] == 8
    assert record["groups"][0]["elsewhere"] == ["F"]
