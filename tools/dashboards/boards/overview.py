"""Where pilots' time goes, and why sites are idle: both on one screen."""

from __future__ import annotations

from tools.dashboards.colours import CAPACITY, CATEGORIES
from tools.dashboards.promql import Scope, hours, share, total
from tools.dashboards.record import Board, Panel, Query, Row

_POOL = Scope("resource")
_TIME = "gwmond_pilot_canonical_seconds_total"
_SITES = "gwmond_site_canonical_seconds_total"
_UNITS = "gwmond_site_canonical_units"
_LACK = 'state="provisioning_bottleneck"'

_HEAD = Row(
    "Is this to be believed?",
    (
        Panel(
            *("Last poll", "stat", "none"),
            (
                Query(
                    f"max((time() - {_POOL.raw('gwmond_poll_timestamp_seconds')}) / "
                    f"{_POOL.raw('gwmond_poll_interval_seconds')})",
                    "poll intervals",
                ),
            ),
            "Age of the last poll in poll intervals, of several instances the oldest. From three "
            "on (and three minutes), panels of the present are empty: see gwmond's log. No data: "
            "Prometheus cannot scrape gwmond.",
            page="#sources",
            warn_above=3,
            width=4,
            height=3,
        ),
        Panel(
            *("Queries that fail", "stat", "none"),
            (Query(f"sum({_POOL.now('gwmond_source_up')} == bool 0)", "queries"),),
            "Queries to sources whose last answer was a failure. What rests on them is unknown "
            "or estimated. The board gwmond itself names the sources.",
            page="#sources",
            warn_above=1,
            width=4,
            height=3,
        ),
        Panel(
            *("Goodput", "stat", "percentunit"),
            (
                Query(
                    share("", _POOL.grown(_TIME, 'category="goodput"'), _POOL.grown(_TIME)),
                    "goodput",
                ),
            ),
            "Share of goodput in the pilots' canonical time that was settled in the chosen range. "
            "Time of runs in progress is not in it.",
            width=4,
            height=3,
        ),
        Panel(
            *("Provisioned", "stat", "percentunit"),
            (
                Query(
                    share(
                        "",
                        _POOL.now(_UNITS, 'state="provisioned"'),
                        _POOL.now("gwmond_site_capacity_canonical_units"),
                    ),
                    "provisioned",
                ),
            ),
            "Share of the sites' capacity that running pilots hold now, busy or not. Lower than "
            "it should be while the pilots of an entry are not known.",
            width=4,
            height=3,
        ),
        Panel(
            *("Lost to provisioning bottlenecks", "stat", "h"),
            (Query(hours(total("", _POOL.grown(_SITES, _LACK))), "lost"),),
            "Canonical hours of the chosen range that waiting jobs could have used, and for which "
            "no pilot came. Below: at which entries, for which reason.",
            width=4,
            height=3,
        ),
        Panel(
            *("Unknown capacity", "stat", "percentunit"),
            (
                Query(
                    share("", _POOL.grown(_SITES, 'state="unknown"'), _POOL.grown(_SITES)),
                    "unknown",
                ),
            ),
            "Share of the capacity's time in the chosen range about which gwmond could say "
            "nothing. The larger it is, the less the other numbers mean.",
            width=4,
            height=3,
        ),
    ),
)
_PILOTS = Row(
    "Where does the time of pilots go?",
    (
        Panel(
            *("Pilot time in the chosen range", "bars", "h"),
            (
                Query(
                    hours(total("category", _POOL.grown(_TIME))),
                    "{{category}}",
                ),
            ),
            "Canonical hours settled in the chosen range, by category. The categories sum to the "
            "total. The board Pilot time and waste says where each was spent.",
            page="time",
            colours=CATEGORIES,
            width=9,
        ),
        Panel(
            *("Pilot time as it is settled", "stack", "short"),
            (Query(total("category", _POOL.rate(_TIME)), "{{category}}"),),
            "Canonical units: canonical seconds settled a second, by category. Time is settled "
            "when a run has ended, so a long run counts at its end, all at once.",
            page="time",
            colours=CATEGORIES,
            width=15,
        ),
    ),
)
_IDLE = Row(
    "Why are sites idle?",
    (
        Panel(
            *("Idle capacity in the chosen range, by reason", "bars", "h"),
            (
                Query(
                    hours(total("state, reason", _POOL.grown(_SITES, 'state!="provisioned"')))
                    + " > 0",
                    "{{state}} {{reason}}",
                ),
            ),
            "Canonical hours of capacity that no pilot held, by state and reason; what is 0 is "
            "left out. docs/sites.md says what each reason means and what to do.",
            page="#meanings",
            colours=CAPACITY,
            width=9,
        ),
        Panel(
            *("Use of the sites' capacity", "stack", "short"),
            (Query(total("state", _POOL.now(_UNITS)), "{{state}}"),),
            "Canonical units by state, as of each poll. They sum to the capacity, at saturated "
            "entries to what is provisioned.",
            colours=CAPACITY,
            width=15,
        ),
        Panel(
            *("Entries that lost most", "table", "h"),
            (
                Query(
                    f"topk(20, {hours(total('site, entry, reason', _POOL.grown(_SITES, _LACK)))})"
                    " > 0",
                    "canonical hours lost",
                ),
            ),
            "Canonical hours of the chosen range lost to provisioning bottlenecks, by entry and "
            "reason: the first 20. A click on a row shows the site.",
            empty="while no site is starved",
            drill=("site", "entry"),
            width=24,
        ),
    ),
)
BOARD = Board(
    "gwmond-overview",
    "gwmond: Overview",
    "Where does the time of pilots go, and why are sites idle?",
    ("resource",),
    (_HEAD, _PILOTS, _IDLE),
)
