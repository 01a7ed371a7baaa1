"""A recording tells a replay what jobs do not have to which START expressions refer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gwmond.config.settings import Config, DemandOptions
from gwmond.model.facts import DemandGroup, Verdict
from gwmond.sources import tasks
from gwmond.sources.htcondor import demand, matching
from gwmond.sources.htcondor.access import Daemon
from gwmond.sources.htcondor.pilots import slots
from gwmond.sources.recording.recorder import Recorder
from gwmond.sources.recording.recording import Recording, ReplayAccess
from gwmond.sources.round import Targets
from tests.build.recordings import write
from tests.pool.adtext import Ad, Expr, Value, ad_text
from tests.pool.feign import glidein, partitionable_slot
from tests.sources.feigned_access import Feigned
from tests.sources.make import ATTRIBUTES, NOW, heard


def replayed(tmp_path: Path, start: str, jobs: list[Ad]) -> tuple[list[DemandGroup], list[Verdict]]:
    """Record a pool of one slot and one schedd; return its groups and their verdicts, replayed."""
    slot = heard(partitionable_slot("p", started=NOW - 60, now=NOW, glidein=glidein()))
    slot |= {"Start": Expr(start)}
    there: Ad = {"Name": "ap1", "MyAddress": "<ap1>", "JobsUnmaterialized": 0}
    answers: dict[tuple[str, str], list[Mapping[str, Value]]] = {
        ("cm", "slots"): [slot],
        ("cm", "templates"): [slot],
        ("cm", "schedds"): [heard(there)],
        ("<ap1>", "demand"): [
            {"JobStatus": 1, "RequestCpus": 1, "RequestMemory": 1000, "RequestDisk": 1, **job}
            for job in jobs
        ],
    }
    texts = {key: tuple(map(ad_text, ads)) for key, ads in answers.items()}
    recorder = Recorder(Config(), Targets(("cm",), (), ()))
    frame = recorder.frame(Feigned(texts, str(tmp_path / "log")), NOW)
    path = write(tmp_path / "rec", {NOW: frame}, recorder.asked())
    assert Recording(str(path)).times
    access = ReplayAccess(str(path), NOW, 0)
    grouping = demand.JobGrouping(ATTRIBUTES, DemandOptions())
    asked = access, Daemon("ap1", "<ap1>"), grouping, False, demand.ALL_APART
    found, _ = tasks.schedd_demand(*asked)
    ads = access.collector_ads("cm", slots.query(ATTRIBUTES))
    samples = slots.decode(ads, ATTRIBUTES, "cm", NOW).samples
    whole = access.collector_ads("cm", matching.samples_query(s.slot for s in samples))
    templates = matching.templates_from_slots(whole, samples, ATTRIBUTES)
    pairs = [(i, 0) for i in range(len(found.groups))]
    return list(found.groups), matching.evaluate([g.ad for g in found.groups], templates, pairs)[0]


def test_start_refuses_in_a_replay_what_it_refused(tmp_path: Path) -> None:
    """Jobs with the attribute, with another value and without it are distinguished."""
    jobs: list[Ad] = [
        {"JobCount": 3, "WantVO": "a"},
        {"JobCount": 2, "WantVO": "b"},
        {"JobCount": 1},
    ]
    groups, verdicts = replayed(tmp_path, 'TARGET.WantVO == "a"', jobs)
    assert [group.jobs for group in groups] == [3, 2, 1]
    assert verdicts == [Verdict.YES, Verdict.NO, Verdict.NO]


def test_an_attribute_that_was_left_out_leaves_matches_possible(tmp_path: Path) -> None:
    """What could not be grouped by when it was recorded is not known when it is replayed."""
    jobs: list[Ad] = [{"JobCount": 1, "QDate": n} for n in range(3)]
    _, verdicts = replayed(tmp_path, "TARGET.QDate =!= 7", jobs)
    assert set(verdicts) == {Verdict.POSSIBLE}
