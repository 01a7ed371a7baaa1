"""How often each alert is right in simulated weeks, and how many incidents it finds.

The week of the demo, drawn ones, others' incidents and a healthy week (``tests.simulator.story``)
are played to gwmond, and promtool evaluates the rules of etc/prometheus on what it shows.  What
should fire follows from what happened in the pool (``tests.alerts.causes``).  A week takes some
fifteen minutes of CPU.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

from gwmond.model.poll.snapshot import Snapshot
from tests.alerts.causes import LATER_H, Past, Score, causes, is_right, scores
from tests.alerts.played import Samples, firing
from tests.alerts.rules import alerts
from tests.bench.harness import say
from tests.simulator import week
from tests.simulator.pool import Pool
from tests.simulator.story import EVENTS, INCIDENTS, Event, drawn
from tests.simulator.truth import Agreement, Judged
from tests.simulator.world import PRESENT_H, SEED

STORIES = ("week", "drawn", "incidents", "healthy")


def main() -> None:
    """Play, evaluate, print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench alerts", description=__doc__)
    parser.add_argument(
        "weeks",
        nargs="*",
        default=[f"week:{SEED}", "week:7101", "drawn:501", "incidents:1", "healthy:4711"],
        help=f"a story ({', '.join(STORIES)}) and a seed",
    )
    parser.add_argument("--hours", type=float, default=PRESENT_H)
    parser.add_argument("--parallel", type=int, default=2)
    options = parser.parse_args()
    with ThreadPoolExecutor(options.parallel) as pool:
        asked = [(one, options.hours) for one in options.weeks]
        found = list(pool.map(lambda one: _in_child(*one), asked))
    for name, answer in zip(options.weeks, found, strict=True):
        print(f"{name}: F1 of bottlenecks {answer['f1']:.3f}")
        for text in answer["told"]:
            print(f"  {text}")
    print(table([answer["scores"] for answer in found]))


def _in_child(name: str, hours: float) -> dict[str, Any]:
    say(f"{name} begins")
    code = "import sys; from tests.bench.alerts import measured; measured(*sys.argv[1:])"
    command = [sys.executable, "-c", code, name, str(hours)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    say(f"{name} is played")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def measured(name: str, hours: str) -> None:
    """Print what happens in one week, as JSON."""
    story, _, seed = name.partition(":")
    events: Sequence[Event] = {
        "week": EVENTS,
        "drawn": drawn(int(seed)),
        "incidents": INCIDENTS,
        "healthy": (),
    }[story]
    samples, past, verdicts = play(Pool(int(seed), events), float(hours))
    fired, true = firing(samples, list(alerts())), causes(past)
    told = [
        f"{one.begins_h:.1f} to {one.ends_h:.1f} h: {one.alert} {one.place}, for nothing"
        for one in fired
        if not is_right(one, true.get(one.alert, ()), LATER_H.get(one.alert, 3))
    ]
    told += [
        f"{cause.begins_h:.1f} to {cause.ends_h:.1f} h: {alert} {cause.place}, not told"
        for alert, of_alert in true.items()
        for cause in of_alert
        if cause.large
        and not any(
            is_right(one, [cause], LATER_H.get(alert, 3)) for one in fired if one.alert == alert
        )
    ]
    answer = {
        "f1": verdicts.f1("provisioning_bottleneck"),
        "told": told,
        "scores": scores(fired, true, alerts()),
    }
    print(json.dumps(answer))


def play(pool: Pool, hours: float) -> tuple[Samples, Past, Agreement]:
    """Play so many hours to gwmond."""
    samples, past = Samples(), Past(pool.events)

    def note(snapshot: Snapshot, true: Sequence[Judged]) -> None:
        samples.note(snapshot)
        past.note(true, snapshot.evaluation)

    with tempfile.TemporaryDirectory() as directory:
        shown = week.play(pool, Path(directory) / "ledger.sqlite", hours, beside=note)
    past.end(pool)
    return samples, past, shown.verdicts


def table(found: Iterable[dict[str, Sequence[Any]]]) -> str:
    """Return the scores of all weeks together, in Markdown."""
    sums: dict[str, Score] = {}
    for one in found:
        for name, values in one.items():
            score = Score(*values)._replace(waits_h=tuple(values[4]))
            sums[name] = sums[name].plus(score) if name in sums else score
    lines = [
        "| alert | fired | right | precision | causes | found | recall | median wait |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, of in sums.items():
        precision = f"{of.right / of.fired:.2f}" if of.fired else ""
        recall = f"{of.found / of.large:.2f}" if of.large else ""
        wait = f"{median(of.waits_h) * 60:.0f} min" if of.waits_h else ""
        lines.append(
            f"| {name} | {of.fired} | {of.right} | {precision} "
            f"| {of.large} | {of.found} | {recall} | {wait} |"
        )
    return "\n".join(lines)
