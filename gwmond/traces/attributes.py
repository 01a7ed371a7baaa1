"""Every attribute of spans, events and links: its name, where it is, what it says.

The table of docs/traces.md is this list (a test compares).  Names of OpenTelemetry's conventions
(cicd, error, host, process) are used where there are any, ``htcondor``, ``gwms`` and ``gwmond``
else.  Nothing else is ever in a span: no environment, no arguments, no claim.

Making a span: its times (whole microseconds since the epoch) are put in order, so that it never
ends before it begins, and never sticks out of its parent; what was moved by more than ``SLACK_US``
is marked.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from gwmond.model.pilot_life import BADPUT, Interval, Outcome
from gwmond.model.pilots.stored_pilots import PilotRow, RunRow
from gwmond.model.times import SECOND_US
from gwmond.traces.spans import Attributes, Span, SpanContext, SpanName, Value

CHARACTERS = 1024
"""Longer texts are cut: some backends take no longer ones."""

SCHEMA_URL = "https://opentelemetry.io/schemas/1.44.0"

_K = SpanName
_STAGES = (_K.STAGE_IN, _K.EXECUTE, _K.STAGE_OUT)
_RUN = (_K.RUN, *_STAGES)
_OF_JOB = (_K.JOB, _K.QUEUE, *_RUN)
_PARTS = (
    *(_K.REQUESTED, _K.PENDING, _K.VALIDATION, _K.TEST),
    *(_K.STARTUP, _K.IDLE, _K.RETIREMENT),
)
_OF_PILOT = (_K.PILOT, *_PARTS)
_PLACE = (*_RUN, *_OF_PILOT)
_ALL = tuple(SpanName)


class Attribute(NamedTuple):
    """``on``: the kinds of spans that may have it; ``link`` and ``event``: whether those may."""

    name: str
    on: tuple[SpanName, ...]
    text: str
    link: bool = False
    event: bool = False


# fmt: off
ATTRIBUTES: tuple[Attribute, ...] = (
    Attribute("cicd.pipeline.task.run.result", (_K.JOB, *_RUN, _K.VALIDATION, _K.TEST),
              "`success`; `failure`: the program's own exit; `error`: the pilot, the site or "
              "HTCondor; `cancellation`: a person or a policy; absent: not known"),
    Attribute("cicd.worker.id", _PLACE, "the pilot: its factory's job, else its startd"),
    Attribute("cicd.worker.name", _PLACE, "the name of the pilot's startd"),
    Attribute("cicd.worker.state", _PARTS, "`available`: idle; `offline`: not yet, or no more, "
              "to be had; absent elsewhere"),
    Attribute("error.type", (_K.JOB, *_RUN, _K.PILOT, _K.VALIDATION, _K.TEST),
              "of an error only: the outcome, or the class of a failed validation"),
    Attribute("gwmond.category", (*_RUN, _K.PILOT), "where the time goes (docs/pilots.md)",
              link=True),
    Attribute("gwmond.clock_skew", _ALL, "true: a time was outside of its parent's, or before its "
              "begin, by more than 5 s; it was moved"),
    Attribute("gwmond.evidence", (*_RUN, _K.PILOT), "`measured`, or `estimated`: a rule stands "
              "for a missing fact"),
    Attribute("gwmond.left_out", (_K.PILOT, _K.VALIDATION), "how many idle stretches, or tests, "
              "have no span: only the longest 200, or 16, have one"),
    Attribute("gwmond.outcome", (_K.JOB, *_RUN), "how the run ended, of a job the last "
              "(docs/pilots.md)", link=True, event=True),
    Attribute("gwmond.run.seconds", (), "how long the run was", link=True),
    Attribute("gwmond.runs", (_K.JOB, _K.PILOT), "how many runs there were"),
    Attribute("gwmond.settled", _ALL, "false: shown while it may still change; never exported"),
    Attribute("gwmond.wait.cause", (), "what kept jobs like it there (docs/explain.md); absent: "
              "not known", event=True),
    Attribute("gwmond.wait.reason", (), "how far jobs like it had come: `nowhere`, `policy`, "
              "`no_pilot`, `on_their_way`, `pilots_there`, `unexplained`, `unknown`; `several`: "
              "they differed",
              event=True),
    Attribute("gwmond.wait.site", (), "where they could run: a site, `several`, or `none`",
              event=True),
    Attribute("gwms.entry", _PLACE, "the entry"),
    Attribute("gwms.frontend.group", _PLACE, "for which the pilot runs: `frontend.group`"),
    Attribute("gwms.site", _PLACE, "the site"),
    Attribute("gwms.validation.test", (_K.VALIDATION, _K.TEST), "the test; of `validation` "
              "the one that failed"),
    Attribute("host.name", _PLACE, "the pilot's node"),
    Attribute("htcondor.exit.signal", (_K.RUN, _K.EXECUTE), "the signal that ended the program"),
    Attribute("htcondor.hold.code", (_K.RUN, *_STAGES), "why the job was held (HTCondor's "
              "manual, Hold Reason Codes)", event=True),
    Attribute("htcondor.job.id", _OF_JOB, "GlobalJobId", link=True),
    Attribute("htcondor.job.procs", (_K.JOB,), "how many jobs were submitted with it, itself "
              "included"),
    Attribute("htcondor.job.status", (_K.JOB,), "how it left the queue: `completed` or `removed`"),
    Attribute("htcondor.job.user", (_K.JOB, _K.QUEUE, _K.RUN), "whose job it is"),
    Attribute("htcondor.run.number", (_K.QUEUE, *_RUN), "which run of the job, from 0 "
              "(NumShadowStarts - 1); of a `queue` the run that it waits for", link=True),
    Attribute("htcondor.slot.cores", (_K.RUN, _K.PILOT), "cores of the run or the pilot"),
    Attribute("htcondor.slot.gpus", (_K.RUN, _K.PILOT), "GPUs of the same"),
    Attribute("htcondor.slot.memory", (_K.RUN, _K.PILOT), "MiB of the same"),
    Attribute("htcondor.transfer.bytes", (_K.STAGE_IN, _K.STAGE_OUT), "bytes that were moved"),
    Attribute("htcondor.transfer.queue_seconds", (_K.STAGE_IN, _K.STAGE_OUT), "how long the "
              "transfer waited for its turn at the access point"),
    Attribute("htcondor.vacate.code", (_K.RUN, *_STAGES), "why HTCondor ended the run (Vacate "
              "Reason Codes)", event=True),
    Attribute("process.exit.code", (_K.RUN, _K.EXECUTE), "the program's exit code"),
)
# fmt: on

_NAMES = frozenset(attribute.name for attribute in ATTRIBUTES)


def attributes(values: Mapping[str, Value | None]) -> Attributes:
    """Return the known values, sorted by name; raises ``KeyError`` for a name not in the list."""
    return tuple(
        [
            (name, value[:CHARACTERS] if type(value) is str and len(value) > CHARACTERS else value)
            for name in _sorted(tuple(values))
            if (value := values[name]) or (value is not None and value != "")
        ]
    )


@lru_cache(1024)
def _sorted(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return names in their order: there are few sets of names."""
    if unknown := set(names) - _NAMES:
        raise KeyError(*sorted(unknown))
    return tuple(sorted(names))


_CANCELLED = frozenset(
    {
        *("removed", "held_by_user", "held_by_policy", "vacated_by_user", "vacated_by_admin"),
        *("vacated_by_policy", "preempted"),
    }
)
_FAILED = frozenset(
    {"exit_nonzero", "exit_signal", "exit_retried", "held_for_mistake", "held_for_limit"}
)
_UNKNOWN = frozenset({"exit_unknown", "no_record", "unknown"})


def result_of(outcome: Outcome | None) -> str | None:
    """Return the word of ``cicd.pipeline.task.run.result``; None if it is not known."""
    if outcome is None or outcome.label in _UNKNOWN:
        return None
    if outcome.label == "exit_zero":
        return "success"
    blamed = outcome.category in BADPUT
    if not blamed and outcome.label in _FAILED:
        return "failure"
    return "cancellation" if not blamed and outcome.label in _CANCELLED else "error"


def error_of(outcome: Outcome | None) -> str:
    """Return the ``error.type`` of a run, empty where it succeeded or that is not known."""
    failed = outcome is not None and result_of(outcome) not in {None, "success"}
    return outcome.label if failed and outcome is not None else ""


SLACK_US = 5 * SECOND_US
"""Times of one thing by two hosts, in whole seconds, differ by less."""

_FIRST_US, _LAST_US = 10**9 * SECOND_US, 4 * 10**9 * SECOND_US  # 2001 to 2096


def sane(time_us: int | None) -> int | None:
    """Return a time; None for one that says nothing (0, -1), or is not of 2001 to 2096."""
    return time_us if time_us is not None and _FIRST_US <= time_us <= _LAST_US else None


class SpanTimes(NamedTuple):
    """Begin and end, in order; ``moved``: by more than the slack."""

    start_us: int
    end_us: int
    moved: bool = False


def within(start_us: int | None, end_us: int | None, parent: Interval) -> SpanTimes | None:
    """Return times put in order and within the parent's; None if there is no begin."""
    start, first, last = sane(start_us), *parent
    if start is None:
        return None
    end = sane(end_us)
    end = last if end is None else end
    began = min(max(start, first), last)
    ended = min(max(end, began), last)
    return SpanTimes(began, ended, max(abs(began - start), abs(ended - end)) > SLACK_US)


def made(
    name: SpanName,
    context: SpanContext,
    parent_id: bytes,
    times: SpanTimes,
    values: Mapping[str, Value | None],
    error: str = "",
    *,
    settled: bool = True,
) -> Span:
    """Return a span of these values; ``error``: its ``error.type``."""
    every = values
    if error or times.moved or not settled:
        every = {
            **values,
            "error.type": error,
            "gwmond.clock_skew": times.moved or None,
            "gwmond.settled": None if settled else False,
        }
    return Span(
        *(context, parent_id, name, times.start_us, times.end_us, attributes(every)), error=error
    )


def place_of(pilot: PilotRow | None) -> dict[str, Value | None]:
    """Return the attributes that say which pilot it is, and where."""
    if pilot is None:
        return {}
    identity = pilot.identity
    return {
        "cicd.worker.id": identity.factory_job or identity.name,
        "cicd.worker.name": identity.name,
        "gwms.entry": identity.key.entry,
        "gwms.frontend.group": identity.group,
        "gwms.site": identity.key.site,
        "host.name": identity.node,
    }


def run_number(run: RunRow) -> int | None:
    """Return which run of the job it is, from 0; None if that is not known."""
    number = run.key.shadow_start
    return None if number is None else number - 1
