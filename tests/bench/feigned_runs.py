"""Records of job runs for the benchmarks: real ads of a real pool, many times over.

A feigned pool has so many places for pilots, each with a pilot at any time; every period, as a rule
30 minutes, a run ends on each, of 20 to 50 minutes.  One run of a hundred fails at once, three fail
late, two are vacated and run again an hour later.  Of a real record (see ``templates``) only what
is of the run and its pilot is replaced, so that records are as long as real ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from gwmond.model.facts import EntryKey, Pilot, Size
from tests.pool.condor import CondorPool
from tests.pool.sandbox import wait_until

PERIOD_S = 1800
LIFE_S = 8 * 3600
RENEWED_S = 300
SITES = 60
SCHEDD = "schedd1@pool.test"
EPOCHS = "JOB_EPOCH_HISTORY = $(SPOOL)/epoch_history\n"
_GLIDEIN = ("GLIDEIN_Site", "GLIDEIN_Entry_Name", "GLIDECLIENT_Name", "GLIDECLIENT_Group")

_RECORD = """\
GlobalJobId = "{job}"
ClusterId = {cluster}
ProcId = 0
QDate = {queued}
NumShadowStarts = {run}
JobCurrentStartDate = {start}
JobCurrentStartExecutingDate = {executing}
JobCurrentStartTransferInputDate = {start}
JobCurrentFinishTransferInputDate = {executing}
LastMatchTime = {start}
ShadowBday = {start}
EnteredCurrentStatus = {start}
CpusProvisioned = {cores}
MemoryProvisioned = {memory}
Owner = "user{user}"
User = "user{user}@pool.test"
Cmd = "/home/user{user}/analysis/bin/program{program}"
RemoteHost = "slot1_{slot}@{startd}"
PublicClaimId = "<10.{a}.{b}.1:9618?addrs=10.{a}.{b}.1-9618&alias=node{place}>#{began}#{slot}#..."
JOB_GLIDEIN_Site = "Site{site:02}"
JOB_GLIDEIN_Entry_Name = "Entry{site:02}"
JOB_GLIDECLIENT_Name = "frontend.main"
JOB_GLIDECLIENT_Group = "main"
JobStartDate = {start}
EpochWriteDate = {end}
{how}*** EPOCH ClusterId={cluster} ProcId=0 RunInstanceId=0 Owner="user{user}" CurrentTime={end}
"""
_EXIT = """\
JobCurrentStartTransferOutputDate = {end}
TransferOutFinished = {end}
ExitBySignal = false
ExitCode = {code}
ToE = [ How = "OF_ITS_OWN_ACCORD"; Who = "itself"; When = {end}; HowCode = 0; ExitCode = {code}; \
ExitBySignal = false ]
"""
_VACATED = """\
VacateReasonCode = 1005
VacateReasonSubCode = 0
VacateReason = "The startd is shutting down"
"""
_HOW = ("Exit", "ToE", "Vacate", "JobCurrentStartTransferOutputDate", "TransferOutFinished")


class Feigned(NamedTuple):
    """The feigned pool; times are seconds since the epoch, ``period`` is in seconds."""

    pilots: int
    runs: int
    until: int
    period: int = PERIOD_S

    def number_of(self, index: int) -> int:
        """Return which run is the first of its job."""
        again = index - 3 * self.pilots - 7
        return self.number_of(again) if again >= 0 and again % 100 in {4, 5} else index

    def end_of(self, index: int) -> int:
        """Return when a run ended."""
        return self.until - (self.runs - index) * self.period // self.pilots

    def ended(self, time: int) -> int:
        """Return how many runs have ended by a time."""
        return self.runs - (self.until - time) * self.pilots // self.period

    def run(self, index: int) -> Run:
        """Return a run, on the pilot that its place has when it ends."""
        place, end = index % self.pilots, self.end_of(index)
        began = self.began(place, end)
        length = 30 if index % 100 == 0 else 1200 + index * 7919 % PERIOD_S
        first = self.number_of(index)
        queued = self.end_of(first) - 7200
        return Run(
            index,
            place,
            began,
            max(began, end - length),
            end,
            first,
            f"{SCHEDD}#{first}.0#{queued}",
            startd_of(place, began),
        )

    def began(self, place: int, time: int) -> int:
        """Return when the pilot that a place has at a time began."""
        offset = place * LIFE_S // self.pilots
        return (time + offset) // LIFE_S * LIFE_S - offset

    def running(self, time: int) -> list[Run]:
        """Return what runs at a time."""
        first = self.ended(time)
        last = first + (1200 + PERIOD_S) * self.pilots // self.period
        runs = (self.run(number) for number in range(max(0, first), last + 1))
        return [run for run in runs if run.start <= time < run.end]


class Run(NamedTuple):
    """A run: when and where it was; ``first`` is the first run of its job."""

    number: int
    place: int
    began: int
    start: int
    end: int
    first: int
    job: str
    startd: str


def startd_of(place: int, began: int) -> str:
    """Return the name of the pilot that began at a place then."""
    return f"glidein_{began % 99991}_{place}@node{place}.site{place % SITES:02}.example"


def pilot(feigned: Feigned, place: int, now: int) -> Pilot:
    """Return the pilot that a place has, as a collector shows it."""
    began = feigned.began(place, now)
    renewed = now - (now + place) % RENEWED_S
    site = f"Site{place % SITES:02}"
    return Pilot(
        name=startd_of(place, began),
        started=began,
        entry=EntryKey(site, f"Entry{site[-2:]}"),
        group="frontend.main",
        factory="factory",
        size=Size(16, 32768),
        free=(),
        jobs=(),
        accepting=True,
        remaining_s=None,
        last_heard=max(began, renewed),
        node=f"node{place}",
        factory_job=f"factory#{place}.{began}",
        retires=began + LIFE_S - 1800,
        dies=began + LIFE_S,
    )


def slot_of(run: Run, feigned: Feigned) -> int:
    """Return the number of the dynamic slot of a run; no other run has it at the same time."""
    return 1 + run.number // feigned.pilots % 16


def template(pool: CondorPool, config: str = "") -> str:
    """Let a job run on a real pilot of a pool with ``EPOCHS``; return what is the same in all.

    ``config`` is added to the pilot's configuration.
    """
    pilot = pool.start_pilot("glidein_1_1", cores=2, config=config)
    told = {f"JOB_{name}": f"$$({name}:Unknown)" for name in _GLIDEIN}
    pool.submit(pool.schedds[0], 1, seconds=2, attrs=told)
    path = pool.local / "spool" / "epoch_history"

    def written() -> str | None:
        text = path.read_text() if path.exists() else ""
        return text if "\n***" in text else None

    epoch = wait_until("the record of a job", written, 90, 0.5)
    pilot.stop_graceful()
    return _fixed(epoch, _RECORD)


def _fixed(text: str, replaced: str) -> str:
    """Return the lines of the first record that are not replaced."""
    names = {line.partition(" =")[0] for line in replaced.splitlines()}
    lines = text.partition("\n*** ")[0].splitlines()
    kept = [line for line in lines if line.partition(" =")[0] not in names]
    return "".join(f"{line}\n" for line in kept if not line.startswith(_HOW))


def write_epochs(path: Path, feigned: Feigned, fixed: str, part: range, mode: str = "w") -> None:
    """Write a schedd's epoch history, or go on with it (``a``): every run of ``part``."""
    with path.open(mode) as out:
        out.writelines(record(feigned, number, fixed) for number in part)


def record(feigned: Feigned, number: int, fixed: str) -> str:
    """Return what a schedd writes of a run when it ends."""
    return fixed + _RECORD.format_map(_values(feigned, number))


def _values(feigned: Feigned, number: int) -> dict[str, object]:
    run, how = feigned.run(number), number % 100
    code = 1 if how == 0 else 3 if how < 4 else 0
    return {
        **run._asdict(),
        "cluster": run.first,
        "queued": feigned.end_of(run.first) - 7200,
        "run": 1 if run.first == number else 2,
        "executing": min(run.start + 3, run.end),
        "cores": 1 + run.first % 2,
        "memory": 2048 * (1 + run.first % 2),
        "user": run.first % 50,
        "program": run.first % 7,
        "slot": slot_of(run, feigned),
        "site": run.place % SITES,
        "a": run.place // 250,
        "b": run.place % 250,
        "how": _VACATED if how in {4, 5} else _EXIT.format(end=run.end, code=code),
    }


def parts(runs: int, schedds: int) -> Iterator[range]:
    """Divide the runs among schedds, each of which has some of all times."""
    return (range(first, runs, schedds) for first in range(schedds))
