"""Since when more is lost, and what was changed: the demo's week, and statistics beside SciPy's."""

from __future__ import annotations

import json
import sqlite3
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random

import pytest
from scipy import stats

from gwmond.ledger.reading.reader import LedgerReader
from gwmond.ledger.store import Ledger
from gwmond.model.entries.changes import Changed, Value, ValueKey
from gwmond.model.facts import Place
from gwmond.model.poll.batch import Batch
from gwmond.model.times import HOUR_US, SECOND_US, Period
from gwmond.reports.changes import since
from gwmond.reports.changes.gather import Found, found_in
from gwmond.reports.changes.since import HourlyShare, effect, stretch, told
from tests.promql import ROOT
from tests.simulator.story import EVENTS, What
from tests.simulator.world import BEGINS, PRESENT_H

WEEK = Period(BEGINS * SECOND_US, round((BEGINS + PRESENT_H * 3600) * SECOND_US))
(NECKAR,) = [event for event in EVENTS if event.where == "Neckar"]
CHANGED_US = WEEK.since_us + round(NECKAR.begins_h) * HOUR_US


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What gwmond accounted in that week; a START and a limit were changed, and nothing else."""
    directory = tmp_path_factory.mktemp("week")
    with zipfile.ZipFile(ROOT / "gwmond" / "data" / "demo.zip") as archive:
        file = Path(archive.extract("past/ledger.sqlite", directory))
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("DELETE FROM changes")
    start = ValueKey("Neckar", "Neckar_ce1", "open.main", Changed.START)
    values = [Value(start, WEEK.since_us - 1, "old"), Value(start, CHANGED_US, "new")]
    for entry in ("Danube_ce1", "Elbe_ce1"):
        key = ValueKey(entry.removesuffix("_ce1"), entry, "", Changed.MAX_PILOTS)
        values += [Value(key, WEEK.since_us - 1, "10"), Value(key, CHANGED_US - HOUR_US, "20")]
        values += [Value(key, WEEK.until_us + 1, "30")]
    with Ledger.open(str(file)) as opened:
        before = opened.load().batches
        opened.commit(Batch(before=before, now_us=WEEK.until_us, values=tuple(values)))
    return file


@pytest.fixture(scope="module")
def found(ledger: Path) -> Found:
    with LedgerReader.open(str(ledger)) as reader:
        return found_in(reader, WEEK, Place())


def test_what_lasts_is_told_with_its_begin_and_what_was_changed_then(found: Found) -> None:
    """Pilots fail at Neckar; at Loire none is requested, which shows as the last ones end."""
    neckar, loire = sorted(found.losses, key=lambda loss: loss.place.site)[::-1]
    assert (neckar.place, neckar.name) == (Place("Neckar"), "validation_fails")
    assert 0 <= neckar.since.first - NECKAR.begins_h <= 3
    assert neckar.since.within == pytest.approx(NECKAR.share, abs=0.1)
    assert neckar.since.end == PRESENT_H
    assert neckar.effect is not None
    assert neckar.effect.low <= NECKAR.share <= neckar.effect.high
    assert [(change.name, change.after) for change in neckar.changes] == [("start", "new")]
    (blind,) = [event for event in EVENTS if event.what is What.MISCONFIGURED]
    assert (loire.place, loire.name) == (Place("Loire"), "provisioning_bottleneck")
    assert blind.begins_h <= loire.since.first <= blind.begins_h + 24
    assert loire.changes == ()
    assert loire.hours > neckar.hours > 0


def test_what_was_changed_at_several_entries_at_once_is_one_change(found: Found) -> None:
    """Only what was changed in the period; the effect is on goodput, against other sites."""
    limit, start = found.changes
    assert (limit.time_us, limit.name, limit.before, limit.after) == (
        *(CHANGED_US - HOUR_US, "max_pilots"),
        *("10", "20"),
    )
    assert [place.site for place in limit.places] == ["Danube", "Elbe"]
    assert limit.effect is not None
    assert limit.effect.low <= 0 <= limit.effect.high
    assert start.effect is not None


def test_a_place_and_a_short_period(ledger: Path) -> None:
    with LedgerReader.open(str(ledger)) as reader:
        at = found_in(reader, WEEK, Place("Neckar"))
        short = found_in(reader, Period(WEEK.until_us - 40 * HOUR_US, WEEK.until_us), Place())
    assert {loss.place for loss in at.losses} == {
        Place("Neckar"),
        Place("Neckar", "Neckar_ce1"),
        Place("Neckar", "", "open.main"),
    }
    assert [change.name for change in at.changes] == ["start"]
    assert (short.too_short, short.losses, len(short.changes)) == (True, (), 2)


def test_the_command_says_it_and_json_has_the_same(
    printed: Callable[..., str], ledger: Path
) -> None:
    command = "changes", "--ledger", ledger, "--from", "2026-03-11", "--to", "2026-03-18T10:00:00Z"
    text = printed(*command, "--format", "markdown")
    assert "| 2026-03-17 13:00 | it lasts | Neckar | validation fails | pilots that ended |" in text
    assert "start: old to new" in text
    said = json.loads(printed(*command, "--format", "json"))
    assert [loss["site"] for loss in said["losses"]] == ["Loire", "Neckar"]
    assert [change["after"] for change in said["changes"]] == ["20", "new"]
    assert said["losses"][1]["changes"] == said["changes"][1:]


def _draw(seed: int, share: float = 0.1, begin: int = 168, then: float = 0.1) -> HourlyShare:
    """A week of hours of ten trials each, of which another share fails from an hour on."""
    draw = Random(seed)
    shares = [share if hour < begin else then for hour in range(168)]
    return HourlyShare(
        [float(sum(draw.random() < x for _ in range(10))) for x in shares], [10.0] * 168
    )


def test_chance_alone_is_seldom_told() -> None:
    """Of independent series one in twenty is as unlikely as that; of twenty together none."""
    chances = [found.chance for n in range(40) if (found := stretch(_draw(n), 3))]
    assert len(chances) == 40
    assert sum(chance <= 0.05 for chance in chances) <= 6
    assert not any(told(chances))


def test_a_larger_share_is_told_with_its_begin() -> None:
    found = stretch(_draw(1, begin=100, then=0.4), 3)
    assert found is not None
    assert (found.chance, found.end) == (1 / 20_000, 168)
    assert abs(found.first - 100) <= 2
    assert found.within == pytest.approx(0.4, abs=0.05)
    assert found.is_seen
    before = stretch(_draw(1, share=0.4, begin=60), 3)
    assert before is not None
    assert (before.first <= 1, before.is_seen) == (True, before.first > 0)
    assert stretch(_draw(1, begin=100, then=0.4), 12) is None  # too few blocks
    assert stretch(_draw(1, share=0.001, then=0.001), 3) is None  # too little is lost


def test_what_is_told_of_many_and_quantiles_are_those_of_scipy() -> None:
    draw = Random(3)
    for _ in range(20):
        chances = [draw.random() ** 4 for _ in range(30)]
        expected = list(stats.false_discovery_control(chances) <= since.FALSE)
        assert told(chances) == expected
    for free in (4, 5, 10, 100):
        assert since._t(free) == pytest.approx(float(stats.t.ppf(0.975, free)), rel=0.005)


def test_an_effect_is_what_others_did_not_do() -> None:
    """All rise by 0.1, one by 0.2 more; without it there is none; of few others nothing is said."""
    before, after = slice(76, 100), slice(100, 124)
    others = [_draw(n, begin=100, then=0.2) for n in range(10)]
    found = effect(_draw(99, begin=100, then=0.4), others, before, after, 3)
    assert found is not None
    assert found.low <= 0.2 <= found.high
    assert found.low > 0
    assert found.placebos == 10
    none = effect(_draw(98, begin=100, then=0.2), others, before, after, 3)
    assert none is not None
    assert none.low <= 0 <= none.high
    assert effect(others[0], others[:4], before, after, 3) is None
    assert effect(others[0], others, slice(96, 100), after, 3) is None
