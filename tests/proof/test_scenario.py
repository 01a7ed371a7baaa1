"""The scenario itself: does each run end as planned, by what HTCondor's own records say?"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

from tests.proof.compare import compare
from tests.proof.played import Played
from tests.proof.truth import Moment, PilotTruth, RunTruth, Truth, expected

Records = dict[tuple[str, int], list[dict[str, Any]]]

#: Vacate codes of runs that HTCondor ended.  In 23 the shadow has no reason where somebody at the
#: access point ended it, and says only that the job is requeued where the pilot did; in 25 the
#: starter gives the reason.
_CODES = {
    "23": {"access point": 0, "vacated": 1005, "pilot_shutdown": 1005, "drained": 1005},
    "25": {
        "access point": 1009,
        "vacated_by_schedd": 1022,
        "pilot_shutdown": 1013,
        "drained": 1014,
    },
}

#: Outcome: what the epoch record must say, for that is how the run was meant to end.
EPOCHS: dict[str, dict[str, object]] = {
    "exit_zero": {"ExitBySignal": False, "ExitCode": 0},
    "exit_nonzero": {"ExitBySignal": False},
    "exit_retried": {"ExitBySignal": False},
    "exit_signal": {"ExitBySignal": True, "ExitSignal": 11},
    "transfer_output_failed": {"VacateReasonCode": 12, "VacateReasonSubCode": 2},
    "lost_contact": {"VacateReasonCode": 1008},
    "held_for_mistake": {"VacateReasonCode": 13, "VacateReasonSubCode": 2},
    "transfer_input_failed": {"VacateReasonCode": 13},
    "program_not_started": {"VacateReasonCode": 6, "VacateReasonSubCode": 2},
}


#: Outcomes of runs that somebody at the access point ended.
DECIDED = {"removed", "held_by_user", "ended_by_condor"}

#: Outcomes of runs whose program ended itself.
EXITS = {"exit_zero", "exit_nonzero", "exit_retried", "exit_signal", "transfer_output_failed"}


#: A scenario lasts longer on a machine that does much else.
pytestmark = pytest.mark.timeout(2400)


def _expected(outcome: str, htcondor: str) -> dict[str, object]:
    """What the epoch record of a run must say."""
    cause = "access point" if outcome in DECIDED else outcome
    code = _CODES[htcondor].get(cause)
    return EPOCHS[outcome] if code is None else {"VacateReasonCode": code, "ExitSignal": 15}


def _by_run(records: list[dict[str, Any]]) -> Records:
    found: Records = defaultdict(list)
    for record in records:
        found[record["GlobalJobId"], record["NumShadowStarts"]].append(record)
    return found


def _exited(record: dict[str, Any], htcondor: str) -> bool:
    """Whether a record says that the program ended itself.

    In 23 the ticket of execution says so; one that says another exit than its record is left from
    an earlier run.  In 25 it has no vacate code, or one that sending the output failed.
    """
    if htcondor != "23":
        exited = record["ExitBySignal"] or "ExitCode" in record
        return exited and record.get("VacateReasonCode", 12) == 12
    ticket = record.get("ToE", {})
    keys = ("ExitBySignal", "ExitSignal" if record["ExitBySignal"] else "ExitCode")
    same = all(ticket.get(key) == record.get(key) for key in keys)
    return ticket.get("HowCode") == 0 and same


def test_each_run_ended_as_planned(played: Played, htcondor: str) -> None:
    epochs, startds = _by_run(played.dump["epoch"]), _by_run(played.dump["startd"])
    near_s = 1.5 + played.late_s
    assert set(epochs) == {(run.job, run.number) for run in played.truth.runs}
    for run in played.truth.runs:
        wanted = _expected(run.outcome, htcondor)
        for record in epochs[run.job, run.number]:
            assert {key: record.get(key) for key in wanted} == wanted, run
            assert _exited(record, htcondor) is (run.outcome in EXITS), run
            assert record["RemoteHost"].endswith(f"@{run.pilot}")
            given = record["CpusProvisioned"], record["MemoryProvisioned"]
            assert given == (run.cores, run.memory)
            # Whole seconds; the shadow begins before the job, and may leave before the starter.
            submitted = int(run.job.rpartition("#")[2])
            assert submitted <= record["JobCurrentStartDate"] <= run.start.hi
            # In 25 a starter stays after a failed start, until its startd kills it.
            stays = {"23": "", "25": "program_not_started"}[htcondor]
            if run.outcome not in {"lost_contact", "transfer_output_failed", stays}:
                assert run.end.lo - near_s <= record["EpochWriteDate"] <= run.end.hi + near_s, run
        for record in startds[run.job, run.number]:
            assert _exited(record, htcondor) is (run.outcome in EXITS), run
            assert record["BadputCausedByDraining"] is (run.outcome == "drained")
            assert run.end.lo - near_s <= record["CompletionDate"] <= run.end.hi + near_s, run


def test_what_the_pilots_tell(played: Played) -> None:
    """A pilot's last record is in its own directory, and rarely asked for in time.

    A startd that is killed writes none.
    """
    told = set(_by_run(played.dump["startd"]))
    for run in played.truth.runs:
        key, name = (run.job, run.number), run.pilot.partition("@")[0]
        if run.outcome == "lost_contact":
            assert key not in told, run
        elif run.outcome == "pilot_shutdown":
            written = played.dump["startd_files"][name]
            keys = {(row["GlobalJobId"], row["NumShadowStarts"]) for row in written}
            assert (f'"{run.job}"', str(run.number)) in keys, run
        elif name not in {"graceful", "killed"}:
            assert key in told, run


def test_the_schedds_have_what_is_over(played: Played) -> None:
    rows = {record["GlobalJobId"]: record for record in played.dump["schedd"]}
    last = {run.job: run for run in sorted(played.truth.runs, key=lambda run: run.number)}
    status = {last[job].tag: record["JobStatus"] for job, record in rows.items()}
    assert {tag for tag, code in status.items() if code == 3} == {"removed", "held", "given_up"}
    ended = {moment.tag for moment in last.values() if moment.category == "goodput"} - {"exit_hold"}
    assert {tag for tag, code in status.items() if code == 4} == ended


def test_the_seconds_are_the_pilots(played: Played) -> None:
    """What is expected sums to each pilot's life, and agrees with itself."""
    rows = {key: of.best for key, of in played.truth.expected().items()}
    assert compare(rows, played.truth.outcomes(), played.truth, 0) == []
    seconds: defaultdict[str, float] = defaultdict(float)
    for (_, _, measure, category), number in rows.items():
        seconds[f"{measure}/{category}"] += number
    # Too few jobs fail early for a comparison to blame the place: no misconfiguration.
    names = ("goodput", "preemption_badput", "unclassified", "pilot_overhead")
    told = {name: seconds[f"resource/{name}"] for name in names}
    assert {name: second for name, second in told.items() if second < 1} == {}
    (idle,) = (pilot for pilot in played.truth.pilots if pilot.own == "decision_problem")
    life = idle.end.mid - idle.start.mid
    assert seconds["resource/decision_problem"] == pytest.approx(life)


def test_the_rule_by_hand() -> None:
    """4 cores for 100 s; 1 core with 3 units' memory for 40 s, beside it 2 cores for 10 of them."""
    now = 1000.0

    def at(second: float) -> Moment:
        return Moment(now + second, now + second)

    pilot = PilotTruth("p", 4, 8000, at(0), at(100), "pilot_overhead")
    one = RunTruth("a", "a", 1, "p", 1, 6000, at(10), at(50), "goodput", "exit_zero", True)
    two = one._replace(job="b", cores=2, memory=2000, start=at(40), category="unclassified")
    found = expected(pilot, [one, two])
    seconds = {key[2:]: of.best for key, of in found.items()}
    # From 10 to 40 one unit is idle, from 40 to 50 none: the runs share 4 by their cores.
    assert seconds == {
        ("resource", "pilot_overhead"): pytest.approx(60 * 4 + 30),
        ("resource", "goodput"): pytest.approx(30 * 3 + 10 * 4 / 3),
        ("resource", "unclassified"): pytest.approx(10 * 8 / 3),
        ("canonical", "pilot_overhead"): pytest.approx(60 * 4 + 30),
        ("canonical", "goodput"): pytest.approx(30 * 3 + 10 * 4 / 3),
        ("canonical", "unclassified"): pytest.approx(10 * 8 / 3),
    }
    truth = Truth((pilot,), (one, two))
    rows = {key: of.best for key, of in found.items()}
    key = ("p", "cpu", "resource", "goodput")
    assert compare(rows, truth.outcomes(), truth, 0) == []
    assert len(compare({**rows, key: rows[key] + 1}, truth.outcomes(), truth, 0)) == 2
    assert compare({**rows, key: rows[key] + 1}, truth.outcomes(), truth, 1) == []
    # A pilot of which each end may be wrong by more than it lived may not have lived at all.
    bounds = {of.lo for of in expected(pilot, [], 300).values()}
    assert max(bounds) <= 0
    wrong = {**truth.outcomes(), ("a", 1): ("unclassified", "unknown")}
    assert len(compare(rows, wrong, truth, 0)) == 1
    assert len(compare({**rows, ("p", "cpu", "resource", "x"): 2.0}, {}, truth, 9)) == 3
