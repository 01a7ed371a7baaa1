"""Histories of real daemons once more, of HTCondor 25.  The tests are in their order: the last one
empties a history."""

from tests.sources.test_histories_live import (  # isort: skip
    pytestmark,
    stage,
    test_epochs_and_history_of_a_real_schedd,
    test_new_records_come_alone,
    test_history_of_a_real_startd_and_its_file,
    test_claims_of_a_real_collector,
    test_what_a_schedd_does_not_keep_and_not_understand,
    test_a_daemon_that_is_gone,
    test_a_real_history_that_is_truncated_is_a_gap,
)

HTCONDOR = "25"

__all__ = [
    "pytestmark",
    "stage",
    "test_a_daemon_that_is_gone",
    "test_a_real_history_that_is_truncated_is_a_gap",
    "test_claims_of_a_real_collector",
    "test_epochs_and_history_of_a_real_schedd",
    "test_history_of_a_real_startd_and_its_file",
    "test_new_records_come_alone",
    "test_what_a_schedd_does_not_keep_and_not_understand",
]
