"""Writes a factory's directory of simulated pilots, with the defects that real ones have.

``python -m tests.build.gwms.generate DIRECTORY --number 213912`` (the number of the 2022 report).
The texts have the forms of glidein_startup.sh, condor_startup.sh, parse_starterlog.awk and of the
factory's monitoring; what pilots print between is padding of a typical size.
"""

from __future__ import annotations

import argparse
import base64
import os
import zlib
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from time import gmtime, strftime
from zoneinfo import ZoneInfo

from tests.build.gwms.simulated import FACTORY, INSTANCE, SCHEDD, Job, Pilot, pilots

_ZONES = ["PST", "CST", "EST", "UTC", "CET", "EET", "IST", "JST"]
_PADDING = "".join(f'Attribute{n} = "value {n * 7919} of a job\'s ad"\n' for n in range(60))
_NOISE = "{t} ({p}) config Macros = 126, Sorted = 124, StringBytes = 3061\n" * 12


def pack(text: bytes, level: int = 6) -> bytes:
    """Compressed as a pilot does: gzip, then base64 in lines."""
    packer = zlib.compressobj(level, wbits=31)
    coded = base64.encodebytes(packer.compress(text) + packer.flush())
    return b"begin-base64 644 -\n" + coded + b"====\n"


def log(name: str, text: bytes, level: int = 6) -> bytes:
    return f"{name}\n======== gzip | uuencode =============\n".encode() + pack(text, level)


_MASTER = log("MasterLog", b"11/21/26 05:39:06 (pid:37) Started DaemonCore process\n" * 60)
_STARTD = log("StartdLog", b"11/21/26 05:39:06 (pid:40) slot1_1: Got activate_claim\n" * 200)


def ahead(pilot: Pilot, at: int) -> int:
    """What its node's clock is ahead of UTC by."""
    if not pilot.zone:
        return pilot.offset
    offset = datetime.fromtimestamp(at, ZoneInfo(pilot.zone)).utcoffset()
    return round(offset.total_seconds()) if offset is not None else 0


def date(pilot: Pilot, at: int) -> str:
    """As date(1) prints it on the pilot's node."""
    zone = _ZONES[pilot.entry % len(_ZONES)]
    return strftime(f"%a %b %e %H:%M:%S {zone} %Y", gmtime(at + ahead(pilot, at)))


def stamp(pilot: Pilot, at: int) -> str:
    """As HTCondor's logs have it."""
    return strftime("%m/%d/%y %H:%M:%S", gmtime(at + ahead(pilot, at)))


def iso(pilot: Pilot, at: int) -> str:
    offset = ahead(pilot, at)
    sign, minutes = "-" if offset < 0 else "+", abs(offset) // 60
    wall = strftime("%Y-%m-%dT%H:%M:%S", gmtime(at + offset))
    return f"{wall}{sign}{minutes // 60:02d}:{minutes % 60:02d}"


# -- stdout


def out(pilot: Pilot) -> bytes:
    """job.C.P.out, whole."""
    return "".join((*_header(pilot), *_course(pilot), *_tail(pilot))).encode()


def _header(pilot: Pilot) -> Iterable[str]:
    yield f"Starting glidein_startup.sh at {date(pilot, pilot.start)} ({pilot.start})\n"
    yield f"script_checksum   = '4f0c{pilot.pid:x}'\n"
    yield f"debug_mode        = '{pilot.mode}'\n"
    yield f"condorg_cluster   = '{pilot.cluster}'\n"
    yield f"condorg_subcluster= '{pilot.proc}'\n"
    yield f"condorg_schedd    = '{SCHEDD}'\n"
    yield f"glidein_factory   = '{FACTORY}'\n"
    yield f"glidein_name      = '{INSTANCE}'\n"
    yield f"glidein_entry     = '{pilot.entry_name}'\n"
    yield f"client_name       = '{pilot.user}-frontend.main'\n"
    yield "client_group       = 'main'\n"
    yield f"\nRunning on {pilot.node}\nSystem: Linux 5.14 x86_64\nPID: {pilot.pid}\n\n"
    for n in range(40):
        yield f"Signature OK for main:file{n}. Executing /tmp/glide_x/main/script{n}.sh\n"


def _course(pilot: Pilot) -> Iterable[str]:
    if pilot.last_script is None:
        return
    if pilot.tells_cores:
        yield f"{date(pilot, pilot.start)} Setting GLIDEIN_CPUS={pilot.cores}\n"
    if pilot.tells_memory:
        yield f"{date(pilot, pilot.start)} Setting GLIDEIN_MaxMemMBs={pilot.memory}\n"
    at, after = pilot.last_script, pilot.last_script - pilot.start
    yield f"=== Last script starting {date(pilot, at)} ({at}) after validating for {after} ===\n\n"
    if pilot.condor is not None:
        begin, end = pilot.condor
        yield f"=== Condor starting {date(pilot, begin)} ({begin}) ===\n"
        yield f"=== Condor started in background, now waiting on process {pilot.pid + 1} ===\n"
        yield f"=== Condor ended {date(pilot, end)} ({end}) after {end - begin} ===\n\n"
        yield from _statistics(pilot)
    at = pilot.failed_at or pilot.end
    code, after = pilot.exit_code, at - pilot.last_script
    yield f"=== Last script ended {date(pilot, at)} ({at}) with code {code} after {after} ===\n\n"


def counts(pilot: Pilot) -> dict[str, tuple[int, int]]:
    """Jobs and seconds by kind, real."""
    found = {name: [0, 0] for name in ("Total", "goodZ", "goodNZ", "badSignal", "badOther")}
    for job in pilot.jobs:
        kind = "badSignal" if job.code is None else "goodZ" if job.code == 0 else "goodNZ"
        for name in ("Total", kind):
            found[name][0] += 1
            found[name][1] += job.end - job.start
    return {name: (jobs, seconds) for name, (jobs, seconds) in found.items()}


def divided(pilot: Pilot) -> dict[str, tuple[int, int]]:
    """The same, as parse_starterlog.awk divides them by the cores."""
    cores = pilot.cores
    real = counts(pilot)
    up = {name: int(jobs / cores + 0.99) for name, (jobs, _) in real.items()}
    total = up["Total"]
    sum_ = 0
    for name in ("goodNZ", "badSignal", "badOther", "goodZ"):
        up[name] -= max(0, sum_ + up[name] - total)
        sum_ += up[name]
    return {name: (up[name], int(seconds / cores)) for name, (_, seconds) in real.items()}


def _statistics(pilot: Pilot) -> Iterable[str]:
    if pilot.form:
        yield "Total jobs/goodZ jobs/goodNZ jobs/badSignal jobs/badOther jobs below are "
        yield "normalized to 1 Core\n"
    yield "=== Stats of main ===\n"
    for job in pilot.jobs:
        shadow = "131.225.204.208:34839"
        how = f"status {job.code}" if job.signal is None else f"signal {job.signal}"
        yield f"{stamp(pilot, job.start)} Starting job {job.cluster}.0 from {shadow}\n"
        yield f"{stamp(pilot, job.end)} Terminated job {job.cluster}.0 from {shadow} {how} "
        yield f"duration {job.end - job.start}\n"
    yield "=================\n"
    mark = ""
    if pilot.form == 2:
        real = counts(pilot)["Total"]
        yield f"Normalization [parallelism] factor {pilot.cores}\n"
        yield f"(Real) Total jobs {real[0]} utilization {real[1]}\n"
        mark = "(Normalized) "
    numbers = divided(pilot)
    yield f"{mark}Total jobs {numbers['Total'][0]} utilization {numbers['Total'][1]}\n"
    for name in ("goodZ", "goodNZ", "badSignal", "badOther"):
        jobs, seconds = numbers[name]
        yield f"{mark}Total {name} jobs {jobs}  (10%) utilization {seconds} (3.1%)\n"
    yield "=== End Stats of main ===\n"
    yield f"Total number of activations/claims: {len(pilot.jobs)}\n"


def _tail(pilot: Pilot) -> Iterable[str]:
    at, after = pilot.end, pilot.end - pilot.start
    code = pilot.exit_code
    yield f"=== Glidein ending {date(pilot, at)} ({at}) with code {code} after {after} ===\n\n"
    if pilot.kind != "no_xml":
        yield "=== XML description of glidein activity ===\n"
        yield xml(pilot)
        yield "=== End XML description of glidein activity ===\n"


def xml(pilot: Pilot, subtests: str = "", env: str = "") -> str:
    """OSGTestResult; the short one, unless there are subtests."""
    early = pilot.kind == "early"
    end = pilot.end if early else pilot.failed_at or pilot.end
    now = iso(pilot, end)
    metrics = ""
    if pilot.condor is not None:
        values: list[tuple[str, object]] = [("AutoShutdown", pilot.kind != "evicted")]
        values.append(("CondorDuration", pilot.condor[1] - pilot.condor[0]))
        for name, (jobs, seconds) in divided(pilot).items():
            values += [(f"{name}JobsNr", jobs), (f"{name}JobsTime", seconds)]
        values.append(("CondorKilled", pilot.kind == "evicted"))
        metrics = "".join(_metric(name, value, now) for name, value in values)
    status = "OK"
    if pilot.failure is not None:
        status = "ERROR"
        metrics = _metric("failure", pilot.failure[0], now) + metrics
        if not early:
            metrics = _metric("TestID", pilot.failure[1], now) + metrics
    result = f"    <status>{status}</status>\n{metrics}"
    if not early:
        result = f"  <result>\n{result}  </result>\n"
    return (
        '<?xml version="1.0"?>\n'
        '<OSGTestResult id="glidein_startup.sh" version="4.3.1">\n'
        f"{subtests}"
        "  <operatingenvironment>\n"
        f'    <env name="client_name">{pilot.user}-frontend.main</env>\n'
        '    <env name="client_group">main</env>\n'
        f'    <env name="hostname">{pilot.node}</env>\n{env}'
        '    <env name="cwd">/scratch/x</env>\n'
        "  </operatingenvironment>\n  <test>\n"
        f"    <tStart>{iso(pilot, pilot.start)}</tStart>\n"
        f"    <tEnd>{now}</tEnd>\n  </test>\n{result}</OSGTestResult>\n"
    )


def _metric(name: str, value: object, now: str) -> str:
    return f'    <metric name="{name}" ts="{now}" uri="local">{value}</metric>\n'


def long_xml(pilot: Pilot) -> str:
    """With the factory's names and the result of each test."""
    now = iso(pilot, pilot.start)
    tests = "".join(
        f'      <OSGTestResult id="main/test{n}.sh" version="4.3.1">\n        <test>\n'
        f"          <tStart>{now}</tStart>\n          <tEnd>{now}</tEnd>\n        </test>\n"
        "        <result>\n          <status>OK</status>\n    "
        f"{_metric('failure', 'not of the pilot', now)}        </result>\n      </OSGTestResult>\n"
        for n in range(8)
    )
    env = (
        f'    <env name="glidein_factory">{FACTORY}</env>\n'
        f'    <env name="glidein_name">{INSTANCE}</env>\n'
        f'    <env name="glidein_entry">{pilot.entry_name}</env>\n'
        f'    <env name="condorg_cluster">{pilot.cluster}</env>\n'
        f'    <env name="condorg_subcluster">{pilot.proc}</env>\n'
        f'    <env name="condorg_schedd">{SCHEDD}</env>\n'
    )
    inside = f"  <subtestlist>\n    <OSGTestResults>\n{tests}    </OSGTestResults>\n"
    return xml(pilot, f"{inside}  </subtestlist>\n", env)


# -- stderr


def err(pilot: Pilot) -> bytes:
    """job.C.P.err, whole."""
    parts = [_err_head(pilot).encode()]
    if pilot.condor is not None:
        parts += [_MASTER, _STARTD]
        slots: dict[int, list[Job]] = defaultdict(list)
        for job in pilot.jobs:
            slots[job.slot].append(job)
        for slot, jobs in sorted(slots.items()):
            text = "".join(starter(pilot, job) for job in jobs)
            parts.append(log(f"StarterLog.slot1_{slot}", text.encode(), 1))
        if pilot.jobs and pilot.kind != "no_history":
            parts.append(log("StartdHistoryLog", history(pilot).encode(), 1))
    parts.append(b"\n=== Encoded XML description of glidein activity ===\n")
    parts.append(pack(long_xml(pilot).encode(), 1))
    parts.append(b"=== End encoded XML description of glidein activity ===\n")
    return b"".join(parts)


def _err_head(pilot: Pilot) -> str:
    lines = [f"{date(pilot, pilot.start)} Checking something\n" * 20]
    if pilot.failure is not None and pilot.kind == "failed":
        lines.append(f"=== Validation error in /scratch/glide_x/{pilot.failure[1]} ===\n")
    if pilot.condor is None:
        return "".join(lines)
    if pilot.mode != "nodebug":
        lines.append("-------- glidein_config in condor_startup.sh ----------\n")
        lines.append(f"GLIDEIN_Site {pilot.site}\nGLIDEIN_SiteWMS other\nGLIDEIN_TOKEN secret\n")
        lines.append(f"GLIDEIN_ResourceName {pilot.entry_name}-CE\n")
    lines.append("adding resource slots configuration: GPUs,,,main\n" if pilot.gpus else "")
    if pilot.gpus:
        lines.append(f"condor_gpu_discovery found {pilot.gpus} GPUs: DetectedGPUs=GPU-1\n")
    return "".join(lines)


def starter(pilot: Pilot, job: Job) -> str:
    """What a starter logs of one run."""
    begin, start, end = stamp(pilot, job.start - 2), stamp(pilot, job.start), stamp(pilot, job.end)
    pid = f"pid:{job.cluster % 30000 + 2}"
    how = f"status={job.code}" if job.signal is None else f"signal={job.signal}"
    asked = ""
    if job.evicted:
        asked = f"{end} ({pid}) Got SIGTERM. Performing graceful shutdown.\n"
        asked += f"{end} ({pid}) ShutdownGraceful all jobs.\n"
    return (
        f"{begin} ({pid}) ** condor_starter (CONDOR_STARTER) STARTING UP\n"
        f"{_NOISE.format(t=begin, p=pid)}"
        f"{begin} ({pid}) Communicating with shadow <131.225.204.208:34839?noUDP>\n"
        f'{begin} ({pid}) Submitting machine is "submit.test"\n'
        f"{begin} ({pid}) Job {job.cluster}.0 set to execute immediately\n"
        f"{begin} ({pid}) Starting a VANILLA universe job with ID: {job.cluster}.0\n"
        f"{start} ({pid}) Running job as user nobody\n"
        f"{start} ({pid}) Create_Process succeeded, pid=4711\n"
        f"{asked}{end} ({pid}) Process exited, pid=4711, {how}\n"
        f"{end} ({pid}) **** condor_starter (condor_STARTER) {pid[4:]} EXITING WITH STATUS 0\n"
    )


def history(pilot: Pilot) -> str:
    """The startd's history of its jobs."""
    return "".join(_ad(pilot, job) for job in sorted(pilot.jobs, key=lambda job: job.end))


def _ad(pilot: Pilot, job: Job) -> str:
    if job.signal is None:
        exit_ = f"ExitBySignal = false\nExitCode = {job.code}\n"
    else:
        exit_ = f"ExitBySignal = true\nExitSignal = {job.signal}\n"
    how = 1 if job.evicted else 0
    toe = f'[ Who = "itself"; HowCode = {how}; When = {job.end}; {exit_.strip()} ]'
    toe = toe.replace("\n", "; ")
    return (
        f'GlobalJobId = "schedd@submit.test#{job.cluster}.0#{job.start - 1000}"\n'
        f"ClusterId = {job.cluster}\nProcId = 0\nNumShadowStarts = 1\nJobUniverse = 5\n"
        f'Owner = "alice"\nUser = "alice@test"\nCmd = "/home/alice/run.sh"\n{_PADDING}'
        f"JobCurrentStartDate = {job.start - 10}\nJobStartDate = {job.start}\n"
        f"CompletionDate = {job.end}\nRemoteWallClockTime = {job.end - job.start}.0\n"
        "CpusProvisioned = 1\nMemoryProvisioned = 2000\nRequestCpus = 1\nRequestMemory = 2000\n"
        f"{exit_}ToE = {toe}\nStarterExitStatus = 0\nVacateReasonCode = 0\n"
        f'RemoteHost = "slot1_{job.slot}@{pilot.startd}@{pilot.node}"\n'
        f'PublicClaimId = "<10.0.0.1:9618>#{pilot.condor[0] if pilot.condor else 0}#2#..."\n'
        f"*** Offset = 0 ClusterId = {job.cluster} ProcId = 0 CompletionDate = {job.end}\n"
    )


# -- the factory's own logs


def completed(pilot: Pilot) -> str:
    """The line of completed_jobs, by the formulas of FM:1069-1158; empty where it has none."""
    if pilot.kind == "hard_kill":
        return ""  # their writer fails on it
    life = pilot.end - pilot.start
    if pilot.kind in {"empty", "no_files"}:
        life, started, condor = 0, False, 0
    elif pilot.kind == "truncated":
        life, started, condor = -1, False, 0
    else:
        started = pilot.condor is not None
        condor = pilot.condor[1] - pilot.condor[0] if pilot.condor else 0
    numbers = divided(pilot)
    total, good = numbers["Total"][1], numbers["goodZ"][1]
    jobs, used = (counts(pilot)["Total"]) if pilot.form == 2 else numbers["Total"]
    if not started:
        waste, jobs, used, good, ended = (1000, 0, 0, 1000), 0, 0, 0, 0
    else:
        good = min(good, total)
        ended = min(good + numbers["goodNZ"][1], total)
        waste = (
            1000 * ((pilot.last_script or pilot.start) - pilot.start) // life,
            int(1000 * (condor - used) / condor),
            1000 * (total - good) // total if total else 0,
            1000 * (life - ended) // life,
        )
    job = f"{pilot.cluster}.{pilot.proc:03d}"
    job = f"b'{job}'" if pilot.number % 2 else job
    return (
        f'<job terminated="{iso(pilot, pilot.end + 200)}" client="{pilot.user}_frontend"  '
        f'username="{pilot.user}"  id="{job}"   duration="{life}"  condor_started="{started}"   '
        f'condor_duration="{condor}"><user     jobsnr="{jobs}"      duration="{used}"      '
        f'goodput="{good}"      terminated="{ended}"/><wastemill   validation="{waste[0]}" '
        f'idle="{waste[1]}"    nosuccess="{waste[2]}" badput="{waste[3]}"/></job>\n'
    )


def events(pilot: Pilot) -> str:
    """Its events in the factory's log, in UTC; every other log has the old form of dates."""
    form = "%m/%d %H:%M:%S" if pilot.entry % 2 else "%Y-%m-%dT%H:%M:%SZ"
    number = f"({pilot.cluster}.{pilot.proc:03d}.000)"

    def event(code: int, at: int, text: str) -> str:
        return f"{code:03d} {number} {strftime(form, gmtime(at))} {text}\n...\n"

    ce = "    GridResource: condor ce.test ce.test:9619"
    shown = [event(0, pilot.start - 600, "Job submitted from host: <10.0.0.2:9618>")]
    shown.append(event(27, pilot.start - 500, f"Job submitted to grid resource\n{ce}"))
    shown.append(event(1, pilot.start, "Job executing on host: condor ce.test"))
    if pilot.kind == "no_files":
        held = "Job was held.\n\tThe job's remote status is unknown\n\tCode 16 Subcode 0"
        shown.append(event(12, pilot.end, held))
        shown.append(event(9, pilot.end + 60, "Job was aborted by the user.\n\tvia condor_rm"))
    else:
        how = f"\t(1) Normal termination (return value {pilot.exit_code})"
        shown.append(event(5, pilot.end + 30, f"Job terminated.\n{how}"))
    return "".join(shown)


# -- writing


def files(pilot: Pilot) -> dict[str, bytes]:
    """The outputs of a pilot as they came back."""
    name_out, name_err = f"{pilot.stem}.out", f"{pilot.stem}.err"
    if pilot.kind == "no_files":
        return {}
    if pilot.kind == "empty":
        return {name_out: b"", name_err: b""}
    text = out(pilot)
    if pilot.kind == "hard_kill":
        return {name_out: text[: text.index(b"=== Condor ended")], name_err: b""}
    if pilot.kind == "truncated":
        return {name_out: text[: text.index(b"=== Last script starting")]}
    return {name_out: text, name_err: err(pilot)}


def write(root: Path, seed: int, number: int) -> None:
    """Write the directories ``client`` and ``server`` of a factory's logs."""
    logs: defaultdict[Path, list[str]] = defaultdict(list)
    made: set[Path] = set()
    ends: dict[Path, int] = {}

    def keep(path: Path, text: str) -> None:
        logs[path].append(text)
        if len(logs[path]) >= 500:
            flush(path)

    def flush(path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as stream:
            stream.writelines(logs.pop(path))

    for pilot in pilots(seed, number):
        folder = root / "client" / pilot.directory
        if folder not in made:
            folder.mkdir(parents=True, exist_ok=True)
            made.add(folder)
        for name, content in files(pilot).items():
            path = f"{folder}/{name}"
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            os.write(descriptor, content)
            os.close(descriptor)
            os.utime(path, (pilot.end, pilot.end))
        day = strftime("%Y%m%d", gmtime(pilot.start - 600))
        activity = folder / f"condor_activity_{day}_{pilot.user}-frontend.main.log"
        keep(activity, events(pilot))
        ends[activity] = max(ends.get(activity, 0), pilot.end + 60)
        if line := completed(pilot):
            server = root / "server" / f"entry_{pilot.entry_name}"
            keep(server / f"completed_jobs_{day}.log", line)
    for left in list(logs):
        flush(left)
    for activity, end in ends.items():
        os.utime(activity, (end, end))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--number", type=int, default=213_912)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    write(arguments.directory, arguments.seed, arguments.number)
