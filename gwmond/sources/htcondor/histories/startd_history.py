"""Source: the records of a startd's history, as a pilot's stderr has them.

A record is the lines of an ad in old syntax and then a banner, a line that begins with ``*** ``
(classad_log's and startd's AppendHistory).  What follows the last banner is not complete.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gwmond.model.problem_names import ProblemName
from gwmond.model.runs.run_facts import JobRecord
from gwmond.sources.htcondor.histories import histories

if TYPE_CHECKING:
    from collections.abc import Iterator

    import classad2

KIND = "startd_history"
RECORD_BYTES = 1 << 20
MAX_RECORDS = 20_000
MAX_WRONG = 1000
_LINE_BYTES = 1 << 16
_BANNER = re.compile(rb"^\*\*\* .*\n", re.MULTILINE)
_NEEDED = {name.lower().encode() for name in histories.query(KIND).projection}


def parse(data: bytes, limit: int = MAX_RECORDS) -> tuple[list[JobRecord], list[ProblemName]]:
    """Return the records of a whole history, and a word for each that is broken."""
    records: list[JobRecord] = []
    wrong: list[ProblemName] = []
    for body in divided(data):
        record = ProblemName.TOO_LONG if len(body) > RECORD_BYTES else _decode(body)
        if isinstance(record, JobRecord):
            if len(records) >= limit:
                wrong.append(ProblemName.TOO_MANY)
                break
            records.append(record)
        elif record is not None and len(wrong) < MAX_WRONG:
            wrong.append(record)
    return records, wrong


def divided(data: bytes) -> Iterator[bytes]:
    """Yield the lines of each complete record, without the banner."""
    begin = 0
    for banner in _BANNER.finditer(data):
        yield data[begin : banner.start()].removesuffix(b"\n")
        begin = banner.end()


def _decode(body: bytes) -> JobRecord | ProblemName | None:
    """Turn the lines of a record into a job record; a word says what is wrong with them.

    None: its job never ran on a slot.
    """
    ad = _parsed(body)
    return ProblemName.GARBAGE if ad is None else histories.decode(KIND, ad)


def _parsed(body: bytes) -> classad2.ClassAd | None:
    """Return the needed attributes as a ClassAd; None where the lines are none.

    Neither a line without ``=`` is one, nor are lines without a needed attribute.
    """
    import classad2  # noqa: PLC0415 (only ever in a child)
    import htcondor2  # noqa: F401, PLC0415 (before it has set classad2 up, 007 is something else)

    lines = []
    for line in body.split(b"\n"):
        name, equals, _ = line[:_LINE_BYTES].partition(b"=")
        if not equals and line.strip():
            return None
        if name.strip().lower() in _NEEDED and len(line) < _LINE_BYTES:
            lines.append(line)
    if not lines:
        return None
    raw = b"\n".join([*lines, b""])
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
    try:
        return classad2.parseNext(text, classad2.ParserType.Old)
    except Exception:  # ClassAdException, which has no base that could be named here
        return None
