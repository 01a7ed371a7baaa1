"""Runs of jobs that are over and not settled yet: by which rules, why, until when at the latest.

Units: times are microseconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from gwmond.config.settings import Config
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.model.cursor_kinds import SCHEDD_KINDS
from gwmond.model.facts import Place
from gwmond.model.runs.waits import Wait
from gwmond.model.times import ALWAYS, SECOND_US, Period
from gwmond.pilots.life.rules import Rules
from gwmond.pilots.memory.ad_times import silent_before_us
from gwmond.reports.render.formats import counted
from gwmond.reports.render.periods import both, short

_JUDGED_EVERY_S = 60.0


def rules(config: Config) -> Rules:
    """Return the periods of the configuration."""
    pilots = config.pilots

    def us(seconds: float) -> int:
        return round(seconds * SECOND_US)

    return Rules(
        memory_per_unit_mib=config.canonical.memory_mib,
        outcome_wait_us=us(pilots.outcome_wait),
        missing_wait_us=us(max(pilots.silent_wait, pilots.outcome_wait)),
        verdict_us=us(pilots.verdict_after),
        end_tolerance_us=us(pilots.end_tolerance),
        start_guard_us=min(us(pilots.settle_delay), 60 * SECOND_US),
        linger_us=us(max(pilots.settle_delay, pilots.end_tolerance) * 2),
        quiet_us=us(pilots.assumed_end),
        refresh_us=us(min(300.0, 2.5 * pilots.settle_delay)),
        check_us=us(config.site.verdict_check),
    )


def later_us(config: Config) -> int:
    """Return by how much later than it is due a decision falls: polls, and settle_delay."""
    seconds = config.pilots.settle_delay + 2 * config.poll.interval + _JUDGED_EVERY_S
    return round(seconds * SECOND_US)


SCHEDD_SILENT_S = 600.0
"""A schedd that has not reported its jobs for so long is silent."""

_WORDS = {
    "early_failure": "failed early, judged",
    "record": "without a record of the end, given up",
    "pilot": "perhaps cut off by the end of the pilot, decided",
    "schedd": "ended, settled once every schedd has reported up to then",
}


def open_runs(
    ledger: LedgerReader,
    rules: Rules,
    decided_later_us: int,
    place: Place,
    period: Period = ALWAYS,
) -> tuple[Wait, ...]:
    """Return what the runs on pilots of a place wait for."""
    cursors = ledger.cursors()
    silent_us = silent_before_us(cursors)
    rows = ledger.open_runs(silent_us, place, period)
    if not rows:
        return ()
    # Seldom is any open.
    from gwmond.pilots.memory.open_pilot import OpenPilot, OpenRun  # noqa: PLC0415
    from gwmond.pilots.runs.waits import waits  # noqa: PLC0415

    read_us = {
        cursor.source: cursor.complete_us or 0
        for cursor in cursors.values()
        if cursor.kind in SCHEDD_KINDS
    }
    newest_us = max(read_us.values(), default=0)
    silent = {name for name, at in read_us.items() if at < newest_us - SCHEDD_SILENT_S * SECOND_US}
    pilots = {stored.id: OpenPilot.of(stored, loaded_from_us=0) for _, stored in rows}
    for row, stored in rows:
        pilot = pilots[stored.id]
        pilot.runs[row.key] = OpenRun.of(row, pilot)
    return waits(pilots.values(), rules, silent_us, silent, decided_later_us)


def sentence(waits: Sequence[Wait]) -> str:
    """Return what is open as a sentence; empty if nothing is."""
    parts = [
        f"{wait.runs} {_WORDS[wait.why]}"
        + ("" if wait.until_us is None else f" by {short(wait.until_us)} UTC at the latest")
        for wait in waits
    ]
    if not parts:
        return ""
    number = counted(sum(wait.runs for wait in waits), "run")
    return f"{number} not settled yet: {'; '.join(parts)}."


def as_json(waits: Iterable[Wait]) -> list[dict[str, Any]]:
    return [
        {"why": wait.why.value, "runs": wait.runs, **both("until", wait.until_us)} for wait in waits
    ]
