"""Every reason with what it rests on: nothing to show is never proven, and an estimate is none.

Each reason is made once, then again without what it rests on, or with that as an estimate.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gwmond
from gwmond.explain import reasons
from gwmond.explain.answers import answers
from gwmond.explain.evidence import Proof, could_run, none_runs, of_rows, told
from gwmond.explain.movers import MOVERS, limited, without_pilots
from gwmond.explain.places import place_answers
from gwmond.explain.reasons import Explanation, Reason, Tier
from gwmond.explain.situation import Situation
from gwmond.model.demand.order import Limits, ScheddLoad
from gwmond.model.demand.waiting_job import Change, Edit, Examined, JobPlace
from gwmond.model.facts import EntryKey, Size
from gwmond.model.states import State
from gwmond.reports.sites.sites import SiteRow
from tests.build.places import FITTING
from tests.build.places import group as _group
from tests.build.places import here as at_place
from tests.build.waiting import order, place, row, waiting_job

NOW = 10_000.0
ENTRY = EntryKey("S", "E")
EXPLAIN = Path(gwmond.__file__).parent / "explain"
FULL = row(state=State.FULL.value, registered_pilots=2)
STUCK = row(state=State.PROVISIONING_BOTTLENECK.value, reason="nothing_requested")
SLOT = place(kind="slot", size=Size(2, 4000))
BUSY = place(kind="slot", size=Size(0, 0), takes_jobs=False, blocked=(0,), only_full=True)


def job(*places: JobPlace, entry: SiteRow | None = None, **changed: Any) -> Situation:
    keys = ("order", "site", "untried")
    more = {key: changed.pop(key) for key in keys if key in changed}
    missing = changed.pop("missing", ())
    rows = {ENTRY: entry} if entry else {}
    return Situation(Examined(waiting_job(**changed), places), rows, NOW, missing, **more)


def _mended(*change: Any) -> dict[str, Any]:
    """A job that a change mends, which was tried."""
    return {"edits": (Edit((Change(*change),), ((ENTRY, "f.g"),), sure=True),)}


AT_SITE = 'TARGET.GLIDEIN_Site == "Nebrasca"'
#: What the queue, the schedd or the negotiator say themselves: whatever else could not be read.
SAID: dict[str, dict[str, Any]] = {
    "held": {"status": 5},
    "running": {"status": 2},
    "removed": {"status": 3},
    "completed": {"status": 4},
    "not_offered": {"status": 7, "vacated": 9_000, "has_host": False},
    "other_universe": {"universe": 7},
    "deferred": {"deferred_until": 20_000},
    "concurrency_limit": {"rejected": 9_500, "rejection": "concurrency limit x reached"},
    "submitter_limit": {"rejected": 9_500, "rejection": "submitter limit exceeded"},
    "quota": {"rejected": 9_500, "rejection": "group quota exceeded"},
    "schedd_left_out": {"order": order(load=ScheddLoad(curbed=True))},
    "schedd_limit": {"order": order(load=ScheddLoad(100, 100))},
}
#: What rests on places, rows of entries, or slots.
SEEN: dict[str, tuple[tuple[JobPlace, ...], dict[str, Any]]] = {
    "too_long": (
        (place(remaining_s=60, asks=("walltime",)),),
        {"walltime_s": 600, "walltime_by": "walltime"},
    ),
    "start": ((place(refusals=("VO == 1",)),), {}),
    "too_large": (
        (place(blocked=(0,)),),
        {"clauses": ("TARGET.Memory >= RequestMemory",), "size": Size(1, 64000)},
    ),
    "too_small": (
        (place(refusals=("TARGET.RequestCpus >= 4",)),),
        _mended("RequestCpus", "4", "request", "TARGET.RequestCpus >= 4", "1", "4"),
    ),
    "clauses_together": (
        (place(blocked=(0, 1)), place(blocked=(1, 2)), place(blocked=(0, 2))),
        {"clauses": ("A", "B", "C")},
    ),
    "requirements": ((place(blocked=(0,)),), {}),
    "unknown_site": (
        (place(blocked=(0,)),),
        _mended("Requirements", "x", "value", AT_SITE, "Nebrasca", "Nebraska")
        | {"clauses": (AT_SITE,)},
    ),
    "no_site": ((), {"site": "Q", "entry": FULL}),
    "not_analysed": ((), {"untried": 3}),
    "pilots_pending": ((place(),), {"entry": row(state=State.FILLING.value, pending_pilots=1)}),
    "nothing_requested": ((place(),), {"entry": STUCK}),
    "pilots_busy": ((place(), BUSY), {"entry": FULL}),
    "refused_now": ((place(), place(kind="slot", refusals=("X",))), {"entry": FULL}),
    "too_short_lived": (
        (place(), place(kind="slot", remaining_s=60, refusals=("time() + TARGET.Wall < ToDie",))),
        {"walltime_s": 600, "entry": FULL},
    ),
    "no_negotiator": ((place(), SLOT), {"order": order(negotiators=()), "entry": FULL}),
}
#: What is an inference, or not known, whatever can be shown.
INFERRED: dict[str, tuple[tuple[JobPlace, ...], dict[str, Any]]] = {
    "not_considered": ((place(),), {"since": 9_990}),
    "retiring": ((place(kind="slot", takes_jobs=False, refusals=("X",)),), {}),
    "no_pilot_known": ((), {"entry": FULL}),
    "assigned_elsewhere": ((place(),), {"entry": row(state=State.INSUFFICIENT_DEMAND.value)}),
    "unexplained": ((place(),), {}),
    "behind_others": ((place(), SLOT), {"order": order(), "entry": FULL}),
    "slots_untaken": (
        (place(), SLOT),
        {"order": order(submitters={}), "universe": 11, "entry": FULL},
    ),
}
#: What keeps a group of idle jobs from a place, or the whole place from its jobs.
AT_PLACE: dict[str, dict[str, Any]] = {
    "requirements": {"found": ((_group(), (place(blocked=(1,)),)),)},
    "start": {"found": ((_group(), (place(refusals=("VO == 1",)),)),)},
    "too_long": {"found": ((_group(walltime_s=61), (place(remaining_s=60),)),)},
    "nothing_requested": {"found": (FITTING,), "pilots": (), "startd": "", "entry": STUCK},
    "pilots_pending": {
        "found": (FITTING,),
        "pilots": (),
        "startd": "",
        "entry": row(state=State.FILLING.value, pending_pilots=1),
    },
    "no_negotiator": {"found": (FITTING,), "negotiators": ()},
    "no_idle_job": {"limits": Limits(schedds={"ap": ScheddLoad()})},
}


def one(found: list[Explanation], name: str) -> Explanation:
    return next(answer for answer in found if answer.name == name)


def test_only_one_module_calls_anything_proven() -> None:
    who = [path.name for path in EXPLAIN.glob("*.py") if "Proof.PROVEN" in path.read_text()]
    assert who == ["evidence.py"]


def test_each_reason_why_a_job_waits_has_a_case() -> None:
    every = {of.name for of in vars(reasons).values() if isinstance(of, Reason)}
    live = {"submitter_ceiling", "could_start"}  # test_quotas.py, and jobs that are planned
    assert every - live <= SAID.keys() | SEEN.keys() | INFERRED.keys()


@pytest.mark.parametrize("name", SAID)
def test_what_was_said_is_proven_by_that(name: str) -> None:
    """Also where something else could not be read."""
    for missing in ((), ("x",)):
        found = one(answers(job(place(), missing=missing, **SAID[name])), name)
        assert found.proof is Proof.PROVEN


@pytest.mark.parametrize("name", SEEN)
def test_what_was_seen_is_proven_by_that_alone(name: str) -> None:
    """Not where something could not be read, nor by estimates: but that a clause is not met."""
    places, more = SEEN[name]
    found = one(answers(job(*places, **more)), name)
    assert found.proof is Proof.PROVEN
    if found.tier is not Tier.POLICY:
        assert one(answers(job(*places, missing=("x",), **more)), name).proof is Proof.NOT_KNOWN
    estimated = [
        of._replace(evidence="estimated") if of.kind == "pilot" else of
        for of in places
        if of.kind == "pilot" or of.matches or of.refusals
    ]
    entry = more.get("entry")
    guessed = more | ({"entry": entry._replace(evidence="estimated")} if entry else {})
    after = one(answers(job(*estimated, **guessed)), name)
    sure = not places or all(of.blocked or of.kind == "slot" for of in places)
    shown = sure or name in {"no_negotiator", "refused_now", "too_short_lived"}
    assert (after.proof is Proof.PROVEN) == shown, after


@pytest.mark.parametrize("name", INFERRED)
def test_an_inference_is_never_proven(name: str) -> None:
    places, more = INFERRED[name]
    assert one(answers(job(*places, **more)), name).proof is not Proof.PROVEN


@pytest.mark.parametrize("name", AT_PLACE)
def test_what_keeps_jobs_from_a_place(name: str) -> None:
    def answer(**changed: Any) -> Explanation:
        known = AT_PLACE[name] | changed
        return one(place_answers(at_place(*known.pop("found", ()), **known)), name)

    found, entry = AT_PLACE[name].get("found", ()), AT_PLACE[name].get("entry")
    assert answer().proof is Proof.PROVEN
    assert answer(missing=("x",)).proof is Proof.NOT_KNOWN
    if found:
        guess = [(of, tuple(p._replace(evidence="estimated") for p in at)) for of, at in found]
        blocked = all(p.blocked for _, at in found for p in at)
        assert (answer(found=guess).proof is Proof.PROVEN) == blocked
    else:
        assert answer(limits=Limits()).proof is Proof.NOT_KNOWN
    if entry is not None and name in MOVERS:
        assert answer(entry=entry._replace(evidence="estimated")).proof is Proof.ESTIMATED


@pytest.mark.parametrize("reason", [*MOVERS, "held_pilots", "run_but_do_not_register"])
def test_no_state_that_is_an_estimate_proves_whose_move_it_is(reason: str) -> None:
    entry = row(state=State.PROVISIONING_BOTTLENECK.value, reason=reason, evidence="estimated")
    if reason == "run_but_do_not_register":
        entry = entry._replace(barren=True, unregistered_pilots=2)
    found = limited(entry)
    assert found is not None
    assert found.proof is not Proof.PROVEN
    for state in State:
        assert without_pilots(entry._replace(state=state.value)).proof is not Proof.PROVEN


def test_nothing_proves_nothing() -> None:
    assert {could_run(()), none_runs(()), of_rows(), told(()), told(None)} == {Proof.NOT_KNOWN}
