"""Users' jobs by the own count of schedds.  Jobs are counted; times are epoch seconds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from gwmond.model.freshest import freshest
from gwmond.model.units import known_sum


class SubmitterCount(NamedTuple):
    """What a schedd told a collector of a submitter's jobs, and when; None: it did not.

    ``name`` is ``group.user@domain`` or ``user@domain``.  ``pool``: empty at home, else that to
    which the schedd flocks; ``running`` are the jobs that run in that pool.
    """

    schedd: str
    name: str
    pool: str
    waiting: int | None
    running: int | None
    held: int | None
    told: int | None


class UserJobs(NamedTuple):
    """The jobs of a user, as one submitter or as all, in all schedds.

    ``told``: when the oldest of the counts was.
    """

    user: str
    submitter: str
    schedds: frozenset[str]
    waiting: int | None
    running: int | None
    held: int | None
    told: int | None

    @property
    def is_none(self) -> bool:
        """Whether all counts are known, and are 0."""
        return self.waiting == self.running == self.held == 0

    def is_of(self, user: str) -> bool:
        """Return whether they are of ``user@domain``, or of a user of any domain; empty: of any."""
        return not user or self._name(user) == user

    def may_be_of(self, user: str) -> bool:
        """Return whether they are if what stands before the user is an accounting group."""
        return self._name(user).endswith(f".{user}")

    def _name(self, user: str) -> str:
        return self.user if "@" in user else self.user.partition("@")[0]


class UsersNow(NamedTuple):
    """What all schedds told; ``groups``: accounting groups, in small letters.

    ``complete``: no collector is missing.
    """

    counts: tuple[SubmitterCount, ...]
    groups: frozenset[str]
    complete: bool

    @property
    def jobs(self) -> tuple[UserJobs, ...]:
        """The jobs of each submitter, added up when they are asked for: there may be thousands."""
        return by_submitter(self.counts, self.groups)


def known_group(name: str, groups: Collection[str]) -> str:
    """Return the longest accounting group that is known in what precedes a submitter's last dot.

    Names of users have dots as well, so no other part is a group's.

    >>> known_group("cms.prod.ada", {"cms", "cms.prod"}), known_group("ada", {"cms"})
    ('cms.prod', '')
    """
    while name and name not in groups:
        name = name.rpartition(".")[0]
    return name


def user_of(submitter: str, groups: Collection[str]) -> str:
    """Return a submitter's name without its accounting group; ``groups``: in small letters.

    >>> user_of("cms.prod.ada.l@x", {"cms", "cms.prod"}), user_of("ada.l@x", ())
    ('ada.l@x', 'ada.l@x')
    """
    group = known_group(submitter.partition("@")[0].lower().rpartition(".")[0], groups)
    return submitter[len(group) + 1 :] if group else submitter


def by_submitter(counts: Iterable[SubmitterCount], groups: Collection[str]) -> tuple[UserJobs, ...]:
    """Return the jobs of each submitter.

    A schedd counts once, by what it told last.  Its waiting and held jobs are the same wherever it
    flocks to; those that it tells at home are taken.
    """
    last: dict[tuple[str, str], dict[str, SubmitterCount]] = {}
    told_last = freshest(counts, lambda c: (c.name, c.schedd, c.pool), lambda c: c.told or 0)
    for (name, schedd, pool), count in told_last.items():
        last.setdefault((name, schedd), {})[pool] = count
    by_name: dict[str, list[UserJobs]] = {}
    for (name, schedd), pools in sorted(last.items()):
        home = pools.get("") or max(pools.values(), key=lambda count: count.told or 0)
        running = known_sum(count.running for count in pools.values())
        told = min((c.told for c in pools.values() if c.told is not None), default=None)
        where = frozenset((schedd,))
        jobs = UserJobs(user_of(name, groups), name, where, home.waiting, running, home.held, told)
        by_name.setdefault(name, []).append(jobs)
    return tuple(map(together, by_name.values()))


def together(jobs: Sequence[UserJobs]) -> UserJobs:
    """Return jobs as one; the names are those of the first."""
    return jobs[0]._replace(
        schedds=frozenset[str]().union(*(part.schedds for part in jobs)),
        waiting=known_sum(part.waiting for part in jobs),
        running=known_sum(part.running for part in jobs),
        held=known_sum(part.held for part in jobs),
        told=min((part.told for part in jobs if part.told is not None), default=None),
    )
