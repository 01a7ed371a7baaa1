"""Asks everybody as the daemon does, but keeps ads instead of facts: one frame of a recording."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from gwmond.config.settings import Config
from gwmond.model.facts import Template
from gwmond.model.problem_names import ProblemName
from gwmond.sources import child, tasks
from gwmond.sources.htcondor import demand, factory, schedds
from gwmond.sources.htcondor.access import Access, CollectorSource, Daemon, Terms
from gwmond.sources.htcondor.pilots import slots
from gwmond.sources.htcondor.pilots.slots import SampleSlot
from gwmond.sources.htcondor.schedds import ScheddSeen
from gwmond.sources.recording import recorded_runs
from gwmond.sources.recording.deltas import Ad
from gwmond.sources.registry import POOL_SOURCES, SOURCES, WMS_SOURCES
from gwmond.sources.round import REQUESTS, SLOTS, Targets

T = TypeVar("T")
_LEAST_S = 1.0


class Recorder:
    """Makes frames; ``errors`` has the last failure of each stream that ever failed.

    ``asked_of_pilots``: to which attributes of pilots jobs refer.
    """

    def __init__(self, config: Config, targets: Targets) -> None:
        self._config = config
        self._targets = targets
        self._until = 0.0
        self._answers: dict[str, list[Ad]] = {}
        self._taken: dict[tuple[str, str], recorded_runs.TakenHistory] = {}
        self._refers: set[str] = set()
        self.asked_of_pilots: set[str] = set()
        self._samples: dict[str, tuple[SampleSlot, ...]] = {}
        self._ungrouped: dict[str, tuple[str, ...]] = {}
        self.frames = 0
        self.records = 0
        self.errors: dict[str, str] = {}

    def asked(self) -> dict[str, list[str]]:
        """Return the names under which daemons are found in the recording, and kinds of sources."""
        return {
            "kinds": list(SOURCES),
            "collectors": [host or "local" for host in self._targets.collectors],
            "wms_collectors": list(self._targets.wms_collectors),
            "factory_schedds": list(self._targets.factory_schedds),
        }

    def frame(self, access: Access, now: float) -> dict[str, list[Ad]]:
        """Return what every stream answers now; a stream that fails is missing."""
        self._until = time.monotonic() + self._config.poll.deadline
        self._answers = {}
        targets = self._targets
        with ThreadPoolExecutor(self._config.poll.parallel) as threads:
            seen = list(
                threads.map(
                    lambda h: self._collector(access, h, now, POOL_SOURCES), targets.collectors
                )
            )
            chosen = schedds.choose((s for part in seen for s in part), self._config.pool.schedds)
            list(threads.map(lambda s: self._schedd(access, s.daemon, now), chosen))
            list(threads.map(lambda h: self._whole_ads(access, h, now), targets.collectors))
            wms_seen = threads.map(
                lambda h: self._collector(access, h, now, WMS_SOURCES), targets.wms_collectors
            )
            queues = {s.daemon for part in wms_seen for s in part}
            asked = [d for d in queues if d.name in targets.factory_schedds]
            list(threads.map(lambda d: self._queue(access, d, now), asked))
        self.frames += 1
        return self._answers

    def _ask(self, stream: str, task: Callable[..., tuple[T, int]], *args: object) -> T | None:
        left = max(_LEAST_S, self._until - time.monotonic())
        try:
            (value, records), _ = child.run(task, *args, deadline_s=left)
        except child.QueryError as error:
            self.errors[stream] = str(error)
            return None
        self.records += records
        return value

    def _keep(self, stream: str, task: Callable[..., tuple[list[Ad], int]], *args: object) -> None:
        answer = self._ask(stream, task, *args)
        if answer is not None:
            self._answers[stream] = answer

    def _record(self, terms: Terms, kind: str, refers: Iterable[str] = ()) -> Any:
        """Keep a collector's answer; return it decoded, None without answer."""
        stream = f"collector/{terms.name}/{kind}"
        answer = self._ask(stream, tasks.record, terms, kind, refers)
        if answer is None:
            return None
        self._answers[stream], value = answer
        return value

    def _collector(
        self, access: Access, host: str, now: float, sources: Iterable[CollectorSource]
    ) -> list[ScheddSeen]:
        """Keep what a collector answers; return the schedds that it knows."""
        terms = Terms(access, host, self._config.attributes, now)
        seen: list[ScheddSeen] = []
        for source in sources:
            value = self._record(terms, source.kind)
            if value is None:
                continue
            if source.discovers:
                seen += value.schedds
            elif source.kind == SLOTS:
                self._samples[host] = value.samples
                live = access, host, value.samples, terms.attributes
                stream = f"collector/{terms.name}/templates"
                self._learn(self._ask(stream, tasks.slot_templates, *live) or ())
            elif source.kind == REQUESTS:
                self._learn(value.templates)
        return seen

    def _whole_ads(self, access: Access, host: str, now: float) -> None:
        """Keep what stands for empty pilots, with the attributes that jobs ask for."""
        terms = Terms(access, host, self._config.attributes, now)
        asked = (*slots.query(terms.attributes).attributes, *sorted(self.asked_of_pilots))
        for source in POOL_SOURCES:
            if source.whole:
                self._record(terms, source.kind, asked)
        samples = self._samples.pop(host, None)
        if samples is not None:
            stream = f"collector/{terms.name}/templates"
            self._keep(stream, tasks.record_samples, access, host, samples, asked)

    def _learn(self, templates: Iterable[Template]) -> None:
        """Note to which attributes of jobs START expressions refer."""
        self._refers |= {name for template in templates for name in template.refers}

    def _schedd(self, access: Access, schedd: Daemon, now: float) -> None:
        grouping = demand.JobGrouping(self._config.attributes, self._config.demand)
        name = f"schedd/{schedd.name}"
        left_out = self._ungrouped.get(schedd.name, ())
        start = demand.StartKeys(tuple(sorted(self._refers, key=str.lower))).without(left_out)
        grouped = grouping._replace(start=start)
        if answer := self._ask(f"{name}/demand", tasks.record_demand, access, schedd, grouped):
            self._answers[f"{name}/demand"], self._ungrouped[schedd.name], refers = answer
            self.asked_of_pilots |= refers
        stream = f"{name}/unmaterialized"
        if kept := self._ask(stream, tasks.record_clusters, access, schedd, grouping):
            self._answers[stream], refers = kept
            self.asked_of_pilots |= refers
        for kind in recorded_runs.KINDS:
            self._runs(access, schedd, kind, now - self._config.histories.lookback)

    def _runs(self, access: Access, schedd: Daemon, kind: str, floor: float) -> None:
        """Take what a history has that is new; a schedd may keep none."""
        history, stream = (schedd.name, kind), recorded_runs.stream(schedd.name, kind)
        before = self._taken.get(history, ())
        taken = self._ask(stream, recorded_runs.take, access, schedd, kind, before, floor)
        if taken is not None:
            self._answers[stream], self._taken[history], more = taken
            if more:
                self.errors[stream] = f"more than {recorded_runs.MOST} new records in a frame"
        elif self.errors[stream].startswith(ProblemName.NOT_KEPT):
            del self.errors[stream]

    def _queue(self, access: Access, schedd: Daemon, now: float) -> None:
        for query in factory.queue_queries(self._config.site.pending_grace, now):
            stream = f"schedd/{schedd.name}/{query.kind}"
            self._keep(stream, tasks.record_ads, access, schedd, query)
