"""Pilots and attempts as rows: values that go into columns, and back, equal to what they were.

Texts that anybody's pilot may send are made storable (``clean``).  Identities (names, job ids) may
be longer than other names, and one that is too long ends with its own hash, so that no two
become equal.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import isfinite
from typing import Any, TypeAlias

import msgspec

from gwmond.ledger.fact_codec import IDENTITY_CHARACTERS, decode_facts, encode_facts, encode_json
from gwmond.ledger.writes import clean
from gwmond.model.facts import EntryKey
from gwmond.model.pilot_facts import (
    Assumption,
    AttemptKey,
    Category,
    Interval,
    Measure,
    Outcome,
    Resources,
    Step,
    Validation,
)
from gwmond.model.pilot_sources import PilotFacts, replace
from gwmond.model.stored_pilots import (
    AttemptRow,
    Micros,
    OwnAmounts,
    PilotIdentity,
    PilotKind,
    PilotRow,
)
from gwmond.model.units import RESOURCES, Resource

Values: TypeAlias = tuple[Any, ...]
Counted: TypeAlias = dict[tuple[Assumption, Resource], Micros]

HOURS = 10**7  # until the year 3110
LATEST_US = HOURS * 3_600_000_000
LARGEST = 2**63 - 1

KINDS: tuple[tuple[Resource, Measure], ...] = (
    ("cpu", "resource"),
    ("cpu", "canonical"),
    ("gpu", "resource"),
    ("gpu", "canonical"),
)
"""What an attempt's four columns of micros are, in their order."""


_FACTS = msgspec.json.Decoder(PilotFacts)


class Undecodable(Exception):
    """A stored row is not what was written: the ledger is damaged."""


def identity(text: str) -> str:
    """Return what names a pilot or a job as every database can store it, and still unique."""
    stored = clean(text, IDENTITY_CHARACTERS)
    if len(text) > IDENTITY_CHARACTERS or len(stored) == IDENTITY_CHARACTERS > len(text):
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        stored = f"{stored[: IDENTITY_CHARACTERS - 33]}…{digest}"
    return stored


def whole(value: object, most: int = LARGEST, least: int = 0) -> int:
    """Return an exact integer that fits its column, or raise ``ValueError``."""
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"{value!r} is not an exact integer between {least} and {most}")
    return value


def time_us(value: object) -> int:
    """Return a time, or raise ``ValueError`` for one that no clock shows."""
    return whole(value, LATEST_US)


def maybe_time(value: object) -> int | None:
    return None if value is None else whole(value, LATEST_US)


def _amount(value: float) -> float:
    if not isfinite(value):
        raise ValueError(f"{value!r} is not a size")
    return float(value)


# --- Pilots -----------------------------------------------------------------------------------

PILOT_COLUMNS = (
    *("id", "name", "started", "factory_job", "factory", "site", "entry", "group_name", "node"),
    *("origin", "start_us", "end_us", "contact_us", "steps", "validation", "estimated", "ended"),
    *("retire_us", "die_us", "known_until_us", "mark_us", "ran_jobs", "closed", "settled"),
    *("failure", "validation_end_us", "heard_us", "factory_number", "facts"),
)
PILOT_READ = (*PILOT_COLUMNS, "attempts_pruned")


def pilot_values(row: PilotRow) -> Values:
    """Return the columns of a pilot; raises ``ValueError`` for what cannot be stored."""
    key = row.identity
    return (
        *(whole(row.id), identity(key.name), whole(key.started), identity(key.factory_job)),
        *(clean(key.factory), clean(key.key.site), clean(key.key.entry), clean(key.group)),
        *(clean(key.node), key.origin, time_us(row.start_us), maybe_time(row.end_us)),
        time_us(row.contact_us),
        encode_json([(step.at_us, *map(_amount, step.size), step.least) for step in row.steps]),
        str(row.validation),
        encode_json(_rules(row)),
        *(row.ended, maybe_time(row.retire_us), maybe_time(row.die_us)),
        *(maybe_time(row.known_until_us), time_us(row.mark_us), int(row.ran_jobs)),
        *(int(row.closed), encode_json(_nested(row.settled)), clean(row.failure)),
        *(maybe_time(row.validation_end_us), time_us(row.heard_us)),
        identity(key.factory_number),
        _encoded(row.facts),
    )


def pilot_row(values: Sequence[Any]) -> PilotRow:
    """Return the pilot of the columns ``PILOT_READ``, or raise ``Undecodable``."""
    try:
        return _pilot_row(values)
    except (ValueError, KeyError, TypeError, msgspec.MsgspecError) as exc:
        raise Undecodable(f"pilot {values[0]}: {exc!r}") from exc


def _pilot_row(values: Sequence[Any]) -> PilotRow:
    (number, name, started, job, factory, site, entry, group, node, origin, *rest) = values
    (start, end, contact, steps, validation, estimated, ended, retire, die, known, *rest) = rest
    (mark, ran_jobs, closed, settled, failure, validation_end, heard, _, facts, pruned) = rest
    key = EntryKey(site, entry)
    assumed, counted = _stored_rules(json.loads(estimated))
    return PilotRow(
        id=number,
        identity=PilotIdentity(name, started, job, factory, key, group, node, origin),
        start_us=start,
        end_us=end,
        contact_us=contact,
        steps=_stored_steps(steps),
        validation=Validation(validation),
        assumed=assumed,
        ended=ended,
        retire_us=retire,
        die_us=die,
        known_until_us=known,
        mark_us=mark,
        ran_jobs=bool(ran_jobs),
        closed=bool(closed),
        settled=_flat(json.loads(settled)),
        attempts_pruned=pruned,
        failure=failure,
        validation_end_us=validation_end,
        heard_us=heard,
        assumed_micros=counted,
        facts=_FACTS.decode(facts),
    )


KIND_COLUMNS = ("id", "facts", "steps", "estimated", "site", "factory", "group_name", "origin")


def pilot_kind(values: Sequence[Any]) -> PilotKind | None:
    """Return the kind of the columns ``KIND_COLUMNS``, or raise ``Undecodable``; None: no size."""
    number, facts, steps, estimated, site, factory, group, origin = values
    try:
        sizes = [step.size for step in _stored_steps(steps)]
        rules = frozenset(_stored_rules(json.loads(estimated))[0])
        reported = _FACTS.decode(facts).reported(origin)
        return (
            PilotKind(reported, sizes[-1], rules, site, factory, group, origin) if sizes else None
        )
    except (ValueError, KeyError, TypeError, msgspec.MsgspecError) as exc:
        raise Undecodable(f"pilot {number}: {exc!r}") from exc


def _stored_steps(stored: str) -> tuple[Step, ...]:
    """Return a pilot's steps; in those of earlier releases ``least`` was 0 and is not written."""
    return tuple(
        Step(at, Resources(cores, memory_mib, gpus), *(least or (0,)))
        for at, cores, memory_mib, gpus, *least in json.loads(stored)
    )


def _encoded(facts: PilotFacts) -> str:
    """Return what sources say as JSON; raises ``ValueError`` for what cannot be stored."""
    output, failed = facts.output, facts.failed_ads
    if output is not None and output.failure:
        facts = replace(facts, output=replace(output, failure=clean(output.failure)))
    if failed is not None and failed.failure:
        facts = replace(facts, failed_ads=replace(failed, failure=clean(failed.failure)))
    try:
        return msgspec.json.encode(facts).decode()
    except OverflowError as exc:
        raise ValueError(f"a number in what sources say of a pilot: {exc}") from exc


def _rules(row: PilotRow) -> list[tuple[int | str, ...]]:
    """Return rows of start, end, rule and the micros that are counted under it, by resource."""
    nowhere: Interval = (0, 0)
    return [
        (
            *(time_us(min(at, LATEST_US)) for at in row.assumed.get(rule, nowhere)),
            rule,
            *(whole(row.assumed_micros.get((rule, resource), 0)) for resource in RESOURCES),
        )
        for rule in Assumption
        if rule in row.assumed
        or any((rule, resource) in row.assumed_micros for resource in RESOURCES)
    ]


def _stored_rules(
    rows: Sequence[Sequence[Any]],
) -> tuple[dict[Assumption, Interval], Counted]:
    """Return what is assumed and what of it is counted.

    Older rows have neither rule nor count, or count CPU alone.
    """
    assumed: dict[Assumption, Interval] = {}
    counted: Counted = {}
    for start, end, *rest in rows:
        rule = Assumption(rest[0]) if rest else Assumption.END
        if start < end:
            known = assumed.get(rule, (start, end))
            assumed[rule] = min(known[0], start), max(known[1], end)
        for resource, micros in zip(RESOURCES, rest[1:], strict=False):
            if micros:
                counted[rule, resource] = micros
    return assumed, counted


def counted_rules(estimated: str) -> Counted:
    """Return what the column ``estimated`` has as counted, or raise ``Undecodable``."""
    try:
        return _stored_rules(json.loads(estimated))[1]
    except (ValueError, KeyError, TypeError, IndexError) as exc:
        raise Undecodable(f"what is estimated of a pilot: {exc!r}") from exc


def _nested(settled: OwnAmounts) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for (resource, measure, category, outcome), micros in settled.items():
        categories = nested.setdefault(resource, {}).setdefault(measure, {})
        categories.setdefault(category, {})[clean(outcome)] = whole(micros)
    return nested


def _flat(nested: dict[Any, Any]) -> dict[tuple[Resource, Measure, Category, str], Micros]:
    return {
        (resource, measure, Category(category), outcome): int(micros)
        for resource, measures in nested.items()
        for measure, categories in measures.items()
        for category, outcomes in categories.items()
        for outcome, micros in outcomes.items()
    }


# --- Attempts ---------------------------------------------------------------------------------

ATTEMPT_COLUMNS = (
    *("job", "run", "pilot", "start_us", "end_us", "cores", "memory_mib", "gpus", "user_name"),
    *("job_group", "category", "outcome", "estimated", "result", "open"),
    *("cpu_resource", "cpu_canonical", "gpu_resource", "gpu_canonical", "facts"),
)


def attempt_values(row: AttemptRow) -> Values:
    """Return the columns of an attempt; raises ``ValueError`` for what cannot be stored."""
    outcome = row.outcome
    return (
        identity(row.key.job),
        whole(row.key.run),
        whole(row.pilot),
        time_us(row.start_us),
        None if row.end_us is None else time_us(row.end_us),
        *map(_amount, row.size),
        clean(row.user),
        clean(row.job_group),
        *((None, None, None) if outcome is None else _outcome(outcome)),
        str(row.result),
        int(row.open),
        *_kinds(row.settled),
        encode_facts(row),
    )


def attempt_row(values: Sequence[Any]) -> AttemptRow:
    """Return the attempt of the columns ``ATTEMPT_COLUMNS``, or raise ``Undecodable``."""
    try:
        return _attempt_row(values)
    except (ValueError, KeyError, TypeError) as exc:
        raise Undecodable(f"job {values[0]} run {values[1]}: {exc!r}") from exc


def _attempt_row(values: Sequence[Any]) -> AttemptRow:
    (job, run, pilot, start, end, cores, memory, gpus, user, group, *rest) = values
    (category, label, estimated, result, is_open, *amounts, facts) = rest
    row = AttemptRow(
        pilot=pilot,
        key=AttemptKey(job, run),
        start_us=start,
        end_us=end,
        size=Resources(cores, memory, gpus),
        user=user,
        job_group=group,
        outcome=None if category is None else _stored_outcome(category, label, estimated),
        result=result,
        open=bool(is_open),
        settled={kind: n for kind, n in zip(KINDS, amounts, strict=True) if n is not None},
        facts=(),
    )
    return row._replace(facts=decode_facts(row, facts))


def _kinds(settled: Mapping[tuple[Resource, Measure], Micros]) -> Values:
    if settled.keys() - set(KINDS):
        raise ValueError(f"amounts of {settled.keys()} have no column")
    return tuple(None if kind not in settled else whole(settled[kind]) for kind in KINDS)


def _outcome(outcome: Outcome) -> Values:
    return str(outcome.category), clean(outcome.label), int(outcome.evidence == "estimated")


@lru_cache(maxsize=4096)
def _stored_outcome(category: str, label: str, estimated: int) -> Outcome:
    return Outcome(Category(category), label, "estimated" if estimated else "measured")
