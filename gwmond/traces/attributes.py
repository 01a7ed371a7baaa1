"""Every attribute of spans, events and links: its name, where it is, what it says.

The table of docs/traces.md is this list (a test compares).  Names of OpenTelemetry's conventions
(cicd, error, host, process) are used where there are any, ``htcondor``, ``gwms`` and ``gwmond``
else.  Nothing else is ever in a span: no environment, no arguments, no claim.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from gwmond.model.pilot_life import BADPUT, Outcome
from gwmond.traces.ids import SpanName
from gwmond.traces.spans import Attributes, Value

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
    """Return those that are known, sorted by name; raises ``KeyError`` for one not in the list."""
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
    known = outcome is not None and result_of(outcome) not in {None, "success"}
    return outcome.label if known and outcome is not None else ""
