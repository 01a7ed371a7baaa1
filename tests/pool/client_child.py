"""HTCondor client operations: a request in JSON on a connection, then the reply.

Started by client.py, for the bindings must not be loaded into the test process: ``FD``, a listening
socket, is its argument.  Each operation has a process of its own, and reads the configuration anew.
"""

from __future__ import annotations

import json
import math
import os
import select
import signal
import socket
import sys
from collections.abc import Sequence
from typing import Any

import classad2
import htcondor2


def _schedd_ad(collector: str, name: str) -> Any:
    return htcondor2.Collector(collector).locate(htcondor2.DaemonType.Schedd, name)


def _submit(collector: str, schedd: str, text: str, count: int) -> int:
    """`count` 0 stands for the queue statement of the text itself (late materialisation)."""
    submit = htcondor2.Submit(text)
    result = htcondor2.Schedd(_schedd_ad(collector, schedd)).submit(submit, count)
    return int(result.cluster())


def _act(collector: str, schedd: str, action: str, constraint: str) -> dict[str, Any]:
    ad = htcondor2.Schedd(_schedd_ad(collector, schedd)).act(
        htcondor2.JobAction[action], constraint, reason="test"
    )
    return {key: ad[key] for key in ("TotalSuccess", "TotalError")}


def _advertise(collector: str, texts: Sequence[str], command: str) -> int:
    ads = [classad2.ClassAd(text) for text in texts]
    for ad in ads:
        # As condor_advertise does; a licence ad is not accepted without.
        ad.setdefault("MyAddress", "<127.0.0.1:0>")
    htcondor2.Collector(collector).advertise(ads, command, True)
    return len(ads)


def _plain(value: Any) -> Any:
    """A ClassAd value as JSON can hold it; what has no value becomes {"expr": text}."""
    if type(value) in {str, float, bool, int}:
        return value
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return {"expr": str(value)}


def _whole(value: Any) -> Any:
    """The same; an ad within it becomes a dict."""
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if hasattr(value, "keys"):
        return {key: _whole(value.eval(key)) for key in value}
    return _plain(value)


def _row(ad: Any) -> dict[str, Any]:
    row = {}
    for key in ad:
        value = _plain(ad.eval(key))
        row[key] = {"expr": str(ad.lookup(key))} if isinstance(value, dict) else value
    return row


def _rows(ads: Sequence[Any]) -> list[dict[str, Any]]:
    return [_row(ad) for ad in ads]


def _query(
    collector: str, ad_type: str, constraint: str | None, projection: list[str] | None
) -> list[dict[str, Any]]:
    kind = htcondor2.AdType[ad_type]
    return _rows(htcondor2.Collector(collector).query(kind, constraint, projection))


def _jobs(
    collector: str, schedd: str, constraint: str, projection: list[str], history: bool
) -> list[dict[str, Any]]:
    daemon = htcondor2.Schedd(_schedd_ad(collector, schedd))
    if history:
        return _rows(list(daemon.history(constraint, projection)))
    return _rows(daemon.query(constraint, projection))


def _histories(
    collector: str, schedds: Sequence[str], kinds: Sequence[str], projection: list[str]
) -> dict[str, list[Any]]:
    """All records of those kinds (schedd, epoch, startd), and the errors of startds."""
    found: dict[str, list[Any]] = {**{kind: [] for kind in kinds}, "errors": []}

    def add(kind: str, ads: Sequence[Any], **more: str) -> None:
        found[kind] += [{**_whole(ad), **more} for ad in ads]

    if "startd" in kinds:
        for ad in htcondor2.Collector(collector).query(htcondor2.AdType.StartDaemon):
            try:
                records = list(htcondor2.Startd(ad).history("true", projection))
            except htcondor2.HTCondorException as error:
                found["errors"].append(f"{ad['Name']}: {error}")
            else:
                add("startd", records, startd=ad["Name"])
    for name in schedds:
        schedd = htcondor2.Schedd(_schedd_ad(collector, name))
        if "schedd" in kinds:
            add("schedd", list(schedd.history("true", projection)), schedd=name)
        if "epoch" in kinds:
            add("epoch", list(schedd.jobEpochHistory("true", projection)), schedd=name)
    return found


_OPERATIONS: dict[str, Any] = {
    "submit": _submit,
    "act": _act,
    "advertise": _advertise,
    "query": _query,
    "jobs": _jobs,
    "histories": _histories,
}


def _reply(request: dict[str, Any]) -> dict[str, Any]:
    """What an operation gives, under the environment and within the seconds that come with it."""
    os.environ.clear()
    os.environ.update(request.pop("env"))
    signal.alarm(math.ceil(request.pop("timeout")) + 1)  # after who waits has given up
    htcondor2.reload_config()
    operation = _OPERATIONS[request.pop("operation")]
    try:
        return {"result": operation(**request)}
    except Exception as error:
        return {"error": [type(error).__name__, str(error)]}


def _serve(server: socket.socket) -> None:
    """Fork a process for each request, until who started this one is gone."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while sys.stdin not in (ready := select.select([server, sys.stdin], [], [])[0]):
        assert ready
        connection, _ = server.accept()
        with connection:
            if os.fork():
                continue
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            with connection.makefile("rb") as request:
                connection.sendall(json.dumps(_reply(json.load(request))).encode())
            os._exit(0)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
