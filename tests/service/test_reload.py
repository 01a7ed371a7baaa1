"""Reading the configuration again, without a pool."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gwmond.config.settings import Config, ConfigError
from gwmond.model.poll.snapshot import Snapshot
from gwmond.service import daemon as module
from gwmond.service.daemon import Service
from gwmond.service.poller import Poller
from tests.build.snapshots import snapshot


class Scheduler:
    """Notes what is planned."""

    def __init__(self) -> None:
        self.planned: list[tuple[str, dict[str, Any]]] = []

    def reschedule_job(self, _job: str, **options: Any) -> None:
        self.planned.append(("reschedule", options))

    def modify_job(self, _job: str, **options: Any) -> None:
        self.planned.append(("modify", options))


class Reloading:
    """A daemon of which only the reload is tried: its polls ask nobody."""

    def __init__(self, tmp_path: Path) -> None:
        self.options: dict[str, Any] = {
            "http": {"listen": "127.0.0.1:0"},
            "ledger": {"url": f"{tmp_path}/ledger.sqlite"},
        }
        self.error = ""
        self.failed: list[str] = []
        self.daemon = Service(self.read(), self.read)
        self.scheduler = Scheduler()

    def read(self) -> Config:
        if self.error:
            raise ConfigError(self.error)
        return Config.model_validate(self.options)

    def reload(self) -> None:
        self.daemon.read_again(self.scheduler)
        self.daemon.poll_once()


@pytest.fixture
def reloading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reloading]:
    def poll(_self: Poller, _noticed: object = ()) -> Snapshot:
        return snapshot()

    monkeypatch.setattr(Poller, "poll", poll)
    found = Reloading(tmp_path)
    monkeypatch.setattr(Poller, "failed", lambda _self, problem: found.failed.append(problem))
    monkeypatch.setattr(module, "configure", lambda _options: None)
    yield found
    found.daemon.listener.close()


def test_new_configuration_holds_from_the_next_poll(reloading: Reloading) -> None:
    """What was read again holds, and the next poll is planned by the new interval."""
    reloading.options |= {"poll": {"interval": "90s"}, "metrics": {"series_budget": 7}}
    reloading.reload()
    assert reloading.daemon.config == reloading.read()
    assert reloading.scheduler.planned[0][1]["seconds"] == 90
    assert reloading.daemon.snapshot is not None


def test_log_is_configured_again(reloading: Reloading, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new level of the log holds without a restart."""
    levels = []
    monkeypatch.setattr(module, "configure", lambda options: levels.append(options.level))
    reloading.options |= {"log": {"level": "debug"}}
    reloading.reload()
    assert levels == ["debug"]


def test_bad_configuration_is_refused(reloading: Reloading) -> None:
    """A configuration that cannot be keeps the old one, and is counted."""
    before = reloading.daemon.config

    reloading.error = "gwmond.toml: bad"
    reloading.reload()
    assert reloading.daemon.config is before
    assert reloading.scheduler.planned == []
    assert reloading.failed == ["bad_configuration"]


def test_recording_that_cannot_be_read_is_refused(reloading: Reloading) -> None:
    """A replay of no recording is a bad configuration, and polls go on as before."""
    before = reloading.daemon.config
    reloading.options |= {"replay": {"file": "/no/such/recording.zip"}}
    reloading.reload()
    assert reloading.daemon.config is before
    assert reloading.failed == ["bad_configuration"]
    assert reloading.daemon.snapshot is not None


def test_poll_that_fails_is_counted(reloading: Reloading, monkeypatch: pytest.MonkeyPatch) -> None:
    """A poll that fails for whatever reason is counted, and the next one is tried."""

    def fail(_self: Poller) -> Snapshot:
        raise ZeroDivisionError

    with monkeypatch.context() as broken:
        broken.setattr(Poller, "poll", fail)
        reloading.daemon.poll_once()
    assert reloading.daemon.ready() != ""
    assert reloading.failed == ["poll_failed"]
    reloading.daemon.poll_once()
    assert reloading.daemon.ready() == ""
    assert b"gwmond_site_state" in reloading.daemon.exposition.text
