"""The simulated pool in the place of live daemons: gwmond's own queries, answered from its ads.

A constraint is evaluated on the whole ads, as a daemon does it.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

from gwmond.config.settings import Config
from gwmond.sources.htcondor import waiting_job
from gwmond.sources.htcondor.access import Daemon, Query
from gwmond.sources.htcondor.pilots import slots
from gwmond.sources.recording import recording, replayed_runs
from tests.pool.adtext import Ad, ad_text, literal
from tests.simulator import ads
from tests.simulator.parts import Pilot
from tests.simulator.pool import STEP_S, Pool
from tests.simulator.world import COLLECTOR, FACTORY_SCHEDD, SCHEDDS, WMS

if TYPE_CHECKING:
    import classad2

Frame = dict[str, list[dict[str, str]]]
_KEPT = 6000
"""Records of a history that can still be asked for."""


class SimulatedAccess:
    """What daemons answer at the time of the pool; ``go_on`` advances it."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self._known: dict[int, tuple[object, list[classad2.ClassAd]]] = {}
        self._ads: dict[str, list[classad2.ClassAd]] = {}
        self._records: defaultdict[tuple[str, str], deque[dict[str, str]]] = defaultdict(
            lambda: deque(maxlen=_KEPT)
        )
        self._renew()

    def go_on(self, seconds: int) -> None:
        """Let so much time pass."""
        for _ in range(seconds // STEP_S):
            self.pool.step()
        self._renew()

    def _renew(self) -> None:
        pool = self.pool
        for run, pilot in sorted(pool.epochs, key=lambda of: of[0].written):
            self._write(run.job.schedd, "epochs", ads.epoch(run, pilot))
        for left in sorted(pool.history, key=lambda of: of.at):
            self._write(left.last.job.schedd, "history", ads.history(left))
        pool.epochs.clear()
        pool.history.clear()
        pilots = [p for p in pool.all_pilots() if p.ready <= pool.now] + pool.ghosts
        self._known = {pilot.serial: self._of_pilot(pilot) for pilot in pilots}
        of_pilots = [ad for _, found in self._known.values() for ad in found]
        self._ads = {
            "StartDaemon": [ad for ad in of_pilots if ad["MyType"] == "StartD"],
            "Startd": [ad for ad in of_pilots if ad["MyType"] == "Machine"],
            "Any": self._parse([*ads.resources(pool), *ads.monitors(pool)]),
            "Schedd": self._parse(ads.schedds(pool)),
            "Submitter": self._parse(ads.submitters(pool)),
            "Collector": self._parse([ads.collector(pool)]),
        }
        self._of_factory = {"Schedd": self._parse([ads.factory_schedd(pool)])}

    def _of_pilot(self, pilot: Pilot) -> tuple[object, list[classad2.ClassAd]]:
        """Return the ads of a pilot: those of before if only the time has changed."""
        state = tuple(pilot.jobs), pilot.heard, pilot.end
        before = self._known.get(pilot.serial)
        if before is None or before[0] != state or pilot.fails:
            return state, self._parse(ads.pilot(pilot, self.pool.now))
        heard = ads.heard_of(pilot, self.pool.now)
        for ad in before[1]:
            ad["LastHeardFrom"] = ad["MyCurrentTime"] = heard
        return before

    def _write(self, schedd: str, kind: str, record: Ad) -> None:
        self._records[schedd, kind].append({n: literal(value) for n, value in record.items()})

    def _parse(self, found: Iterable[Ad]) -> list[classad2.ClassAd]:
        import classad2  # noqa: PLC0415 (only ever where queries run)

        return [classad2.ClassAd(ad_text(ad)) for ad in found]

    def _asked(self, found: Iterable[classad2.ClassAd], query: Query) -> list[classad2.ClassAd]:
        import classad2  # noqa: PLC0415

        if not query.constraint or query.constraint == "true":
            return list(found)
        wanted = classad2.ExprTree(query.constraint)
        return [ad for ad in found if wanted.eval(ad) is True]

    def collector_ads(self, host: str, query: Query) -> list[classad2.ClassAd]:
        """Return the ads that the collector holds; that of the factory knows its schedd only."""
        known = self._of_factory if host == WMS else self._ads
        return self._asked(known.get(query.ad_type, ()), query)

    def job_ads(self, schedd: Daemon, query: Query) -> list[classad2.ClassAd]:
        """Return a schedd's idle jobs, grouped; or the factory's pilots."""
        if schedd.name == FACTORY_SCHEDD:
            return self._asked(self._parse(ads.queue(self.pool)), query)
        return self._asked(self._parse(ads.rows(self.pool, schedd.name)), query)

    def explaining(self, frame: Frame, refers: Iterable[str]) -> Frame:
        """Return a frame with what it needs so that jobs and pilots can be explained.

        ``refers``: to which attributes of pilots jobs refer.
        """
        pool, attributes = self.pool, Config().attributes
        accounting = list(ads.accounting(pool))
        of_collector: dict[str, Iterable[Ad]] = {
            "accounting": accounting,
            "cycles": accounting[:1],
            "negotiators": [ads.negotiator(pool)],
            "limits": [{"Name": name} for name in SCHEDDS],
        }
        told = {f"collector/{COLLECTOR}/{kind}": of for kind, of in of_collector.items()}
        told |= {f"schedd/{name}/{recording.JOB}": ads.jobs(pool, name) for name in SCHEDDS}
        texts = {
            stream: [{name: literal(value) for name, value in ad.items()} for ad in found]
            for stream, found in told.items()
        }
        asked = slots.query(attributes)
        names = (*asked.attributes, *waiting_job.ASKED, *refers)
        texts[f"collector/{COLLECTOR}/{slots.KIND}"] = recording.dump(
            self.collector_ads(COLLECTOR, asked), names
        )
        for name in SCHEDDS:
            rows = zip(frame[f"schedd/{name}/demand"], ads.rows(pool, name), strict=True)
            texts[f"schedd/{name}/demand"] = [
                row | {"JobIds": literal(ad["JobIds"])} for row, ad in rows
            ]
        return frame | texts

    def cluster_ads(self, schedd: Daemon, query: Query) -> list[classad2.ClassAd]:
        """Return nothing: no cluster has jobs to materialize."""
        del schedd, query
        return []

    def history(
        self, daemon: Daemon, kind: str, query: Query, match: int, since: str
    ) -> list[classad2.ClassAd]:
        """Answer as a schedd does that has written all records up to now."""
        new = list(self._records[daemon.name, kind])
        moment = replayed_runs.ReplayMoment(0, 1, 1, 0, 0, lambda _: [new])
        return replayed_runs.history(moment, query, match, since)
