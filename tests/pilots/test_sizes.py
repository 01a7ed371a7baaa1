"""The size of a pilot of which it is not told, or not wholly."""

from __future__ import annotations

import pickle
from functools import partial
from pathlib import Path

import pytest

from gwmond.ledger.store import Ledger
from gwmond.model.facts import EntryKey, Size
from gwmond.model.pilot_life import Assumption, SizeStep, Validation
from gwmond.model.poll.pilot_keys import PilotKeys
from gwmond.model.runs.run_facts import Source
from gwmond.model.times import SECOND_US
from gwmond.model.units import MAX_CORES
from gwmond.pilots.accounting import PilotAccounting
from gwmond.pilots.life.rules import Rules
from gwmond.pilots.memory.sizes import Sizes, expected_sizes
from gwmond.sources.gwms import pilot_out
from tests.build.accounting import Steps
from tests.build.facts import request
from tests.build.pilot_files import JOB, output, us
from tests.build.play import T0, Play, claim, record, shown
from tests.build.played import add_outputs

SIZE, GPUS = Assumption.SIZE, Assumption.GPUS
ONLY_SIZE, ONLY_GPUS, NONE = frozenset({SIZE}), frozenset({GPUS}), frozenset[Assumption]()


def test_what_is_told_is_believed() -> None:
    """Nothing is assumed then, whatever others have."""
    sizes = Sizes(2000)
    sizes.note("entry", 8, 16000, 2)
    assert sizes.fill("entry", 4, 8000, 0)[:2] == (Size(4, 8000, 0), NONE)


@pytest.mark.parametrize(
    ("told", "size"),
    [
        ((None, None), Size(1, 2000)),
        ((4, None), Size(4, 8000)),
        ((None, 8000), Size(1, 8000)),
        ((0, 1), Size(1, 2000)),
        ((-4, -1), Size(1, 2000)),
        ((4, 1), Size(4, 8000)),
        ((999_999_999, 8000), Size(1, 8000)),
        ((4, 10**12), Size(4, 8000)),
        ((float("nan"), float("inf")), Size(1, 2000)),
    ],
)
def test_where_nothing_is_known(told: tuple[float | None, float | None], size: Size) -> None:
    """One canonical unit a core; dummies are not believed."""
    assert Sizes(2000).fill("entry", *told, 0)[:2] == (size, ONLY_SIZE)


def test_the_most_frequent_of_the_entry() -> None:
    """Before what is expected of it; other entries do not matter."""
    sizes = Sizes(2000)
    sizes.expect({"entry": Size(16, 32000)})
    for cores in (4, 8, 8):
        sizes.note("entry", cores, cores * 2000, None)
    sizes.note("other", 64, 1e6, None)
    sizes.note("entry", 64, 1, None)  # a dummy
    assert sizes.fill("entry", gpus=0).size == Size(8, 16000)
    assert sizes.fill("third", gpus=0).size == Size(1, 2000)


@pytest.mark.parametrize(
    ("told", "size"),
    [
        ((4, None), (4, 8000)),  # most with as many cores
        ((8, None), (8, 15_000)),  # of those that are as frequent the least
        ((16, None), (16, 32_000)),  # none has as many: as much for each core as most have
        ((0.001, None), (0.001, 16)),
        ((None, 16_000), (8, 16_000)),
        ((None, 8000), (4, 8000)),
        ((None, 3000), (2, 3000)),  # whole cores
        ((None, 500), (1, 500)),
        ((None, None), (4, 8000)),
    ],
)
def test_what_is_told_goes_with_what_fits_to_it(
    told: tuple[float | None, float | None], size: tuple[float, float]
) -> None:
    """Cores of one size and the memory of another are no size."""
    sizes = Sizes(2000)
    for number, (cores, memory) in enumerate([(8, 15_000), (4, 9000), (4, 8000), (8, 16_000)]):
        sizes.note("entry", cores, memory, 0, number=(1, 2, 3, 1)[number])
    assert sizes.fill("entry", *told, 0).size[:2] == size
    sizes.expect({"expected": Size(8, 32_000)})
    assert sizes.fill("expected", 2, None, 0).size[:2] == (2, 8000)
    assert sizes.fill("expected", None, 16_000, 0).size[:2] == (4, 16_000)


def test_gpus_only_where_the_entry_has_any() -> None:
    """Elsewhere none is right, and nothing was assumed."""
    sizes = Sizes(2000)
    sizes.note("with", 8, 16000, 2)
    sizes.note("without", 8, 16000, 0)
    sizes.expect({"expected": Size(8, 16000, 1), "without": Size(8, 16000, 1)})
    assert sizes.fill("with", 8, 16000)[:2] == (Size(8, 16000, 2), ONLY_GPUS)
    assert sizes.fill("without", 8, 16000)[:2] == (Size(8, 16000), NONE)
    assert sizes.fill("expected", 8, 16000)[:2] == (Size(8, 16000, 1), ONLY_GPUS)
    assert sizes.fill("unknown", 8, 16000)[:2] == (Size(8, 16000), NONE)


def test_the_memory_of_an_entry_is_bounded() -> None:
    """An entry whose pilots are all different costs no more than a hundred sizes."""
    sizes = Sizes(2000)
    for n in range(5000):
        sizes.note("entry", 8, 16000 + n, n)
        sizes.note("entry", 8, 16000, 0)
    assert sizes.fill("entry")[:2] == (Size(8, 16000), ONLY_SIZE)
    assert len(pickle.dumps(sizes)) < 2000


def test_expected_of_the_ad_heard_last() -> None:
    """An entry has an ad for each group; one that has no size tells none."""
    key = EntryKey("Site", "entry")
    old = request(key, pilot_size=Size(4, 8000), last_heard=1)
    new = request(key, pilot_size=Size(8, 16000, 1), last_heard=2)
    none = request(key, pilot_size=None, last_heard=3)
    assert expected_sizes([none, new, old]) == {"entry": Size(8, 16000, 1)}
    assert expected_sizes([none]) == {}


def test_a_slot_whose_size_makes_no_sense(play: Play) -> None:
    """Its pilot is as large as the entry's others until its size is told."""
    play.live(0, 300, [shown("other@node", cores=8, memory=16000)])
    bad = shown("bad@node")._replace(size=None)
    play.live(360, 960, [bad, shown("other@node", cores=8, memory=16000)])
    row = play.pilot("bad@node")
    assert row.steps[0].size == Size(8, 16000)
    assert set(row.assumed) == {SIZE}
    play.live(1020, 1260, [shown("bad@node", cores=4, memory=8000)])
    row = play.pilot("bad@node")
    assert (row.steps[0].size, row.assumed) == (Size(4, 8000), {})
    play.live(1320, 1560, [bad])  # what was told once is not forgotten
    play.rest(1620)
    row = play.pilot("bad@node")
    assert (row.steps[0].size, row.assumed) == (Size(4, 8000), {})
    assert play.seconds()["decision_problem"] == 4 * 1560.0 + 8 * 960.0


def test_one_whose_size_is_never_told(play: Play) -> None:
    """All of it is estimated, from its beginning to its end."""
    play.live(0, 1200, [shown()._replace(size=None)])
    play.rest(1260)
    row = play.pilot()
    assert row.assumed == {SIZE: (row.start_us, row.end_us)}
    assert play.seconds() == {"decision_problem": 1200.0}
    assert {series.evidence for series in play.series()} == {"estimated"}


def test_the_gpus_of_an_output(play: Play) -> None:
    """They are those of the entry's other pilots, and said to be estimated."""
    play.live(0, 300, [shown("other@node", cores=8, memory=16000, gpus=1)])
    add_outputs(play, output(validation=Validation.FAILED))
    (row,) = (pilot for pilot in play.stored.pilots.values() if pilot.identity.origin == "files")
    assert row.steps[0].size == Size(4, 8000, 1)
    assert row.assumed == {GPUS: (row.start_us, row.end_us)}


def test_absurd_sizes_are_not_learnt() -> None:
    """Neither of pilots nor of what is expected of them; nobody has so many GPUs."""
    sizes = Sizes(2000)
    sizes.note("most", None, None, MAX_CORES)
    assert sizes.fill("most").size.gpus == MAX_CORES
    sizes.expect({"entry": Size(10**9, 8000)})
    sizes.note("entry", 4, 10**12, 10**12)
    assert sizes.fill("entry", gpus=10**12)[:2] == (Size(1, 2000), ONLY_SIZE)


@pytest.mark.parametrize("absurd", [{"cores": 10**9, "memory_mib": 10**9}, {"gpus": 10**12}])
def test_an_absurd_size_can_be_stored(tmp_path: Path, absurd: dict[str, int]) -> None:
    """One number of one pilot does not stop the accounting of all."""
    with Ledger.open(f"{tmp_path}/ledger.sqlite") as ledger:
        steps = Steps(PilotAccounting(ledger.load(), Rules()), ledger)
        steps.add_facts([output(0, 30_000, **absurd)])
        now_us = us(100_000)
        steps.settle(now_us, now_us)
        steps.store(now_us)
        (row,) = ledger.fetch(PilotKeys(factory_numbers={"7.0"})).pilots
        assert row.closed


def test_a_pilot_that_an_earlier_release_took_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """1 core and 1900 MiB: what was posted stays, also where it is posted anew; sums stay exact."""
    play, small = Play(), [shown(cores=1, memory=1900)]
    with monkeypatch.context() as earlier:
        earlier.setattr("gwmond.pilots.sources.collector_ads.SizeStep", partial(SizeStep, least=0))
        play.live(0, 1800, small, records=[record("1.0", 60, 600)])
        assert play.seconds("canonical") == {}
    play.restart()
    play.live(1860, 3600, small)
    play.poll(3660, small, records=[record("1.0", 60, 900, source=Source.SCHEDD_HISTORY)])
    play.rest(3720)
    assert play.pilot().steps == (SizeStep(T0 * SECOND_US, Size(1, 1900), least=0),)
    assert play.seconds("canonical") == {}
    assert sum(play.seconds().values()) == 3660

    new = Play()
    new.live(0, 3600, small, records=[record("1.0", 60, 600)])
    new.rest(3660)
    assert new.seconds("canonical") == new.seconds() == {"goodput": 540, "pilot_overhead": 3060}
    assert new.accounting.below_one_unit == {"entry"}


VIRTUAL = ("slot2", "slot3")


def test_a_run_on_a_virtual_slot_takes_memory_and_no_cores(play: Play) -> None:
    """All cores stay idle beside it, and the partition is that of the cores that are there."""
    pilot = shown(cores=4, memory=13000)._replace(virtual_slots=VIRTUAL)
    on_virtual = record("1.0", 100, 700)._replace(slot="slot2")
    on_child = record("2.0", 100, 700)._replace(slot="slot3_1")
    live = claim("1.0", 102)._replace(slot="slot2")
    play.live(0, 900, [pilot], claims=[live])
    play.restart()
    play.live(960, 1200, [pilot], records=[on_virtual, on_child])
    play.rest(1260)
    sizes = {row.key.job: row.size for row in play.stored.runs.values()}
    assert set(sizes.values()) == {Size(0, 2000)}
    assert play.seconds() == {"pilot_overhead": 4 * 1200.0}
    assert play.stored.corrected == 0


def test_beside_a_run_on_its_cores_nothing_changes(play: Play) -> None:
    """The run on a core has what it would have alone."""
    pilot = shown(cores=4, memory=13000)._replace(virtual_slots=VIRTUAL)
    runs = [record("1.0", 100, 700)._replace(slot="slot1_1")]
    runs += [record("2.0", 100, 700)._replace(slot="slot2")]
    play.live(0, 1200, [pilot], records=runs)
    play.rest(1260)
    seconds = play.seconds()
    assert sum(seconds.values()) == 4 * 1200
    assert seconds["goodput"] == 600


LINES = (
    b"GLIDEIN_OVERLOAD_CPUS is set to 1.25. Adjusting GLIDEIN_CPUS from base value 4\n"
    b"Tue Nov 24 00:00:01 UTC 2026 Setting GLIDEIN_CPUS=5 \n"
    b"GLIDEIN_OVERLOAD_MEMORY is set to 1.2. Adjusting GLIDEIN_MaxMemMBs from base value 8000\n"
    b"Tue Nov 24 00:00:01 UTC 2026 Setting GLIDEIN_MaxMemMBs=9600\n"
)


def test_what_an_overloaded_pilot_writes() -> None:
    """The lines of glidein_cpus_setup.sh and glidein_memory_setup.sh."""
    found = pilot_out.parse(LINES)
    assert (found.cores, found.offered_cores) == (4, 5)
    assert (found.memory_mib, found.offered_memory_mib) == (8000, 9600)
    plain = pilot_out.parse(b"GLIDEIN_OVERLOAD_ENABLED=true but\n" + LINES.splitlines(True)[1])
    assert (plain.cores, plain.offered_cores) == (5, None)


def test_an_overloaded_pilot_has_the_units_of_the_cores_that_are_there(play: Play) -> None:
    """Its slots offer five cores on four; its output corrects what they said."""
    play.live(0, 1200, [shown(cores=5, memory=9600, factory_job=JOB)])
    told = output(0, 1230)._replace(
        cores=4, memory_mib=8000, offered_cores=5, offered_memory_mib=9600
    )
    add_outputs(play, told, at=6000)
    assert sum(play.seconds().values()) == 4 * 1230.0
    row = play.pilot()
    assert [step.size for step in row.steps] == [Size(4, 8000)]
    assert row.facts.output is not None
    assert (row.facts.output.offered_cores, row.facts.output.offered_memory_mib) == (5, 9600)
