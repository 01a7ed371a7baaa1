"""A ticket to a site: its faults, each as a text that its administrators can act on.

It names no user and no job.  Units: times are microseconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gwmond.ledger.reading.begun_at import (
    BegunRun,
    Elsewhere,
    pilots_begun_at,
    pilots_elsewhere,
    runs_begun_at,
    runs_elsewhere,
)
from gwmond.ledger.reading.failed import NOT_JUDGED, moved_within
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.model.facts import Place
from gwmond.model.pilots.file_facts import FailureClass
from gwmond.model.pilots.stored_pilots import EVERY_PILOT
from gwmond.model.runs.phases import FailedTransfer
from gwmond.model.times import SECOND_US, Period
from gwmond.reports.failures.common_failures import split
from gwmond.reports.failures.faults import BegunMark, Fault, FaultCause, faults
from gwmond.reports.failures.outages import Outage, outage_json, outages
from gwmond.reports.ledger.ledger_reading import Age, Unreadable
from gwmond.reports.render.categories import CPU
from gwmond.reports.render.document import Document, Paragraph, Part, Sentences
from gwmond.reports.render.formats import counted, hours, percent, ratio, seconds, words
from gwmond.reports.render.periods import both, short
from gwmond.reports.stored.pilot_sums import of_kinds

MOST_NODES = 10
_AROUND_US = 1800 * SECOND_US
"""So long before and after a fault counts elsewhere: few jobs begin in a short one."""
MOST_RUNS = 50_000
"""So many are read for a page: some 50 MB."""
_TESTS = {
    FailureClass.WN_RESOURCE: "what the node lacks: disk, memory, a file system such as CVMFS",
    FailureClass.NETWORK: "the network of the node: outgoing connections, DNS, a firewall",
    FailureClass.CORRUPTION: "downloads that arrive damaged: a proxy cache (squid), the disk",
    FailureClass.VO_PROXY: "credentials on the node: certificates of the CAs, the clock",
}
_OUTCOMES = {
    "early_exit": "what programs need from the node: CVMFS, containers, /tmp, memory, libraries",
    "starter_failed": "the node's disk and scratch directory, memory, containers",
    "activation_refused": "the node's disk and scratch directory, and its logs",
}
_NOT_OF_RUNS = {NOT_JUDGED, "transfer_input_failed", "transfer_output_failed"}
"""Of these faults it is not known yet whose they are, or a server is the cause."""


def faults_at(
    ledger: LedgerReader, period: Period, place: Place, most: int | None = MOST_RUNS
) -> list[Fault]:
    """Return the faults of a site in a period, what is the site's own first.

    Raises Unreadable where more than ``most`` runs began.
    """
    runs = runs_begun_at(ledger, period, place, most)
    if runs is None:
        raise Unreadable(f"More than {most} runs began there: choose a shorter period.")
    passed, failed = pilots_begun_at(ledger, period, place)
    pilots = [BegunMark(*pilot, "") for pilot in passed]
    for row in failed:
        where = row.identity.key.entry, row.identity.node, row.identity.group
        pilots.append(BegunMark(row.start_us, *where, row.failure, of_kinds(row.settled)[CPU]))
    found = [
        *faults("validation", pilots),
        *faults("run", (_mark(x, x.outcome) for x in runs if x.outcome not in _NOT_OF_RUNS)),
        *faults("transfer", (_mark(run, run.transfer) for run in runs)),
    ]
    found = [
        fault._replace(
            elsewhere=_elsewhere(ledger, fault, place.site), outages=_outages(ledger, fault)
        )
        for fault in found
    ]
    return sorted(found, key=lambda fault: (fault.is_elsewhere, fault.gone, -fault.failed))


def _mark(run: BegunRun, failed: str) -> BegunMark:
    where = run.start_us, run.entry, run.node, run.group
    return BegunMark(*where, failed, run.micros, run.user, run.job_group, run.over)


def _around(fault: Fault) -> Period:
    return Period(fault.since_us - _AROUND_US, fault.last_us + _AROUND_US)


def _outages(ledger: LedgerReader, fault: Fault) -> tuple[Outage, ...]:
    """Return the outages of the server of failed transfers, by what runs at all sites asked."""
    if fault.cause.kind != "transfer":
        return ()
    moved, _ = moved_within(ledger, EVERY_PILOT, _around(fault), MOST_RUNS)
    return tuple(outages(one for one in moved if one.move.server == fault.cause.name))


def _elsewhere(ledger: LedgerReader, fault: Fault, site: str) -> Elsewhere:
    period, name = _around(fault), fault.cause.name
    if fault.cause.kind == "validation":
        return pilots_elsewhere(ledger, period, site, fault.groups, name)
    transfer = name if fault.cause.kind == "transfer" else ""
    outcome = name if fault.cause.kind == "run" else ""
    return runs_elsewhere(ledger, period, site, fault.job_groups, outcome, transfer)


def document(site: str, period: Period, found: Sequence[Fault], age: Age) -> Document:
    """Return all faults, each as a ticket."""

    def record() -> dict[str, Any]:
        times = {**both("from", period.since_us), **both("to", period.until_us)}
        return {"site": site, **times, "ledger": age.as_json(), "faults": list(map(_json, found))}

    return Document(lambda: _parts(site, period, found), record)


def _parts(site: str, period: Period, found: Sequence[Fault]) -> Iterator[Part]:
    yield Paragraph(f"Faults at {site}", "title")
    yield Paragraph(f"From {short(period.since_us)} to {short(period.until_us)} UTC.", "soft")
    if not found:
        yield Paragraph("None: nothing failed there often enough by the doing of the place.")
    yield from tickets(site, period, found)


def tickets(site: str, period: Period, found: Sequence[Fault]) -> Iterator[Part]:
    """Yield each fault as a text for the site's administrators."""
    for fault in found:
        yield Paragraph(_subject(site, fault), "heading")
        yield Sentences(list(_sentences(fault, period)))


def _subject(site: str, fault: Fault) -> str:
    nodes = f"node {fault.nodes[0][0]}" if len(fault.nodes) == 1 else ""
    nodes = nodes or (counted(len(fault.nodes), "node") if fault.nodes else "all nodes alike")
    return f"{site}, {nodes}: {_what(fault.cause)}, since {short(fault.since_us)[:16]} UTC" + (
        f", gone since {short(fault.last_us)[:16]}" if fault.gone else ""
    )


def _what(cause: FaultCause) -> str:
    if cause.kind == "validation":
        kind, test = split(cause.name)
        return f"validation of pilots fails: {' '.join(filter(None, (kind, test))) or 'no reason'}"
    if cause.kind == "transfer":
        transfer = FailedTransfer.of(cause.name)
        return f"{transfer.way} of jobs cannot be transferred ({_server(transfer)})"
    return f"jobs fail as they begin: {words(cause.name)}"


def _server(transfer: FailedTransfer) -> str:
    return "no server is named" if transfer.protocol == "unknown" else transfer.server


def _look(cause: FaultCause) -> str:
    if cause.kind == "transfer":
        server = _server(FailedTransfer.of(cause.name))
        return f"storage, caches, and the way to them from these nodes ({server})"
    if cause.kind == "run":
        return _OUTCOMES.get(cause.name, "the logs of these nodes at that time")
    kind, test = split(cause.name)
    of_class = (of for known, of in _TESTS.items() if known == kind)
    return next(of_class, f"what {test or 'the test'} says when it is run on one of these nodes")


def _sentences(fault: Fault, period: Period) -> Iterator[str]:
    noun = "pilot" if fault.cause.kind == "validation" else "run"
    since, last = short(fault.since_us), short(fault.last_us)
    yield (
        f"How often: {fault.failed} of {counted(fault.begun, noun)} that began there from "
        f"{since} to {last} UTC ({percent(ratio(fault.failed, fault.begun), 0)})."
    )
    at = ", ".join(fault.entries)
    if fault.nodes:
        nodes = ", ".join(
            f"{node} ({failed} of {n})" for node, failed, n in fault.nodes[:MOST_NODES]
        )
        left = len(fault.nodes) - MOST_NODES
        yield f"Where: {nodes}{f', and {left} more' if left > 0 else ''}; entry {at}."
    else:
        yield f"Where: entry {at}; no node stands out."
    yield (
        f"Since when: {since}; before, {counted(fault.before, noun)} were well there."
        if fault.before
        else f"Since when: {since} or before: nothing was well there from "
        f"{short(period.since_us)} on."
    )
    yield (
        f"Gone: after {last} {counted(fault.after, noun)} were well there."
        if fault.gone
        else f"It goes on: the last was at {last}, and {fault.after} were well since."
    )
    yield from map(_outage, fault.outages)
    hit = f"{counted(len(fault.groups), 'frontend group')}"
    if fault.users:
        hit = f"jobs of {counted(fault.users, 'user')}, {hit}"
    spent = f"{hours(fault.micros)} canonical hours of cores"
    if fault.unsettled == fault.failed:
        spent = "the hours are not settled yet"
    elif fault.unsettled:
        spent += f", and those of {counted(fault.unsettled, noun)} that are not settled yet"
    yield f"How much: {hit}; {spent}."
    yield _control(fault, noun)
    yield f"What to look at: {_look(fault.cause)}."


def _outage(outage: Outage) -> str:
    """Return when a server was away, for whom, and what is known of the time around that."""
    before, after = "", "none in the half hour after"
    if outage.up_before_us:
        before = f" (the last before: {short(outage.up_before_us)})"
    if outage.up_after_us:
        after = f"the next: {short(outage.up_after_us)}"
    return (
        f"The server: no file arrived from {short(outage.first_us)} to {short(outage.last_us)} UTC"
        f"{before}, at {counted(outage.sites, 'site')} where {counted(outage.runs, 'run')} tried; "
        f"{after}."
    )


def _control(fault: Fault, noun: str) -> str:
    there = fault.elsewhere
    same = "pilots of the same groups" if noun == "pilot" else "the same jobs' runs"
    if not there.begun:
        return (
            f"Elsewhere: {same} began nowhere else in that time, so whose fault it is is not known."
        )
    share = percent(ratio(there.failed, there.begun), 1)
    said = (
        f"Elsewhere: of {same}, {there.failed} of {there.begun} failed so at "
        f"{counted(there.sites, 'other site')} in that time ({share})."
    )
    return f"{said} So it is not this site's fault alone." if fault.is_elsewhere else said


def _json(fault: Fault) -> dict[str, Any]:
    there = fault.elsewhere
    return {
        "kind": fault.cause.kind,
        "cause": fault.cause.name,
        "entries": list(fault.entries),
        "nodes": [{"node": node, "failed": n, "begun": of} for node, n, of in fault.nodes],
        **both("since", fault.since_us),
        **both("last", fault.last_us),
        "begin_seen": fault.before > 0,
        "gone": fault.gone,
        "well_before": fault.before,
        "well_since": fault.after,
        "failed": fault.failed,
        "begun": fault.begun,
        "users": fault.users,
        "groups": len(fault.groups),
        "canonical_seconds": None if fault.unsettled == fault.failed else seconds(fault.micros),
        "not_settled": fault.unsettled,
        "elsewhere": {"failed": there.failed, "begun": there.begun, "sites": there.sites},
        "not_this_sites": fault.is_elsewhere,
        "server_outages": list(map(outage_json, fault.outages)),
    }
