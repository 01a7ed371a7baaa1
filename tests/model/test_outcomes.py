"""Every line of the table of outcomes, and which line outweighs which."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gwmond.model.pilot_life import Category
from gwmond.model.runs.condor_codes import MEANINGS, Meaning
from gwmond.model.runs.endings import Ending
from gwmond.model.runs.outcomes import COMPARED, RULES, classify, rule_of
from tests.examples import examples

GOOD, MISCONFIGURED = Category.GOODPUT, Category.MISCONFIGURATION_BADPUT
PREEMPTED, OTHER = Category.PREEMPTION_BADPUT, Category.UNCLASSIFIED

OVER = Ending(over=True, began=True)


def ending(words: str) -> Ending:
    """Read the end of a run: codes, what it did or (``!``) did not: ``done hold=13.2 !began``."""
    fields: dict[str, Any] = {}
    for word in re.sub(r"\(.*?\)", "", words).split():
        name, _, value = word.partition("=")
        if name in KINDS:
            fields |= KINDS[name]
        elif not value:
            fields[name.lstrip("!")] = not name.startswith("!")
        elif name in NUMBERS:
            fields |= dict(zip(NUMBERS[name], map(int, value.split(".")), strict=False))
        else:
            fields[name] = None if value == "?" else value
    return OVER._replace(**fields)


KINDS: dict[str, dict[str, object]] = {
    "over": {},
    "done": {"exit_code": 0, "own_accord": True},
    "killed": {"exit_signal": 9, "own_accord": False},
}
NUMBERS = {
    "exit": ("exit_code",),
    "signal": ("exit_signal",),
    "hold": ("hold_code", "hold_subcode"),
    "vacate": ("vacate_code", "vacate_subcode"),
    "starter": ("starter_status",),
}
# One or more endings for each rule: the name of the rule that decides, and the evidence.
TABLE = """
# Completed, whatever the exit code.
completed_zero: completed exit=0
completed_nonzero: completed exit=3
completed_signal: completed signal=11
completed: completed
# Disconnected and reconnected; a schedd that was restarted and reconnected: the job went on.
completed_zero: completed exit=0 disconnected
# The code of an earlier eviction may still be in the ad of a job that completed.
completed_zero: completed exit=0 vacate=34 startd_ended
# kill -9 of the shadow, or an access point gone for longer than the job lease.
lease_expired: starter=512 !began (the access point's side); starter=512 vacate=1008 !startd_ended
# kill -9 of the starter: the shadow cannot reconnect to it, the startd's history tells.
starter_killed_early: starter=9 !startd_ended early
starter_killed: starter=9 !startd_ended vacate=1008
starter_killed_unsure: starter=9
# Stage-in.
input_failed: !began hold=13.256; !began vacate=13.2; hold=13.2 failed_at=execution_point
input_unsent: hold=13.5 failed_at=access_point (EIO);
    vacate=13 failed_at=access_point startd_ended
cut_short: !began vacate=13.2 startd_ended; !began vacate=1021 startd_ended
container_failed: !early vacate=1021 !startd_ended
input_mistake: hold=13.2 failed_at=access_point; vacate=13.13 failed_at=access_point
# Containers.
image_failed: !began hold=35; !began hold=45 (the test is one of the job's own image)
container_failed: !early hold=45
image_failed: began=? vacate=1021; early vacate=1021
container_failed: !early vacate=1021
# Starter and shadow.
program_failed: !began vacate=6; !began hold=6.2; !began hold=6.8 startd_ended;
    !began hold=8.2 (no stdin there)
starter_failed_early: !began vacate=1007; !began vacate=1007 startd_ended; early vacate=1024
ended_with_pilot: early vacate=1007 startd_ended
starter_failed: !early vacate=1007
shadow_failed: !began vacate=1002; !began hold=48; !began hold=1002 (too many of them);
    !early vacate=1002
activation_broken: !began vacate=1031; !began vacate=1036
not_started: !began vacate=1006; !began vacate=1003 !startd_ended
refused: !began vacate=1029
never_began: !began; !began vacate=1005; !began vacate=1009 superseded
# The pilot's end: retirement, shutdown, death, draining, lost contact.
startd_shutdown: vacate=1013; vacate=1013 !began; vacate=1016
startd_died: vacate=1012
drained: vacate=1014; vacate=1005 draining; killed vacate=1009 draining
lost_contact: vacate=1008 disconnected; vacate=1008 startd_ended !began; vacate=1008 starter=9
reconnect_failed: vacate=1008 !startd_ended
reconnect_failed_early: vacate=1008 !startd_ended early
ended_with_pilot: vacate=1005 startd_ended; vacate=1003 startd_ended !began;
    vacate=1011 startd_ended; vacate=1025 startd_ended; vacate=1007 startd_ended !early
gone_with_pilot: startd_ended; killed startd_ended; signal=15 startd_ended
# The program was done, its output not: the job has to run again.
output_cut_off: done sending_output startd_ended; done sending_output vacate=1008;
    done sending_output hold=12 startd_ended
# Vacated by a pilot's end, then removed or held while idle: the end is what happened.
startd_shutdown: vacate=1013 removed
ended_with_pilot: vacate=1005 removed startd_ended
drained: vacate=1014 hold=1
# Somebody decided against it.
preempted: vacate=1018; vacate=1019 preempted; vacate=1015
preempted_by_expression: vacate=1011
preempted_flag: preempted !startd_ended
preempted_unsure: preempted vacate=1005
vacated_by_admin: vacate=1010
vacated_by_schedd: vacate=1022
removed_code: vacate=1023
checkpointed: vacate=1025
vacated_by_user: vacate=1004
vacated_by_policy: vacate=1000; vacate=1001
removed: removed; removed !began; killed removed vacate=1009; removed signal=9 vacate=0
held_by_user: hold=1; vacate=1
held_and_released: killed vacate=0 by_schedd superseded; !began by_schedd superseded
ended_by_condor: killed vacate=0 by_schedd
held_by_user: killed hold=1 vacate=0
held_by_policy: hold=3; killed hold=3; hold=3 signal=9; hold=26
held_for_limit: hold=34.102; done hold=34
held_for_mistake: hold=14 !began
held_by_startd: hold=21
output_failed: done hold=12.2
checkpoint_failed: hold=36
held_by_system: hold=23; hold=999
vacated_by_system: vacate=1999
vacated: vacate=1005; vacate=1005 removed; vacate=1005 hold=1
# The program ended itself, and nothing ended it from outside.
exited_zero: done; exit=0; exit=0 vacate=1009 starter=0; done draining startd_ended;
    done starter=512
exited_nonzero: exit=3; done exit=3 hold=3 (ON_EXIT_HOLD); exit=3 hold=3;
    exit=3 removed (it was to run again, then removed)
exited_signal: signal=11; signal=9 own_accord startd_ended
# Hardly anything is known.
# A log tells that the access point did not get the exit, and no history tells of one.
exit_unsent: done unsent; unsent !startd_ended superseded
gone_with_pilot: done unsent startd_ended
completed_zero: unsent completed exit=0
removed: unsent removed
lease_expired: done unsent starter=512
# A log has a failure of a container as the run began, and no record has how it ended.
container_logged: container_failed began=?; container_failed early startd_ended;
    container_failed began startd_ended
gone_with_pilot: container_failed began !early startd_ended
exit_retried: exit=4 own_accord retried; exit=0 own_accord superseded;
    signal=11 own_accord superseded hold=3
exited_nonzero: exit=4 own_accord retried hold=3
completed_nonzero: exit=4 own_accord retried completed
ended_by_condor: exit=0 !own_accord
program_failed: starter=9 !startd_ended hold=6
exited_nonzero: container_failed exit=1 own_accord
startd_shutdown: container_failed vacate=1013
disconnected: disconnected superseded
ended_by_condor: signal=15 !own_accord; signal=15 !own_accord superseded
no_record: superseded; done sending_output superseded
unknown: over; vacate=1017; hold=1009; starter=256 !startd_ended
ended_by_condor: killed vacate=1009
"""
CASES: list[tuple[str, Ending]] = [
    (name, ending(words))
    for name, told in re.findall(r"^(\w+): ((?:.|\n    )+)", TABLE, re.MULTILINE)
    for words in told.split(";")
]


@pytest.mark.parametrize(("name", "ending"), CASES)
def test_each_case_is_decided_by_its_line(name: str, ending: Ending) -> None:
    rule = rule_of(ending)
    assert rule.name == name
    outcome = classify(ending)
    assert outcome is not None
    assert (outcome.category, outcome.label) == (rule.category, rule.outcome)
    assert outcome.evidence == ("estimated" if rule.inferred else "measured")


def test_every_line_has_a_case_and_a_name_of_its_own() -> None:
    assert {name for name, _ in CASES} == {rule.name for rule in RULES}
    assert len({rule.name for rule in RULES}) == len(RULES)


CATEGORIES = {
    GOOD: """
        completed_signal completed_zero completed_nonzero completed
        exited_signal exited_zero exited_nonzero""",
    MISCONFIGURED: """
        starter_killed_early never_began not_started starter_failed_early activation_broken""",
    PREEMPTED: """
        output_cut_off cut_short startd_shutdown startd_died drained lost_contact ended_with_pilot
        gone_with_pilot""",
}


def test_the_categories_are_those_of_the_design() -> None:
    """All other lines are unclassified."""
    expected = {name: category for category, names in CATEGORIES.items() for name in names.split()}
    assert {rule.name: rule.category for rule in RULES if rule.category is not OTHER} == expected


def test_what_a_users_mistake_causes_as_often_is_compared_before_it_is_blamed() -> None:
    """The lines alone blame none of it on where it ran, and their labels are no other line's."""
    compared = {rule.name for rule in RULES if rule.compared}
    assert compared == {
        *("input_failed", "program_failed", "image_failed", "container_logged"),
        "reconnect_failed_early",
    }
    labels = {rule.outcome for rule in RULES if rule.compared}
    assert labels == COMPARED
    assert {rule.name for rule in RULES if rule.outcome in COMPARED} == compared


def test_a_run_that_is_not_over_has_no_outcome() -> None:
    assert classify(Ending(disconnected=True, exit_code=1)) is None


def test_only_conclusions_without_a_record_are_estimated() -> None:
    inferred = {rule.name for rule in RULES if rule.inferred}
    logged = {"exit_unsent", "container_logged"}  # by time: a line has no job
    assert inferred == {"gone_with_pilot", "disconnected", "no_record", "unknown", *logged}


LABELS = {rule.outcome for rule in RULES}


def test_labels_are_bounded() -> None:
    assert len(LABELS) < 40
    assert {label for label in LABELS if label.startswith("exit_")} == {
        *("exit_zero", "exit_nonzero", "exit_signal", "exit_unknown", "exit_retried")
    }


MAYBE = st.none() | st.booleans()
CODES = st.none() | st.just(0) | st.sampled_from(sorted(MEANINGS)) | st.integers(0, 2000)
ENDINGS = st.builds(
    Ending,
    over=st.just(True),
    completed=MAYBE,
    removed=MAYBE,
    exit_code=st.none() | st.integers(0, 255),
    exit_signal=st.none() | st.integers(1, 64),
    own_accord=MAYBE,
    retried=MAYBE,
    hold_code=CODES,
    hold_subcode=st.none() | st.integers(0, 300),
    vacate_code=CODES,
    vacate_subcode=st.none() | st.integers(0, 300),
    failed_at=st.sampled_from([None, "access_point", "execution_point"]),
    began=MAYBE,
    early=MAYBE,
    sending_output=MAYBE,
    starter_status=st.none() | st.integers(0, 2**16 - 1),
    draining=MAYBE,
    preempted=MAYBE,
    disconnected=MAYBE,
    startd_ended=MAYBE,
    superseded=MAYBE,
    unsent=MAYBE,
    container_failed=MAYBE,
)


@settings(max_examples=examples(300))
@given(ENDINGS)
def test_whatever_is_told_there_is_one_outcome(ending: Ending) -> None:
    outcome = classify(ending)
    assert outcome is not None
    assert outcome.label in LABELS
    if ending.completed:
        assert outcome.category is GOOD
    if outcome.category is PREEMPTED:
        assert ending.startd_ended is True or ending.draining or ending.vacated
    if outcome.category is MISCONFIGURED:
        assert not ending.completed
        assert (
            ending.began is not True
            or ending.early
            or ending.reason in {Meaning.BROKEN, Meaning.NOT_STARTED}
        )
