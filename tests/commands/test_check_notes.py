"""What ``gwmond check`` says besides its verdicts."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pytest

from gwmond.commands import check
from gwmond.config.settings import Config
from gwmond.sources.recording.recorder import Recorder
from gwmond.sources.recording.recording import Writer
from gwmond.sources.round import Targets
from tests.build.otlp_sink import Reply, sink
from tests.pool.adtext import Ad, ad_text
from tests.sources.feigned_access import Feigned
from tests.sources.make import NOW, heard


@pytest.mark.parametrize(("age_s", "noted"), [(60, True), (3600, False)])
def test_a_young_collector_is_noted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], age_s: int, noted: bool
) -> None:
    """It may not know all pilots yet; the note says until when."""
    config = _recorded(tmp_path, age_s)
    check.execute(config, argparse.Namespace(format="table"))
    text = " ".join(capsys.readouterr().out.split())
    assert ("note: cm was started 1m0" in text) == noted, text
    assert ("Pilots may be missing until all have renewed their ads, by" in text) == noted


def test_the_receiver_of_traces_is_tried(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the daemons, in the same table; one that refuses is said with what to do."""
    with sink(Reply(401)) as receiver:
        config = _recorded(tmp_path, 3600, traces={"endpoint": receiver.url})
        for word in ("trace_spans_refused", "ok"):
            check.execute(config, argparse.Namespace(format="table"))
            text = capsys.readouterr().out
            assert re.search(rf"^{receiver.url}/v1/traces +traces +{word}", text, re.M), text
            assert ("what to do: put what the receiver wants" in text) == (word != "ok")
        assert len(receiver.received) == 2


def _recorded(tmp_path: Path, age_s: int, **tables: dict[str, str]) -> Config:
    """A configuration of a recorded pool, whose collector was started so long ago."""
    own: Ad = {
        "Name": "cm",
        "StatsLastUpdateTime": NOW,
        "StatsLifetime": age_s,
        "CondorVersion": "v",
    }
    access = Feigned({("cm", "collector"): (ad_text(heard(own)),)}, str(tmp_path / "log"))
    recorder = Recorder(Config(), Targets(("cm",), (), ()))
    writer = Writer(tmp_path / "pool.zip", recorder.asked())
    writer.add(NOW, recorder.frame(access, NOW))
    writer.close()
    return Config.model_validate(
        {
            "replay": {"file": str(tmp_path / "pool.zip")},
            "ledger": {"url": f"sqlite:///{tmp_path}/ledger.db"},
            **tables,
        }
    )
