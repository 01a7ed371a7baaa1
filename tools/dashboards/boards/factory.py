"""What factories and frontends monitor: figures 11 to 14 of the 2022 report, line by line."""

from __future__ import annotations

from tools.dashboards.promql import Scope, hourly, most, of_one_entry, total
from tools.dashboards.record import Board, Panel, Query, Row

_HERE = Scope("entry", "group")
_EVENTS = "gwmond_factory_queue_events_total"
_PILOTS = "gwmond_factory_pilots"
_CORES = "gwmond_entry_frontend_cores"
_NO_LOGS = "without [factory] directories, and while no pilot comes or goes"


def _sum(legend: str, metric: str, where: str = "") -> Query:
    return Query(total("", _HERE.now(metric, where)), legend)


def _most(legend: str, metric: str) -> Query:
    return Query(of_one_entry(_HERE.now(metric)), legend)


_INFO_AGE = Query(f"max({_HERE.now('gwmond_entry_request_age_seconds')})", "oldest")

_SITES = Row(
    "What GlideinWMS ships for Ganglia, by site",
    (
        Panel(
            *("Sites now", "table", "short"),
            tuple(
                Query(total("site, entry", _HERE.now(metric, where)), legend)
                for legend, metric, where in (
                    ("running", _PILOTS, 'state="running"'),
                    ("requested idle", "gwmond_factory_pilots_requested", ""),
                    ("requested max", "gwmond_factory_pilots_requested_max", ""),
                    ("pending", _PILOTS, 'state="idle_pending"'),
                    ("held", _PILOTS, 'state="held"'),
                    ("jobs idle, matching", "gwmond_entry_frontend_idle_jobs_matching", ""),
                    ("jobs running here", "gwmond_entry_frontend_running_jobs_here", ""),
                )
            ),
            "Pilots by the factory's count, its requests, and jobs by the frontends' count, of "
            "each entry. Idle jobs count at every entry that they match: their sum means nothing. "
            "An empty cell is not known.",
            drill=("site", "entry"),
            width=24,
        ),
    ),
)
_HISTORY = Row(
    "Historical status (figure 12)",
    (
        Panel(
            *("Cores", "lines", "short"),
            (
                _sum("running glidein cores", "gwmond_factory_running_cores"),
                _sum("cores at collector", f"{_CORES}_registered"),
                _sum("cores claimed by user jobs", _CORES, 'state="running"'),
                _sum("cores not matched", _CORES, 'state="idle"'),
            ),
            "Cores. Running glidein cores are pilots times the cores that the factory expects; "
            "the others are of registered pilots, by the frontends' count.",
            width=8,
        ),
        Panel(
            *("Glideins", "lines", "short"),
            (
                _sum("running glidein jobs", _PILOTS, 'state="running"'),
                _sum("max requested glideins", "gwmond_factory_pilots_requested_max"),
                _sum("requested idle glideins", "gwmond_factory_pilots_requested"),
                _sum("idle glidein jobs", "gwmond_factory_idle_pilots"),
            ),
            "Pilots by the factory's count, and its clients' requests.",
            width=8,
        ),
        Panel(
            *("User jobs", "lines", "short"),
            (
                _most("user jobs running", "gwmond_entry_frontend_running_jobs_matching"),
                _most("user jobs idle", "gwmond_entry_frontend_idle_jobs_matching"),
            ),
            "Jobs by the frontends' count that match the entry, wherever they run. Of several "
            "entries the one with most: a job counts at every entry that it matches, so the sum "
            "means nothing.",
            width=8,
        ),
    ),
)
_STATUS = Row(
    "Status (figure 13)",
    (
        Panel(
            *("Status", "stack", "short"),
            (Query(total("state", _HERE.now(_PILOTS)), "{{state}}"),),
            "Pilots by the factory's count, each once: running, submitted (waiting), idle_pending, "
            "idle_stage_in, stage_out, idle_other (unknown), held.",
            width=8,
        ),
        Panel(
            *("Requested", "lines", "short"),
            (
                _sum("max glideins", "gwmond_factory_pilots_requested_max"),
                _sum("idle", "gwmond_factory_pilots_requested"),
                _sum("idle, within limits", "gwmond_factory_pilots_requested_adjusted"),
                _sum("idle, by the client", "gwmond_pilots_requested"),
            ),
            "Pilots that clients request. The factory may show 0 idle at a limit; the client's "
            "own request is drawn beside it.",
            width=8,
        ),
        Panel(
            *("Client monitor", "lines", "short"),
            (
                _sum("claimed cores", _CORES, 'state="running"'),
                _sum("user run here", "gwmond_entry_frontend_running_jobs_here"),
                _most("user running", "gwmond_entry_frontend_running_jobs_matching"),
                _sum("unmatched cores", _CORES, 'state="idle"'),
                _most("user idle", "gwmond_entry_frontend_idle_jobs_matching"),
                _sum("registered cores", f"{_CORES}_registered"),
            ),
            "Cores, and jobs that run here, by the frontends' count. User running and user idle "
            "are jobs that match the entry, of several entries the one with most.",
            width=8,
        ),
        Panel(
            *("Info age", "lines", "s"),
            (
                _INFO_AGE,
                Query(
                    f"max({_HERE.now('gwmond_entry_advertisement_age_seconds')})",
                    "oldest glideresource ad",
                ),
            ),
            "Age of the oldest request when the factory wrote its ad, and of the oldest "
            "glideresource ad. A line that keeps rising: the factory or the frontend has stopped.",
            empty="without [pool.wms], as to requests",
            page="#sources",
            width=8,
        ),
        Panel(
            *("Limits of entries", "table", "short"),
            tuple(
                Query(total("site, entry", _HERE.now(f"gwmond_factory_entry_{metric}")), legend)
                for legend, metric in (
                    ("limit", "limit_pilots"),
                    ("idle", "idle_pilots"),
                    ("limit of idle", "limit_idle_pilots"),
                    ("limit of held", "limit_held_pilots"),
                )
            ),
            "Pilots of all clients of each entry, and the factories' limits. At a limit no pilot "
            "is submitted, whatever is requested.",
            drill=("site", "entry"),
            width=16,
        ),
    ),
)
_LOGS = Row(
    "Current logs (figure 14)",
    (
        Panel(
            *("Running glideins", "lines", "short"),
            (
                Query(
                    most(10, "entry", _HERE.now(_PILOTS, 'state="running"')),
                    "{{entry}}",
                ),
            ),
            "Running pilots of the 10 entries with most, by the factory's count.",
            drill=("entry",),
            width=8,
        ),
        Panel(
            *("Glideins that start, end and are held", "lines", "short"),
            tuple(
                Query(hourly("", _HERE.rate(_EVENTS, f'event=~"{events}"')), legend)
                for legend, events in (
                    ("startup", "started"),
                    ("termination", "ended|evicted"),
                    ("completion", "ended"),
                    ("held", "held"),
                )
            ),
            "Events an hour of pilots as jobs of their factory, from condor_activity logs. Of all "
            "groups: the logs name clients, which the variable does not choose.",
            empty=_NO_LOGS,
            width=8,
        ),
        Panel(
            *("Held, by entry", "bars", "short"),
            (
                Query(
                    most(10, "entry", _HERE.grown(_EVENTS, 'event="held"')),
                    "{{entry}}",
                ),
            ),
            "Pilots that were held in the chosen range: the 10 entries with most. condor_q -held "
            "at the factory has the reasons.",
            empty="without [factory] directories, and while no pilot is held",
            drill=("entry",),
            width=8,
        ),
    ),
)
_SUMMARIES = Row(
    "Completed logs, and how they agree with gwmond",
    (
        Panel(
            *("Pilots in completed_jobs", "lines", "short"),
            tuple(
                Query(
                    hourly("", _HERE.rate(f"gwmond_factory_completed_pilots{what}_total")), legend
                )
                for legend, what in (
                    ("all", ""),
                    ("HTCondor started", "_condor_started"),
                    ("without a duration", "_without_duration"),
                )
            ),
            "Pilots an hour in the factory's summary. Pilots that were killed hard are missing.",
            empty="without [factory] directories, and while no pilot ends",
            width=8,
        ),
        Panel(
            *("Outputs of pilots", "bars", "short"),
            (
                Query(total("", _HERE.grown("gwmond_factory_outputs_total")), "came back"),
                Query(
                    total("", _HERE.grown("gwmond_factory_outputs_empty_total")), "empty at first"
                ),
                Query(
                    total("", _HERE.grown("gwmond_factory_outputs_filled_total")), "filled later"
                ),
            ),
            "Outputs of pilots in the chosen range. Empty ones that are not filled later are of "
            "pilots that were killed.",
            empty="without [factory] directories",
            width=8,
        ),
        Panel(
            *("Pilot time that does not agree", "bars", "percentunit"),
            (
                Query(
                    "topk(10, max by (entry) ("
                    + _HERE.now("gwmond_reconciliation_unexplained_ratio")
                    + "))",
                    "{{entry}}",
                ),
            ),
            "Share of pilots' time that differs between the factory and gwmond without an "
            "explanation, of the last 24 complete hours: the 10 entries with most. gwmond "
            "reconcile explains it.",
            empty="without [factory] directories, and in the first 24 hours",
            drill=("entry",),
            width=8,
        ),
    ),
)
BOARD = Board(
    "gwmond-factory",
    "gwmond: Factory",
    "What factories and frontends count themselves, as on GlideinWMS's own pages.",
    ("entry", "group"),
    (_SITES, _HISTORY, _STATUS, _LOGS, _SUMMARIES),
)
