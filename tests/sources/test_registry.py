"""The registry of sources: one record a kind, from which everything that asks follows."""

from __future__ import annotations

from pathlib import Path

import pytest

from gwmond.config.settings import Config
from gwmond.sources import tasks
from gwmond.sources.htcondor.access import Terms
from gwmond.sources.htcondor.collector import CollectorInfo
from gwmond.sources.recording.recorder import Recorder
from gwmond.sources.registry import POOL_SOURCES, SOURCES, WMS_SOURCES
from gwmond.sources.round import Targets
from tests.pool.adtext import ad_text
from tests.pool.feign import glidein, partitionable_slot
from tests.sources.feigned_access import Feigned
from tests.sources.make import ATTRIBUTES, NOW, heard


@pytest.mark.parametrize("kind", SOURCES)
def test_a_source_is_known_by_the_kind_of_its_query(kind: str, tmp_path: Path) -> None:
    """So what is recorded of it is found in a replay; without ads it has an answer, too."""
    terms = Terms(Feigned({}, str(tmp_path / "log")), "cm", ATTRIBUTES, NOW)
    query = SOURCES[kind].query(terms)
    assert query.kind == kind
    assert SOURCES[kind].whole == (not query.projection) or kind == "factoryclient"
    assert tasks.ask(terms, kind)[1] == 0


def test_a_recording_has_all_that_is_registered(tmp_path: Path) -> None:
    """Of collectors and of WMS collectors; templates follow from the slots."""
    slot = ad_text(heard(partitionable_slot("p", started=NOW, now=NOW, glidein=glidein())))
    access = Feigned({("cm", "slots"): (slot,)}, str(tmp_path / "log"))
    frame = Recorder(Config(), Targets(("cm",), ("wms",), ())).frame(access, NOW)
    assert set(frame) == {
        *(f"collector/cm/{source.kind}" for source in POOL_SOURCES),
        *(f"collector/wms/{source.kind}" for source in WMS_SOURCES),
        "collector/cm/templates",
    }
    assert len(frame["collector/cm/slots"]) == 1


def test_a_problem_of_this_hosts_collector_has_its_name(tmp_path: Path) -> None:
    """It is shown as local, as its queries are."""
    nameless = ad_text(heard({"State": "Claimed", "GlobalJobId": "ap#1.0#1"}))
    access = Feigned({("", "claims"): (nameless,)}, str(tmp_path / "log"))
    found, _ = tasks.ask(Terms(access, "", ATTRIBUTES, NOW), "claims")
    assert [(problem.source, problem.problem) for problem in found.problems] == [
        ("local", "no_name")
    ]


# -- since when a collector runs: by its own ad, else by what else it holds


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
    found, ads = tasks.ask(Terms(access, "cm", ATTRIBUTES, NOW + 0.5), "collector")
    assert (found, ads) == (expected, len(own))
