"""Pilots' outputs in the forms and with the faults that the generator does not write."""

from __future__ import annotations

import pytest

from gwmond.model.pilot_life import Validation
from gwmond.model.pilots.file_facts import FailureClass, Jobs, PilotName, QueueState
from gwmond.sources.gwms import completed_jobs, condor_events, pilot_err, pilot_out, pilot_output
from gwmond.sources.gwms import starter_log as starters
from gwmond.sources.gwms.texts import Zone
from tests.build.gwms import generate, simulated
from tests.build.gwms.simulated import one

US = 10**6
UTC = Zone(((1_795_000_000, 0),))


def test_a_pilot_killed_while_it_slept_after_a_failure() -> None:
    """Only stderr tells that the validation failed; when it did, nothing tells."""
    pilot = one("failed", failure=("WN_Resource", "main/validate_node.sh"))
    out = generate.out(pilot)
    err = generate.err(pilot)
    err = err[: err.index(b"=== Encoded")]
    fact = pilot_output.parse("p", out[: out.index(b"=== Glidein")], err)
    assert fact.validation is Validation.FAILED
    assert fact.failure is not None
    assert (fact.failure.kind, fact.failure.test) == (
        FailureClass.UNKNOWN,
        "main/validate_node.sh",
    )
    assert (fact.end_us, fact.pause, fact.validation_end_us) == (None, None, None)


def test_without_any_xml_the_sleep_is_estimated() -> None:
    """It is as long as the mode says."""
    pilot = one("failed", mode="fast")
    out = generate.out(pilot)
    fact = pilot_output.parse("p", out[: out.index(b"=== XML")], None)
    assert fact.validation is Validation.FAILED
    assert fact.pause is not None
    assert fact.pause == ((pilot.end - 150) * US, pilot.end * US, "estimated")


def test_the_long_result_stands_in_for_the_short() -> None:
    """It is in stderr; what the tests inside say is not the pilot's."""
    pilot = one("failed")
    out = generate.out(pilot)
    fact = pilot_output.parse("p", out[: out.index(b"=== XML")], generate.err(pilot))
    assert fact.xml is not None
    assert fact.xml.failure == pilot.failure[0]  # type: ignore[index]
    assert fact.xml.name.cluster == pilot.cluster
    assert fact.pause is not None
    assert fact.pause.evidence == "measured"


def test_stderr_alone() -> None:
    """Names, result, jobs, with the zone of the result; no times of the course."""
    pilot = one("good")
    fact = pilot_output.parse("p", None, generate.err(pilot))
    assert [problem.problem for problem in fact.problems] == ["no_output"]
    assert (fact.start_us, fact.end_us) == (pilot.start * US, None)
    assert len(fact.records) == len(pilot.jobs)
    assert fact.runs == ()
    assert fact.name.factory == simulated.FACTORY


def test_stdout_alone_lists_runs() -> None:
    """Where stderr did not come, the statistics tell each job, its times and its status."""
    pilot = one("good", cores=4)
    fact = pilot_output.parse("p", generate.out(pilot), None)
    assert {(r.job, r.start_us, r.end_us) for r in fact.runs} == {
        (f"{job.cluster}.0", job.start * US, job.end * US) for job in pilot.jobs
    }


def test_a_run_that_the_history_lost_is_in_the_starter_log() -> None:
    """A starter that was killed leaves no record; the others are not counted twice."""
    pilot = one("good", cores=8)
    lost = pilot.jobs[0]
    raw = generate.err(pilot._replace(jobs=pilot.jobs[1:]))
    raw += generate.log("StarterLog.slot1_99", generate.starter(pilot, lost).encode())
    fact = pilot_output.parse("p", generate.out(pilot), raw)
    assert len(fact.records) == len(pilot.jobs) - 1
    assert [run.job for run in fact.runs] == [f"{lost.cluster}.0"]


def test_other_names_in_a_file_than_in_its_path() -> None:
    """The path is believed, and the difference told."""
    pilot = one("good")
    place = PilotName(entry="Other", cluster=1, proc=2)
    fact = pilot_output.parse("p", generate.out(pilot), None, place)
    assert (fact.name.entry, fact.name.cluster, fact.name.proc) == ("Other", 1, 2)
    words = {problem.problem for problem in fact.problems}
    assert words == {"other_pilot", "other_entry"}


@pytest.mark.parametrize(
    ("text", "total", "factor"),
    [
        ("Total jobs 3 utilization 60\n", Jobs(3, 60), None),
        ("x below are normalized\nTotal jobs 3 utilization 60\n", None, None),
        (
            "Total jobs/goodZ jobs below are normalized to 1 Core\nTotal jobs 3 utilization 60\n",
            Jobs(3, 60),
            None,
        ),
        (
            "Normalization [parallelism] factor 8\n(Real) Total jobs 20 utilization 480\n"
            "(Normalized) Total jobs 3 utilization 60\n",
            Jobs(3, 60),
            8,
        ),
    ],
)
def test_forms_of_statistics(text: str, total: Jobs | None, factor: int | None) -> None:
    """What is told of the division, and no more."""
    jobs = pilot_out.parse(text.encode()).jobs
    if total is None:
        assert jobs is not None
        return
    assert jobs is not None
    assert (jobs.total, jobs.factor) == (total, factor)


@pytest.mark.parametrize(
    ("line", "at"),
    [
        ("11/18/26 10:00:00 (pid:9)", 1_794_996_000),
        ("11/18/26 10:00:00.123 (pid:9) (D_ALWAYS)", 1_794_996_000),
        ("11/18 10:00:00 (pid:9)", 1_794_996_000),
        ("1794996000 (pid:9)", 1_794_996_000),
        ("(1794996000) (pid:9)", 1_794_996_000),
        ("2026-11-18T10:00:00 (pid:9)", 1_794_996_000),
        ("2026-11-18 10:00:00.500 (pid:9)", 1_794_996_000),
        ("2026-11-18T12:00:00+02:00 (pid:9)", 1_794_996_000),
        ("12/31 23:59:59 (pid:9)", 1_798_761_599),
        ("01/01 00:00:00 (pid:9)", 1_767_225_600),
    ],
)
def test_times_of_starters(line: str, at: int) -> None:
    """All forms of HTCondor's DEBUG_TIME_FORMAT in use; a year is the nearest to the pilot's."""
    about = 1_767_225_600 if line.startswith("01/01") else 1_795_000_000
    raw = f"{line} Create_Process succeeded, pid=1\n".encode()
    (run,) = starters.parse(raw, UTC, about).runs
    assert run.start_us == at * US
    assert starters.parse(raw, Zone(), about).runs == () or "1794996000" in line or "+" in line


def test_starters_that_write_into_one_file() -> None:
    """Each is followed by its pid; a pid may come again."""
    when = "11/18/26 10:00:0"
    raw = (
        f"{when}0 (pid:1) ** condor_starter (CONDOR_STARTER) STARTING UP\n"
        f"{when}1 (pid:2) ** condor_starter (CONDOR_STARTER) STARTING UP\n"
        f"{when}1 (pid:2) Starting a VANILLA universe job with ID: 2.0\n"
        f"{when}1 (pid:1) Starting a VANILLA universe job with ID: 1.0\n"
        f"{when}2 (pid:1) Create_Process succeeded, pid=11\n"
        f"{when}3 (pid:2) Failed to start job, exiting\n"
        f"{when}4 (pid:1) Process exited, pid=11, signal=9\n"
        f"{when}4 (pid:1) Failed to send job exit status to shadow\n"
        f"{when}5 (pid:2) **** condor_starter (condor_STARTER) pid 2 EXITING WITH STATUS 0\n"
        f"{when}6 (pid:1) ** condor_starter (CONDOR_STARTER) STARTING UP\n"
        f"{when}6 (pid:1) Starting a VANILLA universe job with ID: 3.0\n"
        f"{when}7 (pid:1) Create_Process succeeded, pid=12\n"
    )
    runs = {run.job: run for run in starters.parse(raw.encode(), UTC, 1_795_000_000).runs}
    assert set(runs) == {"1.0", "2.0", "3.0"}
    assert (runs["1.0"].ending.exit_signal, runs["1.0"].unsent) == (9, True)
    assert (runs["2.0"].ending.began, runs["2.0"].ending.over) == (False, True)
    assert (runs["3.0"].end_us, runs["3.0"].ending.over) == (None, False)


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        ("condor_gpu_discovery found 4 GPUs: DetectedGPUs=GPU-1, GPU-2\n", 4),
        ("No GPUs found with condor_gpu_discovery, setting them to 0\n", 0),
        ("GPU autodiscovery (condor_gpu_discovery) failed, disabling auto discovery\n", 0),
        ("adding resource slots configuration: GPUs,2,8000,main\n", 2),
        ("adding resource slots configuration: GPUs\n", None),
        ("nothing\n", None),
        ("config\nUnsetting X509_USER_PROXY\n", 0),
        ("config\nExposing X509_USER_PROXY /tmp/proxy\n", 0),
        ("config\n" + generate.log("MasterLog", b"x").decode(), 0),
        ("config\n" + generate.log("StarterLog.slot1_1", b"x").decode(), 0),
        ("config\n" + generate.log("Other", b"x").decode(), None),
        ("adding resource slots configuration: ioslot,4\nUnsetting X509_USER_PROXY\n", 0),
        ("adding resource slots configuration: GPUs\nUnsetting X509_USER_PROXY\n", None),
        ("x" * pilot_err.HEAD_BYTES + generate.log("MasterLog", b"x").decode(), None),
    ],
)
def test_gpus(text: str, gpus: int | None) -> None:
    """What was found counts, else what is declared; silence is none once HTCondor was started."""
    assert pilot_err.parse(text.encode()).gpus == gpus


def test_no_gpus_where_a_job_had_one() -> None:
    """Another way to configure them would be silent: then they are not told."""
    pilot = one("good", gpus=0)
    err = generate.err(pilot)
    assert pilot_output.parse("p", generate.out(pilot), err).gpus == 0
    history = generate.history(pilot).replace("RequestCpus", "GpusProvisioned = 1\nRequestCpus")
    err += generate.log("StartdHistoryLog", history.encode())
    assert pilot_output.parse("p", generate.out(pilot), err).gpus is None


def test_secrets_are_not_read() -> None:
    """What the dump of the configuration prints beside the names stays where it is."""
    pilot = one("good", mode="std")
    fact = pilot_output.parse("p", generate.out(pilot), generate.err(pilot))
    assert "secret" not in repr(fact)


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("<job terminated=x", "garbage"),
        ('<job id="1.0" duration="5">', "truncated"),
        ('<job id="x"></job>', "no_pilot"),
        ("\0\0", "garbage"),
    ],
)
def test_broken_lines_of_completed_jobs(line: str, word: str) -> None:
    """Counted by what is wrong, and those around them are read."""
    good = generate.completed(one("good"))
    lines = completed_jobs.parse("p", f"{good}{line}\n{good}".encode())
    assert (len(lines.facts), lines.wrong) == (2, {word: 1})


def test_ids_of_python_3() -> None:
    """They are the same pilots."""
    text = '<job id="{}" duration="-1" condor_started="False"></job>\n'
    lines = completed_jobs.parse("p", "".join(map(text.format, ("b'10.000'", "10.000"))).encode())
    assert {pilot.name[:5] for pilot in lines.facts} == {("", "", "", 10, 0)}
    assert [pilot.duration_s for pilot in lines.facts] == [None, None]
    assert lines.facts[0].jobs is None
    assert lines.wrong == {"no_duration": 2}


@pytest.mark.parametrize(
    "event",
    [
        "005 (7.001.000) 02/28 10:00:00 Job terminated.\n\t(0) Abnormal termination (signal 9)",
        "005 (7.001.000) 2022-02-28 10:00:00 x\n\t(0) Abnormal termination (signal 9)",
        "005 (7.001.000) 2022-02-28T10:00:00.250Z x\n\t(0) Abnormal termination (signal 9)",
        "005 (7.001.000) 2022-02-28 11:00:00+01:00 x\n\t(0) Abnormal termination (signal 9)",
    ],
)
def test_dates_of_events(event: str) -> None:
    """In the old form the year is that of the log's last change; a zone counts if it is there."""
    from datetime import UTC as ZONE  # noqa: PLC0415

    raw = f"{event}\n...\nnonsense\n...\n001 (7.001.000) 99/99 10:00:00 x\n...\n".encode()
    events = condor_events.parse("p", raw, written_s=1_646_100_000, zone=ZONE)
    (ended,) = events.facts
    assert ended.at_us // US == 1_646_042_400
    assert (ended.name.cluster, ended.name.proc, ended.state) == (7, 1, QueueState.KILLED)
    assert events.wrong == {"garbage": 1, "no_time": 1}


def test_runs_in_stdout_take_the_zone_of_the_whole_output() -> None:
    """Also where the statistics stand before any line that has a time of the epoch."""
    pilot = one("good", cores=8)
    raw = generate.out(pilot)
    begin, end = raw.index(b"=== Stats of main"), raw.index(b"=== End Stats of main")
    first = raw[begin:end] + raw[:begin] + raw[end:]
    assert pilot_out.parse(first).runs == pilot_out.parse(raw).runs
    assert len(pilot_out.parse(raw).runs) == len(pilot.jobs)
    assert pilot_output.parse("p", first, None).runs == pilot_output.parse("p", raw, None).runs


def test_lines_about_jobs_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """All starts are counted, but no more than so many are kept."""
    monkeypatch.setattr(pilot_out, "MAX_LINES", 10)
    out = pilot_out.parse(b"02/28/22 22:42:54 Starting job 1.0 from x\n" * 50)
    assert (out.starts, len(out.lines)) == (50, 10)


# -- logs of the factory with records that run into each other, and times that cannot be


def test_an_event_whose_end_is_missing() -> None:
    """It and the next one count, as do those after a damaged one."""
    heads = [f"00{number} (7.001.000) 2022-02-28 10:0{number}:00Z x" for number in (0, 1, 5)]
    raw = f"{heads[0]}\n\tdetail\n{heads[1]}\n...\nnonse\n{heads[2]}\n...\n".encode()
    events = condor_events.parse("p", raw)
    assert [event.state for event in events.facts] == [
        QueueState.SUBMITTED,
        QueueState.STARTED,
        QueueState.ENDED,
    ]
    assert events.wrong == {"garbage": 1}


def test_two_jobs_on_a_line() -> None:
    """Both count, also where the first was cut off."""
    good = generate.completed(next(simulated.pilots(3, 1))).strip()
    lines = completed_jobs.parse("p", f"{good}{good}\n{good[:-20]}{good}\n".encode())
    assert (len(lines.facts), lines.wrong) == (3, {"truncated": 1})


@pytest.mark.parametrize(("seconds", "told"), [(5_184_000, 5_184_000), (5_184_001, None)])
def test_a_life_that_no_pilot_has(seconds: int, told: int | None) -> None:
    """The difference to a time that was not set is no duration."""
    text = '<job id="1.0" duration="{0}" condor_duration="{0}"></job>\n'
    lines = completed_jobs.parse("p", text.format(seconds).encode())
    assert [(pilot.duration_s, pilot.condor_s) for pilot in lines.facts] == [(told, told)]
    assert lines.wrong == ({} if told else {"no_duration": 1})
