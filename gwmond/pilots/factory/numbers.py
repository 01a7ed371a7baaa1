"""The factory's own numbers: what its files and ads say, summed by hour.

Units: hours are ``epoch // 3600`` (UTC), times (``_us``) microseconds since the epoch, sums of
time whole seconds.

Nothing here is believed or made better: it is what the factory says, to be compared with what
gwmond accounts.  What was taken stays until ``clear``, and is stored in the transaction that stores
the cursors of the files and what they reported of each place (``factory.jobs.Place``).  Only what a
place did not know is taken in, so that an event, a line, and the output of a pilot counts
once, in however many copies of its file, at any path, and however often they are read; an output
counts as what it was when it was read first, and one that was empty then and is not any more counts
as that, too.  What retention has taken out of places is not known any more.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import floor

from gwmond.model.factory.totals import WATCHED_FIELDS, FactoryKey, FactoryKind
from gwmond.model.facts import EntryRequest
from gwmond.model.pilots.file_facts import (
    CompletedPilot,
    PilotName,
    PilotOutput,
    QueueEvent,
    QueueState,
    client_name,
)
from gwmond.model.times import HOUR_US
from gwmond.pilots.factory.records import NewFact, OutputNoLongerEmpty
from gwmond.pilots.life.rules import sane

MOST = 10**8
"""More seconds (three years) or jobs are not believed of one pilot."""
_FIRST = {FactoryKind.OUTPUTS_PILOTS: 1, FactoryKind.OUTPUTS_FILLED: 0}
_OF_STATE = {
    state: FactoryKind.QUEUE_ENDED
    if state is QueueState.KILLED
    else FactoryKind(f"queue_{state.value}")
    for state in QueueState
}


class FactoryNumbers:
    """The factory's numbers that are not stored yet."""

    def __init__(self) -> None:
        self._changes: Counter[FactoryKey] = Counter()
        self._rest_s = 0.0
        self.undated = 0
        """How many records had no usable time or entry so far, and are in no sum."""

    def take(self, facts: Sequence[NewFact]) -> None:
        """Take in what a factory's files report that they had not reported before."""
        for fact in facts:
            if isinstance(fact, QueueEvent):
                self._event(fact)
            elif isinstance(fact, CompletedPilot):
                self._line(fact)
            elif isinstance(fact, OutputNoLongerEmpty):
                self._output(fact.output, {FactoryKind.OUTPUTS_FILLED: 1})
            else:
                self._output(fact, _FIRST | {FactoryKind.OUTPUTS_EMPTY: int(fact.start_us is None)})

    def watch(self, requests: Iterable[EntryRequest], hour: int, seconds: float) -> None:
        """Take in what ads say now, which holds for these seconds of an hour.

        Seconds are summed whole: what is left of them goes to the next time.
        """
        self._rest_s += max(0.0, seconds)
        whole = floor(self._rest_s)
        self._rest_s -= whole
        if not whole:
            return
        shown: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        for request in requests:
            values = shown[request.entry.entry, request.group]
            for name in WATCHED_FIELDS:
                value = getattr(request.monitor, name)
                if value is not None:
                    values[name] += value
        for (entry, client), values in shown.items():
            self._add(hour, entry, client, FactoryKind.WATCHED_SECONDS, whole)
            for name, value in values.items():
                self._add(hour, entry, client, FactoryKind(f"{name}_seconds"), value * whole)
                watched = FactoryKind(f"{name}_watched_seconds")
                self._add(hour, entry, client, watched, whole)

    def changes(self) -> Mapping[FactoryKey, int]:
        """Return what is to be added to the stored numbers; never negative."""
        return dict(self._changes)

    def clear(self) -> None:
        """Say that all of it is stored."""
        self._changes.clear()

    def _add(self, hour: int, entry: str, client: str, kind: FactoryKind, number: int) -> None:
        self._changes[FactoryKey(hour, entry, client, kind)] += number

    def _event(self, event: QueueEvent) -> None:
        name = event.name
        if not name.entry or not sane(event.at_us):
            self.undated += 1
            return
        client = _client(name, event.client)
        self._add(event.at_us // HOUR_US, name.entry, client, _OF_STATE[event.state], 1)

    def _line(self, line: CompletedPilot) -> None:
        name, at_us = line.name, line.written_us
        if not name.entry or at_us is None or not sane(at_us):
            self.undated += 1
            return
        kinds = FactoryKind
        sums = {
            kinds.SUMMARY_PILOTS: 1,
            kinds.SUMMARY_NO_DURATION: 0 if _told(line.duration_s) else 1,
            kinds.SUMMARY_STARTED: 1 if line.condor_started else 0,
            kinds.SUMMARY_SECONDS: line.duration_s,
            kinds.SUMMARY_VALIDATION_SECONDS: line.validation_s,
            kinds.SUMMARY_CONDOR_SECONDS: line.condor_s,
            kinds.SUMMARY_JOBS: line.jobs,
            kinds.SUMMARY_JOB_SECONDS: line.jobs_s,
            kinds.SUMMARY_GOODPUT_SECONDS: line.goodput_s,
            kinds.SUMMARY_TERMINATED_SECONDS: line.terminated_s,
        }
        client = name.frontend or name.user
        for kind, number in sums.items():
            if number is not None and 0 <= number <= MOST:
                self._add(at_us // HOUR_US, name.entry, client, kind, number)

    def _output(self, output: PilotOutput, numbers: Mapping[FactoryKind, int]) -> None:
        name, at_us = output.name, output.at_us
        if not name.entry or at_us is None or not sane(at_us):
            self.undated += 1
            return
        hour, client = at_us // HOUR_US, _client(name, "")
        for kind, number in numbers.items():
            self._add(hour, name.entry, client, kind, number)


def _client(name: PilotName, of_log: str) -> str:
    """Return for whom a pilot runs: see ``factory_model``."""
    return client_name(name.frontend, name.group) if name.frontend else of_log or name.user


def _told(value: int | None) -> int | None:
    return value if value is not None and 0 <= value <= MOST else None
