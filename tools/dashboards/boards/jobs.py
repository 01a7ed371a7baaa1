"""How long jobs wait and how their runs end."""

from __future__ import annotations

from tools.dashboards.colours import CATEGORIES
from tools.dashboards.promql import Scope, hourly, most, quantile, share, total
from tools.dashboards.record import Board, Panel, Query, Row

_HERE = Scope("site", "entry", "group")
_RUNS = "gwmond_job_runs_total"
_WAITED = "gwmond_job_queue_seconds_bucket"
_FAILED = "gwmond_transfer_failures_total"
_PLACES = "sign, kind, site, entry"
_EARLY = 'category="misconfiguration_badput"'

_WAIT = Row(
    "Waiting",
    (
        Panel(
            *("Idle jobs by how long they wait", "lines", "short"),
            (
                Query(total("", _HERE.now("gwmond_frontend_idle_jobs")), "idle"),
                Query(
                    total("", _HERE.now("gwmond_frontend_old_idle_jobs")), "10 minutes or longer"
                ),
                Query(
                    total("", _HERE.now("gwmond_frontend_hour_old_idle_jobs")),
                    "an hour or longer",
                ),
            ),
            "Idle jobs by the frontends' own count, over all frontends: jobs that two frontends "
            "serve count twice.",
        ),
        Panel(
            *("Jobs idle for 10 minutes, as frontends count", "bars", "short"),
            (
                Query(
                    most(15, "site", _HERE.now("gwmond_entry_frontend_old_idle_jobs")),
                    "{{site}}",
                ),
            ),
            "Jobs idle for 10 minutes or longer, divided among the entries that they match, by "
            "the frontend groups' count: the 15 sites with most.",
            empty="where no frontend counts such a job; jobs of no frontend are not in it",
            drill=("site",),
        ),
        Panel(
            *("Waits for the first run", "lines", "s"),
            (
                Query(quantile(0.5, "le", _HERE.rate(_WAITED)), "median", exemplars=True),
                Query(quantile(0.9, "le", _HERE.rate(_WAITED)), "9 of 10", exemplars=True),
            ),
            "How long the jobs waited, from their submission, whose first run was settled just "
            "then; between the histogram's bounds it is interpolated. Exemplars lead to a job's "
            "trace, where traces are exported (docs/traces.md).",
            empty="while no job's first run ends",
        ),
    ),
)


def _staged(title: str, metric: str, files: str) -> Panel:
    return Panel(
        *(title, "lines", "s"),
        (
            Query(quantile(0.5, "le", _HERE.rate(f"{metric}_bucket")), "median"),
            Query(quantile(0.9, "le", _HERE.rate(f"{metric}_bucket")), "9 of 10"),
            Query(quantile(0.99, "le", _HERE.rate(f"{metric}_bucket")), "99 of 100"),
        ),
        f"How long the {files} of runs was transferred that were settled just then, the wait for "
        "a place in the access point's queue included; between the histogram's bounds it is "
        "interpolated. The slot is held meanwhile. gwmond report --by site,phase has the share of "
        "the time.",
        empty="while no run is settled whose access point records transfers",
    )


_ENDS = Row(
    "Runs",
    (
        _staged("Stage-in", "gwmond_job_stage_in_seconds", "input"),
        _staged("Stage-out", "gwmond_job_stage_out_seconds", "output"),
        Panel(
            *("Runs by category", "stack", "short"),
            (Query(hourly("category", _HERE.rate(_RUNS)), "{{category}}"),),
            "Runs an hour whose category became known. What did not occur is left out.",
            colours=CATEGORIES,
        ),
        Panel(
            *("Runs in the chosen range, by outcome", "table", "short"),
            (Query(total("category, outcome", _HERE.grown(_RUNS)) + " > 0", "runs"),),
            "Runs in the chosen range by category and outcome. Outcomes that did not occur are "
            "left out; docs/pilots.md explains them.",
        ),
        Panel(
            *("Early failures by outcome", "stack", "short"),
            (Query(hourly("outcome", _HERE.rate(_RUNS, _EARLY)), "{{outcome}}"),),
            "Runs an hour that failed at the beginning through no fault of the user, by outcome. "
            "docs/early-failures.md says how they are told from the user's own mistakes. gwmond's "
            "own page leads to traces of such jobs.",
            empty="while no run fails through the site's fault",
            page="failures",
        ),
        Panel(
            *("Early failures by entry", "table", "none"),
            (
                Query(
                    most(20, "site, entry", _HERE.grown(_RUNS, _EARLY)),
                    "runs that failed",
                ),
                Query(
                    "("
                    + share("site, entry", _HERE.grown(_RUNS, _EARLY), _HERE.grown(_RUNS))
                    + ") and "
                    + most(20, "site, entry", _HERE.grown(_RUNS, _EARLY)),
                    "share of the entry's runs",
                    "percentunit",
                ),
            ),
            "Early failures in the chosen range, and their share of the entry's runs: "
            "the first 20. gwmond pilots and gwmond pilot ID show the evidence.",
            empty="while no run fails through the site's fault",
            drill=("site", "entry"),
        ),
        Panel(
            *("Suspected black holes: jobs fail, or exit with 0, far too soon", "table", "short"),
            (
                Query(total(_PLACES, _HERE.now("gwmond_suspected_black_holes")) + " > 0", "places"),
                Query(
                    total(_PLACES, _HERE.now("gwmond_suspected_runs", 'ended="too_soon"')) + " > 0",
                    "runs too soon",
                ),
            ),
            "Pilots, nodes, entries and sites where jobs fail within five minutes (sign fails: the "
            "last hour, every two minutes) or exit with 0 within one (ends_too_soon: the last two "
            "hours, once an hour) significantly more often than jobs of the same groups elsewhere. "
            "A suspicion changes no category.",
            empty="while nothing is suspected",
            drill=("site", "entry"),
        ),
        Panel(
            *("Transfers that failed, by server", "table", "short"),
            (
                Query(
                    most(20, "direction, protocol, host, site", _HERE.grown(_FAILED)),
                    "failures",
                ),
            ),
            "Transfers of jobs' files that failed in the chosen range: input or output, protocol "
            "and host of the URL, site; the first 20. Protocol cedar is HTCondor's own, unknown "
            "where the record names none (docs/phases.md).",
            empty="while no transfer fails",
            drill=("site",),
            page="failures",
        ),
        Panel(
            *("Preemption by outcome", "stack", "short"),
            (
                Query(
                    hourly("outcome", _HERE.rate(_RUNS, 'category="preemption_badput"')),
                    "{{outcome}}",
                ),
            ),
            "Runs an hour that the pilot's end cut off: pilot_shutdown means that lifetimes are "
            "too short for the jobs, lost_contact that sites kill pilots or networks fail. "
            "gwmond's own page lists the pilots, with their traces.",
            empty="while no run is cut off",
            page="pilots?which=all&category=preemption_badput",
        ),
        Panel(
            *("Unclassified by outcome", "stack", "short"),
            (
                Query(
                    hourly("outcome", _HERE.rate(_RUNS, 'category="unclassified"')),
                    "{{outcome}}",
                ),
            ),
            "Runs an hour that the report's categories do not cover: removed, held, preempted by "
            "another job, tried again, unknown. Much no_record: histories are not read.",
            empty="while each run has a category",
        ),
        Panel(
            *("Jobs by status", "lines", "short"),
            (Query(total("status", _HERE.now("gwmond_demand_jobs")), "{{status}}"),),
            "Jobs of all schedds, whatever site is chosen. Many held ones: look at their "
            "HoldReason.",
            page="#sources",
        ),
    ),
)
BOARD = Board(
    "gwmond-jobs",
    "gwmond: Jobs",
    "How long do jobs wait, and how do their runs end?",
    ("site", "entry", "group"),
    (_WAIT, _ENDS),
)
