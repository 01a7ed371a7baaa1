"""Traces of real jobs: one that continues a trace, one evicted and run again, one held."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.build.otlp_sink import Sink, sink
from tests.daemon.running import RunningDaemon
from tests.daemon.scene import PUNCTUAL, REAL
from tests.pool.condor import CLEANED, CondorPool
from tests.sources.history_scenario import again

TRACE, SUBMITTER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
OTHER = TRACE[::-1]
SECRET = "canary-5e11"
KNOWN = ("GlobalJobId", "QDate", "JobCurrentStartDate", "EnteredCurrentStatus", "CompletionDate")
INPUT = 3_000_000
MARGIN_S = 2  # by which times of shadow, starter and schedd may differ


def shell(script: str) -> dict[str, Any]:
    return {"executable": "/bin/sh", "arguments": f"\"-c '{script}'\""}


def submitted(pool: CondorPool) -> dict[str, int]:
    """The three jobs: each has input; the first also has output, a trace and a secret."""
    data = Path(pool.local) / "alice" / "input.dat"
    data.write_bytes(b"x" * INPUT)
    data.chmod(0o644)
    schedd = pool.schedds[0]
    moved: dict[str, Any] = {"transfer_input_files": data, "request_memory": 500}
    return {
        "traced": pool.submit(
            schedd,
            attrs={"TraceParent": f"00-{TRACE}-{SUBMITTER}-01"},
            environment=f'"SECRET={SECRET}"',
            transfer_output_files="out.dat",
            **moved,
            **shell(f"sleep 3; head -c 2000000 /dev/zero > out.dat; exit 3 # {SECRET}"),
        ),
        "evicted": pool.submit(
            schedd,
            environment=f'"SECRET={SECRET} TRACEPARENT=00-{OTHER}-{SUBMITTER}-01"',
            requirements=CLEANED,
            **moved,
            **shell(again(3)),
        ),
        "held": pool.submit(schedd, **moved, **shell("exec sleep 600")),
    }


def played(pool: CondorPool, waited: int) -> dict[str, dict[str, Any]]:
    """What the schedd recorded of each, once all have left its queue."""
    schedd, clusters = pool.schedds[0], submitted(pool) | {"waited": waited}
    for name, action in (("evicted", "Vacate"), ("held", "Hold")):
        mine = f"ClusterId == {clusters[name]}"
        begun = f"{mine} && JobStatus == 2 && JobCurrentStartExecutingDate =!= undefined"
        pool.wait_for(name, lambda begun=begun: pool.jobs(schedd, begun))  # type: ignore[misc]
        pool.act(action, schedd, mine)
    held = f"ClusterId == {clusters['held']}"
    pool.wait_for("the hold", lambda: pool.jobs(schedd, f"{held} && JobStatus == 5"))
    pool.wait_for("the others to end", lambda: len(pool.jobs(schedd, "true", ["ClusterId"])) == 1)
    pool.remove(schedd, held)
    pool.wait_for("an empty queue", lambda: not pool.jobs(schedd))
    return {
        name: pool.jobs(schedd, f"ClusterId == {cluster}", KNOWN, history=True)[0]
        for name, cluster in clusters.items()
    }


def names(spans: list[dict[str, Any]], parent: str | None) -> list[str]:
    return [span["name"] for span in spans if span["parent_span_id"] == parent]


def seconds(span: dict[str, Any]) -> tuple[float, float]:
    return span["start_epoch_seconds"], span["end_epoch_seconds"]


def near(found: float, known: float) -> bool:
    return abs(found - known) <= MARGIN_S


def test_traces_of_real_jobs(
    htcondor: str, daemon: Callable[..., RunningDaemon], tmp_path: Path
) -> None:
    """Structure, times, errors and bytes are those that HTCondor recorded; nothing else leaks."""
    config = "JOB_EPOCH_HISTORY = $(SPOOL)/epoch_history\n"
    with sink() as receiver, CondorPool(htcondor=htcondor, config=config) as pool:
        export = {"read_environment": True, "endpoint": receiver.url}
        tables = {**PUNCTUAL, "traces": export}
        running = daemon(pool.collector, tables=tables)
        waited = pool.submit(pool.schedds[0], **shell("exec sleep 1"))
        running.wait_until("it waits", lambda m: m.sum("gwmond_idle_canonical_units") >= 1)
        pool.start_pilot("one", cores=4, memory=8192, attrs=REAL)
        ads = played(pool, waited)
        running.wait_until("all runs", lambda m: m.sum("gwmond_job_runs_total") >= 5)
        pilots, runs = running.stored("one@pool.test")
        traces = {
            name: running.document("trace", ad["GlobalJobId"])["spans"] for name, ad in ads.items()
        }
        traces["pilot"] = running.document("trace", str(pilots[0].id))["spans"]
        page = running.get(f"/trace?pilot={pilots[0].id}")
        shown = [span for name in ads for span in traces[name]]
        receiver.await_spans(len(shown))
        running.next_polls()
        exported(receiver, shown)
    assert len(runs) == 5
    said = repr(traces) + page
    ledger = b"".join(path.read_bytes() for path in tmp_path.glob("ledger*"))
    assert SECRET not in said
    assert SECRET.encode() not in ledger
    for name, ad in ads.items():
        root = traces[name][0]
        start, end = seconds(root)
        assert start == ad["QDate"], name
        assert end == ad["EnteredCurrentStatus"], name
        assert all("gwmond.settled" not in span["attributes"] for span in traces[name]), name
        last = [span for span in traces[name] if span["name"] == "run"][-1]
        assert seconds(last)[0] == ad["JobCurrentStartDate"], name
    of_traced(traces["traced"], ads["traced"])
    of_evicted(traces["evicted"], ads["evicted"])
    of_held(traces["held"])
    of_waited(traces["waited"])
    of_pilot(traces)


def exported(receiver: Sink, shown: list[dict[str, Any]]) -> None:
    """The receiver has each span of the jobs once, and as it is shown."""
    kinds = {"job", "queue", "run", "stage-in", "execute", "stage-out"}
    found = [
        (
            *(span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex(), span.name),
            *(span.start_time_unix_nano / 1e9, span.end_time_unix_nano / 1e9),
            [(event.name, round(event.time_unix_nano / 1e9, 3)) for event in span.events],
        )
        for span in receiver.accepted
        if span.name in kinds
    ]
    keys = ("trace_id", "span_id", "parent_span_id", "name")
    assert sorted(found) == sorted(
        (
            *(span[key] or "" for key in keys),
            *seconds(span),
            [(event["name"], round(event["time_epoch_seconds"], 3)) for event in span["events"]],
        )
        for span in shown
    )
    assert SECRET not in str(receiver.accepted)


def of_traced(spans: list[dict[str, Any]], ad: dict[str, Any]) -> None:
    root, queue, run, stage_in, execute, stage_out = spans
    assert {span["trace_id"] for span in spans} == {TRACE}
    assert root["parent_span_id"] == SUBMITTER
    assert names(spans, root["span_id"]) == ["queue", "run"]
    assert names(spans, run["span_id"]) == ["stage-in", "execute", "stage-out"]
    assert seconds(queue) == (ad["QDate"], ad["JobCurrentStartDate"])
    assert near(seconds(run)[1], ad["CompletionDate"])
    assert root["error"] == run["error"] == "exit_nonzero"
    assert [part["error"] for part in (stage_in, execute, stage_out)] == [
        *(None, "exit_nonzero", None)
    ]
    assert execute["attributes"]["process.exit.code"] == 3
    assert seconds(execute)[1] - seconds(execute)[0] >= MARGIN_S
    assert stage_in["attributes"]["htcondor.transfer.bytes"] == INPUT
    assert stage_out["attributes"]["htcondor.transfer.bytes"] == 2_000_000
    assert run["attributes"]["gwms.site"] == "Real"
    assert root["attributes"]["htcondor.job.status"] == "completed"


def of_evicted(spans: list[dict[str, Any]], ad: dict[str, Any]) -> None:
    root, first, run, *_ = spans
    assert {span["trace_id"] for span in spans} == {OTHER}  # by its environment
    assert names(spans, root["span_id"]) == ["queue", "run", "queue", "run"]
    waited = [span for span in spans if span["name"] == "queue"]
    runs = [span for span in spans if span["name"] == "run"]
    assert (first, run) == (waited[0], runs[0])
    assert seconds(waited[1]) == (seconds(runs[0])[1], ad["JobCurrentStartDate"])
    assert runs[0]["error"]
    assert waited[1]["events"][0]["name"] == "run ended"
    assert (root["error"], runs[1]["error"]) == (None, None)
    moved = [span for span in spans if span["name"] == "stage-in"]
    assert [span["attributes"]["htcondor.transfer.bytes"] for span in moved] == [INPUT, INPUT]


def of_held(spans: list[dict[str, Any]]) -> None:
    root = spans[0]
    assert names(spans, root["span_id"])[:2] == ["queue", "queue"]
    assert root["error"] == "removed"
    assert root["attributes"]["htcondor.job.status"] == "removed"
    (run,) = (span for span in spans if span["name"] == "run")
    assert run["error"] == "held_by_user"
    last = next(span for span in spans if span["name"] == "queue")
    assert seconds(last) == (seconds(run)[1], seconds(root)[1])


def of_waited(spans: list[dict[str, Any]]) -> None:
    """The poll before there was any pilot said why it waited."""
    queue = next(span for span in spans if span["name"] == "queue")
    first = queue["events"][0]
    assert first["name"] == "waiting"
    assert first["gwmond.wait.cause"] == "no_site"
    assert (first["gwmond.wait.reason"], first["gwmond.wait.site"]) == ("nowhere", "none")
    start, end = seconds(queue)
    assert all(start <= event["time_epoch_seconds"] < end for event in queue["events"])


def of_pilot(traces: dict[str, list[dict[str, Any]]]) -> None:
    """The pilot's span leads to all runs, and each run's to it."""
    pilot = traces["pilot"][0]
    runs = [
        span
        for name in ("traced", "evicted", "held", "waited")
        for span in traces[name]
        if span["name"] == "run"
    ]
    assert {link["span_id"] for link in pilot["links"]} == {run["span_id"] for run in runs}
    assert {link["span_id"] for run in runs for link in run["links"]} == {pilot["span_id"]}
    assert "idle" in {span["name"] for span in traces["pilot"]}
