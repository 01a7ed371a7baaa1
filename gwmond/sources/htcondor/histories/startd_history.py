"""Source: the records of a startd's history, as a pilot's stderr has them.

A record is the lines of an ad in old syntax and then a banner, a line that begins with ``*** ``
(classad_log's and startd's AppendHistory).  What follows the last banner is not complete.

Most attributes are plain numbers, words in quotes and truth values.  A record that has only such is
read without the ClassAd library, in a third of the time; any other record is read with it.  Both
ways give the same (tests/sources/test_startd_history.py).

Memory is bounded: a record longer than ``RECORD_BYTES`` is skipped and never held.
"""

from __future__ import annotations

import io
import re
from functools import lru_cache
from typing import IO, TYPE_CHECKING, Any

from gwmond.model.problem_names import ProblemName
from gwmond.model.runs.records import JobRecord
from gwmond.sources.htcondor.histories import histories

if TYPE_CHECKING:
    from collections.abc import Iterator

KIND = "startd_history"
RECORD_BYTES = 1 << 20
MAX_RECORDS = 20_000
MAX_WRONG = 1000
_CHUNK_BYTES = 1 << 20
_LINE_BYTES = 1 << 16
_BANNER = b"\n*** "
_NEEDED = {name.lower().encode(): name for name in histories.query(KIND).projection}
_ABSENT: dict[str, object] = dict.fromkeys(_NEEDED.values())
_LINE = re.compile(rb"^(\w+) = (.*)$", re.M)
_DIGITS, _ZERO = 19, ord("0")
_WORDS = re.compile(rb'"[ !#-\[\]-~]*+"')
_NUMBER = re.compile(rb"-?(?:0|[1-9]\d{0,17}|(?:0|[1-9]\d{0,14})\.\d{1,15})")
_FLAT = re.compile(rb"\[[^\[\]]*+\]")
_PLAIN = {b"true": True, b"false": False}


def parse(data: bytes, limit: int = MAX_RECORDS) -> tuple[list[JobRecord], list[ProblemName]]:
    """Return the records of a whole history, and a word for each that is broken."""
    found: list[JobRecord] = []
    wrong: list[ProblemName] = []
    for body, _ in divided(io.BytesIO(data)):
        record = ProblemName.TOO_LONG if body is None else decode(body)
        if isinstance(record, JobRecord):
            if len(found) >= limit:
                wrong.append(ProblemName.TOO_MANY)
                break
            found.append(record)
        elif record is not None and len(wrong) < MAX_WRONG:
            wrong.append(record)
    return found, wrong


def divided(stream: IO[bytes]) -> Iterator[tuple[bytes | None, int]]:
    """Yield the lines of each complete record, without the banner, and the offset of its end.

    None instead of the lines of a record that is too long.
    """
    offset = 0
    held, cut = b"\n", False  # held begins with the end of the line before a record
    while piece := stream.read(_CHUNK_BYTES):
        held += piece
        offset += len(piece)
        begin = 0
        while (at := held.find(_BANNER, begin)) >= 0 and (end := held.find(b"\n", at + 1)) >= 0:
            whole = not cut and end - begin <= RECORD_BYTES
            yield held[begin + 1 : at] if whole else None, offset - len(held) + end + 1
            begin, cut = end, False
        held = held[begin:]
        if len(held) > RECORD_BYTES:  # only whether its last line is the banner matters
            line = held.rfind(b"\n")
            held, cut = held[line : line + len(_BANNER)], True


def decode(body: bytes) -> JobRecord | ProblemName | None:
    """Turn the lines of a record into a job record; a word says what is wrong with them.

    None: its job never ran on a slot.
    """
    ad = plain(body)
    if ad is None:
        ad = parsed(body)
    return ProblemName.GARBAGE if ad is None else histories.decode(KIND, ad)


def plain(body: bytes) -> Any:
    """Return the needed attributes by name, as a ClassAd would give them; None: not plain.

    What the record does not have is there too, as None.
    """
    lines = _LINE.findall(body)
    if len(lines) != body.count(b"\n") + 1:
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
        short = len(text) < _LINE_BYTES and _WORDS.fullmatch(text)
        return text[1:-1].decode() if short else None
    if text in _PLAIN:
        return _PLAIN[text]
    if _NUMBER.fullmatch(text):
        return float(text) if b"." in text else int(text)
    return _nested(text) if _FLAT.fullmatch(text) else None


def _nested(text: bytes) -> object:
    """Return a nested ad, such as ToE, of plain values."""
    classad2 = _bindings()
    try:
        return classad2.ClassAd(text.decode("ascii"))
    except Exception:  # a ClassAdException, which has no base that could be named here
        return None


def parsed(body: bytes) -> Any:
    """Return the needed attributes as a ClassAd; None where the lines are none.

    Neither a line without ``=`` is one, nor are lines without a needed attribute.
    """
    wanted = []
    for line in body.split(b"\n"):
        name, equals, _ = line[:_LINE_BYTES].partition(b"=")
        if not equals and line.strip():
            return None
        if name.strip().lower() in _NEEDED and len(line) < _LINE_BYTES:
            wanted.append(line)
    if not wanted:
        return None
    raw = b"\n".join([*wanted, b""])
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
    classad2 = _bindings()
    try:
        return classad2.parseNext(text, classad2.ParserType.Old)
    except Exception:  # ClassAdException, which has no base that could be named here
        return None


def _bindings() -> Any:
    """Return classad2; numbers such as 007 mean something else before htcondor2 has set it up."""
    import classad2  # noqa: PLC0415 (only ever in a child)
    import htcondor2  # noqa: F401, PLC0415

    return classad2
