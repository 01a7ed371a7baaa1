"""Histories of a pool as JSON; a process of its own, for the bindings must not be in the test's."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import htcondor2


def _plain(value: Any) -> Any:
    """A ClassAd value as JSON can hold it; an ad within it becomes a dict."""
    if type(value) in {str, float, bool, int}:
        return value
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if hasattr(value, "keys"):
        return {key: _plain(value.eval(key)) for key in value}
    return {"expr": str(value)}


def _rows(ads: Sequence[Any], **more: str) -> list[dict[str, Any]]:
    return [{**{key: _plain(ad.eval(key)) for key in ad}, **more} for ad in ads]


def _main() -> None:
    request = json.load(sys.stdin)
    collector = htcondor2.Collector(request["collector"])
    kinds, projection = request["kinds"], request["projection"]
    found: dict[str, list[Any]] = {**{kind: [] for kind in kinds}, "errors": []}
    if "startd" in kinds:
        for ad in collector.query(htcondor2.AdType.StartDaemon):
            try:
                records = list(htcondor2.Startd(ad).history("true", projection))
            except htcondor2.HTCondorException as error:
                found["errors"].append(f"{ad['Name']}: {error}")
                continue
            found["startd"] += _rows(records, startd=ad["Name"])
    for name in request["schedds"]:
        schedd = htcondor2.Schedd(collector.locate(htcondor2.DaemonType.Schedd, name))
        if "schedd" in kinds:
            found["schedd"] += _rows(list(schedd.history("true", projection)), schedd=name)
        if "epoch" in kinds:
            found["epoch"] += _rows(list(schedd.jobEpochHistory("true", projection)), schedd=name)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    _main()
