"""Where the time of pilots goes, what of it is wasted, and where."""

from __future__ import annotations

from tools.dashboards.colours import CATEGORIES
from tools.dashboards.promql import Scope, hourly, hours, share, total
from tools.dashboards.record import Board, Panel, Query, Row

_HERE = Scope("resource", "site", "entry", "group")
_TIME = "gwmond_pilot_canonical_seconds_total"
_ENDED = "gwmond_pilots_ended_total"
_RUNS = 'category=~"goodput|misconfiguration_badput|preemption_badput"'


def _of(category: str) -> str:
    return _HERE.grown(_TIME, f'category="{category}"')


def _worst(title: str, category: str, meaning: str, empty: str) -> Panel:
    lost = hours(total("site, entry", _of(category)))
    part = share("site, entry", _of(category), _HERE.grown(_TIME))
    return Panel(
        *(title, "table", "none"),
        (
            Query(f"topk(15, {lost}) > 0", "canonical hours", "h"),
            Query(f"({part}) and topk(15, {lost}) > 0", "share of the entry's time", "percentunit"),
        ),
        f"{meaning} The 15 entries with most of it in the chosen range: canonical hours, and the "
        "share in the settled time of the entry's pilots.",
        empty=empty,
        drill=("site", "entry"),
    )


_TOTALS = Row(
    "Categories",
    (
        Panel(
            *("Pilot time in the chosen range", "bars", "h"),
            (Query(hours(total("category", _HERE.grown(_TIME))), "{{category}}"),),
            "Canonical hours settled in the chosen range. The categories sum to the total.",
            page="time",
            colours=CATEGORIES,
            width=8,
        ),
        Panel(
            *("Pilot time as it is settled", "stack", "short"),
            (Query(total("category", _HERE.rate(_TIME)), "{{category}}"),),
            "Canonical units: canonical seconds settled a second. A long run counts at its end, "
            "all at once.",
            page="time",
            colours=CATEGORIES,
            width=16,
        ),
        Panel(
            *("By frontend group", "table", "h"),
            (
                Query(hours(total("group", _of("goodput"))), "goodput"),
                Query(hours(total("group", _of("pilot_overhead"))), "pilot overhead"),
                Query(hours(total("group", _HERE.grown(_TIME))), "all"),
            ),
            "Canonical hours of the chosen range by the group for which the pilots ran.",
            width=8,
        ),
        Panel(
            *("Not settled yet", "lines", "h"),
            (
                Query(
                    hours(total("group", _HERE.now("gwmond_pilot_unsettled_canonical_seconds"))),
                    "{{group}}",
                ),
            ),
            "Canonical hours of pilots whose category can still change: of runs in progress, and "
            "of pilots whose records have not come. A line that only rises: see the lag of "
            "histories on the board gwmond itself.",
            width=8,
        ),
        Panel(
            *("Estimated", "lines", "percentunit"),
            (
                Query(
                    share(
                        "category",
                        _HERE.rate(_TIME, 'evidence="estimated"'),
                        _HERE.rate(_TIME),
                    ),
                    "{{category}}",
                ),
            ),
            "Share of each category's newly settled time in which a rule stands for a missing "
            "fact. docs/estimates.md has the rules.",
            page="time",
            colours=CATEGORIES,
            width=8,
        ),
    ),
)
_WASTE = Row(
    "Waste, by entry",
    (
        _worst(
            *("Validation failures", "validation_fails"),
            "Pilots in which HTCondor never started, or that never registered: mend the worker "
            "node; gwmond report --failures names the test.",
            "while no pilot fails its validation",
        ),
        _worst(
            *("Pilots that never ran a job", "decision_problem"),
            "Pilots that registered and never ran a job: too many were requested, or START "
            "accepts nobody.",
            "while each pilot runs a job",
        ),
        _worst(
            *("Misconfiguration badput", "misconfiguration_badput"),
            "Runs that failed at the beginning through no fault of the user: look for a black "
            "hole, or a broken container runtime.",
            "while no run fails through the site's fault",
        ),
        _worst(
            *("Preemption badput", "preemption_badput"),
            "Runs cut off by the pilot's end: lifetimes are too short for the jobs, or the site "
            "kills pilots.",
            "while no run is cut off",
        ),
        _worst(
            *("Pilot overhead", "pilot_overhead"),
            "Time without a job, and idle canonical units beside jobs, of pilots that ran jobs.",
            "while no pilot that ran a job has ended",
        ),
        Panel(
            *("Sites where jobs fail", "bars", "percentunit"),
            (
                Query(
                    "topk(15, "
                    + share(
                        "site",
                        _HERE.grown(_TIME, 'category="misconfiguration_badput"'),
                        _HERE.grown(_TIME, _RUNS),
                    )
                    + ") > 0",
                    "{{site}}",
                ),
            ),
            "Misconfiguration badput as a share of what jobs got (goodput and badput), in "
            "canonical time of the chosen range. Few hours make a large share: compare the table.",
            empty="while no run fails through the site's fault",
            drill=("site",),
        ),
    ),
)
_ENDS = Row(
    "Pilots that ended",
    (
        Panel(
            *("Pilots that ended, by category", "lines", "short"),
            (Query(hourly("category", _HERE.rate(_ENDED)), "{{category}}"),),
            "Pilots an hour that ended, by the category of their own time: pilot_overhead ran "
            "jobs. What did not occur is left out.",
            empty="while no pilot ends",
            page="time",
            colours=CATEGORIES,
            width=8,
        ),
        Panel(
            *("Pilots without a job", "bars", "percentunit"),
            (
                Query(
                    "topk(15, "
                    + share(
                        "site",
                        _HERE.grown(_ENDED, 'category=~"decision_problem|validation_fails"'),
                        _HERE.grown(_ENDED),
                    )
                    + ") > 0",
                    "{{site}}",
                ),
            ),
            "Share of the pilots that ended in the chosen range without having run a job: they "
            "failed validation, or no job came. The 15 worst sites.",
            empty="while each pilot that ends has run a job",
            drill=("site",),
            width=8,
        ),
        Panel(
            *("Rules for missing facts", "bars", "h"),
            (
                Query(
                    hours(
                        total(
                            "rule",
                            _HERE.grown("gwmond_pilot_estimated_canonical_seconds_total"),
                        )
                    ),
                    "{{rule}}",
                ),
            ),
            "Canonical hours of ended pilots that rest on each rule, in the chosen range "
            "(docs/estimates.md). Give gwmond the factory's files to have less of them.",
            width=8,
        ),
    ),
)
BOARD = Board(
    "gwmond-pilot-time",
    "gwmond: Pilot time and waste",
    "Where does the time of pilots go, and where is it wasted?",
    ("resource", "site", "entry", "group"),
    (_TOTALS, _WASTE, _ENDS),
)
