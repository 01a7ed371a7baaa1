"""Records of job runs: what each history says of each kind of end, in records of a real pool.

The records are tests/recordings/histories; what happened to each job is told in
history_scenario.py.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import classad2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gwmond.accounting import attempts
from gwmond.accounting.outcomes import rule_of
from gwmond.accounting.pilot_facts import Resources
from gwmond.accounting.records import JobRecord
from gwmond.sources import ads, histories
from tests.sources.make import LATIN_1, classad

RECORDINGS = Path(__file__).parents[1] / "recordings" / "histories"
KINDS = ("epochs", "history", "startd_history")
START = 1_700_000_000


def load(kind: str) -> list[tuple[str, classad2.ClassAd]]:
    """Case and ad of each record."""
    rows = json.loads((RECORDINGS / f"{kind}.json").read_text())
    text = [
        "[" + "; ".join(f"{name} = {value}" for name, value in row.items()) + "]" for row in rows
    ]
    found = [classad2.ClassAd(one) for one in text]
    return [(str(ad["TestCase"]), ad) for ad in found]


def decoded(kind: str, ad: classad2.ClassAd) -> JobRecord:
    record = histories.decode(kind, ad)
    assert isinstance(record, JobRecord), record
    return record


def records(kind: str, case: str) -> list[JobRecord]:
    """The records of one job, by run."""
    found = [decoded(kind, ad) for name, ad in load(kind) if name == case]
    return sorted(found, key=lambda record: (record.fact.run or 0, record.fact.written_us))


def seconds(record: JobRecord) -> int:
    """How long the run lasted."""
    assert record.fact.start_us is not None
    assert record.fact.end_us is not None
    return (record.fact.end_us - record.fact.start_us) // 10**6


EPOCHS = {
    "exit_zero": ["exited_zero"],
    "exit_three": ["exited_nonzero"],
    "signal": ["exited_signal"],
    "removed": ["ended_by_condor"],
    "held": ["ended_by_condor"],
    "held_then_done": ["ended_by_condor", "exited_zero"],
    "vacated_by_user": ["vacated", "exited_zero"],
    "two_runs": ["exited_nonzero", "exited_nonzero"],
    "exit_then_held": ["exited_nonzero", "exited_nonzero"],
    "no_program": ["program_failed"],
    "starter_killed": ["lost_contact", "ended_by_condor"],
    "input_missing": ["input_mistake"],
    "output_missing": ["output_failed"],
    "evicted": ["vacated", "exited_zero"],
    "evicted_then_removed": ["vacated"],
    "evicted_then_held": ["vacated"],
    "killed": ["lost_contact", "exited_zero"],
    "exit_then_killed": ["exited_nonzero", "lost_contact"],
}
HISTORY = {
    "exit_zero": "completed_zero",
    "exit_three": "completed_nonzero",
    "signal": "completed_signal",
    "removed": "removed",
    "held": "held_by_user",
    "held_then_done": "completed_zero",
    "vacated_by_user": "completed_zero",
    "two_runs": "completed_nonzero",
    "exit_then_held": "exited_nonzero",
    "no_program": "program_failed",
    "starter_killed": "removed",
    "input_missing": "input_mistake",
    "output_missing": "output_failed",
    "evicted": "completed_zero",
    "evicted_then_removed": "vacated",
    "evicted_then_held": "vacated",
    "killed": "completed_zero",
    "exit_then_killed": "lost_contact",
}
STARTD_HISTORY = {
    "exit_zero": ["exited_zero"],
    "exit_three": ["exited_nonzero"],
    "signal": ["exited_signal"],
    "removed": ["ended_by_condor"],
    "held": ["ended_by_condor"],
    "held_then_done": ["ended_by_condor", "exited_zero"],
    "vacated_by_user": ["ended_by_condor", "exited_zero"],
    "two_runs": ["exited_nonzero", "exited_nonzero"],
    "exit_then_held": ["exited_nonzero"],
    "no_program": ["unknown"],
    "starter_killed": ["starter_killed_unsure", "ended_by_condor"],
    "input_missing": ["unknown"],
    "output_missing": ["exited_zero"],
    "evicted": ["preempted_unsure", "exited_zero"],
    "evicted_then_removed": ["preempted_unsure"],
    "evicted_then_held": ["preempted_unsure"],
    "killed": ["exited_zero"],
    "exit_then_killed": ["exited_nonzero"],
}


@pytest.mark.parametrize("case", EPOCHS)
def test_what_an_epoch_history_says(case: str) -> None:
    """Each run's own end; of a removal, a hold or an eviction only that HTCondor did it."""
    assert [rule_of(r.fact.ending).name for r in records("epochs", case)] == EPOCHS[case]


@pytest.mark.parametrize("case", HISTORY)
def test_what_a_schedds_history_says(case: str) -> None:
    """The last run's end, whatever became of the job later."""
    (record,) = records("history", case)
    assert rule_of(record.fact.ending).name == HISTORY[case]
    assert record.fact.run == len(set(EPOCHS[case])) or case in ("two_runs", "exit_then_held")


@pytest.mark.parametrize("case", STARTD_HISTORY)
def test_what_a_startds_history_says(case: str) -> None:
    """How the program ended, but not on whose behalf; a killed pilot has left none."""
    assert [rule_of(r.fact.ending).name for r in records("startd_history", case)] == (
        STARTD_HISTORY[case]
    )


def test_every_record_of_the_pool_is_known() -> None:
    """No record is a problem, and each case is in each history."""
    for kind, cases in (
        ("epochs", EPOCHS),
        ("history", HISTORY),
        ("startd_history", STARTD_HISTORY),
    ):
        assert {case for case, _ in load(kind)} == set(cases)
        for _, ad in load(kind):
            record = decoded(kind, ad)
            assert record.fact.ending.over
            assert record.fact.user == "alice@pool.test"
            assert record.fact.job_group in {"alice@pool.test sh", "alice@pool.test program"}
            assert record.fact.size == Resources(1, 128, 0)
            assert record.started is not None
            assert record.group == "frontend.main"


def test_a_runs_pilot_is_that_run() -> None:
    """Host, site and entry are those of the run, though the ad tells of the run before as well."""
    main = ("glidein_1_1@pool.test", "main", "entry_main")
    evicted = ("glidein_2_2@pool.test", "graceful", "entry_graceful")
    killed = ("glidein_3_3@pool.test", "hard", "entry_hard")
    for case, first in (("evicted", evicted), ("killed", killed)):
        runs = records("epochs", case)
        assert [(r.startd, r.site, r.entry) for r in runs] == [first, main]
        (last,) = records("history", case)
        assert (last.startd, last.site, last.entry) == main
        assert records("startd_history", case)[-1].site == "main"


def test_ends_of_runs() -> None:
    """The sources agree on when each run ended, within seconds; but a starter stays for a failed
    transfer of output after the shadow has gone."""
    ends = {
        kind: {
            (record.fact.job, record.fact.run): record.fact.end_us or 0
            for case, ad in load(kind)
            if case != "output_missing" and (record := decoded(kind, ad))
        }
        for kind in KINDS
    }
    for kind in ("history", "startd_history"):
        shared = ends[kind].keys() & ends["epochs"].keys()
        assert len(shared) > 15
        for key in shared:
            assert abs(ends[kind][key] - ends["epochs"][key]) <= 2 * 10**6, (kind, key)
    (epoch,), (startd,) = (records(kind, "output_missing") for kind in ("epochs", "startd_history"))
    assert seconds(startd) > seconds(epoch)


def test_a_lost_run_ends_when_contact_was_lost() -> None:
    """Not when the lease expired, 20 s later."""
    lost = records("epochs", "killed")[0]
    assert lost.fact.end_us is not None
    assert lost.fact.written_us - lost.fact.end_us >= 15 * 10**6
    assert lost.fact.ending.disconnected is True
    assert records("epochs", "killed")[1].fact.ending.disconnected is None


def test_what_the_run_before_left_is_dropped() -> None:
    """A lost second run has neither the first one's exit nor its transfer of output."""
    first, second = (record.fact.ending for record in records("epochs", "exit_then_killed"))
    assert (first.exit_code, first.own_accord, first.sending_output) == (9, True, False)
    assert (second.exit_code, second.own_accord, second.sending_output) == (None, None, None)


def test_all_sources_together() -> None:
    """Merged, the sources tell each end, and contradict each other in nothing but the end of the
    one transfer that failed."""
    facts = [decoded(kind, ad).fact for kind in KINDS for _, ad in load(kind)]
    merged = attempts.merge(facts, tolerance_us=5 * 10**6)
    assert len(merged) == sum(len(runs) for runs in EPOCHS.values()) - 1
    told = Counter(rule_of(one.ending).name for one in merged)
    assert told["unknown"] == 0
    assert told["ended_by_condor"] == 1  # held_then_done: no record of its first run says of a hold
    contradicting = {c.field for one in merged for c in one.contradictions}
    assert contradicting <= {"end_us", "removed"}


# -- single attributes, by ads made for it


def epoch(**changes: object) -> classad2.ClassAd:
    """An epoch ad of a second run that exited 0 after 50 s."""
    base: dict[str, object] = {
        "GlobalJobId": "s#1.0#1",
        "NumShadowStarts": 2,
        "RemoteHost": "slot1_1@glidein_1_2@node",
        "PublicClaimId": f"<1.2.3.4:9618?addrs=1.2.3.4-9618>#{START - 100}#7#...",
        "User": "u@d",
        "Cmd": "/home/u/run.sh",
        "JobCurrentStartDate": START,
        "JobCurrentStartExecutingDate": START + 10,
        "JobCurrentStartTransferOutputDate": START + 55,
        "JobCurrentFinishTransferOutputDate": START + 58,
        "EpochWriteDate": START + 60,
        "ExitBySignal": False,
        "ExitCode": 0,
        "CpusProvisioned": 4,
        "MemoryProvisioned": 8192,
    }
    return made(base, changes, f"[ HowCode = 0; When = {START + 55}; ExitCode = 0 ]")


def made(base: Mapping[str, object], changes: Mapping[str, object], toe: str) -> classad2.ClassAd:
    parts = {
        name: json.dumps(value) for name, value in {**base, **changes}.items() if value is not None
    }
    parts.setdefault("ToE", toe)
    if changes.get("ToE", "") is None:
        del parts["ToE"]
    return classad("[" + "; ".join(f"{name} = {value}" for name, value in parts.items()) + "]")


def ending(ad: classad2.ClassAd, kind: str = "epochs") -> object:
    return decoded(kind, ad).fact.ending


def test_a_whole_record() -> None:
    """Every field of a record, of an ad with everything in it."""
    record = decoded("epochs", epoch(MATCH_EXP_JOB_GLIDEIN_Site="before", JOB_GLIDEIN_Site="S"))
    fact = record.fact
    assert (record.startd, record.started, record.site) == ("glidein_1_2@node", START - 100, "S")
    assert (fact.job, fact.run, fact.job_group) == ("s#1.0#1", 2, "u@d run.sh")
    assert (fact.start_us, fact.end_us) == (START * 10**6, (START + 60) * 10**6)
    assert fact.size == Resources(4, 8192, 0)
    assert (fact.ending.exit_code, fact.ending.own_accord, fact.ending.early) == (0, True, True)


@pytest.mark.parametrize(
    ("changes", "exit_code", "signal", "own"),
    [
        (
            {"JobCurrentStartDate": START + 56, "JobCurrentStartExecutingDate": START + 57},
            0,
            None,
            None,
        ),
        ({"VacateReasonCode": 1008}, None, None, None),
        ({"JobCurrentStartExecutingDate": START - 5}, None, None, None),
        ({"JobCurrentStartExecutingDate": None}, None, None, None),
        ({"ExitBySignal": True, "ExitSignal": 15}, None, 15, False),
        ({"ToE": None}, 0, None, False),
        ({"ToE": None, "ExitCode": 255, "VacateReasonCode": 13}, None, None, None),
    ],
)
def test_whose_exit_it_is(
    changes: dict[str, object], exit_code: int | None, signal: int | None, own: bool | None
) -> None:
    """A ToE of the run before, a run that never began or was lost, a kill by HTCondor."""
    found = decoded("epochs", epoch(**changes)).fact.ending
    if changes.get("JobCurrentStartDate"):  # the exit and the sending are older than this run
        exit_code = None
    assert (found.exit_code, found.exit_signal, found.own_accord) == (exit_code, signal, own)


def test_a_clock_that_is_behind() -> None:
    """An exit before the start by the execution point's clock is this run's, if output came."""
    when = f"[ HowCode = 0; When = {START - 40}; ExitCode = 0 ]"
    ad = epoch()
    ad["ToE"] = classad2.ExprTree(when)
    assert decoded("epochs", ad).fact.ending.own_accord is True


def test_output_that_is_being_sent() -> None:
    """Begun and not finished in this run; -1 and the run before's time are no end."""
    for finished in (None, -1, START - 3, START + 54):
        found = decoded("epochs", epoch(JobCurrentFinishTransferOutputDate=finished)).fact.ending
        assert found.sending_output is True
    done = epoch(JobCurrentFinishTransferOutputDate=-1, TransferOutFinished=START + 55)
    assert decoded("epochs", done).fact.ending.sending_output is False
    assert (
        decoded("epochs", epoch(JobCurrentStartTransferOutputDate=None)).fact.ending.sending_output
        is None
    )


@pytest.mark.parametrize(
    ("vacate", "hold", "before", "this_runs"),
    [
        (0, 1, 5, True),
        (0, 1, 1, True),
        (0, 1, 2, False),
        (1005, 1, 5, False),
        (13, 13, 5, True),
        (13, 1, 5, False),
        (None, 3, 5, True),
        (None, 3, 2, False),
        (None, 1, 5, False),
    ],
)
def test_whose_hold_it_is(vacate: int | None, hold: int, before: int, this_runs: bool) -> None:
    """A schedd's history has the last of all holds; it may be of another run, or of no run."""
    ad = epoch(
        LastRemoteHost="slot1_1@g@n",
        JobStatus=3,
        LastJobStatus=before,
        EnteredCurrentStatus=START + 9000,
        VacateReasonCode=vacate,
        LastHoldReasonCode=hold,
        NumHolds=2,
    )
    found = decoded("history", ad).fact.ending
    assert (found.hold_code == hold) is this_runs
    assert found.removed is True


@pytest.mark.parametrize(
    ("changes", "end"),
    [
        ({"JobStatus": 4, "CompletionDate": START + 60}, 60),
        ({"JobStatus": 4, "CompletionDate": 0}, 9000),
        ({"JobStatus": 3, "LastVacateTime": START + 50}, 50),
        ({"JobStatus": 3, "LastVacateTime": START - 50, "LastRemoteWallClockTime": 44.0}, 44),
        ({"JobStatus": 3, "VacateReasonCode": 1008, "JobDisconnectedDate": START + 30}, 30),
        ({"JobStatus": 3, "LastJobStatus": 2}, 9000),
        ({"JobStatus": 3, "LastJobStatus": 1, "RemoteWallClockTime": 500.0}, None),
        (
            {"JobStatus": 3, "LastJobStatus": 1, "NumShadowStarts": 1, "RemoteWallClockTime": 70.0},
            70,
        ),
    ],
)
def test_the_end_of_a_last_run(changes: dict[str, object], end: int | None) -> None:
    """When the job left the queue is not when its run ended; None where nothing tells."""
    ad = epoch(LastRemoteHost="slot1_1@g@n", EnteredCurrentStatus=START + 9000, **changes)
    found = decoded("history", ad).fact.end_us
    assert found == (None if end is None else (START + end) * 10**6)


@pytest.mark.parametrize(
    ("changes", "began"),
    [
        ({"JobStartDate": START + 3}, True),
        ({"JobStartDate": START - 500, "JobLastStartDate": START - 400}, False),
        ({"JobStartDate": START - 5, "JobLastStartDate": START - 400}, True),
        ({"JobStartDate": None}, None),
        ({"NumShadowStarts": 1, "JobStartDate": START, "ToE": None}, None),
        ({"NumShadowStarts": 1, "JobStartDate": START}, True),
        (
            {"NumShadowStarts": 1, "JobStartDate": START, "ToE": None, "RemoteWallClockTime": 0},
            False,
        ),
    ],
)
def test_whether_a_startds_run_began(changes: dict[str, object], began: bool | None) -> None:
    """JobStartDate is the first run's, unless the starter has written its own."""
    ad = epoch(CompletionDate=START + 60, **changes)
    assert decoded("startd_history", ad).fact.ending.began is began


@pytest.mark.parametrize(
    ("kind", "changes", "found"),
    [
        ("epochs", {"GlobalJobId": None}, "no_job"),
        ("epochs", {"NumShadowStarts": None}, "no_run"),
        ("epochs", {"RemoteHost": None}, "no_host"),
        ("epochs", {"EpochWriteDate": None}, "no_time"),
        ("epochs", {"JobUniverse": 7}, None),
        ("history", {"NumShadowStarts": 0, "LastRemoteHost": "slot1@n"}, None),
        ("history", {}, None),
    ],
)
def test_ads_that_are_no_record(kind: str, changes: dict[str, object], found: str | None) -> None:
    """What is wrong is said in a word; what never ran on a slot is nothing."""
    assert histories.decode(kind, epoch(**changes)) == found


def test_requests_where_nothing_was_provisioned() -> None:
    """What was asked for, evaluated, stands in; a size that makes no sense does not."""
    asked = {"CpusProvisioned": None, "MemoryProvisioned": None, "RequestCpus": 2}
    ad = epoch(**asked)
    ad["RequestMemory"] = classad2.ExprTree("RequestCpus * 1000")
    assert decoded("epochs", ad).fact.size == Resources(2, 2000, 0)
    assert decoded("epochs", epoch(**asked, RequestMemory=-1)).fact.size is None


def test_secrets_are_not_asked_for() -> None:
    """No projection has an attribute that is never fetched."""
    for kind in KINDS:
        names = {name.lower() for name in histories.query(kind).projection}
        assert not names & ads.SECRET
        assert not any("environment" in name or "argument" in name for name in names)


VALUES = st.sampled_from(
    [
        "undefined",
        "error",
        "-1",
        "0",
        "1e300",
        '"x"',
        "true",
        "{1}",
        "[a=1]",
        LATIN_1,
        str(START + 5),
        "2",
    ]
)


@given(
    kind=st.sampled_from(KINDS),
    changes=st.dictionaries(
        st.sampled_from(sorted({n for kind in KINDS for n in histories.query(kind).projection})),
        VALUES,
    ),
)
def test_whatever_an_ad_holds(kind: str, changes: dict[str, str]) -> None:
    """A record, a word or nothing comes of any ad; ends are not before starts."""
    text = {"LastRemoteHost": '"slot1@n"', "CompletionDate": str(START + 70), **changes}
    ad = epoch()
    for name, value in text.items():
        ad[name] = classad2.ExprTree(value)
    found = histories.decode(kind, ad)
    if isinstance(found, JobRecord):
        assert found.fact.end_us is None or found.fact.end_us >= (found.fact.start_us or 0)
        assert all(isinstance(x, str) for x in (found.startd, found.site, found.entry, found.group))
        rule_of(found.fact.ending)
