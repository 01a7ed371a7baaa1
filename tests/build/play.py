"""The accounting with its store, driven poll by poll, in seconds from T0."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gwmond.model.facts import EntryKey, Pilot, Size
from gwmond.model.pilots.stored_pilots import PilotRow, PilotSeries
from gwmond.model.runs.endings import Ending
from gwmond.model.runs.run_facts import JobRecord, RunFact, Source
from gwmond.model.times import SECOND_US
from gwmond.pilots.accounting import PilotAccounting
from gwmond.pilots.life.rules import FAR_US, Rules
from gwmond.pilots.memory.open_pilot import OpenPilot
from gwmond.pilots.runs.verdicts import Evidence
from gwmond.pilots.settlement import Unread
from tests.build.accounting import Steps
from tests.build.kept import kept

T0 = 1_700_000_400
POLL_S = 60
DELAY_S = 120
DONE = Ending(over=True, exit_code=0, own_accord=True, began=True, early=False)
UPDATE_S = 300


def shown(
    name: str = "glidein@node",
    started: int = 0,
    heard: int | None = None,
    *,
    cores: float = 4,
    memory: float = 8000,
    entry: str = "entry",
    factory_job: str = "",
    gpus: int = 0,
) -> Pilot:
    """A pilot as a collector shows it; times are seconds from T0."""
    return Pilot(
        name=name,
        started=T0 + started,
        entry=EntryKey("Site", entry),
        group="frontend.main",
        factory="factory",
        size=Size(cores, memory, gpus),
        free=(),
        jobs=(),
        accepting=True,
        remaining_s=None,
        last_heard=T0 + (started if heard is None else heard),
        node="node.example.org",
        factory_job=factory_job,
    )


def record(
    job: str,
    start: float,
    end: float | None,
    *,
    source: Source = Source.EPOCH_HISTORY,
    run: int | None = 1,
    startd: str = "glidein@node",
    started: int | None = 0,
    cores: float = 1,
    ending: Ending = DONE,
    site: str = "",
) -> JobRecord:
    """A record of a run; times are seconds from T0."""
    written = start if end is None else end
    fact = RunFact(
        source,
        f"schedd#{job}#1",
        run,
        round((T0 + written) * SECOND_US),
        None,
        round((T0 + start) * SECOND_US),
        None if end is None else round((T0 + end) * SECOND_US),
        Size(cores, cores * 2000),
        "user",
        "user run.sh",
        ending,
    )
    return JobRecord(fact, startd, None if started is None else T0 + started, site)


def claim(job: str, start: float, **more: object) -> JobRecord:
    """A claim that a slot shows."""
    return record(
        job,
        start,
        None,
        source=Source.LIVE_SLOT,
        run=None,
        ending=Ending(),
        **more,  # type: ignore[arg-type]
    )


def proved(pilot: OpenPilot) -> None:
    """A pilot's life is what its facts say now, whatever they were before."""
    before = pilot.derived
    pilot.derive()
    assert pilot.derived == before


class Play(Steps):
    """Polls at given times; ``restart`` makes the accounting anew from what is stored."""

    def __init__(self, rules: Rules | None = None) -> None:
        self.rules = rules or Rules(refresh_us=0)
        self.stored = kept()
        super().__init__(PilotAccounting(self.stored.load(), self.rules), self.stored)

    def restart(self) -> None:
        """Forget all that is only in memory."""
        self.accounting = PilotAccounting(self.stored.load(), self.rules)
        assert all(pilot.changed_since_us == FAR_US for pilot in self.accounting.pilots)

    def poll(
        self,
        at: int,
        pilots: Sequence[Pilot] = (),
        records: Sequence[JobRecord] = (),
        claims: Sequence[JobRecord] = (),
        *,
        complete: bool = True,
        known: int | None = None,
        behind: bool = False,
    ) -> None:
        """One poll at ``at`` seconds; ``behind``: records are unread, of when no slot was seen."""
        now = (T0 + at) * SECOND_US
        self.add_ads(now, POLL_S * SECOND_US, pilots, complete=complete)
        self.add_claims(now, claims, complete=complete)
        self.add_records(records)
        until = T0 + (at - DELAY_S if known is None else known)
        unread = Unread({"schedd": until * SECOND_US} if behind else {}, unwatched=behind)
        self.settle(now, until * SECOND_US, (), unread)
        for pilot in self.accounting.pilots:
            proved(pilot)
        self.store(now)

    def live(self, first: int, last: int, pilots: Sequence[Pilot], **more: object) -> None:
        """Poll from first to last; the pilots' ads are renewed every five minutes."""
        for at in range(first, last + 1, POLL_S):
            heard = at - at % UPDATE_S
            renewed = [
                pilot._replace(last_heard=max(pilot.last_heard, T0 + heard)) for pilot in pilots
            ]
            self.poll(at, renewed, **more)  # type: ignore[arg-type]

    def rest(self, first: int, hours: int = 12, every_s: int = 1800) -> None:
        """Poll with nothing to see, until all is judged and settled."""
        for at in range(first, first + hours * 3600, every_s):
            self.judge_at(at)
            self.poll(at)

    def judge_at(self, at: int) -> None:
        """Let verdicts on early failures fall at ``at`` seconds."""
        now_us = (T0 + at) * SECOND_US
        self.judge(now_us, Evidence(now_us - DELAY_S * SECOND_US))

    def pilot(self, name: str = "glidein@node") -> PilotRow:
        """The one pilot of this name."""
        (row,) = (pilot for pilot in self.stored.pilots.values() if pilot.identity.name == name)
        return row

    def series(self) -> list[PilotSeries]:
        """The series of which any time is posted."""
        return [series for (_, series), micros in self.stored.posted.items() if micros]

    def counted(self) -> dict[str, int]:
        """What is counted, in all: pilots, runs ..., and micros of assumed time."""
        sums: Counter[str] = Counter()
        for key, number in self.stored.counts.items():
            sums[key.what] += number
        return {what: number for what, number in sums.items() if number}

    def seconds(self, measure: str = "resource", resource: str = "cpu") -> dict[str, float]:
        """Seconds by category, over all pilots."""
        sums: Counter[str] = Counter()
        for (_, series), micros in self.stored.posted.items():
            if (series.resource, series.measure) == (resource, measure):
                sums[series.category.value] += micros
        return {category: micros / 1e6 for category, micros in sums.items() if micros}
