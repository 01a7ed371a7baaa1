"""One poll after another, with feigned daemons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gwmond.config.settings import Config
from gwmond.ledger.store import Ledger
from gwmond.model.elapsed import Tick
from gwmond.model.facts import EntryKey
from gwmond.model.poll.snapshot import Snapshot
from gwmond.service.accounting.ledger_keeper import LedgerKeeper
from gwmond.service.poller import Poller
from gwmond.service.pool.pool import Pool
from gwmond.sources.htcondor.access import Access
from tests.build.at_once import at_once
from tests.pool.adtext import Ad, Expr, Value, ad_text
from tests.pool.feign import glidein, glideresource, partitionable_slot
from tests.sources.feigned_access import Feigned
from tests.sources.make import NOW, heard

ENTRY = EntryKey("Site", "entry")
Ads = Sequence[Mapping[str, Value] | str]


class Clock:
    """A clock that a test sets."""

    speed = 1.0

    def __init__(self) -> None:
        self.passed = 0.0

    def tick(self) -> Tick:
        return Tick(NOW + self.passed, 100 + self.passed, 200 + self.passed, "boot")

    def next_tick(self, after: Tick | None) -> Tick:
        del after
        return self.tick()


class FeignedPool(Pool):
    """A pool whose daemons say what a test tells them to."""

    def __init__(self, config: Config, log: Path) -> None:
        super().__init__(config)
        self.answers: dict[tuple[str, str], Ads] = {}
        self.clock = self.time = Clock()
        self._log = log

    def access(self, tick: Tick) -> Access:  # noqa: ARG002
        texts = {
            key: tuple(ad if isinstance(ad, str) else ad_text(ad) for ad in ads)
            for key, ads in self.answers.items()
        }
        return Feigned(texts, str(self._log))

    def asked(self) -> list[str]:
        """What was asked since the last time, as "daemon kind"."""
        lines = self._log.read_text().splitlines()
        self._log.write_text("")
        return lines


class Polls:
    """A poller of a pool with one site: 8 cores run, 80 could, and 12 jobs wait."""

    #: whether queries are made in children, as they really are
    children = False

    def __init__(self, tmp_path: Path) -> None:
        self.config = Config.model_validate(
            {
                "pool": {"collectors": ["cm"]},
                "ledger": {"url": f"{tmp_path}/ledger.sqlite"},
                "site": {"pledge": [{"entry": "entry", "cores": 80}]},
            }
        )
        self.pool = FeignedPool(self.config, tmp_path / "log")
        self.keeper = LedgerKeeper(self.config)
        self.poller = Poller(self.config, self.pool, self.keeper)
        self.hear()

    def hear(self) -> None:
        """The collector hears of everybody now, and nobody is left alone any more."""
        self.pool.gatherer._silences.clear()
        now = int(self.pool.time.tick().wall)
        slot = partitionable_slot("p", started=NOW - 60, now=now, glidein=glidein(), Cpus=0)
        schedd: Ad = {"Name": "ap1", "MyAddress": "<ap1>", "JobsUnmaterialized": 0}
        self.pool.answers |= {
            ("cm", "slots"): [heard(slot, now)],
            ("cm", "templates"): [heard(slot, now)],
            ("cm", "schedds"): [heard(schedd, now)],
            ("cm", "glideresource"): [heard(glideresource(running=1, jobs_idle=12), now)],
            ("<ap1>", "demand"): [job(12)],
        }

    @property
    def ledger(self) -> Ledger:
        """The ledger, once it is open."""
        assert self.keeper.ledger is not None
        return self.keeper.ledger

    def poll(self, seconds: float = 60) -> Snapshot:
        self.pool.time.passed += seconds
        if self.children:
            return self.poller.poll()
        with at_once():
            return self.poller.poll()

    def reload(self, config: Config | None = None) -> None:
        """Go on under another configuration, or under the same one."""
        memory = self.poller.memory
        self.config = config or self.config
        self.poller = self.poller.successor(self.config, self.pool, self.keeper, memory)


def job(count: int, requirements: str = 'TARGET.GLIDEIN_Site == "Site"') -> Ad:
    ad: Ad = {"JobCount": count, "JobStatus": 1, "RequestCpus": 1, "RequestMemory": 1000}
    return ad | {"RequestDisk": 1, "Requirements": Expr(requirements)}


def made(tmp_path: Path, histories: dict[str, Any], factory: dict[str, Any] | None = None) -> Polls:
    """A pool with one idle pilot, of which one is to take leave."""
    polls = Polls(tmp_path)
    config = Config.model_validate(
        {
            "pool": {"collectors": ["cm"]},
            "ledger": {"url": f"{tmp_path}/ledger.sqlite"},
            "site": {"collector_distrust": "1ms"},
            "histories": {"startds": [], **histories},
            "factory": factory or {},
        }
    )
    polls.reload(config)
    collector: Ad = {"Name": "cm", "StatsLastUpdateTime": NOW, "StatsLifetime": 100_000}
    polls.pool.answers["cm", "collector"] = [collector]
    return polls
