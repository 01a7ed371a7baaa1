"""Metrics of sites and entries: state, canonical units, site time, idle jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import TypeAlias

from gwmond.metrics.family import POLLED, Family, Sample, known
from gwmond.metrics.pilots import requested
from gwmond.metrics.zeros import entries, with_zeros
from gwmond.model.entries.evaluation import PROVISIONED, SCALE, EntryJobs, entry_states
from gwmond.model.poll.snapshot import Snapshot
from gwmond.model.states import State
from gwmond.model.units import MICRO
from gwmond.sites.reasons import REASONS

Samples: TypeAlias = Callable[[Snapshot], Iterable[Sample]]

_WITHOUT_REASON = (State.INSUFFICIENT_DEMAND, State.FILLING, State.DOWN, State.UNKNOWN)
_SPARE = (*_WITHOUT_REASON, State.PROVISIONING_BOTTLENECK)


def _seconds(s: Snapshot) -> Iterator[Sample]:
    counted = (
        Sample(
            (key.resource, key.state, key.reason, key.site, key.entry),
            total.micros / MICRO,
            total.created,
        )
        for key, total in sorted(s.totals.items())
    )
    states = _states_and_reasons(s)
    zeros = ((resource, *state, *key) for resource, key in entries(s) for state in states)
    return with_zeros(counted, zeros)


def _states_and_reasons(s: Snapshot) -> set[tuple[str, str]]:
    """Return all states, with all reasons of a bottleneck and those that any entry has met so far.

    Most reasons of ``unknown`` are never met.  Of such a reason that is new in the whole pool
    ``increase()`` misses the first interval between polls.
    """
    counted = {(key.state, key.reason) for key in s.totals}
    now = {use[:2] for row in s.evaluation.rows.values() for use in row.uses}
    bottleneck = State.PROVISIONING_BOTTLENECK.value
    return {
        (PROVISIONED, ""),
        *((bottleneck, reason.name) for reason in REASONS),
        *((state.value, "") for state in _WITHOUT_REASON),
        *counted,
        *now,
    }


def _units(s: Snapshot) -> Iterator[Sample]:
    """Yield the units that the counter integrates, and 0 for the other states of spare units."""
    for (key, resource), row in s.evaluation.rows.items():
        uses = list(row.uses)
        states = {state for state, _, _ in uses}
        uses += [(state.value, "", 0) for state in _SPARE if state.value not in states]
        for state, reason, amount in uses:
            yield Sample((resource, state, reason, *key), amount / SCALE)


def _states(s: Snapshot) -> Iterator[Sample]:
    for key, now in entry_states(s.evaluation).items():
        for state in State:
            yield Sample((state.value, key.site, key.entry), float(state is now))


def _of_jobs(count: Callable[[EntryJobs], float | None]) -> Samples:
    """Return the samples of a number of idle jobs of each entry."""
    return lambda s: known((tuple(key), count(jobs)) for key, jobs in s.evaluation.jobs.items())


_ENTRY = ("site", "entry")
_LEAST = " While part of the demand is unknown: a lower bound, absent if no job is known."
_MEANINGS = {
    "matching": "each counts at every entry that the job matches",
    "proportional": "each is divided among the entries that the job matches",
    "unique": "they match no other entry",
    "assigned": "those that are assigned to spare capacity here, each job once",
    "effective": "the proportional ones less idle slots",
}


def _families_of_jobs() -> Iterator[Family]:
    """Yield a family for each way to count idle jobs, as one job is in several of the counts."""

    def counted(field: str) -> Samples:
        """Return the samples of our count; none where no job is known and some may be."""
        count = attrgetter(field)
        return _of_jobs(lambda jobs: count(jobs) if jobs.whole or jobs.ours.matching else None)

    for kind in ("matching", "proportional", "unique", "assigned"):
        yield Family(
            f"gwmond_entry_idle_jobs_{kind}",
            f"Idle jobs that could run at the entry: {_MEANINGS[kind]}.{_LEAST} Unit: jobs."
            + POLLED,
            _ENTRY,
            counted("assigned" if kind == "assigned" else f"ours.{kind}"),
        )
    for kind in ("matching", "proportional", "unique", "effective"):
        yield Family(
            f"gwmond_entry_frontend_idle_jobs_{kind}",
            "Idle jobs that the frontend group counts for the entry (glideresource ad): "
            f"{_MEANINGS[kind]}. Unit: jobs." + POLLED,
            (*_ENTRY, "group"),
            requested(f"jobs_{kind}"),
        )
    for kind in ("matching", "proportional", "unique"):
        yield Family(
            f"gwmond_entry_idle_jobs_{kind}_discrepancy",
            "Our count of idle jobs less the frontends' own (glideresource ads), which know cores "
            f"only: {_MEANINGS[kind]}. Absent while part of the demand is unknown. Unit: jobs."
            + POLLED,
            _ENTRY,
            _of_jobs(attrgetter(f"{kind}_excess")),
        )


TOPIC = "Sites"
FAMILIES = (
    Family(
        "gwmond_site_canonical_seconds_total",
        "Time of the entry's capacity by its use: provisioned (held by running pilots, "
        "busy or not), provisioning_bottleneck (jobs waited that could have run there), "
        "insufficient_demand (none could), filling, down, unknown. reason is empty if none "
        "applies. Unit: canonical seconds (1 core + 2 GB, or 1 GPU, for a second). Integrated over "
        "real time between polls; kept in the ledger.",
        ("resource", "state", "reason", "site", "entry"),
        _seconds,
    ),
    Family(
        "gwmond_site_canonical_units",
        "The uses of the entry's capacity now, with the states and reasons of "
        "gwmond_site_canonical_seconds_total, which is integrated from them. They sum to the "
        "capacity; at a saturated entry to what is provisioned, as the site has no room for the "
        "rest. provisioned is absent if the running pilots are not known: then the capacity is "
        "unknown. Unit: canonical units." + POLLED,
        ("resource", "state", "reason", *_ENTRY),
        _units,
    ),
    Family(
        "gwmond_site_capacity_canonical_units",
        "The entry's capacity: what could run there for us. Unit: canonical units." + POLLED,
        ("resource", *_ENTRY),
        lambda s: (
            Sample((resource, *key), row.capacity.units)
            for (key, resource), row in s.evaluation.rows.items()
        ),
    ),
    Family(
        "gwmond_site_idle_slots_untaken_canonical_units",
        "Free slots (part of provisioned) that jobs have matched for longer than "
        "site.untaken_grace, and that no job takes (priorities, quotas, the negotiator). "
        "Unit: canonical units." + POLLED,
        ("resource", "site", "entry"),
        lambda s: known(
            (((resource, *key), row.untaken) for (key, resource), row in s.evaluation.rows.items()),
            SCALE,
        ),
    ),
    Family(
        "gwmond_site_state",
        "1 for the state that the entry is in, 0 for the others. No unit." + POLLED,
        ("state", "site", "entry"),
        _states,
    ),
    Family(
        "gwmond_site_evidence_info",
        "What the entry's numbers rest on: evidence of the state (measured, estimated) and of the "
        "capacity (pledge, above_pledge, peak, limit, none). No unit; value 1." + POLLED,
        ("resource", "evidence", "capacity_evidence", "site", "entry"),
        lambda s: (
            Sample((resource, row.evidence, row.capacity.evidence, *key), 1)
            for (key, resource), row in s.evaluation.rows.items()
        ),
    ),
    Family(
        "gwmond_entry_limit_hit",
        "1 for each limit or curb which the frontend or the factory says that the entry has hit, "
        "by the attribute of the glideresource ad that says so; absent when not hit. No unit."
        + POLLED,
        ("limit", "site", "entry"),
        lambda s: (
            Sample((name, key.site, key.entry), 1)
            for key, totals in s.entries.items()
            for name in sorted({limit.name for limit in totals.limits})
        ),
    ),
    *_families_of_jobs(),
)
