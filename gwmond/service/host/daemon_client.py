"""Asks the daemon that runs on this host, at the address of its configuration."""

from __future__ import annotations

import re
import ssl
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote

from gwmond.config.settings import Config, Http
from gwmond.model.demand.question import POOL
from gwmond.sources import child
from gwmond.sources.pool_name import RECORDING, pool_name
from gwmond.web.local import connected, socket_path

ANSWERS_S, LATEST_S = 5.0, 30.0
"""A daemon that runs says so within the first; what it has to ask for comes within the second."""
_MOST_BYTES = 64 << 20
CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


class NoDaemon(Exception):
    """The daemon does not answer; ``runs``: there is one, and it says why."""

    def __init__(self, text: str, *, runs: bool = False) -> None:
        super().__init__(text)
        self.runs = runs


class DaemonReply(NamedTuple):
    """What it answers; ``headers`` by their names in lower case."""

    status: int
    text: str
    headers: dict[str, str]


def running(http: Http) -> str | None:
    """Return whose answers the gwmond gives that listens there (``POOL``); it is sent no token.

    Empty: it does not say so without one, or has not polled yet.  None: no gwmond listens there.
    """
    try:
        with closing(_connection(http, ssl._create_unverified_context())) as connection:
            if not _is_gwmond(connection):
                return None
            connection.request("GET", "/explain")
            return connection.getresponse().getheader(POOL, "")
    except (OSError, HTTPException):
        return None


def is_recorded(named: str) -> bool:
    """Return whether answers of a pool (``POOL``) are those of a recording."""
    return unquote(named).startswith(RECORDING)


def is_of(config: Config, named: str) -> bool:
    """Return whether answers of a pool (``POOL``) are of that of this configuration.

    Where this one leads to no pool, those of a recording are.
    """
    if not config.pool.collectors:
        child.start(files=False, once=True)  # which loads HTCondor's library, as it names them
    try:
        own = pool_name(config)
    except child.QueryError:
        return False
    return named == quote(own) if own else is_recorded(named)


def ask(http: Http, path: str) -> DaemonReply:
    """Return what the daemon answers, on its Unix socket or with the token; raises NoDaemon.

    The Unix socket answers root, and the daemon's own user.

    With TLS only who has the key of the configured certificate is asked.  Neither proxies nor
    redirections of the environment are followed.
    """
    try:
        with closing(_local() or _connection(http, _trusting(http))) as connection:
            if not _is_gwmond(connection):
                raise NoDaemon(f"what listens at {http.listen} is not gwmond")
            connection.timeout = LATEST_S
            if connection.sock is not None:
                connection.sock.settimeout(LATEST_S)
            connection.request("GET", path, headers=_token(http))
            reply = connection.getresponse()
            text = reply.read(_MOST_BYTES).decode(errors="replace")
            headers = {name.lower(): value for name, value in reply.getheaders()}
            return DaemonReply(reply.status, text, headers)
    except (OSError, HTTPException, ValueError) as error:
        raise NoDaemon(f"no daemon answers at {http.listen}: {error}") from None


def _local() -> HTTPConnection | None:
    """Return a connection to the daemon's Unix socket, if this user may have one."""
    connection = HTTPConnection("localhost", timeout=ANSWERS_S)
    try:
        connection.sock = connected(socket_path(), ANSWERS_S)
    except OSError:
        return None
    return connection


def _connection(http: Http, context: ssl.SSLContext | None) -> HTTPConnection:
    host, port = http.address
    if http.tls_cert:
        return HTTPSConnection(host, port, timeout=ANSWERS_S, context=context)
    return HTTPConnection(host, port, timeout=ANSWERS_S)


def _trusting(http: Http) -> ssl.SSLContext | None:
    """Return what accepts the first certificate of the configured chain alone, by any name."""
    if not http.tls_cert:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    own = CERTIFICATE.search(Path(http.tls_cert).read_text())
    context.load_verify_locations(cadata=own[0] if own else "")
    return context


def _is_gwmond(connection: HTTPConnection) -> bool:
    connection.request("GET", "/-/healthy")
    return connection.getresponse().read(_MOST_BYTES).startswith(b"gwmond")


def _token(http: Http) -> dict[str, str]:
    try:
        token = Path(http.auth_token_file).read_text().strip() if http.auth_token_file else ""
    except OSError:
        token = ""
    return {"Authorization": f"Bearer {token}"} if token else {}
