"""An incident of jobs that want GPUs: a number in quotes (docs/truth.md, 6).  Feigned ads."""

from __future__ import annotations

from pathlib import Path

import htcondor2  # noqa: F401 (names are looked up in both ads, see matching.evaluate)
import pytest

from gwmond.config.settings import Attributes, DemandOptions
from gwmond.explain.answers import answers
from gwmond.explain.reasons import Mover, Tier
from gwmond.explain.situation import Situation
from gwmond.model.facts import EntryKey, Size, Template
from gwmond.sources.htcondor import waiting_job
from gwmond.sources.htcondor.access import Daemon
from gwmond.sources.htcondor.places import ExplainTerms
from tests.pool.adtext import Ad, Expr, ad_text
from tests.sources.feigned_access import Feigned
from tests.sources.make import NOW

CLAUSE = "countMatches(MY.RequireGPUs,TARGET.AvailableGPUs) >= RequestGPUs"
JOB: Ad = {
    "ClusterId": 1,
    "ProcId": 0,
    "JobStatus": 1,
    "JobUniverse": 5,
    "RequestCpus": 1,
    "RequestMemory": 1000,
    "RequestGPUs": 1,
    "Project": "17",
    "RequireGPUs": Expr("Capability >= GPUsMinCapability"),
    "Requirements": Expr(f"{CLAUSE} && Project isnt undefined"),
}
PILOT: Ad = {
    "Cpus": 8,
    "Memory": 16000,
    "GPUs": 2,
    "GPUs_a": Expr("[ Capability = 8.0 ]"),
    "AvailableGPUs": Expr("{ GPUs_a }"),
    "Requirements": Expr("true"),
}


@pytest.mark.parametrize(
    ("capability", "quoted"),
    [("7.5", True), (9.5, False), ("9.5", False), ("high", False), (7.5, None)],
)
def test_6_a_number_as_a_string(
    capability: float | str, quoted: bool | None, tmp_path: Path
) -> None:
    """It is named where the number would be met; None: the job matches."""
    answer = (ad_text(JOB | {"GPUsMinCapability": capability}),)
    access = Feigned({("ap", "job"): answer, ("cm", "slots"): ()}, str(tmp_path / "log"))
    key, size = EntryKey("S", "gpu"), Size(8, 16000, 2)
    template = Template(key, ad_text(PILOT), "gpu", size, None, "measured", "fe.main")
    terms = ExplainTerms(("cm",), (template,), Attributes(), DemandOptions(), NOW)
    found, _ = waiting_job.find(access, Daemon("ap", "ap"), "1.0", terms)
    assert found is not None
    examined, _ = waiting_job.examine(access, *found, terms)
    first = answers(Situation(examined, {}, NOW))[0]
    assert (first.tier is Tier.NOWHERE) == (quoted is not None)
    text = 'it compares a number with a string, GPUsMinCapability is "7.5"'
    assert (text in first.text) == bool(quoted)
    if quoted:
        assert first.text.startswith(f"0 of 1 kind of pilots pass {CLAUSE}: ")
        change = (
            "GPUsMinCapability = 7.5, without quotes (condor_qedit): opens 1 kind of pilots (gpu)"
        )
        assert first.change == change
        assert first.mover is Mover.YOU
