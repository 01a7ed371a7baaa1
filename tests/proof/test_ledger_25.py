"""The ledger against the truth once more, on HTCondor 25."""

from tests.proof.test_ledger import (
    played,
    pytestmark,
    test_counters_are_what_is_stored,
    test_it_was_killed_often_enough,
    test_the_ledger_agrees_with_the_truth,
    test_the_ledger_proves_itself,
    test_three_ledgers_agree,
)

HTCONDOR = "25"

__all__ = [
    "played",
    "pytestmark",
    "test_counters_are_what_is_stored",
    "test_it_was_killed_often_enough",
    "test_the_ledger_agrees_with_the_truth",
    "test_the_ledger_proves_itself",
    "test_three_ledgers_agree",
]
