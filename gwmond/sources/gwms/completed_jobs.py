"""``completed_jobs_YYYYMMDD.log``: the factory's own summary of pilots, a line for each.

Format and defects: facts page, section 1 (FM:93-154, 1069-1158).  The lines are alike XML, without
a root.  Every attribute is taken by itself, so that one that is odd costs only itself; a line
without a job, or without its end, is counted and left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import tzinfo
from itertools import pairwise

from gwmond.model.factory.jobs import AGE_US
from gwmond.model.pilots.file_facts import CompletedPilot, PilotName
from gwmond.model.problem_names import ProblemName
from gwmond.model.times import SECOND_US
from gwmond.sources.gwms import texts
from gwmond.sources.gwms.directory_cursor import ParsedLog

_ELEMENT = re.compile(rb"<(job|user|wastemill)\b((?:[^<>\"]|\"[^\"]*\")*)>")
_JOB = re.compile(rb"<job\s")
_ATTRIBUTE = re.compile(rb"(\w{1,40})\s*=\s*\"([^\"]*)\"")
_ID = re.compile(rb"(?:b')?(\d{1,12})\.(\d{1,9})'?")
_LEAST_PER_MILLE = -(10**9)
_LONGEST_S = AGE_US // SECOND_US


def parse(
    path: str,
    raw: bytes,
    place: PilotName = PilotName(),  # noqa: B008 (immutable)
    _written_s: float = 0,
    zone: tzinfo | None = None,
) -> ParsedLog[CompletedPilot]:
    """Return facts of whole lines; ``place`` is what the log's directory says (the entry).

    ``zone``: of times without one; None: not known, and neither are these times.
    """
    pilots: list[CompletedPilot] = []
    wrong: Counter[ProblemName] = Counter()
    for line in _divided(raw):
        fact = _line(path, line, place, zone)
        if isinstance(fact, CompletedPilot):
            pilots.append(fact)
            if not fact.duration_s:
                wrong[ProblemName.NO_DURATION] += 1
        else:
            wrong[fact] += 1
    return ParsedLog(tuple(pilots), wrong)


def _divided(raw: bytes) -> Iterator[bytes]:
    """Yield lines, also where one was written without its end."""
    for line in raw.split(b"\n"):
        begins = [match.start() for match in _JOB.finditer(line)]
        cuts = [0, *begins[1:], len(line)]
        yield from (line[a:b] for a, b in pairwise(cuts) if line[a:b].strip())


def _line(
    path: str, line: bytes, place: PilotName, zone: tzinfo | None
) -> CompletedPilot | ProblemName:
    elements = {name: dict(_ATTRIBUTE.findall(inside)) for name, inside in _ELEMENT.findall(line)}
    job, user, waste = (elements.get(name, {}) for name in (b"job", b"user", b"wastemill"))
    if not job:
        return ProblemName.GARBAGE
    if b"</job>" not in line:
        return ProblemName.TRUNCATED
    pilot = _ID.fullmatch(job.get(b"id", b"").strip())
    if pilot is None:
        return ProblemName.NO_PILOT
    written_us = _written(texts.text(job.get(b"terminated", b"")), zone)

    def seconds(record: dict[bytes, bytes], name: bytes) -> int | None:
        return texts.number(record.get(name, b""))

    def life(name: bytes) -> int | None:
        life_s = seconds(job, name)
        return life_s if life_s is not None and life_s <= _LONGEST_S else None

    def per_mille(name: bytes) -> int | None:
        return texts.number(waste.get(name, b""), _LEAST_PER_MILLE)

    return CompletedPilot(
        path=path,
        name=place.filled(
            PilotName(
                cluster=int(pilot[1]),
                proc=int(pilot[2]),
                frontend=texts.known(job.get(b"client", b"")),
                user=texts.known(job.get(b"username", b"")),
            )
        ),
        written_us=written_us,
        duration_s=life(b"duration"),
        condor_started={b"true": True, b"1": True, b"false": False, b"0": False}.get(
            job.get(b"condor_started", b"").strip().lower()
        ),
        condor_s=life(b"condor_duration"),
        jobs=seconds(user, b"jobsnr"),
        jobs_s=seconds(user, b"duration"),
        goodput_s=seconds(user, b"goodput"),
        terminated_s=seconds(user, b"terminated"),
        validation=per_mille(b"validation"),
        idle=per_mille(b"idle"),
        nosuccess=per_mille(b"nosuccess"),
        badput=per_mille(b"badput"),
    )


def _written(stamp: str, zone: tzinfo | None) -> int | None:
    """Return when a line was written (us); None where that is not known."""
    written = texts.iso(stamp)
    if written is None or written[1] is not None:
        return None if written is None else written[0]
    return (
        None
        if zone is None
        else texts.of_wall(written[0] // SECOND_US, zone, written[0] % SECOND_US)
    )
