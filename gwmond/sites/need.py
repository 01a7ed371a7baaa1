"""The need of a job: what it takes of a pilot, in canonical units.

Source of the rule: design page, section 2.  A job's need at an entry is that entry's empty pilot
divided by how many such jobs fit into it: 8 jobs of 1 core and 2048 MiB fit a pilot of 8 cores and
16384 MiB, which is 8 units, so each takes 1 unit there.  Of a pilot of 8 cores only one job of 5
cores fits, so it takes all 8.

Cores and memory are one resource (``cpu``), GPUs another: a job which takes the only GPU of a
pilot leaves its other cores to jobs without GPUs.
"""

from __future__ import annotations

from typing import NamedTuple

from gwmond.model.facts import Size
from gwmond.model.sizes import units_of_pilot
from gwmond.model.units import DEFAULT_MEMORY_MIB, Resource


class Need(NamedTuple):
    """Canonical units of both resources that one job takes."""

    cpu: float
    gpu: float = 0.0

    def units(self, resource: Resource) -> float:
        """Return the units of one resource."""
        return self.gpu if resource == "gpu" else self.cpu


def footprint(job: Size, memory_per_unit_mib: int = DEFAULT_MEMORY_MIB) -> Size:
    """Return the size of one job; a job that requests neither cores nor memory takes one unit."""
    if job.cores <= 0 and job.memory_mib <= 0:
        return Size(1, memory_per_unit_mib, job.gpus)
    return job


def need_at(job: Size, pilot: Size, memory_per_unit_mib: int = DEFAULT_MEMORY_MIB) -> Need | None:
    """Return the need of a job in an empty pilot, or None if it does not fit.

    >>> need_at(Size(1, 2048), Size(8, 16384)), need_at(Size(5, 2000), Size(8, 16000))
    (Need(cpu=1.0, gpu=0.0), Need(cpu=8.0, gpu=0.0))
    """
    cores, memory, gpus = footprint(job, memory_per_unit_mib)
    pairs = ((cores, pilot.cores), (memory, pilot.memory_mib))
    fitting = min(int(room // asked) for asked, room in pairs if asked > 0)
    if fitting < 1 or gpus > pilot.gpus:
        return None
    cpu = max(1, units_of_pilot(pilot, "cpu", memory_per_unit_mib)) / fitting
    return Need(cpu, pilot.gpus / (pilot.gpus // gpus) if gpus > 0 else 0.0)


def own_need(job: Size, memory_per_unit_mib: int = DEFAULT_MEMORY_MIB) -> Need:
    """Return the units of a job that fits no pilot we know: the larger of its cores and memory.

    Nothing is rounded, since there is no pilot in which the rest would be lost.

    >>> own_need(Size(64, 2000)), own_need(Size(0, 0, 1))
    (Need(cpu=64.0, gpu=0.0), Need(cpu=1.0, gpu=1.0))
    """
    cores, memory, gpus = footprint(job, memory_per_unit_mib)
    return Need(max(cores, memory / memory_per_unit_mib), float(gpus))
