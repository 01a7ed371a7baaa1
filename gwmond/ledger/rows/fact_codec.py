"""Facts of a run as compact JSON, and back, equal to what they were.

None is left out, and what is reported twice is there once: a field equal to the row's (or to the
pilot of the fact before) is only named in "="; the ending's booleans are two strings of letters.
"""

from __future__ import annotations

from functools import lru_cache
from math import isfinite
from operator import attrgetter
from typing import Any, TypeAlias

import msgspec

from gwmond.ledger.database.columns import IDENTITY_CHARACTERS, clean
from gwmond.model.facts import Size
from gwmond.model.pilots.stored_pilots import RunRow
from gwmond.model.runs.endings import Ending, Side
from gwmond.model.runs.run_facts import JobFact, Move, RunFact, Source, Transfer, Used

# The letters of fields that are true or false.  Never change one, nor one of a struct.
_FLAGS = {
    "over": "o",
    "completed": "c",
    "removed": "r",
    "own_accord": "a",
    "retried": "y",
    "began": "b",
    "early": "e",
    "sending_output": "s",
    "draining": "d",
    "preempted": "p",
    "disconnected": "l",
    "startd_ended": "n",
    "superseded": "u",
    "unsent": "w",
    "container_failed": "k",
    "by_schedd": "q",
}
_FLAG_NAMES = {letter: name for name, letter in _FLAGS.items()}


class _StoredEnding(msgspec.Struct, omit_defaults=True, frozen=True):
    """An ending; ``true`` and ``false`` are letters of ``_FLAGS``."""

    true: str = msgspec.field(default="", name="+")
    false: str = msgspec.field(default="", name="-")
    exit_code: int | None = msgspec.field(default=None, name="x")
    exit_signal: int | None = msgspec.field(default=None, name="X")
    hold_code: int | None = msgspec.field(default=None, name="h")
    hold_subcode: int | None = msgspec.field(default=None, name="H")
    vacate_code: int | None = msgspec.field(default=None, name="v")
    vacate_subcode: int | None = msgspec.field(default=None, name="V")
    failed_at: Side | None = msgspec.field(default=None, name="f")
    starter_status: int | None = msgspec.field(default=None, name="t")
    failed_transfer: str | None = msgspec.field(default=None, name="u")


_Transfer: TypeAlias = tuple[int | None, int | None, int | None, int | None]
_Job: TypeAlias = tuple[int | None, int | None, str, str, int | None, int | None]
"""A transfer, and what a record has on its job: times are relative to the fact's begin."""

_VALUES = _StoredEnding.__struct_fields__[2:]


class _StoredFact(msgspec.Struct, omit_defaults=True, gc=False):
    """A fact; ``same`` are the letters of fields that are as the row has them, or, for the pilot,
    the fact before.
    """

    source: Source = msgspec.field(name="s")
    written_us: int = msgspec.field(name="w")
    job: str | None = msgspec.field(default=None, name="j")
    shadow_start: int | msgspec.UnsetType | None = msgspec.field(default=msgspec.UNSET, name="r")
    pilot: str | None = msgspec.field(default=None, name="p")
    user: str | None = msgspec.field(default=None, name="u")
    job_group: str | None = msgspec.field(default=None, name="g")
    start_us: int | None = msgspec.field(default=None, name="b")
    end_us: int | None = msgspec.field(default=None, name="e")
    size: Size | None = msgspec.field(default=None, name="z")
    activated_us: int | None = msgspec.field(default=None, name="a")
    executing_us: int | None = msgspec.field(default=None, name="x")
    transfer_in: _Transfer | None = msgspec.field(default=None, name="i")
    transfer_out: _Transfer | None = msgspec.field(default=None, name="o")
    moved_in: int | None = msgspec.field(default=None, name="I")
    moved_out: int | None = msgspec.field(default=None, name="O")
    about_job: _Job | None = msgspec.field(default=None, name="q")
    used: Used | None = msgspec.field(default=None, name="m")
    wants: str = msgspec.field(default="", name="k")
    project: str = msgspec.field(default="", name="P")
    accounting_group: str = msgspec.field(default="", name="G")
    yields: bool = msgspec.field(default=False, name="y")
    moves: tuple[Move, ...] = msgspec.field(default=(), name="M")
    same: str = msgspec.field(default="", name="=")
    ending: _StoredEnding | None = msgspec.field(default=None, name="!")


_SAME = {"pilot": "p", "user": "u", "job_group": "g", "start_us": "b", "end_us": "e", "size": "z"}
_SAME_VALUES = attrgetter(*_SAME)
_TRANSFERS = (("transfer_in", "i", "moved_in"), ("transfer_out", "o", "moved_out"))
_JOB, _USED = "q", "m"
_TEXTS = "wants", "project", "accounting_group"
_NO_FACT = RunFact(Source.INFERRED, "", None, 0)
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(list[_StoredFact])


def encode_facts(row: RunRow) -> str:
    """Return the JSON of a row's facts; raises ``ValueError`` for what cannot be stored."""
    base, before = _of_row(row), None
    stored = []
    for fact in row.facts:
        if fact.size is not None and not all(map(isfinite, fact.size)):
            raise ValueError(f"{fact.size} is not a size")
        record = _StoredFact(fact.source, fact.written_us, ending=_stored_ending(fact.ending))
        if fact.job != row.key.job:
            record.job = clean(fact.job, IDENTITY_CHARACTERS)
        if fact.shadow_start != row.key.number:
            record.shadow_start = fact.shadow_start
        for name, value, other in zip(_SAME, _SAME_VALUES(fact), base, strict=True):
            if value is None:
                continue
            if value == other:
                record.same += _SAME[name]
            else:
                setattr(record, name, _clean(value))
        record.activated_us, record.executing_us = fact.activated_us, fact.executing_us
        record.yields, record.moves = fact.yields, fact.moves
        _put_trace(record, fact, before)
        stored.append(record)
        before = fact
        base = (fact.pilot, *base[1:])
    return _encoder.encode(stored).decode()


def decode_facts(row: RunRow, text: str) -> tuple[RunFact, ...]:
    """Return the facts of a row whose other fields are decoded already.

    Raises ``ValueError`` for what was not written here.
    """
    try:
        stored = _decoder.decode(text)
    except msgspec.MsgspecError as exc:
        raise ValueError(str(exc)) from exc
    facts: list[RunFact] = []
    base = _of_row(row)
    for record in stored:
        values = {
            name: other if letter in record.same else getattr(record, name)
            for name, letter, other in zip(_SAME, _SAME.values(), base, strict=True)
        }
        zero, before = values["start_us"] or 0, facts[-1] if facts else _NO_FACT
        facts.append(
            RunFact(
                source=record.source,
                job=row.key.job if record.job is None else record.job,
                shadow_start=row.key.number
                if record.shadow_start is msgspec.UNSET
                else record.shadow_start,
                written_us=record.written_us,
                ending=Ending() if record.ending is None else _ending(record.ending),
                activated_us=record.activated_us,
                executing_us=record.executing_us,
                transfer_in=before.transfer_in
                if "i" in record.same
                else _transfer(record.transfer_in, record.moved_in, zero),
                transfer_out=before.transfer_out
                if "o" in record.same
                else _transfer(record.transfer_out, record.moved_out, zero),
                about_job=before.about_job if _JOB in record.same else _job(record, zero),
                used=before.used if _USED in record.same else record.used,
                yields=record.yields,
                moves=record.moves,
                **values,
            )
        )
        base = (values["pilot"], *base[1:])
    return tuple(facts)


def _put_trace(record: _StoredFact, fact: RunFact, before: RunFact | None) -> None:
    """Put the fields that only traces need; those that equal the fact before are only named."""
    zero = fact.start_us or 0
    if fact.used is not None and before is not None and fact.used == before.used:
        record.same += _USED
    else:
        record.used = fact.used
    for name, letter, own in _TRANSFERS:
        transfer: Transfer | None = getattr(fact, name)
        if transfer is None:
            continue
        if before is not None and transfer == getattr(before, name):
            record.same += letter
        else:
            queued, start, end, total, moved = transfer
            setattr(
                record, name, (_less(queued, zero), _less(start, zero), _less(end, zero), total)
            )
            setattr(record, own, moved)
    job = fact.about_job
    if job is None:
        return
    if before is not None and job == before.about_job:
        record.same += _JOB
    else:
        for name in _TEXTS:
            setattr(record, name, _clean(getattr(job, name)))
        record.about_job = (
            *(_less(job.queued_us, zero), job.procs, _clean(job.traceparent)),
            *(_clean(job.tracestate), _less(job.left_us, zero), job.status),
        )


def _transfer(stored: _Transfer | None, moved: int | None, zero: int) -> Transfer | None:
    if stored is None:
        return None
    queued, start, end, total = stored
    return Transfer(_less(queued, -zero), _less(start, -zero), _less(end, -zero), total, moved)


def _job(record: _StoredFact, zero: int) -> JobFact | None:
    if record.about_job is None:
        return None
    queued, procs, parent, state, left, status = record.about_job
    texts = (getattr(record, name) for name in _TEXTS)
    return JobFact(_less(queued, -zero), procs, parent, state, _less(left, -zero), status, *texts)


def _less(time_us: int | None, zero: int) -> int | None:
    return None if time_us is None else time_us - zero


def _of_row(row: RunRow) -> tuple[Any, ...]:
    """Return what the fields of ``_SAME`` are compared with; a row does not have the pilot."""
    return None, row.user, row.job_group, row.start_us, row.end_us, row.size


def _clean(value: Any) -> Any:
    return clean(value, IDENTITY_CHARACTERS) if type(value) is str else value


@lru_cache(maxsize=4096)
def _stored_ending(ending: Ending) -> _StoredEnding | None:
    if ending == Ending():
        return None
    flags = {letter: getattr(ending, name) for name, letter in _FLAGS.items()}
    true = "".join(letter for letter, flag in flags.items() if flag)
    false = "".join(letter for letter, flag in flags.items() if flag is False and letter != "o")
    return _StoredEnding(true, false, *(_clean(getattr(ending, name)) for name in _VALUES))


@lru_cache(maxsize=4096)
def _ending(stored: _StoredEnding) -> Ending:
    values = {name: getattr(stored, name) for name in _VALUES}
    values |= {_FLAG_NAMES[letter]: True for letter in stored.true}
    values |= {_FLAG_NAMES[letter]: False for letter in stored.false}
    return Ending(**values)
