"""Why groups of idle jobs wait: the causes of each, and their sums."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from gwmond.explain.idle import NOT_ANALYSED, Causes, IdleCause, kind_of
from gwmond.model.demand.order import Limits, ScheddLoad
from gwmond.model.entries.evaluation import IdleJobs, MatchedKind
from gwmond.model.facts import DemandGroup, EntryKey, Rejection, Size
from gwmond.model.poll.snapshot import IdleReason
from tests.build.waiting import QUOTAS, row

A, B = EntryKey("S", "E"), EntryKey("T", "F")


def idle(signature: str, jobs: int, *entries: EntryKey, **more: Any) -> IdleJobs:
    group = DemandGroup("ap", "g", signature, "[]", jobs, Size(1, 2000), None)
    return IdleJobs(group, jobs * 1.5, 0.0, entries)._replace(**more)


def test_parts_of_a_group_add_up_to_it() -> None:
    """Jobs that places take wait for the negotiator or for these pilots, the rest for others."""
    rows = {A: row(state="provisioning_bottleneck", reason="frontend_limit", registered_pilots=0)}
    causes = Causes(rows, {}, pilots=True)
    found = causes.sums(
        [
            idle("a", 8, A, absorbed=0.25, free=True),
            idle("b", 4, A, B, absorbed=1.0),
            idle("c", 2, A),
            idle("d", 1),
        ]
    )
    admin = "the frontend's administrator"
    assert found == (
        IdleReason("no_pilot", "frontend_limit", "S", admin, 8.0, 12.0, 0.0),
        IdleReason("on_their_way", "pilots_pending", "several", "nobody: wait", 4.0, 6.0, 0.0),
        IdleReason("pilots_there", "behind_others", "S", "nobody: wait", 2.0, 3.0, 0.0),
        IdleReason(*NOT_ANALYSED, 1.0, 1.5, 0.0),
    )
    assert causes.main(idle("a", 8, A, absorbed=0.25, free=True)).cause == "frontend_limit"


def test_jobs_that_could_run_nowhere_have_the_cause_of_their_kind() -> None:
    group, cause = idle("d", 1), IdleCause("nowhere", "too_large", "none", "you")
    assert Causes({}, {kind_of(group.group): cause}, pilots=True).main(group) == cause


def test_pilots_that_nobody_has_seen_are_the_last_hope() -> None:
    """A clause that no pilot passes which is seen is the cause, though a pilot there is pending."""
    cause = IdleCause("nowhere", "requirements", "none", "you")
    unseen = idle("d", 1, A, absorbed=1.0, kinds=(MatchedKind(A, "f.g", sure=False),))
    known = {kind_of(unseen.group): cause}
    assert Causes({}, known, pilots=True).main(unseen) == cause
    seen = unseen._replace(kinds=(*unseen.kinds, MatchedKind(B, "f.g", sure=True)))
    assert Causes({}, known, pilots=True).main(seen).cause == "pilots_pending"
    pending = {kind_of(unseen.group): cause._replace(reason="on_their_way")}
    assert Causes({}, pending, pilots=True).main(unseen).cause == "pilots_pending"


def test_without_the_collector_it_is_not_known() -> None:
    """That no pilot is seen proves nothing."""
    assert Causes({}, {}, pilots=False).main(idle("a", 1, A))[:3] == ("unknown", "pilots", "S")
    known = {A: row(state="unknown", reason="young_collector", registered_pilots=None)}
    assert Causes(known, {}, pilots=True).main(idle("a", 1, A)).reason == "unknown"


def test_limits_come_before_what_pilots_do() -> None:
    """Of the jobs that could run: those of which the negotiator said so, or all of them."""
    rows = {A: row(state="provisioning_bottleneck", reason="frontend_limit", registered_pilots=0)}
    limits = Limits({"g": QUOTAS["cms"]._replace(quota=4.0)}, {"full": ScheddLoad(7, 7)})
    said = (Rejection("concurrency limit matlab reached", 900, 6),)

    def found(limits: Limits, **more: Any) -> Mapping[str, float]:
        one = idle("a", 8, A, absorbed=0.5, free=True)
        one = one._replace(group=one.group._replace(**more))
        parts: defaultdict[str, float] = defaultdict(float)
        for cause, part in Causes(rows, {}, limits, pilots=True).of(one):
            parts[cause.cause] += part
        return parts

    rest = {"behind_others": 0.125, "frontend_limit": 0.125}
    assert found(Limits(), rejections=said) == {"concurrency_limit": 0.75} | rest
    assert found(Limits(), rejections=(*said, *said)) == {"concurrency_limit": 1.0}
    assert found(limits) == {"quota": 1.0}
    assert found(limits, accounting_group="g.sub") == {"quota": 1.0}
    assert found(limits, accounting_group="other", schedd="full") == {"schedd_limit": 1.0}
    assert "quota" not in found(limits, accounting_group="other")
    one = idle("a", 8, A)
    partly = one._replace(group=one.group._replace(rejections=said))
    waits = Causes(rows, {}, pilots=True).waits([partly])
    assert [one.cause for one in waits.values()] == ["several"]
    nowhere = idle("d", 1)
    assert Causes(rows, {}, limits, pilots=True).main(nowhere) == NOT_ANALYSED
