"""The result in XML that a pilot writes at its end: ``OSGTestResult``.

Format: GS:172-302 (construct_xml, extract_parent_xml_detail, basexml2simplexml,
simplexml2longxml).  The short one stands at the end of stdout, the long one, which also has the
result of every test, compressed at the end of stderr.

The shell pastes whatever a test printed into it, so it is often not well-formed; then what can be
found by name is taken (``xml_malformed``).  A document type or entities are never written by a
pilot: such a text is refused as a whole (``xml_refused``).

The long one's ``subtestlist`` has an OSGTestResult of each script of the validation, with its path
as id.  Times are whole seconds.  Of a test's result only what can be found by name is taken.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple
from xml.etree import ElementTree

from gwmond.model.pilots.file_facts import Jobs, JobStatistics, PilotName, XmlResult
from gwmond.model.pilots.pilot_facts import ValidationTest
from gwmond.model.problem_names import ProblemName
from gwmond.model.times import SECOND_US
from gwmond.sources.gwms import texts

_VALUE_CHARACTERS = 1000
_RESULT, _SUBTESTS = "OSGTestResult", "subtestlist"
_LEAVES = frozenset({"env", "tStart", "tEnd", "status", "metric"})
_QUOTE = '["”“]'
_NAMED = re.compile(
    rf"<(metric|env)\s+name={_QUOTE}([^\"”“<>]{{1,200}}){_QUOTE}([^<>]{{0,500}})>([^<]{{0,1000}})</\1>"
)
_PLAIN = re.compile(r"<(status|tStart|tEnd)>([^<]{0,100})</\1>")
_TS = re.compile(rf"\bts={_QUOTE}([^\"”“]{{1,40}}){_QUOTE}")
_DECLARATION = re.compile(r"<!(DOCTYPE|ENTITY)")

MOST_TESTS = 16
_SUB = re.compile(rb'<OSGTestResult id="([^"<>]{1,200})"[^<>]{0,80}>(.*?)</OSGTestResult>', re.S)
_TIMES = {tag: re.compile(rb"<%b>([^<]{0,100})</%b>" % (tag, tag)) for tag in (b"tStart", b"tEnd")}
_TEST_STATUS = re.compile(rb"<status>([^<]{0,100})</status>")
_TEST_FAILURE = re.compile(rb'<metric name="failure"[^<>]{0,300}>([^<]{0,100})</metric>')
_LIST = b"<subtestlist>", b"</subtestlist>"


class ParsedResult(NamedTuple):
    """A result, and what was wrong with its text."""

    result: XmlResult | None
    wrong: ProblemName | None = None


class _Test:
    """One OSGTestResult as it is being read."""

    def __init__(self) -> None:
        self.env: dict[str, str] = {}
        self.metrics: dict[str, str] = {}
        self.plain: dict[str, str] = {}
        self.time = ""  # when a metric was written
        self.early = False

    def take(self, tag: str, name: str, value: str, *, nested: bool) -> None:
        if tag == "env":
            self.env[name] = value
        elif tag == "metric":
            self.metrics[name] = value
            self.early |= name == "failure" and not nested
        else:
            self.plain[tag] = value


def parse(raw: bytes) -> ParsedResult:
    """Return what a result says; nothing in it is ever expanded or fetched."""
    text = texts.text(raw).strip()  # whatever encoding it says
    if _DECLARATION.search(text):
        return ParsedResult(None, ProblemName.XML_REFUSED)
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError:
        return _by_name(text)
    if root.tag != _RESULT:
        return ParsedResult(None, ProblemName.XML_MALFORMED)
    test = _Test()
    for part in root:
        for element in part.iter() if part.tag != _SUBTESTS else ():
            if element.tag in _LEAVES:
                test.time = element.get("ts", test.time)
                value = (element.text or "").strip()[:_VALUE_CHARACTERS]
                test.take(element.tag, element.get("name", ""), value, nested=part.tag == "result")
    return ParsedResult(_result(test))


def _by_name(value: str) -> ParsedResult:
    """Return what the elements say that stand whole in a text which is not well-formed."""
    begin, end = value.find("<subtestlist>"), value.rfind("</subtestlist>")
    if begin >= 0:
        value = value[:begin] + (value[end:] if end > begin else "")
    test = _Test()
    for tag, name, attributes, content in _NAMED.findall(value):
        test.take(tag, name, content.strip(), nested=True)
        written = _TS.search(attributes)
        test.time = written[1] if written else test.time
    for tag, content in _PLAIN.findall(value):
        test.plain[tag] = content.strip()
    if not (test.env or test.metrics or test.plain):
        return ParsedResult(None, ProblemName.XML_MALFORMED)
    return ParsedResult(_result(test), ProblemName.XML_MALFORMED)


def _time(test: _Test, tag: str) -> tuple[int, int | None] | None:
    return texts.iso(test.plain.get(tag, ""))


def _epoch(moment: tuple[int, int | None] | None) -> int | None:
    return None if moment is None or moment[1] is None else moment[0]


def _result(test: _Test) -> XmlResult:
    metrics, env = test.metrics, test.env
    condor = metrics.get("CondorDuration")
    start, end = _time(test, "tStart"), _time(test, "tEnd")
    moments = (start, end) if start or end else (texts.iso(test.time),)
    offsets = tuple((at[0] // SECOND_US, at[1]) for at in moments if at and at[1] is not None)
    return XmlResult(
        ok={"OK": True, "ERROR": False}.get(test.plain.get("status", "")),
        start_us=_epoch(start),
        end_us=_epoch(end),
        test=texts.label(metrics.get("TestID", "")),
        failure=texts.label(metrics.get("failure", "")),
        early=test.early,
        condor_s=None if condor is None else texts.number(condor),
        jobs=_jobs(metrics),
        name=PilotName(
            factory=texts.known(env.get("glidein_factory", "")),
            instance=texts.known(env.get("glidein_name", "")),
            entry=texts.known(env.get("glidein_entry", "")),
            cluster=texts.number(env.get("condorg_cluster", "")),
            proc=texts.number(env.get("condorg_subcluster", "")),
            schedd=texts.known(env.get("condorg_schedd", "")),
            frontend=texts.known(env.get("client_name", "")),
            group=texts.known(env.get("client_group", "")),
            node=texts.known(env.get("hostname", "")),
        ),
        offsets=offsets,
    )


def _jobs(metrics: dict[str, str]) -> JobStatistics | None:
    def jobs_of_kind(kind: str) -> Jobs | None:
        jobs = texts.number(metrics.get(f"{kind}JobsNr", ""))
        time = texts.number(metrics.get(f"{kind}JobsTime", ""))
        return None if jobs is None or time is None else Jobs(jobs, time)

    total = jobs_of_kind("Total")
    if total is None:
        return None
    return JobStatistics(total, jobs_of_kind("goodZ"), jobs_of_kind("goodNZ"))


def tests_of(result: bytes) -> tuple[tuple[ValidationTest, ...], int]:
    """Return the tests that failed and the longest that took a second, at most ``MOST_TESTS``.

    They are in the order of time; also returned is how many tests there are besides.
    """
    begin, end = result.find(_LIST[0]), result.rfind(_LIST[1])
    if begin < 0:
        return (), 0
    inner = result[begin : end if end > begin else len(result)]
    tests = [test for match in _SUB.finditer(inner) if (test := _test(match)) is not None]
    notable = [test for test in tests if test.failure or test.end_us - test.start_us >= SECOND_US]
    notable.sort(key=lambda test: (not test.failure, test.start_us - test.end_us, test))
    kept = sorted(notable[:MOST_TESTS], key=lambda test: (test.start_us, test.end_us, test.name))
    return tuple(kept), len(tests) - len(kept)


def _test(match: re.Match[bytes]) -> ValidationTest | None:
    """Return a test; None without its times."""
    name, body = texts.label(match[1]), match[2]
    start, end = (_test_time(pattern, body) for pattern in _TIMES.values())
    if start is None or end is None or end < start:
        return None
    status = _TEST_STATUS.search(body)
    if status is None or status[1].strip() != b"ERROR":
        return ValidationTest(name, start, end)
    failure = _TEST_FAILURE.search(body)
    return ValidationTest(name, start, end, texts.label(failure[1]) if failure else "Unknown")


def _test_time(pattern: re.Pattern[bytes], body: bytes) -> int | None:
    match = pattern.search(body)
    return _moment(match[1]) if match else None


@lru_cache(256)  # most tests take less than a second: the next one has the same times
def _moment(stamp: bytes) -> int | None:
    moment = texts.iso(texts.text(stamp))
    return None if moment is None or moment[1] is None else moment[0]
