"""A pilot's stderr, ``job.C.P.err``: GPUs, names, the failed test, and the embedded logs.

Format: GS (``Validation error in``), CS:424-446 and 892 (GPUs, as free text), the dump of
glidein_config and condor_config that CS prints unless the mode is ``nodebug``.  That dump, and the
environment beside it, hold secrets: only the few names in ``_SETTINGS`` are ever looked at.

CS prints ``adding resource slots configuration`` for each entry that has any, in all modes, and
configures GPUs nowhere else; where there are none, newer versions set them to 0, and print
nothing.  It comes before what is printed when HTCondor is started (``_STARTING``) and before the
logs.  So where one of those is there and it is not, there are no GPUs.
"""

from __future__ import annotations

import re
from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

from gwmond.model.pilots.file_facts import PilotName
from gwmond.model.problem_names import ProblemName
from gwmond.sources.gwms import blobs, starter_log, texts
from gwmond.sources.htcondor.histories import startd_history

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gwmond.model.pilots.file_facts import StarterRun
    from gwmond.model.runs.run_facts import JobRecord
    from gwmond.sources.gwms.blobs import Blob
    from gwmond.sources.gwms.texts import Zone

HISTORY, STARTER = "StartdHistoryLog", "StarterLog"
HEAD_BYTES = 4 << 20
_SLACK_US = 60_000_000
LOGS_BYTES = 256 << 20
"""No more than this comes out of all logs of one pilot together."""

MAX_RUNS = 20_000
MAX_MEETINGS = 3_000_000
"""So often may runs meet: each counts those that run when it begins, and when it ends."""
_FAR_US = 1 << 62

_GPU_COUNT = re.compile(rb"condor_gpu_discovery\)? found (\d{1,4}) GPUs")
_NO_GPUS = b"No GPUs found with condor_gpu_discovery"
_GPU_FAILED = b"GPU autodiscovery (condor_gpu_discovery) failed"
_RESOURCES = re.compile(rb"adding resource slots configuration: ([^\r\n]{1,400})")
_STARTING = (b"\nExposing X509_USER_PROXY", b"\nUnsetting X509_USER_PROXY")
_DAEMON_LOGS = frozenset({"MasterLog", "StartdLog", STARTER, HISTORY})
_REFUSED = (b'SECMAN:2010:Received "DENIED" from server', b"Failed to start non-blocking update to")
"""What a master or startd logs when a collector does not take its ad (condor_secman.cpp:
receivePostAuthInfo_inner; dc_collector.cpp); one that is taken is not logged."""
_TAKEN = b"-> Claimed"
_FAILED_TEST = re.compile(rb"=== Validation error in (\S{1,400}) ===")
_STARTD = re.compile(r"glidein_[0-9]{1,10}_[0-9]{1,14}")
_SETTINGS = {
    b"GLIDEIN_Site": "site",
    b"GLIDEIN_ResourceName": "resource",
    b"STARTD_NAME": "startd",
    b"GLIDEIN_CPUS": "cores",
    b"GLIDEIN_MaxMemMBs": "memory",
}


class PilotErr(NamedTuple):
    """What one stderr says, the logs in it still packed.

    ``gpus``: what was found, else what the entry declares, which is none if HTCondor was started
    without any; ``failed_test``: as a TestID has it.
    """

    raw: bytes = b""
    name: PilotName = PilotName()
    cores: int | None = None
    memory_mib: int | None = None
    gpus: int | None = None
    failed_test: str = ""
    logs: tuple[Blob, ...] = ()


class Logs(NamedTuple):
    """What the embedded logs say; ``wrong``: the log's name and a word for what was not right."""

    records: tuple[JobRecord, ...]
    runs: tuple[StarterRun, ...]
    wrong: tuple[tuple[str, ProblemName], ...]


def parse(raw: bytes) -> PilotErr:
    """Return what a stderr says; it may be cut off anywhere, and be anything."""
    logs = tuple(blobs.find(raw))
    before = logs[0].start if logs else len(raw)
    head = raw[: min(HEAD_BYTES, before)]
    logged = any(blob.name.partition(".")[0] in _DAEMON_LOGS for blob in logs)
    settings = {name: _setting(head, key) for key, name in _SETTINGS.items()}
    startd = settings.pop("startd")
    cores, memory = (texts.number(settings.pop(name), 1) for name in ("cores", "memory"))
    failed = _FAILED_TEST.search(head)
    return PilotErr(
        raw=raw,
        name=PilotName(**settings, startd=startd if _STARTD.fullmatch(startd) else ""),  # type: ignore[arg-type]
        cores=cores,
        memory_mib=memory,
        gpus=_gpus(head, started=logged and before <= HEAD_BYTES),
        failed_test=_test_id(texts.text(failed[1])) if failed else "",
        logs=logs,
    )


def _setting(head: bytes, key: bytes) -> str:
    """Return the last value of a line ``KEY value``, ``KEY=value`` or ``KEY = "value"``."""
    at = head.rfind(b"\n" + key)
    while at >= 0:
        begin = at + 1 + len(key)
        end = head.find(b"\n", begin, begin + 400)
        line = head[begin:end] if end >= 0 else b""
        if line[:1] in {b" ", b"=", b"\t"}:
            value = line.strip().removeprefix(b"=").strip().strip(b'"')
            if value and b"$" not in value:
                return texts.known(value)
        at = head.rfind(b"\n" + key, 0, at)
    return ""


def _gpus(head: bytes, *, started: bool) -> int | None:
    """Return the number of GPUs: discovered, else as the entry's resource slots declare it.

    ``started``: HTCondor was, and ``head`` is all that was printed before.
    """
    if match := _GPU_COUNT.search(head):
        return int(match[1])
    if _NO_GPUS in head or _GPU_FAILED in head:
        return 0
    if slots := _RESOURCES.search(head):
        return _declared(texts.text(slots[1]))
    return 0 if started or any(mark in head for mark in _STARTING) else None


def _declared(resources: str) -> int | None:
    """Return the GPUs of ``name,number,...;name=...,number=...``; None where they are searched for.

    >>> _declared("ioslot,4;GPUs,2,8000"), _declared("name=gpus,number=3"), _declared("ioslot")
    (2, 3, 0)
    >>> _declared("GPUs")
    """
    for resource in resources.split(";"):
        fields = [field.strip() for field in resource.split(",")]
        named = dict(field.split("=", 1) for field in fields if "=" in field)
        plain = [field for field in fields if "=" not in field]
        name = named.get("name") or (plain.pop(0) if plain else "")
        if name.lower() == "gpus":
            return texts.number(named.get("number") or (plain[0] if plain else ""))
    return 0


def _test_id(path: str) -> str:
    """Return the TestID of a script, ``main/name.sh``, by where it lay on the node.

    >>> _test_id("/scratch/glide_x/client_group_main/check.sh"), _test_id("/g/entry_CMS_T2/a.sh")
    ('client_group/check.sh', 'entry/a.sh')
    """
    folder, _, script = path.rpartition("/")
    place = folder.rpartition("/")[2]
    kinds = ("client_group", "client", "entry", "main")
    kind = next((kind for kind in kinds if place == kind or place.startswith(f"{kind}_")), "")
    return texts.label(f"{kind}/{script}" if kind else script)


def unpack(err: PilotErr, zone: Zone, about_s: int | None, enough: Callable[[int], bool]) -> Logs:
    """Return what the embedded histories and starter logs say.

    Starter logs are only read if the history is not ``enough`` for its number of records.  A run
    in both is the history's.
    """
    left = LOGS_BYTES
    of_history: list[JobRecord] = []
    wrong: list[tuple[str, ProblemName]] = []
    for blob in err.logs:
        if blob.name == HISTORY and left > 0:
            data, word, size = blobs.unpack(err.raw, blob, min(left, blobs.BLOB_BYTES))
            left -= size
            wrong += [(blob.name, word)] if word else []
            room = startd_history.MAX_RECORDS - len(of_history)
            records, broken = startd_history.parse(data, room)
            of_history += records
            wrong += [(blob.name, word) for word in broken]
    runs: list[StarterRun] = []
    needed = not enough(len(of_history))
    for blob in err.logs if needed else ():
        if not _is_starters(blob):
            continue
        if left <= 0 or len(runs) >= MAX_RUNS:
            wrong.append((blob.name, ProblemName.TOO_LARGE if left <= 0 else ProblemName.TOO_MANY))
            break
        data, word, size = blobs.unpack(err.raw, blob, min(left, blobs.BLOB_BYTES))
        left -= size
        wrong += [(blob.name, word)] if word else []
        log = starter_log.parse(data, zone, about_s or 0)
        runs += log.runs
        wrong += [(blob.name, log.wrong)] if log.wrong else []
    return Logs(tuple(of_history), tuple(beside(runs, of_history)), tuple(wrong))


def updates_refused(err: PilotErr) -> int:
    """Return how many updates no collector took, by the master's and startd's logs.

    0 if the startd was claimed: then a collector knew of it.
    """
    most = 0
    for data in _unpacked(err, lambda blob: blob.name in {"MasterLog", "StartdLog"}):
        if _TAKEN in data:
            return 0
        most = max(most, *(data.count(word) for word in _REFUSED))
    return most


def _unpacked(err: PilotErr, wants: Callable[[Blob], bool]) -> Iterator[bytes]:
    """Yield the logs that are wanted, until all of them together are ``LOGS_BYTES``."""
    left = LOGS_BYTES
    for blob in err.logs:
        if left > 0 and wants(blob):
            data, _, size = blobs.unpack(err.raw, blob, min(left, blobs.BLOB_BYTES))
            left -= size
            yield data


def _is_starters(blob: Blob) -> bool:
    return blob.name.startswith(STARTER) and not blob.name.endswith(".monitor")


def beside(runs: Sequence[StarterRun], records: Sequence[JobRecord]) -> list[StarterRun]:
    """Return the runs of starter logs that no record of the history is about.

    A run takes, of the records within which it began, the first to end that no run has taken.
    """
    spans: dict[str, list[tuple[int, int]]] = {}
    for record in records:
        fact = record.fact
        parts = fact.job.split("#")
        start = fact.start_us or 0
        end = fact.written_us if fact.end_us is None else fact.end_us
        spans.setdefault(parts[1] if len(parts) > 1 else fact.job, []).append((start, end))
    for of_job in spans.values():
        of_job.sort(reverse=True)
    ends: dict[str, list[int]] = {}
    recorded: set[int] = set()
    for number in sorted(range(len(runs)), key=lambda number: runs[number].start_us):
        job, at = runs[number].job, runs[number].start_us
        waiting, begun = spans.get(job, []), ends.setdefault(job, [])
        while waiting and waiting[-1][0] - _SLACK_US <= at:
            heappush(begun, waiting.pop()[1])
        while begun and begun[0] + _SLACK_US < at:
            heappop(begun)
        if begun:
            heappop(begun)
            recorded.add(number)
    return [run for number, run in enumerate(runs) if number not in recorded]


def bounded(
    records: Sequence[JobRecord], runs: Sequence[StarterRun]
) -> tuple[tuple[JobRecord, ...], tuple[StarterRun, ...], int]:
    """Return the records of a history and the runs of logs that are taken, and how many are not.

    So that one output cannot stop all others: a pilot of 128 cores with jobs of ten minutes has
    18,000 runs in a day, and what accounting costs is how many runs there are whenever one begins
    or ends, summed up.  Those of the history come first; of too many that meet, the earlier ones.
    """
    kept, others = tuple(records[:MAX_RUNS]), tuple(runs[: max(0, MAX_RUNS - len(records))])
    spans = [*map(_span, kept), *((run.start_us, run.end_us) for run in others)]
    taken = _taken([(start, _FAR_US if end is None else end) for start, end in spans])
    if len(taken) < len(spans):
        first = len(kept)
        kept = tuple(record for number, record in enumerate(kept) if number in taken)
        others = tuple(run for number, run in enumerate(others, first) if number in taken)
    return kept, others, len(records) + len(runs) - len(kept) - len(others)


def _span(record: JobRecord) -> tuple[int, int | None]:
    fact = record.fact
    end_us = fact.written_us if fact.end_us is None else fact.end_us
    return (end_us if fact.start_us is None else fact.start_us), end_us


def _taken(spans: Sequence[tuple[int, int]]) -> set[int]:
    """Return which intervals, by their number, do not meet more others than is allowed."""
    taken: set[int] = set()
    running: list[int] = []
    meetings = 0
    for number in sorted(range(len(spans)), key=lambda number: spans[number]):
        start_us, end_us = spans[number]
        while running and running[0] <= start_us:
            heappop(running)
        if meetings + 2 * len(running) <= MAX_MEETINGS:
            meetings += 2 * len(running)
            heappush(running, end_us)
            taken.add(number)
    return taken
