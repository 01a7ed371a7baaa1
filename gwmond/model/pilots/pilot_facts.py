"""What each source reports on one pilot: one immutable record, with one field a source.

Units: times are microseconds since the epoch, memory is MiB.  An absent value is ``None`` (a text:
empty) and never zero.

A source replaces its own field whole and reads no other's.  What follows from all of them is
derived (``pilots.life.derive``).  The record is stored beside the pilot as JSON, without what is
not known.  What depends on *when* something was known is a decision, and stored as such.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace as replace  # noqa: PLC0414

from gwmond.model.facts import AD_LIFETIME_S, Size
from gwmond.model.pilot_life import Assumption, Interval, SizeStep, Validation
from gwmond.model.times import SECOND_US

Origin: TypeAlias = Literal["collector", "jobs", "files"]
"""Whether a collector has shown a pilot, or only records of jobs have it, or files do."""

LIFETIME_US = AD_LIFETIME_S * SECOND_US
"""How long a collector keeps an ad that was not renewed, by HTCondor's default."""


GPU_MODEL, INSTITUTION = "gpu_model", "institution"
SHOWN: Mapping[str, str] = {GPU_MODEL: "GPUs_DeviceName", INSTITUTION: "OSG_INSTITUTION_ID"}
"""Attributes of pilots' ads that are only shown: their texts, by what outputs call them.

They are asked for, stored and exported; a ``Datum`` of ``pilots.listing`` lists one.
GPUs_DeviceName is there if all GPUs of the pilot are of one model (condor_gpu_discovery); parts of
a GPU (MIG) have none.  Pilots of the OSPool name the institution whose machine they are on.
"""


class ReportedSize(NamedTuple):
    """What a pilot itself has reported, None where it has not; ``site``: whether its site is known.

    The rest is what its entry's other pilots have (see ``gwmond.pilots.factory.revision``).
    """

    cores: float | None = None
    memory_mib: float | None = None
    gpus: float | None = None
    site: bool = False


class Restart(Struct, frozen=True):
    """A pilot's master has started its startd again; the one before was heard of at ``lost_us``.

    What ran under the startd before was lost with it.
    """

    lost_us: int
    at_us: int


class AdFacts(Struct, frozen=True, omit_defaults=True):
    """The ads of a pilot that registered in a collector.

    - ``last_heard_us``: LastHeardFrom of the latest.
    - ``began_us``: when its startd began, by the first; None if no ad has it.
    - ``sizes``: the size of the machine, and from when on; empty if no ad has any.
    - ``end_source``, ``end_us``: how its ad went, and when it was known last.
    - ``missing_since_us``: when a poll first did not find it.
    - ``shown``: attributes that are only shown (``SHOWN``), with their texts.
    - ``virtual_slots``: names of its slots whose cores are not there, such as ``slot2``.
    - ``senders``: cores of its slot that are not there, for jobs that only send their output.
    """

    last_heard_us: int
    began_us: int | None = None
    sizes: tuple[SizeStep, ...] = ()
    lifetime_us: int = LIFETIME_US
    restarts: tuple[Restart, ...] = ()
    end_source: Literal["", "shutdown", "ad_expired"] = ""
    end_us: int | None = None
    missing_since_us: int | None = None
    shown: tuple[tuple[str, str], ...] = ()
    virtual_slots: tuple[str, ...] = ()
    senders: float = 0.0


class FailedAdFacts(Struct, frozen=True, omit_defaults=True):
    """The ads of a pilot that only advertises that its validation failed.

    - ``first_us``: when the first was sent; ``last_heard_us``: the latest, not after ``die_us``.
    - ``die_us``: when it will end, as it announces (GLIDEIN_ToDie).
    - ``end_us``: when it ended, once that is decided by its ads; None while it waits.
    - ``failure``: the test that failed.
    """

    first_us: int
    last_heard_us: int
    die_us: int | None = None
    failure: str = ""
    lifetime_us: int = LIFETIME_US
    end_us: int | None = None
    missing_since_us: int | None = None


class ValidationTest(NamedTuple):
    """One test of a pilot's validation; ``failure``: its class, empty where it passed."""

    name: str
    start_us: int
    end_us: int
    failure: str = ""


class OutputFacts(Struct, frozen=True, omit_defaults=True):
    """The pilot's own output (see ``PilotOutput``); of several what is known of any.

    - ``first_us``, ``last_us``: the first and the last time that it has.
    - ``ran_jobs``: whether jobs ran; None if it says neither.
    - ``site``: whether it has the site; ``unnamed``: it does not have the frontend's group.
    - ``pid``: of glidein_startup.sh, where it does not have the startd's name.
    - ``cores``, ``memory_mib``: those that are there; ``offered_cores``, ``offered_memory_mib``:
      what its slots have instead, where it was overloaded.
    - ``tests``: tests of its validation, those that failed and the longest; ``more_tests``: how
      many there were besides.
    """

    first_us: int
    last_us: int
    start_us: int | None = None
    end_us: int | None = None
    validation: Validation = Validation.UNKNOWN
    validation_end_us: int | None = None
    registered: bool | None = None
    ran_jobs: bool | None = None
    failure: str = ""
    cores: float | None = None
    memory_mib: float | None = None
    gpus: float | None = None
    site: bool = False
    pid: int | None = None
    unnamed: bool = False
    tests: tuple[ValidationTest, ...] = ()
    more_tests: int = 0
    offered_cores: float | None = None
    offered_memory_mib: float | None = None

    def real(self, size: Size) -> Size:
        """Return what is there of a size that slots have, as far as the pilot was overloaded."""
        if self.offered_cores is not None and self.cores is not None:
            size = size._replace(cores=min(size.cores, self.cores))
        if self.offered_memory_mib is not None and self.memory_mib is not None:
            size = size._replace(memory_mib=min(size.memory_mib, self.memory_mib))
        return size


class QueueFacts(Struct, frozen=True, omit_defaults=True):
    """The pilot's job in its factory's queue, with the times of its line in completed_jobs.

    ``killed``: it ended by a signal.
    """

    started_us: int | None = None
    ended_us: int | None = None
    written_us: int | None = None
    duration_us: int | None = None
    killed: bool = False

    @property
    def life(self) -> Interval | None:
        """From when to when it ran; None if that is not known."""
        start_us, end_us = self.started_us, self.ended_us
        end_us = self.written_us if end_us is None else end_us
        if start_us is None and end_us is not None and self.duration_us is not None:
            start_us = end_us - self.duration_us
        if start_us is None or end_us is None or start_us >= end_us:
            return None
        return start_us, end_us

    def end_after(self, start_us: int) -> int | None:
        """When a pilot ended that is known to have begun then; None if that is not known."""
        if self.ended_us is None and None not in {self.written_us, self.duration_us}:
            return min(start_us + (self.duration_us or 0), self.written_us or 0)
        return self.ended_us


class SummaryFacts(Struct, frozen=True, omit_defaults=True):
    """A summary of what the pilot did: its line in completed_jobs, or its statistics of jobs.

    ``jobs_us``: when jobs ran that only a summary has; their time is an estimate.
    """

    validation: Validation = Validation.UNKNOWN
    validation_s: int | None = None
    jobs_us: Interval | None = None


class RunBounds(Struct, frozen=True, omit_defaults=True):
    """The runs of jobs on the pilot, together.

    - ``first_us``, ``last_us``: of a pilot that only records of jobs have: when it began and ended.
    - ``held``: the most that they held of its resources at once.
    - ``until_us``: the end of the last run that shows that a pilot was there after it was known.
    """

    first_us: int | None = None
    last_us: int | None = None
    held: Size | None = None
    until_us: int | None = None


class DefaultSize(Struct, frozen=True, omit_defaults=True):
    """The size that was given to a pilot whose own is not known, or only in part.

    ``rules``: which parts of it are an estimate.
    """

    size: Size
    rules: tuple[Assumption, ...] = ()


class Decisions(Struct, frozen=True, omit_defaults=True):
    """What was decided for want of facts, at a time when better ones might still have come.

    - ``given_up_us``: its output does not end; nothing more was awaited, and this is its last time.
    - ``quiet``: only records of jobs have it, and no job has run for a while.
    - ``never_seen``: collectors were watched without a gap, and none has shown it.
    """

    size: DefaultSize | None = None
    given_up_us: int | None = None
    quiet: bool = False
    never_seen: bool = False


class PilotFacts(Struct, frozen=True, omit_defaults=True):
    """All that is known of a pilot, by source; ``central_log_us``: the last line on its end."""

    ads: AdFacts | None = None
    failed_ads: FailedAdFacts | None = None
    output: OutputFacts | None = None
    queue: QueueFacts | None = None
    summary: SummaryFacts | None = None
    central_log_us: int | None = None
    runs: RunBounds = RunBounds()
    decisions: Decisions = Decisions()

    def attribute(self, key: str) -> str | None:
        """Return an attribute of its ads that is only shown."""
        return None if self.ads is None else dict(self.ads.shown).get(key)

    def reported(self, origin: Origin) -> ReportedSize:
        """Return what a pilot itself has reported."""
        output, site = self.output, origin == "collector"
        if self.ads is not None and self.ads.sizes:
            size = self.ads.sizes[-1].size
            return ReportedSize(*(size if output is None else output.real(size)), site=True)
        if output is None:
            return ReportedSize(site=site)
        return ReportedSize(output.cores, output.memory_mib, output.gpus, site or output.site)
