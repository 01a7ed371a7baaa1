"""Asks the daemon that runs on this host, at the address of its configuration."""

from __future__ import annotations

import re
import ssl
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import NamedTuple

from gwmond.config.settings import Http

ANSWERS_S, LATEST_S = 5.0, 30.0
"""A daemon that runs says so within the first; what it has to ask for comes within the second."""
_MOST_BYTES = 64 << 20
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


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


def is_running(http: Http) -> bool:
    """Return whether what listens there is gwmond; it is sent no token."""
    try:
        with closing(_connection(http, ssl._create_unverified_context())) as connection:
            return _is_gwmond(connection)
    except (OSError, HTTPException):
        return False


def ask(http: Http, path: str) -> DaemonReply:
    """Return what the daemon answers, with the token if it can be read; raises NoDaemon.

    With TLS only who has the key of the configured certificate is asked.  Neither proxies nor
    redirections of the environment are followed.
    """
    try:
        with closing(_connection(http, _trusting(http))) as connection:
            if not _is_gwmond(connection):
                raise NoDaemon(f"what listens at {http.listen} is not gwmond")
            connection.timeout = LATEST_S
            if connection.sock is not None:
                connection.sock.settimeout(LATEST_S)
            connection.request("GET", path, headers=_token(http))
            reply = connection.getresponse()
            text = reply.read(_MOST_BYTES).decode(errors="replace")
            found = {name.lower(): value for name, value in reply.getheaders()}
            return DaemonReply(reply.status, text, found)
    except (OSError, HTTPException, ValueError) as error:
        raise NoDaemon(f"no daemon answers at {http.listen}: {error}") from None


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
    own = _CERTIFICATE.search(Path(http.tls_cert).read_text())
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
