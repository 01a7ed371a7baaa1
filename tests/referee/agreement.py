"""What every trial shall show."""

from __future__ import annotations

from tests.referee.draw import described
from tests.referee.trial import Trial


def check(trial: Trial) -> None:
    """Measured verdicts are what the pool did; units are right within one pilot's size.

    Where nothing can be tried (a downtime, a queue, no room) the scenario itself says the state.
    There is no verdict only where nobody knows which jobs a group's pilots would start.
    """
    shown = "\n".join([described(trial.scenario), *map(str, trial.probes)])
    for probe in trial.probes:
        if probe.verdict.evidence == "measured":
            assert probe.agreed, f"{probe}\n{shown}"
            assert abs(probe.units_off) < probe.entry.shape.units, f"{probe}\n{shown}"
    for entry in trial.scenario.entries:
        if trial.verdicts[entry.name].state == "unknown":
            assert trial.scenario.hides(entry), f"{entry.name}\n{shown}"
        elif entry.room and not entry.judged:
            wanted = "down" if entry.down else "saturated" if entry.saturated else "filling"
            assert trial.verdicts[entry.name].state == wanted, f"{entry.name}\n{shown}"
