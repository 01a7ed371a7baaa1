"""The demo's tour: what is known to be true of the week, and the page that shows it."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlencode

from gwmond.model.tour import TourStop
from tests.simulator.parts import How, Job, Pilot, Run
from tests.simulator.pool import Pool
from tests.simulator.story import BLACK_HOLE_NODE, What


def stops(pool: Pool, ledger: Path) -> list[TourStop]:
    """Return what there is to see, as the past ends."""
    with sqlite3.connect(f"file:{ledger}?mode=ro", uri=True) as connection:
        return _Tour(pool, connection).stops()


def _link(page: str, **asked: object) -> str:
    return f"{page}?{urlencode(asked)}" if asked else page


class _Tour:
    """The tour of a pool, with the numbers that pilots have in the ledger."""

    def __init__(self, pool: Pool, ledger: sqlite3.Connection) -> None:
        self._pool, self._ledger = pool, ledger
        self._pilots = [*pool.ended, *pool.all_pilots()]

    def _number(self, pilot: Pilot) -> int:
        asked = "SELECT id FROM pilots WHERE name = ?"
        return int(self._ledger.execute(asked, (pilot.name,)).fetchone()[0])

    def _idle(self, name: str) -> Sequence[Job]:
        return next(jobs for jobs in self._pool.idle if jobs and jobs[0].kind.name == name)

    def _failed(self, pilot: Pilot, what: What) -> int:
        return sum(run.plan.cause is what and run.how is run.plan.how for run in pilot.past)

    def _lost_at(self, site: str) -> int:
        """How many runs the downtime of a site cut off."""
        runs = (run for p in self._pilots if p.entry.site == site for run in p.past)
        return sum(run.how is How.LOST for run in runs)

    def stops(self) -> list[TourStop]:
        """Return the sentences and links."""
        eaten = {p: self._failed(p, What.BLACK_HOLE) for p in self._pilots}
        eater = max(eaten, key=lambda pilot: eaten[pilot])
        useless = sum(1 for p in self._pool.ended if not p.past and not p.fails)
        node = BLACK_HOLE_NODE.partition(".")[0]
        often = self._often()
        again, never = self._much_tried(), self._idle("impossible")[0]
        most = f"{len(often[1].past)} jobs in {(often[1].end - often[1].ready) / 3600:.0f} hours"
        return [
            TourStop(
                f"A site that starves since Saturday: {len(self._idle('alignment'))} jobs can run "
                "at Loire only, and the frontend sees none of them.",
                _link("entry", site="Loire", entry="Loire_ce1"),
            ),
            TourStop(
                f"The node that ate {sum(eaten.values())} jobs: {node} at Po, on Friday. This "
                f"pilot there ran {eaten[eater]} of them, each for a minute.",
                _link("pilot", id=self._number(eater)),
            ),
            TourStop(
                "A week of the pool: people's jobs come on working days, and at the weekend the "
                "sites have cores that nobody asks for.",
                _link("time", last="7d"),
            ),
            TourStop(
                "What failed this week: the storage of Tagus on Thursday, and since Wednesday, "
                "7:00, that of Po.",
                _link("failures", last="7d"),
            ),
            TourStop(
                "Since Tuesday noon most pilots at Neckar fail their validation: check_cvmfs.sh.",
                _link("failures", last="24h", site="Neckar"),
            ),
            TourStop(
                "A downtime: Elbe, from Thursday 16:00 to Friday 4:00. "
                f"{self._lost_at('Elbe')} jobs were lost with its pilots, and ran again elsewhere.",
                _link("time", last="7d", site="Elbe"),
            ),
            TourStop(
                "A limit of our own: the frontend allows 8 pilots of open.main at Adige, while "
                f"{len(self._idle('md'))} jobs wait that could run there.",
                _link("entry", site="Adige", entry="Adige_ce1"),
            ),
            TourStop(
                f"Jobs that wait for ever: {len(self._idle('mistyped'))} want the site Tamise, "
                f"which is none, {len(self._idle('impossible'))} more cores than any pilot has.",
                _link("explain", all=1),
            ),
            TourStop(
                "Why one of these does not run, and the commands that would change that.",
                _link("explain", job=never.id.split("#")[1], schedd=never.schedd),
            ),
            TourStop(
                "Pilots that are held, from Wednesday, 10:00, on: at Oder the CE has no route for "
                "them, so the move is the site's.",
                _link("held"),
            ),
            TourStop(
                f"{useless} pilots that never ran a job: what a frontend asks for that nobody "
                "needs any more.",
                _link("pilots", which="past", last="7d", category="decision_problem"),
            ),
            TourStop(
                f"The life of a pilot: {most}, and what its cores did meanwhile.",
                _link("pilot", id=self._number(often[1])),
            ),
            TourStop(
                f"A job that began {again.number} times, as its pilots were lost or its input did "
                "not arrive: its trace.",
                _link("trace", job=again.job.id),
            ),
        ]

    def _often(self) -> tuple[int, Pilot]:
        """Return a pilot of the last day whose jobs were of most kinds, and ended in most ways."""
        day = self._pool.now - 86400
        found = [p for p in self._pool.ended if p.end > day and p.past and p.entry.cores == 8]
        kinds = {p: Counter((run.job.index, run.how) for run in p.past) for p in found}
        chosen = max(found, key=lambda p: (len(kinds[p]), p.serial))
        return len(kinds[chosen]), chosen

    def _much_tried(self) -> Run:
        """Return the last run of the job that began most often, and was completed."""
        runs = [r for p in self._pool.ended for r in p.past if r.how is How.EXIT]
        return max(runs, key=lambda run: (run.number, run.start))
