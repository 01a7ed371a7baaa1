"""What ``gwmond once`` says of a pool: states, canonical units, reasons, evidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.daemon.running import configuration, gwmond
from tests.daemon.scrape import Metrics
from tests.referee.draw import GRACE_S, UNIT_MIB, Entry

BOTTLENECK = "provisioning_bottleneck"


class Verdict(NamedTuple):
    """What is said of one entry; units are of cores, ``gpus`` of GPUs that could be used."""

    state: str
    reason: str
    evidence: str
    capacity_evidence: str
    units: float
    gpus: float
    spare: float
    provisioned: float


class Witness(NamedTuple):
    """gwmond, asked of one pool: its collector, the factory's schedd, where configurations go."""

    collector: str
    factory_schedd: str
    directory: Path

    def ask(self, entries: Iterable[Entry]) -> dict[str, Verdict]:
        """Have gwmond judge, where entries have the room that the scenario says."""
        return self._once([(entry, entry.room) for entry in entries], "scenario")

    def ask_alone(self, entries: Iterable[Entry], alone: Entry) -> Verdict:
        """Have gwmond judge where there is room for one pilot of one entry, and no other."""
        rooms = [(entry._replace(capacity="pledge"), int(entry is alone)) for entry in entries]
        return self._once(rooms, alone.name)[alone.name]

    def _once(self, rooms: list[tuple[Entry, int]], name: str) -> dict[str, Verdict]:
        pledges = [_pledge(entry, room) for entry, room in rooms if entry.capacity == "pledge"]
        tables: dict[str, dict[str, object]] = {
            "site": {"pledge": pledges, "pending_grace": f"{GRACE_S}s"},
            "pool": {
                "wms": {"collectors": [self.collector], "factory_schedds": [self.factory_schedd]}
            },
        }
        path = self.directory / f"{name}.toml"
        path.write_text(configuration(self.directory / "none", [self.collector], tables))
        done = gwmond("once", "--config", str(path))
        assert done.returncode == 0, done.stderr
        metrics = Metrics.parse(done.stdout)
        return {entry.name: _verdict(metrics, entry.name) for entry, _ in rooms}


def _pledge(entry: Entry, room: int) -> dict[str, object]:
    """What makes room for that many more pilots than run."""
    pilots, shape = entry.running + room, entry.shape
    return {
        "entry": entry.name,
        "cores": pilots * shape.units,
        "memory_mib": pilots * shape.units * UNIT_MIB,
        "gpus": pilots * shape.gpus,
    }


def _verdict(metrics: Metrics, entry: str) -> Verdict:
    states = metrics.rows("gwmond_site_state", entry=entry)
    evidence = _labels(metrics.rows("gwmond_site_evidence_info", entry=entry, resource="cpu"))
    name = "gwmond_site_canonical_units"
    reasons = _labels(metrics.rows(name, entry=entry, state=BOTTLENECK))

    def units(state: str, resource: str = "cpu") -> float:
        return metrics.sum(name, state=state, entry=entry, resource=resource)

    return Verdict(
        state=next((dict(labels)["state"] for labels, value in states.items() if value), ""),
        reason=reasons.get("reason", ""),
        evidence=evidence.get("evidence", ""),
        capacity_evidence=evidence.get("capacity_evidence", ""),
        units=units(BOTTLENECK),
        gpus=units(BOTTLENECK, "gpu"),
        spare=metrics.sum(name, entry=entry, resource="cpu") - units("provisioned"),
        provisioned=units("provisioned"),
    )


def _labels(rows: Mapping[frozenset[tuple[str, str]], float]) -> dict[str, str]:
    return dict(next(iter(rows), frozenset()))
