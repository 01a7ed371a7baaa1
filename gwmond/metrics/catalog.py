"""All families, and the page that lists them: ``python -m gwmond.metrics.catalog``."""

from __future__ import annotations

import pkgutil
from importlib import import_module

from gwmond import metrics
from gwmond.metrics.family import Family
from gwmond.metrics.render import FOLDED

_NOT_SCRAPED = {"catalog", "backfill"}
"""Modules that are not imported for their families: one is this, and one needs the ledger."""
_OWN = "gwmond itself"
_ORDER = (
    *("Sites", "Demand", "Pilots", "Factories and frontends", "Pilots' time"),
    *("The factory's own numbers", "Export of traces", _OWN),
)


def _topics() -> dict[str, tuple[Family, ...]]:
    """Return the families of each topic: of each module of this package that has a ``TOPIC``."""
    topics: dict[str, tuple[Family, ...]] = dict.fromkeys(_ORDER, ())
    for name in sorted(module.name for module in pkgutil.iter_modules(metrics.__path__)):
        if name not in _NOT_SCRAPED:
            module = import_module(f"{metrics.__name__}.{name}")
            topic = getattr(module, "TOPIC", None)
            if topic is not None:
                topics[topic] = (*topics.get(topic, ()), *module.FAMILIES)
    topics[_OWN] += (FOLDED,)
    return topics


TOPICS = _topics()
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
