r"""Central logs of execution points: lines of RFC 5424, as in figure 7 of the 2022 report.

A line, with its structured data, which as those logs have it lacks an id (both are read)::

    <149>1 2022-01-28T00:23:36.804Z petes-36 condor_starter 15883 - \
        [cat="D_ALWAYS" slot="slot1_1" GLIDEIN_Site="X" GLIDEIN_Name="glidein_1_2"] Failed to ...

GLIDEIN_Name in these is not the factory's but the startd's name, as far as its ``@``.
"""

from __future__ import annotations

import re
from collections import Counter
from datetime import tzinfo

from gwmond.model.pilots.file_facts import CentralEvent, CentralKind, PilotName
from gwmond.model.problem_names import ProblemName
from gwmond.sources.gwms import texts
from gwmond.sources.gwms.directory_cursor import ParsedLog

_HEAD = re.compile(
    rb"(?:\d{1,7} )?<(\d{1,3})>(\d{1,2}) (\S{1,64}) (\S{1,255}) (\S{1,128}) (\S{1,128}) (\S{1,64}) "
)
_DATA = re.compile(rb"\[((?:[^\]\"\\]|\\.|\"(?:[^\"\\]|\\.)*\")*)\]")
_PARAMETER = re.compile(rb"(\w{1,64})=\"((?:[^\"\\]|\\.)*)\"")
_ESCAPED = re.compile(rb"\\([\"\\\]])")
_STARTD = re.compile(r"glidein_[0-9]{1,10}_[0-9]{1,14}")
_MASTER_EXIT = re.compile(rb"exited: condor_master \(exit status (\d{1,5})")
_MASTER_STATUS = re.compile(
    rb"condor_master \(condor_MASTER\) pid \d{1,10} EXITING WITH STATUS (\d{1,5})"
)
_CONTAINER = re.compile(
    rb"^(?:FATAL|ERROR)\b.{0,4000}(?:docker://|SIF|[Ss]ingularity|[Aa]pptainer|imag)"
)
_UNSENT = b"Failed to send job exit status to shadow"
_MESSAGE_BYTES = 8000


def parse(
    path: str,
    raw: bytes,
    _place: PilotName | None = None,
    _written_s: float = 0,
    _zone: tzinfo | None = None,
) -> ParsedLog[CentralEvent]:
    """Return facts of whole lines, but those that say nothing of a pilot."""
    events: list[CentralEvent] = []
    wrong: Counter[ProblemName] = Counter()
    for line in raw.split(b"\n"):
        if not line.strip():
            continue
        fact = _line(path, line)
        if isinstance(fact, str):
            wrong[fact] += 1
        elif fact.kind is not CentralKind.OTHER:
            events.append(fact)
    return ParsedLog(tuple(events), wrong)


def _line(path: str, line: bytes) -> CentralEvent | ProblemName:
    head = _HEAD.match(line)
    if head is None:
        return ProblemName.GARBAGE
    at = texts.iso(texts.text(head[3]))
    if at is None or at[1] is None:
        return ProblemName.NO_TIME
    data, message = _data(line, head.end())
    program = texts.known(head[5])
    kind, code = _kind(program, message)
    glidein = data.get("glidein_name", "")
    startd = glidein if _STARTD.fullmatch(glidein) else ""
    return CentralEvent(
        path=path,
        name=PilotName(
            factory=data.get("glidein_factory", ""),
            instance="" if startd else glidein,
            entry=data.get("glidein_entry_name", ""),
            cluster=texts.number(data.get("glidein_clusterid", "")),
            proc=texts.number(data.get("glidein_procid", "")),
            schedd=data.get("glidein_schedd", ""),
            site=data.get("glidein_site", ""),
            resource=data.get("glidein_resourcename", ""),
            startd=startd,
            node=texts.known(head[4]),
        ),
        kind=kind,
        at_us=at[0],
        program=program,
        slot=data.get("slot", ""),
        message=texts.label(message),
        exit_code=code,
    )


def _data(line: bytes, at: int) -> tuple[dict[str, str], bytes]:
    """Return the structured data (names in lower case), and the message after it."""
    data: dict[str, str] = {}
    if line[at : at + 1] == b"-":
        at += 1
    while (element := _DATA.match(line, at)) is not None:
        for name, value in _PARAMETER.findall(element[1]):
            plain = _ESCAPED.sub(rb"\1", value)
            data.setdefault(texts.text(name).lower(), texts.known(plain))
        at = element.end()
    message = line[at : at + _MESSAGE_BYTES].strip()
    return data, message.removeprefix(b"\xef\xbb\xbf")


def _kind(program: str, message: bytes) -> tuple[CentralKind, int | None]:
    if _UNSENT in message:
        return CentralKind.EXIT_UNSENT, None
    ended = _MASTER_EXIT.search(message) or _MASTER_STATUS.search(message)
    if ended is not None:
        return CentralKind.PILOT_END, int(ended[1])
    if _CONTAINER.match(message) and program.startswith("glidein"):
        return CentralKind.CONTAINER_FAILURE, None
    return CentralKind.OTHER, None
