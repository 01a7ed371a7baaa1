"""Jobs and empty pilots with one change of which is asked what it would move: their ads."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gwmond.model.demand.what_if import OF_JOBS
from gwmond.sources.htcondor import ads, demand
from gwmond.sources.htcondor.alike import references
from gwmond.sources.htcondor.matching import start_references

if TYPE_CHECKING:
    from collections.abc import Sequence

    import classad2

    from gwmond.model.demand.what_if import WhatIf
    from gwmond.model.facts import DemandGroup, Template

_REQUESTS = {"memory": "RequestMemory", "cores": "RequestCpus"}


class ChangedKinds(NamedTuple):
    """Groups of jobs, and empty pilots, with the change, in the order in which they were given.

    ``ungrouped``: of these attributes of jobs, which a new START names, it is not known which jobs
    have what.
    """

    groups: tuple[DemandGroup, ...]
    templates: tuple[Template, ...]
    ungrouped: tuple[str, ...] = ()


def changed(
    groups: Sequence[DemandGroup],
    templates: Sequence[Template],
    what: WhatIf,
    grouping: demand.JobGrouping,
) -> tuple[ChangedKinds | None, int]:
    """Return groups and templates with a change, and their number; None: START is no expression.

    Of a new START the groups are all that there are: they say then what they do not have of it.
    """
    if what.kind == "start" and ads.expression(what.start) is None:
        return None, 0
    ungrouped: tuple[str, ...] = ()
    pilots = tuple(_pilot(template, what) for template in templates)
    if what.kind == "start":
        names = _asked(pilots)
        known = {name.lower() for name in (*demand.keys(grouping), *grouping.start.grouped)}
        known |= set.intersection(*map(_names, groups)) if groups else set()
        ungrouped = tuple(name for name in names if name not in known)
        start = demand.StartKeys(tuple(n for n in names if n not in ungrouped))
        after = [_told(group, start) for group in groups]
    elif what.kind in OF_JOBS:
        after = [_requesting(group, what) for group in groups]
    else:
        after = list(groups)
    return ChangedKinds(tuple(after), pilots, ungrouped), len(after) + len(pilots)


def _requesting(group: DemandGroup, what: WhatIf) -> DemandGroup:
    """Return jobs that request something else."""
    ad = ads.parse(group.ad)
    ad[_REQUESTS[what.kind]] = what.number
    size, _ = demand.size_of(ad)
    text = str(ad)
    return group._replace(ad=text, signature=ads.signature(text), size=size)


def _names(group: DemandGroup) -> set[str]:
    return {name.lower() for name in ads.parse(group.ad).keys()}  # noqa: SIM118 (as in matching)


def _told(group: DemandGroup, start: demand.StartKeys) -> DemandGroup:
    """Return jobs that say of what START asks that they do not have it; they are the same jobs."""
    ad = ads.parse(group.ad)
    lacks = demand.known(start, _names(group))
    for name in lacks:
        ad[name] = ads.expression("undefined")
    return group._replace(ad=str(ad)) if lacks else group


def _asked(templates: Sequence[Template]) -> list[str]:
    """Return the attributes, in lower case, that the START of empty pilots seeks in a job.

    What one of these pilots has itself is not sought in a job, unless START says TARGET.
    """
    sought = ({n.lower() for n in start_references(ads.parse(t.ad))} for t in templates)
    return sorted(name for name in set.intersection(*sought) if name not in ads.SECRET)


def _pilot(template: Template, what: WhatIf) -> Template:
    """Return an empty pilot of another size, or with another START."""
    ad = ads.parse(template.ad)
    if what.kind == "start":
        _start(ad, what.start)
        text = str(ad)
        return template._replace(ad=text, signature=ads.signature(text), start=what.start, query="")
    size = what.size_of(template.size)
    for name, value in zip(("Cpus", "Memory"), size, strict=False):
        for total in ("", "Total", "TotalSlot"):
            if not total or f"{total}{name}" in ad:
                ad[f"{total}{name}"] = int(value)
    text = str(ad)
    return template._replace(ad=text, signature=ads.signature(text), size=size)


def _start(ad: classad2.ClassAd, text: str) -> None:
    """Set START; Requirements that do not name it are START themselves."""
    expression = ads.expression(text)
    ad["Start"] = expression
    if "start" not in references(ads.expression_text(ad, "Requirements") or "").names:
        ad["Requirements"] = expression
