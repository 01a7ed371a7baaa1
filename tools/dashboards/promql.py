"""PromQL with what each query of a board needs: its variables, and no value that is stale."""

from __future__ import annotations

from gwmond.metrics.catalog import TOPICS
from tools.dashboards.record import Variable

FAMILIES = [family for families in TOPICS.values() for family in families]
LABELS = {family.name: family.labels for family in FAMILIES} | {
    f"{family.name}_bucket": (*family.labels, "le") for family in FAMILIES if family.buckets
}
_SELF = 'job=~"$job",instance=~"$instance"'
FRESH = (
    f"(time() - gwmond_poll_timestamp_seconds{{{_SELF}}} < "
    f"clamp_min(3 * gwmond_poll_interval_seconds{{{_SELF}}}, 180) "
    f"unless gwmond_ledger_standby{{{_SELF}}} == 1)"
)
"""Holds for a gwmond that has polled in its last three intervals (and 3 minutes), and does not
stand by: what that sees is in no sum twice.
"""


class Scope:
    """Selects what the variables of a board select: each where the metric has such a label."""

    def __init__(self, *variables: Variable) -> None:
        self._variables = variables

    def raw(self, metric: str, where: str = "") -> str:
        """Return a selector. Its value may be old: gwmond serves its last poll until the next."""
        chosen = [f'{name}=~"${name}"' for name in self._variables if name in LABELS[metric]]
        return f"{metric}{{{','.join([_SELF, *chosen, *([where] if where else [])])}}}"

    def now(self, metric: str, where: str = "") -> str:
        """Return a gauge of the last poll; absent while gwmond does not poll."""
        return f"({self.raw(metric, where)} and on (job, instance) {FRESH})"

    def rate(self, metric: str, where: str = "") -> str:
        """Return by how much a counter grows a second; absent while gwmond does not poll."""
        grown = f"rate({self.raw(metric, where)}[$__rate_interval])"
        return f"({grown} and on (job, instance) {FRESH})"

    def grown(self, metric: str, where: str = "") -> str:
        """Return by how much a counter has grown in the range of time that the board shows."""
        return f"increase({self.raw(metric, where)}[$__range])"


def total(by: str, expression: str) -> str:
    """Return the sum by some labels (comma-separated); of all without."""
    return f"sum by ({by}) ({expression})" if by else f"sum({expression})"


def of_one_entry(expression: str) -> str:
    """Return the largest sum of an entry: of what counts at several entries, no sum has meaning."""
    return f"max(sum by (site, entry) ({expression}))"


def share(by: str, part: str, whole: str) -> str:
    """Return a ratio of sums; absent where the whole is 0."""
    return f"{total(by, part)} / ({total(by, whole)} > 0)"


def hourly(by: str, expression: str) -> str:
    """Return a sum of rates per hour, without what did not happen."""
    return f"{total(by, expression)} * 3600 > 0"


def most(number: int, by: str, expression: str) -> str:
    """Return the largest sums by some labels, without what is 0."""
    return f"topk({number}, {total(by, expression)}) > 0"


def quantile(share_of_all: float, by: str, buckets: str) -> str:
    """Return a quantile of a histogram, from the rates of its buckets; none where all are 0."""
    return f"histogram_quantile({share_of_all:g}, {total(by, buckets)}) >= 0"


def hours(expression: str) -> str:
    """Return seconds as hours."""
    return f"{expression} / 3600"
