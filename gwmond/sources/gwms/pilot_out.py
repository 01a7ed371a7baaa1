"""A pilot's stdout, ``job.C.P.out``: its course as marked with times, and its totals.

Format: GS (header, ``Last script starting`` GS:2125, ``Glidein ending`` GS:311), CS (``Condor
starting``/``ended`` CS:1183, 1233, statistics CS:1294-1315 by parse_starterlog.awk),
glidein_cpus_setup.sh, glidein_memory_setup.sh.  A line is taken for what it is wherever it stands;
of lines that come twice the first counts, but for ends, of which the last does.

The statistics block has seen three forms: numbers without a word, numbers "below are normalized to
1 Core", and since v3.10.12 lines that begin with (Real) and (Normalized), and the factor.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from gwmond.model.pilots.file_facts import Jobs, JobStatistics, PilotName, StarterRun, XmlResult
from gwmond.model.problem_names import ProblemName
from gwmond.model.runs.endings import Ending
from gwmond.model.times import SECOND_US
from gwmond.sources.gwms import result_xml, texts
from gwmond.sources.gwms.texts import Zone

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_RUNS = 20_000
MAX_LINES = 2 * MAX_RUNS
MAX_WRONG = 100
_LINE_BYTES = 4096

_START = re.compile(rb"Starting glidein_startup\.sh at (.{0,60}?) ?\((\d{1,12})\)")
_LAST = re.compile(
    rb"=== Last script starting (.{0,60}?) ?\((\d{1,12})\) after validating for (\d{1,12}) ==="
)
_CONDOR = re.compile(
    rb"=== Condor (starting|ended) (.{0,60}?) ?\((\d{1,12})\)(?: after (\d{1,12}))? ==="
)
_END = re.compile(
    rb"=== Glidein ending (.{0,60}?) ?\((\d{1,12})\) with code (\d{1,5}) after \d{1,12} ==="
)
_HEADER = re.compile(rb"(\w{1,40})\s*= '(.{0,400})'\s*$")
_SETTING = re.compile(rb"Setting GLIDEIN_(CPUS|MaxMemMBs)=(-?\d{1,9})\b")
_ADJUSTING = re.compile(rb"Adjusting GLIDEIN_(CPUS|MaxMemMBs) from base value (\d{1,9})\b")
_ACTIVATIONS = re.compile(rb"Total number of activations/claims: (\d{1,9})")
_TOTAL = re.compile(
    rb"(?:\((Real|Normalized)\) )?Total (?:(goodZ|goodNZ|badSignal|badOther) )?jobs (\d{1,12})"
    rb"\b.{0,60}?\butilization (\d{1,12})\b"
)
_FACTOR = re.compile(rb"Normalization \[parallelism\] factor (\d{1,6})")
_OF_JOB = re.compile(rb"\d\d?/\d\d?(?:/\d\d)? \d\d:\d\d:\d\d\S* (Starting|Terminated) job ")
_JOB = re.compile(
    rb"(\d\d?)/(\d\d?)(?:/(\d\d))? (\d\d):(\d\d):(\d\d)\S* (Starting|Terminated) job (\S{0,40})"
    rb"(?: from (\S{0,100}))?(?: (status|signal) (\d{1,5}))?"
    rb"(?:.{0,40}?duration (\d{1,12}))?"
)
_MARK, _SET, _OVERLOAD = b"=== ", b"Setting GLIDEIN_", b"GLIDEIN_OVERLOAD_"
_COUNTS = frozenset({b"Tota", b"(Rea", b"(Nor", b"Norm"})
_BEGINS = frozenset({_MARK, *_COUNTS, b"Star", b"Runn", b"PID:"})
_XML_BEGIN, _XML_END = b"=== XML description of glidein", b"=== End XML description of glidein"
_NAMES = {
    b"condorg_cluster": "cluster",
    b"condorg_subcluster": "proc",
    b"condorg_schedd": "schedd",
    b"glidein_factory": "factory",
    b"glidein_name": "instance",
    b"glidein_entry": "entry",
    b"client_name": "frontend",
    b"client_group": "group",
}
_NUMBERS = frozenset({"cluster", "proc"})


class PilotOut(NamedTuple):
    """What one stdout says; times in microseconds, durations in seconds.

    - ``mode``: the operation mode (std, nodebug, fast, check).
    - ``cores``, ``memory_mib``: those that are there; ``offered_cores``, ``offered_memory_mib``:
      what an overloaded pilot advertises instead (GLIDEIN_OVERLOAD_CPUS, ..._MEMORY).
    - ``validated_s``: how long the validation took until the last script.
    - ``starts``: how many starts of jobs the statistics list; ``lines``: the lines about jobs.
    - ``wrong``: words for what could not be read.
    """

    name: PilotName = PilotName()
    mode: str = ""
    start_us: int | None = None
    last_script_us: int | None = None
    validated_s: int | None = None
    condor_start_us: int | None = None
    condor_end_us: int | None = None
    condor_s: int | None = None
    end_us: int | None = None
    exit_code: int | None = None
    cores: int | None = None
    memory_mib: int | None = None
    offered_cores: int | None = None
    offered_memory_mib: int | None = None
    activations: int | None = None
    jobs: JobStatistics | None = None
    xml: XmlResult | None = None
    starts: int = 0
    lines: tuple[bytes, ...] = ()
    zone: Zone = Zone()
    wrong: tuple[ProblemName, ...] = ()

    @property
    def runs(self) -> tuple[StarterRun, ...]:
        """The runs of jobs with a time, as the statistics list them."""
        return _runs(self.lines, self.zone)


class _OutReading:
    """One stdout as it is being read, line by line."""

    def __init__(self) -> None:
        self.values: dict[str, int] = {}
        self.names: dict[str, str | int | None] = {}
        self.mode = ""
        self.zone = Zone()
        self.totals: dict[tuple[bytes, bytes], Jobs] = {}
        self.normalized = False
        self.starts = 0
        self.jobs: list[bytes] = []
        self.wrong: list[ProblemName] = []

    def line(self, line: bytes) -> None:
        begin = line[:4]
        if begin == _MARK:
            self._mark(line)
        elif begin in _COUNTS:
            self._count(line)
        elif line[:1].isdigit():
            self._job(line)
        elif begin == b"Star" and (match := _START.match(line)):
            self._time("start", match[1], match[2])
        elif line.startswith(b"Running on "):
            self.names.setdefault("node", texts.known(line[11:]))
        elif line.startswith(b"PID: "):
            self.names.setdefault("pid", texts.number(line[5:]))
        elif _OVERLOAD in line:
            if (match := _ADJUSTING.search(line)) and int(match[2]) > 0:
                self.values["real_cores" if match[1] == b"CPUS" else "real_memory"] = int(match[2])
        elif _SET in line:
            if match := _SETTING.search(line):
                amount = int(match[2])
                if amount > 0:  # 0 and -1 ask to find out, which the script says in a later line
                    self.values["cores" if match[1] == b"CPUS" else "memory"] = amount
        elif line.endswith(b"'") and (match := _HEADER.match(line)):
            self._header(match[1], match[2])

    def _time(self, word: str, date: bytes, epoch: bytes) -> None:
        seconds = int(epoch)
        if texts.epoch_us(seconds) is not None:
            if word.endswith("end"):
                self.values[word] = seconds
            else:
                self.values.setdefault(word, seconds)
            self.zone = self.zone.seen(texts.text(date), seconds)
        else:
            self.wrong.append(ProblemName.BAD_TIME)

    def _mark(self, line: bytes) -> None:
        kind = line[4:8]
        if kind == b"Cond" and (match := _CONDOR.match(line)):
            word = "condor_start" if match[1] == b"starting" else "condor_end"
            self._time(word, match[2], match[3])
            if match[4]:
                self.values["condor_s"] = int(match[4])
        elif kind == b"Glid" and (match := _END.match(line)):
            self._time("end", match[1], match[2])
            self.values["exit_code"] = int(match[3])
        elif kind == b"Last" and (match := _LAST.match(line)):
            self._time("last_script", match[1], match[2])
            self.values.setdefault("validated", int(match[3]))

    def _header(self, word: bytes, value: bytes) -> None:
        if word == b"debug_mode":
            self.mode = texts.label(value)
        elif name := _NAMES.get(word):
            self.names.setdefault(
                name, texts.number(value) if name in _NUMBERS else texts.known(value)
            )

    def _count(self, line: bytes) -> None:
        if match := _TOTAL.match(line):
            kind = (match[1] or b"", match[2] or b"")
            self.totals.setdefault(kind, Jobs(int(match[3]), int(match[4])))
        elif match := _ACTIVATIONS.match(line):
            self.values["activations"] = int(match[1])
        elif match := _FACTOR.match(line):
            self.values["factor"] = int(match[1])
        elif b"below are normalized" in line:
            self.normalized = True

    def _job(self, line: bytes) -> None:
        if match := _OF_JOB.match(line):
            self.starts += match[1] == b"Starting"
            if len(self.jobs) < MAX_LINES:
                self.jobs.append(line)


def _runs(lines: Iterable[bytes], zone: Zone) -> tuple[StarterRun, ...]:
    """Return the runs of jobs, those that were not seen to end after the others.

    Lines without a year cannot be placed: the starter logs have them.
    """
    runs: list[StarterRun] = []
    begun: dict[str, int] = {}
    for line in lines:
        match = _JOB.match(line)
        if match is None or not match[3] or len(runs) >= MAX_RUNS:
            continue
        month, day, year, *clock = map(int, match.group(1, 2, 3, 4, 5, 6))
        at_wall = texts.wall(2000 + year, month, day, *clock)
        job = texts.label(match[8])
        at = None if at_wall is None else zone.epoch(at_wall, begun.get(job))
        if at is None:
            continue
        if match[7] == b"Starting":
            if len(begun) < MAX_RUNS:
                begun[job] = at
            continue
        start = begun.pop(job, at - int(match[12] or 0))
        code = int(match[11]) if match[11] else None
        ending = Ending(
            over=True,
            began=True,
            exit_code=code if match[10] == b"status" else None,
            exit_signal=code if match[10] == b"signal" else None,
        )
        if start * SECOND_US > 0:
            runs.append(StarterRun(job, "", start * SECOND_US, max(at, start) * SECOND_US, ending))
    left = (
        StarterRun(job, "", at * SECOND_US, None, Ending(began=True)) for job, at in begun.items()
    )
    return (*runs, *left)


def parse(raw: bytes) -> PilotOut:
    """Return what a stdout says, as far as it goes; it may be cut off anywhere, and be anything."""
    begin = raw.find(_XML_BEGIN)
    xml, wrong = None, list[ProblemName]()
    if begin >= 0:
        end = raw.find(_XML_END, begin)
        line_end = raw.find(b"\n", begin)
        body = raw[line_end + 1 : end if end >= 0 else len(raw)] if line_end >= 0 else b""
        parsed = result_xml.parse(body)
        xml = parsed.result
        wrong += [parsed.wrong] if parsed.wrong else []
        raw = raw[:begin] + (raw[end:] if end >= 0 else b"")
    reading = _OutReading()
    for line in raw.split(b"\n"):
        if line[:4] in _BEGINS or line[-1:] == b"'" or line[:1].isdigit() or b"GLIDEIN_" in line:
            reading.line(line if len(line) <= _LINE_BYTES else line[:_LINE_BYTES])
    return _out(reading, xml, wrong + reading.wrong[:MAX_WRONG])


def _out(reading: _OutReading, xml: XmlResult | None, wrong: list[ProblemName]) -> PilotOut:
    values = reading.values
    zone = reading.zone
    for moment, offset in xml.offsets if xml is not None else ():
        zone = zone.at(moment, offset)
    return PilotOut(
        name=PilotName(**reading.names),  # type: ignore[arg-type]
        mode=reading.mode,
        start_us=texts.epoch_us(values.get("start")),
        last_script_us=texts.epoch_us(values.get("last_script")),
        validated_s=values.get("validated"),
        condor_start_us=texts.epoch_us(values.get("condor_start")),
        condor_end_us=texts.epoch_us(values.get("condor_end")),
        condor_s=values.get("condor_s"),
        end_us=texts.epoch_us(values.get("end")),
        exit_code=values.get("exit_code"),
        cores=values.get("real_cores", values.get("cores")),
        memory_mib=values.get("real_memory", values.get("memory")),
        offered_cores=values.get("cores") if "real_cores" in values else None,
        offered_memory_mib=values.get("memory") if "real_memory" in values else None,
        activations=values.get("activations"),
        jobs=_statistics(reading),
        xml=xml,
        starts=reading.starts,
        lines=tuple(reading.jobs),
        zone=zone,
        wrong=tuple(wrong),
    )


def _statistics(reading: _OutReading) -> JobStatistics | None:
    totals = reading.totals
    marked = (b"Normalized", b"") in totals
    prefix = b"Normalized" if marked else b""
    total = totals.get((prefix, b""))
    if total is None:
        return None
    # A mixture: only the total's line has the prefix.
    zero, nonzero = (
        totals.get((prefix, kind)) or totals.get((b"", kind)) for kind in (b"goodZ", b"goodNZ")
    )
    factor = reading.values.get("factor")
    if factor is None and (marked or reading.normalized):
        factor = reading.values.get("cores")
    return JobStatistics(total, zero, nonzero, factor)
