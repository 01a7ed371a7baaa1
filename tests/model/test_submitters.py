"""Users' jobs by the own count of schedds."""

from __future__ import annotations

import pytest

from gwmond.model.demand.submitters import SubmitterCount, UserJobs, by_submitter, user_of
from gwmond.model.demand.submitters import together as all_of


def told(
    *numbers: int | None, name: str = "ada@x", schedd: str = "ap1", pool: str = "", at: int = 100
) -> SubmitterCount:
    waiting, running, held = numbers
    return SubmitterCount(schedd, name, pool, waiting, running, held, at)


def counts(one: UserJobs) -> tuple[int, int | None, int | None, int | None, int | None]:
    return len(one.schedds), one.waiting, one.running, one.held, one.told


@pytest.mark.parametrize(
    ("name", "groups", "user"),
    [
        ("ada@x", {"cms"}, "ada@x"),
        ("cms.ada@x", {"cms"}, "ada@x"),
        ("CMS.Prod.ada@x", {"cms", "cms.prod"}, "ada@x"),
        ("cms.prod.ada@x", {"cms"}, "prod.ada@x"),
        ("ligo.dev.albert.einstein@y.org", {"ligo.dev"}, "albert.einstein@y.org"),
        ("albert.einstein@y.org", {"ligo.dev", "einstein"}, "albert.einstein@y.org"),
        ("cmsada@x.y", {"cms", "x"}, "cmsada@x.y"),
        ("cms.ada", {"cms"}, "ada"),
        (".ada@x", {""}, ".ada@x"),
    ],
)
def test_users_of_submitters(name: str, groups: set[str], user: str) -> None:
    """What is before a user is cut off only if it is an accounting group, the longest that is."""
    assert user_of(name, groups) == user


def test_schedds_are_added_up() -> None:
    """Of a submitter all schedds count, and the oldest of their counts says how old the sum is."""
    (found,) = by_submitter([told(5, 2, 1), told(7, 0, 0, schedd="ap2", at=90)], ())
    assert counts(found) == (2, 12, 2, 1, 90)


def test_replicas_count_once() -> None:
    """Of what one schedd told two collectors the later counts."""
    for order in (1, -1):
        (found,) = by_submitter([told(5, 2, 1), told(4, 3, 0, at=101)][::order], ())
        assert counts(found) == (1, 4, 3, 0, 101)


def test_a_schedd_that_flocks_counts_once() -> None:
    """Its jobs wait once, as it says at home, whatever it says elsewhere; they run in both."""
    for order in (1, -1):
        both = [told(5, 2, 1), told(0, 3, 1, pool="other", at=101)][::order]
        assert counts(by_submitter(both, ())[0]) == (1, 5, 5, 1, 100)
    away = [told(5, 0, 1, pool="a"), told(6, 3, 2, pool="b", at=101)]
    assert counts(by_submitter(away, ())[0]) == (1, 6, 3, 2, 100)


def test_what_is_not_told_is_not_known() -> None:
    """It is no 0, nor is a sum with it."""
    (found,) = by_submitter([told(None, 2, 0), told(7, 0, 0, schedd="ap2")], ())
    assert counts(found) == (2, None, 2, 0, 100)
    assert not found.is_none
    assert not by_submitter([told(None, None, None)], ())[0].is_none
    assert by_submitter([told(0, 0, 0)], ())[0].is_none


def test_a_user_is_several_submitters() -> None:
    """By accounting group; a schedd that has jobs of both is one."""
    names = "ada@x", "cms.ada@x", "cms.ada.l@x"
    found = by_submitter([told(5, 2, 1, name=name) for name in names], {"cms"})
    assert [one.user for one in found] == ["ada@x", "ada.l@x", "ada@x"]
    assert counts(all_of([one for one in found if one.is_of("ada")])) == (1, 10, 4, 2, 100)


def test_of_whom_jobs_are() -> None:
    """A user of any domain, or of one; a name with dots may have a group that is not known."""
    (whole,) = by_submitter([told(1, 0, 0, name="cms.ada@x")], ())
    assert [whole.is_of(name) for name in ("cms.ada", "cms.ada@x", "ada", "ada@x")] == [
        *(True, True, False, False)
    ]
    assert [whole.may_be_of(name) for name in ("ada", "ada@x", "da", "ada@y", "cms.ada")] == [
        *(True, True, False, False, False)
    ]
    assert not whole.is_of("cms.ada@y")
