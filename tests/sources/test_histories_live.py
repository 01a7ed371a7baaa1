"""Histories of real daemons: the scenario is played once, and read with large and small limits."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from gwmond.config.settings import Attributes
from gwmond.model.runs.outcomes import rule_of
from gwmond.sources import child, tasks
from gwmond.sources.htcondor.access import Daemon, LiveAccess, Query, Terms
from gwmond.sources.htcondor.histories import startd_history
from gwmond.sources.htcondor.histories.history_cursor import HistoryAnswer, HistoryLimits
from gwmond.sources.htcondor.pilots.claims import Claims
from gwmond.sources.round import CLAIMS
from tests.build.histories import REFUSED, expected
from tests.pool.condor import CondorPool
from tests.pool.pilot import Pilot
from tests.sources import history_scenario as scenario

MANY = HistoryLimits()
FEW = HistoryLimits(records=5, lookback_s=600)


class Stage(NamedTuple):
    """A pool after the scenario; ``claims`` were asked for while jobs ran."""

    pool: CondorPool
    schedds: tuple[Daemon, Daemon]
    startd: Daemon
    files: dict[str, Path]
    cases: dict[int, str]
    claims: Claims


#: The scenario lasts longer on a machine that does much else.
pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="module")
def stage(htcondor: str) -> Iterator[Stage]:
    """The scenario on a pool of its own; once more where the machine was too busy for it."""
    with ExitStack() as stack:
        try:
            found = _played(stack, htcondor)
        except TimeoutError:
            stack.close()
            found = _played(stack, htcondor)
        yield found


def _played(stack: ExitStack, htcondor: str) -> Stage:
    pool = stack.enter_context(CondorPool(htcondor=htcondor, config=scenario.CONFIG))
    found: list[Claims] = []

    def during(pilots: dict[str, Pilot]) -> None:
        def ask() -> Claims | None:
            terms = Terms(LiveAccess(), pool.collector, Attributes(), time.time())
            ((seen, _), _) = child.run(tasks.ask, terms, CLAIMS, deadline_s=60)
            return seen if len(seen.records) >= 10 else None

        found.append(pool.wait_for("claims in the collector", ask))

    played = scenario.play(pool, during)
    first, second = (scenario.daemon(pool, "Schedd", name) for name in pool.schedds)
    return Stage(
        pool=pool,
        schedds=(first, second),
        startd=scenario.daemon(pool, "StartDaemon", played.pilots["main"].name),
        files=scenario.startd_files(played),
        cases={cluster: case for case, cluster in played.clusters.items()},
        claims=found[0],
    )


def ask(daemon: Daemon, kind: str, state: str = "", limits: HistoryLimits = MANY) -> HistoryAnswer:
    task = tasks.records
    ((answer, read), _) = child.run(
        task, LiveAccess(), daemon, kind, state, limits, time.time(), deadline_s=60
    )
    assert read == answer.read
    return answer


def drain(daemon: Daemon, kind: str, limits: HistoryLimits) -> list[HistoryAnswer]:
    answers = [ask(daemon, kind, "", limits)]
    while answers[-1].behind:
        assert len(answers) < 60
        answers.append(ask(daemon, kind, answers[-1].state, limits))
    return answers


#: On a slow machine a policy may end these runs before their programs begin.
EITHER = {"removed_by_policy", "held_by_policy"}
#: A starter may see that its startd was killed, and tell its shadow, before it is killed itself:
#: only the pilot's end says then that it was no fault of the starter's.
KILLED = {"killed", "exit_then_killed", "startd_killed"}


def outcomes(stage: Stage, answers: list[HistoryAnswer]) -> dict[str, list[str]]:
    """The rules that decide, by case, in the order of runs; each record once."""
    records = {record for answer in answers for record in answer.records}
    found: dict[str, list[str]] = {}
    for record in sorted(
        records, key=lambda r: (r.fact.job, r.fact.shadow_start or 0, r.fact.written_us)
    ):
        case = stage.cases[int(record.fact.job.split("#")[1].split(".")[0])]
        rule = rule_of(record.fact.ending).name
        if case in EITHER and rule == "never_began":
            rule = "ended_by_condor"
        if case in KILLED and rule == "starter_failed_early":
            assert (
                rule_of(record.fact.ending._replace(startd_ended=True)).name == "ended_with_pilot"
            )
            rule = "lost_contact"
        found.setdefault(case, []).append(rule)
    return {case: [rule for rule in rules if rule not in REFUSED] for case, rules in found.items()}


@pytest.mark.parametrize("limits", [MANY, FEW])
def test_epochs_and_history_of_a_real_schedd(stage: Stage, limits: HistoryLimits) -> None:
    """All runs come, at once or in parts; then nothing, and no gap."""
    for kind in ("epochs", "history"):
        answers = drain(stage.schedds[0], kind, limits)
        assert outcomes(stage, answers) == expected(kind, stage.pool.htcondor)
        assert all(len(answer.records) <= 8 for answer in answers) or limits is MANY
        assert (len(answers) > 3) is (limits is FEW)
        last = ask(stage.schedds[0], kind, answers[-1].state, limits)
        assert (last.records, last.gap, last.behind) == ((), None, False)
        every = [record.fact for answer in answers for record in answer.records]
        assert any(fact.used and fact.used.memory_mib for fact in every)
        assert not any(fact.used for fact in every if fact.executing_us is None)
        assert [answer.problems for answer in answers if answer.problems or answer.gap] == []


def test_new_records_come_alone(stage: Stage) -> None:
    """After a job more has run, its records come, and only they."""
    pool, (schedd, _) = stage.pool, stage.schedds
    before = {kind: ask(schedd, kind).state for kind in ("epochs", "history")}
    job = scenario.Job("later", "main", "main", "exit 4")
    cluster = scenario.submit(pool, job)
    pool.wait_for("the job's end", lambda: not pool.jobs(pool.schedds[0]))
    for kind, state in before.items():
        answer = ask(schedd, kind, state)
        assert [r.fact.job.split("#")[1] for r in answer.records] == [f"{cluster}.0"]
        assert answer.records[0].fact.ending.exit_code == 4
        assert (answer.gap, answer.complete_us is not None) == (None, True)


def test_history_of_a_real_startd_and_its_file(stage: Stage) -> None:
    """Over the wire and in the file are the same records; ended pilots have left files."""
    wire = {
        record for answer in drain(stage.startd, "startd_history", FEW) for record in answer.records
    }
    answer = _in_file(stage.files["main"])
    assert set(answer.records) == wire
    rest = [
        _in_file(path) for site, path in stage.files.items() if site != "main" and path.exists()
    ]
    found = outcomes(stage._replace(cases={**_later(answer), **stage.cases}), [answer, *rest])
    found.pop("later", None)
    # Whether a program began within the second of the start is not told.
    wanted = expected("startd_history", stage.pool.htcondor)
    assert found.keys() == wanted.keys()
    # A starter whose shadow was killed may wait for it until its lease is over.
    assert found.pop("shadow_killed")[:1] == wanted.pop("shadow_killed")[:1]
    for case in wanted.keys() - {"input_missing"}:
        assert found[case] == wanted[case], case


def _in_file(path: Path) -> HistoryAnswer:
    """The records of a startd's file, as a pilot's stderr has them."""
    (records, _), _ = child.run(startd_history.parse, path.read_bytes(), deadline_s=60)
    return HistoryAnswer(tuple(records), "", None, False, None, None, (), len(records))


def _later(answer: HistoryAnswer) -> dict[int, str]:
    return {int(r.fact.job.split("#")[1].split(".")[0]): "later" for r in answer.records}


def test_claims_of_a_real_collector(stage: Stage) -> None:
    """Running jobs, as their slots tell."""
    assert stage.claims.problems == ()
    sites = {record.startd for record in stage.claims.records}
    assert sites == {f"glidein_{n}_{n}@pool.test" for n in range(1, 6)}


def test_what_a_schedd_does_not_keep_and_not_understand(stage: Stage) -> None:
    """Epochs that are off are said to be, and a constraint that is wrong."""
    assert not ask(stage.schedds[1], "epochs").kept
    for kind, constraint, problem in (
        ("epochs", "true", "not_kept"),
        ("history", "A = = 3", "bad_constraint"),
    ):
        query = Query(kind, "", constraint, ("GlobalJobId",))
        with pytest.raises(child.QueryError) as error:
            child.run(history, LiveAccess(), stage.schedds[1], kind, query, deadline_s=60)
        assert error.value.problem == problem


def test_a_daemon_that_is_gone(stage: Stage) -> None:
    """An address where nobody listens refuses."""
    nobody = Daemon("nobody", "<127.0.0.1:9>")
    with pytest.raises(child.QueryError) as error:
        ask(nobody, "history")
    assert error.value.problem == "refused"


def test_a_real_history_that_is_truncated_is_a_gap(stage: Stage) -> None:
    """The last test: the epoch history is emptied, and the loss is told."""
    schedd = stage.schedds[0]
    state = ask(schedd, "epochs").state
    path = stage.pool.local / "spool" / "epoch_history"
    path.write_bytes(b"")
    answer = ask(schedd, "epochs", state)
    assert answer.gap is not None
    assert answer.records == ()
    assert ask(schedd, "epochs", answer.state).gap is None


def history(access: LiveAccess, daemon: Daemon, kind: str, query: Query) -> int:
    """Task of a child: how many records."""
    return len(access.history(daemon, kind, query, -1, ""))
