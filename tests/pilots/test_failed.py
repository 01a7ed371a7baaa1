"""Pilots that only advertise that their validation failed, alone and with what else tells."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from gwmond.model.facts import Pilot, Size
from gwmond.model.pilot_life import Assumption, Validation
from gwmond.model.pilots.pilot_facts import (
    FailedAdFacts,
    Origin,
    OutputFacts,
    PilotFacts,
    RunBounds,
)
from gwmond.model.pilots.stored_pilots import PilotIdentity
from gwmond.model.times import SECOND_US
from gwmond.pilots.memory.failed import follow
from gwmond.pilots.memory.open_pilot import OpenPilot
from gwmond.pilots.memory.sizes import Sizes
from gwmond.reports.stored.stored_pilot import AsOf, StoredPilot
from tests.build.facts import A
from tests.build.pilot_files import FAILED, JOB, output, queue, us
from tests.build.play import T0, Play, record, shown
from tests.build.played import add_files as add_factory_files
from tests.build.played import add_outputs, only

DIES = 1199


def ad(sent: int = 0, first: int = 0, number: int = 1, dies: int | None = DIES) -> Pilot:
    """What a collector shows of one: the ads from ``first`` to ``sent``, seconds from T0."""
    return shown(f"glidein_17_{number}@node", first, sent, factory_job=JOB)._replace(
        size=None,
        accepting=False,
        dies=None if dies is None else T0 + dies,
        failed=True,
        failure="validate_node.sh",
    )


def wait(play: Play, first: int = 0, last: int = DIES + 800, **more: Any) -> None:
    """It sends an ad every five minutes until it ends; each has another name, and expires."""
    for at in range(first, last + 1, 60):
        sent = min(at - at % 300, 900)
        oldest = max(0, (at - 900 + 299) // 300 * 300)
        visible = at <= sent + 900
        play.poll(at, [ad(sent, oldest, oldest // 300, **more)] if visible else [])


def own(play: Play) -> dict[str, float]:
    """Core-seconds of pilots' own time by evidence."""
    sums: Counter[str] = Counter()
    for (_, series), micros in play.stored.posted.items():
        if (series.resource, series.measure, series.outcome) == ("cpu", "resource", ""):
            sums[series.evidence] += micros
    return {name: n / SECOND_US for name, n in sums.items() if n}


def test_all_of_its_time_is_lost(play: Play) -> None:
    """From its first ad to the end that it announces; the ads that live on change nothing."""
    wait(play)
    play.rest(DIES + 900)
    assert play.seconds() == {"validation_fails": float(DIES)}
    row = only(play)
    assert (row.validation, row.failure) == (Validation.FAILED, "validate_node.sh")
    assert row.end_us == (T0 + DIES) * SECOND_US
    assert play.counted()["pilots"] == 1
    assert "runs" not in play.counted()
    assert own(play) == {"estimated": float(DIES)}
    assert set(row.assumed) == {Assumption.SIZE, Assumption.END}
    assert row.assumed[Assumption.SIZE] == (row.start_us, row.end_us)
    assert row.assumed[Assumption.END] == ((T0 + 900) * SECOND_US, row.end_us)


def test_it_counts_while_it_waits(play: Play) -> None:
    """Its time is settled before it has ended: no job can come."""
    wait(play, last=600)
    assert play.seconds()["validation_fails"] > 300
    assert only(play).end_us is None


@pytest.mark.parametrize(
    ("others", "expected", "size"),
    [
        (2, {"entry": Size(16, 32000)}, Size(8, 16000)),
        (0, {"entry": Size(16, 32000, 1)}, Size(16, 32000, 1)),
        (0, {"other": Size(16, 32000)}, Size(1, 2000)),
    ],
    ids=["its entry's pilots", "what is expected", "one unit"],
)
def test_how_large_it_is(play: Play, others: int, expected: dict[str, Size], size: Size) -> None:
    """As its entry's other pilots, else as they are expected to be, else one canonical unit."""
    play.add_facts((), expected)
    play.poll(-60, [shown(f"p{n}@node", -600, -60, cores=8, memory=16000) for n in range(others)])
    wait(play)
    (row,) = (pilot for pilot in play.stored.pilots.values() if pilot.identity.factory_job == JOB)
    assert [step.size for step in row.steps] == [size]


def test_a_single_unit_gives_way_to_what_is_learnt(play: Play) -> None:
    """What is assumed for want of anything better is corrected as long as it waits."""
    wait(play, last=300)
    assert only(play).steps[0].size == Size(1, 2000)
    play.add_facts((), {"entry": Size(4, 8000)})
    wait(play, first=360)
    play.rest(DIES + 900)
    assert only(play).steps[0].size == Size(4, 8000)
    assert play.seconds() == {"validation_fails": 4.0 * DIES}


@pytest.mark.parametrize("first", ["ads", "output"])
def test_its_output_meets_its_ads(play: Play, first: str) -> None:
    """They are one pilot; what the output tells replaces what was assumed, before or after."""
    its = output(-60, 1210, validation=Validation.FAILED, failure=FAILED)
    if first == "ads":
        wait(play)
        assert play.seconds() != {}
    add_outputs(play, its, at=3000) if first == "ads" else play.add_facts([its])
    if first == "output":
        wait(play)
        play.rest(DIES + 900)
    assert play.seconds() == {"validation_fails": 4 * 1270.0}
    row = only(play)
    assert (row.failure, row.end_source) == ("WN_Resource main/validate_node.sh", "pilot_output")
    assert row.assumed == {}
    assert own(play) == {"measured": 4 * 1270.0}


def test_its_output_comes_while_its_ads_live_on(play: Play) -> None:
    """They do not move the end that the output has told."""
    wait(play, last=1260)
    play.add_facts([output(-60, 1210, validation=Validation.FAILED, failure=FAILED)])
    wait(play, first=1320)
    play.rest(DIES + 900)
    assert only(play).end_us == (T0 + 1210) * SECOND_US
    assert play.seconds() == {"validation_fails": 4 * 1270.0}


def test_what_the_list_of_pilots_says(play: Play) -> None:
    """While it waits, and after."""
    wait(play, last=600)
    for state in ("failed", "ended"):
        line = StoredPilot(only(play), (), AsOf(only(play).posted_last_heard_us))
        assert (line.state, line.doing) == (state, "failed validation: validate_node.sh")
        wait(play, first=660)
        play.rest(DIES + 900)


def test_an_output_that_has_no_end_and_no_size(play: Play) -> None:
    """The ads tell the one, and the entry the other."""
    wait(play)
    its = output(-60, None, validation=Validation.FAILED, failure=FAILED, cores=None)
    add_outputs(play, its, at=3000)
    row = only(play)
    assert (row.start_us, row.end_us) == ((T0 - 60) * SECOND_US, (T0 + DIES) * SECOND_US)
    assert set(row.assumed) == {Assumption.SIZE, Assumption.END}


def test_its_factorys_queue_had_told_of_it(play: Play) -> None:
    """The ad tells why; when it began and ended the queue knows better."""
    add_factory_files(play, *queue(-100, DIES + 5))
    before = only(play)
    assert before.validation is not Validation.FAILED
    play.poll(50_000, [ad(900, 600)])
    play.rest(50_060)
    row = only(play)
    assert (row.validation, row.failure) == (Validation.FAILED, "validate_node.sh")
    assert (row.start_us, row.end_us) == (before.start_us, before.end_us)
    assert play.seconds() == {"validation_fails": 4.0 * (DIES + 105)}
    add_factory_files(play, *queue(-100, DIES + 6), at=100_000)
    assert only(play).validation is Validation.FAILED


def test_its_factorys_queue_tells_of_it_later(play: Play) -> None:
    """It is the same pilot."""
    wait(play)
    add_factory_files(play, *queue(-100, DIES + 5), at=3000)
    row = only(play)
    assert (row.validation, row.failure) == (Validation.FAILED, "validate_node.sh")
    assert set(play.seconds()) == {"validation_fails"}
    assert (row.end_us or 0) / SECOND_US - T0 in {DIES, DIES + 5}


def test_ads_that_are_heard_after_the_end(play: Play) -> None:
    """Such as the last one, which tells that it ends now; or clocks that differ a bit."""
    for at in range(0, DIES + 300, 60):
        play.poll(at, [ad(at)])
    play.rest(DIES + 300)
    assert only(play).end_us == (T0 + DIES) * SECOND_US
    assert play.seconds() == {"validation_fails": float(DIES)}


@pytest.mark.parametrize("dies", [-10, 10**15])
def test_an_end_that_makes_no_sense(play: Play, dies: int) -> None:
    """It is before its first ad, or no time that a clock shows: the last ad counts."""
    for at in range(0, 660, 60):
        play.poll(at, [ad(at, dies=dies)])
    play.rest(660)
    assert only(play).end_us == (T0 + 600) * SECOND_US


def test_one_that_was_killed(play: Play) -> None:
    """It has been silent for longer than its ads take, and ended with its last."""
    for at in range(0, 1500, 60):
        play.poll(at, [ad(300)] if at <= 1200 else [])
    play.rest(1500)
    row = only(play)
    assert (row.end_us, row.end_source) == ((T0 + 300) * SECOND_US, "ad_expired")
    assert Assumption.END not in row.assumed


def test_one_that_tells_no_end(play: Play) -> None:
    """It ended with its last ad."""
    wait(play, dies=None)
    play.rest(DIES + 900)
    assert only(play).end_us == (T0 + 900) * SECOND_US


@pytest.mark.parametrize("last", [0, 300])
def test_gwmond_was_down_meanwhile(play: Play, last: int) -> None:
    """Nobody watched its ads: it is taken to have ended when it had announced."""
    wait(play, last=last)
    play.restart()
    play.rest(20_000)
    assert play.seconds() == {"validation_fails": float(DIES)}
    assert only(play).end_us == (T0 + DIES) * SECOND_US


def test_one_that_is_seen_late(play: Play) -> None:
    """It began at the latest when it sent the first ad that is still there."""
    wait(play, first=600)
    assert only(play).start_us == T0 * SECOND_US


def test_it_had_registered_before(play: Play) -> None:
    """Then its HTCondor ran and ended badly: it has passed, and goes on until it ends."""
    play.live(-600, 0, [shown(started=-600, factory_job=JOB)], records=[record("1.0", -500, -100)])
    for at in range(60, 900, 60):
        play.poll(at, [ad(at - at % 300)] if 60 < at <= 600 else [])
        if at == 600:
            (pilot,) = play.accounting.pilots
            assert (pilot.end_us, pilot.missing_since_us) == (None, None)
    play.rest(1000)
    row = only(play)
    assert (row.validation, row.failure) == (Validation.PASSED, "")
    assert row.end_us == (T0 + 600) * SECOND_US
    assert "validation_fails" not in play.seconds()


@pytest.mark.parametrize("job", ["", JOB])
def test_two_of_one_name(play: Play, job: str) -> None:
    """Where names and jobs are given again, time tells them apart."""
    for start in (0, 10_000):
        again = ad(start, start, dies=start + DIES)._replace(factory_job=job)
        play.poll(start, [again])
        play.poll(start + 60, [again])
        play.rest(start + 1300, hours=2)
    assert len(play.stored.pilots) == 2
    assert play.seconds() == {"validation_fails": 2.0 * DIES}


def test_nothing_is_settled_twice_by_a_restart() -> None:
    """The accounting made anew from what is stored goes on as it was."""
    play, other = Play(), Play()
    for at in range(0, DIES + 800, 60):
        wait(play, at, at)
        wait(other, at, at)
        play.restart()
    play.rest(DIES + 900)
    other.rest(DIES + 900)
    assert play.seconds() == other.seconds() == {"validation_fails": float(DIES)}
    assert only(play).assumed == only(other).assumed


def heard(origin: Origin, **facts: Any) -> OpenPilot:
    """A pilot whose ads were heard until 300 s, which had ended then."""
    failed = FailedAdFacts(first_us=us(0), last_heard_us=us(300), end_us=us(300))
    identity = PilotIdentity("glidein_17_1@node", T0, JOB, "factory", A, "", "node", origin)
    return OpenPilot.new(1, identity, PilotFacts(failed_ads=failed, **facts))


@pytest.mark.parametrize(("origin", "pruned"), [("jobs", False), ("collector", True)])
def test_ads_of_a_pilot_that_cannot_be_posted_by_them(origin: Origin, pruned: bool) -> None:
    """Only records of jobs have it, or some of its runs are past their retention."""
    pilot = heard(origin, runs=RunBounds(first_us=us(0), last_us=us(300)))
    pilot.pruned = pruned
    before = pilot.facts
    follow(pilot, ad(600), us(600), Sizes(2000))
    assert (pilot.last_polled_us, pilot.facts) == (us(600), before)


def test_an_ad_after_the_end_of_one_that_passed() -> None:
    """Its output says that it passed, and not when it ended: it has not."""
    passed = OutputFacts(us(0), us(60), validation=Validation.PASSED, ran_jobs=False)
    pilot = heard("collector", output=passed)
    assert (pilot.end_us, pilot.validation) == (us(300), Validation.PASSED)
    follow(pilot, ad(600), us(600), Sizes(2000))
    assert (pilot.end_us, pilot.last_heard_us) == (None, us(600))
    assert pilot.facts.failed_ads is not None
    assert pilot.facts.failed_ads.end_us is None
