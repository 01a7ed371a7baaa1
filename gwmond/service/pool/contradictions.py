"""Counts of the same thing by two parties that cannot both be true.

- A frontend that counts no slots at an entry where pilots of its group run: it does not know them
  for its own (a credential without GLIDEIN_CredentialIdentifier), and asks for ever more.
- A frontend that counts no job as running at an entry, and claimed slots there: where the factory's
  collector has a port of its own, upstream leaves the port out on one side
  (frontend/glideinFrontendLib.py, countRealRunning).
- A factory that counts no waiting pilots of a group, while its queue has them: its limits do not
  apply, and it submits without end.
- A frontend that counts no idle job in all, while schedds have them: it does not see them.

States rest on slots, schedds and the queue, not on these counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from gwmond.model.facts import EntryRequest, FrontendJobs, JobCount, Pilot
from gwmond.sources.htcondor.factory import QueueCount

LEAST = 10
"""Counts are of different moments: fewer pilots or jobs than this are no contradiction."""

STANDING_S = 600
"""Counts of different moments have to differ for so long: pilots and jobs come by the hundred."""

ALL_JOBS = ("jobs", "", "")
"""What ``of_jobs`` is about."""


class Contradiction(NamedTuple):
    """What contradicts what: a bounded name with where it is, and the sentence.

    ``at_once``: both counts are of one moment.
    """

    of: tuple[str, str, str]
    text: str
    at_once: bool = False


class LastingContradictions:
    """Contradictions that have stood for long enough to be told."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, str, str], float] = {}
        self._told: set[tuple[str, str, str]] = set()

    def told(self, polled: Sequence[Contradiction], now: float) -> list[tuple[Contradiction, bool]]:
        """Return those that are told at ``now`` (s), and whether each of them begins."""
        self._since = {c.of: self._since.get(c.of, now) for c in polled}
        standing = [c for c in polled if c.at_once or now - self._since[c.of] >= STANDING_S]
        before, self._told = self._told, {c.of for c in standing}
        return [(c, c.of not in before) for c in standing]


def of_requests(
    requests: Iterable[EntryRequest], running: Iterable[Pilot]
) -> Iterator[Contradiction]:
    """Yield where a frontend's counts of slots and jobs at an entry cannot be true."""
    registered = Counter((pilot.entry, pilot.group) for pilot in running)
    for request in requests:
        key, group = request.entry.entry, request.group
        pilots, slots = registered[request.entry, group], request.monitor.client_slots_total
        if slots == 0 and pilots >= LEAST:
            text = f"the frontend counts 0 slots of {group} at {key}, {pilots} pilots run there"
            yield Contradiction(("slots", key, group), text)
        if request.here_contradicts:
            text = f"the frontend counts 0 jobs of {group} that run at {key}, and claimed slots"
            yield Contradiction(("here", key, group), f"{text} there", at_once=True)


def of_queue(
    requests: Iterable[EntryRequest], queue: Iterable[QueueCount]
) -> Iterator[Contradiction]:
    """Yield where a factory counts no waiting pilots, and its queue has them."""
    waiting: Counter[tuple[str, str]] = Counter()
    for count in queue:
        if count.status in {"submitted", "pending"}:
            waiting[count.entry, count.client] += count.pilots
    for request in requests:
        key, group, most = request.entry.entry, request.group, request.whole.max_pilots
        queued = waiting[key, group]
        if request.monitor.status_idle == 0 and queued >= LEAST:
            limit = "" if most is None else f" (limit {most})"
            counts = f"the factory counts 0 waiting pilots of {group} at {key}"
            yield Contradiction(("queue", key, group), f"{counts}, its queue has {queued}{limit}")


def of_jobs(jobs: Iterable[JobCount], frontends: Sequence[FrontendJobs]) -> Iterator[Contradiction]:
    """Yield that the frontends see none of the idle jobs of the schedds."""
    idle = sum(count.jobs for count in jobs if count.status == "idle")
    if idle >= LEAST and frontends and all(frontend.idle == 0 for frontend in frontends):
        text = f"the frontend counts 0 of the pool's {idle} idle jobs: it does not see them"
        yield Contradiction(ALL_JOBS, text)
