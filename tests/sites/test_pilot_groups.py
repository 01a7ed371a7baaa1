"""The canonical units of running pilots by use."""

from __future__ import annotations

import pytest

from gwmond.model.facts import FAILED_SILENT_S, Berth, Size, Stalled, StalledJobs
from gwmond.model.units import RESOURCES
from gwmond.sites import need
from gwmond.sites.need import Need
from gwmond.sites.pilot_groups import pilot_groups
from tests.build.facts import NOW, SMALL, pilot

EIGHT = Size(8, 16384)


@pytest.mark.parametrize(
    ("jobs", "free", "units"),
    [
        ([Size(1, 1500)] * 8, [Size(0, 4384)], (8, 8, 0)),  # less than a unit each
        ([Size(1, 2048)] * 3, [Size(5, 10240)], (8, 3, 5)),
        ([Size(3, 3000)] * 2, [Size(2, 10384)], (8, 6, 2)),  # a third such job does not fit
        ([Size(5, 5000)], [Size(3, 11384)], (8, 5, 3)),  # smaller ones fit beside it
        ([Size(1, 8192)] * 2, [Size(6, 0)], (8, 8, 0)),  # cores without memory are no one's
        ([Size(1, 1500)], [Size(7, 1000)], (8, 1, 0)),  # and none takes what is left
        ([Size(8 / 3, 5000)] * 3, [], (8, 8, 0)),
        ([Size(16, 32768)], [], (8, 8, 0)),  # larger than its pilot says that it is
        ([], [EIGHT], (8, 0, 8)),
    ],
)
def test_what_jobs_take_of_a_pilot(
    jobs: list[Size], free: list[Size], units: tuple[int, int, int]
) -> None:
    """Each the pilot's units divided by how many such jobs fit; total, busy, idle."""
    running = pilot(size=EIGHT, free=free)._replace(jobs=tuple(jobs))
    (group,) = pilot_groups([running], (), 2000, NOW).values()
    assert group.units["cpu"] == units


def test_gpus_are_taken_by_chips() -> None:
    """Jobs without GPUs take none of them."""
    jobs = (Size(1, 2000, 1), Size(1, 2000))
    running = pilot(size=Size(8, 16000, 2), free=[Size(6, 12000, 1)])._replace(jobs=jobs)
    (group,) = pilot_groups([running], (), 2000, NOW).values()
    assert group.units["gpu"] == (2, 1, 1)
    assert group.units["cpu"] == (8, 2, 6)


def test_pilots_are_counted_by_what_they_do() -> None:
    """With jobs, without, refusing any more; those that failed apart, whatever else they say."""
    kinds = [
        *[pilot()._replace(jobs=(SMALL,))] * 1,
        *[pilot()] * 2,
        *[pilot(accepting=False)._replace(jobs=(SMALL,))] * 2,
        *[pilot(accepting=False)] * 1,
        *[pilot()._replace(failed=True)] * 3,
        *[pilot()._replace(failed=True, jobs=(SMALL,))] * 5,
        *[pilot(accepting=False)._replace(failed=True)] * 7,
    ]
    named = [kind._replace(name=f"glidein_{number}") for number, kind in enumerate(kinds)]
    (group,) = pilot_groups(named, {"glidein_0", "glidein_4", "other"}, 2000, NOW).values()
    assert (group.busy, group.idle, group.retiring, group.failed) == (1, 2, 3, 15)
    assert group.unused == 2


def test_idle_units_are_divided_by_why_they_are_idle() -> None:
    """Before the first job, between jobs, beside them, and where no job may start any more."""
    of = pilot(size=Size(8, 16384, 2))
    jobs = (Size(1, 7000, 1), Size(1, 7000))  # one unit of memory is left
    kinds = {
        "first": of,
        "unused, and already busy": of._replace(jobs=jobs),
        "idle": of,
        "refuses": of._replace(jobs=jobs, accepting=False),
        "drains": of._replace(jobs=jobs, accepting=False, draining=True),
        "retires": of._replace(accepting=False),
        "failed": of._replace(failed=True),
        "unknown": of._replace(size=None),
        "more is taken than there is": of._replace(jobs=(Size(9, 100, 3),)),
    }
    named = [kind._replace(name=name) for name, kind in kinds.items()]
    unused = {name for name in kinds if name.startswith(("first", "unused"))}
    berth = Berth(of.entry, of.group)
    starting = {berth: (3, Size(2, 3900, 1)), Berth(of.entry, "alone"): (1, Size(1, 1900))}
    groups = pilot_groups(named, unused, 2000, NOW, starting=starting)
    assert groups.pop(Berth(of.entry, "alone")).overhead == {("cpu", "start"): 1}
    (group,) = groups.values()
    assert group.overhead == {
        ("cpu", "start"): 3 * 1,
        ("gpu", "start"): 3 * 1,
        ("cpu", "draining"): 1,
        ("gpu", "draining"): 1,
        ("cpu", "first_job"): 8,
        ("gpu", "first_job"): 2,
        ("cpu", "beside_jobs"): 1,
        ("gpu", "beside_jobs"): 1,
        ("cpu", "between_jobs"): 8,
        ("gpu", "between_jobs"): 2,
        ("cpu", "retirement"): 1 + 8,
        ("gpu", "retirement"): 1 + 2,
    }


@pytest.mark.parametrize(
    ("dies", "silent_s", "failed"),
    [
        (None, 0, 1),
        (None, FAILED_SILENT_S, 1),
        (None, FAILED_SILENT_S + 1, 0),
        (NOW + 1, 0, 1),
        (NOW, 0, 0),
        (NOW + 1, FAILED_SILENT_S + 1, 0),
    ],
)
def test_a_pilot_that_failed_counts_until_it_has_ended(
    dies: int | None, silent_s: int, failed: int
) -> None:
    """It ends when it said that it would, or when it was not heard of for two of its ads."""
    shown = pilot()._replace(failed=True, dies=dies, last_heard=NOW - silent_s)
    (group,) = pilot_groups([shown], (), 2000, NOW).values()
    assert group.failed == failed


@pytest.mark.parametrize(
    ("jobs", "free", "cpu"),
    [((), (SMALL,), (1, 0, 1)), ((), (), (1, 0, 0)), ((SMALL,), (SMALL,), (1, 1, 0))],
)
def test_a_pilot_below_one_unit_is_a_unit_as_a_whole(
    jobs: tuple[Size, ...], free: tuple[Size, ...], cpu: tuple[int, int, int]
) -> None:
    """One core and 3000 MiB where a unit has 4000: busy or idle; its two GPUs are counted each."""
    shown = pilot(size=Size(1, 3000, 2), free=[*free, Size(0, 0, 1)] if free else [])
    (group,) = pilot_groups([shown._replace(jobs=jobs)], (), 4000, NOW).values()
    assert group.units["cpu"] == cpu
    assert group.units["gpu"] == (2, 0, 1 if free else 0)


def test_a_pilot_of_unknown_size_has_no_units() -> None:
    """It is counted as a pilot, and adds nothing to the units of the others."""
    (group,) = pilot_groups([pilot()._replace(size=None), pilot()], (), 2000, NOW).values()
    assert (group.idle, group.units["cpu"], group.units["gpu"]) == (2, (8, 0, 0), (0, 0, 0))


def test_pilots_that_are_alike_are_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What 1,000 pilots cost that run the same jobs is what one costs."""
    measured: list[Size] = []

    def need_at(job: Size, size: Size, memory_per_unit_mib: int) -> Need | None:
        measured.append(job)
        return need.need_at(job, size, memory_per_unit_mib)

    monkeypatch.setattr("gwmond.sites.pilot_groups.need_at", need_at)
    like = pilot(size=EIGHT, free=[Size(5, 9384)])._replace(jobs=(Size(3, 7001),))
    many = [like._replace(name=f"glidein_{number}") for number in range(1000)]
    (group,) = pilot_groups(many, (), 2000, NOW).values()
    assert group.units["cpu"].total == 8000
    assert len(measured) == len(RESOURCES)


def test_stalled_jobs_of_a_silent_schedd_are_not_known() -> None:
    """None is zero only where no job runs, or all schedds have told."""
    some, other, idle = (
        pilot(group="a")._replace(name="some", jobs=(SMALL,)),
        pilot(group="b")._replace(name="other", jobs=(SMALL,)),
        pilot(group="c")._replace(name="idle"),
    )
    told = Stalled("some", 2, 80.0, 1)

    def stalled(*, whole: bool) -> list[Stalled | None]:
        jobs = StalledJobs({"some": told}, whole)
        groups = pilot_groups([some, other, idle], (), 2000, NOW, jobs)
        return [group.stalled for _, group in sorted(groups.items())]

    assert stalled(whole=True) == [told._replace(startd=""), Stalled(""), Stalled("")]
    assert stalled(whole=False) == [told._replace(startd=""), None, Stalled("")]
