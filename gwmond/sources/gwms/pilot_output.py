"""What the two outputs of one pilot say together.

Rules where they leave something open:

- HTCondor never started, and the pilot failed: validation failed.  What failed is the XML's
  TestID, else the test that stderr names.
- HTCondor started, no job ran, and it ran for less than five seconds, or a collector refused at
  least every second of its updates: it never registered (``registered``).
- After any failure a pilot sleeps on purpose (GS:1447-1460), also where HTCondor had run.  The
  XML's tEnd is before that sleep; but where glidein_startup.sh failed before any test, tEnd is
  after it, and the sleep is as long as its mode says: an estimate.
- A stderr that shows no GPUs is not believed where a job was given some: it is unknown then.
- The cluster, the entry and the user are those of the path, for the factory chose them; what the
  output says instead is a problem (``other_pilot``).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from gwmond.model.factory.jobs import ZONES_US
from gwmond.model.facts import Problem
from gwmond.model.pilot_life import Validation
from gwmond.model.pilots.file_facts import (
    LEAST_CONDOR_S,
    Failure,
    FailureClass,
    Pause,
    PilotName,
    PilotOutput,
    StarterRun,
    XmlResult,
)
from gwmond.model.problem_names import ProblemName
from gwmond.model.times import SECOND_US
from gwmond.sources.gwms import blobs, pilot_err, pilot_out, result_xml, texts
from gwmond.sources.gwms.pilot_err import Logs, PilotErr
from gwmond.sources.gwms.pilot_out import PilotOut

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gwmond.model.runs.run_facts import JobRecord

EMPTY_BYTES = 10
"""A stdout below this is empty, for GlideinWMS too (FLP: extractLogData)."""

UPDATE_S = 300
"""How often a startd and a master send their ads (UPDATE_INTERVAL, MASTER_UPDATE_INTERVAL)."""

PAUSE_S = {"fast": 150, "check": 150}
USUAL_PAUSE_S = 1199
_JOB = re.compile(r"job\.([0-9]{1,12})\.([0-9]{1,9})\.(out|err)")
_NEVER_US = 10**18
_SILENT = frozenset(
    {ProblemName.NO_OUTPUT, ProblemName.EMPTY_OUTPUT, ProblemName.GARBAGE, ProblemName.BAD_TIME}
)
_CLASSES = {kind.value.lower(): kind for kind in FailureClass}


class JobFile(NamedTuple):
    """What the name of an output says."""

    cluster: int
    proc: int
    kind: str


def job_file(name: str) -> JobFile | None:
    r"""Return what a file is named for, None if it is no pilot's output.

    >>> job_file("job.10.0.out"), job_file("job.10.0.out\n")
    (JobFile(cluster=10, proc=0, kind='out'), None)
    """
    match = _JOB.fullmatch(name)
    return JobFile(int(match[1]), int(match[2]), match[3]) if match else None


def parse(
    path: str,
    out: bytes | None,
    err: bytes | None,
    place: PilotName = PilotName(),  # noqa: B008 (immutable)
    written_us: int | None = None,
) -> PilotOutput:
    """Return what a pilot's outputs report; None stands for a file that is not there.

    ``path`` names the pilot in problems; ``place`` is what its directory and file name say.
    """
    wrong: list[tuple[str, ProblemName]] = []
    if out is None or len(out) < EMPTY_BYTES:
        wrong.append(("out", ProblemName.NO_OUTPUT if out is None else ProblemName.EMPTY_OUTPUT))
    stdout = pilot_out.parse(out or b"")
    if not wrong and stdout == PilotOut():
        wrong.append(("out", ProblemName.GARBAGE))
    stderr = pilot_err.parse(err or b"")
    wrong += [("out", word) for word in stdout.wrong]
    encoded = _encoded(stderr)
    xml = _xml(stdout, encoded, wrong)
    tests, more_tests = result_xml.tests_of(encoded[0]) if encoded else ((), 0)
    name = _name(place, stdout, stderr, xml, wrong)
    logs, runs = _logs(stdout, stderr, xml, written_us)
    wrong += logs.wrong
    records, runs, more = pilot_err.bounded(logs.records, runs)
    wrong += [("err", ProblemName.TOO_MANY_RUNS)] * more
    startds = {record.startd for record in logs.records}
    if len(startds) == 1 and not name.startd:
        name = name._replace(startd=texts.label(startds.pop().partition("@")[0]))
    wrong += _late(stdout, logs, written_us)
    course = _course(stdout, stderr, xml)
    output = PilotOutput(
        path=path,
        name=name,
        start_us=stdout.start_us or (xml.start_us if xml else None),
        end_us=stdout.end_us,
        condor_start_us=stdout.condor_start_us,
        condor_end_us=_condor_end(stdout, xml),
        cores=stdout.cores or stderr.cores,
        memory_mib=stdout.memory_mib or stderr.memory_mib,
        offered_cores=stdout.offered_cores,
        offered_memory_mib=stdout.offered_memory_mib,
        gpus=None if stderr.gpus == 0 and _ran_on_gpus(logs.records) else stderr.gpus,
        jobs=stdout.jobs or (xml.jobs if xml else None),
        xml=xml,
        activations=stdout.activations,
        records=records,
        runs=runs,
        written_us=written_us,
        logs=tuple(blob.name for blob in stderr.logs),
        tests=tests,
        more_tests=more_tests,
        **course,  # type: ignore[arg-type]
    )
    output = output._replace(registered=_registered(output, stdout, stderr))
    if not output.times and all(word not in _SILENT for _, word in wrong):
        wrong.append(("out", ProblemName.UNTIMED))
    return output._replace(problems=_problems(path, wrong))


def _logs(
    stdout: PilotOut, stderr: PilotErr, xml: XmlResult | None, written_us: int | None
) -> tuple[Logs, Sequence[StarterRun]]:
    """Return what the logs in the stderr say, and runs without a record: theirs, else stdout's."""
    zone = stdout.zone
    for moment, offset in xml.offsets if xml is not None and not zone.offsets else ():
        zone = zone.at(moment, offset)
    about_us = stdout.start_us or stdout.end_us or (xml.end_us if xml else None) or written_us
    listed = stdout.starts if stdout.jobs is not None else None
    logs = pilot_err.unpack(
        stderr,
        zone,
        None if about_us is None else about_us // SECOND_US,
        lambda records: listed is not None and records >= listed,
    )
    if logs.runs:
        return logs, logs.runs
    if not logs.records:
        return logs, stdout.runs
    return logs, pilot_err.beside(stdout.runs, logs.records) if listed is None else ()


def _registered(output: PilotOutput, stdout: PilotOut, stderr: PilotErr) -> bool | None:
    """Return False if no collector can have known of its HTCondor; None if that is not known."""
    total = output.jobs.total.jobs if output.jobs is not None else None
    ran_jobs = output.records or output.runs or output.activations or total
    seconds = stdout.condor_s if stdout.condor_s is not None else output.xml and output.xml.condor_s
    if seconds is None and output.condor_end_us is not None:
        seconds = (
            output.condor_end_us - (output.condor_start_us or output.condor_end_us)
        ) // SECOND_US
    if output.validation is not Validation.PASSED or ran_jobs or seconds is None:
        return None
    if seconds < LEAST_CONDOR_S:
        return False
    updates = 1 + seconds // UPDATE_S
    return False if 2 * pilot_err.updates_refused(stderr) > updates else None


def _late(stdout: PilotOut, logs: Logs, written_us: int | None) -> list[tuple[str, ProblemName]]:
    """Return a problem for each time that is long after the files were last written."""
    latest_us = (written_us or _NEVER_US) + ZONES_US
    marks = (stdout.start_us, stdout.last_script_us, stdout.condor_start_us, stdout.condor_end_us)
    runs = [record.fact.end_us or 0 for record in logs.records] + [
        run.start_us for run in logs.runs
    ]
    out = sum((mark or 0) >= latest_us for mark in (*marks, stdout.end_us))
    err = sum(run >= latest_us for run in runs)
    return [("out", ProblemName.BAD_TIME)] * out + [("err", ProblemName.BAD_TIME)] * err


def _ran_on_gpus(records: Sequence[JobRecord]) -> bool:
    return any(record.fact.size is not None and record.fact.size.gpus > 0 for record in records)


def _encoded(stderr: PilotErr) -> tuple[bytes, ProblemName | None] | None:
    """Return the long result, and what was wrong with its encoding; None where there is none."""
    blob = next((blob for blob in stderr.logs if blob.name == blobs.RESULT), None)
    return None if blob is None else blobs.unpack(stderr.raw, blob)[:2]


def _xml(
    stdout: PilotOut,
    encoded: tuple[bytes, ProblemName | None] | None,
    wrong: list[tuple[str, ProblemName]],
) -> XmlResult | None:
    """Return the short result; of a failure, and where there is no short one, the long one."""
    short = stdout.xml
    if short is not None and short.ok:
        return short
    if encoded is None:
        return short
    data, word = encoded
    wrong += [("xml", word)] if word else []
    if not data:
        return short
    long = result_xml.parse(data)
    wrong += [("xml", long.wrong)] if long.wrong else []
    if long.result is None:
        return short
    if short is None or not long.wrong:
        return long.result
    return short


def _name(
    place: PilotName,
    stdout: PilotOut,
    stderr: PilotErr,
    xml: XmlResult | None,
    wrong: list[tuple[str, ProblemName]],
) -> PilotName:
    reported = stdout.name.filled(xml.name if xml else PilotName()).filled(stderr.name)
    for mine, theirs in ((place.cluster, reported.cluster), (place.proc, reported.proc)):
        if mine is not None and theirs is not None and mine != theirs:
            wrong.append(("out", ProblemName.OTHER_PILOT))
            break
    if place.entry and reported.entry and place.entry != reported.entry:
        wrong.append(("out", ProblemName.OTHER_ENTRY))
    return place.filled(reported)


def _condor_end(stdout: PilotOut, xml: XmlResult | None) -> int | None:
    if stdout.condor_end_us is not None or stdout.condor_start_us is None:
        return stdout.condor_end_us
    seconds = stdout.condor_s if stdout.condor_s is not None else (xml.condor_s if xml else None)
    return None if seconds is None else stdout.condor_start_us + seconds * SECOND_US


def _course(stdout: PilotOut, stderr: PilotErr, xml: XmlResult | None) -> dict[str, object]:
    """Return the validation, its end, the failure and the pause."""
    ran = stdout.condor_start_us is not None or stdout.condor_end_us is not None
    ran = ran or (xml is not None and xml.condor_s is not None)
    bad_end = stdout.end_us is not None and bool(stdout.exit_code)
    bad = bad_end or (xml is not None and xml.ok is False) or bool(stderr.failed_test)
    validation = Validation.PASSED if ran else Validation.FAILED if bad else Validation.UNKNOWN
    pause = _pause(stdout, xml) if bad else None
    ended = stdout.last_script_us or stdout.condor_start_us
    if ended is None and stdout.start_us is not None and stdout.validated_s is not None:
        ended = stdout.start_us + stdout.validated_s * SECOND_US
    if validation is Validation.FAILED:
        if xml is not None and not xml.early and xml.end_us is not None:
            ended = xml.end_us
        elif pause is not None:
            ended = pause.start_us
    return {
        "validation": validation,
        "validation_end_us": ended,
        "failure": _failure(stderr, xml) if bad else None,
        "pause": pause,
    }


def _pause(stdout: PilotOut, xml: XmlResult | None) -> Pause | None:
    end = stdout.end_us
    if end is None:
        return None
    if xml is not None and not xml.early and xml.end_us is not None:
        return Pause(xml.end_us, end, "measured") if xml.end_us < end else None
    usual = PAUSE_S.get(stdout.mode, USUAL_PAUSE_S)
    start = end - usual * SECOND_US
    if stdout.start_us is not None:
        start = max(start, stdout.start_us)
    return Pause(start, end, "estimated") if start < end else None


def _failure(other: PilotErr, xml: XmlResult | None) -> Failure:
    word = (xml.failure if xml else "").lower()
    kind = _CLASSES.get(word, FailureClass.OTHER) if word else FailureClass.UNKNOWN
    test = (xml.test if xml else "") or other.failed_test
    return Failure(kind, test)


def _problems(path: str, wrong: list[tuple[str, ProblemName]]) -> tuple[Problem, ...]:
    """Return one problem for each word, with the places where it was found."""
    by_word: dict[ProblemName, list[str]] = {}
    for where, word in wrong:
        by_word.setdefault(word, []).append(where)
    return tuple(
        Problem(path, word, f"{len(places)} in {', '.join(sorted(set(places))[:8])}", len(places))
        for word, places in sorted(by_word.items())
    )
