"""Run benchmarks: ``python -m tests.bench [NAME] [OPTION ...]``, or all of them.

Names: poll, growth (of polls with a pool's size), backlog (of job records), steady,
import (of pilots' outputs), early (verdicts on early failures against simulated truth),
suspicions (of them), demo (its recording),
changes (since when more is lost, and what a change did, in simulated weeks),
examples (many random ones of all properties), referee (verdicts against a real negotiator),
whatif (changes against a real pool in which they are made),
restarts (random histories, with a daemon that is stopped and killed),
names (a pool in which strangers choose 100,000 names of sites),
rules (how long a Prometheus evaluates the rules of alerts), traces (their export),
alerts (how often each is right in simulated weeks), forecast (how often these hold there),
explain (beside condor_q -better-analyze), http (clients of pages and metrics),
soak (days of polls in an hour), monitors (what others ask of the daemons, beside gwmond).

Options without a name are those of ``poll``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from tests.bench import (
    alerts,
    backlog,
    changes,
    demo,
    early,
    explain,
    forecast,
    growth,
    http_load,
    monitors,
    names,
    pilot_import,
    poll_cycle,
    random_examples,
    referee,
    restarts,
    rules,
    soak,
    steady,
    suspicions,
    traces,
    whatif,
)

_ALL: dict[str, Callable[[], None]] = {
    "poll": poll_cycle.main,
    "growth": growth.main,
    "backlog": backlog.main,
    "steady": steady.main,
    "changes": changes.main,
    "suspicions": suspicions.main,
    "import": pilot_import.main,
    "early": early.main,
    "demo": demo.main,
    "examples": random_examples.main,
    "referee": referee.main,
    "restarts": restarts.main,
    "monitors": monitors.main,
    "names": names.main,
    "alerts": alerts.main,
    "forecast": forecast.main,
    "rules": rules.main,
    "traces": traces.main,
    "explain": explain.main,
    "http": http_load.main,
    "soak": soak.main,
    "whatif": whatif.main,
}


def main() -> None:
    """Run what the command line names."""
    words = sys.argv[1:]
    if words and words[0] not in _ALL:
        words = ["poll", *words]
    for name in words[:1] or _ALL:
        print(f"== {name}", flush=True)
        sys.argv[1:] = words[1:]
        _ALL[name]()


if __name__ == "__main__":
    main()
