"""A factory's directories written by hand, so that every figure of them can be computed by hand.

Five pilots of 2025-11-01; times are seconds from its beginning (UTC):

- ``B``: 4 cores, 20,000 to 27,200, HTCondor from 20,200 to 27,100, validation up to 20,100.  Its
  stderr is lost; its stdout's statistics, divided by the cores, tell of 3 jobs in 4000 s: 2500 s
  exited 0, 1000 s not, 500 s were killed by a signal.
- ``S``: no output.  The queue and a line of completed_jobs, 100 to 10,100: of 10,000 s 500 were
  validation and 9000 HTCondor's, of which 111/1000 were idle; 5 jobs, 7000 s ended by themselves,
  6000 s of these with 0.
- ``R``: 4 cores, 30,000 to 37,200, validated up to 30,100.  A starter's log has one job, 31,000 to
  34,600, which exited 0; its memory is one unit.
- ``F``: 8 cores, 40,000 to 41,500; the test ``main/validate_node.sh`` failed at 40,301.
- ``N``: no output.  The queue and a line of completed_jobs, 50,000 to 51,200: HTCondor never
  started.
"""

from __future__ import annotations

import base64
import gzip
from datetime import UTC, datetime
from pathlib import Path

BASE = 1_761_955_200
PERIOD = "--from", "2025-11-01", "--to", "2025-11-02"
STATISTICS = """\
Total jobs/goodZ jobs/goodNZ jobs/badSignal jobs/badOther jobs below are normalized to 1 Core
=== Stats of main ===
=================
Total jobs 3 utilization 4000
Total goodZ jobs 1 (33%) utilization 2500 (62%)
Total goodNZ jobs 1 (33%) utilization 1000 (25%)
Total badSignal jobs 1 (33%) utilization 500 (12%)
Total badOther jobs 0 (0%) utilization 0 (0%)
=== End Stats of main ===
Total number of activations/claims: 3
"""
FAILED = """\
    <metric name="TestID" ts="{at}" uri="local">main/validate_node.sh</metric>
    <metric name="failure" ts="{at}" uri="local">WN_Resource</metric>
"""


def write(root: Path) -> None:
    """Write them: ``client`` and ``server``."""
    _output(root, "B", 2, _passed("B", 2, 20_000, STATISTICS))
    _queue(root, "S", 9, 100, 10_100)
    _line(
        root,
        "S",
        '<job terminated="{at}" client="fe.example" username="fe" id="9.000" duration="10000" '
        'condor_started="True" condor_duration="9000"><user jobsnr="5" duration="8000" '
        'goodput="6000" terminated="7000"/><wastemill validation="50" idle="111" nosuccess="250" '
        'badput="300"/></job>',
        10_200,
    )
    _output(root, "R", 3, _passed("R", 3, 30_000), _starter_log(31_000, 34_600))
    _output(root, "F", 4, _failed(40_000))
    _queue(root, "N", 5, 50_000, 51_200)
    _line(
        root,
        "N",
        '<job terminated="{at}" client="fe.example" username="fe" id="5.000" duration="1200" '
        'condor_started="False" condor_duration="0"><user jobsnr="0" duration="0" goodput="0" '
        'terminated="0"/><wastemill validation="1000" idle="0" nosuccess="0" badput="0"/></job>',
        51_300,
    )


def _iso(at: int) -> str:
    return datetime.fromtimestamp(BASE + at, UTC).isoformat()


def _when(at: int) -> str:
    """Return a time as the pilot's script writes it, and in epoch seconds."""
    date = datetime.fromtimestamp(BASE + at, UTC).strftime("%a %b %e %H:%M:%S UTC %Y")
    return f"{date} ({BASE + at})"


def _header(entry: str, cluster: int, start: int, cores: int) -> str:
    names = {
        "condorg_cluster": cluster,
        "condorg_subcluster": 0,
        "condorg_schedd": "schedd@factory.example",
        "glidein_factory": "Factory",
        "glidein_name": "instance",
        "glidein_entry": entry,
        "client_name": "fe.example.main",
        "client_group": "main",
    }
    date = _when(start).partition(" (")[0]
    return (
        f"Starting glidein_startup.sh at {_when(start)}\n"
        + "".join(f"{name:<18}= '{value}'\n" for name, value in names.items())
        + "\nRunning on node.example\nSystem: Linux\nPID: 77\n\n"
        + f"{date} Setting GLIDEIN_CPUS={cores}\n{date} Setting GLIDEIN_MaxMemMBs={cores * 2000}\n"
    )


def _passed(entry: str, cluster: int, start: int, more: str = "") -> str:
    condor, last, end = start + 200, start + 7100, start + 7200
    return (
        f"{_header(entry, cluster, start, 4)}"
        f"=== Last script starting {_when(start + 100)} after validating for 100 ===\n\n"
        f"=== Condor starting {_when(condor)} ===\n"
        f"=== Condor ended {_when(last)} after {last - condor} ===\n\n{more}"
        f"=== Last script ended {_when(last)} with code 0 after 7000 ===\n\n"
        f"=== Glidein ending {_when(end)} with code 0 after 7200 ===\n\n"
        f"{_result(start, end, 'OK')}"
    )


def _failed(start: int) -> str:
    failed, end = start + 301, start + 1500
    return (
        f"{_header('F', 4, start, 8)}"
        f"=== Last script ended {_when(failed)} with code 1 after 301 ===\n\n"
        f"=== Glidein ending {_when(end)} with code 1 after 1500 ===\n\n"
        f"{_result(start, failed, 'ERROR', FAILED.format(at=_iso(failed)))}"
    )


def _result(start: int, end: int, status: str, metrics: str = "") -> str:
    return (
        "=== XML description of glidein activity ===\n"
        '<?xml version="1.0"?>\n<OSGTestResult id="glidein_startup.sh" version="4.3.1">\n'
        f"  <test>\n    <tStart>{_iso(start)}</tStart>\n    <tEnd>{_iso(end)}</tEnd>\n  </test>\n"
        f"  <result>\n    <status>{status}</status>\n{metrics}  </result>\n</OSGTestResult>\n"
        "=== End XML description of glidein activity ===\n"
    )


def _starter_log(start: int, end: int) -> str:
    def line(at: int, text: str) -> str:
        date = datetime.fromtimestamp(BASE + at, UTC).strftime("%m/%d/%y %H:%M:%S")
        return f"{date} (pid:700) {text}\n"

    log = (
        line(start - 3, "** condor_starter (CONDOR_STARTER) STARTING UP")
        + line(start - 2, 'Submitting machine is "ap.example"')
        + line(start - 2, "Starting a VANILLA universe job with ID: 700.0")
        + line(start, "Create_Process succeeded, pid=11")
        + line(end, "Process exited, pid=11, status=0")
        + line(end + 1, "**** condor_starter (condor_STARTER) pid 700 EXITING WITH STATUS 0")
    )
    packed = base64.encodebytes(gzip.compress(log.encode())).decode()
    head = "StarterLog.slot1_1\n======== gzip | uuencode =============\nbegin-base64 644 -\n"
    return f"adding resource slots\n{head}{packed}====\n\n"


def _folder(root: Path, entry: str) -> Path:
    folder = root / "client" / "user_fe" / "glidein_instance" / f"entry_{entry}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _output(root: Path, entry: str, cluster: int, out: str, err: str | None = None) -> None:
    for name, text in (("out", out), ("err", err)):
        if text is not None:
            (_folder(root, entry) / f"job.{cluster}.0.{name}").write_text(text)


def _queue(root: Path, entry: str, cluster: int, start: int, end: int) -> None:
    events = (
        (0, start - 100, "Job submitted from host: x"),
        (1, start, "Job executing on host: x"),
    )
    terminated = (5, end, "Job terminated.\n\t(1) Normal termination (return value 0)")
    path = _folder(root, entry) / "condor_activity_20251101_fe.example.main.log"
    path.write_text(
        "".join(
            f"{code:03d} ({cluster}.000.000) {_iso(at)[:19]}Z {text}\n...\n"
            for code, at, text in (*events, terminated)
        )
    )


def _line(root: Path, entry: str, text: str, at: int) -> None:
    folder = root / "server" / f"entry_{entry}"
    folder.mkdir(parents=True)
    (folder / "completed_jobs_20251101.log").write_text(text.format(at=_iso(at)) + "\n")
