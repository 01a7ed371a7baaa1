"""Why pilots are held: the most frequent reason, and whether anything else is there."""

from __future__ import annotations

from gwmond.model.facts import Held, Hold
from gwmond.sites.held import held


def test_reasons_that_differ_in_numbers_are_one() -> None:
    """Of these the most frequent text is shown."""
    holds = [
        Hold("job 12.0 of ce1: no route", 26, 2),
        Hold("job 13.0 of ce1: no route", 26, 3),
        Hold("a proxy expired", 4, 4),
    ]
    assert held(holds, 0, 1) == Held(
        (Hold("job 13.0 of ce1: no route", 26, 5), Hold("a proxy expired", 4, 4)), most=True
    )


def test_of_reasons_that_are_equally_frequent_the_first_by_its_text_is_told() -> None:
    """A reason is as frequent as its pilots are, also where several counts have the same text."""
    holds = [Hold("b 1", 1, 1), Hold("a 1", None, 2), Hold("b 1", 1, 2), Hold("a 2", None, 1)]
    for told in (holds, holds[::-1]):
        assert held(told, 0, 0) == Held((Hold("a 1", None, 3), Hold("b 1", 1, 3)), most=True)


def test_pilots_that_run_or_wait_in_greater_numbers_are_hope() -> None:
    one = [Hold("x", None, 2)]
    most = [held(one, *others) for others in ((0, 0), (0, 1), (0, 2), (1, 0))]
    assert most == [
        Held((Hold("x", None, 2),), most=is_most) for is_most in (True, True, False, False)
    ]
    assert held([], 0, 0) is None
    assert held([Hold("x", 1, 0)], 0, 0) is None
