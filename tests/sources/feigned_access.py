"""Daemons that are feigned inside the child processes.  Imports little: every child does."""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

import classad2

from gwmond.model.problem_names import ProblemName
from gwmond.sources.child import QueryError
from gwmond.sources.htcondor.access import Daemon, Query
from gwmond.sources.htcondor.ads import parse


class Unasked:
    """Daemons of which nothing is asked but what a test defines."""

    def collector_ads(self, _host: str, _query: Query) -> list[classad2.ClassAd]:
        raise NotImplementedError

    def job_ads(self, _schedd: Daemon, _query: Query) -> list[classad2.ClassAd]:
        raise NotImplementedError

    def cluster_ads(self, _schedd: Daemon, _query: Query) -> list[classad2.ClassAd]:
        raise NotImplementedError

    def history(
        self, _daemon: Daemon, _kind: str, _query: Query, _match: int, _since: str
    ) -> list[classad2.ClassAd]:
        raise NotImplementedError


class Feigned(NamedTuple):
    """Answers by (daemon, kind): texts of ads, or ``!problem``, or ``~seconds`` of silence.

    Every question is noted in the file ``log``, as a line with daemon and kind.
    """

    answers: dict[tuple[str, str], tuple[str, ...]]
    log: str

    def collector_ads(self, host: str, query: Query) -> list[classad2.ClassAd]:
        found = self._answer(host, query.kind)
        if query.kind not in ("templates", "claims", "slots"):
            return found
        wanted = classad2.ExprTree(query.constraint)
        return [ad for ad in found if wanted.eval(ad) is True]

    def job_ads(self, schedd: Daemon, query: Query) -> list[classad2.ClassAd]:
        return self._answer(schedd.address, query.kind)

    def cluster_ads(self, schedd: Daemon, query: Query) -> list[classad2.ClassAd]:
        return self._answer(schedd.address, query.kind)

    def history(
        self, daemon: Daemon, kind: str, query: Query, match: int, since: str
    ) -> list[classad2.ClassAd]:
        del query, match, since
        return self._answer(daemon.address, kind)

    def _answer(self, daemon: str, kind: str) -> list[classad2.ClassAd]:
        with Path(self.log).open("a") as log:
            log.write(f"{daemon} {kind}\n")
        ads = []
        for text in self.answers.get((daemon, kind), ()):
            if text.startswith("!"):
                raise QueryError(ProblemName(text[1:]), "as feigned")
            if text.startswith("~"):
                time.sleep(float(text[1:]))
            else:
                ads.append(parse(text))
        return ads
