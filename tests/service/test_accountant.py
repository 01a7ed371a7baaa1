"""When pilots' time is settled, with daemons feigned inside the child processes."""

from __future__ import annotations

from pathlib import Path

import pytest
import structlog

from gwmond.ledger.database.errors import LedgerFull
from gwmond.ledger.store import Ledger
from gwmond.model.factory.totals import FactoryKey, FactoryKind
from gwmond.model.poll.snapshot import Snapshot
from gwmond.model.problem_names import ProblemName
from gwmond.pilots.factory.numbers import FactoryNumbers
from tests.build.polls import Polls, made
from tests.pool.feign import failed_validation, glidein, glideresource, partitionable_slot
from tests.sources.make import NOW, heard


def spent(found: Snapshot) -> dict[str, float]:
    """Canonical seconds by category."""
    assert found.pilot_time is not None
    shown = found.pilot_time.shown.items()
    return {
        pilot_series.category.value: n.micros / 1e6
        for pilot_series, n in shown
        if pilot_series.measure == "canonical"
    }


@pytest.mark.parametrize("schedds", [True, False])
def test_a_pilot_without_jobs(tmp_path: Path, schedds: bool) -> None:
    """Its time is settled once it has ended, whether or not histories are read."""
    polls = made(tmp_path, {"schedds": schedds})
    for _ in range(5):
        polls.hear()
        found = polls.poll()
    assert spent(found) == {}
    assert found.pilot_time is not None
    assert sum(found.pilot_time.unsettled.values()) > 0
    polls.hear()
    polls.pool.answers["cm", "slots"] = []
    for _ in range(4):
        found = polls.poll()
    assert spent(found) == {"decision_problem": 8 * 360.0}
    assert found.pilot_time is not None
    assert {count_key.what: n.micros for count_key, n in found.pilot_time.counted.items()} == {
        "pilots": 1
    }


@pytest.mark.parametrize(("cores", "units"), [(16, 16), (None, 1)])
def test_a_failed_validation_is_as_large_as_expected(
    tmp_path: Path, cores: int | None, units: int
) -> None:
    """What the entry's glideresource ad says reaches the accounting with each poll."""
    polls = made(tmp_path, {"schedds": False})
    dies = NOW + 200
    for _ in range(6):
        now = int(polls.pool.time.tick().wall)
        ad = failed_validation(1, 1, dies=dies, now=NOW) | glidein("other", "Site")
        asked = glideresource("other", cpus=cores or 8, memory=32_000)
        if cores is None:
            asked = {name: number for name, number in asked.items() if name != "GLIDEIN_CPUS"}
        polls.pool.answers["cm", "slots"] = [heard(ad, min(now, NOW + 180))]
        polls.pool.answers["cm", "glideresource"] = [heard(asked, now)]
        found = polls.poll()
    assert spent(found) == {"validation_fails": units * 200.0}


def test_nothing_is_settled_before_claims_were_seen(tmp_path: Path) -> None:
    """A job may run on it that nobody has told of yet."""
    polls = made(tmp_path, {"schedds": False})
    polls.pool.answers["cm", "claims"] = ["!denied"]
    polls.hear()
    polls.poll()
    polls.pool.answers["cm", "slots"] = []
    for _ in range(4):
        found = polls.poll()
    assert spent(found) == {}


def test_what_ads_say_is_watched_for_real_time(tmp_path: Path) -> None:
    """A poll that was missed is not watched, and neither is the time before the first one."""
    polls = made(tmp_path, {"schedds": False})
    for seconds in (60, 60, 45.5, 500, 60):
        polls.hear()
        found = polls.poll(seconds)
    assert found.pilot_time is not None
    numbers = {kind: shown.micros for (*_, kind), shown in found.pilot_time.factory.items()}
    assert numbers[FactoryKind.WATCHED_SECONDS] == 60 + 45 + 60
    running = numbers[FactoryKind.STATUS_RUNNING_SECONDS]
    assert running == numbers[FactoryKind.STATUS_RUNNING_WATCHED_SECONDS] == 60 + 45 + 60


def no_space(*_: object) -> None:
    """Store nothing."""
    raise LedgerFull("L", "no space left", "Free some.")


@pytest.mark.parametrize("source", ["factory", "central_log"])
def test_what_a_look_finds_is_told_though_the_ledger_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    """In the same poll, beside the failure; it lasts until there is another look, told once."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "job.7.0.out").symlink_to("/etc/passwd")
    (root / "completed_jobs_20261121.log").write_text("nonsense\n" * 3)
    option = {"factory": "directories", "central_log": "central_logs"}[source]
    polls = made(tmp_path, {"schedds": False}, {option: [str(root)]})
    with structlog.testing.capture_logs() as logs:
        with monkeypatch.context() as full:
            full.setattr(Ledger, "commit", no_space)
            found = polls.poll()
            assert found.problems["ledger", ProblemName.FULL] == 1
            polls.poll()
        for _ in range(2):
            found = polls.poll()
    assert found.problems["ledger", ProblemName.FULL] == 2
    assert found.problems[source, ProblemName.LINK_OUTSIDE] == 1
    assert found.problems[source, ProblemName.GARBAGE] == 3
    told = [(log["event"], log["problem"]) for log in logs if log.get("source") == source]
    assert sorted(told) == [("problem", "garbage"), ("problem", "link_outside")]


def test_what_a_look_finds_between_polls_is_told_though_the_ledger_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a poll."""
    root = tmp_path / "root"
    root.mkdir()
    polls = made(tmp_path, {"schedds": False}, {"directories": [str(root)], "every": "1ms"})
    found = polls.poll()
    (root / "job.7.0.out").symlink_to("/etc/passwd")
    monkeypatch.setattr(Ledger, "commit", no_space)
    found = polls.poller.drain(found, 10.0)
    assert found.problems["ledger", ProblemName.FULL] == 1
    assert found.problems["factory", ProblemName.LINK_OUTSIDE] == 1


def test_a_poll_is_one_commit(tmp_path: Path) -> None:
    """Site time and pilots' time have one number, and each poll adds one to it."""
    polls = made(tmp_path, {"schedds": False})
    for number in range(1, 4):
        polls.hear()
        polls.poll()
        state = polls.ledger.load()
        assert state.batches == number
        assert state.tick == polls.keeper.accounted is not None
        assert len(state.pilots) == 1


def test_site_time_goes_on_though_pilots_time_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no pilot is at fault; pilots' time waits, and is stored when it is not refused."""
    polls = made(tmp_path, {"schedds": False})
    polls.hear()
    polls.poll()
    ledger = polls.ledger
    with monkeypatch.context() as wrong:
        senseless = FactoryKey(-1, "entry", "fe", FactoryKind.QUEUE_STARTED)
        wrong.setattr(FactoryNumbers, "changes", lambda _: {senseless: 1})
        for number in range(2, 5):
            polls.hear()
            found = polls.poll()
            assert ledger.load().batches == number
            assert ledger.load().tick == polls.keeper.accounted
    assert found.problems["ledger", ProblemName.REFUSED] == 2
    heard = ledger.load().pilots[0].posted_last_heard_us
    polls.hear()
    found = polls.poll()
    assert found.problems["ledger", ProblemName.REFUSED] == 2
    assert ledger.load().pilots[0].posted_last_heard_us >= heard
    assert all(residual.micros == 0 for residual in ledger.check())


def checked(polls: Polls, arrives_after: float) -> dict[tuple[str, str], int]:
    """What is counted half an hour after a second pilot came, whose first poll is so late."""
    clock = polls.pool.time

    def hear(*pilots: tuple[str, int]) -> None:
        polls.hear()
        now = int(clock.tick().wall)
        slots = [
            heard(partitionable_slot(name, started=started, now=now, glidein=glidein()), now)
            for name, started in (("p", NOW - 60), *pilots)
        ]
        polls.pool.answers |= {("cm", "slots"): slots, ("cm", "templates"): slots[:1]}

    for _ in range(3):
        hear()
        polls.poll()
    started = int(clock.tick().wall + arrives_after - 30)
    hear(("q", started))
    polls.poll(arrives_after)
    for _ in range(30):
        hear(("q", started))
        found = polls.poll()
    assert found.pilot_time is not None
    counted = found.pilot_time.counted.items()
    return {
        (count_key.category.value, count_key.outcome): n.micros
        for count_key, n in counted
        if count_key.what == "verdicts"
    }


@pytest.mark.parametrize(
    ("arrives_after", "expected"), [(60, {("provisioning_bottleneck", "false"): 1}), (121, {})]
)
def test_a_pilot_that_registers_checks_the_verdict_of_the_poll_before(
    tmp_path: Path, arrives_after: float, expected: dict[tuple[str, str], int]
) -> None:
    """It stays idle although jobs were said to wait; not where a poll was missed before it."""
    polls = made(tmp_path, {"schedds": False})
    assert checked(polls, arrives_after) == expected
