"""Facts of an attempt as compact JSON, and back, equal to what they were.

None is left out, and what is told twice is there once: a field equal to the row's (or to the pilot
of the fact before) is only named in "=", and the ending's booleans are two strings of letters.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from gwmond.ledger.writes import clean
from gwmond.model.attempts import AttemptFact, Source
from gwmond.model.endings import Ending
from gwmond.model.pilot_facts import Resources
from gwmond.model.stored_pilots import AttemptRow

IDENTITY_CHARACTERS = 512  # fits into an index of PostgreSQL (2704 bytes)

encode_json = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False).encode

# Letters of the JSON; a field that is not here goes by its name.  Never change one.
_PLAIN = {
    "pilot": "p",
    "user": "u",
    "job_group": "g",
    "start_us": "b",
    "end_us": "e",
    "size": "z",
    "activated_us": "a",
    "executing_us": "x",
}
_ENDING = {
    "over": "o",
    "completed": "c",
    "removed": "r",
    "exit_code": "x",
    "exit_signal": "X",
    "own_accord": "a",
    "retried": "y",
    "hold_code": "h",
    "hold_subcode": "H",
    "vacate_code": "v",
    "vacate_subcode": "V",
    "failed_at": "f",
    "began": "b",
    "early": "e",
    "sending_output": "s",
    "starter_status": "t",
    "draining": "d",
    "preempted": "p",
    "disconnected": "l",
    "startd_ended": "n",
    "superseded": "u",
    "unsent": "w",
    "container_failed": "k",
}
_ENDING_NAMES = {letter: name for name, letter in _ENDING.items()}


def _same_as(row: AttemptRow) -> tuple[Any, ...]:
    """Return what the fields of ``_PLAIN`` are compared with; a row does not tell the pilot."""
    return None, row.user, row.job_group, row.start_us, row.end_us, row.size, None, None


def encode_facts(row: AttemptRow) -> str:
    """Return the JSON of a row's facts."""
    encoded = []
    same_as = _same_as(row)
    for fact in row.facts:
        record: dict[str, Any] = {"s": fact.source, "w": fact.written_us}
        if fact.job != row.key.job:
            record["j"] = clean(fact.job, IDENTITY_CHARACTERS)
        if fact.run != row.key.run:
            record["r"] = fact.run
        told = tuple(getattr(fact, name) for name in _PLAIN)
        same = ""
        for letter, value, base in zip(_PLAIN.values(), told, same_as, strict=True):
            if value is None:
                continue
            if value == base:
                same += letter
            else:
                record[letter] = clean(value, IDENTITY_CHARACTERS) if type(value) is str else value
        if same:
            record["="] = same
        if ending := _ending(fact.ending):
            record["!"] = ending
        encoded.append(record)
        same_as = (fact.pilot, *same_as[1:])
    return encode_json(encoded)


def decode_facts(row: AttemptRow, stored: str) -> tuple[AttemptFact, ...]:
    """Return the facts of a row whose other fields are decoded already."""
    facts = []
    same_as = dict(zip(_PLAIN.values(), _same_as(row), strict=True))
    for record in json.loads(stored):
        same = record.get("=", "")
        told = {
            name: same_as[letter] if letter in same else record.get(letter)
            for name, letter in _PLAIN.items()
        }
        if "z" in record:
            told["size"] = Resources(*record["z"])
        job, run = record.get("j", row.key.job), record.get("r", row.key.run)
        ending = _stored_ending(record.get("!", {}))
        fact = AttemptFact(Source(record["s"]), job, run, record["w"], ending=ending, **told)
        facts.append(fact)
        same_as["p"] = fact.pilot
    return tuple(facts)


@lru_cache(maxsize=4096)
def _ending(ending: Ending) -> dict[str, Any]:
    record: dict[str, Any] = {}
    for name, value in zip(Ending._fields, ending, strict=True):
        if value == Ending._field_defaults[name]:
            continue
        letter = _ENDING.get(name, name)
        if type(value) is bool and len(letter) == 1:
            record["+" if value else "-"] = record.get("+" if value else "-", "") + letter
        else:
            record[letter] = value
    return record


def _stored_ending(record: dict[str, Any]) -> Ending:
    told = {_ENDING_NAMES.get(k, k): v for k, v in record.items() if k not in {"+", "-"}}
    told |= {_ENDING_NAMES[letter]: True for letter in record.get("+", "")}
    told |= {_ENDING_NAMES[letter]: False for letter in record.get("-", "")}
    return Ending(**told)
