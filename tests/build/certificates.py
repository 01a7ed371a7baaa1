"""Certificates of this host that are signed by themselves."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from pathlib import Path


def self_signed(directory: Path) -> tuple[str, str]:
    """Make a certificate and its key in a directory; return their paths."""
    directory.mkdir(exist_ok=True)
    cert, key = directory / "cert.pem", directory / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", "2", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(key), "-out", str(cert)),
        ],
        check=True,
        capture_output=True,
    )
    return str(cert), str(key)


def of_time(directory: Path, begin: datetime, end: datetime) -> tuple[str, str]:
    """The same, valid from one time to the other."""
    cert, key = self_signed(directory)
    (directory / "index").touch()
    (directory / "ca.cnf").write_text(
        f"[ca]\ndefault_ca = own\n[own]\ndatabase = {directory}/index\n"
        f"new_certs_dir = {directory}\ndefault_md = sha256\npolicy = any\nrand_serial = yes\n"
        "copy_extensions = copy\n[any]\ncommonName = supplied\n"
    )
    request = str(directory / "request.pem")
    first, last = (f"{time.astimezone(UTC):%Y%m%d%H%M%SZ}" for time in (begin, end))
    for command in (
        f"x509 -x509toreq -copy_extensions copyall -in {cert} -signkey {key} -out {request}",
        f"ca -selfsign -batch -notext -config {directory}/ca.cnf -keyfile {key} -in {request} "
        f"-out {cert} -startdate {first} -enddate {last}",
    ):
        subprocess.run(["openssl", *command.split()], check=True, capture_output=True)
    return cert, key
