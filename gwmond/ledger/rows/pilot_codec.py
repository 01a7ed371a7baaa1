"""Pilots and runs as rows: values that go into columns, and back, equal to what they were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import isfinite
from typing import Any, TypeAlias

import msgspec

from gwmond.ledger.database.columns import (
    LATEST_US,
    Undecodable,
    clean,
    identity,
    maybe_time,
    time_us,
    whole,
)
from gwmond.ledger.database.schema import pilots, runs
from gwmond.ledger.rows.fact_codec import decode_facts, encode_facts
from gwmond.model.facts import EntryKey, Size
from gwmond.model.pilot_life import (
    KINDS,
    Assumption,
    Category,
    Interval,
    Measure,
    Outcome,
    RunKey,
    SizeStep,
    Validation,
)
from gwmond.model.pilots.pilot_facts import PilotFacts, replace
from gwmond.model.pilots.stored_pilots import (
    OwnAmounts,
    PilotIdentity,
    PilotKind,
    PilotRow,
    RunRow,
)
from gwmond.model.totals import Micros
from gwmond.model.units import RESOURCES, Resource

Values: TypeAlias = tuple[Any, ...]
Counted: TypeAlias = dict[tuple[Assumption, Resource], Micros]

_Step: TypeAlias = tuple[int, float, float, float, int]
"""From when on; cores, MiB and GPUs; ``SizeStep.least``."""

_Rule: TypeAlias = tuple[int, int, Assumption, int, int]
"""Start, end, rule, and the micros that are counted under it, of each resource."""

_Settled: TypeAlias = dict[Resource, dict[Measure, dict[Category, dict[str, Micros]]]]

_FACTS = msgspec.json.Decoder(PilotFacts)
_STEPS = msgspec.json.Decoder(tuple[_Step, ...])
_RULES = msgspec.json.Decoder(tuple[_Rule, ...])
_SETTLED = msgspec.json.Decoder(_Settled)


def _amount(value: float) -> float:
    if not isfinite(value):
        raise ValueError(f"{value!r} is not a size")
    return float(value)


# --- Pilots -----------------------------------------------------------------------------------

PILOT_READ = tuple(pilots.c.keys())
PILOT_COLUMNS = PILOT_READ[:-1]
"""All but ``runs_pruned``, which retention alone writes."""
_AS_STORED = tuple(name for name in PilotRow._fields if name in pilots.c)


def pilot_values(row: PilotRow) -> Values:
    """Return the columns of a pilot; raises ``ValueError`` for what cannot be stored."""
    key = row.identity
    return (
        *(whole(row.id), identity(key.name), whole(key.started), identity(key.factory_job)),
        *(clean(key.factory), clean(key.key.site), clean(key.key.entry), clean(key.group)),
        *(clean(key.node), key.origin, time_us(row.start_us), maybe_time(row.end_us)),
        time_us(row.posted_last_heard_us),
        _json([(step.at_us, *map(_amount, step.size), step.least) for step in row.steps]),
        str(row.validation),
        _json(_rules(row)),
        *(row.end_source, maybe_time(row.retire_us), maybe_time(row.die_us)),
        *(maybe_time(row.known_until_us), time_us(row.settled_until_us), int(row.ran_jobs)),
        *(int(row.closed), _json(_nested(row.settled)), clean(row.failure)),
        *(maybe_time(row.validation_end_us), time_us(row.last_heard_us)),
        identity(key.factory_number),
        _stored_facts(row.facts),
        *(maybe_time(row.last_polled_us), whole(row.unit_mib)),
    )


def pilot_row(values: Sequence[Any]) -> PilotRow:
    """Return the pilot of the columns ``PILOT_READ``, or raise ``Undecodable``."""
    stored = dict(zip(PILOT_READ, values, strict=True))
    try:
        rules = _RULES.decode(stored["estimated"])
        identity = PilotIdentity(
            name=stored["name"],
            started=stored["started"],
            factory_job=stored["factory_job"],
            factory=stored["factory"],
            key=EntryKey(stored["site"], stored["entry"]),
            group=stored["group_name"],
            node=stored["node"],
            origin=stored["origin"],
        )
        stored |= {
            "steps": _stored_steps(stored["steps"]),
            "validation": Validation(stored["validation"]),
            "ran_jobs": bool(stored["ran_jobs"]),
            "closed": bool(stored["closed"]),
            "settled": _flat(_SETTLED.decode(stored["settled"])),
            "facts": _FACTS.decode(stored["facts"]),
        }
        return PilotRow(
            **{name: stored[name] for name in _AS_STORED},
            identity=identity,
            assumed=_assumed(rules),
            assumed_micros=_counted(rules),
        )
    except (ValueError, TypeError, msgspec.MsgspecError) as exc:
        raise Undecodable(f"pilot {stored['id']}: {exc!r}") from exc


KIND_COLUMNS = ("id", "facts", "steps", "estimated", "site", "factory", "group_name", "origin")


def pilot_kind(values: Sequence[Any]) -> PilotKind | None:
    """Return the kind of the columns ``KIND_COLUMNS``, or raise ``Undecodable``; None: no size."""
    number, facts, steps, estimated, site, factory, group, origin = values
    try:
        sizes = [step.size for step in _stored_steps(steps)]
        rules = frozenset(_assumed(_RULES.decode(estimated)))
        reported = _FACTS.decode(facts).reported(origin)
        return (
            PilotKind(reported, sizes[-1], rules, site, factory, group, origin) if sizes else None
        )
    except (ValueError, TypeError, msgspec.MsgspecError) as exc:
        raise Undecodable(f"pilot {number}: {exc!r}") from exc


def _stored_steps(stored: str) -> tuple[SizeStep, ...]:
    return tuple(
        SizeStep(at, Size(cores, memory_mib, gpus), least)
        for at, cores, memory_mib, gpus, least in _STEPS.decode(stored)
    )


def _stored_facts(facts: PilotFacts) -> str:
    """Return what sources say as JSON; raises ``ValueError`` for what cannot be stored."""
    output, failed = facts.output, facts.failed_ads
    if output is not None and output.failure:
        facts = replace(facts, output=replace(output, failure=clean(output.failure)))
    if failed is not None and failed.failure:
        facts = replace(facts, failed_ads=replace(failed, failure=clean(failed.failure)))
    try:
        return _json(facts)
    except OverflowError as exc:
        raise ValueError(f"a number in what sources say of a pilot: {exc}") from exc


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _rules(row: PilotRow) -> list[_Rule]:
    nowhere: Interval = (0, 0)
    rules = {*row.assumed, *(rule for rule, _ in row.assumed_micros)}
    return [
        (*_interval(row.assumed.get(rule, nowhere)), rule, *counted)
        for rule in (Assumption if rules else ())
        if rule in rules
        for counted in [_micros(row, rule)]
        if rule in row.assumed or any(counted)
    ]


def _interval(interval: Interval) -> Interval:
    start, end = (time_us(min(at, LATEST_US)) for at in interval)
    return start, end


def _micros(row: PilotRow, rule: Assumption) -> tuple[int, int]:
    cpu, gpu = (whole(row.assumed_micros.get((rule, resource), 0)) for resource in RESOURCES)
    return cpu, gpu


def _assumed(rules: Sequence[_Rule]) -> dict[Assumption, Interval]:
    return {rule: (start, end) for start, end, rule, *_ in rules if start < end}


def _counted(rules: Sequence[_Rule]) -> Counted:
    return {
        (rule, resource): micros
        for _, _, rule, *counted in rules
        for resource, micros in zip(RESOURCES, counted, strict=True)
        if micros
    }


def counted_rules(estimated: str) -> Counted:
    """Return what the column ``estimated`` has as counted, or raise ``Undecodable``."""
    try:
        return _counted(_RULES.decode(estimated))
    except msgspec.MsgspecError as exc:
        raise Undecodable(f"what is estimated of a pilot: {exc!r}") from exc


def _nested(settled: OwnAmounts) -> _Settled:
    nested: _Settled = {}
    for (resource, measure, category, outcome), micros in settled.items():
        categories = nested.setdefault(resource, {}).setdefault(measure, {})
        categories.setdefault(category, {})[clean(outcome)] = whole(micros)
    return nested


def _flat(nested: _Settled) -> dict[tuple[Resource, Measure, Category, str], Micros]:
    return {
        (resource, measure, category, outcome): micros
        for resource, measures in nested.items()
        for measure, categories in measures.items()
        for category, outcomes in categories.items()
        for outcome, micros in outcomes.items()
    }


# --- Runs ---------------------------------------------------------------------------------

RUN_COLUMNS = tuple(runs.c.keys())


def run_values(row: RunRow) -> Values:
    """Return the columns of a run; raises ``ValueError`` for what cannot be stored."""
    category, label, evidence = row.outcome or (None, "", None)
    return (
        identity(row.key.job),
        whole(row.key.number),
        whole(row.pilot),
        time_us(row.start_us),
        None if row.end_us is None else time_us(row.end_us),
        *map(_amount, row.size),
        clean(row.user),
        clean(row.job_group),
        None if category is None else str(category),
        None if category is None else clean(label),
        None if category is None else int(evidence == "estimated"),
        str(row.result),
        int(row.open),
        *_kinds(row.settled),
        maybe_time(row.last_shown_us),
        encode_facts(row),
    )


def run_row(values: Sequence[Any]) -> RunRow:
    """Return the run of the columns ``RUN_COLUMNS``, or raise ``Undecodable``."""
    try:
        return _run_row(values)
    except (ValueError, KeyError, TypeError) as exc:
        raise Undecodable(f"job {values[0]} run {values[1]}: {exc!r}") from exc


def _run_row(values: Sequence[Any]) -> RunRow:
    (job, number, pilot, start, end, cores, memory, gpus, user, group, *rest) = values
    (category, label, estimated, result, is_open, *amounts, last_shown, facts) = rest
    row = RunRow(
        pilot=pilot,
        key=RunKey(job, number),
        start_us=start,
        end_us=end,
        size=Size(cores, memory, gpus),
        user=user,
        job_group=group,
        outcome=None if category is None else _stored_outcome(category, label, estimated),
        result=result,
        open=bool(is_open),
        settled={kind: n for kind, n in zip(KINDS, amounts, strict=True) if n is not None},
        facts=(),
        last_shown_us=last_shown,
    )
    return row._replace(facts=decode_facts(row, facts))


def _kinds(settled: Mapping[tuple[Resource, Measure], Micros]) -> Values:
    if settled.keys() - set(KINDS):
        raise ValueError(f"amounts of {settled.keys()} have no column")
    return tuple(None if kind not in settled else whole(settled[kind]) for kind in KINDS)


@lru_cache(maxsize=4096)
def _stored_outcome(category: str, label: str, estimated: int) -> Outcome:
    return Outcome(Category(category), label, "estimated" if estimated else "measured")
