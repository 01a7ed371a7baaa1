from __future__ import annotations

from itertools import permutations

from gwmond.model.facts import Limit, Size
from gwmond.sites.entry_totals import combine
from tests.build.facts import NOW, A, B, request


def test_groups_are_added_and_the_entrys_totals_taken_once() -> None:
    """Two groups on one entry ask twice, but the entry's limit and total are one."""
    found = combine(
        [
            request(group="one", pending=3, running=10, held=1, total_running=70),
            request(group="two", pending=4, running=20, held=2, total_running=70),
        ]
    )[A]
    assert (found.running, found.held) == (30, 3)
    assert found.pending == 7
    assert (found.total_running, found.max_pilots) == (70, 1000)
    assert found.others_running == 40
    assert found.groups == ("one", "two")


def test_the_freshest_ad_tells_a_factorys_totals() -> None:
    """Of the same totals in several ads the one heard last is taken, whatever their order."""
    ads = [
        request(group="old", total_running=50, last_heard=NOW - 300),
        request(group="new", total_running=70, last_heard=NOW),
        request(group="mid", total_running=60, max_pilots=900, last_heard=NOW - 100),
    ]
    for order in permutations(ads):
        found = combine(order)[A]
        assert (found.total_running, found.max_pilots) == (70, 1000)


def test_factories_are_added() -> None:
    """An entry of two factories has the limits of both."""
    found = combine(
        [
            request(factory="one", total_running=50, max_pilots=100, requested_idle=5),
            request(factory="two", total_running=30, max_pilots=200, requested_idle=1),
        ]
    )[A]
    assert found.requested_idle == 6
    assert (found.total_running, found.max_pilots) == (80, 300)


def test_a_job_that_matches_at_two_factories_matches_once() -> None:
    """Matching jobs of one group are the same at each factory; those of groups add up."""
    found = combine(
        [
            request(group="g", factory="one", jobs_matching=10, jobs_proportional=4),
            request(group="g", factory="two", jobs_matching=12, jobs_proportional=6),
            request(group="h", factory="two", jobs_matching=3, jobs_proportional=3),
        ]
    )[A]
    assert found.jobs_matching == 15
    assert found.jobs_proportional == 13


def test_absent_is_not_zero() -> None:
    """A sum of which one ad lacks its part is absent; the others are not touched."""
    found = combine(
        [
            request(group="a", pending=3, jobs_matching=None, max_pilots=None, last_heard=NOW),
            request(group="b", pending=None, max_pilots=100, last_heard=NOW - 60),
        ]
    )[A]
    assert found.pending is None
    assert found.jobs_matching is None
    assert found.max_pilots == 100
    assert found.jobs_proportional == 10
    assert (
        combine([request(factory="x", max_pilots=None), request(factory="y")])[A].max_pilots is None
    )
    assert combine([request(total_running=None)])[A].others_running is None
    both = [request(factory="x", jobs_matching=None), request(factory="y", jobs_matching=3)]
    assert combine(both)[A].jobs_matching is None
    assert combine(reversed(both))[A].jobs_matching is None


def test_an_entry_is_down_when_all_say_so() -> None:
    """One factory, or one frontend, without a downtime keeps the entry open."""
    down, up = request(factory="one", down=True), request(factory="two", down=False)
    assert combine([down])[A].down
    assert combine([down, down._replace(factory="two")])[A].down
    assert not combine([down, up])[A].down
    assert not combine([up])[A].down


def test_limits_are_collected_and_information_is_as_old_as_the_youngest() -> None:
    """Each limit is told once; old information counts only if all of it is old."""
    limit = Limit("GlideClientLimitTotalGlideinsPerEntry", "count=10, limit=10")
    other = Limit("GlideClientCurbCurbIdleGlideinsPerGroup", "count=5, limit=5")
    found = combine(
        [
            request(group="one", limits=(limit,), info_age_s=9000),
            request(group="two", limits=(limit, other), info_age_s=60),
            request(group="three", info_age_s=None),
        ]
    )[A]
    assert found.limits == (other, limit)
    assert found.info_age_s == 60


def test_the_pilots_size_is_from_the_freshest_ad_that_has_one() -> None:
    """An ad that does not describe the pilot does not hide one that does."""
    found = combine(
        [
            request(group="one", pilot_size=None, last_heard=NOW),
            request(group="two", pilot_size=Size(4, 8000), last_heard=NOW - 60),
            request(group="three", pilot_size=Size(2, 4000), last_heard=NOW - 120),
        ]
    )[A]
    assert found.pilot_size == Size(4, 8000)


def test_entries_are_apart() -> None:
    """Each entry has totals of its own."""
    found = combine([request(A, pending=1), request(B, pending=2)])
    assert {key: of.pending for key, of in found.items()} == {A: 1, B: 2}
    assert combine([]) == {}
