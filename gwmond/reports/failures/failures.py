"""Why validations failed: pilots that ended, by entry, node, class and test.

Units: times are microseconds since the epoch, amounts are micros.

Class and test are those of the pilot's output (metrics ``failure`` and ``TestID``); what a pilot
only advertises has no class.  A pilot counts with its whole life in the period in which it ended:
how long it validated, and slept after that (see ``stored_pilot``), sum up to it; of a pilot
whose end of validation is not known, neither is known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from gwmond.model.pilot_life import KINDS
from gwmond.model.pilots.stored_pilots import PilotRow
from gwmond.reports.factory_tools.figures import NOT_KNOWN
from gwmond.reports.failures.common_failures import CommonFailure, OfGroup, common, split
from gwmond.reports.render.categories import CORES, CPU, GPU, kinds_json
from gwmond.reports.render.formats import counted, hours, percent, ratio
from gwmond.reports.render.table import Column, Table, name_columns, table
from gwmond.reports.stored.pilot_sums import PilotSums
from gwmond.reports.stored.stored_pilot import StoredPilot

MOST = 20
"""How many lines by entry and node are shown, unless another number is asked for."""
_NOT_RECORDED = "(not recorded)"

DEFINITION = (
    "pilots that ended in the period and whose validation had failed, by entry, node, class and "
    "test, with their whole life; of_pilots: all pilots of the entry that ended at the node; "
    "validating: until the test had failed; asleep: from then to the end, deliberately; "
    "not_known: pilots for which that time is not known; times_estimated: of validating and "
    "asleep, where a pilot's begin or end rests on a rule; what rests on an estimated size is not "
    "in it, but in estimated_share"
)
_NOTE = (
    "Validating, asleep (from the failure to the end, deliberately) and not known (nothing says "
    "when the validation ended: n/k) are canonical hours, and sum to these."
)
_NOTE_ESTIMATED = (
    " Times estimated: the part of the first two of which a pilot's begin or end rests on a rule; "
    "what rests on an estimated size is not in it, but in the other tables' column estimated."
)


class FailureKey(NamedTuple):
    """Where and why; what is not known is empty."""

    site: str
    entry: str
    node: str
    kind: str
    test: str

    @property
    def place(self) -> tuple[str, str, str]:
        """Where: site, entry, node."""
        return self[:3]


class FailureLine(NamedTuple):
    """A line of a table: ``ended`` pilots ended there, at so many entries and nodes."""

    names: tuple[str, ...]
    failed: PilotSums
    ended: int
    entries: str = ""
    nodes: str = ""


def _named(key: FailureKey) -> tuple[str, ...]:
    place = key.site, key.entry, key.node or "(not known)"
    return (*place, key.kind or _NOT_RECORDED, key.test or _NOT_RECORDED)


NAMES = ("site", "entry", "node", "class", "test")
Columns: TypeAlias = Sequence[Column[FailureLine]]
_BY_PLACE: Columns = name_columns(NAMES, heads=3)
_BY_CAUSE: list[Column[FailureLine]] = [
    *name_columns(NAMES[3:]),
    Column("entries", lambda line: line.entries),
    Column("nodes", lambda line: line.nodes),
]


class Failures:
    """All failed validations of a period, and how many pilots ended at each node of an entry."""

    def __init__(self) -> None:
        self.of: dict[FailureKey, PilotSums] = {}
        self.ended: Counter[tuple[str, str, str]] = Counter()
        self._of_groups: Counter[OfGroup] = Counter()

    def take(self, rows: Iterable[PilotRow]) -> None:
        """Count pilots that ended; on those that failed no job ran, so their runs are not read."""
        for pilot in map(StoredPilot, rows):
            self.ended[(*pilot.identity.key, pilot.identity.node)] += 1
            failure = pilot.row.failure if pilot.failed else ""
            self._of_groups[pilot.identity.group, pilot.identity.key.entry, failure] += 1
            if pilot.failed:
                self.add(pilot)

    def add(self, pilot: StoredPilot) -> None:
        """Count a pilot that failed, which is counted in ``ended`` already."""
        place = *pilot.identity.key, pilot.identity.node
        key = FailureKey(*place, *split(pilot.row.failure))
        self.of.setdefault(key, PilotSums()).add(pilot)

    @property
    def total(self) -> PilotSums:
        return PilotSums().add_up(self.of.values())

    def common(self) -> list[CommonFailure]:
        """Return the failures that are no site's: at all entries, or at all of one group alone."""
        return list(common(self._of_groups))

    @property
    def ordered(self) -> list[tuple[FailureKey, PilotSums]]:
        """The node of an entry with most failures first, and what is most frequent there first."""
        at: Counter[tuple[str, str, str]] = Counter()
        for key, failed in self.of.items():
            at[key.place] += failed.pilots
        return sorted(
            self.of.items(),
            key=lambda pair: (-at[pair[0].place], pair[0].place, -pair[1].pilots, pair[0]),
        )

    def tables(
        self, most: int, *, places: Columns = _BY_PLACE, all_by: str = "--limit 0 shows all"
    ) -> list[Table]:
        """Return them by class and test, then the first lines (0: all) by entry and node.

        Where no pilot failed, the first says so and is the only one.

        ``places``: the first columns of these; ``all_by``: what shows all lines.
        """
        note = _NOTE + (_NOTE_ESTIMATED if self.total.phases_estimated[CPU] else "")
        ended = self.ended.total()
        made = [
            table(
                "Validation failures of pilots that ended, by class and test: their whole lives",
                [*_BY_CAUSE, *self._amounts(of_all=True)],
                self._causes(),
                FailureLine(("all", ""), self.total, ended, "", ""),
                " ".join((*(f"{one.text}." for one in self.common()), note))
                + f" The share is of all {ended} pilots that ended.",
                f"None: {counted(ended, 'pilot')} ended in the period, and none of them failed."
                if ended
                else "None: no pilot ended in the period.",
            ),
            table(
                "Validation failures of pilots that ended, by entry and node: their whole lives",
                [*places, *self._amounts(of_all=False)],
                [
                    FailureLine(_named(key), failed, self.ended[key.place])
                    for key, failed in self.ordered[: most or None]
                ],
                FailureLine(("all", "", "", "", ""), self.total, ended),
                "The nodes of an entry where most failed are first." + self._left_out(most, all_by),
            ),
        ]
        return made if self.of else made[:1]

    def _left_out(self, most: int, all_by: str) -> str:
        """Return how much the first lines (0: all) leave out; empty if nothing."""
        left = [failed.pilots for _, failed in self.ordered[most:]] if most else []
        if not left:
            return ""
        return (
            f" Only the first {counted(most, 'line')}: {len(left)} more "
            f"{'has' if len(left) == 1 else 'have'} {counted(sum(left), 'pilot')} "
            f"({all_by})."
        )

    def _causes(self) -> list[FailureLine]:
        """Return a line for each class and test, the most frequent first.

        Entries and nodes are those where it occurred.
        """
        causes: dict[tuple[str, str], tuple[PilotSums, set[str], set[str]]] = {}
        for key, failed in self.of.items():
            empty = (PilotSums(), set[str](), set[str]())
            together, entries, nodes = causes.setdefault((key.kind, key.test), empty)
            together.add_up([failed])
            entries.add(key.entry)
            nodes.update({key.node} - {""})
        return [
            FailureLine(
                (kind or _NOT_RECORDED, test or _NOT_RECORDED),
                failed,
                self.ended.total(),
                str(len(entries)),
                str(len(nodes) or "?"),
            )
            for (kind, test), (failed, entries, nodes) in sorted(
                causes.items(), key=lambda cause: (-cause[1][0].pilots, cause[0])
            )
        ]

    def _amounts(self, *, of_all: bool) -> Iterator[Column[FailureLine]]:
        """Yield the columns of numbers; ``of_all``: all shares are of the same pilots."""

        def phase(name: str) -> Callable[[FailureLine], str]:
            def cell(line: FailureLine) -> str:
                amounts = line.failed.phase(getattr(line.failed, name))
                return NOT_KNOWN if amounts is None else hours(amounts[CPU])

            return cell

        yield Column("pilots", lambda line: str(line.failed.pilots))
        if not of_all:
            yield Column("of", lambda line: str(line.ended))
        yield Column("%", lambda p: percent(ratio(p.failed.pilots, p.ended), 0), share=True)
        yield Column("canonical hours", lambda line: hours(line.failed.time[CPU]))
        yield Column("validating", phase("validating"))
        yield Column("asleep", phase("asleep"))
        yield Column("not known", lambda line: hours(line.failed.not_known(CPU)))
        if self.total.phases_estimated[CPU]:
            yield Column(
                "times estimated", lambda line: percent(line.failed.phases_estimated_share, 0)
            )
        yield Column("core-hours", lambda line: hours(line.failed.time[CORES]))
        if self.total.time[GPU]:
            yield Column("GPU hours", lambda line: hours(line.failed.time[GPU]))

    def records(self) -> list[dict[str, Any]]:
        """Return the lines for JSON and CSV: amounts in seconds, null where it is not known."""
        return [
            _record(key._asdict(), failed, self.ended[key.place]) for key, failed in self.ordered
        ]

    def total_record(self) -> dict[str, Any]:
        return _record({}, self.total, self.ended.total())


def _record(names: Mapping[str, str], failed: PilotSums, ended: int) -> dict[str, Any]:
    named = {{"kind": "class"}.get(name, name): label or None for name, label in names.items()}
    return {
        **named,
        "pilots": failed.pilots,
        "of_pilots": ended,
        "share_of_pilots": ratio(failed.pilots, ended),
        "time": kinds_json(failed.time),
        "pilots_with_known_validation_end": failed.timed,
        "validating": kinds_json(failed.phase(failed.validating)),
        "asleep": kinds_json(failed.phase(failed.asleep)),
        "not_known": kinds_json({kind: failed.not_known(kind) for kind in KINDS}),
        "times_estimated": kinds_json(failed.phase(failed.phases_estimated)),
    }
