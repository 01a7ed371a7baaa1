"""What a factory says of its pilots, beside what the daemon accounts of them."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from prometheus_client.openmetrics.parser import text_string_to_metric_families

from gwmond.model.times import HOUR_US, SECOND_US
from gwmond.service.accounting.reconciler import due
from gwmond.sources.gwms.factory_dir import SETTLE_S
from tests.build.gwms import generate, simulated
from tests.build.gwms.simulated import Pilot
from tests.daemon.running import RunningDaemon
from tests.daemon.scene import Scene
from tests.daemon.scrape import Metrics

Start = Callable[..., RunningDaemon]
EVENTS = "gwmond_factory_queue_events_total"
NUMBER = 40
SEED = 9


def ending(pilot: Pilot, end: int) -> Pilot:
    """The same pilot at another time."""
    by = end - pilot.end
    return pilot._replace(
        start=pilot.start + by,
        end=end,
        last_script=None if pilot.last_script is None else pilot.last_script + by,
        condor=None if pilot.condor is None else (pilot.condor[0] + by, pilot.condor[1] + by),
        failed_at=None if pilot.failed_at is None else pilot.failed_at + by,
        jobs=tuple(j._replace(start=j.start + by, end=j.end + by) for j in pilot.jobs),
    )


def write(root: Path, pilots: list[Pilot]) -> None:
    """What a factory has of pilots."""
    for pilot in pilots:
        folder = root / "client" / pilot.directory
        server = root / "server" / f"entry_{pilot.entry_name}"
        for directory in (folder, server):
            directory.mkdir(parents=True, exist_ok=True)
        for name, content in generate.files(pilot).items():
            (folder / name).write_bytes(content)
        day = time.strftime("%Y%m%d", time.gmtime(pilot.start - 600))
        with (folder / f"condor_activity_{day}_{pilot.user}-frontend.main.log").open("a") as log:
            log.write(generate.events(pilot))
        with (server / f"completed_jobs_{day}.log").open("a") as log:
            log.write(generate.completed(pilot))


def factory_numbers(metrics: Metrics) -> dict[str, float]:
    """The sums over entries and clients of counters of the factory's own numbers."""
    names = ("pilots", "pilots_without_duration", "pilot_seconds", "condor_seconds", "jobs")
    found = {name: metrics.sum(f"gwmond_factory_completed_{name}_total") for name in names}
    states = ("submitted", "started", "ended", "held", "removed")
    return found | {state: metrics.sum(EVENTS, event=state) for state in states}


def test_outputs_that_are_missing_or_empty(
    shared_scene: Scene, daemon: Start, tmp_path: Path
) -> None:
    """How many came, and how many are empty, of those that started; an empty one may come yet."""
    now = int(time.time())
    pilots = [ending(pilot, now - 7200) for pilot in simulated.pilots(SEED, 60)]
    kinds = Counter(pilot.kind for pilot in pilots)
    assert min(kinds["no_files"], kinds["empty"]) > 0
    late = next(pilot for pilot in pilots if pilot.kind == "good")
    root = tmp_path / "factory"
    write(root, pilots)
    folder = root / "client" / late.directory
    for name in generate.files(late):
        (folder / name).write_bytes(b"")
    for path in root.rglob("job.*"):  # of one that is empty this is all that dates it
        os.utime(path, (now - 7200, now - 7200))
    time.sleep(SETTLE_S + 1)  # what was just written waits, for it may be being written
    factory = {"directories": [str(root)], "every": "1s"}
    tables = {"factory": factory, "histories": {"lookback": "10d"}}
    running = daemon(shared_scene.pool.collector, tables=tables, env={"TZ": "UTC"})

    def outputs(metrics: Metrics) -> tuple[float, ...]:
        names = ("", "_empty", "_filled")
        return tuple(metrics.sum(f"gwmond_factory_outputs{name}_total") for name in names)

    came = len(pilots) - kinds["no_files"]
    first = running.wait_until("the outputs", lambda m: outputs(m)[0] == came)
    assert outputs(first) == (came, kinds["empty"] + 1, 0)
    assert first.sum(EVENTS, event="started") == len(pilots)
    for name, content in generate.files(late).items():
        (folder / name).write_bytes(content)
    expected = (came, kinds["empty"] + 1, 1)
    running.wait_until("the late one", lambda m: outputs(m) == expected)
    running.kill9()
    running.start()
    assert outputs(running.next_polls(3)) == expected
    running.kill9()

    past = tmp_path / "past.om"
    running.command("ledger", "export", "--format", "openmetrics", "--output", str(past))
    series = text_string_to_metric_families(past.read_text())  # type: ignore[no-untyped-call]
    last = {of.name: {str(one.labels): one.value for one in of.samples} for of in series}
    names = ("", "_empty", "_filled")
    assert tuple(sum(last[f"gwmond_factory_outputs{name}"].values()) for name in names) == expected


def test_what_the_factory_says(shared_scene: Scene, daemon: Start, tmp_path: Path) -> None:
    """Its numbers are counters that go on after a kill; the last day is compared with ours."""
    until = due(time.time_ns() // 1000).until_us // SECOND_US
    pilots = [
        ending(pilot, until - 3 * 3600 - 900 * number % (17 * 3600))
        for number, pilot in enumerate(simulated.pilots(5, NUMBER))
    ]
    write(tmp_path / "factory", pilots)
    time.sleep(SETTLE_S + 1)  # what was just written waits, for it may be being written
    factory = {"directories": [str(tmp_path / "factory")], "every": "1s"}
    tables = {"factory": factory, "histories": {"lookback": "10d"}}
    running = daemon(shared_scene.pool.collector, tables=tables, env={"TZ": "UTC"})
    ratio = "gwmond_reconciliation_unexplained_ratio"
    metrics = running.wait_until(
        "a reconciliation", lambda m: bool(m.sum(EVENTS)) and _has(m, ratio)
    )

    kinds = Counter(pilot.kind for pilot in pilots)
    lines = [pilot for pilot in pilots if pilot.kind != "hard_kill"]
    told = sum(pilot.end - pilot.start for pilot in lines if pilot.returned)
    numbers = factory_numbers(metrics)
    assert numbers["submitted"] == numbers["started"] == NUMBER
    assert numbers["ended"] == NUMBER - kinds["no_files"]
    assert numbers["pilots"] == len(lines)
    assert numbers["pilot_seconds"] == told

    assert metrics.sum("gwmond_reconciliation_factory_pilots_seconds") == told
    difference = metrics.sum("gwmond_reconciliation_difference_seconds")
    ours = metrics.sum("gwmond_reconciliation_pilots_seconds")
    assert abs(difference - (told - ours)) < 0.01
    assert metrics.sum(ratio) == 0
    end = metrics.value("gwmond_reconciliation_end_timestamp_seconds")
    assert end is not None
    assert end * SECOND_US % HOUR_US == 0

    running.kill9()
    running.start()
    again = running.wait_until("a reconciliation", lambda m: _has(m, ratio))
    assert factory_numbers(again) == numbers
    assert again.sum("gwmond_reconciliation_factory_pilots_seconds") == told


def _has(metrics: Metrics, name: str) -> bool:
    return bool(metrics.rows(name))
