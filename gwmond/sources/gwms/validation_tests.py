"""The tests of a pilot's validation, by the long result at the end of its stderr.

Format: GS:172-302: ``subtestlist`` has an ``OSGTestResult`` of each script, with its path as id.
Times are whole seconds.  A test pastes what it likes into its own result: what cannot be found by
name is left out, and nothing is ever expanded.
"""

from __future__ import annotations

import re
from functools import lru_cache

from gwmond.model.pilots.pilot_facts import ValidationTest
from gwmond.model.times import SECOND_US
from gwmond.sources.gwms import texts

MOST = 16
_TEST = re.compile(rb'<OSGTestResult id="([^"<>]{1,200})"[^<>]{0,80}>(.*?)</OSGTestResult>', re.S)
_TIME = {tag: re.compile(rb"<%b>([^<]{0,100})</%b>" % (tag, tag)) for tag in (b"tStart", b"tEnd")}
_STATUS = re.compile(rb"<status>([^<]{0,100})</status>")
_FAILURE = re.compile(rb'<metric name="failure"[^<>]{0,300}>([^<]{0,100})</metric>')
_LIST = b"<subtestlist>", b"</subtestlist>"


def parse(result: bytes) -> tuple[tuple[ValidationTest, ...], int]:
    """Return the tests that failed and the longest that took a second, at most ``MOST``.

    They are in the order of time; also returned is how many tests there are besides.
    """
    begin, end = result.find(_LIST[0]), result.rfind(_LIST[1])
    if begin < 0:
        return (), 0
    inner = result[begin : end if end > begin else len(result)]
    found = [test for match in _TEST.finditer(inner) if (test := _test(match)) is not None]
    told = [test for test in found if test.failure or test.end_us - test.start_us >= SECOND_US]
    told.sort(key=lambda test: (not test.failure, test.start_us - test.end_us, test))
    kept = sorted(told[:MOST], key=lambda test: (test.start_us, test.end_us, test.name))
    return tuple(kept), len(found) - len(kept)


def _test(match: re.Match[bytes]) -> ValidationTest | None:
    """Return a test; None without its times."""
    name, body = texts.label(match[1]), match[2]
    start, end = (_time(pattern, body) for pattern in _TIME.values())
    if start is None or end is None or end < start:
        return None
    status = _STATUS.search(body)
    if status is None or status[1].strip() != b"ERROR":
        return ValidationTest(name, start, end)
    failure = _FAILURE.search(body)
    return ValidationTest(name, start, end, texts.label(failure[1]) if failure else "Unknown")


def _time(pattern: re.Pattern[bytes], body: bytes) -> int | None:
    found = pattern.search(body)
    return _moment(found[1]) if found else None


@lru_cache(256)  # most tests take less than a second: the next one has the same times
def _moment(stamp: bytes) -> int | None:
    moment = texts.iso(texts.text(stamp))
    return None if moment is None or moment[1] is None else moment[0]
