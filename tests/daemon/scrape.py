"""What one scrape says, by name and labels."""

from __future__ import annotations

from functools import lru_cache
from typing import Self, TypeAlias

from prometheus_client.parser import text_string_to_metric_families

SECONDS = "gwmond_site_canonical_seconds_total"


Series: TypeAlias = tuple[str, frozenset[tuple[str, str]]]


@lru_cache(100_000)
def _sample(line: str) -> tuple[Series, float]:
    """Read a line of the text format, most of which are the same in the next scrape."""
    ((sample,),) = (family.samples for family in text_string_to_metric_families(line + "\n"))
    return (sample.name, frozenset(sample.labels.items())), sample.value


class Metrics(dict[Series, float]):
    """One scrape: every sample by its name and labels."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the Prometheus text format; two samples of one series are an error."""
        found = cls()
        for line in text.splitlines():
            if line and not line.startswith("#"):
                key, value = _sample(line)
                assert key not in found, f"{key} is there twice"
                found[key] = value
        return found

    def rows(self, name: str, **labels: str) -> dict[frozenset[tuple[str, str]], float]:
        """The series of a name which have at least these labels."""
        wanted = labels.items()
        return {
            have: value
            for (of, have), value in self.items()
            if of == name and all(pair in have for pair in wanted)
        }

    def value(self, name: str, **labels: str) -> float | None:
        """The one series with at least these labels; None if there is none."""
        found = list(self.rows(name, **labels).values())
        assert len(found) < 2, f"{name}{labels} gives {len(found)} series"
        return found[0] if found else None

    def sum(self, name: str, **labels: str) -> float:
        """The sum of the series with at least these labels."""
        return sum(self.rows(name, **labels).values())

    def reasons(self, state: str, **labels: str) -> set[str]:
        """With which reasons time of a state was counted."""
        rows = self.rows(SECONDS, state=state, **labels)
        return {dict(have)["reason"] for have, seconds in rows.items() if seconds}

    def state(self, site: str) -> str:
        """The state of a site that has one entry; empty when it is not known."""
        rows = self.rows("gwmond_site_state", site=site)
        return next((dict(labels)["state"] for labels, value in rows.items() if value), "")

    def reason(self, site: str, resource: str = "cpu") -> str:
        """The reasons that are named for parts of the site's spare units."""
        rows = self.rows("gwmond_site_canonical_units", site=site, resource=resource)
        return ",".join(sorted(reason for row in rows if (reason := dict(row)["reason"])))

    def units(self, site: str, state: str, resource: str = "cpu") -> float:
        """A site's canonical units in a state, or its capacity, over its entries."""
        if state == "capacity":
            return self.sum("gwmond_site_capacity_canonical_units", site=site, resource=resource)
        return self.sum("gwmond_site_canonical_units", site=site, state=state, resource=resource)

    def registered(self, **labels: str) -> float:
        """How many pilots run HTCondor."""
        states = ("busy", "idle", "retiring")
        return sum(self.sum("gwmond_pilots", state=state, **labels) for state in states)

    def seconds(self, site: str, state: str = "", resource: str = "cpu", reason: str = "") -> float:
        """A site's canonical seconds, of one state and reason or of all."""
        wanted = {"state": state, "reason": reason}
        labels = {name: value for name, value in wanted.items() if value}
        return self.sum(SECONDS, site=site, resource=resource, **labels)

    @property
    def polled_at(self) -> float:
        """When the poll that this scrape shows had ended (epoch seconds)."""
        return self.sum("gwmond_poll_timestamp_seconds")

    @property
    def accounted_at(self) -> float:
        """Up to when that poll accounted: when its queries had ended, whatever came after that."""
        stages = self.sum("gwmond_poll_stage_seconds")
        return self.polled_at - stages + self.sum("gwmond_poll_stage_seconds", stage="query")

    @property
    def polls(self) -> int:
        """How many polls had ended."""
        return int(self.sum("gwmond_polls_total"))
