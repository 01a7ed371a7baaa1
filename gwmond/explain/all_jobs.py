"""Why idle jobs are not running, all of them: by reason, in canonical units.

Units: canonical units of CPU, a job counted by the least that it takes of a pilot where it could
run (``sites.need``), else by its own size.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from gwmond.explain.answers import answers
from gwmond.explain.document import ENTRY_COLUMNS
from gwmond.explain.evidence import Proof
from gwmond.explain.reasons import Explanation, Mover, Tier
from gwmond.explain.situation import Situation
from gwmond.model.facts import DemandGroup, EntryKey, Size
from gwmond.reports.render.document import Document, Paragraph, Part
from gwmond.reports.render.formats import counted, number, words
from gwmond.reports.render.table import Column, table
from gwmond.reports.sites.sites import SiteRow
from gwmond.sites.need import need_at, own_need


class ReasonSum(NamedTuple):
    """One reason, how many idle jobs it holds for, and the words of the largest group of them.

    ``example`` is empty where it is withheld.
    """

    tier: Tier
    reason: str
    mover: Mover
    proof: Proof
    jobs: int
    units: float
    groups: int
    largest: int
    example: str
    who: str


def causes(
    situations: Iterable[tuple[DemandGroup, Situation]], memory_per_unit_mib: int
) -> list[ReasonSum]:
    """Return the first reason of each group of idle jobs, added up; the most units first.

    Of groups that are alike in all but the words of their reason it is found once.
    """
    sums: dict[tuple[str, Mover], ReasonSum] = {}
    by_kind: dict[Hashable, tuple[Explanation, frozenset[Size]]] = {}
    every = list(situations)  # so that no identity is used twice
    for group, here in every:
        if (alike := by_kind.get(key := _alike(here))) is None:
            sizes = frozenset(place.whole for place in here.fitting)
            alike = by_kind[key] = answers(here)[0], sizes
        answer, sizes = alike
        before = sums.get((answer.name, answer.mover.of_others))
        if before is not None and group.jobs > before.largest:
            answer = answers(here)[0]
        cause = _cause(group, answer, sizes, memory_per_unit_mib)
        sums[cause.reason, cause.mover] = cause if before is None else _plus(before, cause)
    return sorted(sums.values(), key=lambda cause: (-cause.units, cause.reason))


def _alike(here: Situation) -> Hashable:
    """Return all on which the name of a reason rests; places are alike if they are the same."""
    job = here.job
    limits = job.schedd, job.accounting_group, job.size, job.rejection
    return id(here.places), here.untried, job.walltime_s, *limits


def _cause(
    group: DemandGroup, answer: Explanation, sizes: frozenset[Size], memory_per_unit_mib: int
) -> ReasonSum:
    needs = [need_at(group.size, size, memory_per_unit_mib) for size in sizes]
    cpus = [need.cpu for need in needs if need is not None]
    units = group.jobs * min(cpus, default=own_need(group.size, memory_per_unit_mib).cpu)
    return ReasonSum(
        tier=answer.tier,
        reason=answer.name,
        mover=answer.mover.of_others,
        proof=answer.proof,
        jobs=group.jobs,
        units=units,
        groups=1,
        largest=group.jobs,
        example=answer.text,
        who=group.accounting_group,
    )


def _plus(first: ReasonSum, second: ReasonSum) -> ReasonSum:
    larger = max(first, second, key=lambda cause: cause.largest)
    worst = max(first.proof, second.proof, key=list(Proof).index)
    return larger._replace(
        proof=worst,
        jobs=first.jobs + second.jobs,
        units=first.units + second.units,
        groups=first.groups + second.groups,
    )


_COUNTED = (
    "A group is of jobs that matching cannot tell apart; it counts with the first reason that "
    "holds for it."
)
NONE_KNOWN = "Whether a job is idle is not known."
_COLUMNS: tuple[Column[ReasonSum], ...] = (
    Column("reason", lambda cause: words(cause.reason), name=True),
    Column("whose move", lambda cause: cause.mover.value, text=True, wrap=12),
    Column("jobs", lambda cause: str(cause.jobs)),
    Column("units", lambda cause: number(cause.units)),
    Column("groups", lambda cause: str(cause.groups)),
    Column("of the largest group", lambda cause: cause.example, text=True, wrap=30),
    Column("accounting group", lambda cause: cause.who, text=True, rank=1),
    Column("rests on", lambda cause: cause.proof.value, text=True, rank=1),
)


def document(
    sums: list[ReasonSum],
    missing: tuple[str, ...],
    there: Mapping[EntryKey, SiteRow],
    left_out: int = 0,
) -> Document:
    """Return the reasons of all idle jobs, in all forms; ``there`` are the entries asked for.

    ``left_out``: idle jobs of groups that are not known, as there are too many.
    """

    def parts() -> Iterator[Part]:
        jobs = sum(cause.jobs for cause in sums)
        units = number(sum(cause.units for cause in sums))
        yield Paragraph(
            f"{counted(jobs, 'idle job')} of {units} canonical units, by reason"
            if sums
            else NONE_KNOWN
            if missing
            else "No job is idle."
        )
        if sums:
            yield Paragraph(_COUNTED, "soft")
        if there:
            yield table("They do not run there:", ENTRY_COLUMNS, sorted(there.items()))
        if sums:
            yield table("", _COLUMNS, sums)
        if left_out:
            more = (
                f"{counted(left_out, 'more idle job')}, of small groups beyond [demand] max_groups"
            )
            yield Paragraph(f"Not matched: {more}.", "caution")
        for source in missing:
            yield Paragraph(f"Not known: {source} could not be read.", "caution")

    def record() -> dict[str, Any]:
        return {
            "reasons": [
                cause._asdict()
                | {
                    "tier": int(cause.tier),
                    "mover": cause.mover.value,
                    "proof": cause.proof.value,
                    "example": cause.example or None,
                }
                for cause in sums
            ],
            "entries": [row._asdict() for _, row in sorted(there.items())],
            "jobs_left_out": left_out,
            "not_read": list(missing),
        }

    return Document(parts, record)
