"""What is asked of jobs, pilots and entries, by a command or a page, and why there is no answer."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from gwmond.model.demand.what_if import WhatIfKind

What: TypeAlias = Literal["job", "ad", "pilot", "entry", "all", "whatif"]
OF_JOBS: frozenset[What] = frozenset(("job", "ad"))
"""What is answered only to those who may see single jobs."""
MOST_AD = 4_096
"""So many characters the ad of a job has at most that is not submitted yet."""
POOL, WITHHELD, NOT_READ = "Gwmond-Pool", "Gwmond-Withheld", "Gwmond-Not-Read"
"""Headers of the daemon's answers: its pool, percent-encoded; what is left out of them; and how
many of their sources could not be read."""


class Unanswered(Exception):
    """Why there is no answer: the status of HTTP, in words, and when to ask again (seconds)."""

    def __init__(self, status: int, text: str, again_s: int | None = None) -> None:
        super().__init__(text)
        self.status, self.text, self.again_s = status, text, again_s


class Question(NamedTuple):
    """What is asked; empty: any.

    ``name``: of the job (``cluster.proc``, or a GlobalJobId), the pilot or the entry; or the text
    of the ad of a job that is not submitted yet.  ``schedd``:
    that has the jobs.  ``site``: why not there; of an entry: its site.  ``change`` and ``value``:
    what would a change of what is named move (``what_if``).
    """

    name: str = ""
    schedd: str = ""
    site: str = ""
    what: What = "job"
    change: WhatIfKind | Literal[""] = ""
    value: str = ""

    @property
    def is_asked(self) -> bool:
        """Whether it names what is asked for."""
        return bool(self.name) or self.what == "all"

    @property
    def is_of_jobs(self) -> bool:
        """Whether only those who may see single jobs are answered: START may ask for any user."""
        return self.what in OF_JOBS or self.change == "start"

    @property
    def only_at(self) -> str:
        """The site, or entry, that alone is looked at; empty: all are."""
        return "" if self.what == "entry" else self.site

    @property
    def query(self) -> dict[str, str]:
        """The parameters of its page."""
        if self.what == "whatif":
            return {"whatif": self.change, "of": self.name, "value": self.value}
        name = "1" if self.what == "all" else self.name
        return {self.what: name, "schedd": self.schedd, "site": self.site}
