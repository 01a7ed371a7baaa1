"""One round of all queries, in parallel child processes, within one deadline.

A source that fails leaves its last answer, marked with its age; what is too old counts as unknown
where it is used.  Schedds are asked at once at the addresses known from the round before, and
once more when discovery finds them new or moved; a busy one only every so many rounds.

A schedd goes on with a query whose child was killed, in a process of its own, of which it has few.
So one that did not answer in time is left alone, each time twice as long, and then asked by a
thread that asks nobody else, until another one of these does not answer either.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import nullcontext
from itertools import product
from typing import Any, NamedTuple, TypeVar

from gwmond.config.settings import Config
from gwmond.model.facts import Problem, Status
from gwmond.model.names import ACCOUNTING_GROUPS, Names
from gwmond.model.names import SCHEDDS as SCHEDD_NAMES
from gwmond.model.problem_names import ProblemName
from gwmond.sources import child, folding, tasks
from gwmond.sources.htcondor import demand, schedds
from gwmond.sources.htcondor.access import Access, Daemon, Terms
from gwmond.sources.htcondor.pilots.slots import SampleSlot
from gwmond.sources.htcondor.templates import Templates
from gwmond.sources.registry import POOL_SOURCES, SOURCES, WMS_SOURCES
from gwmond.sources.round import (
    CLAIMS,
    DEMAND,
    REQUESTS,
    SCHEDDS,
    SLOTS,
    SUBMITTERS,
    WMS,
    Answer,
    Round,
    Targets,
)

T = TypeVar("T")

_WHEN_NEEDED = ("templates", "matching")
RETRY_KEY_S = 3600.0
"""A job attribute that could not be grouped by is tried again after this.

So are questions that could not be asked together.
"""

_LEAST_S = 1.0
_LATE_S = 5.0
"""So long after the deadline what is late is still asked, for ``_LEAST_S`` each."""
_LONGEST_REST_S = 3600.0
_NEW_SHARE = 3
"""Of many schedds one that never answered has this part of the time, lest it takes others'."""
_AT_ONCE = {CLAIMS: 50_000, SLOTS: 30_000}
"""So many ads are a quarter of a gigabyte in the child that asks for them."""
_FIRST_PARTS = {CLAIMS: 4, SLOTS: 1}
"""Before it is known how many there are."""
_QUEUE = "queue"
_OURS = "gwmond"
SAMPLES_AT_ONCE = 2000
"""A whole ad has some 10 kB: it takes a collector a second at most, and is 20 MB."""


class _Silence(NamedTuple):
    """How often a schedd did not answer where, until when it is left alone (monotonic)."""

    address: str
    times: int
    until: float
    detail: str


class Gatherer:
    """Runs rounds and remembers the last answers between them; use it from one thread."""

    def __init__(self, config: Config, targets: Targets, speed: float = 1.0) -> None:
        self._config = config
        self._targets = targets
        self._answers: dict[tuple[str, str], Answer] = {}
        self._folded: dict[tuple[str, str], Answer] = {}  # with the names that are kept apart
        self._names: Names | None = None
        self._apart = demand.ALL_APART
        self._pledged = frozenset(p.site or p.entry for p in config.site.pledge)
        self._statuses: dict[tuple[str, str], Status] = {}
        self._templates = Templates()
        self._seen: dict[str, schedds.ScheddSeen] = {}
        self._rounds = 0
        self._until = self._allowed = 0.0
        self._problems: list[Problem] = []
        self._took: list[tuple[float, str]] = []  # seconds of queries within what is allowed
        self.busy: set[str] = set()  # schedds that are asked less often
        self._apart_until: dict[str, float] = {}  # collectors
        self._silences: dict[str, _Silence] = {}
        self._one_was_silent = False
        self._ungrouped: dict[tuple[str, str], float] = {}
        self._all_claims_at = 0.0
        self._ads: dict[tuple[str, str], int] = {}  # by collector and kind, when all were asked for
        self._large: dict[str, threading.Lock] = {}  # by collector
        self._claims_every = config.pilots.claims_every / speed
        self._claims_overlap = max(600.0, 5 * config.poll.interval * speed)
        self.claims_since: float | None = None
        self.aside = frozenset[str]()  # see Round

    def round(
        self,
        access: Access,
        now: float,
        names: Names | None = None,
        beside: Callable[[Round], object] | None = None,
    ) -> Round:
        """Ask everybody once; ``now`` is the time that ads are compared with (epoch seconds).

        ``names`` says which names are kept apart in the answers; None: all.  ``beside`` is called
        in the first round, with what is known before schedds group their jobs.
        """
        self._names, self._folded = names, {}
        self._apart = (
            demand.ALL_APART if names is None else demand.Apart(*names.room(ACCOUNTING_GROUPS))
        )
        self.allow(self._config.poll.deadline)
        for key in [k for k, s in self._statuses.items() if k[1] in _WHEN_NEEDED and not s.up]:
            del self._statuses[key]  # it is run again if it is still needed
        parallel = self._config.poll.parallel
        with (
            ThreadPoolExecutor(parallel, "collector") as first,
            ThreadPoolExecutor(parallel, "schedd") as second,
            ThreadPoolExecutor(1, "silent") as alone,
        ):
            self._one_was_silent = False
            pools = second, alone
            discovery, others, claims = self._ask_collectors(first, access, now)
            early = self._targets.groups and not self._rounds  # START is not known yet
            asked = {} if early else self._ask_schedds(pools, access, self._seen.values(), {})
            for future in discovery:
                future.result()
            self._discover(now)
            answered = False
            if early:
                answered = not wait(others, self.left_s / 2).not_done
                self._ask_templates(access, now)
                if beside is not None:
                    beside(self.last())
            fresh = [s for s in self._seen.values() if s.daemon not in asked]
            asked = {**asked, **self._ask_schedds(pools, access, fresh, asked)}
            queues = self._ask_factory_schedds(pools, access, now, asked)
            for future in (*others, *claims):
                future.result()
            if not answered:
                self._ask_templates(access, now)
            for future in queues:
                future.result()
        self._rounds += 1
        self._forget()
        self._fold_words(now)
        return self.last()

    def _fold_places(self, now: float) -> None:
        if self._names is not None:
            answers = dict(self._answers)  # schedds may still be answering
            folding.note_places(self._names, answers, self._pledged, now)
            self._fold(folding.PLACES, answers)

    def _fold_words(self, now: float) -> None:
        if self._names is not None:
            folding.note_words(self._names, self._answers, now)
            self._fold(folding.WORDS, self._answers)

    def _fold(self, kinds: Collection[str], answers: Mapping[tuple[str, str], Answer]) -> None:
        for query, answer in answers.items():
            if self._names is not None and query[1] in kinds:
                value = folding.fold(self._names, query[1], answer.value)
                self._folded[query] = answer._replace(value=value)

    def allow(self, seconds: float) -> None:
        """Set the time that later runs have together; forget earlier problems."""
        self._until, self._allowed = time.monotonic() + seconds, seconds
        self._problems, self._took = [], []

    @property
    def left_s(self) -> float:
        """How long what is run now may take."""
        return self._until - time.monotonic()

    def last(self) -> Round:
        """Return the last round, with the runs since."""
        return Round(
            answers=self._answers | self._folded,
            statuses=tuple(self._statuses[key] for key in sorted(self._statuses)),
            problems=tuple(self._problems),
            templates=self._templates.current(),
            chosen=tuple(self._seen[name] for name in sorted(self._seen)),
            entries=None if self._names is None else dict(self._names.entries),
            aside=self.aside,
            accounting_groups=self._groups(),
        )

    def _groups(self) -> frozenset[str]:
        return frozenset() if self._names is None else self._names.room(ACCOUNTING_GROUPS)[0]

    def run(
        self,
        source: str,
        kind: str,
        task: Callable[..., tuple[T, int]],
        *args: Any,
        keep: bool = True,
        within_s: float | None = None,
        how: Callable[..., tuple[tuple[T, int], child.Usage]] = child.run,
    ) -> T | None:
        """Run one task in a child within what is left of the deadline, and note how it went.

        Without ``keep`` the answer is only returned, not remembered.  ``within_s``: within less.
        ``how``: in several children, one after another.
        """
        started, limit = time.monotonic(), self._config.poll.memory_limit_mib
        queue = kind in (DEMAND, _QUEUE)
        if source in self._silences and not queue:
            self._rests(source, kind)
            return None
        hurried = self.left_s < min(_LEAST_S, self._allowed / 2)
        if source != _OURS and (hurried if queue else self.left_s < -_LATE_S):
            self._failed(source, kind, ProblemName.NO_TIME_LEFT, self._used_up())
            return None
        left = max(_LEAST_S, self.left_s if within_s is None else min(self.left_s, within_s))
        try:
            (value, records), usage = how(task, *args, deadline_s=left, memory_mib=limit)
        except child.QueryError as error:
            took = time.monotonic() - started
            if hurried and error.problem in (ProblemName.TIMEOUT, ProblemName.MATCHING_LATE):
                self._failed(source, kind, ProblemName.NO_TIME_LEFT, self._used_up(), took)
                return None
            self._took.append((took, f"{source} ({kind}): {error.detail}"))
            self._failed(source, kind, error.problem, error.detail, took)
            return None
        took = usage.took_s or time.monotonic() - started
        self._took.append((took, f"{source} ({kind}) took {child.rounded(took)} s"))
        self._statuses[source, kind] = Status(
            source, kind, True, took, usage.cpu_s, usage.peak_mib, time.time(), records, 0, None, ""
        )
        if keep:
            self._answers[source, kind] = Answer(value, time.monotonic())
        self._problems.extend(getattr(value, "problems", ()))
        return value

    def _used_up(self) -> str:
        """Return what has used up the deadline: one query, or many."""
        took = list(self._took)
        longest_s, query = max(took, default=(0.0, "nothing was asked before"))
        if longest_s >= self._allowed / 2 or len(took) < 2:
            return f"the deadline was used up: {query}"
        return (
            f"the deadline was used up by {len(took)} queries on a busy host; the longest: {query}"
        )

    def _rests(self, schedd: str, kind: str) -> None:
        """Note that a schedd is not asked now, for it did not answer before."""
        silence = self._silences[schedd]
        left = max(1.0, silence.until - time.monotonic())
        when = f"asked again in {child.rounded(left)} s at the earliest"
        note = self._failed if kind in (DEMAND, _QUEUE) else self.down  # one problem is enough
        note(schedd, kind, ProblemName.TIMEOUT, f"{silence.detail}: {when}")

    def _note_silence(self, schedd: str, address: str, kind: str) -> None:
        """Note whether a schedd whose queue was asked for did answer."""
        status = self._statuses[schedd, kind]
        if status.problem == ProblemName.NO_TIME_LEFT:
            return  # it had none
        if status.problem != ProblemName.TIMEOUT:
            self._silences.pop(schedd, None)
            return
        before = self._silences.get(schedd)
        times = before.times + 1 if before else 1
        rest_s = min(_LONGEST_REST_S, self._config.poll.interval * 2.0 ** min(times, 30))
        self._silences[schedd] = _Silence(address, times, time.monotonic() + rest_s, status.detail)
        self._one_was_silent = True

    def failure(self, source: str, kind: str) -> Problem:
        """Return why a query failed that was run last."""
        status = self._statuses[source, kind]
        return Problem(source, status.problem or ProblemName.FAILED, f"{kind}: {status.detail}")

    def down(
        self, source: str, kind: str, problem: ProblemName, detail: str, took: float = 0.0
    ) -> None:
        """Note that a query failed, or why it cannot be made; its last success stays."""
        before = self._statuses.get((source, kind))
        failed = False, took, 0, 0, before.last_success if before else None, 0, 0, problem, detail
        self._statuses[source, kind] = Status(source, kind, *failed)

    def _failed(
        self, source: str, kind: str, problem: ProblemName, detail: str, took: float = 0.0
    ) -> None:
        self.down(source, kind, problem, detail, took)
        of_none = problem == ProblemName.NO_POOL  # of no kind in particular
        text = detail if of_none else f"{kind}: {detail}"
        self._problems.append(Problem(source, problem, text))

    def _ask_collectors(
        self, pool: ThreadPoolExecutor, access: Access, now: float
    ) -> tuple[list[Future[Any]], list[Future[Any]], list[Future[Any]]]:
        """Ask all collectors; return the answers with schedds to ask, the others, and claims."""
        self._plan_claims(now)
        targets = self._targets
        plan = (
            *(("", *pair) for pair in product(targets.collectors, POOL_SOURCES)),
            *((WMS, *pair) for pair in product(targets.wms_collectors, WMS_SOURCES)),
        )
        together: dict[tuple[str, str, str], list[str]] = {}
        for prefix, host, source in plan:
            if targets.kinds is None or source.kind in targets.kinds:
                name = prefix + (host or "local")
                alone = source.large or self._apart_until.get(name, 0.0) > time.monotonic()
                part = source.kind if alone else "discovers" * source.discovers
                together.setdefault((name, host, part), []).append(source.kind)
        discovery: list[Future[Any]] = []
        others: list[Future[Any]] = []
        claims: list[Future[Any]] = []
        for (name, host, _), kinds in together.items():
            terms = Terms(access, host, self._config.attributes, now, self.claims_since)
            future = pool.submit(self._ask_together, name, terms, kinds)
            rest = claims if kinds == [CLAIMS] else others
            (discovery if SOURCES[kinds[0]].discovers else rest).append(future)
        return discovery, others, claims

    def _ask_together(self, collector: str, terms: Terms, kinds: Sequence[str]) -> None:
        """Ask for small answers in one child; where that fails, for each in its own for an hour.

        So a kind that does not answer takes the others with it once.  Of very many ads of a
        collector one kind is asked for at a time, unless it came too late so before.
        """
        answers: dict[str, tuple[tuple[Any, int], child.Usage]] = {}
        began, left_s = time.monotonic(), self.left_s
        if len(kinds) > 1 and left_s > _LEAST_S:
            limit = self._config.poll.memory_limit_mib
            try:
                (answers, _), _ = child.run(
                    tasks.ask_each, terms, kinds, deadline_s=left_s, memory_mib=limit
                )
            except child.QueryError as error:
                self._apart_until[collector] = began + RETRY_KEY_S
                if error.problem == ProblemName.TIMEOUT:
                    took = time.monotonic() - began
                    for kind in kinds:
                        self._failed(collector, kind, error.problem, error.detail, took)
                    return
        how = (lambda _task, _terms, kind, **_: answers[kind]) if answers else child.run
        for kind in kinds:
            few = kind == CLAIMS and terms.claims_since is not None
            in_parts = SOURCES[kind].joined is not None and not few
            before = self._statuses.get((collector, kind))
            waits = in_parts and (before is None or before.up)
            with self._large.setdefault(collector, threading.Lock()) if waits else nullcontext():
                self.run(
                    *(collector, kind, tasks.ask, terms, kind),
                    how=self._in_parts if in_parts else how,
                )

    def _in_parts(
        self, task: Callable[..., tuple[Any, int]], terms: Terms, kind: str, **limits: Any
    ) -> tuple[tuple[Any, int], child.Usage]:
        """Ask for very many ads, a part after the other: each child holds the ads of one.

        A job that begins meanwhile is seen by the next question for new claims.
        """
        joined = SOURCES[kind].joined
        assert joined is not None
        before = self._ads.get((terms.name, kind))
        n = _FIRST_PARTS[kind] if before is None else 1 + before // _AT_ONCE[kind]
        until = time.monotonic() + limits["deadline_s"]
        answers = []
        for k in range(n):
            left = until - time.monotonic()
            if left < -_LATE_S:
                raise child.QueryError(ProblemName.TIMEOUT, f"{k} of {n} parts came in time")
            limits["deadline_s"] = max(_LEAST_S, left)
            answers.append(child.run(task, terms._replace(part=(k, n)), kind, **limits))
        values, numbers = zip(*(answer for answer, _ in answers), strict=True)
        usages = [usage for _, usage in answers]
        self._ads[terms.name, kind] = sum(numbers)
        cpu_s, peak_mib = sum(u.cpu_s for u in usages), max(u.peak_mib for u in usages)
        return (joined(values), sum(numbers)), child.Usage(cpu_s, peak_mib)

    def ask_all_claims(self) -> None:
        """Ask for all claims in the next round, not only for new ones."""
        self._all_claims_at = -self._claims_every

    def _plan_claims(self, now: float) -> None:
        """Ask for all claims now and then and until all have answered, else only for new ones."""
        asked = [self._answers.get((host or "local", CLAIMS)) for host in self._targets.collectors]
        oldest_s = min((answer.at_s for answer in asked if answer is not None), default=0.0)
        missed = None in asked or oldest_s < self._all_claims_at
        due = time.monotonic() - self._all_claims_at >= self._claims_every
        self.claims_since = None if missed or due else now - self._claims_overlap
        if self.claims_since is None:
            self._all_claims_at = time.monotonic()

    def _ask_schedds(
        self,
        pools: tuple[ThreadPoolExecutor, ThreadPoolExecutor],
        access: Access,
        seen: Iterable[schedds.ScheddSeen],
        before: dict[Daemon, Future[Any] | None],
    ) -> dict[Daemon, Future[Any] | None]:
        """Ask schedds, each after what was asked of it ``before`` (at another address).

        Those that have answered come first, those that were silent last.
        """
        poll = self._config.poll
        asked: dict[Daemon, Future[Any] | None] = {}
        every = sorted(seen, key=self._trust)
        share = _NEW_SHARE if len(every) > poll.parallel else 1
        for schedd in every:
            name = schedd.daemon.name
            busy = (schedd.load.duty_cycle or 0) > poll.busy_duty_cycle
            status = self._statuses.get((name, DEMAND))
            if busy and status is not None and status.skipped + 1 < poll.busy_factor:
                self.busy.add(name)
                self._statuses[name, DEMAND] = status._replace(skipped=status.skipped + 1)
                asked[schedd.daemon] = None
                continue
            if not busy:
                self.busy.discard(name)
            new = status is None or (status.last_success is None and name not in self._silences)
            call = self._ask_schedd, access, schedd, share if new else 1
            asked[schedd.daemon] = self._submit(pools, schedd.daemon, DEMAND, before, *call)
        return asked

    def _trust(self, schedd: schedds.ScheddSeen) -> tuple[float, bool]:
        """Return what those that answer have less of."""
        name = schedd.daemon.name
        silence, status = self._silences.get(name), self._statuses.get((name, DEMAND))
        return silence.until if silence else 0.0, status is None or status.last_success is None

    def _submit(
        self,
        pools: tuple[ThreadPoolExecutor, ThreadPoolExecutor],
        schedd: Daemon,
        kind: str,
        before: Mapping[Daemon, Future[Any] | None],
        call: Callable[..., object],
        *args: Any,
    ) -> Future[Any] | None:
        """Have a schedd's queue asked for, alone if it was silent; None: not now.

        It is asked after what was asked of it ``before``.
        """
        name = schedd.name
        earlier = next((f for d, f in before.items() if d.name == name and f), None)
        silence = self._silences.get(name)
        if silence is not None and silence.address != schedd.address:  # it was started anew
            silence = None
        if silence is not None and time.monotonic() < silence.until:
            self._rests(name, kind)
            return None

        def ask() -> None:
            if silence is not None and self._one_was_silent:
                self._rests(name, kind)
                return
            if earlier is not None:
                earlier.result()
            call(*args)
            self._note_silence(name, schedd.address, kind)

        return pools[silence is not None].submit(ask)

    def _ask_schedd(self, access: Access, schedd: schedds.ScheddSeen, share: int) -> None:
        config = self._config
        factories = schedd.unmaterialized != 0
        name = schedd.daemon.name
        start = self._start_keys(name) if self._targets.groups else demand.NO_KEYS
        grouping = demand.JobGrouping(config.attributes, config.demand, start)
        arguments = access, schedd.daemon, grouping, factories, self._apart
        within_s = self._allowed / share
        answer = self.run(name, DEMAND, tasks.schedd_demand, *arguments, within_s=within_s)
        for attribute in answer.ungrouped if answer else ():
            self._ungrouped.setdefault((name, attribute), time.monotonic())

    def _start_keys(self, schedd: str) -> demand.StartKeys:
        """Return the job attributes that START expressions need, but not those left out before."""
        keys = demand.StartKeys(self._templates.start_references())
        return keys.without(name for owner, name in list(self._ungrouped) if owner == schedd)

    def _discover(self, now: float) -> None:
        """Choose the schedds to ask: those that are wanted, and whose names are kept apart."""
        seen: list[schedds.ScheddSeen] = []
        for host in self._targets.collectors:
            for kind in (SCHEDDS, SUBMITTERS):
                if answer := self._answers.get((host or "local", kind)):
                    seen += answer.value.schedds
        patterns = self._config.pool.schedds
        chosen = {s.daemon.name: s for s in schedds.choose(seen, patterns)}
        if self._names is not None:
            named = Counter(schedd.daemon.name for schedd in seen)
            self._names.note_words(SCHEDD_NAMES, named, now, chosen if patterns else ())
            kept, _ = self._names.room(SCHEDD_NAMES)
            chosen = {name: schedd for name, schedd in chosen.items() if name in kept}
        self._seen = chosen

    def _ask_factory_schedds(
        self,
        pools: tuple[ThreadPoolExecutor, ThreadPoolExecutor],
        access: Access,
        now: float,
        before: Mapping[Daemon, Future[Any] | None],
    ) -> list[Future[Any]]:
        """Ask factories' schedds, each after its idle jobs were asked for ``before``."""
        daemons: dict[str, Daemon] = {}
        for host in self._targets.wms_collectors:
            if answer := self._answers.get((WMS + host, SCHEDDS)):
                daemons |= {s.daemon.name: s.daemon for s in answer.value.schedds}
        futures = []
        for name in self._targets.factory_schedds:
            if name not in daemons:
                detail = "no WMS collector knows this factory schedd"
                self._failed(name, _QUEUE, ProblemName.UNKNOWN_SCHEDD, detail)
                continue
            asked = access, daemons[name], self._config.site.pending_grace, now
            call = self.run, name, _QUEUE, tasks.factory_queue, *asked
            if (future := self._submit(pools, daemons[name], _QUEUE, before, *call)) is not None:
                futures.append(future)
        return futures

    def _since(self, sample: SampleSlot) -> float:
        """Return since when an entry is known, so that strangers come last."""
        standing = self._names.entries.get(sample.entry) if self._names is not None else None
        return 0.0 if standing is None else standing.first

    def _answer(self, source: str, kind: str) -> Answer | None:
        query = source, kind
        return self._folded.get(query) or self._answers.get(query)

    def _ask_templates(self, access: Access, now: float) -> None:
        """Fetch whole ads of sample slots where they are new, changed, or old."""
        self._fold_places(now)
        moment, wants = time.monotonic(), self._templates.wants
        for host in self._targets.collectors:
            source, made = host or "local", None
            answer = self._answer(source, SLOTS)
            new = [s for s in (answer.value.samples if answer else ()) if wants(s, moment)]
            if missing := sorted(new, key=self._since)[:SAMPLES_AT_ONCE]:  # the rest next time
                made = self.run(
                    *(source, "templates", tasks.slot_templates, access),
                    *(host, missing, self._config.attributes),
                )
            for template in made or ():
                self._templates.add(template, moment)
        for host in self._targets.collectors:
            if answer := self._answer(host or "local", REQUESTS):
                for template in answer.value.templates:
                    self._templates.add(template, moment)
        self._templates.forget(moment)

    def _forget(self) -> None:
        """Drop what belongs to schedds that are gone, so that memory does not grow."""
        for name, kind in [key for key in self._statuses if key[1] == DEMAND]:
            if name not in self._seen:
                self._statuses.pop((name, kind), None)
                self._answers.pop((name, kind), None)
        for name in self._silences.keys() - self._seen.keys() - {*self._targets.factory_schedds}:
            del self._silences[name]
        now = time.monotonic()
        for key in [k for k, at in self._ungrouped.items() if now - at > RETRY_KEY_S]:
            del self._ungrouped[key]
