"""The sums of many trials, as Markdown tables (docs/truth.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tests.referee.trial import Probe, Trial
from tests.referee.verdicts import BOTTLENECK

_HEAD = (
    *("probes", "agreed", "naive rule agreed", "pool gave a job"),
    *("units right", "mean error (units)"),
)


def tables(trials: Sequence[Trial]) -> str:
    """By verdict, reason, size of pilots and frontend groups, and what was not probed.

    Units are right if they differ by less than one from what one pilot was given.
    """
    probes = [probe for trial in trials for probe in trial.probes]
    groups: dict[str, Callable[[Probe], str]] = {
        "verdict, evidence": lambda p: f"{p.verdict.state}, {p.verdict.evidence}",
        "reason": lambda p: p.verdict.reason or "(none)",
        "pilot": lambda p: p.entry.shape.name,
        "START": lambda p: " and ".join(
            sorted(presence.group.client for presence in p.entry.presences)
        ),
        "capacity from": lambda p: p.verdict.capacity_evidence,
    }
    parts = [_table(name, probes, shape) for name, shape in groups.items()]
    probed = {probe.entry.name for probe in probes}
    said: dict[str, int] = {}
    for trial in trials:
        for name, verdict in trial.verdicts.items():
            if name not in probed:
                said[verdict.state] = said.get(verdict.state, 0) + 1
    listed = [f"| {state} | {count} |" for state, count in sorted(said.items())]
    parts.append("\n".join(["| not probed, verdict | entries |", "|---|---:|", *listed]))
    return "\n\n".join(parts)


def _table(name: str, probes: Sequence[Probe], shape: Callable[[Probe], str]) -> str:
    lines = [f"| {name} | {' | '.join(_HEAD)} |", "|---|" + "---:|" * len(_HEAD)]
    for key in sorted({shape(probe) for probe in probes}):
        lines.append(_row(key, [probe for probe in probes if shape(probe) == key]))
    return "\n".join([*lines, _row("all", probes)])


def _row(name: str, probes: Sequence[Probe]) -> str:
    off = [abs(probe.units_off) for probe in probes]
    cells = (
        len(probes),
        _count(probe.agreed for probe in probes),
        _count(probe.naive for probe in probes),
        _count(probe.given for probe in probes),
        _count(units < 1 for units in off),
        f"{sum(off) / len(off):.2f}" if off else "",
    )
    return f"| {name} | {' | '.join(map(str, cells))} |"


def _count(values: Iterable[bool]) -> int:
    return sum(values)


def disagreements(trials: Iterable[Trial]) -> list[Probe]:
    """Probes whose verdict the pool did not confirm, or whose units are off by a pilot or more."""
    return [
        probe
        for trial in trials
        for probe in trial.probes
        if not probe.agreed or abs(probe.units_off) >= probe.entry.shape.units > 1
    ]


__all__ = ["BOTTLENECK", "disagreements", "tables"]
