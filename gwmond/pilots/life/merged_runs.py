"""Facts of one run from several sources become one run.

Units: times are microseconds since the epoch, memory is MiB.

Source of the rules: design page, section 3 (evidence); facts page on HTCondor (table of histories:
which attribute of which history is about which run).  The best source that has a field decides
it; what another says beyond the tolerance is a ``RunContradiction``, a value that is counted.

Invariants: the result does not depend on the order of the facts, and giving one twice changes
nothing; no field has a value that no fact gave it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

from gwmond.model.facts import Evidence, Size
from gwmond.model.pilot_life import RunKey
from gwmond.model.runs.condor_codes import Meaning, meaning
from gwmond.model.runs.endings import Ending
from gwmond.model.runs.run_facts import RunFact, Source
from gwmond.pilots.life.same_run import TOLERANCE_US, gather


class Field(NamedTuple):
    """Values that are taken together from one record, and whom to believe."""

    names: tuple[str, ...]
    order: tuple[Source, ...]

    @property
    def is_code(self) -> bool:
        """Whether it is a code with its subcode: 0 is no code, a subcode alone is nothing."""
        return self.names[-1].endswith("_subcode")


_S = Source

_LAST = (
    *(_S.STARTER_LOG, _S.CENTRAL_LOG, _S.LIVE_SLOT),
    *(_S.INFERRED, _S.SUMMARY, _S.TRANSFERS),
)

_STARTD_FIRST = (_S.STARTD_HISTORY, _S.EPOCH_HISTORY, _S.SCHEDD_HISTORY, *_LAST)

_EPOCH_FIRST = (_S.EPOCH_HISTORY, _S.SCHEDD_HISTORY, _S.STARTD_HISTORY, *_LAST)

_SCHEDD_FIRST = (_S.SCHEDD_HISTORY, _S.EPOCH_HISTORY, _S.STARTD_HISTORY, *_LAST)

FIELDS: tuple[Field, ...] = (
    Field(("pilot",), _STARTD_FIRST),
    Field(("start_us",), _STARTD_FIRST),
    Field(("end_us",), _STARTD_FIRST),  # the starter's end, not when the shadow wrote it down
    Field(("size",), _STARTD_FIRST),
    Field(("user",), _EPOCH_FIRST),
    Field(("job_group",), _EPOCH_FIRST),
    Field(("completed",), _SCHEDD_FIRST),  # the startd calls any end completed
    Field(("removed",), _SCHEDD_FIRST),
    Field(("exit_code", "exit_signal"), _STARTD_FIRST),
    # A starter of 24.0 says nothing where HTCondor ended the program, and a shadow says so.
    Field(("own_accord",), _EPOCH_FIRST),
    Field(("retried",), _EPOCH_FIRST),
    # The startd knows only that the access point deactivated the claim.
    Field(("hold_code", "hold_subcode"), _EPOCH_FIRST),
    Field(("vacate_code", "vacate_subcode"), _EPOCH_FIRST),
    Field(("by_schedd",), _EPOCH_FIRST),
    Field(("failed_at",), _EPOCH_FIRST),
    Field(("began",), _STARTD_FIRST),
    Field(("early",), _STARTD_FIRST),
    Field(("sending_output",), _STARTD_FIRST),
    Field(("starter_status",), _STARTD_FIRST),
    Field(("draining",), _STARTD_FIRST),
    Field(("preempted",), _STARTD_FIRST),
    Field(("disconnected",), _EPOCH_FIRST),
    Field(("startd_ended",), _STARTD_FIRST),
    Field(("superseded",), _EPOCH_FIRST),
    Field(("unsent",), _STARTD_FIRST),
    Field(("container_failed",), _STARTD_FIRST),
    # The plugin's own word names a cache, and the reason of a hold only a URL.
    Field(("failed_transfer",), (_S.TRANSFERS, *_EPOCH_FIRST[:-1])),
)
"""All fields of a fact and of its ending, but for ``over``, which holds if any source says so."""

_PROGRAM = Field(("executing_us",), _STARTD_FIRST)
"""Not one of ``FIELDS``: no time is posted by it."""

_WEAK = frozenset(_LAST)
_ALONE = {source: (source,) for source in Source}


class RunContradiction(NamedTuple):
    """Two sources differ on the same run; ``kept`` is believed."""

    key: RunKey
    field: str
    kept: Source
    other: Source


class Merged(NamedTuple):
    """One run, from all its facts."""

    key: RunKey
    pilot: str | None
    start_us: int | None
    end_us: int | None
    size: Size | None
    user: str | None
    job_group: str | None
    ending: Ending
    sources: tuple[Source, ...]
    contradictions: tuple[RunContradiction, ...]

    @property
    def evidence(self) -> Evidence:
        """A record of its end is measured; a claim that is gone, or a log without sizes, is not."""
        return "estimated" if set(self.sources) <= _WEAK else "measured"


def merge(facts: Iterable[RunFact]) -> list[Merged]:
    """Return the runs that the facts are about, sorted by key."""
    return [merged for merged, _ in merge_each(facts)]


def merge_each(facts: Iterable[RunFact]) -> list[tuple[Merged, tuple[RunFact, ...]]]:
    """Return the same, each with the facts that it was made of."""
    every = tuple(facts)
    if len(every) == 1 and (number := every[0].shadow_start) is not None:
        return [(_alone(RunKey(every[0].job, number), every[0]), every)]
    return [(merge_run(key, facts), tuple(facts)) for key, facts in sorted(gather(every).items())]


def merge_run(key: RunKey, facts: Sequence[RunFact]) -> Merged:
    """Return the run of this key, from all its facts."""
    if len(facts) == 1:
        return _alone(key, facts[0])
    plain: dict[str, Any] = {}
    ending: dict[str, Any] = {"over": any(fact.ending.over for fact in facts)}
    contradictions: set[RunContradiction] = set()
    rows = [(fact, (*_OWN_VALUES(fact), *_ENDING_VALUES(fact.ending))) for fact in facts]
    end = 0
    for field in FIELDS:
        begin, end = end, end + len(field.names)
        candidates = [
            (fact, values)
            for fact, row in rows
            if (values := row[begin:end]) not in _NOTHING and (values[0] or not field.is_code)
        ]
        if not candidates:
            continue
        best, kept = _best(field, _of_its_own_accord(field, candidates))
        into = ending if field.names[0] in Ending._fields else plain
        into.update(zip(field.names, kept, strict=True))
        for fact, values in candidates:
            if values == kept or fact.source in {best.source, _S.INFERRED}:
                continue
            if _differ(field, kept, values):
                contradictions.add(RunContradiction(key, field.names[0], best.source, fact.source))
    if ending.get("unsent") and any(tells_exit(fact) for fact in facts):
        ending["unsent"] = None
    return Merged(
        key=key,
        **{**dict.fromkeys(_PLAIN), **plain},
        ending=Ending(**ending),
        sources=tuple(sorted({fact.source for fact in facts})),
        contradictions=tuple(sorted(contradictions)),
    )


def tells_exit(fact: RunFact) -> bool:
    """Return whether a history has how the program exited: then that was not lost after all."""
    exited = fact.ending.exit_code is not None or fact.ending.exit_signal is not None
    return fact.source not in _WEAK and (exited or fact.ending.completed is True)


def executing(facts: Iterable[RunFact]) -> int | None:
    """Return when the program of a run began, by its facts; None if no fact has it."""
    candidates = [(fact, (fact.executing_us,)) for fact in facts if fact.executing_us is not None]
    return _best(_PROGRAM, candidates)[0].executing_us if candidates else None


def _alone(key: RunKey, fact: RunFact) -> Merged:
    """Return the same for a single fact, which most runs have."""
    ending = fact.ending
    if not ending.hold_code and (ending.hold_code, ending.hold_subcode) != (None, None):
        ending = ending._replace(hold_code=None, hold_subcode=None)
    if not ending.vacate_code and (ending.vacate_code, ending.vacate_subcode) != (None, None):
        ending = ending._replace(vacate_code=None, vacate_subcode=None)
    return Merged(
        key=key,
        pilot=fact.pilot,
        start_us=fact.start_us,
        end_us=fact.end_us,
        size=fact.size,
        user=fact.user,
        job_group=fact.job_group,
        ending=ending,
        sources=_ALONE[fact.source],
        contradictions=(),
    )


_NAMES = tuple(name for field in FIELDS for name in field.names)

_PLAIN = tuple(name for name in _NAMES if name not in Ending._fields)

_OWN_VALUES = attrgetter(*_PLAIN)

_ENDING_VALUES = attrgetter(*_NAMES[len(_PLAIN) :])

_NOTHING = ((None,), (None, None))

_Told: TypeAlias = tuple[RunFact, tuple[Any, ...]]
"""A fact, and the values of one field that it has."""


def _best(field: Field, candidates: list[_Told]) -> _Told:
    """Return the best of what facts have; of what is equally good the first by its text."""
    if len(candidates) == 1:
        return candidates[0]
    ranks = [_rank(field, *told) for told in candidates]
    least = min(ranks)
    equal = [told for told, rank in zip(candidates, ranks, strict=True) if rank == least]
    return equal[0] if len(equal) == 1 else min(equal, key=lambda told: repr(told[1]))


def _of_its_own_accord(field: Field, candidates: list[_Told]) -> list[_Told]:
    """Leave out how a program was killed, if a record says that it had ended itself.

    Where it ends while its claim is given up, the startd says the one, and the shadow the other:
    it is the shadow that the job's history goes by.
    """
    if field.names[0] != "exit_code" or not any(fact.ending.own_accord for fact, _ in candidates):
        return candidates
    return [told for told in candidates if told[0].ending.own_accord is not False]


def _rank(field: Field, fact: RunFact, values: tuple[Any, ...]) -> tuple[bool, int, int]:
    """Sort the best first."""
    weak = field.names[0] == "vacate_code" and meaning(values[0]) is Meaning.WEAK
    return weak, field.order.index(fact.source), -fact.written_us


def _differ(field: Field, kept: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Return whether two sources contradict each other beyond what is to be expected."""
    name = field.names[0]
    if name.endswith("_us"):
        return bool(abs(kept[0] - other[0]) > TOLERANCE_US)
    if name == "vacate_code" and meaning(other[0]) is Meaning.WEAK:
        return False
    if name == "failed_transfer":
        return False  # one record names the server better than another
    if field.is_code:
        return bool(kept[0] != other[0])
    return kept != other
