"""Since when a collector runs: by its own ad, else by what else it holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from gwmond.sources import tasks
from gwmond.sources.htcondor.access import Terms
from gwmond.sources.htcondor.collector import CollectorInfo
from tests.sources.feigned_access import Feigned
from tests.sources.make import ATTRIBUTES

NOW = 1_700_000_000.5
OWN = '[ StatsLastUpdateTime = 1699999900; StatsLifetime = 900; CondorVersion = "v" ]'
MASTER = "[ COLLECTOR_StartTime = 1699998700; UpdatesTotal = 1 ]"
PILOT = "[ UpdatesTotal = 3 ]"


@pytest.mark.parametrize(
    ("own", "masters", "expected"),
    [
        ((OWN,), (), CollectorInfo(1_699_999_000, "v")),
        # CLASSAD_LIFETIME is below COLLECTOR_UPDATE_INTERVAL: a missing ad is no restart.
        ((), (MASTER,), CollectorInfo(1_699_998_700, "", own_ad=False)),
        ((), (PILOT, MASTER), CollectorInfo(1_699_998_700, "", own_ad=False)),
        # Only pilots' masters, of which one has renewed its ad twice: since when is not known.
        ((), (PILOT,), CollectorInfo(None, "", own_ad=False)),
        # Nothing: it has just been started.
        ((), (), CollectorInfo(1_700_000_000, "", own_ad=False)),
        ((), ("!unreachable",), CollectorInfo(1_700_000_000, "", own_ad=False)),
    ],
)
def test_since_when_a_collector_runs(
    tmp_path: Path, own: tuple[str, ...], masters: tuple[str, ...], expected: CollectorInfo
) -> None:
    """Its master knows when it was started."""
    answers = {("cm", "collector"): own, ("cm", "masters"): masters}
    access = Feigned(answers, str(tmp_path / "log"))
    found, ads = tasks.ask(Terms(access, "cm", ATTRIBUTES, NOW), "collector")
    assert (found, ads) == (expected, len(own))
