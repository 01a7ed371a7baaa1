"""The StartdHistoryLog inside a pilot's stderr: what ``history_files`` reads, but in memory.

Most attributes are plain numbers, words in quotes and truth values; a record that has only such is
read without the ClassAd library, which takes a third of the time.  Any other record is read as
``history_files`` does, and the two give the same (tests/gwms/test_embedded_history.py).
"""

from __future__ import annotations

import io
import re
from functools import lru_cache
from typing import Any

from gwmond.model.records import JobRecord
from gwmond.sources.htcondor import histories, history_files

MAX_RECORDS = 20_000
MAX_WRONG = 1000
_KIND = history_files.KIND
_BANNER = b"\n*** "
_NEEDED = {name.lower().encode(): name for name in histories.query(_KIND).projection}
_ABSENT: dict[str, object] = dict.fromkeys(_NEEDED.values())
_LINE = re.compile(rb"^(\w+) = (.*)$", re.M)
_DIGITS, _ZERO = 19, ord("0")
_WORDS = re.compile(rb'"[ !#-\[\]-~]*+"')
_NUMBER = re.compile(rb"-?(?:0|[1-9]\d{0,17}|(?:0|[1-9]\d{0,14})\.\d{1,15})")
_FLAT = re.compile(rb"\[[^\[\]]*+\]")
_PLAIN = {b"true": True, b"false": False}


def parse(data: bytes, limit: int = MAX_RECORDS) -> tuple[list[JobRecord], list[str]]:
    """Return the records of a history, and a word for each that is broken.

    What follows the last banner is not complete and left out.
    """
    records: list[JobRecord] = []
    wrong: list[str] = []
    begin = 0
    if data.startswith(_BANNER[1:]):
        begin = data.find(b"\n") + 1 or len(data)
        wrong.append("garbage")
    while (at := data.find(_BANNER, begin - 1 if begin else 0)) >= 0:
        end = data.find(b"\n", at + 1)
        if end < 0:
            break
        found = _record(data, begin, at, end + 1)
        begin = end + 1
        if isinstance(found, JobRecord):
            if len(records) >= limit:
                wrong.append("too_many")
                break
            records.append(found)
        elif found is not None and len(wrong) < MAX_WRONG:
            wrong.append(found)
    return records, wrong


def _record(data: bytes, begin: int, at: int, end: int) -> JobRecord | str | None:
    plain = _plain(data[begin:at]) if at - begin <= history_files.RECORD_BYTES else None
    if plain is not None:
        return histories.decode(_KIND, plain)
    for found in history_files.decoded(io.BytesIO(data[begin:end])):
        return found
    return "garbage"


def _plain(body: bytes) -> Any:
    """Return the needed attributes by name, as a ClassAd would give them; None: not plain.

    What the record does not have is there too, as None.
    """
    lines = _LINE.findall(body)
    if not lines or len(lines) != body.count(b"\n") + 1:
        return None
    found: dict[str, object] = _ABSENT.copy()
    empty = True
    for word, text in lines:
        name = _needed(word)
        if name is None:
            continue
        value = _value(text)
        if value is None:
            return None
        found[name] = value
        empty = False
    return None if empty else found


@lru_cache(4096)
def _needed(word: bytes) -> str | None:
    return _NEEDED.get(word.lower())


def _value(text: bytes) -> object:
    if text.isdigit() and len(text) < _DIGITS and (text[0] != _ZERO or len(text) == 1):
        return int(text)
    if text[:1] == b'"':
        return text[1:-1].decode() if _WORDS.fullmatch(text) else None
    if text in _PLAIN:
        return _PLAIN[text]
    if _NUMBER.fullmatch(text):
        return float(text) if b"." in text else int(text)
    return _nested(text) if _FLAT.fullmatch(text) else None


def _nested(text: bytes) -> object:
    """Return a nested ad, such as ToE, of plain values; see ``history_files`` on htcondor2."""
    import classad2  # noqa: PLC0415 (only ever in a child)
    import htcondor2  # noqa: F401, PLC0415

    try:
        return classad2.ClassAd(text.decode("ascii"))
    except Exception:  # a ClassAdException, which has no base that could be named here
        return None
