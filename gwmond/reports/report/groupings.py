"""What a report can be grouped by, and the facts that the groups are made of.

A grouping is a record in ``GROUPINGS``.  What a report counts follows from which sources have the
facts that it is grouped by: hourly totals, pilots that ended, or runs of jobs that ended.
Units: times are microseconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from gwmond.model.pilots.file_facts import FailureClass
from gwmond.model.pilots.pilot_facts import GPU_MODEL, INSTITUTION
from gwmond.model.pilots.stored_pilots import PilotIdentity, PilotSeries, RunRow
from gwmond.model.runs.phases import failed_transfer
from gwmond.model.times import DAY_US, HOUR_US
from gwmond.reports.render.formats import UNKNOWN, words
from gwmond.reports.render.periods import short
from gwmond.reports.stored.parts import LifePart
from gwmond.reports.stored.stored_pilot import StoredPilot

Basis: TypeAlias = Literal["time_spent", "pilots_ended", "runs_ended"]
Facts: TypeAlias = Mapping[str, Any]
"""What is known of something that is counted, by field; ``time_us``: when it was."""

_OF_JOB = ("project", "accounting_group", "schedd")
NOT_KNOWN = UNKNOWN
"""The ``failure`` of a pilot of which it is not known whether its validation failed; the
``gpu_model`` of one whose ads did not name it."""


class Grouping(NamedTuple):
    """One way to group.

    ``field``: of the facts.  ``nameless``: what a group without a name is called.  ``step_us``: it
    is by steps of time.
    """

    name: str
    field: str
    nameless: str = "(none)"
    step_us: int = 0

    def key(self, facts: Facts) -> str | int:
        """Return the group to which something belongs; of time: when its step begins."""
        value: str | int = facts[self.field]
        return int(value) // self.step_us * self.step_us if self.step_us else value

    def named(self, key: str | int) -> str:
        """Return what a group is called, for people."""
        if isinstance(key, int):
            return short(key)[: 10 if self.step_us == DAY_US else 16]
        if self.name in {"gpu_model", "part"} and key == NOT_KNOWN:
            return "(not known)"
        if self.name in {"category", "part", "phase"}:
            return words(key) or self.nameless
        if self.name == "failure" and key == NOT_KNOWN:
            return "(not known whether it failed)"
        return key or self.nameless


GROUPINGS: Mapping[str, Grouping] = {
    grouping.name: grouping
    for grouping in (
        Grouping("site", "site"),
        Grouping("entry", "entry"),
        Grouping("group", "group"),
        Grouping("user", "user", "(not known)"),
        Grouping("project", "project", "(no ProjectName)"),
        Grouping("accounting_group", "accounting_group", "(no AcctGroup)"),
        Grouping("schedd", "schedd", "(not known)"),
        Grouping("factory", "factory"),
        Grouping("node", "node", "(not known)"),
        Grouping("gpu_model", "gpu_model", "(no GPU)"),
        Grouping("institution", "institution", "(not known)"),
        Grouping("failure", "failure", "(validation did not fail)"),
        Grouping("category", "category"),
        Grouping("outcome", "outcome", "(pilots' own time)"),
        Grouping("part", "part"),
        Grouping("phase", "phase", "(other, or not known)"),
        Grouping("transfer", "transfer", "(no transfer failed)"),
        Grouping("hour", "time_us", step_us=HOUR_US),
        Grouping("day", "time_us", step_us=DAY_US),
    )
}
STEPS: Mapping[str, int] = {name: by.step_us for name, by in GROUPINGS.items() if by.step_us}

SITES = frozenset({"time_us", "site", "entry"})
"""The facts of site time; below those of checked verdicts, hourly totals and pilots."""
VERDICTS = SITES | {"group"}
HOURS = VERDICTS | {"category", "outcome"}
OF_ADS = frozenset({"gpu_model", "institution"})
"""What only the ads of a pilot say, also of its runs."""
PILOTS = VERDICTS | OF_ADS | {"factory", "node", "failure"}
PARTS = PILOTS | {"part"}


def known(by: Iterable[str], facts: frozenset[str]) -> bool:
    """Return whether something with such facts can be grouped."""
    return all(GROUPINGS[name].field in facts for name in by)


def basis(by: Iterable[str]) -> Basis:
    """Return what a report counts."""
    names = tuple(by)
    if known(names, HOURS):
        return "time_spent"
    return "pilots_ended" if known(names, PARTS) else "runs_ended"


def of_series(series: PilotSeries, time_us: int) -> Facts:
    return {
        "time_us": time_us,
        "site": series.site,
        "entry": series.entry,
        "group": series.group,
        "category": series.category.value,
        "outcome": series.outcome,
    }


def of_pilot(pilot: StoredPilot, time_us: int) -> Facts:
    failure, started = pilot.row.failure, pilot.jobs.started
    if not failure and started is not True:
        failure = NOT_KNOWN if started is None else FailureClass.UNKNOWN.value
    return {
        **_place(pilot.identity),
        "time_us": time_us,
        "failure": failure,
        **of_ads(pilot),
    }


def of_ads(pilot: StoredPilot) -> Facts:
    """Return what a pilot's ads say: the model of its GPUs is empty if it has none."""
    model, institution = map(pilot.row.facts.attribute, (GPU_MODEL, INSTITUTION))
    return {
        "gpu_model": (model or NOT_KNOWN) if pilot.size.gpus else "",
        "institution": institution or "",
    }


def of_run(run: RunRow, identity: PilotIdentity, time_us: int, by: Iterable[str] = ()) -> Facts:
    """Return the facts of a run of a job, but its phase and what its pilot's ads say.

    A pilot that failed validation runs none.

    ``by``: what it is grouped by, for not all facts are there at once.
    """
    failed = failed_transfer(run.facts) if "transfer" in by else None
    return {
        "transfer": "" if failed is None else f"{failed.way} {failed.server}",
        **_place(identity),
        "time_us": time_us,
        "failure": "",
        "part": LifePart.JOBS,
        "user": run.user,
        **{name: getattr(run, name) for name in _OF_JOB if name in by},
        "category": run.outcome.category.value if run.outcome else "",
        "outcome": run.outcome.label if run.outcome else "",
    }


def _place(identity: PilotIdentity) -> Facts:
    return {
        "site": identity.key.site,
        "entry": identity.key.entry,
        "group": identity.group,
        "factory": identity.factory,
        "node": identity.node,
    }


def parse_by(text: str) -> tuple[str, ...]:
    """Return what to group by: one or two names, comma separated; else ``ValueError``."""
    names = tuple(name.strip() for name in text.split(","))
    if not 1 <= len(names) <= 2 or len(set(names)) < len(names) or set(names) == set(STEPS):
        raise ValueError(f'--by "{text}": give one or two different ones of {", ".join(GROUPINGS)}')
    for name in names:
        if name not in GROUPINGS:
            raise ValueError(f'--by: there is no "{name}", only {", ".join(GROUPINGS)}')
    if "part" in names and basis(names) == "runs_ended":
        raise ValueError(f'--by "{text}": a run has one part only, jobs; by part are pilots')
    return names


def listed(kind: Basis) -> str:
    """Return the groupings for which, alone, a report counts that."""
    return ", ".join(name for name in GROUPINGS if basis([name]) == kind)
