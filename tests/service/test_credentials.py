"""Certificates that openssl makes, and tokens: until when they are valid, and when that is told."""

from __future__ import annotations

import ssl
import subprocess
from base64 import urlsafe_b64encode
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gwmond.config.settings import Config, Traces
from gwmond.config.tracing import Export
from gwmond.model.poll.snapshot import Credential
from gwmond.service.host.credentials import credentials, expiring
from tests.build.certificates import of_time, self_signed

DAY_S = 86400.0
NO_EXPORT = Export(Traces())


def openssl_says(cert: str) -> tuple[float, float]:
    """From when to when, by openssl."""
    asked = ["openssl", "x509", "-noout", "-startdate", "-enddate", "-in", cert]
    said = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
    begin, end = (ssl.cert_time_to_seconds(line.partition("=")[2]) for line in said.splitlines())
    return begin, end


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        (datetime(2026, 1, 31, 23, 59, 58, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)),
        (datetime(1999, 2, 28, tzinfo=UTC), datetime(2049, 12, 31, 23, 59, 59, tzinfo=UTC)),
        (datetime(1970, 1, 2, tzinfo=UTC), datetime(2050, 1, 1, tzinfo=UTC)),  # another form
    ],
)
def test_times_are_those_that_openssl_shows(begin: datetime, end: datetime, tmp_path: Path) -> None:
    """Of a chain that which expires first, whatever its place."""
    cert, _ = of_time(tmp_path / "one", begin, end)
    assert openssl_says(cert) == (begin.timestamp(), end.timestamp())
    (one,) = credentials(Config(), NO_EXPORT, Path(cert).read_text())
    assert one == Credential("http.tls_cert", begin.timestamp(), end.timestamp())
    longer, _ = of_time(tmp_path / "two", begin, end + timedelta(seconds=1))
    pems = [Path(path).read_text() for path in (longer, cert)]
    for chain in (pems, pems[::-1]):
        assert credentials(Config(), NO_EXPORT, "text\n".join(chain)) == [one]


def test_the_certificate_for_the_receiver_of_traces(tmp_path: Path) -> None:
    """It is looked at, too; what is no certificate is not."""
    cert, _ = self_signed(tmp_path / "tls")
    export = Export(Traces.model_construct(client_certificate=cert))
    (one,) = credentials(Config(), export, "")
    assert (one.source, (one.issued, one.expires)) == (
        "traces.client_certificate",
        openssl_says(cert),
    )
    for cut in ("", "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----"):
        Path(cert).write_text(cut)
        assert credentials(Config(), export, cut) == []


def token(payload: str) -> str:
    parts = (b'{"alg": "HS256"}', payload.encode(), b"signature")
    return ".".join(urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


def test_tokens(tmp_path: Path) -> None:
    """The first of a file to expire counts; those that never do, and what is none, do not."""
    for name, lines in {
        "never": [token('{"iat": 5}')],
        "none": ["no.token.here", token('{"iat": 1, "exp": "soon"}')],
        "some": [token('{"iat": 5, "exp": 900}'), "# comment", token('{"exp": 800}')],
        ".hidden": [token('{"exp": 7}')],
    }.items():
        (tmp_path / name).write_text("\n".join(lines))
    (tmp_path / "directory").mkdir()
    config = Config.model_validate({"pool": {"token_directory": str(tmp_path)}})
    assert credentials(config, NO_EXPORT, "") == [Credential(f"{tmp_path}/some", None, 800)]
    config = Config.model_validate({"pool": {"token_directory": f"{tmp_path}/gone"}})
    assert credentials(config, NO_EXPORT, "") == []


@pytest.mark.parametrize(
    ("life_days", "warned_days"),
    [(365, 14), (90, 14), (70, 14), (45, 9), (6, 1.2), (1, 0.2), (None, 14)],
)
def test_who_renews_in_time_is_not_warned(life_days: float | None, warned_days: float) -> None:
    """Two weeks before the end, and with a fifth of a short life left."""
    end = 1e9
    one = Credential("x", None if life_days is None else end - life_days * DAY_S, end)
    assert expiring(one, end - warned_days * DAY_S - 1) is None
    told = expiring(one, end - warned_days * DAY_S)
    assert told is not None
    assert (told.source, told.problem) == ("x", "credential_expires")
    assert told.detail.startswith("valid until 2001-09-09 01:46:40 UTC, for ")
    over = expiring(one, end)
    assert over is not None
    assert over.detail == "expired since 2001-09-09 01:46:40 UTC"
