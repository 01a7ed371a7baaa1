"""The scenario once more, on HTCondor 25."""

from tests.proof.test_scenario import (
    played,
    pytestmark,
    test_each_run_ended_as_planned,
    test_the_schedds_have_what_is_over,
    test_the_seconds_are_the_pilots,
    test_what_the_pilots_tell_while_they_live,
)

HTCONDOR = "25"

__all__ = [
    "played",
    "pytestmark",
    "test_each_run_ended_as_planned",
    "test_the_schedds_have_what_is_over",
    "test_the_seconds_are_the_pilots",
    "test_what_the_pilots_tell_while_they_live",
]
