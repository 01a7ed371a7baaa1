"""The answer of each tier; there is always one, and the first that holds comes first."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gwmond
from gwmond.explain.all_jobs import NONE_KNOWN, causes
from gwmond.explain.all_jobs import document as document_of_all
from gwmond.explain.answers import answers
from gwmond.explain.document import document, first_line
from gwmond.explain.evidence import Proof
from gwmond.explain.past import expected, expected_record, waited_s
from gwmond.explain.reasons import Explanation, Mover, Tier
from gwmond.explain.situation import Fate, Situation
from gwmond.model.demand.idle_history import Begun, PastWaits
from gwmond.model.demand.order import ScheddLoad, Submitter
from gwmond.model.demand.waiting_job import (
    Change,
    ChangeKind,
    ConcurrencyLimit,
    Edit,
    Examined,
    JobPlace,
)
from gwmond.model.facts import DemandGroup, EntryKey, Size
from gwmond.model.states import State
from gwmond.reports.render.terminal import PIPED
from gwmond.reports.render.writing import text
from gwmond.reports.sites.sites import SiteRow
from gwmond.sources.htcondor import waiting_job as waiting_job_source
from gwmond.sources.recording.recording import Recording
from tests.build import recordings
from tests.build.waiting import QUOTAS, negotiator, order, place, row, waiting_job

_NOW = 10_000.0
_E = EntryKey("S", "E")


def situation(*places: JobPlace, entry: SiteRow | None = None, **changed: Any) -> Situation:
    missing = changed.pop("missing", ())
    examined = Examined(waiting_job(**changed), places)
    return Situation(examined, {_E: entry} if entry else {}, _NOW, missing)


def edits(*changes: tuple[str, str, ChangeKind, str, str, str]) -> tuple[Edit, ...]:
    """Return what changes of a job open pilots of the entry E, by name, value, kind ..."""
    return (Edit(tuple(Change(*one) for one in changes), ((_E, "f.g"),), True),)


def first(here: Situation) -> Explanation:
    return answers(here)[0]


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"status": 5, "hold_reason": "full disk", "hold_code": 3}, "held"),
        ({"status": 2}, "running"),
        ({"status": 6}, "running"),
        ({"status": 3}, "removed"),
        ({"status": 4}, "completed"),
        ({"universe": 7}, "other_universe"),
        ({"deferred_until": 20_000}, "deferred"),
    ],
)
def test_a_job_that_does_not_wait(changed: dict[str, Any], name: str) -> None:
    found = first(situation(place(), **changed))
    assert (found.tier, found.name) == (Tier.NOT_WAITING, name)


def test_a_schedd_that_starts_no_jobs_of_a_universe() -> None:
    here = situation(universe=7)
    for starts_none, mover in ((frozenset({12}), Mover.YOU), (frozenset({7}), Mover.ACCESS_POINT)):
        here.order = order(load=ScheddLoad(starts_none=starts_none))
        assert (first(here).name, first(here).mover) == ("other_universe", mover)
    assert first(here).text.endswith(
        "ap starts none of these now: START_SCHEDULER_UNIVERSE is false"
    )


def test_a_held_job_says_whose_move_it_is() -> None:
    mine = first(situation(status=5, hold_reason="via condor_hold (by user a)", hold_code=1))
    assert "condor_release" in mine.change
    other = first(situation(status=5, hold_reason="no such file", hold_code=13))
    assert "Mend" in other.change
    assert "no such file" in first_line(situation(), other)


def commands(here: Situation) -> Any:
    made = document(here).record()
    assert isinstance(made, dict)
    return made["commands"]


def test_what_would_change_it_is_a_list_of_commands() -> None:
    """Words and commands are of the same steps; where nothing does it, there are words only."""
    name = ["-name", "ap", "1.0"]
    assert commands(situation(status=5, hold_code=1)) == [
        {"mover": "you", "argv": ["condor_release", *name]}
    ]
    assert commands(situation(status=5, hold_code=13)) == [
        {"mover": "you", "do": "Mend what the reason says"},
        {"mover": "you", "argv": ["condor_release", *name]},
    ]
    assert commands(situation(status=7, has_host=False, vacated=9_000)) == [
        {"mover": "you", "argv": ["condor_hold", *name]},
        {"mover": "nobody: wait", "wait_for": "some seconds", "until": None},
        {"mover": "you", "argv": ["condor_release", *name]},
    ]
    assert commands(situation(status=4)) == []
    limited = situation(place(), rejection="concurrency limit x reached", rejected=9_900)
    assert commands(limited) == [
        {
            "mover": "the pool's administrator",
            "do": "Jobs with the same limit that end, or a higher limit",
        }
    ]


def test_a_limit_that_can_never_be_met() -> None:
    """Nobody uses it, so that jobs which end change nothing."""
    for used, change in ((0.0, "A higher limit, or a job"), (2.0, "Jobs with the same limit that")):
        limits = (ConcurrencyLimit("matlab", 5.0, used),)
        said = "concurrency limit matlab reached"
        found = first(situation(place(), rejection=said, rejected=9_900, limits=limits))
        assert (found.name, found.mover) == ("concurrency_limit", Mover.POOL)
        assert found.change.startswith(change)
        assert ("the job needs 5 of matlab, and no claim" in found.text) == (not used)


def test_a_job_that_nobody_has_looked_at() -> None:
    assert first(situation(since=9_990)).name == "not_considered"
    assert first(situation(since=9_990, rejected=9_995, rejection="no match")).name != (
        "not_considered"
    )
    assert first(situation(since=9_990, rejected=5)).name == "not_considered"


def test_impossible_anywhere() -> None:
    blocked = first(situation(place(blocked=(0,)), place(blocked=(0, 1))))
    assert (blocked.name, blocked.mover, blocked.proof) == ("requirements", Mover.YOU, Proof.PROVEN)
    assert blocked.text.startswith("0 of 2 kinds of pilots pass A. 1 kind pass")
    pair = first(
        situation(
            place(blocked=(0, 1)),
            place(blocked=(1, 2)),
            place(blocked=(0, 2)),
            clauses=("A", "B", "C"),
        )
    )
    assert pair.name == "clauses_together"
    start = "TARGET.RequestDisk <= MY.Disk"
    change = edits(("RequestDisk", "2097152", "request", start, "943718400", "2097152"))
    disk = first(situation(place(refusals=(start,)), edits=change))
    assert (disk.name, disk.mover) == ("too_large", Mover.YOU)
    assert "RequestDisk is 943718400 KiB (900 GiB), and no pilot" in disk.text
    assert disk.text.endswith(f"START asks for {start} (at most 2097152 KiB (2 GiB))")
    opens = "(condor_qedit): opens 1 kind of pilots (E)"
    assert disk.change == f"RequestDisk 943718400 -> 2097152 {opens}"
    refused = first(situation(place(refusals=("VO == 1",))))
    assert (refused.name, refused.mover) == ("start", Mover.FRONTEND)
    late = first(situation(place(remaining_s=3600), walltime_s=7200))
    assert late.name == "too_long"
    assert "1h00m" in late.change
    requests = "TARGET.Memory >= RequestMemory", "TARGET.Cpus >= RequestCpus"
    memory: Any = ("RequestMemory", "16000", "request", requests[0], "64000", "16000")
    cores: Any = ("RequestCpus", "8", "request", requests[1], "64", "8")
    large = first(situation(place(blocked=(0,)), clauses=requests, edits=edits(memory)))
    assert large.name == "too_large"
    assert large.text == "RequestMemory is 64000, and no pilot has that much (at most 16000)"
    assert large.change == f"RequestMemory 64000 -> 16000 {opens}"
    (fits,) = edits(("RequestMemory", "9000", "request", requests[0], "64000", "9000"))
    elsewhere = edits(("Requirements", "true", "clause", "A", "", ""), (*memory[:5], "32000"))
    both_fit = fits._replace(free=2), *edits(memory), *elsewhere
    soon = first(situation(place(blocked=(0,)), clauses=requests, edits=both_fit))
    assert soon.text == large.text
    words = f"RequestMemory 64000 -> 9000 (or 16000 on an empty pilot) {opens}"
    assert soon.change == f"{words}, and fits 2 slots free now"
    assert soon.steps[0].command[-1] == "9000"
    gpus = edits(("RequestGPUs", "0", "request", requests[0], "3", "0"))
    none = first(situation(place(blocked=(0,)), clauses=requests, edits=gpus))
    assert none.text == "RequestGPUs is 3, and no pilot has any"
    assert none.change == f"RequestGPUs 3 -> 0, if it can do without {opens}"
    changed = situation(
        *(place(blocked=(0, 1)),),
        clauses=requests,
        size=Size(64, 64000),
        edits=edits(memory, cores),
    )
    both = first(changed)
    assert both.name == "too_large"
    assert "64 cores and 64000 MiB; the largest pilot, of E, has 8 cores and 16000 MiB" in both.text
    name = ["-name", "ap", "1.0"]
    assert commands(changed) == [
        {"mover": "you", "argv": ["condor_qedit", *name, "RequestMemory", "16000"]},
        {"mover": "you", "argv": ["condor_qedit", *name, "RequestCpus", "8"]},
    ]


@pytest.mark.parametrize("clause", ["TARGET.HasDocker", "TARGET.Licences >= RequestLicences"])
def test_what_no_pilot_offers(clause: str) -> None:
    """A job that needs it is not told to do without."""
    found = first(situation(place(blocked=(0,)), clauses=(clause,)))
    assert (found.name, found.mover) == ("requirements", Mover.FRONTEND)


def test_what_asks_for_more_is_not_too_large() -> None:
    """START of pilots for jobs of several cores; the smaller change is the first to be told."""
    start = "TARGET.RequestCpus >= 4"
    here = situation(
        place(refusals=(start,)), edits=edits(("RequestCpus", "4", "request", start, "1", "4"))
    )
    assert (first(here).name, first(here).mover) == ("too_small", Mover.YOU)
    assert first(here).text == (
        f"START of 1 of 1 kind of pilots that meet its Requirements refuses it: {start}: "
        "RequestCpus is 1"
    )


def test_a_wrong_word_comes_before_start_and_start_before_a_clause_less() -> None:
    clause, start = 'TARGET.GLIDEIN_Site == "Nebrasca"', "TARGET.VO"
    value: Any = ("Requirements", "x", "value", clause, "Nebrasca", "Nebraska")
    without: Any = ("Requirements", "true", "clause", clause, "", "")
    pilots = place(refusals=(start,)), place(blocked=(0,))
    for change, name in ((value, "unknown_site"), (without, "start")):
        here = situation(*pilots, clauses=(clause,), edits=edits(change))
        assert first(here).name == name
    here = situation(place(blocked=(0,)), clauses=(clause,), edits=edits(without))
    assert first(here).name == "requirements"
    assert commands(here)[0]["argv"][-2:] == ["Requirements", "true"]


def test_impossible_is_what_is_said_to_be() -> None:
    """Of a pair it is counted how many pass both.

    What lives too short, and matches, is the nearest.
    """
    pilots = place(blocked=(0, 1)), place(blocked=(0, 1)), place(blocked=(2, 3))
    pair = first(situation(*pilots, clauses=("A", "B", "C", "D")))
    assert pair.text == "1 of 3 kinds of pilots pass both A and B"
    named = first(situation(place(blocked=(0,)), clauses=("TARGET.HasRequested",)))
    assert named.text.startswith("0 of 1 kind of pilots pass TARGET.HasRequested")
    short, refused = place(remaining_s=60), place(refusals=("VO == 1",))
    assert first(situation(short, refused, walltime_s=600)).name == "too_long"


def test_nodes_of_an_entry_differ() -> None:
    """The known empty pilot does not match, but pilots that are busy do."""
    texts = "TARGET.OpSysMajorVer == 8", "TARGET.Cpus >= RequestCpus"
    other = place(blocked=(0,))
    busy = place(kind="slot", blocked=(1,), number=3, size=Size(0, 0), only_full=True)
    entry = row(registered_pilots=7)
    found = first(situation(other, busy, entry=entry, clauses=texts))
    assert found.name == "pilots_busy"
    assert found.text == "It could run on 3 pilots (E), but none has 1 core and 2000 MiB free"
    nothing_left = busy._replace(refusals=("MY.Cpus > 0", "RequestCpus <= MY.Cpus"))
    assert first(situation(other, nothing_left, entry=entry, clauses=texts)).name == "pilots_busy"
    claimed = place(kind="slot", takes_jobs=False, number=2)
    assert first(situation(other, claimed, clauses=texts)).name == "pilots_busy"
    licences = busy._replace(size=Size(2, 2000))
    assert "but none has enough left: TARGET.Cpus >= RequestCpus" in (
        first(situation(other, licences, clauses=texts)).text
    )
    for never in (
        busy._replace(blocked=(0, 1), only_full=False),
        busy._replace(whole=Size(8, 1000), only_full=False),
        busy._replace(remaining_s=60),
    ):
        here = situation(other, never, entry=entry, clauses=texts, walltime_s=600)
        assert first(here).name == "requirements"


def test_pilots_that_are_drained_take_no_jobs() -> None:
    """They have free cores, and no job there has to end; a busy pilot of the kind may take it."""
    entry, drained = row(registered_pilots=2), place(kind="slot", takes_jobs=False, closed=True)
    found = first(situation(place(), drained, entry=entry))
    assert (found.name, found.change) == ("retiring", "A new pilot at E")
    busy = place(kind="slot", takes_jobs=False)
    assert first(situation(place(), drained, busy, entry=entry)).name == "pilots_busy"


@pytest.mark.parametrize("small", [{"blocked": (0,)}, {"whole": Size(1, 1000)}])
def test_a_drained_pilot_that_is_too_small_is_not_what_it_waits_for(small: dict[str, Any]) -> None:
    """Its disk, or its size: such as the factory tells of would take the job."""
    entry = row(registered_pilots=1, state=State.FULL)
    told = place(evidence="estimated")
    for refusals in ((), ("false",)):
        drained = place(kind="slot", takes_jobs=False, closed=True, refusals=refusals, **small)
        found = first(situation(told, drained, entry=entry))
        assert (found.tier, found.proof) == (Tier.NO_PILOT, Proof.ESTIMATED)


def test_pilots_that_retire_take_no_jobs_however_short() -> None:
    """What START asks of time alone no smaller walltime changes; a new pilot does."""
    start, entry = "time() < GLIDEIN_ToRetire", row(registered_pilots=2)
    for walltime_s in (None, 600):
        retired = place(kind="slot", refusals=(start,))
        found = first(situation(place(), retired, entry=entry, walltime_s=walltime_s))
        assert (found.name, found.change) == ("retiring", "A new pilot at E")
    lives = place(kind="slot", refusals=("MaxWall < GLIDEIN_ToDie - time()",))
    found = first(situation(place(asks=("maxwall",)), lives, entry=entry))
    assert (found.name, found.change) == ("too_short_lived", "A new pilot at E")


def test_slots_that_refuse_for_now() -> None:
    """They have room, so that is not what is missing."""
    entry = row(registered_pilots=2)
    ill = place(kind="slot", refusals=("NodeIsHealthy",), number=2)
    found = first(situation(place(), ill, entry=entry))
    assert (found.name, found.mover) == ("refused_now", Mover.FRONTEND)
    assert found.text.endswith("2 of 2 slots there refuse it as they are now: NodeIsHealthy")
    busy = place(kind="slot", takes_jobs=False)
    assert first(situation(place(), ill, busy, entry=entry)).name == "pilots_busy"


def test_what_is_not_proven() -> None:
    """That the negotiator may not have come."""
    assert first(situation(place(), since=9_990)).proof is Proof.ESTIMATED


def test_what_was_said_before_it_ran_is_past() -> None:
    """A job that was evicted waits anew: the negotiator's word is of before."""
    here = situation(
        *(place(), place(kind="slot", takes_jobs=False)),
        entry=row(registered_pilots=2),
        rejection="concurrency limit x reached",
        rejected=5_000,
        since=6_000,
        runs=1,
    )
    here.order = order(negotiators=(negotiator(9_000),))
    assert [one.name for one in answers(here)] == ["pilots_busy"]
    assert waited_s(here) == 4_000


def test_what_could_not_be_read_is_said() -> None:
    found = first(situation(place(blocked=(0,)), missing=("cm slots",)))
    assert found.proof is Proof.NOT_KNOWN
    nothing = first(situation(place(), missing=("cm slots",), entry=None))
    assert nothing.name == "unexplained"
    assert "cm slots could not be read" in nothing.text
    assert first(situation()).name == "no_site"


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("concurrency limit x reached", "concurrency_limit"),
        ("submitter limit exceeded", "submitter_limit"),
        ("Group quota exceeded", "quota"),
    ],
)
def test_policy(said: str, name: str) -> None:
    found = first(
        situation(place(), entry=row(registered_pilots=3), rejection=said, rejected=9_000)
    )
    assert (found.tier, found.name) == (Tier.POLICY, name)


@pytest.mark.parametrize(
    ("changed", "name", "mover"),
    [
        ({"state": State.DOWN}, "down", Mover.SITE),
        (
            {"state": State.PROVISIONING_BOTTLENECK, "reason": "factory_limit", "limits": "5 of 5"},
            *("factory_limit", Mover.FACTORY),
        ),
        (
            {
                "state": State.PROVISIONING_BOTTLENECK,
                "reason": "held_pilots",
                "hold_reason": "the proxy expired",
                "hold_share": 1.0,
            },
            "held_pilots",
            Mover.FACTORY,
        ),
        ({"state": State.UNKNOWN, "reason": "pilots"}, "pilots", Mover.POOL),
        ({"state": State.UNKNOWN, "reason": "matching"}, "matching", Mover.POOL),
        ({"state": State.INSUFFICIENT_DEMAND}, "assigned_elsewhere", Mover.WAIT),
        ({"state": State.SATURATED}, "no_pilots", Mover.FRONTEND),
    ],
)
def test_no_pilot_where_it_could_run(changed: dict[str, Any], name: str, mover: Mover) -> None:
    found = first(situation(place(evidence="estimated"), entry=row(**changed)))
    assert (found.tier, found.name, found.mover) == (Tier.NO_PILOT, name, mover)
    unknown = changed["state"] is State.UNKNOWN
    assert found.proof is (Proof.NOT_KNOWN if unknown else Proof.ESTIMATED)


def test_pilots_that_wait_where_none_registers_are_no_hope() -> None:
    """Nothing is known of their validation: that is said, and nothing is proven."""
    never = row(state=State.FILLING, pending_pilots=1, unregistered_pilots=2, barren=True)
    found = first(situation(place(), entry=never))
    assert (found.name, found.tier) == ("run_but_do_not_register", Tier.NO_PILOT)
    assert (found.mover, found.proof) == (Mover.SITE, Proof.NOT_KNOWN)
    assert "by the factory's count 2 pilots ran there, and did not register" in found.text
    one = first(situation(place(), entry=never._replace(unregistered_pilots=1)))
    assert "by the factory's count 1 pilot ran there, and did not register" in one.text
    assert "not known" in found.text


def test_pilots_on_their_way_and_there() -> None:
    waiting = row(state=State.FILLING, pending_pilots=3)
    assert first(situation(place(), entry=waiting)).tier is Tier.ON_THEIR_WAY
    busy = row(state=State.FULL, registered_pilots=2, pending_pilots=3)
    found = first(situation(place(), place(kind="slot", takes_jobs=False), entry=busy))
    assert (found.name, found.tier) == ("pilots_busy", Tier.PILOTS_THERE)
    assert "none has 1 core and 2000 MiB free" in found.text
    assert found.mover is Mover.WAIT
    few = busy._replace(state=State.PROVISIONING_BOTTLENECK, reason="few_requested")
    found = first(situation(place(), entry=few))
    assert (found.name, found.mover) == ("pilots_busy", Mover.FRONTEND)
    assert "There could be more pilots: Pilots start soon, but" in found.text
    hit = row(
        state=State.PROVISIONING_BOTTLENECK, reason="factory_limit", limits="count=1, limit=1"
    )
    found = first(situation(place(), place(kind="slot", takes_jobs=False), entry=hit))
    assert (found.name, found.mover) == ("pilots_busy", Mover.FACTORY), "a pilot that came since"
    assert "(count=1, limit=1)" in found.text
    free = place(kind="slot", number=4)
    others = first(situation(place(), free, entry=busy, rejection="no more pie"))
    assert others.name == "behind_others"
    assert "4 of 4 slots" in others.text
    short = place(kind="slot", remaining_s=60)
    assert first(situation(place(), short, entry=busy, walltime_s=600)).name == "too_short_lived"


def test_a_clause_that_no_pilot_is_seen_to_pass() -> None:
    """Where only an ad of the factory shows the entry, the clause may be met."""
    known = place(evidence="estimated", untold=(0, 1))
    others = place(kind="slot", blocked=(0, 1)), place(entry=EntryKey("S", "F"), blocked=(0,))
    text = ". Whether pilots there pass A is not known, and no pilot that is seen does"
    for entry in (row(pending_pilots=3), row(state=State.DOWN)):
        here = situation(known, *others, entry=entry)
        hopeless, hope = answers(here)
        assert (hopeless.name, hopeless.proof) == ("requirements", Proof.ESTIMATED)
        assert hopeless.text.startswith("0 of 2 kinds of pilots are known to pass A")
        assert hopeless.text.endswith(". Whether pilots at E do is not known")
        assert hope.text.endswith(text)
        passed = place(entry=EntryKey("S", "G"), blocked=(1,))
        told = known._replace(untold=())
        for places in ((known, *others, passed), (known,), (told, *others)):
            assert first(situation(*places, entry=entry)) not in (hopeless, hope)
            assert "is seen" not in first(situation(*places, entry=entry)).text


@pytest.mark.parametrize(
    "clause",
    [
        'TARGET.GLIDEIN_Site is "S"',
        'TARGET.GLIDEIN_CMSSite == "T2_US_S"',
        'regexp("^S", TARGET.GLIDEIN_Site)',
        "stringListIMember(TARGET.GLIDEIN_Site, MY.Where)",
    ],
)
def test_a_site_of_whose_pilots_nothing_is_known(clause: str) -> None:
    """The job asks for it by name, and nothing else is known to keep it from there."""
    other = EntryKey("T", "F")
    without = edits(("Requirements", "true", "clause", clause, "", ""))
    refused = place(entry=other, blocked=(0,))

    def found(*texts: str, entry: SiteRow, blocked: tuple[int, ...] = (0,)) -> Explanation:
        pilot = refused._replace(blocked=blocked)
        said = ("where", "Elsewhere,S"), ("other", "S")
        return first(situation(pilot, entry=entry, clauses=texts, edits=without, words=said))

    waiting = row(pending_pilots=1)
    hope = found(clause, entry=waiting)
    assert (hope.name, hope.proof, hope.mover) == ("pilots_pending", Proof.NOT_KNOWN, Mover.WAIT)
    assert "where it might run (E)" in hope.text
    assert hope.text.endswith(". What its pilots are like is not known")
    none = found(clause, entry=row(state=State.DOWN))
    assert (none.name, none.proof) == ("down", Proof.NOT_KNOWN)
    for wanted in ((clause, "TARGET.Matlab"), ('TARGET.GLIDEIN_Site isnt "S"',), ('Site is "SU"',)):
        blocked = tuple(range(len(wanted)))
        assert found(*wanted, entry=waiting, blocked=blocked).name == "requirements"


def test_more_disk_than_any_pilot_has_that_is_seen() -> None:
    """No factory tells of disks, so pilots that nobody has seen may have any: the last hope."""
    start = "TARGET.RequestDisk <= MY.Disk"
    unseen = place(evidence="estimated", entry=EntryKey("S", "new"), untold=(0,))
    change: Any = ("RequestDisk", "100", "request", start, "90000000", "100")
    here = situation(place(refusals=(start,)), unseen, edits=edits(change))
    assert (first(here).name, first(here).proof) == ("too_large", Proof.ESTIMATED)
    assert first(here).text.endswith(". Whether pilots at new do is not known")
    seen = situation(place(refusals=(start,)), unseen, place(), edits=edits(change))
    assert first(seen).name != "too_large"


def test_slots_that_match_and_are_not_taken() -> None:
    """Who is ahead is counted; if nobody is, or nobody negotiates, that is said."""
    free, busy = place(kind="slot", number=4), row(registered_pilots=2)
    here = situation(place(), free, entry=busy)
    here.order = order(negotiators=(negotiator(9_000),))
    found = first(here)
    assert (found.name, found.proof) == ("behind_others", Proof.ESTIMATED)
    assert "2 of 4 other users with idle jobs are ahead by effective priority" in found.text
    assert "also such as could not run where it could" in found.text
    here = situation(place(), free, entry=busy)
    here.order, here.idle = order(negotiators=(negotiator(9_000),)), ()
    assert (first(here).name, first(here).proof) == ("slots_untaken", Proof.ESTIMATED)
    assert "nobody is ahead of it in the order that could take one (2 of 4" in first(here).text
    here.order = order(submitters={"alice@pool": Submitter("", 1.0, 0.0, 1.0, 1)}, own_ahead=0)
    assert (first(here).name, first(here).mover) == ("slots_untaken", Mover.POOL)
    here.order = order(negotiators=())
    assert first(here).name == "no_negotiator"


def test_the_negotiator_has_not_come_to_it() -> None:
    """However long its cycles are; what the negotiator rejected since, it has looked at."""
    here = situation(place(), entry=row(registered_pilots=2), since=9_000)
    here.order = order(negotiators=(negotiator(8_000),))
    found = first(here)
    assert (found.name, found.mover) == ("not_considered", Mover.WAIT)
    assert "the last negotiation began 33m20s ago" in found.text
    assert [(step.until, step.words) for step in found.steps] == [(None, "The next negotiation")]
    here.order = order(negotiators=(negotiator(8_900)._replace(period_s=1_200),))
    assert [step.until for step in first(here).steps] == [10_100]
    here.order = order(negotiators=(negotiator(8_000),))
    here.order = order(negotiators=(negotiator(9_001),))
    assert first(here).name == "pilots_busy"
    stale = negotiator(8_000)._replace(as_of=8_900)
    here.order = order(negotiators=(stale,))  # what it has done since is not known
    assert first(here).name == "pilots_busy"
    here.order = order(negotiators=(stale._replace(as_of=9_000),))
    assert first(here).name == "not_considered"
    here.now += 4000
    here.order = order(negotiators=(negotiator(8_000),))
    assert first(here).mover is Mover.POOL
    here.job = here.job._replace(rejected=9_500, rejection="no match found")
    assert first(here).name == "pilots_busy"


def test_limits_that_the_order_has() -> None:
    here = situation(place(), entry=row(registered_pilots=2))
    here.order = order(load=ScheddLoad(100, 100), negotiators=(negotiator(9_000),))
    assert first(here).name == "schedd_limit"
    assert "ap runs 100 jobs, and no more than 100 (MAX_JOBS_RUNNING)" in first(here).text
    group = waiting_job(submitter="cms.erin@pool", size=Size(7, 2000))
    full = {"cms": QUOTAS["cms"]._replace(used=11.0)}
    here = Situation(Examined(group, (place(),)), {}, _NOW, order=order(groups=full))
    assert first(here).name == "quota"
    assert "The group cms uses 11 of its quota of 10" in first(here).text
    none = QUOTAS["cms"]._replace(quota=0.0, used=0.0, never=True)
    for quota in (none, none._replace(surplus=True)):
        low = {"cms": quota, "cms.low": none._replace(never=False)}
        group = group._replace(submitter="cms.low.erin@pool")
        here = Situation(Examined(group, (place(),)), {}, _NOW, order=order(groups=low))
        said = "The group cms, above the job's own, uses 0 of its quota of 0"
        assert (first(here).text == said) == (not quota.surplus)


def test_each_slot_has_one_fate() -> None:
    """A slot refuses the job for now only if its pilot, empty and young, would take it.

    That is so where only its size is in the way, and the whole pilot is large enough.
    """
    slots = [
        place(kind="slot", number=1),
        place(kind="slot", number=2, refusals=("MaxWall < GLIDEIN_ToDie - time()",)),
        place(kind="slot", number=4, blocked=(0,), only_full=True),
        place(kind="slot", number=8, takes_jobs=False),
        place(kind="slot", number=16, refusals=("VO == 1",)),
        place(kind="slot", number=32, takes_jobs=False, entry=EntryKey("S", "other")),
        place(kind="slot", number=64, remaining_s=60),
        place(kind="slot", number=128, takes_jobs=False, closed=True),
    ]
    busy = row(registered_pilots=1)
    clauses = ("TARGET.Memory >= RequestMemory",)
    empty = place(asks=("maxwall",))
    here = situation(empty, *slots, entry=busy, clauses=clauses, walltime_s=600)
    assert [here.fates[fate] for fate in Fate] == [1, 66, 4, 8 + 32, 128, 16]
    assert here.fates.total() == 255
    late = situation(empty, slots[1], entry=busy)
    assert first(late).name == "too_short_lived"
    both = situation(empty, slots[1], slots[3], entry=busy)
    assert [one.name for one in answers(both)] == ["too_short_lived", "pilots_busy"]


def test_what_other_sites_would_open() -> None:
    """Their capacity in canonical units; entries in downtime open nothing."""
    texts = ('TARGET.GLIDEIN_Site == "T"',)
    here = situation(place(blocked=(0,)), entry=row(capacity_units=80), clauses=texts)
    assert [(one.change, here.units(one.entries)) for one in here.openings] == [("also at S", 80)]
    assert "also at S" in str(document(here).record()) + str(list(document(here).parts()))
    down = situation(place(blocked=(0,)), entry=row(state=State.DOWN.value), clauses=texts)
    assert down.openings == []
    soon = situation(place(blocked=(0,), remaining_s=60), clauses=texts, walltime_s=600)
    assert soon.openings == []


def test_a_site_that_start_does_not_find_in_a_job_is_a_wrong_name() -> None:
    """START looks whether the site is among those that the job wants; no site is called so."""
    clause = 'stringListMember(GLIDEIN_Site,TARGET.DESIRED_Sites,",")'
    other = place(refusals=('TARGET.WantGroup is "ligo"',))
    words = (("desired_sites", "Nebrasca"), ("wantgroup", "main"))
    places = other, other, place(refusals=(clause,))
    assert first(situation(*places, words=words)).name == "start"  # no site is spelt alike
    new: Any = ("DESIRED_Sites", '"Nebraska"', "value", clause, "Nebrasca", "Nebraska")
    answer = first(situation(*places, words=words, edits=edits(new)))
    assert (answer.name, answer.mover) == ("unknown_site", Mover.YOU)
    assert 'no site is called "Nebrasca"; did you mean "Nebraska"?' in answer.text


def test_the_clause_of_start_is_told_that_alone_refuses_it() -> None:
    """Where it wants to run one clause does; elsewhere that one, and that it wants another site."""
    elsewhere = place(refusals=("TARGET.Refused isnt true", "MY.Site is TARGET.Wanted"))
    here = situation(elsewhere, elsewhere, place(refusals=("TARGET.Refused isnt true",)))
    assert "START of 3 of 3 kinds" in first(here).text
    assert "refuses it: TARGET.Refused isnt true" in first(here).text
    more = place(refusals=("TARGET.WantGroup is 1", "MY.Site is TARGET.Wanted"))
    here = situation(more, more, elsewhere, place(refusals=("TARGET.Refused isnt true",)))
    assert "START of 2 of 4 kinds" in first(here).text


def test_what_a_job_has_is_told_where_start_wants_something_else() -> None:
    refused = situation(
        place(refusals=('TARGET.WantGroup is "main"',)), words=(("wantgroup", "lonely"),)
    )
    assert 'The WantGroup of the job is "lonely"' in first(refused).text


def test_what_a_job_asks_for_by_name_is_told_where_no_pilot_has_it() -> None:
    """The value is that of the job's own attribute, not of one that the clause asks of pilots."""
    clause = "stringListMember(TARGET.Site, MY.DESIRED_Sites) || Lab == TARGET.Lab"
    words = ("desired_sites", "Tamise"), ("site", "home"), ("lab", "b")
    answer = first(situation(place(blocked=(0,)), clauses=(clause,), words=words))
    assert answer.name == "requirements"
    assert 'The DESIRED_Sites of the job is "Tamise". The Lab of the job is "b"' in answer.text
    assert "home" not in answer.text


def test_the_expected_start() -> None:
    """By the jobs ahead, the rate and how far that was off; of few jobs nothing is expected."""
    waiting = row(state=State.FILLING, registered_pilots=2, pending_pilots=3)
    here = situation(place(), entry=waiting, submitted=9_900)
    assert list(expected(here)) == ["Expected start: not known: no ledger could be read."]
    noon = here.now = (
        1_795_000_000.0  # every ten minutes a job begins that was queued an hour before
    )
    begun = [Begun(noon - 600 * n - 3600, noon - 600 * n) for n in range(600)]
    here.past = PastWaits({here.job.user: begun}, {"E": [600.0] * 20})
    here.order = order(own_ahead=5)
    start, pilots = expected(here)
    assert re.search("within (5[0-9]m|1h0[0-9]m).* as likely as not", start), start
    assert "(estimated)" in start
    assert "Pilots on their way to E: half of 20 waited 10m00s or less" in pilots
    known = expected_record(here)
    assert known is not None
    assert known["start"]["number"] > 500
    least, most = known["start"]["nine_tenths_seconds"]
    assert 3000 <= least <= most <= 4200
    here.past = PastWaits({here.job.user: begun[:8]}, {})
    assert "too little data (" in next(expected(here))
    here.past = PastWaits({}, {})
    assert "E: too little data: the queue's records of 0 pilots" in list(expected(here))[1]


def test_all_idle_jobs_by_reason() -> None:
    """Groups of one reason are added up; a job counts by the least that it takes of a pilot."""
    small, large = Size(1, 2000), Size(64, 2000)
    group = DemandGroup("ap", "cms", "x", "[]", 10, small, None)
    busy = situation(place(), entry=row(registered_pilots=2))
    nowhere = situation(place(blocked=(0,)), size=large)
    here = [
        (group, busy),
        (group._replace(jobs=30, accounting_group="dune"), busy),
        (group._replace(jobs=1, size=large), nowhere),
    ]
    first_cause, second = causes(here, 2000)
    assert (first_cause.reason, first_cause.units, first_cause.jobs) == ("requirements", 64, 1)
    assert (second.reason, second.jobs, second.groups) == ("pilots_busy", 40, 2)
    assert (second.units, second.who, second.largest) == (40, "dune", 30)
    wide = Situation(
        Examined(busy.job._replace(size=Size(1, 3000)), busy.places), busy.entries, _NOW
    )
    (busy_cause,) = causes([(group, busy), (group._replace(jobs=11), wide)], 2000)
    assert "1 core and 3000 MiB free" in busy_cause.example  # of the largest, however alike


def test_all_reasons_fit_into_a_terminal() -> None:
    """Those besides the first are wrapped between words, too."""
    said = "concurrency limit " + "x" * 30
    here = situation(place(), entry=row(registered_pilots=1), rejection=said, rejected=_NOW - 60)
    lines = text(document(here), "table").splitlines()
    also = lines.index("Also true:")
    assert lines[also + 1].startswith("- It could run on 1 pilot (E), but none has 1 core")
    assert max(map(len, lines)) <= PIPED


def test_no_idle_job_is_not_the_same_as_none_known() -> None:
    """Where a queue could not be read, nobody knows whether a job is idle there."""
    read, unread = (document_of_all([], missing, {}) for missing in ((), ("ap demand",)))
    assert text(read, "table") == "No job is idle.\n"
    said = text(unread, "table").splitlines()
    assert said == [NONE_KNOWN, "Not known: ap demand could not be read."]


def test_words_of_a_reason_that_are_withheld_are_null() -> None:
    """As other fields are; a person sees an empty cell."""
    group = DemandGroup("ap1", "cms", "x", "", 3, Size(1, 2000), None)
    (one,) = causes([(group, situation(place()))], 2000)
    for known, example in ((one, one.example), (one._replace(example=""), None)):
        made: Any = document_of_all([known], (), {}).record()
        assert made["reasons"][0]["example"] == example


def test_all_idle_jobs_of_a_recording(
    run: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    file = tmp_path / "replay.toml"
    demo = Path(gwmond.__file__).parent / "data" / "demo.zip"
    file.write_text(f'[replay]\nfile = "{demo}"\n[ledger]\nurl = "{tmp_path}/none.sqlite"\n')
    asked = "explain", "--all", "--ask", "pool", "--config", file
    code, out, err = run(*asked, "--format", "json")
    assert (code, err) == (0, "")
    record = json.loads(out)
    assert sum(one["jobs"] for one in record["reasons"]) > 100
    assert all(one["example"] and one["units"] > 0 for one in record["reasons"])
    (stop,) = (stop for stop in Recording(str(demo)).tour if stop.link.startswith("explain?job="))
    (job,) = parse_qs(stop.link.partition("?")[2])["job"]
    code, out, err = run("explain", job, "--ask", "pool", "--config", file)
    assert (code, err, "condor_qedit -name" in out) == (0, "", True)
    recording = recordings.make(tmp_path / "r.zip", "epochs", [[]]).path
    file.write_text(f'[replay]\nfile = "{recording}"\n')
    for words in (["1.0"], ["--pilot", "p"], ["--entry", "e"]):
        code, _, err = run("explain", *words, "--config", file)
        assert (code, "neither single jobs nor all of a pilot" in err) == (2, True)


def test_groups_that_are_not_analysed_are_said(
    run: Callable[..., tuple[int, str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of those that match no pilot of a site: not that no pilot is known.

    Jobs beyond the groups that are kept are counted, too.
    """
    file = tmp_path / "replay.toml"
    demo = Path(gwmond.__file__).parent / "data" / "demo.zip"
    text = f'[replay]\nfile = "{demo}"\n[ledger]\nurl = "{tmp_path}/none.sqlite"\n'

    def reasons(more: str = "") -> tuple[dict[str, int], int]:
        file.write_text(text + more)
        place = "--site", "Danube_ce1"
        code, out, _ = run("explain", "--all", *place, "--config", file, "--format", "json")
        record = json.loads(out[out.index("{\n") :])  # after a warning of too many groups
        assert code == 0
        return {one["reason"]: one["jobs"] for one in record["reasons"]}, record["jobs_left_out"]

    analysed, nobody = reasons()
    monkeypatch.setattr(waiting_job_source, "FEW_GROUPS", 0)
    found, _ = reasons()
    assert set(found) - set(analysed) == {"not_analysed"}
    assert sum(found.values()) == sum(analysed.values())
    assert nobody == 0
    few, left_out = reasons("[demand]\nmax_groups = 1\n")
    assert (sum(few.values()) + left_out, left_out > 0) == (sum(found.values()), True)


@given(
    st.lists(
        st.builds(
            place,
            kind=st.sampled_from(["slot", "pilot"]),
            blocked=st.sampled_from([(), (0,), (1,), (0, 1)]),
            refusals=st.sampled_from([(), ("S",)]),
            takes_jobs=st.booleans(),
            remaining_s=st.sampled_from([None, 0, 10**6]),
            evidence=st.sampled_from(["measured", "estimated"]),
        ),
        max_size=4,
    ),
    st.sampled_from([None, *State]),
    st.sampled_from([None, 0, 2]),
    st.sampled_from([None, 600]),
    st.integers(0, 8),
)
def test_no_job_is_without_a_reason(
    places: list[JobPlace],
    state: State | None,
    pilots: int | None,
    walltime: int | None,
    status: int,
) -> None:
    entry = None
    if state is not None:
        entry = row(state=state.value, registered_pilots=pilots, pending_pilots=pilots)
    here = situation(*places, entry=entry, walltime_s=walltime, status=status)
    found = answers(here)
    assert found
    assert [one.tier for one in found] == sorted(one.tier for one in found)
    assert all(one.text and one.change and one.name for one in found)


def test_what_no_negotiator_matches_has_no_slots() -> None:
    """A job of the grid universe waits for none; one of the local universe may run."""
    idle = situation(place(kind="slot"), place(), universe=9)
    (found,) = answers(idle)
    assert (found.name, found.text) == (
        "other_universe",
        "It is of universe 9, the grid universe, whose jobs do not run on pilots",
    )
    assert not idle.fates
    assert "Slots now" not in str(list(document(idle).parts()))
    assert first(situation(place(), universe=12, status=2)).name == "running"
    assert first(situation(place(), universe=9, status=5, hold_reason="full")).name == "held"
    nodes = first(situation(place(kind="slot"), place(), universe=11))
    assert (nodes.name, nodes.proof) == ("slots_untaken", Proof.NOT_KNOWN)


def test_why_a_job_leaves_the_queue_or_stands_still() -> None:
    removed = situation(status=3, hold_reason="it was told to go away")
    assert "leaves the queue: it was told to go away" in first(removed).text
    suspended = situation(status=7)
    assert first_line(suspended, first(suspended)).startswith("SUSPENDED for ")


def test_the_time_to_run_has_passed() -> None:
    """A job whose DeferralWindow has passed never runs, and a clause about time may come true."""
    window = "time() < (DeferralTime + DeferralWindow)"
    missed = first(situation(place(blocked=(0,)), clauses=(window,), deferred_until=6_400))
    assert (missed.name, missed.mover) == ("deferred", Mover.YOU)
    assert "It was to run 1h00m ago (DeferralTime)" in missed.text
    assert [step.command for step in missed.steps] == [
        ("condor_qedit", "DeferralWindow", "86400"),
        ("condor_qedit", "DeferralTime", "10000"),
    ]
    later = first(situation(place(blocked=(0,)), clauses=("time() > 20000",)))
    assert later.name == "requirements"
    assert "It is about time, and may come true later" in later.text


@pytest.mark.parametrize(
    ("changed", "began", "forgotten"),
    [
        ({}, 9_900, True),
        ({}, 9_050, False),  # no negotiation since
        ({"vacated": None}, 9_900, False),
        ({"vacated": 8_001}, 9_900, False),  # vacated, and not held
        ({"rejected": 9_500}, 9_900, False),
        ({"matched": 9_500}, 9_900, False),
    ],
)
def test_a_job_that_was_released_before_its_run_ended(
    changed: dict[str, Any], began: int, forgotten: bool
) -> None:
    """Its schedd offers it no more."""
    job = {"since": 8_000, "rejected": 7_000, "matched": 7_500, "vacated": 9_000} | changed
    examined = Examined(waiting_job(**job), (place(), place(kind="slot")))
    here = Situation(examined, {}, _NOW, order=order(negotiators=(negotiator(began),)))
    found = first(here)
    assert (found.name == "not_offered") is forgotten
    if forgotten:
        assert "its run ended 16m40s ago" in found.text


def test_a_walltime_is_proven_to_be_too_long_only_where_start_asks_for_it() -> None:
    length: dict[str, Any] = {"walltime_s": 7200, "walltime_by": "MaxWallTimeMins"}
    asks = place(remaining_s=3600, asks=("maxwalltimemins",))
    assert first(situation(asks, **length)).proof is Proof.PROVEN
    found = first(situation(asks, asks._replace(asks=("vo",)), **length))
    assert (found.name, found.proof) == ("too_long", Proof.ESTIMATED)
    assert "START does not ask for that" in found.text
    slot = place(kind="slot", remaining_s=60)
    ending = first(situation(place(), slot, walltime_s=600))
    assert (ending.name, ending.proof) == ("too_short_lived", Proof.ESTIMATED)


def test_what_start_asks_for_and_the_job_does_not_have() -> None:
    refused = place(refusals=("TARGET.ProjectName == Team",))
    found = first(situation(refused, lacks=("ProjectName", "Team", "Project")))
    assert found.text.endswith(
        "== Team. The job has no ProjectName. Neither job nor pilot has Team"
    )


def test_nobody_waits_for_a_negotiator_that_is_not_there() -> None:
    examined = Examined(waiting_job(since=9_990), (place(), place(kind="slot")))
    found = first(Situation(examined, {}, _NOW, order=order(negotiators=())))
    assert (found.name, found.mover) == ("no_negotiator", Mover.POOL)


def test_pilots_that_take_no_more_jobs() -> None:
    """What their empty pilots are like is not known: that the job fits none is not."""
    drained = place(kind="slot", takes_jobs=False, refusals=("false",), number=2)
    other = place(entry=EntryKey("S", "other"), blocked=(0,))
    found = first(situation(drained, other))
    assert (found.name, found.tier, found.proof) == ("retiring", Tier.NO_PILOT, Proof.ESTIMATED)
    assert found.text.startswith("It could run on 2 pilots (E)")
    assert found.change == "A new pilot at E"
    assert first(situation(drained._replace(blocked=(0,)), other)).name == "requirements"
    assert first(situation(drained, other, size=Size(48, 2000))).name == "requirements"


def test_pilots_of_another_group_of_an_entry_are_none_that_it_could_run_on() -> None:
    """The kind that it fits and the pilots that run are of the same frontend group."""
    busy = row(state=State.FULL, registered_pilots=2)
    kind = place(evidence="estimated")
    slot = place(kind="slot", takes_jobs=False, refusals=('WantGroup is "main"',))
    others = slot._replace(group="frontend.other")
    assert first(situation(kind, slot, entry=busy)).name == "pilots_busy"
    found = first(situation(kind, others, entry=busy))
    assert (found.tier, found.proof) == (Tier.NO_PILOT, Proof.ESTIMATED)
