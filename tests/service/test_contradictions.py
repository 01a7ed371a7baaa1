"""Counts of frontends and factories that cannot be true are told, once as they begin."""

from __future__ import annotations

from gwmond.model.facts import EntryRequest, FrontendJobs, JobCount
from gwmond.model.monitor import EntryMonitor, Monitor
from gwmond.service.pool.contradictions import (
    LEAST,
    STANDING_S,
    LastingContradictions,
    of_jobs,
    of_queue,
    of_requests,
)
from gwmond.sources.htcondor.factory import QueueCount
from tests.build.facts import A, pilot, request

GROUP = "frontend.main"


def asked(whole: int | None = None, **numbers: int) -> EntryRequest:
    made = request(A)._replace(monitor=Monitor(**numbers))
    return made if whole is None else made._replace(whole=EntryMonitor(max_pilots=whole))


def texts(found: object) -> list[str]:
    return [one.text for one in found]  # type: ignore[attr-defined]


def test_slots_that_the_frontend_does_not_know() -> None:
    """It counts 0 of 40 pilots that run: they lack the identifier of its credential."""
    running = [pilot(A)] * 40
    (text,) = texts(of_requests([asked(client_slots_total=0)], running))
    assert text == f"the frontend counts 0 slots of {GROUP} at {A.entry}, 40 pilots run there"
    assert not texts(of_requests([asked(client_slots_total=0)], running[: LEAST - 1]))
    assert not texts(of_requests([asked(client_slots_total=38)], running))
    assert not texts(of_requests([asked()], running))  # not known is not 0


def test_jobs_on_claimed_slots() -> None:
    (text,) = texts(of_requests([asked()._replace(here_contradicts=True)], []))
    assert text.startswith(f"the frontend counts 0 jobs of {GROUP} that run at {A.entry}")


def test_pilots_that_the_factory_does_not_see() -> None:
    """Its queue has 5000 waiting, its limit is 200, its own count 0."""
    queue = [QueueCount(A.entry, "factory", GROUP, "pending", 4900, 4000)]
    queue += [QueueCount(A.entry, "factory", GROUP, "submitted", 100, 0)]
    queue += [QueueCount(A.entry, "factory", GROUP, "held", 7, 0)]
    (text,) = texts(of_queue([asked(200, status_idle=0)], queue))
    assert text == (
        f"the factory counts 0 waiting pilots of {GROUP} at {A.entry}, its queue has 5000 "
        "(limit 200)"
    )
    assert not texts(of_queue([asked(200, status_idle=100)], queue))
    assert not texts(of_queue([asked(200)], queue))


def test_jobs_that_the_frontend_does_not_see() -> None:
    """All frontends count no idle job, the schedds have 400."""
    jobs = [JobCount("ap1", "", "idle", 300), JobCount("ap2", "", "idle", 100)]
    (text,) = texts(of_jobs(jobs, [FrontendJobs("frontend", 0, 0, 0)]))
    assert text == "the frontend counts 0 of the pool's 400 idle jobs: it does not see them"
    assert not texts(of_jobs(jobs, []))
    assert not texts(of_jobs(jobs, [FrontendJobs("frontend", None, 0, 0)]))
    assert not texts(of_jobs(jobs[:0], [FrontendJobs("frontend", 0, 0, 0)]))


def test_what_has_just_begun_is_not_told_yet_unless_both_counts_are_of_one_moment() -> None:
    """Twenty jobs were submitted a moment ago: the frontend's next loop will count them."""
    jobs = list(of_jobs([JobCount("ap1", "", "idle", 20)], [FrontendJobs("frontend", 0, 0, 0)]))
    here = list(of_requests([asked()._replace(here_contradicts=True)], []))
    standing = LastingContradictions()
    assert standing.told([*jobs, *here], 0) == [(here[0], True)]
    assert standing.told(here, 60) == [(here[0], False)]
    assert standing.told(jobs, 120) == []
    assert standing.told(jobs, 120 + STANDING_S) == [(jobs[0], True)]
    assert standing.told(jobs, 180 + STANDING_S) == [(jobs[0], False)]
