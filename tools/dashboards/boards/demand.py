"""What waits, what becomes of it, and what the frontends make of it."""

from __future__ import annotations

from tools.dashboards.promql import Scope, most, total
from tools.dashboards.record import Board, Panel, Query, Row

_HERE = Scope("resource", "entry", "group")
_GROUPS = 'status=~"idle|unmaterialized"'

_DEMAND = Row(
    "Demand",
    (
        Panel(
            *("Jobs by status", "stack", "short"),
            (Query(total("status", _HERE.now("gwmond_demand_jobs")), "{{status}}"),),
            "Jobs of all schedds: idle and unmaterialized ones are demand. The part of a schedd "
            "that does not answer is not in it: see the sources on the board gwmond itself.",
            page="#sources",
        ),
        Panel(
            *("What becomes of idle demand", "stack", "short"),
            (Query(total("fate", _HERE.now("gwmond_demand_canonical_units")), "{{fate}}"),),
            "Canonical units of idle jobs: absorbed by free slots and pending pilots, assigned to "
            "spare capacity (more pilots would run these), unmatched (no spare capacity is left "
            "for them, or they match no entry).",
        ),
        Panel(
            *("Why idle jobs are not running", "stack", "short"),
            (Query(total("reason", _HERE.now("gwmond_idle_canonical_units")), "{{reason}}"),),
            "Canonical units of idle jobs, each once, by how far they have come: nowhere (no pilot "
            "could run them), policy (a quota or a limit), no_pilot (where they could run there "
            "are none), on_their_way (pilots wait in the sites' queues), pilots_there (pilots are "
            "busy, or others come first), unknown.",
            page="#idle",
        ),
        Panel(
            *("What keeps idle jobs", "table", "short"),
            (
                Query(
                    most(20, "reason, cause, site", _HERE.now("gwmond_idle_canonical_units")),
                    "canonical units",
                ),
            ),
            "The causes in which most canonical units are idle: the first 20; site is where the "
            "jobs could run, several or none. docs/explain.md says what each means and whose move "
            "it is; gwmond explain JOB explains a single job.",
            empty="while no job waits",
            page="#idle",
        ),
        Panel(
            *("Idle demand by schedd", "lines", "short"),
            (
                Query(
                    total("schedd", _HERE.now("gwmond_demand_idle_canonical_units")), "{{schedd}}"
                ),
            ),
            "Canonical units of idle jobs by schedd. A gap: the schedd did not answer.",
            page="#sources",
        ),
        Panel(
            *("Waiting jobs by accounting group", "table", "short"),
            (
                Query(
                    most(20, "accounting_group", _HERE.now("gwmond_demand_jobs", _GROUPS)),
                    "waiting jobs",
                ),
            ),
            "Idle and unmaterialized jobs by accounting group: the first 20. The group other has "
            "what exceeds the limit of names.",
            empty="while no job waits",
        ),
    ),
)
_FRONTENDS = Row(
    "Frontends",
    (
        Panel(
            *("How long jobs wait, by the frontends' count", "lines", "short"),
            (
                Query(total("frontend", _HERE.now("gwmond_frontend_idle_jobs")), "{{frontend}}"),
                Query(
                    total("frontend", _HERE.now("gwmond_frontend_old_idle_jobs")),
                    "{{frontend}}: 10 minutes or longer",
                ),
                Query(
                    total("frontend", _HERE.now("gwmond_frontend_hour_old_idle_jobs")),
                    "{{frontend}}: an hour or longer",
                ),
            ),
            "Idle jobs that each frontend counts itself: all, those of 10 minutes or longer, "
            "those of an hour or longer. Jobs that two frontends serve count in both.",
        ),
        Panel(
            *("Pilots requested", "lines", "short"),
            (
                Query(total("group", _HERE.now("gwmond_pilots_requested")), "{{group}}: idle"),
                Query(total("group", _HERE.now("gwmond_pilots_requested_max")), "{{group}}: most"),
            ),
            "Idle pilots that each frontend group requests of all entries, and the most that it "
            "wants to run. 0 idle while jobs wait: see reasons on the board Overview.",
        ),
        Panel(
            *("Idle jobs by the frontends' and by gwmond's count", "table", "short"),
            (
                Query(
                    total("site, entry", _HERE.now("gwmond_entry_idle_jobs_matching")),
                    "matching, by gwmond",
                ),
                Query(
                    total("site, entry", _HERE.now("gwmond_entry_frontend_idle_jobs_matching")),
                    "matching, by frontends",
                ),
                Query(
                    total("site, entry", _HERE.now("gwmond_entry_idle_jobs_matching_discrepancy")),
                    "gwmond less frontends",
                ),
                Query(
                    total("site, entry", _HERE.now("gwmond_entry_idle_jobs_assigned")),
                    "assigned",
                ),
            ),
            "Idle jobs that could run at an entry; a job counts at each. Frontends know cores "
            "only, gwmond memory, GPUs and wall time as well. An empty cell is not known. Sums "
            "over entries mean nothing, but for assigned.",
            drill=("site", "entry"),
            width=24,
        ),
        Panel(
            *("Jobs idle for 10 minutes, as frontends count", "bars", "short"),
            (
                Query(
                    most(20, "site", _HERE.now("gwmond_entry_frontend_old_idle_jobs")),
                    "{{site}}",
                ),
            ),
            "Jobs idle for 10 minutes or longer by the frontend groups' count, divided among the "
            "entries that they match: the 20 sites with most.",
            empty="where no frontend counts such a job; jobs of no frontend are not in it",
            drill=("site",),
        ),
        Panel(
            *("Effective idle jobs by group", "lines", "short"),
            (
                Query(
                    total("group", _HERE.now("gwmond_entry_frontend_idle_jobs_effective")),
                    "{{group}}",
                ),
            ),
            "Idle jobs for which each frontend group sees no idle slot: from this number it makes "
            "its requests. 0 while jobs wait: it counts slots that the jobs cannot use.",
        ),
    ),
)
BOARD = Board(
    "gwmond-demand",
    "gwmond: Demand and frontends",
    "What waits, what becomes of it, and what do frontends request for it?",
    ("resource", "entry", "group"),
    (_DEMAND, _FRONTENDS),
)
