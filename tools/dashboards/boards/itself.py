"""Whether gwmond works: its polls, sources, histories and ledger."""

from __future__ import annotations

from tools.dashboards.promql import Scope
from tools.dashboards.record import Board, Panel, Query, Row

_SELF = Scope()
_BY = "by (job, instance"
_SERVER = "{{instance}}"


def _last(title: str, metric: str, unit: str, description: str) -> Panel:
    """Return a panel of the slowest or largest sources."""
    return Panel(
        *(title, "lines", unit),
        (
            Query(
                f"topk(10, max {_BY}, source, kind) ({_SELF.now(metric)}))",
                f"{_SERVER} {{{{source}}}} {{{{kind}}}}",
            ),
        ),
        description,
        page="#sources",
        width=8,
    )


def _lag(moment: str) -> str:
    """Return how long before the last poll a moment was; of a live pool alone."""
    poll = _SELF.raw("gwmond_poll_timestamp_seconds")
    replay = _SELF.raw("gwmond_replay_speed_ratio")
    return f"{poll} - on (job, instance) group_right () {moment} unless on (job, instance) {replay}"


_POLLS = Row(
    "Polls",
    (
        Panel(
            *("Age of the last poll", "lines", "s"),
            (Query(f"time() - {_SELF.raw('gwmond_poll_timestamp_seconds')}", _SERVER),),
            "Seconds since the last poll ended. No line: Prometheus cannot scrape gwmond. It "
            "rises: gwmond does not poll (systemctl status gwmond).",
            page="#sources",
            width=8,
        ),
        Panel(
            *("Duration of a poll by stage", "stack", "s"),
            (
                Query(
                    f"sum {_BY}, stage) ({_SELF.now('gwmond_poll_stage_seconds')})",
                    f"{_SERVER} {{{{stage}}}}",
                ),
            ),
            "Seconds of the last poll by stage. Near poll.interval: raise that, or see the "
            "slowest sources.",
            page="#sources",
            width=8,
        ),
        Panel(
            *("Version", "table", "none"),
            (
                Query(
                    f"max {_BY}, version, htcondor_version) ({_SELF.raw('gwmond_build_info')})",
                    "running",
                ),
            ),
            "Version of gwmond and of the pool's collector, by instance.",
            page="",
            width=8,
        ),
    ),
)
_SOURCES = Row(
    "Sources",
    (
        Panel(
            *("Queries that fail", "table", "none"),
            (
                Query(
                    f"count {_BY}, source, kind) ({_SELF.raw('gwmond_source_up')} == 0)",
                    "queries that fail",
                ),
            ),
            "Queries whose last answer was a failure. gwmond check and the page of problems say "
            "why.",
            empty="while all sources answer",
            page="#sources",
            width=8,
        ),
        Panel(
            *("Time since a source answered", "lines", "s"),
            (
                Query(
                    f"topk(10, max {_BY}, source, kind) (time() - "
                    f"{_SELF.raw('gwmond_source_last_success_timestamp_seconds')}))",
                    f"{_SERVER} {{{{source}}}} {{{{kind}}}}",
                ),
            ),
            "Seconds since the last query that succeeded, of the 10 sources that are silent for "
            "longest. A source that has never answered since gwmond started has no line.",
            page="#sources",
            width=8,
        ),
        Panel(
            *("Problems in the chosen range", "table", "short"),
            (
                Query(
                    f"sum {_BY}, source, problem) ({_SELF.grown('gwmond_problems_total')}) > 0",
                    "occurrences",
                ),
            ),
            "Bad input and failures by name. docs/problems.md says what to do about each.",
            empty="while nothing is wrong",
            page="problems",
            width=8,
        ),
        _last(
            *("Slowest queries", "gwmond_source_duration_seconds", "s"),
            "Wall time of the last query, of the 10 slowest.",
        ),
        _last(
            *("CPU time of queries", "gwmond_source_cpu_seconds", "s"),
            "CPU time of the process of the last query that succeeded, the 10 largest.",
        ),
        _last(
            *("Memory of queries", "gwmond_source_peak_memory_bytes", "bytes"),
            "Largest resident size of the process of the last query, the 10 largest. "
            "poll.memory_limit_mib limits it.",
        ),
        Panel(
            *("Records read", "lines", "short"),
            (
                Query(
                    f"sum {_BY}, kind) ({_SELF.rate('gwmond_source_records_total')})",
                    f"{_SERVER} {{{{kind}}}}",
                ),
            ),
            "Ads or rows a second by kind of query. A line that falls to 0: the source returns "
            "nothing.",
            page="#sources",
            width=8,
        ),
        Panel(
            *("Skipped polls of busy schedds", "lines", "short"),
            (
                Query(
                    f"max {_BY}, source, kind) ({_SELF.now('gwmond_source_skipped_polls')})",
                    f"{_SERVER} {{{{source}}}} {{{{kind}}}}",
                ),
            ),
            "Polls in a row that left out a schedd because its duty cycle exceeds "
            "poll.busy_duty_cycle.",
            page="#sources",
            width=8,
        ),
        Panel(
            *("Lag of histories", "lines", "s"),
            (
                Query(
                    _lag(_SELF.now("gwmond_history_complete_timestamp_seconds")),
                    f"{_SERVER} {{{{source}}}} {{{{kind}}}}",
                ),
                Query(
                    _lag(_SELF.now("gwmond_pilot_time_known_timestamp_seconds")),
                    f"{_SERVER} all sources",
                ),
            ),
            "How far the records of job runs have been read, in seconds before the last poll. A "
            "backlog is drained over several polls; if the lag rises, settled time is late.",
            empty="in gwmond demo, where the pool's clock is not this machine's",
            page="#sources",
            width=8,
        ),
    ),
)
_LEDGER = Row(
    "Ledger and limits",
    (
        Panel(
            *("Residual of the ledger", "lines", "s"),
            (
                Query(
                    f"max {_BY}, measure) ({_SELF.now('gwmond_ledger_residual_seconds')})",
                    f"{_SERVER} {{{{measure}}}}",
                ),
            ),
            "How far the parts of time are from their total. Always 0: anything else is a defect "
            "of gwmond (gwmond ledger check).",
            page="",
            width=8,
        ),
        Panel(
            *("Increments that wait for the ledger", "lines", "short"),
            (
                Query(
                    f"max {_BY}) ({_SELF.now('gwmond_ledger_waiting_increments')})",
                    _SERVER,
                ),
            ),
            "Above 0: the ledger cannot be written. The disk is full, or the database is away; "
            "nothing is lost while gwmond runs.",
            page="",
            width=8,
        ),
        Panel(
            *("Series taken together", "table", "short"),
            (Query(f"max {_BY}, family) ({_SELF.now('gwmond_series_folded')}) > 0", "series"),),
            "Series beyond metrics.series_budget, which are summed under the label value other, "
            "by family.",
            empty="while all fits",
            page="",
            width=8,
        ),
        Panel(
            *("Names taken together", "table", "short"),
            (Query(f"max {_BY}, kind) ({_SELF.now('gwmond_names_together')}) > 0", "names"),),
            "Names of entries, groups, accounting groups and more beyond the limits of [names], "
            "which are accounted as other.",
            empty="while all fits",
            page="",
            width=8,
        ),
        Panel(
            *("Contradictions between sources", "bars", "short"),
            (
                Query(
                    f"sum by (field) ({_SELF.grown('gwmond_run_contradictions_total')}) > 0",
                    "{{field}}",
                ),
            ),
            "Fields of runs in which sources differed in the chosen range. The better source is "
            "believed.",
            empty="while sources agree",
            page="",
            width=8,
        ),
        Panel(
            *("Verdicts that were right", "bars", "percentunit"),
            (
                Query(
                    "sum by (state) ("
                    + _SELF.grown("gwmond_verdicts_checked_total", 'agreed="true"')
                    + ") / (sum by (state) ("
                    + _SELF.grown("gwmond_verdicts_checked_total")
                    + ") > 0)",
                    "{{state}}",
                ),
            ),
            "Share of the verdicts on entries, checked by pilots in the chosen range, that were "
            "right. Pilots rarely start where demand is missing: see the number beside it.",
            empty="while no pilot starts after a verdict",
            width=8,
        ),
        Panel(
            *("Verdicts checked", "bars", "short"),
            (
                Query(
                    "sum by (state, agreed) (" + _SELF.grown("gwmond_verdicts_checked_total") + ")",
                    "{{state}} agreed: {{agreed}}",
                ),
            ),
            "How many verdicts pilots have checked in the chosen range. A share of few means "
            "little.",
            width=8,
        ),
    ),
)
BOARD = Board(
    "gwmond-itself",
    "gwmond: gwmond itself",
    "Does gwmond poll, do its sources answer, can it write its ledger?",
    (),
    (_POLLS, _SOURCES, _LEDGER),
)
