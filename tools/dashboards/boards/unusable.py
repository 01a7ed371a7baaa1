"""Cores that pilots hold and no job uses, and why."""

from __future__ import annotations

from tools.dashboards.colours import USE
from tools.dashboards.promql import Scope, most, share, total
from tools.dashboards.record import Board, Panel, Query, Row

_HERE = Scope("resource", "site", "entry", "group")
_UNITS = "gwmond_pilot_canonical_units"
_CORES = "gwmond_entry_frontend_cores"
_IDLE_CORES = 'state="idle"'

_NOW = Row(
    "How much is not used?",
    (
        Panel(
            *("Busy", "stat", "percentunit"),
            (Query(share("", _HERE.now(_UNITS, 'use="busy"'), _HERE.now(_UNITS)), "busy"),),
            "Share of the canonical units of registered pilots that jobs take now. A job takes the "
            "pilot's units divided by how many such jobs fit: of 8 cores with 16 GB a job of "
            "1 core and 8 GB takes half.",
            empty="while no pilot is registered",
            width=6,
            height=4,
        ),
        Panel(
            *("Idle", "stat", "percentunit"),
            (Query(share("", _HERE.now(_UNITS, 'use="idle"'), _HERE.now(_UNITS)), "idle"),),
            "Share of the canonical units that are free for a job of one unit. Those of retiring "
            "pilots count as well, though no job can start there.",
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
            "Share of the canonical units that are neither taken nor free for a job of one unit: "
            "cores are left without memory, or memory without cores. The table below tells which.",
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
            "Canonical units of registered pilots: busy (taken by jobs), idle "
            "(free for a job of one unit, also in retiring pilots), remainder (neither).",
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
            "validation. Many retiring ones hold cores that no new job gets.",
        ),
    ),
)
_WHY = Row(
    "Where, and why?",
    (
        Panel(
            *("Idle cores and idle units, by entry", "table", "short"),
            (
                Query(total("site, entry", _HERE.now(_CORES, _IDLE_CORES)), "idle cores"),
                Query(total("site, entry", _HERE.now(_UNITS, 'use="idle"')), "idle units"),
                Query(total("site, entry", _HERE.now(_UNITS, 'use="remainder"')), "remainder"),
                Query(
                    total("site, entry", _HERE.now("gwmond_pilots", 'state="retiring"')),
                    "retiring pilots",
                ),
            ),
            "Cores that the frontends counted as idle in their last cycle; canonical units that "
            "are free, and neither free nor taken; pilots that take no more jobs. More idle cores "
            "than idle units: cores without memory, so ask for pilots with more memory, or users "
            "for what they need. Idle units beside retiring pilots: no job can start there.",
            drill=("site", "entry"),
            width=24,
        ),
        Panel(
            *("Idle, by entry", "table", "short"),
            (
                Query(
                    most(20, "site, entry", _HERE.now(_UNITS, 'use="idle"')),
                    "canonical units",
                ),
            ),
            "Canonical units that are free for a job of one unit: the first 20. Jobs that wait "
            "match other entries, need more than one unit, or the pilots retire.",
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
            *("Idle units of pilots, by part", "lines", "short"),
            (Query(total("part", _HERE.now("gwmond_pilot_overhead_canonical_units")), "{{part}}"),),
            "Canonical units that no job takes now: of pilots that have not run a job yet, that "
            "have none now, beside jobs, and of pilots that take no more jobs.",
        ),
        Panel(
            *("Idle cores by the frontends' count", "lines", "short"),
            (
                Query(
                    total("group", _HERE.now(_CORES, _IDLE_CORES)),
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
            "Share of the units of registered pilots that jobs take, of CPUs and of GPUs. GPUs "
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
