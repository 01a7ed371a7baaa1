"""One site or entry: its state and reason, its pilots, its jobs, its time."""

from __future__ import annotations

from gwmond.model.states import State
from tools.dashboards.colours import CAPACITY, CATEGORIES, USE
from tools.dashboards.promql import Scope, hourly, hours, of_one_entry, total
from tools.dashboards.record import Board, Panel, Query, Row

_HERE = Scope("resource", "site", "entry", "group")
_TIME = "gwmond_pilot_canonical_seconds_total"
_SITES = "gwmond_site_canonical_seconds_total"


def _states() -> str:
    """Return the number of each entry's state, in the order of ``State``."""
    numbered = (
        _HERE.now("gwmond_site_state", f'state="{state}"') + f" * {number}"
        for number, state in enumerate(State)
    )
    return f"max by (site, entry) ({' or '.join(numbered)})"


_STATE = Row(
    "Why is it idle?",
    (
        Panel(
            *("State of entries", "states", "none"),
            (Query(_states(), "{{site}} {{entry}}"),),
            "The state of each entry. A gap: gwmond did not poll. The page's last section says "
            "what each state means.",
            page="#meanings",
            drill=("site", "entry"),
            width=24,
            height=9,
        ),
        Panel(
            *("Use of the capacity", "stack", "short"),
            (Query(total("state", _HERE.now("gwmond_site_canonical_units")), "{{state}}"),),
            "Canonical units by state, as of each poll. They sum to the capacity, at saturated "
            "entries to what is provisioned. Without provisioned, the pilots are not known.",
            colours=CAPACITY,
        ),
        Panel(
            *("Idle capacity in the chosen range, by reason", "bars", "h"),
            (
                Query(
                    hours(total("state, reason", _HERE.grown(_SITES, 'state!="provisioned"')))
                    + " > 0",
                    "{{state}} {{reason}}",
                ),
            ),
            "Canonical hours of capacity that no pilot held, by state and reason; what is 0 is "
            "left out. docs/sites.md says what to do about each reason.",
            empty="while all capacity is provisioned",
            page="#meanings",
            colours=CAPACITY,
        ),
        Panel(
            *("Limits and curbs that are hit", "table", "none"),
            (
                Query(
                    f"max by (site, entry, limit) ({_HERE.now('gwmond_entry_limit_hit')})",
                    "hit",
                ),
            ),
            "Limits that the frontend or the factory says the entry has hit, by the attribute of "
            "the glideresource ad. Raise the limit if the site can take more.",
            empty="while no limit is hit",
            drill=("site", "entry"),
        ),
        Panel(
            *("What the numbers rest on", "table", "none"),
            (
                Query(
                    "count by (site, entry, resource, evidence, capacity_evidence) "
                    f"({_HERE.now('gwmond_site_evidence_info')})",
                    "gwmonds that say so",
                ),
            ),
            "Evidence of the state, measured or estimated, and of the capacity: pledge, peak, "
            "limit or none. A capacity by limit is what the factory allows, not what the site has.",
            drill=("site", "entry"),
        ),
    ),
)
_PILOTS = Row(
    "Pilots",
    (
        Panel(
            *("Pilots by state", "stack", "short"),
            (Query(total("state", _HERE.now("gwmond_pilots")), "{{state}}"),),
            "Pilots, each once: busy, idle and retiring ones are registered; submitted, pending "
            "and held ones are counted by the factory.",
        ),
        Panel(
            *("Pilots requested and running", "lines", "short"),
            (
                Query(total("", _HERE.now("gwmond_pilots_requested")), "requested, idle"),
                Query(total("", _HERE.now("gwmond_pilots_requested_max")), "requested, most"),
                Query(
                    total("", _HERE.now("gwmond_pilots", 'state=~"busy|idle|retiring"')),
                    "registered",
                ),
            ),
            "Pilots that the frontend groups request, the most that they want to run, and those "
            "that are registered. Requested but none comes: see the board Factory.",
        ),
        Panel(
            *("Units of the pilots by use", "stack", "short"),
            (Query(total("use", _HERE.now("gwmond_pilot_canonical_units")), "{{use}}"),),
            "Canonical units of registered pilots: busy (taken by jobs), idle "
            "(free for a job of one unit, also in retiring pilots), remainder (neither: the board "
            "Unusable idle cores says why).",
            colours=USE,
        ),
        Panel(
            *("Pilot time in the chosen range", "bars", "h"),
            (Query(hours(total("category", _HERE.grown(_TIME))), "{{category}}"),),
            "Canonical hours settled in the chosen range, by category. gwmond report --by "
            "category,entry has more.",
            colours=CATEGORIES,
        ),
    ),
)
_JOBS = Row(
    "Jobs",
    (
        Panel(
            *("Idle jobs that could run here", "lines", "short"),
            (
                Query(
                    of_one_entry(_HERE.now("gwmond_entry_idle_jobs_matching")),
                    "matching one entry",
                ),
                *(
                    Query(total("", _HERE.now(f"gwmond_entry_idle_jobs_{count}")), count)
                    for count in ("proportional", "unique", "assigned")
                ),
            ),
            "Jobs. matching one entry: those that match the entry, of several entries the one with "
            "most; proportional: divided among the entries that they match; unique: they match no "
            "other; assigned: each once, to spare capacity here. While a schedd is not known: at "
            "least.",
        ),
        Panel(
            *("Runs of jobs by outcome", "stack", "short"),
            (Query(hourly("outcome", _HERE.rate("gwmond_job_runs_total")), "{{outcome}}"),),
            "Runs an hour whose outcome became known. What did not occur is left out. A new "
            "outcome that dominates is the first thing to look at.",
            empty="while no run of a job has ended here",
        ),
    ),
)
BOARD = Board(
    "gwmond-site",
    "gwmond: Site and entry",
    "The state of sites and entries with its reason, their pilots, jobs and time.",
    ("resource", "site", "entry", "group"),
    (_STATE, _PILOTS, _JOBS),
)
