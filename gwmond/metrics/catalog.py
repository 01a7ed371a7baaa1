"""All families, and the page that lists them: ``python -m gwmond.metrics.catalog``."""

from __future__ import annotations

from gwmond.metrics import (
    demand,
    factory,
    factory_queue,
    pilot_time,
    pilots,
    reconciliation,
    sites,
    sources,
)
from gwmond.metrics.family import Family
from gwmond.metrics.render import FOLDED

TOPICS: dict[str, tuple[Family, ...]] = {
    "Sites": sites.FAMILIES,
    "Demand": demand.FAMILIES,
    "Pilots": pilots.FAMILIES,
    "Factories and frontends": factory.FAMILIES,
    "Pilots' time": pilot_time.FAMILIES,
    "The factory's own numbers": (*factory_queue.FAMILIES, *reconciliation.FAMILIES),
    "gwmond itself": (*sources.FAMILIES, FOLDED),
}
FAMILIES = tuple(family for topic in TOPICS.values() for family in topic if family is not FOLDED)


def page() -> str:
    """Return the list of metrics in Markdown."""
    lines = [
        "# Metrics",
        "",
        "Made from the code by `python -m gwmond.metrics.catalog`. Values come from a timed poll;",
        "a missing fact has no sample, not a zero. A counter of a known entry and group",
        "begins with 0, so that `increase()` sees all of it (docs/metrics-guide.md).",
    ]
    for topic, families in TOPICS.items():
        lines += ["", f"## {topic}", "", "| name | type | labels | meaning |", "|---|---|---|---|"]
        for family in families:
            labels = ", ".join(f"`{label}`" for label in family.labels)
            lines.append(f"| `{family.name}` | {family.kind} | {labels} | {family.help} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")
