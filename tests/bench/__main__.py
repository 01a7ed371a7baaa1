"""Run benchmarks: ``python -m tests.bench [NAME] [OPTION ...]``, or all of them.

Names: poll, backlog (of job records), steady, import (of pilots' outputs), early
(verdicts on early failures against simulated truth), suspicions (of them), demo (its recording),
examples (many random ones of all properties), referee (verdicts against a real negotiator),
restarts (random histories, with a daemon that is stopped and killed),
names (a pool in which strangers choose 100,000 names of sites),
rules (how long a Prometheus evaluates the rules of alerts), traces (their export),
explain (beside condor_q -better-analyze), http (clients of pages and metrics).

Options without a name are those of ``poll``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from tests.bench import (
    backlog,
    demo,
    early,
    explain,
    http_load,
    names,
    pilot_import,
    poll_cycle,
    random_examples,
    referee,
    restarts,
    rules,
    steady,
    suspicions,
    traces,
)

_ALL: dict[str, Callable[[], None]] = {
    "poll": poll_cycle.main,
    "backlog": backlog.main,
    "steady": steady.main,
    "suspicions": suspicions.main,
    "import": pilot_import.main,
    "early": early.main,
    "demo": demo.main,
    "examples": random_examples.main,
    "referee": referee.main,
    "restarts": restarts.main,
    "names": names.main,
    "rules": rules.main,
    "traces": traces.main,
    "explain": explain.main,
    "http": http_load.main,
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
