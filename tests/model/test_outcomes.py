"""Every line of the table of outcomes, and which line outweighs which."""

from __future__ import annotations

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
DONE = OVER._replace(exit_code=0, own_accord=True)
KILLED = OVER._replace(exit_signal=9, own_accord=False)
SIGKILL, LOST_SHADOW = 9, 2 << 8


def over(**fields: object) -> Ending:
    return OVER._replace(**fields)  # type: ignore[arg-type]


# One or more endings for each rule: the name of the rule that decides, and the evidence.
CASES: list[tuple[str, Ending]] = [
    # Completed, whatever the exit code.
    ("completed_zero", over(completed=True, exit_code=0)),
    ("completed_nonzero", over(completed=True, exit_code=3)),
    ("completed_signal", over(completed=True, exit_signal=11)),
    ("completed", over(completed=True)),
    # Disconnected and reconnected; a schedd that was restarted and reconnected: the job went on.
    ("completed_zero", over(completed=True, exit_code=0, disconnected=True)),
    # The code of an earlier eviction may still be in the ad of a job that completed.
    ("completed_zero", over(completed=True, exit_code=0, vacate_code=34, startd_ended=True)),
    # kill -9 of the shadow, or an access point gone for longer than the job lease.
    ("lease_expired", over(starter_status=LOST_SHADOW, began=False)),  # the access point's side
    ("lease_expired", over(starter_status=LOST_SHADOW, vacate_code=1008, startd_ended=False)),
    # kill -9 of the starter: the shadow cannot reconnect to it, the startd's history tells.
    ("starter_killed_early", over(starter_status=SIGKILL, startd_ended=False, early=True)),
    ("starter_killed", over(starter_status=SIGKILL, startd_ended=False, vacate_code=1008)),
    ("starter_killed_unsure", over(starter_status=SIGKILL)),
    # Stage-in.
    ("input_failed", over(began=False, hold_code=13, hold_subcode=256)),
    ("input_failed", over(began=False, vacate_code=13, vacate_subcode=2)),
    ("input_failed", over(hold_code=13, hold_subcode=2, failed_at="execution_point")),
    ("input_unsent", over(hold_code=13, hold_subcode=5, failed_at="access_point")),  # EIO
    ("input_unsent", over(vacate_code=13, failed_at="access_point", startd_ended=True)),
    ("cut_short", over(began=False, vacate_code=13, vacate_subcode=2, startd_ended=True)),
    ("cut_short", over(began=False, vacate_code=1021, startd_ended=True)),
    ("container_failed", over(early=False, vacate_code=1021, startd_ended=False)),
    ("input_mistake", over(hold_code=13, hold_subcode=2, failed_at="access_point")),
    ("input_mistake", over(vacate_code=13, vacate_subcode=13, failed_at="access_point")),
    # Containers.
    ("image_failed", over(began=False, hold_code=35)),
    ("image_failed", over(began=False, hold_code=45)),  # the test is one of the job's own image
    ("container_failed", over(early=False, hold_code=45)),
    ("image_failed", over(began=None, vacate_code=1021)),
    ("image_failed", over(early=True, vacate_code=1021)),
    ("container_failed", over(early=False, vacate_code=1021)),
    # Starter and shadow.
    ("program_failed", over(began=False, vacate_code=6)),
    ("program_failed", over(began=False, hold_code=6, hold_subcode=2)),
    ("program_failed", over(began=False, hold_code=6, hold_subcode=8, startd_ended=True)),
    ("program_failed", over(began=False, hold_code=8, hold_subcode=2)),  # no stdin there
    ("starter_failed_early", over(began=False, vacate_code=1007)),
    ("starter_failed_early", over(began=False, vacate_code=1007, startd_ended=True)),
    ("starter_failed_early", over(early=True, vacate_code=1024)),
    ("ended_with_pilot", over(early=True, vacate_code=1007, startd_ended=True)),
    ("starter_failed", over(early=False, vacate_code=1007)),
    ("shadow_failed", over(began=False, vacate_code=1002)),
    ("shadow_failed", over(began=False, hold_code=48)),
    ("shadow_failed", over(began=False, hold_code=1002)),  # too many of them
    ("shadow_failed", over(early=False, vacate_code=1002)),
    ("activation_broken", over(began=False, vacate_code=1031)),
    ("activation_broken", over(began=False, vacate_code=1036)),
    ("not_started", over(began=False, vacate_code=1006)),
    ("not_started", over(began=False, vacate_code=1003, startd_ended=False)),
    ("refused", over(began=False, vacate_code=1029)),
    ("never_began", over(began=False)),
    ("never_began", over(began=False, vacate_code=1005)),
    ("never_began", over(began=False, vacate_code=1009, superseded=True)),
    # The pilot's end: retirement, shutdown, death, draining, lost contact.
    ("startd_shutdown", over(vacate_code=1013)),
    ("startd_shutdown", over(vacate_code=1013, began=False)),
    ("startd_shutdown", over(vacate_code=1016)),
    ("startd_died", over(vacate_code=1012)),
    ("drained", over(vacate_code=1014)),
    ("drained", over(vacate_code=1005, draining=True)),
    ("drained", KILLED._replace(vacate_code=1009, draining=True)),
    ("lost_contact", over(vacate_code=1008, disconnected=True)),
    ("lost_contact", over(vacate_code=1008, startd_ended=True, began=False)),
    ("lost_contact", over(vacate_code=1008, starter_status=SIGKILL)),
    ("reconnect_failed", over(vacate_code=1008, startd_ended=False)),
    ("reconnect_failed_early", over(vacate_code=1008, startd_ended=False, early=True)),
    ("ended_with_pilot", over(vacate_code=1005, startd_ended=True)),
    ("ended_with_pilot", over(vacate_code=1003, startd_ended=True, began=False)),
    ("ended_with_pilot", over(vacate_code=1011, startd_ended=True)),
    ("ended_with_pilot", over(vacate_code=1025, startd_ended=True)),
    ("ended_with_pilot", over(vacate_code=1007, startd_ended=True, early=False)),
    ("gone_with_pilot", over(startd_ended=True)),
    ("gone_with_pilot", KILLED._replace(startd_ended=True)),
    ("gone_with_pilot", over(exit_signal=15, startd_ended=True)),
    # The program was done, its output not: the job has to run again.
    ("output_cut_off", DONE._replace(sending_output=True, startd_ended=True)),
    ("output_cut_off", DONE._replace(sending_output=True, vacate_code=1008)),
    ("output_cut_off", DONE._replace(sending_output=True, hold_code=12, startd_ended=True)),
    # Vacated by a pilot's end, then removed or held while idle: the end is what happened.
    ("startd_shutdown", over(vacate_code=1013, removed=True)),
    ("ended_with_pilot", over(vacate_code=1005, removed=True, startd_ended=True)),
    ("drained", over(vacate_code=1014, hold_code=1)),
    # Somebody decided against it.
    ("preempted", over(vacate_code=1018)),
    ("preempted", over(vacate_code=1019, preempted=True)),
    ("preempted", over(vacate_code=1015)),
    ("preempted_by_expression", over(vacate_code=1011)),
    ("preempted_flag", over(preempted=True, startd_ended=False)),
    ("preempted_unsure", over(preempted=True, vacate_code=1005)),
    ("vacated_by_admin", over(vacate_code=1010)),
    ("vacated_by_schedd", over(vacate_code=1022)),
    ("removed_code", over(vacate_code=1023)),
    ("checkpointed", over(vacate_code=1025)),
    ("vacated_by_user", over(vacate_code=1004)),
    ("vacated_by_policy", over(vacate_code=1000)),
    ("vacated_by_policy", over(vacate_code=1001)),
    ("removed", over(removed=True)),
    ("removed", over(removed=True, began=False)),
    ("removed", KILLED._replace(removed=True, vacate_code=1009)),
    ("removed", over(removed=True, exit_signal=9, vacate_code=0)),
    ("held_by_user", over(hold_code=1)),
    ("held_by_user", over(vacate_code=1)),
    ("held_and_released", KILLED._replace(vacate_code=0, by_schedd=True, superseded=True)),
    ("held_and_released", over(began=False, by_schedd=True, superseded=True)),
    ("ended_by_condor", KILLED._replace(vacate_code=0, by_schedd=True)),
    ("held_by_user", KILLED._replace(hold_code=1, vacate_code=0)),
    ("held_by_policy", over(hold_code=3)),
    ("held_by_policy", KILLED._replace(hold_code=3)),
    ("held_by_policy", over(hold_code=3, exit_signal=9)),
    ("held_by_policy", over(hold_code=26)),
    ("held_for_limit", over(hold_code=34, hold_subcode=102)),
    ("held_for_limit", DONE._replace(hold_code=34)),
    ("held_for_mistake", over(hold_code=14, began=False)),
    ("held_by_startd", over(hold_code=21)),
    ("output_failed", DONE._replace(hold_code=12, hold_subcode=2)),
    ("checkpoint_failed", over(hold_code=36)),
    ("held_by_system", over(hold_code=23)),
    ("held_by_system", over(hold_code=999)),
    ("vacated_by_system", over(vacate_code=1999)),
    ("vacated", over(vacate_code=1005)),
    ("vacated", over(vacate_code=1005, removed=True)),
    ("vacated", over(vacate_code=1005, hold_code=1)),
    # The program ended itself, and nothing ended it from outside.
    ("exited_zero", DONE),
    ("exited_zero", over(exit_code=0)),
    ("exited_zero", over(exit_code=0, vacate_code=1009, starter_status=0)),
    ("exited_zero", DONE._replace(draining=True, startd_ended=True)),
    ("exited_zero", DONE._replace(starter_status=LOST_SHADOW)),
    ("exited_nonzero", over(exit_code=3)),
    ("exited_nonzero", DONE._replace(exit_code=3, hold_code=3)),  # ON_EXIT_HOLD
    ("exited_nonzero", over(exit_code=3, hold_code=3)),
    ("exited_nonzero", over(exit_code=3, removed=True)),  # it was to run again, then removed
    ("exited_signal", over(exit_signal=11)),
    ("exited_signal", over(exit_signal=9, own_accord=True, startd_ended=True)),
    # Hardly anything is known.
    # A log tells that the access point did not get the exit, and no history tells of one.
    ("exit_unsent", DONE._replace(unsent=True)),
    ("exit_unsent", over(unsent=True, startd_ended=False, superseded=True)),
    ("gone_with_pilot", DONE._replace(unsent=True, startd_ended=True)),
    ("completed_zero", over(unsent=True, completed=True, exit_code=0)),
    ("removed", over(unsent=True, removed=True)),
    ("lease_expired", DONE._replace(unsent=True, starter_status=LOST_SHADOW)),
    # A log has a failure of a container as the run began, and no record has how it ended.
    ("container_logged", over(container_failed=True, began=None)),
    ("container_logged", over(container_failed=True, early=True, startd_ended=True)),
    ("container_logged", over(container_failed=True, began=True, startd_ended=True)),
    ("gone_with_pilot", over(container_failed=True, began=True, early=False, startd_ended=True)),
    ("exit_retried", over(exit_code=4, own_accord=True, retried=True)),
    ("exit_retried", over(exit_code=0, own_accord=True, superseded=True)),
    ("exit_retried", over(exit_signal=11, own_accord=True, superseded=True, hold_code=3)),
    ("exited_nonzero", over(exit_code=4, own_accord=True, retried=True, hold_code=3)),
    ("completed_nonzero", over(exit_code=4, own_accord=True, retried=True, completed=True)),
    ("ended_by_condor", over(exit_code=0, own_accord=False)),
    ("program_failed", over(starter_status=9, startd_ended=False, hold_code=6)),
    ("exited_nonzero", over(container_failed=True, exit_code=1, own_accord=True)),
    ("startd_shutdown", over(container_failed=True, vacate_code=1013)),
    ("disconnected", over(disconnected=True, superseded=True)),
    ("ended_by_condor", over(exit_signal=15, own_accord=False)),
    ("ended_by_condor", over(exit_signal=15, own_accord=False, superseded=True)),
    ("no_record", over(superseded=True)),
    ("no_record", DONE._replace(sending_output=True, superseded=True)),
    ("unknown", OVER),
    ("unknown", over(vacate_code=1017)),
    ("unknown", over(hold_code=1009)),
    ("unknown", over(starter_status=1 << 8, startd_ended=False)),
    ("ended_by_condor", KILLED._replace(vacate_code=1009)),
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
