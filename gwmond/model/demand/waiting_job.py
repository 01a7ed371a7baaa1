"""One job of a queue, and where it could run: what an explanation starts from.

Units: times are epoch seconds, memory is MiB.  None is not known, and never zero.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, TypeAlias

from gwmond.model.demand.order import Negotiator
from gwmond.model.facts import EntryKey, Evidence, Size

OFFERED = re.compile(
    r"has_?docker|has_?container|has_?singularity|has_?apptainer|hassandbox|plugin|hasfiletransfer"
    r"|hasencrypt|hasvm|hasjava|hasmpi|hasjobdeferral",
    re.IGNORECASE,
)
"""A clause by which a job needs what pilots offer: without it the job would start, and fail."""
TIMED = re.compile(r"\btime\s*\(|\b(my)?currenttime\b|todie|toretire", re.IGNORECASE)
"""A clause that holds for some time only."""
ChangeKind: TypeAlias = Literal["quotes", "value", "name", "request", "gpus", "number", "clause"]


class Change(NamedTuple):
    """A new value of a job's attribute, an expression, which mends a clause, its own or START's.

    - ``quotes``: a number that was a string.  ``value``: a word that is spelt as pilots have it, or
      START.  ``name``: another attribute of pilots.
    - ``request``: of cores, memory, disk, GPUs or time.  ``number``: any other.
    - ``gpus``: other properties of GPUs.  ``clause``: Requirements without that clause.

    ``was``, ``now``: what is replaced by what; empty: nothing.
    """

    name: str
    value: str
    kind: ChangeKind
    clause: str
    was: str
    now: str


class ConcurrencyLimit(NamedTuple):
    """A limit that a job needs, how much of it, and how much claims use that are seen."""

    name: str
    asked: float
    used: float


class Edit(NamedTuple):
    """Changes with which a job matches kinds of pilots (entry, group); it was tried.

    Empty ones, or slots that are free now.  ``sure``: a pilot of these was seen.  ``free``: slots
    that would take the job now.
    """

    changes: tuple[Change, ...]
    opened: tuple[tuple[EntryKey, str], ...]
    sure: bool
    free: int = 0


class WaitingJob(NamedTuple):
    """A job as its schedd has it.

    - ``number`` is ``cluster.proc``; ``status`` is JobStatus, ``universe`` JobUniverse.
    - ``submitter`` is its user's name for the negotiator: ``group.user@domain`` of an accounting
      group; empty of the jobs of several users.  ``priority`` is JobPrio.
    - ``submitted`` is QDate, ``since`` when it came into its status (EnteredCurrentStatus).
    - ``rejection``: why the negotiator found no slot for it, or for a job that it cannot tell
      apart (LastRejMatchReason), and when; a schedd that was restarted has forgotten.
    - ``deferred_until``: DeferralTime; it runs no earlier.
    - ``clauses``: its Requirements, divided at ``&&``.
    - ``identity``: that of the group of idle jobs to which it belongs (see ``DemandGroup``).
    - ``words``: strings of its ad to which Requirements or START refer, by name; ``lacks``: to
      what START refers, and the job does not have.
    - ``vacated``, ``matched``: when its last run ended (LastVacateTime), and when the negotiator
      last gave it a slot.
    - ``walltime_by``: the attribute that says ``walltime_s``, in units of ``walltime_unit_s``.
    - ``has_host``: a slot has it (RemoteHost).
    - ``limits``: what it needs of concurrency limits.
    - ``edits``: changes with which it would match pilots, if none matches; the smallest first.
    """

    number: str
    schedd: str
    global_id: str
    user: str
    accounting_group: str
    status: int
    universe: int
    submitted: int | None
    since: int | None
    runs: int
    size: Size
    walltime_s: int | None
    hold_reason: str
    hold_code: int | None
    rejection: str
    rejected: int | None
    deferred_until: int | None
    clauses: tuple[str, ...]
    words: tuple[tuple[str, str], ...]
    submitter: str = ""
    priority: int = 0
    identity: str = ""
    lacks: tuple[str, ...] = ()
    vacated: int | None = None
    matched: int | None = None
    walltime_by: str = ""
    walltime_unit_s: int = 1
    has_host: bool = True
    limits: tuple[ConcurrencyLimit, ...] = ()
    edits: tuple[Edit, ...] = ()

    @property
    def is_matched(self) -> bool:
        """Whether a negotiator gives it slots: jobs of the vanilla and parallel universes.

        Container and docker jobs are vanilla ones.
        """
        return self.universe in (5, 11)


UNKNOWN_JOB = WaitingJob(
    *("", "", "", "", "", 1, 5, None, None, 0, Size(0, 0), None, "", None, "", None, None, (), ())
)
"""An idle job of which nothing else is known."""


class JobPlace(NamedTuple):
    """Slots, or an empty pilot of an entry and a frontend group, that are alike for one job.

    - ``kind``: ``slot`` is a slot as it is now, ``pilot`` an empty pilot.
    - ``whole`` is the pilot's size, ``size`` what is free of it.
    - ``takes_jobs``: the slot is unclaimed and not drained; true of an empty pilot.  ``closed``:
      it is drained, and will take no more.
    - ``blocked``: indexes of the job's clauses that it does not fulfil; of a drained slot those
      that it would not if no job ran on it.
    - ``refusals``: clauses of its START, and of its other Requirements, that refuse the job.
    - ``remaining_s``: for how long it will run jobs, None if that is not known.
    - ``number`` of slots; 1 for an empty pilot.
    - ``asks``: to what its START refers in a job, in lower case; known of empty pilots.
    - ``only_full``: a slot that does not match would, if no job ran on it.
    - ``untold``: indexes of the job's clauses that count as met, as what they need is not known.
    """

    kind: Literal["slot", "pilot"]
    entry: EntryKey
    group: str
    size: Size
    whole: Size
    takes_jobs: bool
    blocked: tuple[int, ...]
    refusals: tuple[str, ...]
    evidence: Evidence
    remaining_s: int | None
    number: int
    only_full: bool = False
    closed: bool = False
    asks: tuple[str, ...] = ()
    untold: tuple[int, ...] = ()

    @property
    def matches(self) -> bool:
        """Whether the job and the slot, or the pilot, accept each other."""
        return not self.blocked and not self.refusals


class Examined(NamedTuple):
    """A job, and what was found of each place."""

    job: WaitingJob
    places: tuple[JobPlace, ...]


_HIDDEN = "a clause that is not shown here"


class GroupOffer(NamedTuple):
    """One group of idle jobs at a place.

    - ``runs``: it could run on an empty pilot there.
    - ``clauses``: its Requirements, divided at ``&&``.
    - ``places``: empty pilots there, and the slots of one pilot as they are now; none where the
      group was not examined clause by clause.
    - ``elsewhere``: other entries with pilots, or pilots known, on which it could run.
    - ``words``: what the negotiator said last (LastRejMatchReason), and of how many of its jobs.
    """

    group: int
    runs: bool
    clauses: tuple[str, ...]
    places: tuple[JobPlace, ...]
    elsewhere: tuple[EntryKey, ...]
    words: tuple[tuple[str, int], ...] = ()


class PlaceOffers(NamedTuple):
    """All groups at a place; ``negotiators``: None where they were not asked for."""

    groups: tuple[GroupOffer, ...]
    negotiators: tuple[Negotiator, ...] | None

    @property
    def without_expressions(self) -> PlaceOffers:
        """The same without clauses of Requirements and START and words, which may name users."""

        def hidden(place: JobPlace) -> JobPlace:
            return place._replace(refusals=(_HIDDEN,) * len(place.refusals))

        groups = (
            group._replace(
                clauses=(_HIDDEN,) * len(group.clauses),
                places=tuple(map(hidden, group.places)),
                words=(),
            )
            for group in self.groups
        )
        return self._replace(groups=tuple(groups))
