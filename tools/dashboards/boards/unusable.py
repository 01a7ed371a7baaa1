"""Cores that pilots hold and no job uses, and why."""

from __future__ import annotations

from tools.dashboards.colours import USE
from tools.dashboards.promql import Scope, most, share, total
from tools.dashboards.record import Board, Panel, Query, Row

_HERE = Scope("resource", "site", "entry", "group")
_UNITS = "gwmond_pilot_canonical_units"

_NOW = Row(
    "How much is not used?",
    (
        Panel(
            *("Busy", "stat", "percentunit"),
            (Query(share("", _HERE.now(_UNITS, 'use="busy"'), _HERE.now(_UNITS)), "busy"),),
            "Share of the canonical units of registered pilots that jobs fill now.",
            empty="while no pilot is registered",
            width=6,
            height=4,
        ),
        Panel(
            *("Idle", "stat", "percentunit"),
            (Query(share("", _HERE.now(_UNITS, 'use="idle"'), _HERE.now(_UNITS)), "idle"),),
            "Share of the canonical units in which a job of one unit would fit, and none runs.",
            empty="while no pilot is registered",
            width=6,
            height=4,
        ),
        Panel(
            *("Remainder", "stat", "percentunit"),
            (
                Query(
                    share("", _HERE.now(_UNITS, 'use="remainder"'), _HERE.now(_UNITS)),
                    "remainder",
                ),
            ),
            "Share of the canonical units that are neither filled nor free for a job of one unit: "
            "cores are left without memory, or memory without cores. Retiring pilots' free units "
            "are here as well.",
            empty="while no pilot is registered",
            width=6,
            height=4,
        ),
        Panel(
            *("Untaken", "stat", "short"),
            (
                Query(
                    total("", _HERE.now("gwmond_site_idle_slots_untaken_canonical_units")),
                    "untaken",
                ),
            ),
            "Canonical units of free slots that jobs have matched for longer than "
            "site.untaken_grace, and that no job takes: priorities, quotas, or a negotiator that "
            "does not come round (condor_userprio, NegotiatorLog).",
            warn_above=1,
            width=6,
            height=4,
        ),
        Panel(
            *("Units of the pilots by use", "stack", "short"),
            (Query(total("use", _HERE.now(_UNITS)), "{{use}}"),),
            "Canonical units of registered pilots: busy, idle (a job of one unit would fit), "
            "remainder (neither).",
            colours=USE,
        ),
        Panel(
            *("Pilots that take no job", "stack", "short"),
            (
                Query(
                    total("state", _HERE.now("gwmond_pilots", 'state=~"idle|retiring|failed"')),
                    "{{state}}",
                ),
            ),
            "Pilots: idle run nothing, retiring take no more jobs, failed did not pass the "
            "validation. Many retiring ones hold cores that only running jobs may finish with.",
        ),
    ),
)
_WHY = Row(
    "Where, and why?",
    (
        Panel(
            *("Remainder, by entry", "table", "short"),
            (
                Query(
                    most(20, "site, entry", _HERE.now(_UNITS, 'use="remainder"')),
                    "canonical units",
                ),
                Query(
                    "("
                    + share(
                        "site, entry",
                        _HERE.now(_UNITS, 'use="remainder"'),
                        _HERE.now(_UNITS),
                    )
                    + ") and "
                    + most(20, "site, entry", _HERE.now(_UNITS, 'use="remainder"')),
                    "share of the entry's units",
                    "percentunit",
                ),
            ),
            "Canonical units that are neither filled nor free for a job of one unit, and their "
            "share of the entry's: the first 20. Ask the factory for pilots with more "
            "memory, or users for what they really need.",
            empty="while cores and memory of pilots are used up together",
            drill=("site", "entry"),
        ),
        Panel(
            *("Idle, by entry", "table", "short"),
            (
                Query(
                    most(20, "site, entry", _HERE.now(_UNITS, 'use="idle"')),
                    "canonical units",
                ),
            ),
            "Canonical units in which a job of one unit would fit, and none runs: the first 20. "
            "Jobs that wait match other entries, or need more than one unit.",
            empty="while each unit is filled",
            drill=("site", "entry"),
        ),
        Panel(
            *("Untaken, by entry", "table", "short"),
            (
                Query(
                    total(
                        "site, entry", _HERE.now("gwmond_site_idle_slots_untaken_canonical_units")
                    )
                    + " > 0",
                    "canonical units",
                ),
            ),
            "Free slots that jobs match and that nobody takes, in canonical units.",
            empty="while the negotiator gives each free slot to a job that matches",
            drill=("site", "entry"),
        ),
        Panel(
            *("Pilots that have not run a job yet", "lines", "short"),
            (Query(total("group", _HERE.now("gwmond_pilots_unused")), "{{group}}"),),
            "Registered pilots that have not run a job yet, by group. If they stay, too many were "
            "requested, or START accepts nobody.",
        ),
        Panel(
            *("Idle cores by the frontends' count", "lines", "short"),
            (
                Query(
                    total("group", _HERE.now("gwmond_entry_frontend_cores", 'state="idle"')),
                    "{{group}}",
                ),
            ),
            "Cores that the frontend groups count as idle. Cores without memory count as well, "
            "which is why a frontend may request no pilots while jobs wait.",
        ),
        Panel(
            *("Cores without a job, GPUs with one", "lines", "percentunit"),
            tuple(
                Query(
                    share(
                        "",
                        Scope("site", "entry", "group").now(
                            _UNITS, f'resource="{resource}",use="busy"'
                        ),
                        Scope("site", "entry", "group").now(_UNITS, f'resource="{resource}"'),
                    ),
                    f"{resource}: busy",
                )
                for resource in ("cpu", "gpu")
            ),
            "Share of the units of registered pilots that jobs fill, of CPUs and of GPUs. GPUs "
            "that are full leave cores beside them that CPU jobs cannot get. No line for GPUs: no "
            "pilot has any.",
        ),
    ),
)
BOARD = Board(
    "gwmond-unusable",
    "gwmond: Unusable idle cores",
    "Which cores do pilots hold that no job uses, and why?",
    ("resource", "site", "entry", "group"),
    (_NOW, _WHY),
)
