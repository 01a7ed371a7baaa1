"""Pilots that send output while the next job runs, beside others: the gain is known."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pytest

from gwmond.advise.document import document
from gwmond.advise.gather import Advice
from gwmond.advise.judge import OverlapLine, TrialLine, overlap_lines, trial_lines
from gwmond.advise.tally import EntryTally
from gwmond.model.facts import EntryKey
from gwmond.model.pilots.pilot_facts import AdFacts, PilotFacts
from gwmond.model.pilots.stored_pilots import RunRow
from gwmond.model.runs.run_facts import Transfer
from gwmond.model.times import Period
from gwmond.reports.ledger.ledger_reading import Age
from gwmond.reports.render.document import Document, Sentences
from gwmond.reports.render.writing import text
from gwmond.reports.stored.stored_pilot import StoredPilot
from tests.build import traced
from tests.build.traced import us

KEY = EntryKey("Site-A", "entry-a")
HOUR = 3600
RUN_S, UPLOAD_S, IDLE_S, LIFE_S = 1800, 600, 60, 12 * HOUR


def drawn(number: int, seed: int, *, overlap: bool, since_s: float = 0) -> Iterator[StoredPilot]:
    """Pilots of one core with jobs waiting: runs and uploads are exponential, new slots wait."""
    draw = np.random.default_rng([seed, overlap])
    ads = AdFacts(last_heard_us=us(0), senders=1 if overlap else 0)
    for _ in range(number):
        start = since_s + float(draw.uniform(0, 5 * HOUR))
        end, at = start + LIFE_S * draw.uniform(0.5, 1.5), start + IDLE_S
        runs: list[RunRow] = []
        while True:
            sends = at + draw.exponential(RUN_S)
            done = sends + draw.exponential(UPLOAD_S)
            if done > end:
                break
            run = traced.run(len(runs) + 1, at, done)
            out = Transfer(None, us(sends), us(done), moved=int(10e6 * (done - sends)))
            fact = run.facts[0]._replace(transfer_out=out, yields=overlap)
            runs.append(run._replace(facts=(fact,)))
            at = sends + IDLE_S if overlap else done
        yield StoredPilot(traced.pilot(start, end, facts=PilotFacts(ads=ads)), runs)


def trial(*arms: Iterator[StoredPilot]) -> TrialLine | None:
    found = EntryTally()
    for arm in arms:
        for pilot in arm:
            found.add(pilot)
    lines = trial_lines(KEY, found, "overlap")
    return lines[0] if lines else None


def arms(number: int, seed: int) -> TrialLine:
    line = trial(*(drawn(number, seed, overlap=overlap) for overlap in (True, False)))
    assert line is not None
    return line


def test_the_interval_has_the_true_gain() -> None:
    """In about 9 of 10 trials; the gain is that of many pilots, near (U + R) / (R + I) - 1."""
    truth = arms(300, 0).gain
    assert truth is not None
    assert truth == pytest.approx((UPLOAD_S + RUN_S) / (RUN_S + IDLE_S) - 1, abs=0.04)
    lines = [arms(20, seed) for seed in range(1, 41)]
    covered = [line.interval[0] <= truth <= line.interval[1] for line in lines if line.interval]
    assert len(covered) == len(lines)
    assert 0.75 <= sum(covered) / len(covered) <= 1
    assert all(line.gain is not None and line.gain > 0 for line in lines)


def test_no_overlap_no_gain() -> None:
    """Two arms that do the same differ by chance alone: their interval has 0."""
    found = EntryTally()
    ads = AdFacts(last_heard_us=us(0), senders=1)
    for seed, facts in ((1, PilotFacts(ads=ads)), (2, None)):
        for pilot in drawn(60, seed, overlap=False):
            row = pilot.row if facts is None else pilot.row._replace(facts=facts)
            found.add(StoredPilot(row, pilot.runs))
    (line,) = trial_lines(KEY, found, "overlap")
    assert line.interval is not None
    assert line.interval[0] < 0 < line.interval[1]
    (told,) = json.loads(json.dumps(_told([], [line]).record()))["overlap_trials"]
    assert (told["pilots_with"], told["pilots_without"]) == line.pilots
    assert (told["gain"], told["gain_low"]) == (line.gain, line.interval[0])


def test_pilots_of_another_time_are_not_compared() -> None:
    """Those without overlap that began a week before: there is nothing to compare."""
    line = trial(drawn(60, 1, overlap=True, since_s=7 * 24 * HOUR), drawn(60, 1, overlap=False))
    assert line is not None
    assert (line.gain, line.interval) == (None, None)
    shown = " ".join(text(_told([], [line]), "table", width=200).split())
    assert f"Site-A entry-a {line.group} {line.pilots[0]} {line.pilots[1]} " in shown


def test_without_pilots_that_overlap_there_is_no_trial() -> None:
    assert trial(drawn(60, 1, overlap=False)) is None


@pytest.mark.parametrize(("minutes", "pays"), [(30, True), (0, False)])
def test_the_break_even_of_the_report_of_2010(minutes: int, pays: bool) -> None:
    """At 10 MB/s, and a new slot idle for 60 s, from 600 MB on (section 3.2)."""
    found = EntryTally()
    for number in range(25):
        sends, done = 110 + HOUR, 110 + HOUR + (minutes or 1) * 60 - (0 if minutes else 30)
        run = traced.run(number + 1, 110, done)
        moved = int(10e6) * (done - sends)
        out = Transfer(None, us(sends), us(done), moved=moved)
        fact = run.facts[0]._replace(transfer_out=out)
        row = traced.pilot(0, 9000)
        found.add(StoredPilot(row, [run._replace(facts=(fact,))]))
    (line,) = overlap_lines(KEY, found)
    assert line.overlap is not None
    assert line.rate == 10e6
    assert line.break_even == 600e6
    assert line.overlap.pays is pays
    assert (line.configuration is not None) is pays
    told = _told([line], [])
    text = json.dumps(told.record())
    assert '"break_even_bytes": 600000000.0' in text
    assert ("GLIDEIN_Overlap_Percent" in text) is pays
    shown = [part for part in told.parts() if isinstance(part, Sentences)]
    assert any("GLIDEIN_Overlap_Percent" in str(part) for part in shown) is pays


def test_long_uploads_want_more_senders() -> None:
    """Where one sends for longer than the next one runs, one for each core is not enough."""
    found = EntryTally()
    for number in range(25):
        run = traced.run(number + 1, 110, 110 + 600 + 1500)
        out = Transfer(None, us(110 + 600), us(110 + 600 + 1500))
        found.add(
            StoredPilot(
                traced.pilot(0, 9000),
                [run._replace(facts=(run.facts[0]._replace(transfer_out=out),))],
            )
        )
    (line,) = overlap_lines(KEY, found)
    assert line.break_even is None
    assert line.configuration is not None
    assert 'GLIDEIN_Overlap_Senders" ' in line.configuration
    assert 'value="3"' in line.configuration


def _told(overlaps: list[OverlapLine], trials: list[TrialLine]) -> Document:
    period = Period(us(0), us(9000))
    advice = Advice(period, 25, 25, 0, 1, 0, 0, [], [], [], [], [], overlaps, trials, [])
    return document(advice, Age("", None, 0, stale=False))
