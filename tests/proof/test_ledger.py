"""The ledger against the truth of the scenario, as three daemons account it side by side.

One is left alone; one is killed by SIGKILL at eight random moments, and started again; one keeps
its ledger in PostgreSQL.  Categories and outcomes must be exact.  Seconds must be within the
poll's resolution: a pilot that took leave ended at most a poll before it was missed, one that was
killed at most an update of its ads (5 s) after its last contact.  How often a daemon looked is
measured: on a slow machine that is less often than it should, and the killed one did not look at
all for a while.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter

import pytest

from tests.proof import ledger
from tests.proof.compare import compare, compare_seconds, compare_totals
from tests.proof.played import DAEMONS, END_TOLERANCE_S, KILLS, Played

#: The scenario lasts longer on a machine that does much else.
pytestmark = pytest.mark.timeout(2400)

Outcomes = dict[tuple[str, int], tuple[str, str]]


def _without_startds(outcomes: Outcomes) -> Outcomes:
    """Outcomes as they are told without startds' histories.

    Only the startd knows that it was drained, it takes its history with it some seconds later, and
    a daemon that was killed then has missed it.  The category is the same.
    """
    labels = {"drained": "pilot_shutdown"}
    return {of: (category, labels.get(label, label)) for of, (category, label) in outcomes.items()}


@pytest.mark.parametrize("name", DAEMONS)
def test_the_ledger_agrees_with_the_truth(played: Played, name: str) -> None:
    """Each run has its category and outcome, each pilot its seconds."""
    said = ledger.read(played.urls[name])
    assert said.open == []
    resolution = played.resolution_s[name]
    if name != "killed":
        assert compare(said.seconds, said.outcomes, played.truth, resolution) == []
        return
    truth = played.truth.as_seen(said.outcomes, END_TOLERANCE_S, resolution)
    assert _without_startds(said.outcomes) == _without_startds(truth.outcomes())
    assert compare_totals(said.seconds, truth, resolution) == []
    assert compare_seconds(said.seconds, truth, resolution) == []


def test_it_was_killed_often_enough(played: Played) -> None:
    """Eight times, between and within polls."""
    assert played.kills == KILLS


@pytest.mark.parametrize("name", DAEMONS)
def test_the_ledger_proves_itself(played: Played, name: str) -> None:
    """Sums are sums of what is in it, and each pilot's time is divided as its facts say."""
    command = [sys.executable, "-m", "gwmond", "ledger", "check"]
    config = str(played.configs[name])
    done = subprocess.run(
        [*command, "--config", config], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_three_ledgers_agree(played: Played) -> None:
    """The same runs, each once, with the same outcome."""
    ledgers = {name: ledger.read(played.urls[name]) for name in DAEMONS}
    alone = ledgers.pop("alone")
    for name, other in ledgers.items():
        seen = played.truth.as_seen(other.outcomes, END_TOLERANCE_S, played.resolution_s[name])
        expected = {**alone.outcomes, **seen.outcomes()} if name == "killed" else alone.outcomes
        assert _without_startds(other.outcomes) == _without_startds(expected)
        assert len(other.runs) == len(other.outcomes)
        assert {pilot.identity.name for pilot in other.pilots} == {
            pilot.identity.name for pilot in alone.pilots
        }
        assert len(other.pilots) == len(alone.pilots)


@pytest.mark.parametrize("by", ["project", "accounting_group", "schedd", "user"])
def test_by_whom(played: Played, by: str) -> None:
    """Runs are counted for the projects, groups, schedds and users of HTCondor's own records."""
    command = [sys.executable, "-m", "gwmond", "report", "--from", "1d", "--format", "json"]
    options = ["--config", str(played.configs["alone"]), "--by", by]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    said = {group[by]: group["runs_ended"] for group in json.loads(done.stdout)["groups"]}
    runs = {(ad["GlobalJobId"], ad["NumShadowStarts"]): ad for ad in played.dump["epoch"]}
    names = {"project": "ProjectName", "accounting_group": "AcctGroup", "user": "User"}
    assert said == Counter(
        ad["GlobalJobId"].partition("#")[0] if by == "schedd" else ad.get(names[by], "")
        for ad in runs.values()
    )


def test_counters_are_what_is_stored(played: Played) -> None:
    """What Prometheus is shown is the ledger's total, as long as nothing was corrected down."""
    stored: dict[tuple[str, str, str], float] = {}
    for (_, measure, category, _, site, entry, _), micros in ledger.series(
        played.urls["alone"]
    ).items():
        if measure == "canonical":
            key = category, site, entry
            stored[key] = stored.get(key, 0.0) + micros / 1e6
    for key, seconds in stored.items():
        assert played.counters.get(key, 0.0) >= seconds - 1e-6
    assert sum(played.counters.values()) <= sum(stored.values()) * 1.2
