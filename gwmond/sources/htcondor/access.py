"""How ads are had: from live daemons, or from a recording that takes their place.

A query names what it wants with a :class:`Query`; live or recorded, the same ads go through the
same decoding.  Methods run in a child process (:mod:`gwmond.sources.child`) and import the
bindings there; the parent only makes and sends these objects.
"""

from __future__ import annotations

import os
import socket
import tempfile
import time
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from gwmond.model.digits import is_number
from gwmond.model.problem_names import ProblemName
from gwmond.sources.child import QueryError
from gwmond.sources.htcondor.ads import parse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import classad2

    from gwmond.config.settings import Attributes

CONNECT_TIMEOUT_S = 5
QUERY_TIMEOUT_S = 20
NO_POOL = (
    "no pool is named: this host's HTCondor configuration has no COLLECTOR_HOST, and there is "
    "neither --collector nor [pool] collectors"
)
_DENIED = (
    *("DENIED", "AUTHENTICATE:", "Failed to authenticate"),
    *("not authorized", "Not authorized"),
)
# What the library says of a connection that was accepted and then closed, without a DENIED: the
# daemon behind a shared port is dead, or it is just starting (measured with 23.9.6 and 25.14.1).
_CLOSED = ("Connection closed", "Socket closed", "Failed to end classad message", "Failed to read")
_CLUSTER_ADS_ONLY = 16 + 64  # IncludeClusterAd, and NoProcAds, which the enumeration lacks

HISTORIES: dict[str, tuple[str, str, dict[str, str]]] = {
    "epochs": ("Schedd", "jobEpochHistory", {}),
    "history": ("Schedd", "history", {}),
    "startd_history": ("Startd", "history", {}),
    "transfers": ("Schedd", "jobEpochHistory", {"ad_type": "TRANSFER"}),
}
"""The kinds of records of job runs: whom to ask, by which method of the bindings, and how."""


class Query(NamedTuple):
    """One question to one daemon: which ads (``ad_type`` is a collector's), and what of them.

    ``limit`` is how many rows a schedd returns at most; all if negative.  ``used`` are the
    attributes that are used of whole ads (no projection); ``X*`` stands for all that begin with X.
    """

    kind: str
    ad_type: str
    constraint: str
    projection: tuple[str, ...]
    limit: int = -1
    used: tuple[str, ...] = ()

    @property
    def attributes(self) -> tuple[str, ...]:
        """Return what is asked for: no other attribute is ever recorded."""
        return self.projection or self.used


class Daemon(NamedTuple):
    """A daemon to ask; ``name`` is what people call it, ``address`` its sinful string."""

    name: str
    address: str
    version: str = ""


class Terms(NamedTuple):
    """What a collector is asked by, and its answer is decoded by.

    ``host``: empty for the collector of this host's configuration; ``now``: epoch seconds;
    ``claims_since``: only claims of jobs begun since then (epoch seconds; None: all).
    ``part``: k of n parts of a large answer, as (k, n); a startd's ads are in one part.
    """

    access: Access
    host: str
    attributes: Attributes
    now: float
    claims_since: float | None = None
    part: tuple[int, int] = (0, 1)

    @property
    def name(self) -> str:
        """The collector's name for people."""
        return self.host or "local"


class CollectorSource(NamedTuple):
    """One kind of question to a collector; ``kind`` is that of its query.

    A module registers its own in ``SOURCES``: see ``registry``.

    ``pool``, ``wms``: whether collectors of the pool are asked, and WMS collectors.
    ``discovers``: the answer has schedds, which are asked in the same round.
    ``large``: the answer takes longest, so it is asked for before others.
    ``whole``: the ads are asked for without a projection, so a recording has what jobs refer to.
    ``joined``: what makes one answer of those of all parts (``Terms.part``).
    """

    kind: str
    query: Callable[[Terms], Query]
    decode: Callable[[Sequence[classad2.ClassAd], Terms], Any]
    pool: bool = True
    wms: bool = False
    discovers: bool = False
    large: bool = False
    whole: bool = False
    joined: Callable[[Sequence[Any]], Any] | None = None


class Access(Protocol):
    """What both a live pool and a recording offer; picklable."""

    def collector_ads(self, host: str, query: Query) -> Sequence[classad2.ClassAd]:
        """Return the ads that a collector holds."""

    def job_ads(self, schedd: Daemon, query: Query) -> Sequence[classad2.ClassAd]:
        """Return a schedd's jobs, grouped by the projection (rows carry JobCount)."""

    def cluster_ads(self, schedd: Daemon, query: Query) -> Sequence[classad2.ClassAd]:
        """Return a schedd's cluster ads that satisfy the constraint."""

    def history(
        self, daemon: Daemon, kind: str, query: Query, match: int, since: str
    ) -> Sequence[classad2.ClassAd]:
        """Return at most ``match`` records of job runs, newest first.

        ``kind`` is one of ``HISTORIES``; ``since`` is an expression, and the first record for
        which it is true, and all older ones, are left out (empty: none is).
        """


class LiveAccess(NamedTuple):
    """Real daemons, asked through HTCondor's bindings, read only."""

    token_directory: str = ""

    def collector_ads(self, host: str, query: Query) -> list[classad2.ClassAd]:
        """Ask a collector; an empty host is the one of this machine's configuration."""
        htcondor2 = self._bindings()
        if not host and not htcondor2.param.get("COLLECTOR_HOST", ""):
            raise QueryError(ProblemName.NO_POOL, NO_POOL)
        began = time.monotonic()
        try:
            collector = htcondor2.Collector(host or None)
            ad_type = getattr(htcondor2.AdType, query.ad_type)
            ads = collector.query(ad_type, query.constraint or None, list(query.projection) or None)
        except htcondor2.HTCondorException as error:
            address, seconds = host or htcondor2.param.get("COLLECTOR_HOST", ""), _since(began)
            reason = ""
            if seconds < QUERY_TIMEOUT_S - 1:
                reason = _reason(htcondor2, lambda: collector.query(ad_type, "false", ["Name"]))
            raise explain(error, address, seconds, reason) from None
        return list(ads)

    def job_ads(self, schedd: Daemon, query: Query) -> list[classad2.ClassAd]:
        """Ask a schedd for groups of jobs, with a count each; no job is fetched.

        Every attribute of the constraint must be in the projection, else nothing is found.
        """
        return self._jobs(schedd, query, int(self._bindings().QueryOpts.GroupBy))

    def cluster_ads(self, schedd: Daemon, query: Query) -> list[classad2.ClassAd]:
        """Ask a schedd for cluster ads; the constraint must exclude those of single jobs."""
        return self._jobs(schedd, query, _CLUSTER_ADS_ONLY)

    def count_jobs(self, schedd: Daemon, constraint: str) -> int:
        """Ask a schedd how many jobs satisfy a constraint; it sends its sums only."""
        query = Query("count", "", constraint, ("ClusterId",))
        sums = self._jobs(schedd, query, int(self._bindings().QueryOpts.SummaryOnly))
        return int(sums[0].get("Jobs", 0)) if sums else 0

    def history(
        self, daemon: Daemon, kind: str, query: Query, match: int, since: str
    ) -> list[classad2.ClassAd]:
        """Ask a schedd or a startd; to a silent one this never returns.

        The daemon forks a helper, which reads its files backwards (condor_history -inherit).
        """
        htcondor2 = self._bindings()
        import classad2  # noqa: PLC0415 (only ever in a child)

        owner, method, options = HISTORIES[kind]
        ask = getattr(getattr(htcondor2, owner)(_location(htcondor2, daemon)), method)
        began = time.monotonic()
        try:
            stop = classad2.ExprTree(since) if since else None
            asked = query.constraint or "true", list(query.projection)
            records = ask(*asked, match, stop, **options)
        except htcondor2.HTCondorException as error:
            if "undefined in remote configuration" in str(error):
                raise QueryError(ProblemName.NOT_KEPT, " ".join(str(error).split())) from None
            raise explain(error, daemon.address, _since(began)) from None
        except ValueError as error:
            raise QueryError(ProblemName.BAD_CONSTRAINT, " ".join(str(error).split())) from None
        return list(records)

    def _jobs(self, schedd: Daemon, query: Query, options: int) -> list[classad2.ClassAd]:
        htcondor2 = self._bindings()
        location = _location(htcondor2, schedd)
        began = time.monotonic()
        try:
            rows = htcondor2.Schedd(location).query(
                query.constraint, list(query.projection), limit=query.limit, opts=options
            )
        except htcondor2.HTCondorException as error:
            raise explain(error, schedd.address, _since(began)) from None
        return list(rows)

    def _bindings(self) -> Any:
        import htcondor2  # noqa: PLC0415 (only ever in a child)

        htcondor2.reload_config()  # tokens and certificates may have been renewed
        htcondor2.param["QUERY_TIMEOUT"] = str(QUERY_TIMEOUT_S)
        if self.token_directory:
            htcondor2.param["SEC_TOKEN_DIRECTORY"] = self.token_directory
        return htcondor2


def _location(htcondor2: Any, daemon: Daemon) -> classad2.ClassAd:
    """Return the ad by which the bindings find a daemon."""
    location = parse("[]")
    location["Name"], location["MyAddress"] = daemon.name, daemon.address
    location["CondorVersion"] = daemon.version or htcondor2.version()
    return location


def _since(began: float) -> float:
    return time.monotonic() - began


def _reason(htcondor2: Any, ask: Callable[[], object]) -> str:
    """Return what HTCondor's library writes to the log as it asks a collector once more.

    Its exception has one text for all causes: "Failed communication with collector".
    """
    with tempfile.TemporaryFile() as log:
        stderr = os.dup(2)
        os.dup2(log.fileno(), 2)
        try:
            htcondor2.enable_debug()
            ask()
        except htcondor2.HTCondorException:
            pass  # as expected
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
        log.seek(0)
        return log.read().decode(errors="replace")


def explain(error: Exception, address: str, seconds: float, reason: str = "") -> QueryError:
    """Return why a query failed; ``reason``: from the library's log.

    The bindings have one text for several causes, so a socket is tried, and the time distinguishes
    silence (QUERY_TIMEOUT, or 20 s of a schedd) from refusal (at once).
    """
    text = " ".join(str(error).split())
    lines = [text, *(line.strip() for line in reason.splitlines())]
    for line in lines:
        if any(word in line for word in _DENIED):
            return QueryError(ProblemName.DENIED, line)
    if "did not respond" in text or seconds > QUERY_TIMEOUT_S - 1:
        return QueryError(ProblemName.TIMEOUT, f"no answer within {seconds:.0f} s")
    if text.endswith("errmsg="):
        return QueryError(
            ProblemName.BAD_CONSTRAINT, "the schedd does not understand the constraint"
        )
    host, port = host_and_port(address)
    unreachable = _by_socket(host, port)
    if unreachable is not None:
        return unreachable
    closed = next((line for line in lines if any(word in line for word in _CLOSED)), None)
    if closed is not None:
        return QueryError(ProblemName.CONNECTION_CLOSED, f"{host}:{port}: {closed}")
    return QueryError(ProblemName.FAILED, f"{text} ({host}:{port} accepts connections)")


def _by_socket(host: str, port: int) -> QueryError | None:
    """Say why the daemon cannot be reached at all, None if it can."""
    try:
        socket.create_connection((host, port), timeout=CONNECT_TIMEOUT_S).close()
    except socket.gaierror:
        return QueryError(ProblemName.UNKNOWN_HOST, f"{host}: no such host")
    except ConnectionRefusedError:
        return QueryError(ProblemName.REFUSED, f"{host}:{port} refused the connection")
    except OSError as cause:
        return QueryError(ProblemName.UNREACHABLE, f"{host}:{port}: {cause}")
    return None


def host_and_port(address: str) -> tuple[str, int]:
    """Take ``HOST``, ``HOST:PORT`` or a sinful string apart; 9618 is HTCondor's port.

    >>> host_and_port("cm.example.org"), host_and_port("<[::1]:9620?alias=cm>")
    (('cm.example.org', 9618), ('::1', 9620))
    """
    plain = address.strip("<>").partition("?")[0]
    host, colon, port = plain.rpartition(":")
    if not colon or not is_number(port) or (":" in host and not host.endswith("]")):
        host, port = plain, "9618"
    return host.strip("[]"), int(port)
