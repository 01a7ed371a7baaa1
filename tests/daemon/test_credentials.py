"""A daemon whose certificate and token expire, and are renewed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.build.certificates import of_time
from tests.daemon.running import RunningDaemon, Tables, gwmond, patient
from tests.pool.condor import CondorPool
from tests.pool.ports import free_port
from tests.pool.sandbox import wait_until
from tests.pool.tokens import TOKEN_POOL, make_key

EXPIRY = "gwmond_credential_expiry_timestamp_seconds"


def test_what_expires_is_told_until_it_is_renewed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the log, as a problem and as a metric; by what is served, not by a file that is no use."""
    now = datetime.now(UTC).replace(microsecond=0)
    soon, later = now + timedelta(days=3), now + timedelta(days=60)
    cert, key = of_time(tmp_path / "tls", now - timedelta(days=27), soon)
    renewed, new_key = of_time(tmp_path / "new", now - timedelta(days=1), later)
    trusted = tmp_path / "trusted.pem"
    trusted.write_text(Path(cert).read_text())
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    tokens = tmp_path / "tokens"
    tokens.mkdir()
    with CondorPool(config=TOKEN_POOL) as pool:
        make_key(pool)
        for name, lifetime in (("short", ("-lifetime", "5000")), ("endless", ())):
            made = pool.tool("condor_token_create", "-identity", "gwmond@pool.test", *lifetime)
            assert made.returncode == 0, made.stderr
            (tokens / name).write_text(made.stdout)
    tables: Tables = {
        **patient(1),
        "pool": {"collectors": [f"127.0.0.1:{free_port()}"], "token_directory": str(tokens)},
        "http": {"tls_cert": cert, "tls_key": key},
    }
    daemon = RunningDaemon(tmp_path, [], tables)
    daemon.url = daemon.url.replace("http:", "https:")
    with daemon:
        metrics = daemon.metrics()
        assert metrics.value(EXPIRY, source="http.tls_cert") == soon.timestamp()
        assert metrics.value(EXPIRY, source=f"{tokens}/short") == pytest.approx(
            now.timestamp() + 5000, abs=60
        )
        assert metrics.value(EXPIRY, source=f"{tokens}/endless") is None
        told = daemon.log("problem", problem="credential_expires")
        assert [one["source"] for one in told] == ["http.tls_cert"]
        assert f"valid until {soon:%Y-%m-%d %H:%M:%S} UTC" in told[0]["detail"]
        checked = gwmond("check", "--config", str(daemon.config))
        assert "credential_expires" in checked.stdout, checked.stdout

        Path(renewed).replace(cert)
        wait_until("a refusal", lambda: daemon.log("new certificate not used, the old one stays"))
        assert daemon.next_polls().value(EXPIRY, source="http.tls_cert") == soon.timestamp()
        trusted.write_text(Path(cert).read_text())
        Path(new_key).replace(key)
        wait_until("its use", lambda: daemon.log("new certificate used"))
        daemon.wait_for(EXPIRY, {"source": "http.tls_cert"}, lambda at: at == later.timestamp())
        over = {"problem": "credential_expires", "source": "http.tls_cert"}
        wait_until("its end", lambda: daemon.log("problem over", **over))
