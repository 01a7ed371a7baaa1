"""Pilots whose HTCondor started, and of which no collector can have known."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import pytest

from gwmond.model.pilot_life import Assumption
from gwmond.model.pilots.file_facts import FileFact, PilotOutput
from gwmond.model.pilots.stored_pilots import PilotRow
from gwmond.sources.gwms import pilot_output
from tests.build.gwms import generate
from tests.build.gwms.simulated import one
from tests.build.pilot_files import JOB, SIZE, line, output, queue
from tests.build.play import Play, shown

DENIED = (
    '11/18/26 10:00:00 ERROR: SECMAN:2010:Received "DENIED" from server for user '
    "pilot@example.org using method GSI.\n"
    "11/18/26 10:00:00 Failed to start non-blocking update to <192.0.2.1:9618>.\n"
)
CLAIMED = "11/18/26 10:00:00 slot1_1: Changing state: Unclaimed -> Claimed\n"


def parsed(seconds: int, startd_log: str) -> PilotOutput:
    """The output of a pilot whose HTCondor ran so long, and no job, with this log of its startd."""
    pilot = one("good", cores=4)
    start, _ = pilot.condor or (0, 0)
    pilot = pilot._replace(condor=(start, start + seconds), end=start + seconds + 10, jobs=())
    raw = generate.err(pilot) + generate.log("StartdLog", startd_log.encode())
    return pilot_output.parse("p", generate.out(pilot), raw)


@pytest.mark.parametrize(
    ("seconds", "log", "registered"),
    [
        (3, "", False),  # as GlideinWMS has it: below 5 s all is validation
        (5, "", None),
        (3, DENIED, False),
        (1190, DENIED * 4, False),  # each of its updates
        (1190, DENIED * 3, False),  # three of four: a collector that hears of it does not refuse
        (1190, DENIED * 2, None),
        (1190, DENIED, None),  # one of four
        (1190, DENIED * 4 + CLAIMED, None),
        (1190, "", None),
    ],
)
def test_what_its_output_tells(seconds: int, log: str, registered: bool | None) -> None:
    assert parsed(seconds, log).registered is registered


def test_one_that_ran_a_job_had_registered() -> None:
    pilot = one("good", cores=4)
    raw = generate.err(pilot) + generate.log("StartdLog", (DENIED * 9999).encode())
    assert pilot_output.parse("p", generate.out(pilot), raw).registered is None


def never(**more: object) -> PilotOutput:
    """An output from 0 to 1260 by which HTCondor ran three seconds."""
    return output(0, 1260, registered=False, activations=0, **more)


SUMMARY = line(1300, 1260, condor_s=3, validation=1000)


def played(facts: Sequence[FileFact]) -> PilotRow:
    """The pilot by these, each read long after the one before."""
    play = Play()
    for number, fact in enumerate(facts):
        play.add_facts([*queue(-5, 1265), fact], SIZE)
        play.rest(2000 + 20_000 * number, hours=5)
        play.restart()
    play.rest(100_000)
    play.stored.prove()
    assert not play.accounting.contradictions
    (row,) = play.stored.pilots.values()
    assert set(play.seconds()) == {"validation_fails"}
    return row


@pytest.mark.parametrize("facts", list(permutations([never(), SUMMARY])))
def test_output_and_summary_agree(facts: Sequence[FileFact]) -> None:
    """Whichever comes first; what the output's numbers say is an estimate for the whole pilot."""
    row = played(facts)
    assert row.assumed[Assumption.VALIDATION] == (row.start_us, row.end_us)


def test_by_its_summary_alone() -> None:
    assert played([SUMMARY]).assumed.keys() >= {Assumption.NO_OUTPUT}


@pytest.mark.parametrize("first", [False, True])
def test_one_that_a_collector_showed_had_registered(play: Play, first: bool) -> None:
    """It never ran a job, which is a decision problem, whenever its output is read."""
    if first:
        play.add_facts([never()._replace(end_us=None)], SIZE)
    play.live(0, 1200, [shown(factory_job=JOB)])
    play.rest(1260, hours=1)
    play.add_facts([never()], SIZE)
    play.rest(10_000)
    assert set(play.seconds()) == {"decision_problem"}
    play.stored.prove()
