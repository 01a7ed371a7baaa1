"""What is not known of pilots is neither zero nor "no"; both styles of the report agree on it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from gwmond.ledger.store import Ledger
from gwmond.model.pilot_life import Validation
from gwmond.model.pilots.pilot_facts import replace
from gwmond.model.times import SECOND_US
from gwmond.pilots.accounting import PilotAccounting
from gwmond.pilots.life.rules import Rules
from tests.build.accounting import Steps
from tests.build.pilot_files import FAILED, output
from tests.build.play import T0

Report: TypeAlias = Callable[..., str]
OUTPUTS = (
    output(activations=0),  # no job ran
    output(validation=Validation.FAILED, failure=FAILED),
    output(validation=Validation.FAILED),  # why is not told
    output(
        0, None, validation=Validation.UNKNOWN, validation_end_us=None, written_us=None
    )._replace(pause=None, condor_end_us=None),
)


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four pilots of four cores; of the last nothing is known but that it began, and lasted."""
    path = tmp_path_factory.mktemp("ledger") / "ledger.sqlite"
    with Ledger.open(str(path)) as writer:
        steps = Steps(PilotAccounting(writer.load(), Rules(refresh_us=0)), writer)
        for number, pilot_name in enumerate(OUTPUTS):
            steps.add_facts([pilot_name._replace(name=pilot_name.name._replace(proc=number))])
        (lasts,) = (
            pilot for pilot in steps.accounting.pilots if pilot.identity.factory_job.endswith("7.3")
        )
        output_facts = lasts.facts.output
        assert output_facts is not None
        ended = replace(output_facts, end_us=(T0 + 1200) * SECOND_US)
        lasts.learn(replace(lasts.facts, output=ended))
        for at in (3000, 86_400):
            now_us = (T0 + at) * SECOND_US
            steps.settle(now_us, now_us)
            steps.store(now_us)
    return path


@pytest.fixture
def report(ledger: Path, printed: Report) -> Report:
    days = ("--from", "2023-11-14", "--to", "2023-11-16")
    return partial(printed, "report", "--ledger", ledger, *days)


def test_shares_are_of_what_is_known(report: Report) -> None:
    """Of four pilots, two failed and one ran no job; of the fourth neither is known."""
    whole: dict[str, Any] = json.loads(report("--format", "json"))["total"]["analyze_entries"]
    assert (whole["pilots_with_known_start"], whole["pilots_with_known_jobs"]) == (3, 3)
    assert whole["failed_validation_share_of_pilots"] == 2 / 3
    assert whole["without_jobs_share_of_pilots"] == 1
    assert whole["not_known_core_seconds"] == 4 * 1200
    assert whole["waste_core_seconds"] == sum(
        whole[f"{name}_core_seconds"] for name in ("failed_validation", "idle", "not_known")
    )
    assert (whole["jobs"], whole["pilots_with_known_number_of_jobs"]) == (0, 3)
    text = report()
    assert "Jobs: 0+n/k (avg jobs/pilot: 0.00, avg job length: n/k)" in text
    assert "How many jobs ran is known of 3 of 4 pilots that ended" in text
    assert "only statistics" not in text
    assert "runs open." in text
    marked = report("--format", "markdown")
    (header,) = (
        line for line in marked.splitlines() if line.startswith("| site | pilots | jobs |")
    )
    assert "| idle | unkn | wst |" in header
    assert "| used / total |" in header
    assert not re.search(r"\| (n/k|efficiency) \|", header)
    assert "Whether HTCondor started (strt) is known of 3 of 4 pilots." in text
    assert "time not known: " in text


def test_the_styles_agree(report: Report) -> None:
    """The same pilots, though one counts core-hours."""
    whole = json.loads(report("--format", "json"))["total"]["analyze_entries"]
    found = json.loads(report("--style", "analyze-entries", "--format", "json"))
    (style,) = (of for of in found["records"] if of["part"] == "total")
    assert style["strt_share"] == whole["failed_validation_share_of_pilots"]
    assert style["0job_share"] == whole["without_jobs_share_of_pilots"]
    numbers = "pilots_with_known_start", "pilots_with_known_jobs", "jobs", "jobs_per_pilot"
    for name in (*numbers, "pilots_with_known_number_of_jobs"):
        assert style[name] == whole[name]


def test_shares_of_a_block_are_of_all_time(report: Report) -> None:
    """Where it is not known of all pilots when their validation ended; so the lines sum up."""
    text = report("--style", "analyze-entries")
    found = dict(re.findall(r"^Total time (\w.*): .* -\s+([\d.]+)%\)$", text, re.MULTILINE))
    shares = {name: float(of) for name, of in found.items()}
    assert list(shares) == ["used", "validating", "idle", "not known", "wasted"]
    assert shares["not known"] > 0
    parts = shares["validating"] + shares["idle"] + shares["not known"]
    assert parts == pytest.approx(shares["wasted"], abs=0.15)
    assert "avg job len: n/k" in text
    head = " ".join(text.partition("Total")[0].split())
    assert "How many jobs ran is known of 3 of 4 pilots that ended" in head
    assert 'others\' time without jobs is "time not known"' in head


def test_groups_by_failure(report: Report) -> None:
    """One that did not fail, one of which that is not known, and one that failed unnamed."""
    groups = json.loads(report("--by", "failure", "--format", "json"))["groups"]
    names = [group["failure"] for group in groups]
    assert sorted(names[:2]) == sorted(["Unknown", f"{FAILED.kind.value} {FAILED.test}"])
    assert names[2:] == ["?", ""]
    text = report("--by", "failure")
    assert "(not known whether it failed)" in text
    assert "(validation did not fail)" in text
