"""One poll after another, with daemons feigned inside the child processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import structlog

from gwmond.config.settings import Config
from gwmond.metrics import catalog
from gwmond.metrics.render import render
from gwmond.model.elapsed import Tick
from gwmond.model.facts import EntryKey, Problem
from gwmond.model.snapshot import Snapshot
from gwmond.model.states import State
from gwmond.service.keeper import Keeper
from gwmond.service.known_entries import EMPTY
from gwmond.service.poller import Poller
from gwmond.service.pool import Pool
from gwmond.service.problem_words import WORDS
from gwmond.sources.htcondor.access import Access
from tests.pool.adtext import Ad, Expr, Value, ad_text
from tests.pool.feign import glidein, glideresource, partitionable_slot
from tests.sources.feigned_access import Feigned
from tests.sources.make import NOW, heard

ENTRY = EntryKey("Site", "entry")
Ads = Sequence[Mapping[str, Value] | str]


class Clock:
    """A clock that a test sets."""

    speed = 1.0

    def __init__(self) -> None:
        self.passed = 0.0

    def tick(self) -> Tick:
        return Tick(NOW + self.passed, 100 + self.passed, 200 + self.passed, "boot")


class FeignedPool(Pool):
    """A pool whose daemons say what a test tells them to."""

    def __init__(self, config: Config, log: Path) -> None:
        super().__init__(config)
        self.answers: dict[tuple[str, str], Ads] = {}
        self.clock = self.time = Clock()
        self._log = log

    def access(self, tick: Tick) -> Access:  # noqa: ARG002
        texts = {
            key: tuple(ad if isinstance(ad, str) else ad_text(ad) for ad in ads)
            for key, ads in self.answers.items()
        }
        return Feigned(texts, str(self._log))

    def asked(self) -> list[str]:
        """What was asked since the last time, as "daemon kind"."""
        lines = self._log.read_text().splitlines()
        self._log.write_text("")
        return lines


class Polls:
    """A poller of a pool with one site: 8 cores run, 80 could, and 12 jobs wait."""

    def __init__(self, tmp_path: Path) -> None:
        self.config = Config.model_validate(
            {
                "pool": {"collectors": ["cm"]},
                "ledger": {"url": f"{tmp_path}/ledger.sqlite"},
                "site": {"pledge": [{"entry": "entry", "cores": 80}]},
            }
        )
        self.pool = FeignedPool(self.config, tmp_path / "log")
        self.keeper = Keeper(self.config.ledger)
        self.poller = Poller(self.config, self.pool, self.keeper)
        self.hear()

    def hear(self) -> None:
        """The collector hears of everybody now."""
        now = int(self.pool.time.tick().wall)
        slot = partitionable_slot("p", started=NOW - 60, now=now, glidein=glidein(), Cpus=0)
        schedd: Ad = {"Name": "ap1", "MyAddress": "<ap1>", "JobsUnmaterialized": 0}
        self.pool.answers |= {
            ("cm", "slots"): [heard(slot, now)],
            ("cm", "templates"): [heard(slot, now)],
            ("cm", "schedds"): [heard(schedd, now)],
            ("cm", "glideresource"): [heard(glideresource(running=1, jobs_idle=12), now)],
            ("<ap1>", "demand"): [job(12)],
        }

    def poll(self, seconds: float = 60) -> Snapshot:
        self.pool.time.passed += seconds
        return self.poller.poll()


def job(count: int, requirements: str = 'TARGET.GLIDEIN_Site == "Site"') -> Ad:
    ad: Ad = {"JobCount": count, "JobStatus": 1, "RequestCpus": 1, "RequestMemory": 1000}
    return ad | {"RequestDisk": 1, "Requirements": Expr(requirements)}


@pytest.fixture
def polls(tmp_path: Path) -> Polls:
    return Polls(tmp_path)


def seconds(found: Snapshot) -> dict[tuple[str, str], float]:
    """Canonical seconds by state and reason."""
    return {(k.state, k.reason): t.micros / 1e6 for k, t in found.totals.items()}


def test_from_ads_to_counters(polls: Polls) -> None:
    """A poll tells the state of a site, and the next has accounted the time between."""
    first = polls.poll(0)
    row = first.evaluation.rows[ENTRY, "cpu"]
    assert (row.state, row.reason) == (State.PROVISIONING_BOTTLENECK, "nothing_requested")
    assert (row.capacity.units, row.provisioned, row.spare) == (80, 8, 72)
    assert first.totals == {}
    assert first.htcondor_version == ""
    second = polls.poll(60)
    assert seconds(second) == {
        ("provisioned", ""): 8 * 60,
        ("provisioning_bottleneck", "nothing_requested"): 12 * 60,
        ("insufficient_demand", ""): 60 * 60,
    }
    assert (second.polls, second.residual) == (2, 0)
    assert set(second.stages) == {"query", "state", "matching", "evaluation", "pilots", "ledger"}
    assert render(catalog.FAMILIES, second, 1000).text


def test_pilots_below_one_unit_are_reported_once_an_entry(polls: Polls) -> None:
    """They count as a unit each; that is told when it begins, and counted once."""
    small = partitionable_slot(
        "p", cpus=1, memory=1900, started=NOW - 60, now=NOW, glidein=glidein()
    )
    polls.pool.answers["cm", "slots"] = [heard(small, NOW)]
    with structlog.testing.capture_logs() as logs:
        for _ in range(3):
            found = polls.poll()
    assert found.evaluation.rows[ENTRY, "cpu"].provisioned == 1
    assert found.problems["entries", "below_one_unit"] == 1
    told = [log for log in logs if log.get("problem") == "below_one_unit"]
    assert [(event["event"], event["detail"]) for event in told] == [
        ("problem", "each pilot counts as one unit: entry")
    ]


def test_free_slots_that_nobody_takes_are_shown_and_counted_once(polls: Polls) -> None:
    """The pilot has 8 units free, and 12 jobs match them, for longer than ten minutes."""
    for minute in range(15):
        polls.hear()
        now = int(polls.pool.time.tick().wall)
        idle = partitionable_slot("p", started=NOW - 60, now=now, glidein=glidein())
        polls.pool.answers["cm", "slots"] = [heard(idle, now)]
        found = polls.poll()
        row = found.evaluation.rows[ENTRY, "cpu"]
        assert row.untaken == (None if minute < 10 else 8000)
    assert {(part.state.value, part.reason): part.amount for part in row.parts} == {
        ("provisioning_bottleneck", "nothing_requested"): 4000,
        ("insufficient_demand", "idle_slots_untaken"): 8000,
        ("insufficient_demand", ""): 60_000,
    }
    assert found.problems["entries", "idle_slots_untaken"] == 1
    assert seconds(found)["insufficient_demand", "idle_slots_untaken"] == 8 * 5 * 60
    name = "gwmond_site_idle_slots_untaken_canonical_units"
    text = render(catalog.FAMILIES, found, 1000).text
    assert f'{name}{{entry="entry",resource="cpu",site="Site"}} 8.0'.encode() in text


def test_verdicts_are_kept(polls: Polls) -> None:
    """What was matched once is not matched again, until jobs or pilots are others."""
    assert matched(polls.poll()) == 1
    before = status(polls.poll())
    assert status(polls.poll()) == before
    polls.pool.answers["<ap1>", "demand"] = [job(12), job(3, "TARGET.Cpus > 99")]
    found = polls.poll()
    assert matched(found) == 1
    assert status(found) != before
    assert found.evaluation.jobs[ENTRY].ours.matching == 12


def status(found: Snapshot) -> tuple[object, ...]:
    (matching,) = [s for s in found.sources if s.kind == "matching"]
    return matching


def matched(found: Snapshot) -> int:
    (matching,) = [s for s in found.sources if s.kind == "matching"]
    return matching.records


def test_matching_that_fails_is_told_in_the_same_poll(
    polls: Polls, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When matching fails it is a problem and a source that is down, and tried again."""
    with monkeypatch.context() as broken:
        broken.setattr("gwmond.sources.htcondor.matching.evaluate", "no function")
        found = polls.poll()
    assert ("gwmond", "failed") in found.problems
    assert [s.up for s in found.sources if s.kind == "matching"] == [False]
    row = found.evaluation.rows[ENTRY, "cpu"]
    assert (row.state, row.evidence) == (State.PROVISIONING_BOTTLENECK, "estimated")
    found = polls.poll()
    assert [s.up for s in found.sources if s.kind == "matching"] == [True]
    assert found.evaluation.rows[ENTRY, "cpu"].evidence == "measured"


def test_problems_are_counted_always_and_logged_once(polls: Polls) -> None:
    """A problem that lasts is counted at each poll, logged when it begins and when it is over."""
    polls.pool.answers["<ap1>", "demand"] = ["!timeout"]
    with structlog.testing.capture_logs() as logs:
        polls.poll()
        found = polls.poll()
        polls.hear()
        polls.poll()
    assert found.problems["ap1", "timeout"] == 2
    told = [(entry["event"], entry["source"], entry["problem"]) for entry in logs]
    assert told == [("problem", "ap1", "timeout"), ("problem over", "ap1", "timeout")]


def test_a_problem_of_records_counts_each_of_them(polls: Polls) -> None:
    """Its event says how many, what it means and what to do; while it lasts it counts no more."""
    told = [
        Problem("factory", "garbage", "/x/a.log: 3 lines", 3),
        Problem("factory", "garbage", "/x/b.log: 2 lines", 2),
        Problem("factory", "link_outside", "/x/job.7.0.out: /etc/passwd"),
    ]
    lasting = [problem._replace(records=0) for problem in told]
    with structlog.testing.capture_logs() as logs:
        polls.poller._count(told)
        polls.poller._count(lasting)
        polls.poller._count(lasting[-1:])
    assert polls.poller._problems == {
        ("factory", "garbage"): 5,
        ("factory", "link_outside"): 1,
    }
    said = [(log["event"], log["problem"], log.get("n"), log.get("detail")) for log in logs]
    assert said == [
        ("problem", "garbage", 5, "/x/a.log: 3 lines; /x/b.log: 2 lines"),
        ("problem", "link_outside", 1, "/x/job.7.0.out: /etc/passwd"),
        ("problem over", "garbage", None, None),
    ]
    assert (logs[0]["meaning"], logs[0]["remedy"]) == WORDS["garbage"]


class Behind:
    """An accountant that has more to fetch, of which each time as much is wrong."""

    behind = True
    shown = None
    cursors = ()

    def drain(self, *_: object) -> list[Problem]:
        return [Problem("records", "no_host", "4 records", 4)]


def test_what_is_wrong_with_a_backlog_is_told_once(
    polls: Polls, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between polls, too: each record counts, the log has one event, and so has the ledger."""
    found = polls.poll()
    with structlog.testing.capture_logs() as logs, monkeypatch.context() as patched:
        patched.setattr(polls.poller, "_accountant", Behind())
        for _ in range(3):
            found = polls.poller.drain(found, 1.0)
    assert found.problems["records", "no_host"] == 12
    assert [(log["event"], log["problem"]) for log in logs] == [("problem", "no_host")]
    polls.poll()
    ledger = polls.keeper.ledger
    assert ledger is not None
    assert [problem.problem.problem for problem in ledger.problems(9)] == ["no_host"]


def test_records_are_counted(polls: Polls) -> None:
    """Ads that sources returned are added up, each once."""
    polls.poll()
    found = polls.poll()
    assert found.records["cm", "slots"] == 2
    assert found.records["ap1", "demand"] == 2
    assert found.records["cm", "templates"] == found.records["gwmond", "matching"] == 1


def test_unknown_time_is_unknown(polls: Polls) -> None:
    """Time in which pilots were not known, and time that was missed, is unknown with its reason."""
    polls.poll(0)
    polls.pool.answers["cm", "slots"] = ["!timeout"]
    polls.poller._config = polls.config.model_copy(
        update={"poll": polls.config.poll.model_copy(update={"interval": 1e-9})}
    )
    polls.poll(60)
    polls.poller._config = polls.config
    polls.hear()
    found = polls.poll(500)
    assert seconds(found) == {
        ("unknown", "pilots"): 80 * 60,
        ("unknown", "missed_poll"): 80 * 500,
    }


def test_successor_goes_on(polls: Polls) -> None:
    """After a reload counters of problems, records and polls go on, and so does the memory."""
    polls.pool.answers["<ap1>", "demand"] = ["!timeout"]
    polls.poll()
    polls.poller = polls.poller.successor(
        polls.config, polls.pool, polls.keeper, polls.poller.memory
    )
    found = polls.poll()
    assert (found.polls, found.problems["ap1", "timeout"]) == (2, 2)
    assert ("provisioned", "") in seconds(found)


def test_what_lasts_through_a_reload_is_told_once(
    polls: Polls, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is over when the new configuration's poller does not find it; the ledger has it, too."""

    def reload() -> None:
        memory = polls.poller.memory
        polls.poller = polls.poller.successor(polls.config, polls.pool, polls.keeper, memory)

    polls.pool.answers["<ap1>", "demand"] = ["!timeout"]
    with structlog.testing.capture_logs() as logs:
        found = polls.poll()
        with monkeypatch.context() as patched:
            patched.setattr(polls.poller, "_accountant", Behind())
            polls.poller.drain(found, 1.0)
        reload()
        polls.poll()
        polls.hear()
        reload()
        polls.poll()
    told = [
        (log["event"], log["problem"]) for log in logs if log.get("source") in {"ap1", "records"}
    ]
    assert told == [
        ("problem", "timeout"),
        ("problem", "no_host"),
        ("problem over", "no_host"),
        ("problem over", "timeout"),
    ]
    ledger = polls.keeper.ledger
    assert ledger is not None
    stored = [problem.problem.problem for problem in ledger.problems(9)]
    assert sorted(stored) == ["no_host", "timeout"]


def test_without_a_keeper_nothing_is_stored(polls: Polls, tmp_path: Path) -> None:
    """A poll on its own shows the state and stores nothing."""
    found = Poller(polls.config, polls.pool, None, EMPTY).poll()
    assert found.evaluation.rows[ENTRY, "cpu"].provisioned == 8
    assert found.totals == {}
    assert found.ledger.last_commit is None
    assert not (tmp_path / "ledger.sqlite").exists()
