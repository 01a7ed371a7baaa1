"""The result in XML that a pilot writes at its end: ``OSGTestResult``.

Format: GS:172-302 (construct_xml, extract_parent_xml_detail, basexml2simplexml,
simplexml2longxml).  The short one stands at the end of stdout, the long one, which also has the
result of every test, compressed at the end of stderr.

The shell pastes whatever a test printed into it, so it is often not well-formed; then what can be
found by name is taken (``xml_malformed``).  A document type or entities are never written by a
pilot: such a text is refused as a whole (``xml_refused``).
"""

from __future__ import annotations

import re
from typing import NamedTuple
from xml.parsers import expat

from gwmond.model.pilots.file_facts import Jobs, JobStatistics, PilotName, XmlResult
from gwmond.model.problem_names import ProblemName
from gwmond.model.times import SECOND_US
from gwmond.sources.gwms import texts

_MAX_DEPTH = 64
_VALUE_CHARACTERS = 1000
_RESULT, _LEAVES = "OSGTestResult", frozenset({"env", "tStart", "tEnd", "status", "metric"})
_QUOTE = '["”“]'
_NAMED = re.compile(
    rf"<(metric|env)\s+name={_QUOTE}([^\"”“<>]{{1,200}}){_QUOTE}([^<>]{{0,500}})>([^<]{{0,1000}})</\1>"
)
_PLAIN = re.compile(r"<(status|tStart|tEnd)>([^<]{0,100})</\1>")
_TS = re.compile(rf"\bts={_QUOTE}([^\"”“]{{1,40}}){_QUOTE}")
_TEXT, _WORD = r"[\t\n -%'-;=?-~]{0,1000}+", r"[ !#-%'-;=?-~]{0,200}+"
SHORT = re.compile(
    rf'<\?xml version="1\.0"\?>\s*<OSGTestResult id="{_WORD}" version="{_WORD}">\s*'
    rf'<operatingenvironment>(?:\s*<env name="{_WORD}">{_TEXT}</env>)*\s*</operatingenvironment>\s*'
    rf"<test>\s*(?:<cmd>{_TEXT}</cmd>\s*)?<tStart>{_TEXT}</tStart>\s*<tEnd>{_TEXT}</tEnd>\s*"
    rf"</test>\s*<result>\s*<status>{_TEXT}</status>"
    rf'(?:\s*<metric name="{_WORD}" ts="{_WORD}" uri="{_WORD}">{_TEXT}</metric>)*\s*</result>\s*'
    rf"(?:<detail>{_TEXT}</detail>\s*)?</OSGTestResult>".encode()
)
"""The short result as a pilot writes it: nothing in it needs a parser."""
_ELEMENT = re.compile(
    r'<(env|metric|status|tStart|tEnd)(?: name="([^"]*)")?(?: ts="([^"]*)")?[^>]*>([^<]*)'
)
_DECLARATION = re.compile(r"<!(DOCTYPE|ENTITY)")


class ParsedResult(NamedTuple):
    """A result, and what was wrong with its text."""

    result: XmlResult | None
    wrong: ProblemName | None = None


class _Refused(Exception):
    """A document type, an entity, or more levels than any pilot writes."""


class _Test:
    """One OSGTestResult as it is being read."""

    def __init__(self) -> None:
        self.env: dict[str, str] = {}
        self.metrics: dict[str, str] = {}
        self.plain: dict[str, str] = {}
        self.time = ""  # when a metric was written
        self.in_result = False
        self.early = False

    def take(self, tag: str, name: str, value: str, *, nested: bool) -> None:
        if tag == "env":
            self.env[name] = value
        elif tag == "metric":
            self.metrics[name] = value
            self.early |= name == "failure" and not nested
        else:
            self.plain[tag] = value


class _Handler:
    """Collects what is needed from a stream of elements."""

    def __init__(self) -> None:
        self.open: list[_Test] = []
        self.top: _Test | None = None
        self._depth = 0
        self._leaf: tuple[str, str] | None = None
        self._text: list[str] = []

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise _Refused
        if tag == _RESULT:
            test = _Test()
            self.open.append(test)
            self.top = self.top or test
        elif self.open and tag == "result":
            self.open[-1].in_result = True
        elif self.open and tag in _LEAVES:
            self._leaf, self._text = (tag, attributes.get("name", "")), []
            self.open[-1].time = attributes.get("ts", self.open[-1].time)

    def data(self, value: str) -> None:
        if self._leaf is not None and len(self._text) < 20:
            self._text.append(value[:_VALUE_CHARACTERS])

    def end(self, tag: str) -> None:
        self._depth -= 1
        if not self.open:
            return
        test = self.open[-1]
        if tag == _RESULT:
            self.open.pop()
        elif tag == "result":
            test.in_result = False
        elif self._leaf is not None and tag == self._leaf[0]:
            value = "".join(self._text).strip()[:_VALUE_CHARACTERS]
            test.take(*self._leaf, value, nested=test.in_result)
            self._leaf = None


def parse(raw: bytes) -> ParsedResult:
    """Return what a result says; nothing in it is ever expanded or fetched."""
    raw = raw.strip()
    if SHORT.fullmatch(raw):
        return ParsedResult(_result(_usual(raw)))
    handler = _Handler()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = handler.start
    parser.EndElementHandler = handler.end
    parser.CharacterDataHandler = handler.data
    parser.StartDoctypeDeclHandler = _refuse
    parser.EntityDeclHandler = _refuse
    try:
        parser.Parse(raw, True)
    except _Refused:
        return ParsedResult(None, ProblemName.XML_REFUSED)
    except (expat.ExpatError, ValueError, LookupError):  # not well-formed; an encoding unknown
        return _by_name(texts.text(raw))
    if handler.top is None:
        return ParsedResult(None, ProblemName.XML_MALFORMED)
    return ParsedResult(_result(handler.top))


def _usual(raw: bytes) -> _Test:
    """Return what a short result says that is as a pilot writes it."""
    test = _Test()
    for tag, name, time, value in _ELEMENT.findall(raw.decode("ascii")):
        test.take(tag, name, value.strip(), nested=True)
        test.time = time or test.time
    return test


def _refuse(*_: object) -> None:
    raise _Refused


def _by_name(value: str) -> ParsedResult:
    """Return what the elements say that stand whole in a text which is not well-formed."""
    if _DECLARATION.search(value):
        return ParsedResult(None, ProblemName.XML_REFUSED)
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
    offsets = tuple((one[0] // SECOND_US, one[1]) for one in moments if one and one[1] is not None)
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
