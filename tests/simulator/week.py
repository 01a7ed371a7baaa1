"""Plays some hours of the week to gwmond, and holds what it says against what is true."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gwmond.ledger.reading.reader import LedgerReader
from gwmond.model.pilots.stored_pilots import PilotRow
from gwmond.model.poll.snapshot import Overhead, Snapshot
from tests.simulator.access import SimulatedAccess
from tests.simulator.parts import Pilot
from tests.simulator.play import POLL_S, played
from tests.simulator.pool import Pool
from tests.simulator.truth import (
    Agreement,
    Judged,
    Room,
    judged,
    partition,
    stored,
    verdicts_agree,
)

SETTLED_S = 3 * 3600
"""A pilot that ended so long before the end of the play is settled."""


@dataclass
class Played:
    """What the play has shown: verdicts and partition beside the truth, and states of entries."""

    access: SimulatedAccess
    verdicts: Agreement = field(default_factory=Agreement)
    room: Room = field(default_factory=Room)
    idle: Counter[Overhead] = field(default_factory=Counter)
    starting: int = 0
    states: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    wrong: defaultdict[str, list[tuple[int, Judged]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    last: Snapshot | None = None

    @property
    def pool(self) -> Pool:
        """The pool that is played."""
        return self.access.pool

    def note(self, snapshot: Snapshot) -> Sequence[Judged]:
        """Compare one poll, and return what is true."""
        found = judged(self.pool, snapshot)
        verdicts_agree(self.verdicts, found, POLL_S)
        self.room.add(self.pool, snapshot, found, POLL_S)
        self.starting += POLL_S * sum(
            pilot.entry.units
            for pilot in self.pool.all_pilots()
            if pilot.started <= self.pool.now < pilot.ready
        )
        for group in snapshot.pilots.values():
            for (resource, part), units in group.overhead.items():
                self.idle[part] += units * POLL_S if resource == "cpu" else 0
        for one in found:
            if (one.bottleneck > 0) is not (one.true > 0):
                what = "said bottleneck" if one.bottleneck > 0 else "said insufficient"
                self.wrong[f"{what} {one.reason}"].append((self.pool.now, one))
        for (key, resource), row in snapshot.evaluation.rows.items():
            if resource == "cpu":
                self.states[key.entry, row.state.value, row.reason] += 1
        self.last = snapshot
        return found


def play(
    pool: Pool,
    ledger: Path,
    hours: float,
    say: Callable[[str], object] = lambda _: None,
    beside: Callable[[Snapshot, Sequence[Judged]], object] = lambda *_: None,
) -> Played:
    """Play so many hours from the beginning into a new ledger.

    ``beside`` is called after each poll with what it shows, and what is true.
    """
    shown = Played(SimulatedAccess(pool))
    polls = round(hours * 3600 / POLL_S)
    with played(shown.access, ledger) as poll:
        for number in range(polls):
            snapshot = poll()
            beside(snapshot, shown.note(snapshot))
            if number % 144 == 143:
                say(f"{pool.hour:.0f} h: {sum(1 for _ in pool.all_pilots())} pilots")
    return shown


def partition_agrees(pool: Pool, ledger: Path) -> tuple[Agreement, list[Pilot]]:
    """Compare the ledger's pilots that have ended with the truth; and return those it lacks."""
    agreement, lacking = Agreement(), []
    with LedgerReader.open(str(ledger)) as reader:
        rows: dict[str, PilotRow] = {}
        for kind in {pilot.entry.name for pilot in pool.ended}:
            for ids in reader.pilots_by_kind(kind).values():
                rows |= {row.identity.name: row for row in reader.pilots_by_id(ids).values()}
    for pilot in pool.ended:
        if pilot.end > pool.now - SETTLED_S:
            continue
        row = rows.get(pilot.name)
        if row is None:
            lacking.append(pilot)
            continue
        agreement.add(stored(row), partition(pilot))
    return agreement, lacking


def told(shown: Played, ledger: Path) -> str:
    """Return how far verdicts and partition are from the truth, as docs/truth.md has it."""
    agreement, lacking = partition_agrees(shown.pool, ledger)
    checked = (shown.last.verdicts if shown.last is not None else None) or {}
    agreed = sum(one.agreed for one in checked.values())
    wrong = sorted(
        f"{what}: {sum(one.spare for _, one in found) * POLL_S / 3600:.1f} unit hours"
        for what, found in shown.wrong.items()
    )
    return "\n".join(
        [
            "| verdict | true | said | both | F1 |",
            shown.verdicts.table(),
            *wrong,
            "| of the site's room, by where the capacity is from | true | said | both | F1 |",
            shown.room.table(),
            f"checked by pilots: {agreed} of {sum(one.checked for one in checked.values())} right",
            "| category | true | in the ledger | both | F1 |",
            agreement.table(),
            f"pilots that the ledger lacks: {len(lacking)} of {len(shown.pool.ended)}",
        ]
    )
