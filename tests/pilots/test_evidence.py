"""On what amounts rest: each rule bears on what follows from it, and on nothing else."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gwmond.config.settings import Config
from gwmond.ledger.store import Ledger
from gwmond.model.facts import Size
from gwmond.model.pilot_life import BEARS, Assumption, divided
from gwmond.model.pilots.file_facts import PilotOutput
from gwmond.model.runs.run_facts import Source
from gwmond.model.times import HOUR_US, Period
from gwmond.model.units import RESOURCES
from gwmond.pilots.accounting import PilotAccounting
from gwmond.pilots.life.rules import Rules
from gwmond.reports.report.gather import gather
from gwmond.reports.report.report import Scope
from tests.build.accounting import Steps
from tests.build.pilot_files import output, us
from tests.build.pilots import S
from tests.build.play import Play, record
from tests.build.played import add_outputs

MEASURED, ESTIMATED = "measured", "estimated"


def spent(play: Play) -> dict[tuple[str, str, str], set[str]]:
    """On what each resource, measure and category rests."""
    found: dict[tuple[str, str, str], set[str]] = {}
    for series in play.series():
        key = series.resource, series.measure, series.category.value
        found.setdefault(key, set()).add(series.evidence)
    return found


def counted(play: Play) -> dict[tuple[str, str], float]:
    """Canonical seconds that rest on rules, by resource and rule."""
    sums: Counter[tuple[str, str]] = Counter()
    for key, micros in play.stored.counts.items():
        if key.what in {"assumed", "assumed_gpu"}:
            sums["cpu" if key.what == "assumed" else "gpu", key.outcome] += micros
    return {of: micros / S for of, micros in sums.items() if micros}


def busy(**more: Any) -> PilotOutput:
    """An output that tells of a run of two cores."""
    run = record("1.0", 100, 700, source=Source.STARTD_HISTORY, startd="", cores=2)
    return output(records=(run,), **more)


def test_an_assumed_number_of_gpus(play: Play) -> None:
    """CPU time does not rest on it; GPU time does, in seconds of GPUs."""
    others = [output(gpus=2, name=output().name._replace(proc=n)) for n in (1, 2)]
    add_outputs(play, *others, at=2000)
    add_outputs(play, busy(), at=60_000)
    (row,) = (pilot for pilot in play.stored.pilots.values() if pilot.assumed)
    assert set(row.assumed) == {Assumption.GPUS}
    found = spent(play)
    assert {key[0] for key, of in found.items() if ESTIMATED in of} == {"gpu"}
    assert found["gpu", "resource", "pilot_overhead"] == {ESTIMATED}
    assert found["gpu", "canonical", "decision_problem"] == {MEASURED}
    assert counted(play) == {("gpu", "gpus"): 2 * 1200.0}
    play.stored.prove()


def test_an_assumed_size(play: Play) -> None:
    """How many units a run gets rests on it, as what is left beside it does; GPUs do not."""
    add_outputs(play, busy(cores=None, memory_mib=None, gpus=1), expected={"entry": Size(8, 16000)})
    assert spent(play) == {
        ("cpu", "resource", "goodput"): {MEASURED},
        ("cpu", "canonical", "goodput"): {ESTIMATED},
        ("cpu", "resource", "pilot_overhead"): {ESTIMATED},
        ("cpu", "canonical", "pilot_overhead"): {ESTIMATED},
        ("gpu", "resource", "pilot_overhead"): {MEASURED},
        ("gpu", "canonical", "pilot_overhead"): {MEASURED},
    }
    assert counted(play) == {("cpu", "size"): 8 * 1200.0}
    play.stored.prove()
    add_outputs(play, busy(gpus=1), at=60_000)  # it tells its size after all
    assert {name for some in spent(play).values() for name in some} == {MEASURED}
    assert counted(play) == {}
    play.stored.prove()


def test_gpus_that_only_its_runs_tell_of(play: Play) -> None:
    """Neither its cores nor its GPUs are told: it had what its runs held."""
    run = record("1.0", 100, 700, source=Source.STARTD_HISTORY, startd="")
    run = run._replace(fact=run.fact._replace(size=Size(1, 2000, 1)))
    add_outputs(play, output(records=(run,), cores=None, memory_mib=None))
    assert spent(play)["gpu", "resource", "pilot_overhead"] == {ESTIMATED}
    play.stored.prove()


def test_the_end_bears_on_both(play: Play) -> None:
    """When a pilot ended decides how long it had its cores and its GPUs."""
    add_outputs(play, output(end=None, gpus=1, condor_start_us=us(0), condor_end_us=us(900)))
    assert {name for some in spent(play).values() for name in some} == {ESTIMATED}
    assert counted(play)["cpu", "end"] == 4 * counted(play)["gpu", "end"] == 4 * 900.0


def test_time_under_two_rules_counts_once(play: Play) -> None:
    """Under the first: nothing says when a pilot ended, nor how large it was."""
    cut = output(end=None, condor_start_us=us(0), condor_end_us=us(900))
    unknown = cut._replace(cores=None, memory_mib=None)
    add_outputs(play, unknown, expected={"entry": Size(4, 8000)})
    (row,) = play.stored.pilots.values()
    assert {Assumption.END, Assumption.SIZE} <= set(row.assumed)
    assert counted(play) == {("cpu", "end"): 4 * 900.0}
    play.stored.prove()


@given(
    st.dictionaries(st.sampled_from(Assumption), st.tuples(st.integers(0, 9), st.integers(0, 9)))
)
def test_each_moment_has_one_rule(assumed: dict[Assumption, tuple[int, int]]) -> None:
    """The first of those that apply to a resource then; and no other moment has any."""
    for resource in RESOURCES:
        expected = {
            moment: next(
                rule
                for rule in Assumption
                if rule in BEARS[resource] and _covers(assumed.get(rule), moment)
            )
            for moment in range(10)
            if any(_covers(assumed.get(rule), moment) for rule in BEARS[resource])
        }
        found = [
            (moment, rule)
            for rule, (start, end) in divided(assumed, resource)
            for moment in range(start, end)
        ]
        assert (len(found), dict(found)) == (len(expected), expected)


def _covers(within: tuple[int, int] | None, moment: int) -> bool:
    return within is not None and within[0] <= moment < within[1]


@pytest.mark.parametrize("by", [("user",), ("node",), ("site",)])
def test_the_ledger_and_reports_agree(tmp_path: Path, by: tuple[str, ...]) -> None:
    """By runs, by pilots, by hours: what is said of a run on a pilot of an assumed size."""
    with Ledger.open(f"{tmp_path}/ledger.sqlite") as ledger:
        steps = Steps(PilotAccounting(ledger.load(), Rules()), ledger)
        steps.add_facts([busy(cores=None, memory_mib=None, gpus=1)])
        for at in (2000, 20_000, 50_000):
            steps.settle(us(at), us(at))
            steps.store(us(at))
        assert not any(check_pilot.micros for check_pilot in ledger.check())
        since = us(0) // HOUR_US * HOUR_US
        scope = Scope(Period(since, since + 24 * HOUR_US), by)
        total = gather(ledger, scope, Config()).total
        (run,) = (run_key for some in ledger.runs_of([1, 0]).values() for run_key in some)
    assert total.estimated is not None
    own = 0 if by == ("user",) else 2 * 1200 * S - run.settled["cpu", "canonical"]
    assert total.estimated["cpu", "canonical"] == own + run.settled["cpu", "canonical"]
    assert total.estimated["gpu", "canonical"] == 0
    if by == ("user",):
        assert total.estimated["cpu", "resource"] == 0
