"""Slots with room for jobs that only send their output, as etc/condor/overlap.conf makes them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gwmond.model.facts import Size, Verdict
from gwmond.sources.htcondor import ads, matching
from gwmond.sources.htcondor.pilots import slots, startds
from tests.pool.adtext import Ad, Expr
from tests.pool.feign import glidein, partitionable_slot
from tests.sources.make import ATTRIBUTES, NOW, classad, classads, heard

CONF = (Path(__file__).parents[2] / "etc/condor/overlap.conf").read_text()
FACTOR = 2
MACRO = r"\$\((\w+)(?::\$\(\w+:\w+\))?\)"


def setting(name: str) -> str:
    """What the file sets, with its own macros put in, on a pilot that takes all jobs."""
    known = {"START": "True", "IsOwner": "False", "OVERLAP_SENDERS": str(FACTOR - 1)}
    for found, value in re.findall(r"^(\w+) = (.*)$", CONF, re.MULTILINE):
        known[found] = re.sub(MACRO, lambda word: known.get(word[1], word[0]), str(value))
    return known[name]


def overlapping(jobs: list[tuple[int, int]], *, lists: bool = True) -> Ad:
    """A pilot of 8 cores and 16384 MiB; jobs by cores and whether they run (1) or only send."""
    cores = [cores for cores, _ in jobs]
    whole = partitionable_slot(
        "pilot", cpus=8 * FACTOR, started=NOW - 3600, now=NOW, glidein=glidein()
    )
    ad = heard(whole) | {
        "Cpus": 8 * FACTOR - sum(cores),
        "TotalSlotMemory": 16384 * FACTOR,
        "Memory": 16384 * FACTOR - 2048 * sum(cores),
        "RealCpus": Expr(setting("RealCpus")),
        "RealMemory": Expr(setting("RealMemory")),
        "Start": Expr(setting("START")),
        "Requirements": Expr("Start"),
    }
    if not lists:
        return {name: value for name, value in ad.items() if not name.startswith("Child")}
    busy = [cores * runs for cores, runs in jobs]
    return ad | {
        "ChildCpus": cores,
        "ChildMemory": [2048 * n for n in cores],
        "ChildState": ["Claimed"] * len(jobs),
        "ChildBusyCpus": busy,
        "ChildBusyMemory": [2048 * n for n in busy],
    }


def decoded(ad: Ad) -> slots.Slots:
    return slots.decode(classads(ad), ATTRIBUTES, "collector", NOW)


def test_a_pilot_is_as_large_as_what_is_there() -> None:
    """A job that sends is no job any more, and what it had is free."""
    (pilot,) = decoded(overlapping([(4, 1), (2, 0), (2, 1)])).pilots
    assert (pilot.size, pilot.senders) == (Size(8, 16384), 8)
    assert pilot.jobs == (Size(4, 8192), Size(2, 4096))
    assert pilot.free == (Size(2, 4096),)


def test_where_all_may_send_nothing_is_free() -> None:
    """The slot has no room for another job while so many send."""
    (pilot,) = decoded(overlapping([(8, 0), (8, 0)])).pilots
    assert (pilot.jobs, pilot.free) == ((), ())


def test_a_full_pilot_takes_jobs() -> None:
    """It is "Owner" until a core is free; one that drains takes none."""
    full = overlapping([(8, 1)]) | {"State": "Owner"}
    (pilot,) = decoded(full).pilots
    assert (pilot.accepting, pilot.free) == (True, ())
    (drains,) = decoded(full | {"Draining": True}).pilots
    assert not drains.accepting


@pytest.mark.parametrize(
    ("jobs", "full"), [([], False), ([(8, 1)], True), ([(8, 0)], False), ([(8, 0), (8, 1)], True)]
)
def test_a_pilot_without_a_free_core_is_no_idle_one(
    jobs: list[tuple[int, int]], full: bool
) -> None:
    """GlideinWMS's frontend counts unclaimed slots with cores (getIdleCondorStatus)."""
    ad = classad(overlapping(jobs))
    ad["IsOwner"] = ads.expression(setting("IsOwner").replace("MY.", ""))
    assert ad.eval("IsOwner") is full


def test_without_lists_of_its_dynamic_slots_all_jobs_run() -> None:
    """ADVERTISE_PSLOT_ROLLUP_INFORMATION = False: who sends is not known."""
    (pilot,) = decoded(overlapping([(4, 1), (2, 0)], lists=False)).pilots
    assert pilot.jobs == (Size(6, 12288),)
    assert pilot.free == (Size(2, 4096),)


@pytest.mark.parametrize(
    ("jobs", "cores", "taken"),
    [
        ([], 8, True),
        ([], 9, False),
        ([(8, 0)], 8, True),
        ([(8, 1)], 1, False),
        ([(4, 1), (4, 0)], 4, True),
        ([(4, 1), (4, 0)], 5, False),
    ],
)
def test_no_more_runs_than_there_is(jobs: list[tuple[int, int]], cores: int, taken: bool) -> None:
    """START itself, by HTCondor's own evaluation; the last line of defence is the pilot's."""
    ad, job = classad(overlapping(jobs)), classad({"RequestCpus": cores, "RequestMemory": 2048})
    ad["Job"] = job
    start = str(ad.lookup("Start")).replace("TARGET.", "Job.").replace("MY.", "")
    ad["Start"] = ads.expression(start)
    assert ad.eval("Start") is taken


@pytest.mark.parametrize(
    ("cores", "verdict"), [(1, Verdict.YES), (8, Verdict.YES), (9, Verdict.NO)]
)
def test_an_empty_pilot_takes_what_fits_into_what_is_there(cores: int, verdict: Verdict) -> None:
    """The template is of the real size, whatever runs on the pilot that stands for it."""
    ad = overlapping([(4, 1), (4, 0)])
    found = decoded(ad)
    (template,) = matching.templates_from_slots(classads(ad), found.samples, ATTRIBUTES)
    assert template.size == Size(8, 16384)
    job = f"[ RequestCpus = {cores}; RequestMemory = 2048; Requirements = TARGET.Cpus >= {cores} ]"
    (told,), _ = matching.evaluate([job], [template], [(0, 0)])
    assert told is verdict


def test_a_startd_alone_does_not_say_how_large_it_is() -> None:
    """Its TotalCpus has the cores that are not there."""
    ad = heard({"Name": "pilot", "TotalCpus": 16, "TotalMemory": 32768, "JobStarts": 1})
    (plain,) = startds.decode(classads(ad), ATTRIBUTES, NOW).pilots
    real = ad | {"RealCpus": Expr(setting("RealCpus"))}
    (pilot,) = startds.decode(classads(real), ATTRIBUTES, NOW).pilots
    assert (plain.size, pilot.size) == (Size(16, 32768), None)
