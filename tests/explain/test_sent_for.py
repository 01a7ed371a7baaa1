"""Pilots that were sent and never had a job: what was asked for, and who took the jobs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from gwmond.explain.evidence import Proof
from gwmond.explain.reasons import Explanation, Mover
from gwmond.explain.sent_for import sent_for_answers, sent_for_document
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.ledger.store import Ledger
from gwmond.model.demand.question import Question
from gwmond.model.entries.experiments import Experiment, PilotResult, SiteVerdict
from gwmond.model.factory.totals import FactoryKey, FactoryKind
from gwmond.model.facts import EntryKey
from gwmond.model.pilot_life import Validation
from gwmond.model.poll.batch import Batch
from gwmond.model.states import State
from gwmond.model.times import HOUR_US, SECOND_US
from gwmond.model.totals import SiteKey
from gwmond.reports.pilots.sent_for import SentFor, sent_for
from gwmond.reports.pilots.story import find
from gwmond.reports.render.writing import text
from gwmond.service.pool.explainer import Explainer, NoAnswer
from gwmond.service.pool.questions import explained
from tests.build.pilot_ledger import BASE, LAST, write
from tests.build.web import with_ledger

_HOUR = BASE // 3600
_KEY = EntryKey("Site-B", "entry-b")


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger in which, for half of the first hour, 10 jobs were idle and 4 pilots asked for."""
    path = tmp_path_factory.mktemp("sent") / "ledger.sqlite"
    write(f"sqlite:///{path}")
    kinds = FactoryKind.ASKED_IDLE_SECONDS, FactoryKind.CLIENT_JOBS_IDLE_SECONDS
    factory = {
        FactoryKey(_HOUR, "entry-b", client, kind): 1800 * amount
        for client, more in (("frontend.main", 0), ("frontend.other", 100))
        for kind, amount in zip(kinds, (4 + more, 10 + more), strict=True)
    } | {
        FactoryKey(_HOUR, "entry-b", client, FactoryKind(f"{kind[:-7]}watched_seconds")): 1800
        for client in ("frontend.main", "frontend.other")
        for kind in kinds
    }
    short = SiteKey("cpu", "provisioning_bottleneck", "x", *_KEY)
    with Ledger.open(f"sqlite:///{path}") as opened:
        before = opened.load().batches
        site_time = {(_HOUR, short): 5 * HOUR_US // 2}
        opened.commit(
            Batch(before, (BASE + LAST) * SECOND_US, factory=factory, site_time=site_time)
        )
    return path


@pytest.fixture(scope="module")
def unused(ledger: Path) -> SentFor:
    """What is known of the pilot of an hour that ran no job."""
    with LedgerReader.open(f"sqlite:///{ledger}") as reader:
        (row,) = find(reader, "glidein_2@wn2.example.org")
        return sent_for(reader, row, (BASE + LAST) * SECOND_US)


def first(here: SentFor) -> Explanation:
    return sent_for_answers(here)[0]


def test_for_what_it_was_sent(unused: SentFor) -> None:
    """Means of the hour, of its own entry and group; absent is not zero."""
    sent, ended = unused.demand
    assert (sent.asked, sent.jobs, sent.pending, sent.units) == (
        *(4.0, 10.0, None),
        {"provisioning_bottleneck": 2.5},
    )
    assert (ended.asked, ended.jobs, ended.units) == (None, None, {})


def test_who_took_the_jobs(unused: SentFor) -> None:
    """Two jobs began at another entry of its group in that hour; none on pilots alike."""
    assert unused.while_there == {EntryKey("Site-A", "entry-a"): 2}
    assert not unused.on_its_way
    assert unused.alike == (0, 0, 0)
    found = first(unused)
    assert (found.name, found.mover, found.proof) == (
        *("taken_by_others", Mover.FRONTEND),
        Proof.ESTIMATED,
    )
    assert "the frontend asked for 4.0 idle pilots, with 10.0 idle jobs there" in found.text
    assert "and 2 while it was there; 0 of these 2 at its own entry" in found.text


def test_a_pilot_is_none_of_those_alike(ledger: Path) -> None:
    """However short it lived."""
    with LedgerReader.open(f"sqlite:///{ledger}") as reader:
        (row,) = find(reader, "glidein_2@wn2.example.org")
        short = sent_for(reader, row._replace(end_us=row.start_us), (BASE + LAST) * SECOND_US)
    assert short.alike == (0, 0, 0)


def test_other_reasons(unused: SentFor) -> None:
    nobody: Counter[EntryKey] = Counter()
    assert first(unused._replace(while_there=nobody)).name == "demand_gone"
    bottleneck = SiteVerdict(State.PROVISIONING_BOTTLENECK, "unexplained", "measured")
    check = Experiment(2, _KEY, "frontend.main", bottleneck, 0, 0, PilotResult.IDLE)
    assert first(unused._replace(check=check)).name == "jobs_did_not_come"
    for result in (PilotResult.OPEN, PilotResult.VOID, PilotResult.RAN):
        assert first(unused._replace(check=check._replace(result=result))).name == (
            "taken_by_others"
        )
    row = unused.pilot.row
    never = unused._replace(registered_us=None)
    assert first(never).name == "never_registered"
    failed = row._replace(validation=Validation.FAILED, failure="Corruption disk")
    broken = first(unused._replace(pilot=replace(unused.pilot, row=failed)))
    assert (broken.name, broken.mover) == ("validation_failed", Mover.SITE)
    assert "Corruption disk" in broken.text
    cut_off = row._replace(validation=Validation.UNKNOWN)
    maybe = unused._replace(pilot=replace(unused.pilot, row=cut_off), registered_us=None)
    assert (first(maybe).name, first(maybe).proof) == ("jobs_not_known", Proof.NOT_KNOWN)
    record: Any = sent_for_document(maybe).record()
    assert " HAD PERHAPS A JOB in 1h00m: It is not known whether" in record["first_line"]


def test_all_forms(unused: SentFor) -> None:
    record: Any = sent_for_document(unused).record()
    assert record["first_line"].startswith(
        "Pilot glidein_2@wn2.example.org NEVER HAD A JOB in 1h00m: "
    )
    assert record["demand"][0]["jobs_idle"] == 10
    assert record["runs_begun"] == [
        {
            "site": "Site-A",
            "entry": "entry-a",
            "until_it_registered": 0,
            "while_it_was_there": 2,
        }
    ]
    assert json.dumps(record)


def test_the_command_looks_into_the_ledger(
    ledger: Path,
    tmp_path: Path,
    run: Callable[..., tuple[int, str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where no pool can be asked, then with code 3; by a part of the name, or the number."""
    monkeypatch.setenv("CONDOR_CONFIG", "ONLY_ENV")
    config = tmp_path / "gwmond.toml"
    config.write_text(f'[ledger]\nurl = "sqlite:///{ledger}"\n')
    code, out, _ = run("explain", "--pilot", "glidein_2", "--config", config)
    assert code == 3
    assert "Pilot glidein_2@wn2.example.org NEVER HAD A JOB in 1h00m: When it was sent, the" in out
    assert "Runs of jobs that began meanwhile on pilots of its group:" in out
    _, out, _ = run("explain", "--pilot", "1", "--config", config)
    assert "Pilot glidein_1@wn1.example.org HAD JOBS in 2h00m: It had 3 jobs." in out
    code, _, err = run("explain", "--pilot", "glidein_", "--config", config)
    assert (code, "give a number: 3, 2, 1" in err) == (1, True)
    code, _, err = run("explain", "--pilot", "nobody", "--config", config)
    assert (code, "nor does the ledger" in err) == (1, True)
    config.write_text(f'[ledger]\nurl = "sqlite:///{tmp_path}/none.sqlite"\n')
    code, _, err = run("explain", "--pilot", "nobody", "--config", config)
    assert (code, "none.sqlite" in err) == (1, True)


def test_a_part_of_the_name_of_a_pilot_that_runs(ledger: Path) -> None:
    """It is looked up in the ledger, and explained as it is now, if a collector shows it."""
    there = mock.Mock(entry=_KEY)
    explainer = mock.create_autospec(Explainer, instance=True)
    explainer.pilot.side_effect = {"glidein_3@wn3.example.org": there}.get
    explainer.place.side_effect = NoAnswer("as it is")
    config = with_ledger(f"sqlite:///{ledger}")
    for name in ("glidein_3", "3"):
        with pytest.raises(NoAnswer, match="as it is"):
            explained(config, explainer, Question(name, what="pilot"))
        explainer.place.assert_called_with(_KEY, there)
    explainer.pilot.side_effect = {}.get
    document = explained(config, explainer, Question("3", what="pilot"))
    assert "heard of last: " in text(document, "table", width=200)
