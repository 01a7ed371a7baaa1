"""What an advice rests on: pilots that ended and their runs, added up in bounded memory.  Pure.

Units: lengths are seconds, amounts are micros (10^-6 of a canonical unit for one second), memory is
MiB.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Literal, NamedTuple, TypeAlias

from gwmond.advise.samples import Ratio, Reservoir
from gwmond.model.names import OTHER
from gwmond.model.pilot_life import Assumption, Category
from gwmond.model.pilots.stored_pilots import PilotRow, RunRow
from gwmond.model.runs.phases import moved_bytes, phases_of
from gwmond.model.runs.run_facts import used_of
from gwmond.model.times import SECOND_US
from gwmond.model.units import known_sum
from gwmond.pilots.life.merged_runs import executing
from gwmond.reports.render.categories import CPU, of_kind
from gwmond.reports.stored.stored_pilot import StoredPilot

MEASURED_S = 300
"""Of programs that ran for less, the starter seldom measures what they use."""
MOST_GROUPS = 10
"""So many accounting groups of an entry are kept apart."""
EARLY_END_S = 600
"""A pilot that ends so much before the time that it announced was ended by its site."""
Tried: TypeAlias = Literal["overlap", "overload"]
_UNTIMED = frozenset({Assumption.LIFE, Assumption.NO_OUTPUT, Assumption.JOBS, Assumption.BEGIN})


class IdleWait(NamedTuple):
    """A time in which a pilot was idle; ``came``: whether a job ended it."""

    length_s: float
    came: bool
    first: bool


class Arm(NamedTuple):
    """Pilots of a frontend's group at one entry that do something, or do not (``on``).

    ``tried``: that they overlap (``AdFacts.senders``), or that their slots have more than is there
    (``OutputFacts.offered_cores``).
    """

    tried: Tried
    group: str
    on: bool


class EntryTally:
    """Of one entry: pilots that ended in the period, and their runs.

    - ``first``, ``later``: waits for the first job, and after a job, as ``idle_timeout.Waits``.
    - ``gave_up``: how long pilots had been idle that ended before they retired, by ``first``.
    - ``ready``: time until a pilot waits for its first job; ``replacement``: until its first job,
      or its end.  By pilots that wait, and that ran jobs; failed ones are added.
    - ``validated``: pilots of ``ready`` of which it is known when their validation ended.
    - ``runs``: length, completed (1 or 0), time left as it began (-1: not known), lost (1 or 0).
    - ``ran``, ``never``: pilots that ran jobs, and that never did; of others it is not known.
    - ``uploads``: of completed runs how long, how long the run lasted until then, and its bytes,
      -1: not known; by accounting group, of which the first ``MOST_GROUPS`` are kept apart.
    - ``arms``: when each pilot of an arm began, the core-seconds of its completed runs, and those
      that it had.  With overlap these are core-seconds of programs, with overload CPU-seconds, as
      programs share cores there.  A pilot of which one of these is not known is left out.
    - ``amounts``: settled, by category; ``estimated`` of that; ``unsettled``: beside that;
      ``never_micros``: settled, of ``never``.
    - ``held``: core- and memory-seconds that runs held on pilots that ran jobs; ``offered``.
    """

    def __init__(self) -> None:
        self.pilots = self.ran = self.never = self.untimed = 0
        self.waits = {True: Reservoir(4), False: Reservoir(4)}
        self.gave_up = {True: Reservoir(1), False: Reservoir(1)}
        self.ready, self.replacement, self.validated = Ratio(), Ratio(), 0
        self.runs, self.lost, self.early = Reservoir(4), 0, 0
        self.uploads: dict[str, Reservoir] = {}
        self.arms: dict[Arm, Reservoir] = {}
        self.amounts: Counter[Category] = Counter()
        self.estimated = self.unsettled = self.never_micros = 0
        self.units = dict.fromkeys((True, False), 0.0)
        self.held, self.offered = [0.0, 0.0], [0.0, 0.0]

    def add(self, pilot: StoredPilot) -> None:
        """Count a pilot that ended."""
        row, jobs, units = pilot.row, pilot.jobs, pilot.canonical_units
        self.pilots += 1
        for (resource, measure, category), micros in pilot.settled.items():
            if (resource, measure) == CPU:
                self.amounts[category] += micros
        self.unsettled += max(0, pilot.unsettled[CPU])
        self.estimated += _estimated(pilot)
        self.ran += jobs.ran is True
        if jobs.ran is False:
            self.never += jobs.started is True
            self.never_micros += of_kind(pilot.settled, CPU) if jobs.started else 0
        for run in jobs.runs:
            self._add_run(row, run)
        if jobs.number is None or row.runs_pruned or not _UNTIMED.isdisjoint(row.assumed):
            self.untimed += 1
            return
        self._add_waits(pilot, units)
        self._add_held(pilot)

    def _add_waits(self, pilot: StoredPilot, units: int) -> None:
        row, runs = pilot.row, pilot.jobs.runs
        first_us = min((run.start_us for run in runs), default=row.end_us or row.start_us)
        spent_s = units * max(0, first_us - row.start_us) / SECOND_US
        self.replacement.add(spent_s, units if runs else 0)
        if pilot.failed:
            self.ready.add(spent_s, 0)
        else:
            self.ready.add(units * (free_from(pilot) - row.start_us) / SECOND_US, units)
            self.validated += row.validation_end_us is not None
        retired = row.retire_us is not None and (row.end_us or 0) >= row.retire_us
        for wait in waits(pilot):
            self.waits[wait.first].add(self.pilots, wait.length_s, wait.came, units)
            self.units[wait.first] += units
            if not (wait.came or retired or Assumption.END in row.assumed):
                self.gave_up[wait.first].add(wait.length_s)

    def _add_held(self, pilot: StoredPilot) -> None:
        row, size = pilot.row, pilot.size
        if row.end_us is None or Assumption.SIZE in row.assumed:
            return
        group, output, runs = row.identity.group, row.facts.output, pilot.jobs.runs
        life_us = row.end_us - row.start_us
        amounts: dict[Arm, float | None] = {}
        if row.facts.ads is not None:
            amounts[Arm("overlap", group, pilot.senders > 0)] = sum(map(_program, runs))
        if output is not None and output.cores is not None:
            overloaded = pilot.offered_size.cores > size.cores
            amounts[Arm("overload", group, overloaded)] = known_sum(map(_cpu, runs))
        for arm, ran in amounts.items():
            if ran is not None:
                began_s, offered = row.start_us / SECOND_US, size.cores * life_us / SECOND_US
                self.arms.setdefault(arm, Reservoir(3)).add(began_s, ran, offered)
        if not runs:
            return
        for at in (0, 1):
            self.offered[at] += size[at] * life_us / SECOND_US
        for run in runs:
            for at in (0, 1):
                held_us = max(0, _held_until(row, run) - run.start_us)
                self.held[at] += run.size[at] * held_us / SECOND_US

    def _add_run(self, row: PilotRow, run: RunRow) -> None:
        category = None if run.outcome is None else run.outcome.category
        lost = category is Category.PREEMPTION_BADPUT
        if not lost and category is not Category.GOODPUT:
            return
        left_s = -1.0 if row.die_us is None else max(0, row.die_us - run.start_us) / SECOND_US
        self.runs.add(_length_s(row, run), not lost, left_s, lost)
        if not lost and (upload := upload_of(run)) is not None:
            group = run.accounting_group
            apart = group in self.uploads or len(self.uploads) < MOST_GROUPS
            self.uploads.setdefault(group if apart else OTHER, Reservoir(3)).add(*upload)
        self.lost += lost
        if lost and row.end_us is not None and row.die_us is not None:
            self.early += row.die_us - row.end_us > EARLY_END_S * SECOND_US


def _estimated(pilot: StoredPilot) -> int:
    """Return canonical micros of CPUs as reports count them; of pruned runs nothing is known."""
    if pilot.estimated is not None:
        return pilot.estimated.get(CPU, 0)
    amounts = pilot.row.assumed_micros.items()
    return sum(micros for (_, resource), micros in amounts if resource == "cpu")


def waits(pilot: StoredPilot) -> Iterator[IdleWait]:
    """Yield the times in which no job ran on a pilot that HTCondor started on, and that ended.

    From when its validation ended, or its startd began, until it ended, or retired: then it takes
    no more jobs.
    """
    row = pilot.row
    if row.end_us is None or pilot.jobs.started is not True:
        return
    until_us = row.end_us if row.retire_us is None else min(row.end_us, row.retire_us)
    free_us, first = free_from(pilot), True
    for run in sorted(pilot.jobs.runs, key=lambda run: run.start_us):
        if run.start_us >= free_us and free_us < until_us:
            yield IdleWait((run.start_us - free_us) / SECOND_US, True, first)
        free_us, first = max(free_us, _held_until(row, run)), False
    if free_us < until_us:
        yield IdleWait((until_us - free_us) / SECOND_US, False, first)


def free_from(pilot: StoredPilot) -> int:
    """Return from when on a pilot could take a job: its validation ended, or its startd began."""
    row, ads = pilot.row, pilot.row.facts.ads
    began_us = row.validation_end_us or (None if ads is None else ads.began_us) or row.start_us
    return max(row.start_us, began_us)


def _held_until(row: PilotRow, run: RunRow) -> int:
    until_us = run.as_run.held_until_us
    return (row.end_us or run.start_us) if until_us is None else until_us


def _length_s(row: PilotRow, run: RunRow) -> float:
    end_us = row.end_us if run.end_us is None else run.end_us
    return max(0, (end_us or run.start_us) - run.start_us) / SECOND_US


def _program_us(run: RunRow) -> int:
    """Return how long the program of a completed run lasted, 0 of others.

    Where no record has when it began: the whole run.
    """
    if run.outcome is None or run.outcome.category is not Category.GOODPUT or run.end_us is None:
        return 0
    length_us = phases_of(run.facts, run.start_us, run.end_us).execute_us
    return max(0, run.end_us - run.start_us if length_us is None else length_us)


def _program(run: RunRow) -> float:
    """Return the core-seconds of the program of a completed run, 0 of others."""
    return run.size.cores * _program_us(run) / SECOND_US


def _cpu(run: RunRow) -> float | None:
    """Return the CPU-seconds of the program of a completed run, 0 of others; None: not known."""
    length_us = _program_us(run) if run.size.cores else 0
    used = used_of(run.facts).cores if length_us else 0.0
    return None if used is None else used * length_us / SECOND_US


def upload_of(run: RunRow) -> tuple[float, float, float] | None:
    """Return how long a run sent its output, and lasted until then; the bytes, -1: not known.

    The wait for its turn is part of it.
    """
    for fact in run.facts:
        sent = fact.transfer_out
        if sent is None or sent.start_us is None or sent.end_us is None:
            continue
        began_us = sent.start_us if sent.queued_us is None else sent.queued_us
        if run.start_us <= began_us <= sent.end_us:
            moved = moved_bytes(sent, 0 if fact.shadow_start == 1 else None)
            return (
                (sent.end_us - began_us) / SECOND_US,
                (began_us - run.start_us) / SECOND_US,
                -1.0 if moved is None else moved,
            )
    return None


GPUS = 2
"""Where GPUs are among memory, cores and GPUs."""


class GroupTally:
    """Of one group: runs whose program ran for some minutes, and what they held and used.

    - ``runs``: all of them; of memory (held and used MiB), cores and GPUs what is known.
      ``gpu_runs``: those that held GPUs.
    - ``micros``: what the unused part of the memory, and of the cores, kept from others, in
      canonical units; never both of a run.  ``held_micros``: all that these runs held.  Of GPUs
      both are chips for a microsecond.
    """

    def __init__(self) -> None:
        self.runs = self.gpu_runs = 0
        self.samples = Reservoir(2), Reservoir(2), Reservoir(2)
        self.micros, self.held_micros = [0, 0, 0], [0, 0, 0]

    def add(self, run: RunRow, memory_per_unit_mib: int) -> None:
        """Count a run that ended."""
        began_us = executing(run.facts)
        if began_us is None or run.end_us is None:
            return
        if run.end_us - began_us < MEASURED_S * SECOND_US:
            return
        self.runs += 1
        cores, memory_mib = run.size.cores, run.size.memory_mib
        held = max(cores, memory_mib / memory_per_unit_mib)
        used, gpus = used_of(run.facts), run.size.gpus
        self.gpu_runs += gpus > 0
        needed = (
            None if used.memory_mib is None else max(cores, used.memory_mib / memory_per_unit_mib),
            None if used.cores is None else max(used.cores, memory_mib / memory_per_unit_mib),
            used.gpus if gpus else None,
        )
        uses = (memory_mib, used.memory_mib), (cores, used.cores), (gpus, used.gpus)
        for at, (have, use) in enumerate(uses):
            need, holds = needed[at], gpus if at == GPUS else held
            if use is not None and need is not None:
                self.samples[at].add(have, use)
                length_us = run.end_us - run.start_us
                self.held_micros[at] += round(holds * length_us)
                self.micros[at] += round(max(0.0, holds - need) * length_us)
