"""Facts of one run from several sources."""

from __future__ import annotations

from itertools import permutations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gwmond.model.facts import Size
from gwmond.model.pilot_life import RunKey
from gwmond.model.runs.endings import Ending
from gwmond.model.runs.run_facts import RunFact, Source
from gwmond.pilots.life.merged_runs import (
    FIELDS,
    Merged,
    RunContradiction,
    executing,
    merge,
    merge_run,
)
from gwmond.pilots.life.same_run import TOLERANCE_US, gather
from tests.build.pilots import ONE, us
from tests.examples import examples

STARTD, EPOCH = Source.STARTD_HISTORY, Source.EPOCH_HISTORY
SCHEDD, SLOT = Source.SCHEDD_HISTORY, Source.LIVE_SLOT


def fact(
    source: Source,
    run: int | None = 1,
    *,
    job: str = "job",
    written: float = 100,
    pilot: str | None = "pilot",
    start: float | None = 0,
    end: float | None = None,
    size: Size | None = None,
    user: str | None = None,
    activated: float | None = None,
    **ending: object,
) -> RunFact:
    return RunFact(
        source,
        job,
        run,
        us(written),
        pilot,
        None if start is None else us(start),
        None if end is None else us(end),
        size,
        user,
        None,
        Ending()._replace(**ending),  # type: ignore[arg-type]
        None if activated is None else us(activated),
    )


def merged(*facts: RunFact) -> Merged:
    (one,) = merge(facts)
    return one


def differing(merged_run: Merged) -> set[tuple[str, Source, Source]]:
    return {(found.field, found.kept, found.other) for found in merged_run.contradictions}


def test_when_a_program_began_is_believed_of_its_starter_first() -> None:
    """Whatever the order of the facts."""
    startd = fact(STARTD)._replace(executing_us=us(600))
    shadow, silent = fact(EPOCH)._replace(executing_us=us(5)), fact(STARTD)
    for facts in permutations((startd, shadow, silent)):
        assert executing(facts) == us(600)
    assert executing([shadow, silent]) == us(5)
    assert executing([silent]) is None


def test_the_best_source_decides_field_by_field() -> None:
    """What the startd does not tell is the schedd's to tell."""
    one = merged(
        fact(STARTD, end=50, exit_code=0, vacate_code=1009, over=True),
        fact(EPOCH, end=52, size=ONE, user="ann", own_accord=True),
        fact(SCHEDD, pilot=None, exit_code=0, completed=True),
        fact(SLOT, run=None, size=ONE),
    )
    assert one.key == RunKey("job", 1)
    assert (one.start_us, one.end_us, one.size, one.user) == (us(0), us(50), ONE, "ann")
    assert one.ending == Ending(
        over=True, completed=True, exit_code=0, own_accord=True, vacate_code=1009
    )
    assert one.sources == (EPOCH, SLOT, SCHEDD, STARTD)
    assert one.evidence == "measured"
    assert one.contradictions == ()


@pytest.mark.parametrize(
    ("facts", "field", "value", "against"),
    [
        # The starter's end, not when the schedd gave up on it.
        ([fact(STARTD, end=50), fact(EPOCH, end=111)], "end_us", us(50), {EPOCH}),
        ([fact(STARTD, end=50), fact(EPOCH, end=110)], "end_us", us(50), set()),
        ([fact(SCHEDD, end=400), fact(EPOCH, end=111)], "end_us", us(111), {SCHEDD}),
        ([fact(EPOCH, size=ONE), fact(SLOT, size=Size(2, 2000))], "size", ONE, {SLOT}),
        ([fact(SCHEDD, user="ann"), fact(STARTD, user="bob")], "user", "ann", {STARTD}),
    ],
)
def test_contradictions_beyond_the_tolerance_are_counted(
    facts: list[RunFact], field: str, value: object, against: set[Source]
) -> None:
    one = merged(*facts)
    assert getattr(one, field) == value
    assert {(name, other) for name, _, other in differing(one)} == {
        (field, source) for source in against
    }


@pytest.mark.parametrize(
    ("facts", "field", "value", "against"),
    [
        ([fact(STARTD, vacate_code=1009), fact(EPOCH, vacate_code=1008)], "vacate_code", 1008, {}),
        # An access point that says nothing useful does not outweigh a startd that does.
        ([fact(STARTD, vacate_code=1014), fact(EPOCH, vacate_code=1009)], "vacate_code", 1014, {}),
        ([fact(STARTD, vacate_code=1014), fact(EPOCH, vacate_code=0)], "vacate_code", 1014, {}),
        (
            [fact(STARTD, vacate_code=1014), fact(EPOCH, vacate_code=1008)],
            "vacate_code",
            1008,
            {STARTD},
        ),
        ([fact(STARTD, exit_code=0), fact(EPOCH, exit_signal=9)], "exit_signal", None, {EPOCH}),
        (
            [fact(STARTD, completed=True), fact(SCHEDD, completed=False)],
            "completed",
            False,
            {STARTD},
        ),
        ([fact(STARTD, began=True), fact(EPOCH, began=False)], "began", True, {EPOCH}),
    ],
)
def test_endings_are_merged_too(
    facts: list[RunFact], field: str, value: object, against: set[Source]
) -> None:
    one = merged(*facts)
    assert getattr(one.ending, field) == value
    assert {other for _, _, other in differing(one)} == set(against)


def test_a_code_and_its_subcode_are_of_one_record() -> None:
    one = merged(fact(EPOCH, hold_code=13), fact(SCHEDD, hold_code=12, hold_subcode=2, exit_code=1))
    assert (one.ending.hold_code, one.ending.hold_subcode) == (13, None)


@pytest.mark.parametrize(
    "told",
    [
        fact(EPOCH, hold_code=None, hold_subcode=2),
        fact(EPOCH, hold_code=0, hold_subcode=2),
        fact(EPOCH, vacate_code=None, vacate_subcode=2),
        fact(EPOCH, vacate_code=0, vacate_subcode=2),
    ],
)
def test_a_subcode_without_a_code_is_nothing(told: RunFact) -> None:
    """Of one record as of two; 0 is no code either."""
    assert merged(told).ending == merged(told, fact(SCHEDD)).ending == Ending()


def test_an_exit_that_a_history_tells_was_not_lost() -> None:
    """The starter could not send how its program ended; another record has it."""
    lost = fact(EPOCH, unsent=True)
    assert merged(lost, fact(SCHEDD)).ending.unsent is True
    assert merged(lost, fact(SLOT, exit_code=0)).ending.unsent is True  # a slot has no histories
    for told in (fact(SCHEDD, exit_code=0), fact(SCHEDD, exit_signal=9)):
        assert merged(lost, told).ending.unsent is None
    assert merged(lost, fact(SCHEDD, completed=True)).ending.unsent is None
    assert merged(lost, fact(SCHEDD, completed=False)).ending.unsent is True


def test_who_ended_itself_was_not_killed() -> None:
    """Records of a real job with exit code 0: its schedd's clock stepped as it ended."""
    killed = fact(STARTD, exit_signal=15, own_accord=False)
    shadow = fact(EPOCH, exit_code=0, own_accord=True)
    one = merged(killed, shadow, fact(SCHEDD, exit_code=0, own_accord=True, completed=True))
    assert (one.ending.exit_code, one.ending.exit_signal) == (0, None)
    assert differing(one) >= {("exit_code", EPOCH, STARTD)}
    killed_by_both = merged(killed, fact(EPOCH, exit_signal=9, own_accord=False))
    assert killed_by_both.ending.exit_signal == 15


def test_of_two_records_of_one_source_the_later_decides() -> None:
    """ON_EXIT_HOLD leaves two epoch ads: the exit, then the hold; neither contradicts."""
    one = merged(
        fact(EPOCH, written=50, end=50, exit_code=3), fact(EPOCH, written=51, end=151, hold_code=3)
    )
    assert (one.ending.exit_code, one.ending.hold_code, one.end_us) == (3, 3, us(151))
    assert one.contradictions == ()


def test_runs_of_a_job_are_runs_of_their_own() -> None:
    found = merge([fact(EPOCH, 1), fact(EPOCH, 2, start=200), fact(EPOCH, 1, job="other")])
    assert [merged_run.key for merged_run in found] == [("job", 1), ("job", 2), ("other", 1)]


def test_a_run_that_a_schedd_reconnected_to_is_one() -> None:
    """After a restart NumShadowStarts is higher and JobCurrentStartDate the same."""
    one = merged(fact(STARTD, 1, end=500), fact(EPOCH, 2, end=501), fact(SLOT, None))
    assert one.key == RunKey("job", 1)
    assert len(one.sources) == 3


@pytest.mark.parametrize(
    "other",
    [fact(EPOCH, 2, start=1), fact(EPOCH, 2, pilot="elsewhere"), fact(EPOCH, 2, start=None)],
)
def test_runs_are_not_joined_by_chance(other: RunFact) -> None:
    assert len(merge([fact(EPOCH, 1), other])) == 2


@pytest.mark.parametrize(
    ("start", "run"), [(3, 1), (-50, 1), (95, 2), (140, 2), (400, us(400) // 1_000_000)]
)
def test_a_slot_is_of_the_run_that_began_nearest(start: float, run: int) -> None:
    """A slot ad tells no NumShadowStarts, and its JobStart is the startd's clock."""
    slot = fact(SLOT, None, start=start)
    gathered = gather([fact(EPOCH, 1, start=0), fact(EPOCH, 2, start=100), slot])
    assert slot in gathered[RunKey("job", run)]


def test_a_slot_of_another_pilot_is_another_run() -> None:
    slots = [fact(SLOT, None, pilot="elsewhere", written=literal) for literal in (1, 2)]
    found = merge([fact(EPOCH, 1), *slots])
    assert [merged_run.key.number for merged_run in found] == [1, us(0) // 1_000_000]
    assert found[1].evidence == "estimated"


def runs(*facts: RunFact) -> list[int]:
    """The runs of a job that facts are of, each by its number or the second in which it began."""
    return [
        merged_run.key.shadow_start or ((merged_run.start_us or 0) - us(0)) // 1_000_000
        for merged_run in merge(facts)
    ]


def test_a_claim_that_was_activated_after_a_run_was_over_is_another_run() -> None:
    """The job was tried again at once: 04:52:28 to :45, then from :48 on."""
    first = fact(EPOCH, 1, start=1028, end=1045, over=True)
    assert runs(first, fact(SLOT, None, start=1048)) == [1, 1048]
    assert runs(first, fact(SLOT, None, start=1029)) == [1]
    again = fact(EPOCH, 2, start=1047, end=2000, over=True)
    assert runs(first, again, fact(SLOT, None, start=1048)) == [1, 2]


def test_a_claim_that_goes_on_to_be_shown_is_not_of_a_run_that_is_over() -> None:
    """Clocks differ by seconds; that the slot is heard of a minute later tells."""
    first = fact(EPOCH, 1, start=1028, end=1045, over=True)
    soon = fact(SLOT, None, start=1040, written=1050)
    assert runs(first, soon) == [1]
    assert runs(first, soon, fact(SLOT, None, start=1040, written=1106)) == [1, 1040]
    # One that was activated long before the end is of this run, though it lives on for a while.
    assert runs(first, fact(SLOT, None, start=1030, written=1106)) == [1]


def test_two_activations_are_two_runs() -> None:
    first = fact(EPOCH, 1, start=1000, end=1045, over=True)
    claims = fact(SLOT, None, start=1002), fact(SLOT, None, start=1045)
    assert runs(first, *claims) == [1, 1045]
    assert runs(*claims) == [1002, 1045]


def test_an_activation_may_come_long_after_its_shadow_began() -> None:
    """On a busy access point; it was within the run."""
    first = fact(EPOCH, 1, start=1000, end=4000, over=True)
    assert runs(first, fact(SLOT, None, start=1090)) == [1]
    assert runs(first, fact(SLOT, None, start=4100)) == [1, 4100]


def test_a_startds_record_and_its_slot_go_by_one_clock() -> None:
    """It is 90 s behind: by it the run ended before it began; that the slot shows it is no news."""
    record = fact(STARTD, 1, start=1000, end=1000, over=True)
    assert runs(record, fact(SLOT, None, start=1002, activated=912)) == [1]
    # 300 s ahead.
    record = fact(STARTD, 1, start=1000, end=1320, over=True)
    assert runs(record, fact(SLOT, None, start=1002, activated=1302)) == [1]
    assert runs(record, fact(SLOT, None, start=1025, activated=1325)) == [1, 1025]


def test_a_slot_without_a_time_is_of_the_latest_run() -> None:
    slots = [fact(SLOT, None, start=literal) for literal in (1000, 1500, None)]
    assert [len(resources) for resources in gather(slots).values()] == [1, 2]
    assert [key.number for key in gather(slots[2:])] == [0]


def test_every_field_has_an_order() -> None:
    named = [name for field in FIELDS for name in field.names]
    assert len(named) == len(set(named))
    assert {"over", *named} == {*Merged._fields[1:7], *Ending._fields}
    assert all(sorted(field.order) == sorted(Source) for field in FIELDS)


FACTS = st.builds(
    fact,
    st.sampled_from(Source),
    st.sampled_from([None, 1, 1, 2, 3]),
    job=st.sampled_from(["job", "other"]),
    written=st.sampled_from([100, 100, 200]),
    pilot=st.sampled_from([None, "pilot", "elsewhere"]),
    start=st.sampled_from([None, 0, 0, 30, 100]),
    end=st.sampled_from([None, 20, 400, 500]),
    activated=st.sampled_from([None, None, 0, 30, 90]),
    size=st.sampled_from([None, ONE, Size(2, 2000)]),
    exit_code=st.sampled_from([None, 0, 1]),
    exit_signal=st.sampled_from([None, 9]),
    vacate_code=st.sampled_from([None, 0, 1008, 1009]),
    vacate_subcode=st.sampled_from([None, 0, 3]),
    hold_code=st.sampled_from([None, 0, 13]),
    hold_subcode=st.sampled_from([None, 0, 2]),
    user=st.sampled_from([None, "ann"]),
    over=st.booleans(),
)


@settings(max_examples=examples(150))
@given(st.lists(FACTS, max_size=8), st.randoms(use_true_random=False))
def test_the_order_of_facts_changes_nothing(facts: list[RunFact], random: Random) -> None:
    """Neither does telling one twice."""
    told = random.sample(facts, len(facts)) + facts[:2]
    assert merge(told) == merge(facts)


@given(FACTS)
def test_a_single_fact_is_merged_like_two_that_are_equal(told: RunFact) -> None:
    """The short way for the most frequent case gives what the long one gives."""
    key = RunKey(told.job, told.shadow_start or 0)
    assert merge_run(key, [told]) == merge_run(key, [told, told])


@settings(max_examples=examples(100))
@given(st.lists(FACTS, max_size=8))
def test_every_fact_is_in_one_run_and_nothing_is_made_up(facts: list[RunFact]) -> None:
    gathered = gather(facts)
    assert sorted(
        map(repr, (resources for group in gathered.values() for resources in group))
    ) == sorted(map(repr, set(facts)))
    for one in merge(facts):
        told = gathered[one.key]
        assert one.end_us in {None, *(resources.end_us for resources in told)}
        pairs = {(resources.ending.exit_code, resources.ending.exit_signal) for resources in told}
        assert (one.ending.exit_code, one.ending.exit_signal) in {(None, None), *pairs}
        assert one.ending.over == any(resources.ending.over for resources in told)
        for found in one.contradictions:
            assert isinstance(found, RunContradiction)
            assert {found.kept, found.other} <= set(one.sources)
    assert TOLERANCE_US == 60_000_000
