"""One pilot's whole life, with what each part of it rests on: for a person who asks why.

Units: times are microseconds since the epoch, amounts are micros.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, Literal, NamedTuple, TypeAlias

from gwmond.ledger.reading.reader import LedgerReader
from gwmond.model.digits import is_number
from gwmond.model.pilot_life import (
    KINDS,
    Assumption,
    Category,
    Kind,
    PilotLife,
    RunKey,
    Validation,
)
from gwmond.model.pilots.stored_pilots import PilotCorrection, PilotFilter, PilotRow, RunRow
from gwmond.model.poll.pilot_keys import PilotKeys
from gwmond.model.runs.endings import Ending
from gwmond.model.runs.outcomes import EARLY_EXIT, SUMMARISED, rule_of
from gwmond.model.runs.phases import FailedTransfer, Phases, failed_transfer
from gwmond.pilots.life.merged_runs import Merged, merge
from gwmond.pilots.life.partition import is_settled, own_category, partition
from gwmond.pilots.life.rules import Rules
from gwmond.pilots.life.segments import Estimated, Segment, cut, parts
from gwmond.pilots.memory.ad_times import silent_before_us
from gwmond.reports.render.periods import both, short, span
from gwmond.reports.stored.phases import phases
from gwmond.reports.stored.stored_pilot import AsOf, StoredPilot

Free: TypeAlias = Literal["all", "part", "none"]

_CORRECTIONS = 200_000
SOME = 20
"""So many pilots are named where a name may mean several."""
_EARLY = (
    "early_failure: this pilot, its node, entry or site fails early significantly more often than "
    "others do with the same groups of jobs at that time"
)

_SUMMARY = (
    "its own statistics, or completed_jobs: no run of a job, but what stands for all of them "
    "(docs/estimates.md)"
)


RULES: dict[Assumption, str] = {
    Assumption.BEGIN: "its output has no start: its factory's queue, else the first known time",
    Assumption.END: "nothing of its own has the end: its factory's queue or summary, a run of a "
    "job or a central log, else what was heard last",
    Assumption.SIZE: "no cores or memory are known: those of the entry's pilots, else one unit; "
    "canonical time of its runs rests on them too",
    Assumption.GPUS: "the number of GPUs is not known: that of the entry's pilots (CPU time does "
    "not rest on it)",
    Assumption.VALIDATION: "it is not known whether HTCondor started: it did not if collectors "
    "were watched all the time, else unclassified",
    Assumption.NO_OUTPUT: "it is known from its factory's queue or summary only: their times",
    Assumption.JOBS: "its jobs are known from a summary or its statistics only: the whole pilot, "
    "after the validation",
    Assumption.LIFE: "it is known from records of jobs only: as large and as long as they",
}


_PASSED = "its validation passed, and it is not known whether it ran jobs: unclassified"


class AssumedRule(NamedTuple):
    """A rule that was applied, from when to when within the pilot's life, and what it says.

    ``passed``: the pilot's validation did, which is reported.
    """

    rule: Assumption
    start_us: int
    end_us: int
    passed: bool = False

    @property
    def text(self) -> str:
        """What is missing, and what stands for it."""
        return _PASSED if self.passed and self.rule is Assumption.VALIDATION else RULES[self.rule]

    def line(self) -> str:
        length = span(self.end_us - self.start_us)
        when = f"{short(self.start_us)} to {short(self.end_us)} ({length})"
        return f"estimated, rule {self.rule.value}: {when}: {self.text}"

    def as_json(self) -> dict[str, Any]:
        when = {**both("start", self.start_us), **both("end", self.end_us)}
        return {"rule": self.rule.value, **when, "text": self.text}


def rules_of(row: PilotRow, until_us: int) -> list[AssumedRule]:
    """Return the rules that were applied to a pilot, in their order in time."""
    passed = row.validation is Validation.STARTED
    rules = [
        AssumedRule(rule, max(start, row.start_us), min(end, until_us), passed)
        for rule, (start, end) in row.assumed.items()
    ]
    return sorted(
        rules, key=lambda estimated: (estimated.start_us, estimated.end_us, estimated.rule.value)
    )


class OwnSpan(NamedTuple):
    """Time of the pilot's own in which nothing changes; ``free``: all of it, or beside jobs.

    ``category`` is None as long as it is not settled.
    """

    start_us: int
    end_us: int
    category: Category | None
    free: Free
    estimated: Estimated
    amounts: Mapping[Kind, int]


class RunStory(NamedTuple):
    """A run of a job on the pilot, and why its time goes where it goes.

    ``rule`` and ``rule_source`` are of the line of the table of outcomes that decided, empty
    while nothing did; ``amounts`` all that it got, settled or not.  ``failed`` is the transfer that
    failed.
    """

    row: RunRow
    merged: Merged
    rule: str
    rule_source: str
    amounts: Mapping[Kind, int]
    phases: Phases
    failed: FailedTransfer | None

    @property
    def codes(self) -> dict[str, int]:
        """Codes that HTCondor gave."""
        ending = self.merged.ending
        names = "exit_code", "exit_signal", "hold_code", "hold_subcode", "vacate_code"
        names_of_codes = (*names, "vacate_subcode", "starter_status")
        return {
            name: code for name in names_of_codes if (code := getattr(ending, name)) is not None
        }


class Story(NamedTuple):
    """All of it; ``residual`` is total - posted - not settled: 0, always.

    ``rules`` are those that stand for missing facts.  ``own`` is empty where retention took runs
    out: then it cannot be known any more.
    ``corrections_complete``: all that were made to this pilot are listed.
    """

    pilot: StoredPilot
    rules: tuple[AssumedRule, ...]
    own: tuple[OwnSpan, ...]
    runs: tuple[RunStory, ...]
    corrections: tuple[PilotCorrection, ...]
    corrections_complete: bool
    unsettled: Mapping[Kind, int]
    residual: Mapping[Kind, int]


def find(ledger: LedgerReader, text: str) -> list[PilotRow]:
    """Return the pilots that a number, a startd's name or a part of one may mean.

    What fits best alone is returned: the number, else the whole name, else the part.
    """
    if is_number(text) and len(text) < 19 and (pilots := ledger.pilots_by_id([int(text)])):
        return list(pilots.values())
    if whole := ledger.fetch(PilotKeys(startds={text})).pilots:
        return list(whole)
    return ledger.pilot_rows(PilotFilter(name=text), descending=True, limit=SOME + 1)


def story_of(ledger: LedgerReader, row: PilotRow, now_us: int, rules: Rules) -> Story:
    as_of = AsOf(now_us, rules.memory_per_unit_mib, silent_before_us(ledger.cursors()))
    pilot = StoredPilot(row, ledger.runs_of([row.id]).get(row.id, []), as_of)
    runs_of = ledger.find_runs([run.key.job for run in pilot.runs])
    life = pilot.life_now
    segments = cut(life)
    amounts = _amounts(segments, pilot.unit_mib)
    all_corrections = ledger.corrections(row.start_us, _CORRECTIONS)
    open_now = (
        {} if row.runs_pruned else partition(life, memory_per_unit_mib=pilot.unit_mib).unsettled
    )
    runs = (
        _run(run, row, runs_of.get(run.key.job, []), amounts.get(run.key, {}), rules)
        for run in pilot.runs
    )
    return Story(
        pilot=pilot,
        rules=tuple(rules_of(row, life.effective_end_us)),
        own=() if row.runs_pruned else tuple(own_spans(life, segments, pilot.unit_mib)),
        runs=tuple(sorted(runs, key=lambda run: (run.row.start_us, run.row.key))),
        corrections=tuple(
            correction for correction in reversed(all_corrections) if correction.pilot == row.id
        ),
        corrections_complete=len(all_corrections) < _CORRECTIONS,
        unsettled={kind: open_now.get(kind, 0) for kind in KINDS},
        residual={kind: pilot.unsettled[kind] - open_now.get(kind, 0) for kind in KINDS},
    )


def own_spans(
    life: PilotLife, segments: Sequence[Segment], memory_per_unit_mib: int
) -> list[OwnSpan]:
    """Return the pilot's own time, what is alike and adjacent taken together."""
    own, spans = own_category(life), list[OwnSpan]()
    for segment in segments:
        interval = segment.start_us, segment.end_us
        amounts = {kind: parts(segment, interval, *kind, memory_per_unit_mib).own for kind in KINDS}
        if segment.running and not any(amounts.values()):
            continue
        free: Free = "part" if segment.running else "all"
        category = own if is_settled(segment, own) else None
        span = OwnSpan(*interval, category, free, segment.estimated, amounts)
        last = spans[-1] if spans else None
        if last and last.end_us == span.start_us and last[2:5] == span[2:5]:
            sums = {kind: last.amounts[kind] + amounts[kind] for kind in KINDS}
            spans[-1] = last._replace(end_us=span.end_us, amounts=sums)
        else:
            spans.append(span)
    return spans


def _amounts(segments: Sequence[Segment], memory_per_unit_mib: int) -> dict[RunKey, Counter[Kind]]:
    amounts: dict[RunKey, Counter[Kind]] = {}
    for segment in segments:
        for kind in KINDS:
            part = parts(segment, (segment.start_us, segment.end_us), *kind, memory_per_unit_mib)
            for run, micros in zip(segment.running, part.runs, strict=True):
                amounts.setdefault(run.key, Counter())[kind] += micros
    return amounts


def _run(
    row: RunRow,
    pilot: PilotRow,
    same_job: Sequence[RunRow],
    amounts: Mapping[Kind, int],
    rules: Rules,
) -> RunStory:
    made = merge(row.facts)
    merged = next((candidate for candidate in made if candidate.key == row.key), None)
    if merged is None:  # else what is known of a run whose facts are not stored
        fact = row.key, None, row.start_us, row.end_us, row.size, row.user, row.job_group
        merged = made[0] if made else Merged(*fact, Ending(), sources=(), contradictions=())
    later = any(other.start_us > row.start_us for other in same_job)
    rule, source = _rule(row, merged, pilot, rules, later=later)
    measured = phases(row, same_job), failed_transfer(row.facts)
    return RunStory(row, merged, rule, source, amounts, *measured)


def _rule(
    row: RunRow, merged: Merged, pilot: PilotRow, rules: Rules, *, later: bool
) -> tuple[str, str]:
    """Return the line that decided: of what may be assumed, the likeliest that gives the outcome.

    Whether the startd ended with the run was known when it was decided, and is not stored.
    """
    if row.outcome is None:
        return "", ""
    if row.outcome.label == EARLY_EXIT:
        return EARLY_EXIT, _EARLY
    if row.outcome.label == SUMMARISED:
        return SUMMARISED, _SUMMARY
    ending = merged.ending._replace(over=True)
    with_it = pilot.end_us is not None and (
        row.end_us is None or row.end_us + rules.end_tolerance_us >= pilot.end_us
    )
    blamed = row.outcome.category is Category.MISCONFIGURATION_BADPUT
    for superseded, ended in product((later or None, True, None), (with_it, not with_it, None)):
        assumed = ending
        if ending.superseded is None:
            assumed = assumed._replace(superseded=superseded)
        if ending.startd_ended is None:
            assumed = assumed._replace(startd_ended=ended)
        rule = rule_of(assumed)
        if (rule.category, rule.outcome) == row.outcome[:2]:
            return rule.name, rule.source
        if blamed and rule.compared and rule.outcome == row.outcome.label:
            return rule.name, f"{rule.source}; {_EARLY}"
    return "", "not known from the facts that are stored"
