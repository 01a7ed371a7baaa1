"""Records of job runs: what each history says of each kind of end, in records of a real pool.

The records are tests/recordings/histories; what happened to each job is told in
history_scenario.py.
"""

from __future__ import annotations

import itertools
import json

import classad2
import pytest

from gwmond.model.facts import Size
from gwmond.model.pilot_life import Category
from gwmond.model.runs.outcomes import classify, rule_of
from gwmond.model.runs.run_facts import JobRecord, Transfer, Used
from gwmond.pilots.life import merged_runs, same_run
from gwmond.sources.htcondor import ads
from gwmond.sources.htcondor.histories import histories
from tests.build.histories import KINDS, POOLS, REFUSED, expected, load, parsed

START = 1_700_000_000


def decoded(kind: str, ad: classad2.ClassAd) -> JobRecord:
    record = histories.decode(kind, ad)
    assert isinstance(record, JobRecord), record
    return record


def records(kind: str, case: str, pool: str = "23") -> list[JobRecord]:
    """The records of one job, by run."""
    found = [decoded(kind, ad) for name, ad in load(kind, pool) if name == case]
    return sorted(found, key=lambda record: (record.fact.shadow_start or 0, record.fact.written_us))


def seconds(record: JobRecord) -> int:
    """How long the run lasted."""
    assert record.fact.start_us is not None
    assert record.fact.end_us is not None
    return (record.fact.end_us - record.fact.start_us) // 10**6


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("kind", KINDS)
def test_what_a_history_says_alone(kind: str, pool: str) -> None:
    """Each run's own end, by records of one history alone.

    Epochs: of a removal or a hold only that HTCondor did it.  A schedd's history: the last run's
    end, whatever became of the job later.  A startd's: how the program ended, but not on whose
    behalf; a killed pilot has left none.
    """
    rules: dict[str, list[str]] = {}
    for case in dict.fromkeys(case for case, _ in load(kind, pool)):
        found = [rule_of(record.fact.ending).name for record in records(kind, case, pool)]
        rules[case] = [name for name in found if name not in REFUSED]
    wanted = expected(kind, pool)
    if pool == "23" and kind == "startd_history":
        wanted["shadow_killed"].pop()  # was recorded before that run's end
    assert rules == wanted


@pytest.mark.parametrize("pool", POOLS)
def test_exits_are_the_same_by_each_history(pool: str) -> None:
    """Whether a program ended itself is told without ToE, which HTCondor 25 has no more: by each
    history alone, and by all together."""
    ended_itself = {
        "exit_zero": (0, None),
        "exit_three": (3, None),
        "signal": (None, 11),
        "killed_itself": (None, 9),
        "terminated_itself": (None, 15),
    }
    for case, exit_ in ended_itself.items():
        facts = [record.fact for kind in KINDS for record in records(kind, case, pool)]
        for ending in (one.ending for group in (facts, merged_runs.merge(facts)) for one in group):
            assert (ending.exit_code, ending.exit_signal) == exit_, case
            assert ending.exited, (case, ending)
    for case in ("caught_and_removed", "caught_and_evicted"):
        for kind in KINDS:
            (record,) = records(kind, case, pool)
            assert record.fact.ending.exit_code == 0
            assert not record.fact.ending.exited, (case, kind)


@pytest.mark.parametrize("pool", POOLS)
def test_an_exit_that_is_tried_again_completes_nothing(pool: str) -> None:
    """By OnExitRemove, in a schedd's records and in a startd's, which counts one end less."""
    for kind in ("epochs", "startd_history"):
        found = [r.fact.ending.retried for r in records(kind, "exit_retried", pool)]
        assert found == [True, False], kind
    for record in records("epochs", "exit_retried", pool)[:1]:
        outcome = classify(record.fact.ending)
        assert outcome is not None
        assert (outcome.category, outcome.label) == (Category.UNCLASSIFIED, "exit_retried")


def test_every_record_of_the_pools_is_known() -> None:
    """No record is a problem."""
    for pool, kind in itertools.product(POOLS, KINDS):
        for _, ad in load(kind, pool):
            record = decoded(kind, ad)
            assert record.fact.ending.over
            assert record.fact.user == "alice@pool.test"
            assert record.fact.job_group in {"alice@pool.test sh", "alice@pool.test program"}
            assert record.fact.size == Size(1, 128, 0)
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
            (record.fact.job, record.fact.shadow_start): record.fact.end_us or 0
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


@pytest.mark.parametrize("pool", POOLS)
def test_all_sources_together(pool: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Merged, the sources tell each end alike on all pools, and contradict each other in nothing
    but the end of a run whose starter stayed longer than its shadow: within 5 s."""
    for module in (merged_runs, same_run):
        monkeypatch.setattr(module, "TOLERANCE_US", 5 * 10**6)
    facts = [decoded(kind, ad).fact for kind in KINDS for _, ad in load(kind, pool)]
    cases = {decoded(kind, ad).fact.job: case for kind in KINDS for case, ad in load(kind, pool)}
    merged = merged_runs.merge(facts)
    found: dict[str, list[str]] = {}
    last = {one.key.job: one.key for one in merged}
    for one in merged:
        again = None if one.key == last[one.key.job] else True
        outcome = classify(one.ending._replace(superseded=one.ending.superseded or again))
        assert outcome is not None
        if rule_of(one.ending).name not in REFUSED:
            found.setdefault(cases[one.key.job], []).append(f"{outcome.category}/{outcome.label}")
    by_version = {"evicted", "evicted_then_removed", "evicted_then_held", "caught_and_evicted"}
    assert {found.pop(case)[0] for case in by_version} == {
        "preemption_badput/pilot_shutdown" if pool == "25" else "unclassified/preempted"
    }
    assert found.pop("vacated_by_user")[0] in {
        "unclassified/vacated",
        "unclassified/vacated_by_schedd",
    }
    assert found == {
        "exit_zero": ["goodput/exit_zero"],
        "exit_three": ["goodput/exit_nonzero"],
        "signal": ["goodput/exit_signal"],
        "killed_itself": ["goodput/exit_signal"],
        "terminated_itself": ["goodput/exit_signal"],
        "exit_retried": ["unclassified/exit_retried", "goodput/exit_nonzero"],
        "retried_then_done": ["unclassified/exit_retried", "goodput/exit_zero"],
        "two_runs": ["unclassified/exit_retried", "goodput/exit_nonzero"],
        "exit_then_held": ["goodput/exit_nonzero"],
        "removed": ["unclassified/removed"],
        "removed_by_policy": ["unclassified/removed"],
        "caught_and_removed": ["unclassified/removed"],
        "held": ["unclassified/held_by_user"],
        "held_by_policy": ["unclassified/held_by_policy"],
        "held_then_done": ["unclassified/held_by_user", "goodput/exit_zero"],
        "ran_too_long": ["unclassified/held_for_limit"],
        "no_program": ["unclassified/program_not_started"],
        "starter_killed": ["preemption_badput/lost_contact", "unclassified/removed"],
        # The shadow that was killed has left no record; the job was removed later.
        "shadow_killed": ["unclassified/exit_retried", "unclassified/removed"],
        "startd_killed": ["preemption_badput/lost_contact"],
        "input_missing": ["unclassified/held_for_mistake"],
        "output_missing": ["unclassified/transfer_output_failed"],
        "drained": ["preemption_badput/drained"],
        "killed": ["preemption_badput/lost_contact", "goodput/exit_zero"],
        "exit_then_killed": ["unclassified/exit_retried", "preemption_badput/lost_contact"],
    }
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
    parts = {
        name: json.dumps(value) for name, value in {**base, **changes}.items() if value is not None
    }
    return parsed(parts)


def ending(ad: classad2.ClassAd, kind: str = "epochs") -> object:
    return decoded(kind, ad).fact.ending


def test_a_transfer_that_waited_was_asked_for_when_its_starter_began() -> None:
    """The program ran until then; what the shadow asked for earlier is earlier."""

    def sent(**changes: object) -> Transfer | None:
        return decoded("epochs", epoch(**changes)).fact.transfer_out

    start_us, end_us = (START + 55) * 10**6, (START + 58) * 10**6
    assert sent() == Transfer(None, start_us, end_us)
    assert sent(TransferOutStarted=START + 55) == Transfer(None, start_us, end_us)
    waited = {"JobCurrentStartTransferOutputDate": START + 47, "TransferOutStarted": START + 55}
    asked_us = (START + 47) * 10**6
    assert sent(**waited) == Transfer(asked_us, start_us, end_us)
    assert sent(**waited, TransferOutQueued=START + 48) == Transfer(asked_us, start_us, end_us)
    queued = Transfer(asked_us - 10**6, start_us, end_us)
    assert sent(**waited, TransferOutQueued=START + 46) == queued


def test_a_whole_record() -> None:
    """Every field of a record, of an ad with everything in it."""
    record = decoded("epochs", epoch(MATCH_EXP_JOB_GLIDEIN_Site="before", JOB_GLIDEIN_Site="S"))
    fact = record.fact
    assert (record.startd, record.started, record.site) == ("glidein_1_2@node", START - 100, "S")
    assert (fact.job, fact.shadow_start, fact.job_group) == ("s#1.0#1", 2, "u@d run.sh")
    assert (fact.start_us, fact.end_us) == (START * 10**6, (START + 60) * 10**6)
    assert fact.size == Size(4, 8192, 0)
    assert (fact.ending.exit_code, fact.ending.own_accord, fact.ending.early) == (0, True, True)


@pytest.mark.parametrize(
    ("kind", "prefix"), [("epochs", ""), ("history", "MATCH_EXP_"), ("startd_history", "")]
)
def test_a_record_names_the_job_of_its_pilots_factory(kind: str, prefix: str) -> None:
    """As GlideinWMS's template for schedds has it: all values are texts."""
    names = {"Schedd": "factory@wms", "ClusterId": "27", "ProcId": "0", "Factory": "gfactory"}
    given = {f"{prefix}JOB_GLIDEIN_{name}": value for name, value in names.items()}
    own = {"LastRemoteHost": "slot1@g@n", "EnteredCurrentStatus": START + 60}
    ad = {**own, "CompletionDate": START + 60, **given}
    record = decoded(kind, epoch(**ad))
    assert (record.factory_job, record.factory) == ("factory@wms#27.0", "gfactory")
    for value in ("Unknown", "$$(GLIDEIN_ClusterId:Unknown)", "-1", None):
        assert not decoded(
            kind, epoch(**{**ad, f"{prefix}JOB_GLIDEIN_ClusterId": value})
        ).factory_job


@pytest.mark.parametrize(
    ("kind", "changes", "after"),
    [
        ("epochs", {}, 10),
        ("epochs", {"JobCurrentStartExecutingDate": START}, 0),
        ("epochs", {"JobCurrentStartExecutingDate": START - 1}, None),  # of the run before
        ("epochs", {"JobCurrentStartExecutingDate": None}, None),
        ("epochs", {"JobStartDate": START + 7}, 10),  # of the first run, whatever it says
        ("history", {}, 10),
        ("history", {"JobCurrentStartExecutingDate": START - 1}, None),
        # A shadow's time in a startd's record is of the run before.
        ("startd_history", {}, None),
        ("startd_history", {"JobStartDate": START + 7}, 7),
        ("startd_history", {"JobStartDate": START - 500, "JobLastStartDate": START - 400}, None),
    ],
)
def test_when_a_program_began(kind: str, changes: dict[str, object], after: int | None) -> None:
    """By its shadow if that is of this run, by its starter in a startd's record."""
    own = {"LastRemoteHost": "slot1_1@g@n", "EnteredCurrentStatus": START + 60}
    fact = decoded(kind, epoch(CompletionDate=START + 60, **own, **changes)).fact
    assert fact.start_us == START * 10**6
    assert fact.executing_us == (None if after is None else (START + after) * 10**6)


@pytest.mark.parametrize(
    ("changes", "used"),
    [
        ({}, None),
        ({"ResidentSetSize": 2048, "CpusUsage": 0.0}, Used(2, 0)),
        ({"ResidentSetSize": 0, "CpusUsage": 0.5}, Used(None, 0.5)),  # never measured
        ({"ResidentSetSize": 9, "MemoryUsage": 7.5}, Used(7.5, None)),  # by a cgroup
        ({"ResidentSetSize": 2048, "CpusUsage": -1, "MemoryUsage": "much"}, Used(2, None)),
        ({"ResidentSetSize": 2048, "JobCurrentStartExecutingDate": START - 1}, None),
    ],
)
def test_what_a_job_used(changes: dict[str, object], used: Used | None) -> None:
    """Of a run whose program began, by its shadow: absent is not zero."""
    assert decoded("epochs", epoch(**changes)).fact.used == used


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("kind", KINDS)
def test_each_program_of_the_pools_began_within_its_run(kind: str, pool: str) -> None:
    """Not before the schedd began it, not after its end."""
    known = 0
    for _, ad in load(kind, pool):
        fact = decoded(kind, ad).fact
        if fact.executing_us is None or fact.start_us is None or fact.end_us is None:
            continue
        known += 1
        assert fact.ending.began
        assert fact.start_us <= fact.executing_us
        # In the second in which a run begins, a schedd may still have the end of the one before.
        assert fact.executing_us <= fact.end_us or (kind, fact.end_us) == ("history", fact.start_us)
    assert known >= 20


STALE = {"JobCurrentStartDate": START + 56, "JobCurrentStartExecutingDate": START + 57}


@pytest.mark.parametrize(
    ("changes", "exit_code", "signal", "own"),
    [
        ({}, 0, None, True),
        ({"VacateReasonCode": 1008}, None, None, None),
        ({"JobCurrentStartExecutingDate": START - 5}, None, None, None),
        ({"JobCurrentStartExecutingDate": None}, None, None, None),
        ({"JobCurrentStartExecutingDate": None, "NumJobCompletions": 2}, 0, None, True),
        ({"ExitBySignal": True, "ExitSignal": 15}, None, 15, True),
        ({"ExitBySignal": True, "ExitSignal": 15, "VacateReasonCode": 0}, None, 15, False),
        ({"ExitBySignal": True, "ExitSignal": 15, "NumJobCompletions": 0}, None, 15, False),
        ({"ExitCode": 0, "VacateReasonCode": 1009}, 0, None, False),
        ({"ExitCode": 255, "VacateReasonCode": 13}, None, None, None),
        ({"VacateReasonCode": 12}, 0, None, True),
        ({"VacateReasonCode": 12, "JobCurrentStartTransferOutputDate": None}, None, None, None),
        ({"ExitCode": None}, None, None, None),
    ],
)
def test_how_a_program_ended_by_its_shadow(
    changes: dict[str, object], exit_code: int | None, signal: int | None, own: bool | None
) -> None:
    """A vacate code, even 0, says that HTCondor ended it; a run that never began or was lost has no
    exit, nor has one that failed."""
    found = decoded("epochs", epoch(**changes)).fact.ending
    assert (found.exit_code, found.exit_signal, found.own_accord) == (exit_code, signal, own)


@pytest.mark.parametrize(
    ("changes", "known"),
    [
        ({}, True),
        (STALE, False),
        ({"JobCurrentStartExecutingDate": START + 56}, False),
        ({"JobCurrentStartTransferOutputDate": START}, False),
        ({**STALE, "NumShadowStarts": 1}, True),
        ({**STALE, "NumJobCompletions": 2}, True),
        ({**STALE, "NumJobCompletions": 1}, False),
        ({**STALE, "JobStatus": 4}, True),
    ],
)
def test_whose_exit_a_schedds_history_has(changes: dict[str, object], known: bool) -> None:
    """If a shadow is killed, the job still has the exit of the run before."""
    base: dict[str, object] = {"JobStatus": 3, "LastJobStatus": 1, "LastRemoteHost": "slot1@n"}
    ad = epoch(EnteredCurrentStatus=START + 900, **{**base, **changes})
    assert (decoded("history", ad).fact.ending.exit_code == 0) is known


@pytest.mark.parametrize(
    ("changes", "toe", "exit_code", "signal", "own"),
    [
        ({}, f"[ HowCode = 0; When = {START + 55}; ExitCode = 0 ]", 0, None, True),
        ({}, f"[ HowCode = 1; When = {START + 55}; ExitCode = 0 ]", 0, None, False),
        ({}, "[ HowCode = 0; ExitCode = 0 ]", None, None, None),
        ({}, f"[ HowCode = 0; When = {START - 40}; ExitCode = 0 ]", None, None, None),
        (
            {"NumShadowStarts": 1},
            f"[ HowCode = 0; When = {START - 40}; ExitCode = 0 ]",
            *(0, None, True),
        ),
        ({}, f"[ HowCode = 0; When = {START - 40}; ExitCode = 9 ]", 0, None, False),
        ({}, None, 0, None, False),
        ({"ExecuteDirWasEncrypted": False}, None, 0, None, None),
        ({"ExecuteDirWasEncrypted": False, "VacateReasonCode": 1009}, None, 0, None, False),
        ({"ExitBySignal": True, "ExitSignal": 9}, None, None, 9, False),
        (
            {"ExitBySignal": True, "ExitSignal": 9, "ExecuteDirWasEncrypted": False},
            *(None, None, 9, None),
        ),
        ({"StarterExitStatus": 9}, None, None, None, None),
    ],
)
def test_how_a_program_ended_by_its_starter(
    changes: dict[str, object],
    toe: str | None,
    exit_code: int | None,
    signal: int | None,
    own: bool | None,
) -> None:
    """Its own end has a ToE until HTCondor 24.0, and no vacate code from then on; a ToE may be the
    run before's."""
    ad = epoch(CompletionDate=START + 56, JobStartDate=START + 10, **changes)
    if toe is not None:
        ad["ToE"] = classad2.ExprTree(toe)
    found = decoded("startd_history", ad).fact.ending
    assert (found.exit_code, found.exit_signal, found.own_accord) == (exit_code, signal, own)


@pytest.mark.parametrize(
    ("policy", "in_epoch", "in_startds"),
    [
        ("true", False, False),
        ("false", True, True),
        ("NumJobCompletions > JobMaxRetries || ExitCode =?= 0", False, False),
        ("NumJobCompletions > JobMaxRetries || ExitCode =?= 7", True, False),
        ("NumShadowStarts > 1", False, False),
        ("SomethingElse > 1", None, None),
        ("error", None, None),
    ],
)
def test_whether_an_exit_is_tried_again(
    policy: str, in_epoch: bool | None, in_startds: bool | None
) -> None:
    """By what remains in the record of the user's policy; the shadow has counted this end, the
    startd's record has not."""
    for kind, wanted in (("epochs", in_epoch), ("startd_history", in_startds)):
        ad = epoch(
            NumJobCompletions=1,
            JobMaxRetries=1,
            CompletionDate=START + 56,
            JobStartDate=START + 10,
            ExecuteDirWasEncrypted=False,
        )
        ad["OnExitRemove"] = classad2.ExprTree(policy)
        assert decoded(kind, ad).fact.ending.retried is wanted


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
        ({"NumShadowStarts": 1, "JobStartDate": START}, True),
        ({"NumShadowStarts": 1, "JobStartDate": START, "ExitCode": None}, None),
        (
            {
                "NumShadowStarts": 1,
                "JobStartDate": START,
                "ExitCode": None,
                "RemoteWallClockTime": 0,
            },
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
    assert decoded("epochs", ad).fact.size == Size(2, 2000, 0)
    assert decoded("epochs", epoch(**asked, RequestMemory=-1)).fact.size is None


def test_secrets_are_not_asked_for() -> None:
    """No projection has an attribute that is never fetched."""
    for kind in KINDS:
        names = {name.lower() for name in histories.query(kind).projection}
        assert not names & ads.SECRET
        assert not any("environment" in name or "argument" in name for name in names)
