"""Certificates and tokens of gwmond's own: which are none, and until when the others are valid.

HTCondor ignores a token that is none, or that has expired, and says nothing.
"""

from __future__ import annotations

import base64
import json
import os
import ssl
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from gwmond.config.settings import Config
from gwmond.config.tracing import Export
from gwmond.model.facts import Problem
from gwmond.model.poll.snapshot import Credential
from gwmond.model.problem_names import ProblemName
from gwmond.model.times import SECOND_US
from gwmond.reports.render.periods import short, span
from gwmond.service.host.daemon_client import CERTIFICATE
from gwmond.web.server import pem

_SOON_S, _SOON_OF_LIFE = 14 * 86400.0, 0.2
"""Who renews certificates by a program does so with a third of their life left."""

_VERSION, _UTC_TIME = 0xA0, 0x17


def token_directory(config: Config) -> str:
    """Return where the tokens are that gwmond was given; empty: where HTCondor's defaults are."""
    if config.replay.file:
        return ""
    return config.pool.token_directory or os.environ.get("_CONDOR_SEC_TOKEN_DIRECTORY", "")


def without_token(directory: str) -> list[Path]:
    """Return the files of a directory in which a line is no token; OSError if one is not readable.

    Empty lines, comments, and names that begin with a dot do not count: HTCondor skips them.
    """
    return [file for file in _files(directory) if None in map(_claims, _lines(file))]


def credentials(config: Config, export: Export, http: str) -> list[Credential]:
    """Return what expires; ``http``: the PEM that is served with.  What cannot be read is left out.

    Of a chain, and of a file of tokens, that which expires first.
    """
    texts = [("http.tls_cert", http)]
    if path := export.options.client_certificate:
        texts.append(("traces.client_certificate", pem(path)))
    sources = [(source, map(_of_certificate, CERTIFICATE.findall(text))) for source, text in texts]
    if directory := token_directory(config):
        try:
            lines = [(str(file), _lines(file)) for file in _files(directory)]
        except OSError:
            lines = []
        sources += [(file, map(_of_token, tokens)) for file, tokens in lines]
    return [credential for source, lives in sources for credential in _first(source, lives)]


def expiring(credential: Credential, now: float) -> Problem | None:
    """Return the problem of what expires within two weeks and a fifth of its life, or has."""
    left, issued = credential.expires - now, credential.issued
    life = credential.expires - issued if issued is not None else _SOON_S / _SOON_OF_LIFE
    if left > min(_SOON_S, _SOON_OF_LIFE * life):
        return None
    return Problem(credential.source, ProblemName.CREDENTIAL_EXPIRES, until(credential, now))


def until(credential: Credential, now: float) -> str:
    """Say until when it is valid."""
    left = round(credential.expires - now) * SECOND_US
    at = f"{short(round(credential.expires) * SECOND_US)} UTC"
    return f"valid until {at}, for {span(left)}" if left > 0 else f"expired since {at}"


_Life = tuple[float | None, float]


def _first(source: str, lives: Iterable[_Life | None]) -> Iterator[Credential]:
    readable = [life for life in lives if life is not None]
    if readable:
        yield Credential(source, *min(readable, key=lambda life: life[1]))


# --- certificates


def _of_certificate(text: str) -> _Life | None:
    """Return from when to when a certificate is valid (RFC 5280, section 4.1)."""
    try:
        ((_, whole),) = _items(ssl.PEM_cert_to_DER_cert(text))
        (_, signed), *_ = _items(whole)
        # Version (not in the first), serial number, algorithm, issuer, validity.
        validity = [content for tag, content in _items(signed) if tag != _VERSION][3]
        begin, end = (_time(tag, content.decode()) for tag, content in _items(validity))
    except (ValueError, IndexError):
        return None
    return begin, end


def _items(der: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the tag and the content of each element (X.690, section 8.1)."""
    while der:
        tag, length, begin = der[0], der[1], 2
        if length > 0x7F:  # so many bytes of length
            begin += length - 0x80
            length = int.from_bytes(der[2:begin])
        yield tag, der[begin : begin + length]
        der = der[begin + length :]


def _time(tag: int, text: str) -> float:
    """Return the epoch seconds of a time; UTCTime has two digits of the year, 1950 to 2049."""
    if tag == _UTC_TIME:
        text = ("19" if text >= "5" else "20") + text
    return datetime.strptime(text, "%Y%m%d%H%M%S%z").timestamp()


# --- tokens


def _files(directory: str) -> list[Path]:
    return [
        file
        for file in sorted(Path(directory).iterdir())
        if file.is_file() and not file.name.startswith(".")
    ]


def _lines(file: Path) -> list[str]:
    lines = (line.strip() for line in file.read_text(errors="replace").splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def _claims(line: str) -> dict[str, Any] | None:
    """Return what a signed token says (RFC 7519: two JSON objects, and a signature), or None."""
    try:
        head, payload, _signature = line.split(".")
        parts = [json.loads(base64.urlsafe_b64decode(part + "==")) for part in (head, payload)]
    except ValueError:
        return None
    return parts[1] if all(isinstance(part, dict) for part in parts) else None


def _of_token(line: str) -> _Life | None:
    claims = _claims(line) or {}
    begin, end = (claims.get(name) for name in ("iat", "exp"))
    if not isinstance(end, int | float):
        return None  # it never expires
    return begin if isinstance(begin, int | float) else None, end
