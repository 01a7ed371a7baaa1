"""How often forecasts hold, and how sure verdicts are: on weeks of the simulator, by their seeds.

At moments of a week each forecast is made of what the ledger had by then, and held against what the
simulator did later.  An interval of nine of ten should hold in nine of ten, one of half in half.
Each hour the probability of each verdict is held against what an empty pilot would have got.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from gwmond.ledger.reading.reader import LedgerReader
from gwmond.model.demand.forecast import HORIZON_S, Forecast, Level, Levels, Starts, Tried, forecast
from gwmond.model.demand.idle_history import Begun
from gwmond.model.entries.confidence import NO_CHECKS, bins
from gwmond.model.pilots.stored_pilots import RunFilter
from gwmond.model.poll.snapshot import Snapshot
from gwmond.model.runs.phases import waited_us
from gwmond.model.times import ALWAYS, HOUR_S, SECOND_US
from gwmond.reports.sites.coming import EVERY_SITE, left_at
from gwmond.reports.sites.polls import past_polls
from gwmond.reports.sites.sites import cpu_rows
from tests.simulator.truth import Judged

WARM_S, EVERY_S, LEAST_S = 48 * HOUR_S, 3 * HOUR_S, 60.0
Held: TypeAlias = tuple[str, Forecast, float]
"""What was forecast, what was said, and how long it took (seconds)."""


class Coverage(NamedTuple):
    """Of ``number`` forecasts so many held; ``width``: the middle quotient of both bounds."""

    number: int
    half: float
    nine_tenths: float
    width: float


def of_jobs(ledger: LedgerReader) -> Iterator[Held]:
    """Yield forecasts of jobs' starts, a few users' jobs at each moment."""
    begun: defaultdict[tuple[str, str], list[Begun]] = defaultdict(list)
    for row, _ in ledger.runs_begun(RunFilter(ALWAYS), None):
        wait_us = waited_us(row.facts)
        if row.key.number == 1 and wait_us is not None:
            start_s = row.start_us / SECOND_US
            schedd = row.key.job.partition("#")[0]
            begun[schedd, row.user].append(Begun(start_s - wait_us / SECOND_US, start_s))
    every = [one for of_user in begun.values() for one in of_user]
    at_s = min(every).start_s + WARM_S
    while at_s < max(one.start_s for one in every) - 6 * HOUR_S:
        known = {
            name: Starts([one for one in of_user if one.start_s <= at_s])
            for name, of_user in begun.items()
        }
        of_schedd: defaultdict[str, list[Tried]] = defaultdict(list)
        for (schedd, _), starts in known.items():
            of_schedd[schedd] += starts.tried(at_s, counted=True)
        for (schedd, user), of_user in begun.items():
            waiting = sorted(one for one in of_user if one.queued_s <= at_s < one.start_s)
            for ahead in sorted({0, len(waiting) - 1} & {*range(len(waiting))}):
                job = waiting[ahead]
                said_s = known[schedd, user].said_s(at_s, at_s - job.queued_s, ahead)
                found = forecast(said_s, of_schedd[schedd])
                if found is not None:
                    yield "job starts", found, job.start_s - at_s
        at_s += EVERY_S


def of_sites(ledger: LedgerReader) -> Iterator[Held]:
    """Yield forecasts of full sites, and of sites and a pool for which no job is left."""
    series: defaultdict[tuple[str, str], list[Level]] = defaultdict(list)
    for poll in past_polls(ledger, 0, 1 << 62, 900):
        for key, left in left_at(poll):
            series[key].append(Level(poll.time_us / SECOND_US, left))
    levels = {key: Levels(of) for key, of in series.items()}
    if not series:
        return
    times = [level.time_s for level in next(iter(series.values()))]
    at_s = times[0] + WARM_S
    while at_s < times[-1] - HORIZON_S:
        for what in ("full", "no_job"):
            of_kind = {key: of for key, of in levels.items() if key[1] == what}
            tried = [one for of in of_kind.values() for one in of.tried(at_s)]
            for (site, _), of in of_kind.items():
                found = forecast(of.said_s(at_s), tried, HORIZON_S)
                if found is not None:
                    name = "pool has no job" if site == EVERY_SITE else f"site: {what}"
                    yield name, found, of.took_s(at_s)
        at_s += EVERY_S


def coverage(held: list[Held]) -> dict[str, Coverage]:
    """Return how often forecasts of each kind held."""
    found = {}
    for kind, number in sorted(Counter(kind for kind, _, _ in held).items()):
        rows = [(says, took) for name, says, took in held if name == kind]
        half = sum(says.half[0] <= took <= says.half[1] for says, took in rows)
        nine = sum(says.nine_tenths[0] <= took <= says.nine_tenths[1] for says, took in rows)
        widths = sorted(says.nine_tenths[1] / max(says.nine_tenths[0], LEAST_S) for says, _ in rows)
        found[kind] = Coverage(number, half / number, nine / number, widths[number // 2])
    return found


def of_week(seed: str, hours: str) -> None:
    """Play a week with this seed, and print what held, as JSON."""
    from tests.simulator import week  # noqa: PLC0415 (slow)
    from tests.simulator.pool import Pool  # noqa: PLC0415
    from tests.simulator.story import drawn  # noqa: PLC0415

    said: list[tuple[float, bool]] = []

    def note(snapshot: Snapshot, true: Sequence[Judged]) -> None:
        if snapshot.polls % 12:
            return
        rows = {key.entry: row for key, row in cpu_rows(snapshot).items()}
        for one in true:
            probability = rows[one.entry.name].probability
            if probability is not None:
                said.append((probability, (one.bottleneck > 0) == (one.true > 0)))

    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "ledger.sqlite"
        shown = week.play(Pool(int(seed), drawn(int(seed))), path, float(hours), beside=note)
        with LedgerReader.open(str(path)) as ledger:
            held = [*of_jobs(ledger), *of_sites(ledger)]
    own = shown.last.confidence if shown.last else NO_CHECKS
    answer = {
        "coverage": {kind: row._asdict() for kind, row in coverage(held).items()},
        "sure": {"number": len(said), "bins": list(bins(said)), **scores(said), "own": own.brier},
    }
    print(json.dumps(answer))


def scores(said: list[tuple[float, bool]]) -> dict[str, float]:
    """Return the Brier score, and that of saying the mean each time."""
    right = sum(one for _, one in said) / max(len(said), 1)
    brier = sum((p - one) ** 2 for p, one in said) / max(len(said), 1)
    return {"brier": brier, "of_the_mean": right * (1 - right), "right": right}


def main() -> None:
    """Play weeks, and print a table."""
    parser = argparse.ArgumentParser(prog="bench forecast", description=__doc__)
    parser.add_argument("seeds", nargs="+", help="of drawn weeks")
    parser.add_argument("--hours", default="174")
    options = parser.parse_args()
    print("| week | what | forecasts | half held | nine of ten held | width |")
    print("|---|---|---|---|---|---|")
    sure = []
    for seed in options.seeds:
        code = f"from tests.bench.forecast import of_week; of_week({seed!r}, {options.hours!r})"
        done = subprocess.run(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True
        )
        answer = json.loads(done.stdout.splitlines()[-1])
        sure.append((seed, answer["sure"]))
        for kind, row in answer["coverage"].items():
            each = Coverage(**row)
            shares = f"{each.half:.0%} | {each.nine_tenths:.0%} | {each.width:.1f}"
            print(f"| {seed} | {kind} | {each.number} | {shares} |", flush=True)
    print("\n| week | verdicts | right | Brier score | of the mean | by pilots | said: right |")
    print("|---|---|---|---|---|---|---|")
    for seed, found in sure:
        told = ", ".join(f"{p:.0%}: {right:.0%} of {n}" for n, p, right in found["bins"])
        brier = " | ".join(f"{found[name] or 0:.3f}" for name in ("brier", "of_the_mean", "own"))
        print(f"| {seed} | {found['number']} | {found['right']:.0%} | {brier} | {told} |")


if __name__ == "__main__":
    main()
