"""What can be seen of the scenario from outside, and the truth that follows from it.

Units: epoch seconds.  A run lasts from the beginning of its shadow, which the access point starts
for it, to the end of its starter: so long its slot is taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.pool.condor import CondorPool
from tests.pool.pilot import Pilot
from tests.proof.jobs import PLANS, Plan
from tests.proof.pilots import PILOTS, UNIT_MIB
from tests.proof.truth import Moment, PilotTruth, RunTruth, Truth
from tests.proof.watch import Life, ProcessWatch

#: Outcomes that HTCondor 25 tells more exactly.
OUTCOMES = {"25": {"vacated": "vacated_by_schedd"}}


class Surprise(AssertionError):
    """The scenario did not go as planned: its truth is not known."""


class Note(NamedTuple):
    """One line that a job wrote: begin, term or end, with what it was told of itself."""

    what: str
    run: int
    slot: str
    pilot: str
    cores: int
    memory: int
    at: float


class Job(NamedTuple):
    """A submitted job."""

    schedd: str
    cluster: int
    id: str


class Sight:
    """Looks at processes and at the notes which jobs write."""

    def __init__(
        self,
        pool: CondorPool,
        directory: Path,
        pilots: Mapping[str, Pilot],
        jobs: Mapping[str, Job],
    ) -> None:
        """``directory`` has the notes; ``pilots`` and ``jobs`` fill while the script is played."""
        self.watch = ProcessWatch(pool.processes)
        self._outcomes = OUTCOMES.get(pool.htcondor, {})
        #: when pilots were sent SIGKILL
        self.killed: dict[str, float] = {}
        self._directory, self._pilots, self._jobs = directory, pilots, jobs
        programs = ("SCHEDD", "SCHEDD2")
        self._schedds = dict(zip(pool.schedds, map(pool.pid_of, programs), strict=True))

    def notes(self, tag: str) -> list[Note]:
        """What a job has written so far."""
        path = self._directory / tag
        lines = path.read_text().splitlines() if path.exists() else []
        found = []
        for what, run, name, cores, memory, at in (line.split() for line in lines):
            slot, _, pilot = name.partition("@")
            found.append(Note(what, int(run), slot, pilot, int(cores), int(memory), float(at)))
        return found

    def shadows(self, tag: str) -> list[Life]:
        """The job's shadows, one for each run, in their order."""
        job = self._jobs[tag]
        return [
            life
            for life in self.watch.lives("condor_shadow")
            if f"{job.cluster}.0" in life.process.argv
            and life.process.parent == self._schedds[job.schedd]
        ]

    def startd(self, name: str) -> Life | None:
        """The pilot's startd; later ones of the name are children that it forks."""
        config = str(self._pilots[name].config)
        lives = self.watch.lives("condor_startd")
        return next((life for life in lives if life.process.condor_config == config), None)

    def ended(self, name: str) -> bool:
        """Whether the pilot's startd is over, whatever its master does."""
        life = self.startd(name)
        return life is not None and life.gone is not None

    def ends(self, tag: str) -> int:
        """How many runs of the job are over."""
        return sum(life.gone is not None for life in self.shadows(tag))

    # -- the truth

    def truth(self) -> Truth:
        """Return what is true; Surprise if anything went otherwise than planned."""
        pilots = {name: self._pilot(name) for name in PILOTS}
        # Where two starters began at once, the notes tell whose is which; the other one is left.
        plans = sorted(PLANS, key=lambda plan: not plan.runs[0].begins)
        taken: list[Life] = []
        runs = [run for plan in plans for run in self._runs(plan, pilots, taken)]
        return Truth(tuple(pilots.values()), tuple(runs))

    def _pilot(self, name: str) -> PilotTruth:
        machine, life = PILOTS[name], self.startd(name)
        if life is None or life.gone is None:
            raise Surprise(f"pilot {name} has not ended")
        end = Moment(self.killed.get(name, life.seen), life.gone)
        start = Moment(life.start, life.start)
        memory = machine.cores * UNIT_MIB
        return PilotTruth(self._pilots[name].name, machine.cores, memory, start, end, machine.own)

    def _runs(self, plan: Plan, pilots: dict[str, PilotTruth], taken: list[Life]) -> list[RunTruth]:
        """Runs last as long as their starters: so long their slots are taken."""
        shadows, notes = self.shadows(plan.tag), self.notes(plan.tag)
        begun = [(note.run, note.pilot) for note in notes if note.what == "begin"]
        planned = [(n, pilots[end.pilot].name) for n, end in enumerate(plan.runs, 1) if end.begins]
        if len(shadows) != len(plan.runs) or begun != planned:
            raise Surprise(f"{plan.tag}: {len(shadows)} runs, {begun}, not {planned}")
        found = []
        for run, (how, shadow) in enumerate(zip(plan.runs, shadows, strict=True), 1):
            pilot = pilots[how.pilot]
            mine = [note for note in notes if note.run == run]
            starter = self._starter(how.pilot, shadow, mine, taken)
            if starter is None:  # too short to be seen: while its shadow lived, around its notes
                gone = shadow.gone or pilot.end.hi
                start = Moment(shadow.start, mine[0].at if mine else gone)
                end = Moment(mine[-1].at if mine else shadow.start, gone)
            else:
                taken.append(starter)
                start = Moment(shadow.start, starter.start)
                end = Moment(starter.seen, starter.gone or pilot.end.hi)
            if starter is not None and how.pilot in self.killed:
                end = Moment(max(starter.start, min(starter.seen, pilot.end.lo)), end.hi)
            if any(not start.lo <= note.at <= end.hi for note in mine):
                raise Surprise(f"{plan.tag}: {mine} are not within {start} and {end}")
            size = (mine[0].cores, mine[0].memory) if mine else (plan.cores, plan.memory)
            found.append(
                RunTruth(
                    *(plan.tag, self._jobs[plan.tag].id, run, pilot.name, *size, start, end),
                    *(how.category, self._outcomes.get(how.outcome, how.outcome), how.begins),
                )
            )
        return found

    def _starter(
        self, pilot: str, shadow: Life, notes: Sequence[Note], taken: Sequence[Life]
    ) -> Life | None:
        """The starter of a shadow's run: the first one on that pilot and slot while it lived.

        On a loaded machine a shadow may wait long for it.  Where the job began, its starter is the
        last one of its slot before.  None: it was too short for that machine to be seen.
        """
        config = str(self._pilots[pilot].config)
        until = notes[0].at if notes else shadow.gone or shadow.seen
        found = []
        for life in self.watch.lives("condor_starter"):
            argv = life.process.argv
            if life.process.condor_config != config or "-a" not in argv or life in taken:
                continue
            within = shadow.start <= life.start <= until
            if notes and life.gone is not None and life.gone < notes[-1].at:
                continue  # it had ended before the job had: a short-lived copy of it
            if within and (not notes or notes[0].slot == argv[argv.index("-a") + 1]):
                found.append(life)
        return found[-1 if notes else 0] if found else None
