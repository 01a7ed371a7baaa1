"""Incidents of real pools, each with its maintainers' diagnosis: what gwmond says of them.

All are feigned: the facts as an incident leaves them, given to the pure functions.  The numbers are
those of the table in docs/truth.md, which also has what is not said yet.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gwmond.explain.evidence import Proof
from gwmond.explain.movers import limited
from gwmond.explain.places import PlaceSituation, place_answers
from gwmond.explain.reasons import Explanation, Mover, Tier
from gwmond.explain.sent_for import sent_for_answers
from gwmond.ledger.reading.failed import validated
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.ledger.store import Ledger
from gwmond.model.demand.waiting_job import GroupOffer, PlaceOffers
from gwmond.model.facts import EntryKey, EntryRequest, FrontendJobs, Hold, JobCount, Limit, Pilot
from gwmond.model.monitor import EntryMonitor, Monitor
from gwmond.model.pilot_life import Category, Validation
from gwmond.model.pilots.stored_pilots import PilotIdentity, PilotRow
from gwmond.model.runs.endings import Ending
from gwmond.model.runs.outcomes import COMPARED, classify, rule_of
from gwmond.model.states import State
from gwmond.model.times import SECOND_US
from gwmond.reports.failures.failures import Failures
from gwmond.reports.pilots.sent_for import sent_for
from gwmond.reports.pilots.story import find
from gwmond.service.pool.contradictions import of_jobs, of_queue, of_requests
from gwmond.sites.held import held
from gwmond.sites.reasons import Signs, explain
from gwmond.sources.htcondor.factory import QueueCount
from gwmond.sources.htcondor.histories.histories import decode
from tests.build import failed_pilots
from tests.build.facts import A, pilot, request
from tests.build.facts import group as demand_group
from tests.build.waiting import place, row
from tests.pool.adtext import Ad
from tests.sources.make import NOW, classad

GOOD, OTHER, LOST = Category.GOODPUT, Category.UNCLASSIFIED, Category.PREEMPTION_BADPUT
BLAMED = Category.MISCONFIGURATION_BADPUT

ASKED = Signs(requested_idle=10, submitted_wait=0, held=0, info_age_s=60, jobs_matching=30)

HELD_LIMIT = "GlideFactoryMonitorStatus_GlideFactoryLimitHeldGlideinsPerEntry"
REASONS = {
    "1 the frontend sees no jobs": (
        Signs(requested_idle=0, submitted_wait=0, held=0, jobs_matching=0),
        "no_match_in_frontend",
    ),
    "8A running and held ones are as many as the limit": (
        ASKED._replace(held=10, started=3, requested_idle=20, total_pilots=90, max_pilots=100),
        "ramp_up",
    ),
    "8C the limit of held pilots": (
        ASKED._replace(held=60, limits=(Limit(HELD_LIMIT, "count=60, limit=50"),)),
        "held_pilots",
    ),
    "8B some pilots are held, and others start": (
        ASKED._replace(held=3, started=5),
        "ramp_up",
    ),
    "9 all pilots are held at the CE": (ASKED._replace(held=12), "held_pilots"),
    "10 requested, never submitted": (ASKED, "not_submitted"),
}


@pytest.mark.parametrize("case", REASONS)
def test_the_reason_of_an_entry_without_pilots(case: str) -> None:
    signs, reason = REASONS[case]
    assert explain(signs) == reason


def test_9_why_pilots_are_held_and_whose_move_that_is() -> None:
    """The job router did not take them: the most frequent reason, with its share, is the CE's."""
    reason = "held: not picked up by the job router"
    found = held([Hold(reason, 26, 11), Hold("the proxy has expired", 4, 1)], running=0, waiting=0)
    assert found is not None
    move = limited(
        row(
            state=State.PROVISIONING_BOTTLENECK,
            reason="held_pilots",
            hold_reason=found.holds[0].reason,
            hold_code=found.holds[0].code,
            hold_share=found.holds[0].pilots / found.pilots,
        )
    )
    assert move is not None
    assert move.mover is Mover.SITE
    assert f"{reason} (92% of those held)" in move.text


EARLY = Ending(over=True, began=True, early=True)
ENDINGS = {
    # A wrapper whose error file stays empty: an exit like the user's own, until it is compared.
    "12 no overlay in Singularity": (
        EARLY._replace(exit_code=255, own_accord=True, completed=True),
        GOOD,
        "exit_nonzero",
    ),
    "13 transfer black hole": (
        Ending(
            over=True, began=False, vacate_code=13, vacate_subcode=256, failed_at="execution_point"
        ),
        OTHER,
        "transfer_input_failed",
    ),
    "14 image cannot be opened": (
        Ending(over=True, began=False, hold_code=45),
        OTHER,
        "image_failed",
    ),
    "18A out of memory": (
        Ending(over=True, began=True, early=False, hold_code=34),
        OTHER,
        "held_for_limit",
    ),
    "18A the others of its pilot": (
        Ending(over=True, began=True, early=False, vacate_code=1008),
        LOST,
        "lost_contact",
    ),
    "19 declared 8 hours, needs 20": (
        Ending(over=True, began=True, early=False, vacate_code=1013, startd_ended=True),
        LOST,
        "pilot_shutdown",
    ),
    "30 shadow and starter out of step": (
        Ending(over=True, began=False, vacate_code=1008, startd_ended=False, disconnected=True),
        OTHER,
        "starter_lost",
    ),
}


@pytest.mark.parametrize("case", ENDINGS)
def test_the_outcome_of_a_run(case: str) -> None:
    """What could be a user's fault as well is not blamed on the place without a comparison."""
    ending, category, outcome = ENDINGS[case]
    found = classify(ending)
    assert found is not None
    assert (found.category, found.label) == (category, outcome)
    if outcome in COMPARED:
        assert rule_of(ending).compared


def test_17_glexec_broken_and_the_site_is_not_known() -> None:
    """The place is to blame, and no site is called Unknown or by an expression."""
    ended = Ending(over=True, began=False, vacate_code=28)
    found = classify(ended)
    assert found is not None
    assert (found.category, found.label) == (BLAMED, "starter_failed")
    for site in ("Unknown", '$$([ifThenElse(true,\\"a\\",\\"b\\")])'):
        ad: Ad = {
            "GlobalJobId": "s#1.0#1",
            "NumShadowStarts": 3,
            "RemoteHost": "slot1_1@glidein_1_2@node",
            "JobCurrentStartDate": NOW,
            "EpochWriteDate": NOW + 9,
            "JOB_GLIDEIN_Site": site,
        }
        record = decode("epochs", classad(ad))
        assert record is not None
        assert not isinstance(record, str)
        assert (record.site, record.startd) == ("", "glidein_1_2@node")


def _asked(**numbers: int) -> EntryRequest:
    whole = EntryMonitor(max_pilots=200)
    return request(A)._replace(monitor=Monitor(**numbers), whole=whole)


def test_1_7_29_counts_that_cannot_be_true() -> None:
    """Told as they are: by whom, what is counted, and what is there."""
    jobs = [JobCount("ap1", "", "idle", 400)]
    (one,) = of_jobs(jobs, [FrontendJobs("frontend", 0, 0, 0)])
    assert one.text == "the frontend counts 0 of the pool's 400 idle jobs: it does not see them"
    queue = [QueueCount(A.entry, "f", "frontend.main", "pending", 5000, 4000)]
    (seven,) = of_queue([_asked(status_idle=0)], queue)
    assert seven.text.endswith("its queue has 5000 (limit 200)")
    (last,) = of_requests([_asked(client_slots_total=0)], [pilot(A)] * 40)
    assert last.text.endswith("40 pilots run there")


ENDED = PilotRow(
    id=1,
    identity=PilotIdentity("p", 0, "", "", EntryKey("", ""), "", "node"),
    start_us=0,
    end_us=3_600_000_000,
    posted_last_heard_us=0,
    steps=(),
    validation=Validation.UNKNOWN,
    assumed={},
    end_source="",
    retire_us=None,
    die_us=None,
    known_until_us=None,
    settled_until_us=0,
    ran_jobs=False,
    closed=True,
    settled={},
)


def failed(group: str, entry: str, test: str | None) -> PilotRow:
    """A pilot that ended; None: its validation passed."""
    return ENDED._replace(
        identity=ENDED.identity._replace(group=group, key=EntryKey("Site" + entry, entry)),
        validation=Validation.PASSED if test is None else Validation.FAILED,
        failure="" if test is None else f"Config {test}",
    )


def _explained(found: Failures, group: str, entry: str, *pilots: Pilot) -> Explanation:
    """What is said of an entry, or of its pilots, with these failures in the ledger."""
    key, groups = EntryKey("S", entry), [demand_group(3)]
    offers = PlaceOffers((GroupOffer(0, True, ("A",), (place(entry=key),), ()),), None)
    known = row(state=State.INSUFFICIENT_DEMAND.value)
    there = [pilot._replace(entry=key, group=group) for pilot in pilots]
    here = PlaceSituation(key, "", known, there, (groups, offers), 0)
    here.common = found.common()
    assert place_answers(here.without_expressions) == place_answers(here)
    return place_answers(here)[0]


FAILS = pilot(A)._replace(failed=True, failure="main/check_proxy.sh")


def test_15_all_pilots_of_all_sites_fail_one_test() -> None:
    """One statement: it is no site's."""
    found = Failures()
    entries = [f"e{number}" for number in range(10)]
    found.take(failed("fe.main", entry, "main/cvmfsexec.sh") for entry in entries for _ in "abc")
    (one,) = found.common()
    assert one.text == (
        "cvmfsexec.sh fails at all 10 entries: the factory's or the frontend's script or "
        "credentials, not a site's"
    )
    assert one.text in found.tables(9)[0].note
    first = _explained(found, "fe.main", "e3", FAILS)
    assert first.text.endswith(f"no job can start there. {one.text}")
    assert (first.name, first.mover) == ("validation_failed", Mover.FACTORY)
    first = _explained(found, "", "e3")
    assert first.text == f"Its pilots fail their validation. {one.text}"
    assert (first.tier, first.mover) == (Tier.NO_PILOT, Mover.FACTORY)
    few = Failures()
    few.take(failed("fe.main", entry, "x.sh" if entry == "e0" else None) for entry in entries)
    assert not few.common(), "one site's failure is a site's"
    first = _explained(few, "fe.main", "e0", FAILS)
    assert (first.name, first.mover) == ("validation_failed", Mover.SITE)


def test_26_all_pilots_of_one_group_fail() -> None:
    """At the same entries those of another group pass: the frontend's credentials."""
    found = Failures()
    entries = [f"e{number}" for number in range(8)]
    found.take(failed("fe.x", entry, "main/check_proxy.sh") for entry in entries)
    found.take(failed("fe.y", entry, None) for entry in entries)
    (one,) = found.common()
    assert one.text == (
        "check_proxy.sh fails for fe.x at all 8 entries, and for no other group there: the "
        "frontend's script or credentials, not a site's"
    )
    first = _explained(found, "fe.x", "e3", FAILS)
    assert first.text.endswith(one.text)
    assert first.mover is Mover.FRONTEND
    other = _explained(found, "fe.y", "e3", FAILS)
    assert other.mover is Mover.SITE


def test_what_pilots_of_the_ledger_fail(tmp_path: Path) -> None:
    """Those that began since, by group, entry and test; one that passed counts, too."""
    url = f"sqlite:///{tmp_path}/ledger.sqlite"
    failed_pilots.write(url)
    node, proxy = "WN_Resource main/validate_node.sh", "VO_Proxy check_proxy.sh"
    group, since_us = "frontend.main", failed_pilots.BASE * SECOND_US
    with Ledger.open(url) as ledger:
        found = validated(ledger, since_us)
        assert not validated(ledger, since_us + 3_600 * SECOND_US)
    assert {of: number for of, number in found.items() if of[2] != "check_proxy.sh"} == {
        (group, "e1", node): 4,
        (group, "e1", proxy): 1,
        (group, "e1", ""): 1,
        (group, "e2", proxy): 1,
        (group, "e2", ""): 1,
    }


@pytest.mark.parametrize("passes", [False, True])
def test_15_a_pilot_that_has_ended(
    passes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What others failed at that time says whose it was; alone it proves nothing of its site."""
    at = ("n1", failed_pilots.NODE, 8)
    there = [("e1", *at), *([("e2", *at)] * 10), ("e3", "n1", None if passes else at[1], 8)]
    monkeypatch.setattr(failed_pilots, "PILOTS", there)
    url = f"sqlite:///{tmp_path}/ledger.sqlite"
    failed_pilots.write(url)
    with LedgerReader.open(url) as reader:
        (row,) = find(reader, "1")
        here = sent_for(reader, row, (failed_pilots.BASE + 9 * 86_400) * SECOND_US)
    first = sent_for_answers(here)[0]
    assert first.name == "validation_failed"
    assert first.mover is (Mover.SITE if passes else Mover.FACTORY)
    assert (first.proof is Proof.NOT_KNOWN) is passes
    assert ("validate_node.sh fails at all 3 entries" in first.text) is not passes
