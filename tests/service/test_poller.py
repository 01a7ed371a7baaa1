"""One poll after another, with daemons feigned inside the child processes."""

from __future__ import annotations

from pathlib import Path

import pytest
import structlog

from gwmond.metrics import catalog
from gwmond.metrics.render import render
from gwmond.model.entries.evaluation import SCALE, Part
from gwmond.model.facts import Problem
from gwmond.model.poll.snapshot import STAGES, IdleReason, Snapshot
from gwmond.model.problem_names import ProblemName
from gwmond.model.states import State
from gwmond.service.accounting.ledger_keeper import LedgerKeeper
from gwmond.service.poller import Poller
from gwmond.service.pool.known_entries import EMPTY
from tests.build.polls import ENTRY, Polls, job, made
from tests.pool.adtext import Ad, Expr
from tests.pool.feign import glidein, partitionable_slot
from tests.sources.make import NOW, heard


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
    assert set(second.stages) == set(STAGES)
    assert render(catalog.FAMILIES, second, 1000).text


def test_why_jobs_wait(polls: Polls) -> None:
    """Each job once; jobs that match no pilot are analysed once, without a query of the schedd."""
    misspelt = job(3, 'TARGET.GLIDEIN_Site == "Sitte"')
    polls.pool.answers["<ap1>", "demand"] = [job(12), misspelt]
    polls.poll(0)
    polls.pool.asked()
    found = polls.poll(60)
    assert polls.pool.asked().count("<ap1> demand") == 1
    mover = "the frontend's administrator"
    assert found.idle == (
        IdleReason("pilots_there", "pilots_busy", "Site", mover, 12.0, 12.0, 0.0),
        IdleReason("nowhere", "unknown_site", "none", "the jobs' users", 3.0, 3.0, 0.0),
    )
    assert found.records["gwmond", "explain"] == 1
    polls.pool.answers["<ap1>", "demand"] = []
    assert polls.poll().idle == ()


def test_jobs_that_only_retiring_pilots_would_take(polls: Polls) -> None:
    """As of one job; these pilots keep no other jobs, and the sums are those of all jobs."""
    more = {"GLIDEIN_Site": "Old", "GLIDEIN_Entry_Name": "old"}
    slot = partitionable_slot(
        "q", started=NOW - 60, now=NOW, glidein=glidein() | more, Draining=True, Start=False
    )
    slot |= {"State": "Drained", "Requirements": Expr("START")}
    polls.pool.answers["cm", "slots"] = [*polls.pool.answers["cm", "slots"], heard(slot, NOW)]
    here, elsewhere = (f'TARGET.GLIDEIN_Site == "{name}"' for name in ("Old", "Atlantis"))
    polls.pool.answers["<ap1>", "demand"] = [job(12), job(3, here), job(2, elsewhere)]
    found = polls.poll(0)
    assert {(one.reason, one.cause, one.site): one.jobs for one in found.idle} == {
        ("pilots_there", "pilots_busy", "Site"): 12.0,
        ("no_pilot", "retiring", "Old"): 3.0,
        ("nowhere", "requirements", "none"): 2.0,
    }
    polls.pool.asked()
    polls.poll(60)
    assert polls.pool.asked().count("cm slots") == 1  # what was analysed is known


def test_why_jobs_wait_for_which_there_is_room(polls: Polls) -> None:
    """Jobs that free slots take wait for the negotiator; the others for pilots."""
    slot = partitionable_slot("p", started=NOW - 60, now=NOW, glidein=glidein())
    polls.pool.answers["cm", "slots"] = [heard(slot, NOW)]
    found = polls.poll(0)
    assert [(one.cause, one.jobs) for one in found.idle] == [
        ("behind_others", 8.0),
        ("pilots_busy", 4.0),
    ]


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
    assert found.problems["entries", ProblemName.BELOW_ONE_UNIT] == 1
    told = [log for log in logs if log.get("problem") == "below_one_unit"]
    assert [(event["event"], event["detail"]) for event in told] == [
        ("problem", "each pilot counts as one unit: entry")
    ]


def test_a_busy_schedd_is_logged_once_until_it_has_calmed_down(polls: Polls) -> None:
    """With how often it is asked meanwhile; again when it is busy again."""
    said = []
    for duty in (1.0, 1.0, 1.0, 0.5, 0.5, 1.0, 1.0):
        polls.hear()
        now = int(polls.pool.time.tick().wall)
        schedd: Ad = {"Name": "ap1", "MyAddress": "<ap1>", "RecentDaemonCoreDutyCycle": duty}
        polls.pool.answers["cm", "schedds"] = [heard(schedd, now)]
        with structlog.testing.capture_logs() as logs:
            polls.poll()
        said.append([entry for entry in logs if entry["event"].startswith("schedd is busy")])
    assert [len(entries) for entries in said] == [0, 1, 0, 0, 0, 0, 1]
    assert (said[1][0]["source"], said[1][0]["every_s"]) == ("ap1", 300.0)


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
    assert found.problems["entries", ProblemName.IDLE_SLOTS_UNTAKEN] == 1
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


@pytest.mark.parametrize("how", ["restart", "reload"])
def test_verdicts_outlive_a_daemon(polls: Polls, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """The next one evaluates no pair that was evaluated before."""
    before = polls.poll().evaluation.rows[ENTRY, "cpu"]
    if how == "restart":
        polls.keeper.close()
        polls.keeper = LedgerKeeper(polls.config)
        polls.poller = Poller(polls.config, polls.pool, polls.keeper)
    else:
        polls.reload()
    monkeypatch.setattr("gwmond.sources.htcondor.matching.evaluate", "no function")
    after = polls.poll().evaluation.rows[ENTRY, "cpu"]
    assert (after.state, after.evidence) == (before.state, before.evidence)
    assert after.state is State.PROVISIONING_BOTTLENECK


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
    polls.children = True
    with monkeypatch.context() as broken:
        broken.setattr("gwmond.sources.htcondor.matching.evaluate", "no function")
        found = polls.poll()
    assert ("gwmond", "failed") in found.problems
    assert [s.up for s in found.sources if s.kind == "matching"] == [False]
    row = found.evaluation.rows[ENTRY, "cpu"]
    assert Part(State.UNKNOWN, "matching", 12 * SCALE) in row.parts
    found = polls.poll()
    assert [s.up for s in found.sources if s.kind == "matching"] == [True]
    row = found.evaluation.rows[ENTRY, "cpu"]
    assert (row.state, row.evidence) == (State.PROVISIONING_BOTTLENECK, "measured")


def test_problems_are_counted_always_and_logged_once(polls: Polls) -> None:
    """A problem that lasts is counted at each poll, logged when it begins and when it is over."""
    polls.pool.answers["<ap1>", "demand"] = ["!timeout"]
    with structlog.testing.capture_logs() as logs:
        polls.poll()
        found = polls.poll()
        polls.hear()
        polls.poll()
    assert found.problems["ap1", ProblemName.TIMEOUT] == 2
    told = [(entry["event"], entry["source"], entry["problem"]) for entry in logs]
    assert told == [("problem", "ap1", "timeout"), ("problem over", "ap1", "timeout")]


def test_a_problem_of_records_counts_each_of_them(polls: Polls) -> None:
    """Its event says how many, what it means and what to do; while it lasts it counts no more."""
    told = [
        Problem("factory", ProblemName.GARBAGE, "/x/a.log: 3 lines", 3),
        Problem("factory", ProblemName.GARBAGE, "/x/b.log: 2 lines", 2),
        Problem("factory", ProblemName.LINK_OUTSIDE, "/x/job.7.0.out: /etc/passwd"),
    ]
    lasting = [problem._replace(records=0) for problem in told]
    with structlog.testing.capture_logs() as logs:
        for noticed in (told, lasting, lasting[-1:]):
            found = polls.poller.poll(noticed)
    counted = {word: n for (source, word), n in found.problems.items() if source == "factory"}
    assert counted == {"garbage": 5, "link_outside": 1}
    logs = [log for log in logs if log["source"] == "factory"]
    said = [(log["event"], log["problem"], log.get("n"), log.get("detail")) for log in logs]
    assert said == [
        ("problem", "garbage", 5, "/x/a.log: 3 lines; /x/b.log: 2 lines"),
        ("problem", "link_outside", 1, "/x/job.7.0.out: /etc/passwd"),
        ("problem over", "garbage", None, None),
    ]
    assert logs[0]["meaning"] == ProblemName.GARBAGE.meaning
    assert logs[0]["remedy"] == ProblemName.GARBAGE.remedy


def spoil(log: Path) -> None:
    """Write four lines of nonsense into a log of the factory."""
    with log.open("a") as more:
        more.write("nonsense\n" * 4)


@pytest.fixture
def reading(tmp_path: Path) -> tuple[Polls, Path]:
    """Polls that read a factory's log, also between two of them."""
    root = tmp_path / "root"
    root.mkdir()
    polls = made(tmp_path, {"schedds": False}, {"directories": [str(root)], "every": "1ms"})
    return polls, root / "completed_jobs_20261121.log"


def test_what_is_wrong_with_a_backlog_is_told_once(reading: tuple[Polls, Path]) -> None:
    """Between polls, too: each record counts, the log has one event, and so has the ledger."""
    polls, file = reading
    found = polls.poll()
    with structlog.testing.capture_logs() as logs:
        for _ in range(3):
            spoil(file)
            found = polls.poller.drain(found, 10.0)
    assert found.problems["factory", ProblemName.GARBAGE] == 12
    assert [(log["event"], log["problem"]) for log in logs] == [("problem", "garbage")]
    polls.poll()
    assert [problem.problem.problem for problem in polls.ledger.problems(9)] == ["garbage"]


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
    usual = polls.config
    at_once = usual.poll.model_copy(update={"interval": 1e-9})
    polls.reload(usual.model_copy(update={"poll": at_once}))  # any answer but a new one is stale
    polls.poll(60)
    polls.reload(usual)
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
    polls.reload()
    found = polls.poll()
    assert (found.polls, found.problems["ap1", ProblemName.TIMEOUT]) == (2, 2)
    assert ("provisioned", "") in seconds(found)


def test_what_lasts_through_a_reload_is_told_once(reading: tuple[Polls, Path]) -> None:
    """It is over when the new configuration's poller does not find it; the ledger has it, too."""
    polls, file = reading
    polls.pool.answers["<ap1>", "demand"] = ["!timeout"]
    with structlog.testing.capture_logs() as logs:
        found = polls.poll()
        spoil(file)
        polls.poller.drain(found, 10.0)
        polls.reload()
        polls.poll()
        polls.hear()
        polls.reload()
        polls.poll()
    told = [
        (log["event"], log["problem"]) for log in logs if log.get("source") in {"ap1", "factory"}
    ]
    assert told == [
        ("problem", "timeout"),
        ("problem", "garbage"),
        ("problem over", "garbage"),
        ("problem over", "timeout"),
    ]
    stored = [problem.problem.problem for problem in polls.ledger.problems(9)]
    assert sorted(stored) == ["garbage", "timeout"]


def test_without_a_keeper_nothing_is_stored(polls: Polls, tmp_path: Path) -> None:
    """A poll on its own shows the state and stores nothing."""
    found = Poller(polls.config, polls.pool, None, EMPTY).poll()
    assert found.evaluation.rows[ENTRY, "cpu"].provisioned == 8
    assert found.totals == {}
    assert found.ledger.last_commit is None
    assert not (tmp_path / "ledger.sqlite").exists()


def test_without_reasons_a_poll_finds_the_same_but_why_jobs_wait(polls: Polls) -> None:
    """Who does not show why jobs wait does not look for it; all else is the same."""
    whole, plain = (
        Poller(polls.config, polls.pool, None, EMPTY, reasons=reasons).poll()
        for reasons in (True, False)
    )
    assert whole.idle
    assert plain.idle == ()
    assert plain.evaluation == whole.evaluation
