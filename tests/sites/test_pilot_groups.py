"""The canonical units of running pilots by use."""

from __future__ import annotations

import pytest

from gwmond.model.facts import Size
from gwmond.model.units import RESOURCES
from gwmond.sites import need
from gwmond.sites.need import Need
from gwmond.sites.pilot_groups import pilot_groups
from tests.build.facts import NOW, pilot

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
