"""Metrics of where pilots' time goes.

Counters have the values in the ledger; they stand still while it cannot be written.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import partial

from gwmond.metrics.family import POLLED, Family, Sample, known
from gwmond.metrics.zeros import entries, places, with_zeros
from gwmond.model.entries.experiments import CHECKED
from gwmond.model.facts import EVIDENCE
from gwmond.model.pilot_life import BEARS, Assumption, Category, Measure
from gwmond.model.pilots.stored_pilots import ASSUMED, MICROS, Counted, CountKey
from gwmond.model.poll.snapshot import QUEUE_SECONDS, RUNS_TOTAL, Snapshot
from gwmond.model.runs.outcomes import RUNS
from gwmond.model.runs.phases import FailedTransfer, Measured, buckets
from gwmond.model.totals import Total
from gwmond.model.units import MICRO, Resource
from gwmond.pilots.life.partition import OWN
from gwmond.reports.render.categories import INFOS

_KEPT = (
    " Kept in the ledger: it goes on after restarts, and a correction never makes it fall." + POLLED
)
_CATEGORIES = (
    f"{', '.join(info.category for info in INFOS if info.category and info.of_jobs)} (runs), "
    f"{', '.join(info.category for info in INFOS if info.category and not info.of_jobs)} "
    "(the pilot's own)"
)
AGREED = ("true", "false")
_PLACE = ("resource", "category", "site", "entry", "group", "evidence")


def _sums(
    counted: Iterable[tuple[tuple[str, ...], Total]],
    zeros: Iterable[tuple[str, ...]],
    unit: int = 1,
) -> Iterator[Sample]:
    """Yield the sums of what has the same labels: no part ever falls, so their sum does not."""
    sums: Counter[tuple[str, ...]] = Counter()
    created: dict[tuple[str, ...], float] = {}
    for labels, shown in counted:
        sums[labels] += shown.micros
        created[labels] = min(shown.created, created.get(labels, shown.created))
    samples = (Sample(labels, sums[labels] / unit, created[labels]) for labels in sums)
    return with_zeros(samples, zeros)


def _seconds(s: Snapshot, measure: Measure) -> Iterator[Sample]:
    """Sum over outcomes."""
    shown = s.pilot_time.shown if s.pilot_time is not None else {}
    counted = (
        ((key.resource, key.category.value, key.site, key.entry, key.group, key.evidence), total)
        for key, total in shown.items()
        if key.measure == measure
    )
    zeros = (
        (resource, category.value, *place, evidence)
        for place, resources in places(s).items()
        for resource in resources
        for category in Category
        for evidence in EVIDENCE
    )
    return _sums(counted, zeros, MICRO)


def _unsettled(s: Snapshot) -> Iterator[Sample]:
    if s.pilot_time is not None:
        for (resource, key, group), micros in s.pilot_time.unsettled.items():
            yield Sample((resource, *key, group), micros / MICRO)


def _counted(s: Snapshot, *what: str) -> Iterator[tuple[CountKey, Total]]:
    if s.pilot_time is not None:
        for key, total in s.pilot_time.counted.items():
            if key.what in what:
                yield key, total


def _moved(
    s: Snapshot, first: Mapping[Counted, tuple[str, ...]]
) -> Iterator[tuple[tuple[str, ...], Total]]:
    """Yield what is counted by server; ``first``: of these counts, and their first labels."""
    for key, total in _counted(s, *first):
        yield (*first[key.what], *FailedTransfer.of(key.outcome), key.site, key.entry), total


def _runs(s: Snapshot) -> Iterator[Sample]:
    counted = (((key.category.value, *key[2:]), total) for key, total in _counted(s, "runs"))
    zeros = ((category.value, label, *at) for at in places(s) for category, label in RUNS)
    notes = s.traces.exemplars if s.traces is not None else {}
    for sample in _sums(counted, zeros):
        exemplar = notes.get((RUNS_TOTAL, *sample.labels))
        yield sample if exemplar is None else sample._replace(exemplars=(exemplar,))


def _lengths(s: Snapshot, what: Measured) -> Iterator[Sample]:
    """Sum over the pilots' groups."""
    notes = s.traces.exemplars if s.traces is not None else {}
    counts: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for key, total in _counted(s, what):
        counts[key.site, key.entry][key.outcome] += total.micros
    sums = Counter[tuple[str, str]]()
    created: dict[tuple[str, str], float] = {}
    for key, total in _counted(s, MICROS[what]):
        place = key.site, key.entry
        sums[place] += total.micros
        created[place] = min(total.created, created.get(place, total.created))
    for place in {*counts, *((site, entry) for site, entry, _ in places(s))}:
        yield Sample(
            place,
            sums[place] / MICRO,
            created.get(place),
            buckets=tuple(counts[place][bound] for bound in buckets(what)),
            exemplars=tuple(notes.get((_NAMES[what], *place, bound)) for bound in buckets(what)),
        )


def _verdicts(s: Snapshot) -> Iterator[Sample]:
    """Sum over the pilots' groups."""
    counted = (
        ((key.category.value, key.outcome, key.site, key.entry), total)
        for key, total in _counted(s, "verdicts")
    )
    keys = [key for resource, key in entries(s) if resource == "cpu" and s.pilot_time is not None]
    zeros = ((state.value, name, *key) for key in keys for state in CHECKED for name in AGREED)
    return _sums(counted, zeros)


def _probabilities(s: Snapshot) -> Iterator[Sample]:
    for (key, resource), row in s.evaluation.rows.items():
        sure = s.confidence.probability(key, row.verdict) if resource == "cpu" else None
        if sure is not None:
            yield Sample(tuple(key), round(sure, 3))


_OF: Mapping[str, Resource] = {what: resource for resource, what in ASSUMED.items()}


def _assumed(s: Snapshot) -> Iterator[Sample]:
    """Sum over the pilots' own categories."""
    counted = (
        ((_OF[key.what], key.outcome, key.site, key.entry, key.group), total)
        for key, total in _counted(s, *_OF)
    )
    zeros = (
        (resource, rule.value, *place)
        for place, resources in places(s).items()
        for resource in resources
        for rule in Assumption
        if rule in BEARS[resource]
    )
    return _sums(counted, zeros, MICRO)


def _suspects(s: Snapshot) -> Iterator[Sample]:
    suspects = s.pilot_time.suspects if s.pilot_time is not None else ()
    numbers = Counter((x.sign, x.kind, x.site, x.entry) for x in suspects)
    return (Sample(labels, number) for labels, number in numbers.items())


def _suspected_runs(s: Snapshot) -> Iterator[Sample]:
    runs: Counter[tuple[str, ...]] = Counter()
    for x in s.pilot_time.suspects if s.pilot_time is not None else ():
        place = x.sign, x.kind, x.site, x.entry
        runs["too_soon", *place] += x.too_soon
        runs["other", *place] += x.runs - x.too_soon
    return (Sample(labels, number) for labels, number in runs.items())


def _suspicions(s: Snapshot) -> Iterator[Sample]:
    if s.pilot_time is not None:
        for outcome in ("confirmed", "withdrawn"):
            yield Sample((outcome,), s.pilot_time.suspicions.get(outcome, 0))


_NAMES: Mapping[Measured, str] = {
    "queue": QUEUE_SECONDS,
    "stage_in": "gwmond_job_stage_in_seconds",
    "stage_out": "gwmond_job_stage_out_seconds",
}
_STAGES: Mapping[Measured, str] = {
    "stage_in": "input of runs of jobs was transferred",
    "stage_out": "output of runs of jobs was transferred",
}
_OF_SERVER = ("direction", "protocol", "host", "site", "entry")
_RESULTS: Mapping[Counted, tuple[str, ...]] = {
    "files_moved": ("succeeded",),
    "files_failed": ("failed",),
    "files_again": ("repeated",),
}
TOPIC = "Pilots' time"
FAMILIES = (
    Family(
        "gwmond_pilot_resource_seconds_total",
        f"Settled time of pilots by category: {_CATEGORIES}. evidence is estimated where a "
        "rule stands for a missing fact (docs/estimates.md). "
        "Unit: core-seconds (cpu) or chip-seconds (gpu)." + _KEPT,
        _PLACE,
        lambda s: _seconds(s, "resource"),
    ),
    Family(
        "gwmond_pilot_canonical_seconds_total",
        f"Settled time of pilots in canonical units, by category: {_CATEGORIES}. Unit: canonical "
        "seconds (1 core + 2 GB, or 1 GPU, for a second)." + _KEPT,
        _PLACE,
        lambda s: _seconds(s, "canonical"),
    ),
    Family(
        "gwmond_pilot_unsettled_canonical_seconds",
        "Time of pilots whose category is not known yet: jobs that run, or whose end is not known. "
        "Unit: canonical seconds." + POLLED,
        ("resource", "site", "entry", "group"),
        _unsettled,
    ),
    Family(
        RUNS_TOTAL,
        "Runs of jobs on pilots by category and outcome, once these are known. Badput has "
        "exemplars where traces are exported. Unit: runs." + _KEPT,
        ("category", "outcome", "site", "entry", "group"),
        _runs,
    ),
    Family(
        QUEUE_SECONDS,
        "How long jobs waited from their submission to the begin of their first run, on hold or "
        "not, by where that was; once the run is settled. With exemplars where traces are "
        "exported. Unit: seconds." + _KEPT,
        ("site", "entry"),
        lambda s: _lengths(s, "queue"),
        buckets=buckets("queue"),
    ),
    *(
        Family(
            _NAMES[what],
            f"How long {words}, the wait for a place in the access point's queue included, by "
            "where that was; once the run is settled. Runs of which no record has it are left "
            "out. Unit: seconds." + _KEPT,
            ("site", "entry"),
            partial(_lengths, what=what),
            buckets=buckets(what),
        )
        for what, words in _STAGES.items()
    ),
    Family(
        "gwmond_transfer_failures_total",
        "Transfers that failed: of input or output (direction), by protocol and host of the URL "
        "that the failure names; at once when a record of the run has it. Protocol cedar is "
        "HTCondor's own, unknown where none is named; other stands for servers beyond [names] "
        "servers. Unit: failures." + _KEPT,
        _OF_SERVER,
        lambda s: _sums(_moved(s, {"failed_transfers": ()}), ()),
    ),
    Family(
        "gwmond_transfer_attempts_total",
        "Attempts of plugins at files of jobs, by server; a cache or storage that the plugin names "
        "stands for that of the URL. result is succeeded, failed (the file did not arrive) or "
        "repeated (it failed, and another attempt was made). Only of access points that record "
        "them, HTCondor 25.7 and later. Unit: attempts." + _KEPT,
        ("result", *_OF_SERVER),
        lambda s: _sums(_moved(s, _RESULTS), ()),
    ),
    Family(
        "gwmond_transfer_bytes_total",
        "Bytes that plugins transferred, from the same records, where these have them. Unit: bytes."
        + _KEPT,
        _OF_SERVER,
        lambda s: _sums(_moved(s, {"bytes_moved": ()}), ()),
    ),
    Family(
        "gwmond_transfer_seconds_total",
        "How long plugins took to transfer files, from the same records, where these have it. "
        "Unit: seconds." + _KEPT,
        _OF_SERVER,
        lambda s: _sums(_moved(s, {"moving_micros": ()}), (), MICRO),
    ),
    Family(
        "gwmond_suspected_black_holes",
        "Pilots, nodes, entries and sites (kind) where jobs end far too soon significantly more "
        "often than jobs of the same groups elsewhere: they fail within five "
        "minutes, in the last hour, computed every two minutes (sign fails), or jobs exit with 0 "
        "within a minute, in the last two hours, computed once an hour (ends_too_soon). Places "
        "within a larger suspect are not counted. A suspicion changes no category. "
        "Unit: places." + POLLED,
        ("sign", "kind", "site", "entry"),
        _suspects,
    ),
    Family(
        "gwmond_suspected_runs",
        "Runs of jobs at the places of gwmond_suspected_black_holes, in the time that it looks "
        "at, by how they ended: too_soon (as its sign says), or other. Unit: runs." + POLLED,
        ("ended", "sign", "kind", "site", "entry"),
        _suspected_runs,
    ),
    Family(
        "gwmond_suspicions_total",
        "Places that were suspected as jobs failed there (gwmond_suspected_black_holes, sign "
        "fails), since gwmond started, by what the verdicts said hours later: confirmed or "
        "withdrawn. Unit: places." + POLLED,
        ("outcome",),
        _suspicions,
    ),
    Family(
        "gwmond_pilots_ended_total",
        "Pilots that ended, by the category of their own time: pilot_overhead (they ran jobs), "
        "decision_problem (they never did), validation_fails, unclassified (not known). "
        "Unit: pilots." + _KEPT,
        ("category", "site", "entry", "group"),
        lambda s: _sums(
            (
                ((key.category.value, key.site, key.entry, key.group), total)
                for key, total in _counted(s, "pilots")
            ),
            ((category.value, *place) for place in places(s) for category in OWN),
        ),
    ),
    Family(
        "gwmond_verdicts_checked_total",
        "Verdicts on entries (provisioning_bottleneck, insufficient_demand), checked by pilots "
        "that registered there: agreed is true where one ran a job within site.verdict_check after "
        "a bottleneck, or none after insufficient demand. Unit: pilots." + _KEPT,
        ("state", "agreed", "site", "entry"),
        _verdicts,
    ),
    Family(
        "gwmond_verdict_probability",
        "How probable it is that the pilots that register next meet what the verdict on an entry's "
        "CPUs says, by the verdicts like it that pilots checked (docs/verdicts.md). Absent: it "
        "cannot be checked, or too few were. No unit (0 to 1)." + POLLED,
        ("site", "entry"),
        _probabilities,
    ),
    Family(
        "gwmond_verdicts_brier_score",
        "Brier score of the latest verdicts that pilots checked: the mean square of what the "
        "probability of each, by those before it, was off; 0 is best, 0.25 is that of a coin. "
        "No unit." + POLLED,
        (),
        lambda s: known([((), s.confidence.brier)]),
    ),
    Family(
        "gwmond_pilot_estimated_canonical_seconds_total",
        f"Time of ended pilots that rests on rules for missing facts: {', '.join(Assumption)} "
        "(docs/estimates.md has the table; size is of cpu alone, gpus of gpu alone). Time to which "
        "several rules apply counts under the first of them. Unit: "
        "canonical seconds (1 core + 2 GB, or 1 GPU, for a second)." + _KEPT,
        ("resource", "rule", "site", "entry", "group"),
        _assumed,
    ),
    Family(
        "gwmond_pilot_time_known_timestamp_seconds",
        "Up to when pilots' time can be settled: all sources have been read up to there. Pilots "
        "that still run are settled only once a backlog is read. Unit: seconds since the epoch."
        + POLLED,
        (),
        lambda s: known([((), s.pilot_time.known_us if s.pilot_time else None)], MICRO),
    ),
    Family(
        "gwmond_history_complete_timestamp_seconds",
        "Up to when a source's records of job runs have been read; it lags while a backlog is "
        "drained. Unit: seconds since the epoch." + POLLED,
        ("source", "kind"),
        lambda s: known((((x.source, x.kind), x.complete_us) for x in s.cursors), MICRO),
    ),
    Family(
        "gwmond_run_contradictions_total",
        "Fields of a run in which sources differ, since gwmond started; and of a pilot in which "
        "its factory's summary differs (summary_duration, summary_condor_started, summary_jobs). "
        "The better source is believed. Unit: contradictions." + POLLED,
        ("field",),
        lambda s: (
            Sample((field,), number, s.started_at)
            for field, number in (s.pilot_time.contradictions if s.pilot_time else {}).items()
        ),
    ),
)
