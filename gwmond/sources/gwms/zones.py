"""Times without a zone in a factory's logs: in which zone they are read, and whether that fits.

A factory's clock is on the factory's host, and logs are read elsewhere.  Outputs have times since
the epoch, so that queue events of the same pilots show by how much a zone is wrong.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, NamedTuple
from zoneinfo import ZoneInfo

from gwmond.model.facts import Problem
from gwmond.model.pilots.file_facts import QueueState
from gwmond.model.problem_names import ProblemName
from gwmond.model.times import SECOND_US
from gwmond.sources import tail
from gwmond.sources.gwms import pilot_out

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gwmond.model.pilots.file_facts import QueueEvent

QUARTER_S = 900
LEAST, MOST = 3, 20
"""How many pilots are needed to decide, and how many are compared."""
EVENTS = 1000
"""How many events of a log are looked at."""
_TRIED = 200
_LOGS = 10_000
_ALIKE = 0.9
_PART_BYTES = 16384


def zone_of(name: str) -> tzinfo | None:
    """Return a time zone by its IANA name; None, which is this host's, for an empty one.

    Raises ValueError where there is none of that name.
    """
    if not name:
        return None
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        raise ValueError(f"{name[:100]!r} is no time zone that is known here") from None


class ZoneSample(NamedTuple):
    """By how many quarters of an hour an event of a log is later than its pilot's output says.

    ``reported_us`` is what the output says.
    """

    path: str
    quarters: int
    reported_us: int


_TIMED = {QueueState.STARTED, QueueState.ENDED, QueueState.KILLED}


def compare(directory: str, path: str, events: Iterable[QueueEvent]) -> list[ZoneSample]:
    """Compare times of events in a log, which have no zone, with outputs; a sample for a pilot."""
    samples: dict[tuple[int | None, int | None], ZoneSample] = {}
    tried = set[tuple[int | None, int | None]]()
    for event in events:
        number = event.name.cluster, event.name.proc
        if event.state not in _TIMED or number in samples:
            continue
        if len(samples) >= MOST or (len(tried) >= _TRIED and number not in tried):
            break
        tried.add(number)
        reported_us = _reported(directory, event)
        if reported_us is not None:
            quarters = round((event.at_us - reported_us) / SECOND_US / QUARTER_S)
            samples[number] = ZoneSample(path, quarters, reported_us)
    return list(samples.values())


class Judge:
    """Says of which logs times were read in a wrong zone; ``zone`` is its name, see ``zone_of``.

    An event is written up to minutes after what it reports.  So nearly all of at least ``LEAST``
    pilots must differ by the same number of quarters of an hour, and by more than one: those of a
    log, or where each log has too few, those of all such logs.
    """

    def __init__(self, zone: str) -> None:
        self._zone = zone
        self._samples: defaultdict[str, list[ZoneSample]] = defaultdict(list)

    def add(self, samples: Iterable[ZoneSample]) -> None:
        """Take samples in; of very many logs no more."""
        for sample in samples:
            if sample.path in self._samples or len(self._samples) < _LOGS:
                of_log = self._samples[sample.path]
                if len(of_log) < MOST:
                    of_log.append(sample)

    def problems(self) -> list[Problem]:
        """Return a problem for each log that is found wrong; it is judged anew from then on."""
        problems: list[Problem] = []
        few: list[ZoneSample] = []
        for samples in self._samples.values():
            if len(samples) < LEAST:
                few += samples
            elif (wrong := _wrong(samples)) is not None:
                problems.append(self._problem(samples, wrong))
        wrong = _wrong(few)
        if wrong is not None:
            by_path = {sample.path: sample for sample in reversed(few) if sample.quarters == wrong}
            problems += [self._problem(few, wrong, path) for path in by_path]
        for problem in problems:
            del self._samples[problem.source]
        return sorted(problems)

    def _problem(self, samples: list[ZoneSample], wrong: int, path: str = "") -> Problem:
        alike = [sample for sample in samples if sample.quarters == wrong]
        about = datetime.fromtimestamp(alike[0].reported_us // SECOND_US, UTC)
        used = about.astimezone(zone_of(self._zone)).utcoffset()
        really = round(used.total_seconds() if used is not None else 0) + wrong * QUARTER_S
        return Problem(
            path or alike[0].path,
            ProblemName.OTHER_ZONE,
            f"{len(alike)} of {len(samples)} pilots began or ended "
            f"{_hours(abs(wrong) * QUARTER_S)} hours {'earlier' if wrong > 0 else 'later'} by "
            f"their outputs: the factory's clock was at "
            f"UTC{'+' if really >= 0 else '-'}{_hours(abs(really))}",
        )


def _wrong(samples: Sequence[ZoneSample]) -> int | None:
    """Return by how many quarters of an hour times are wrong; None: they are not, or who knows."""
    if len(samples) < LEAST:
        return None
    quarters, alike = Counter(sample.quarters for sample in samples).most_common(1)[0]
    return quarters if abs(quarters) > 1 and alike >= _ALIKE * len(samples) else None


def _reported(directory: str, event: QueueEvent) -> int | None:
    """Return when a pilot began or ended by its output, which is perhaps not there yet."""
    path = os.path.join(directory, f"job.{event.name.cluster}.{event.name.proc}.out")
    try:
        with tail.open_regular(path) as stream:
            size = os.fstat(stream.fileno()).st_size
            raw = stream.read(_PART_BYTES)
            if size > _PART_BYTES:
                stream.seek(max(_PART_BYTES, size - _PART_BYTES))
                raw += b"\n" + stream.read(_PART_BYTES)
    except OSError:
        return None
    output = pilot_out.parse(raw)
    return output.start_us if event.state is QueueState.STARTED else output.end_us


def _hours(seconds: int) -> str:
    return f"{seconds // 3600:02}:{seconds % 3600 // 60:02}"
