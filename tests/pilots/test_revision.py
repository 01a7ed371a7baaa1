"""What an entry's pilots have in common, learnt in any order: at the end it is the same."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from gwmond.model.facts import Size
from gwmond.model.pilot_life import Assumption, Validation
from gwmond.model.pilots.file_facts import FileFact, StarterRun
from gwmond.model.pilots.pilot_facts import ReportedSize
from gwmond.model.pilots.stored_pilots import PilotKind, PilotRow
from gwmond.pilots.factory.revision import SizeChange, changes
from tests.build.pilot_files import line, queue, us
from tests.build.play import DONE, Play, record
from tests.build.played import booked, lives, one, revise
from tests.examples import examples

LATEST = 100_000
CORES, MEMORY, GPUS = (None, 1, 4, 8), (None, 2000, 16_000), (None, 0, 1)
SITES, ENTRIES = ("", "Here", "There"), ("entry", "other")


def told(*facts: FileFact, polls: frozenset[int] = frozenset()) -> Play:
    """Tell facts, one after the other, with some hours between some; then revise."""
    play, at = Play(), LATEST
    for number, fact in enumerate(facts):
        play.add_facts([fact])
        if number in polls:
            play.rest(at, hours=2)
            at += 3 * 3600
    play.rest(at, hours=3)
    revise(play, at + 4 * 3600)
    return play


def rows(play: Play) -> dict[str, PilotRow]:
    """Pilots by their number at the factory."""
    return {
        pilot.identity.factory_job.partition("#")[2]: pilot for pilot in play.stored.pilots.values()
    }


@st.composite
def entries(draw: st.DrawFn) -> list[FileFact]:
    """Pilots of two entries; of some nothing but the queue and the summary tell."""
    facts: list[FileFact] = []
    for number in range(draw(st.integers(1, 7))):
        entry = draw(st.sampled_from(ENTRIES))
        if draw(st.booleans()):
            queued = queue(100 * number, 100 * number + 1300, proc=number, entry=entry)
            facts += queued
            used = draw(st.sampled_from([900, 5000, 9000]))  # the real sum, since v3.10.12
            idle = 1000 * (1240 - used) // 1240
            lines = line(
                100 * number + 1400, 1300, jobs=2, jobs_s=used, terminated_s=500, idle=idle
            )
            name = lines.name._replace(proc=number, entry=entry)
            facts += [lines._replace(name=name)] if draw(st.booleans()) else []
            if draw(st.booleans()):
                continue
        facts.append(
            one(
                number,
                entry=entry,
                cores=draw(st.sampled_from(CORES)),
                memory_mib=draw(st.sampled_from(MEMORY)),
                gpus=draw(st.sampled_from(GPUS)),
                site=draw(st.sampled_from(SITES)),
                factory=draw(st.sampled_from(["", "factory"])),
                validation=draw(st.sampled_from([Validation.PASSED, Validation.FAILED])),
                runs=draw(st.sampled_from([(), _runs(number)])),
            )
        )
    return facts


def _runs(number: int) -> tuple[StarterRun, ...]:
    start = 100 * number + 100
    return tuple(
        StarterRun(f"{number}.{n}", "schedd", us(start), us(start + 500), DONE) for n in range(3)
    )


@settings(max_examples=examples(80))
@given(st.data())
def test_the_order_does_not_matter(data: st.DataObject) -> None:
    """Pilots, their hours and counts are the same, with their sites; and each proves itself."""
    facts = data.draw(entries())
    plays = [
        told(
            *data.draw(st.permutations(facts)),
            polls=data.draw(st.frozensets(st.integers(0, 20), max_size=4)),
        )
        for _ in range(2)
    ]
    assert lives(plays[0]) == lives(plays[1])
    for play in plays:
        play.stored.prove()
        assert all(row.closed for row in play.stored.pilots.values())
    assert booked(plays[0]) == booked(plays[1])


def _sizes(play: Play) -> dict[str, Sequence[object]]:
    return {
        number: (row.steps[0].size, row.identity.key.site) for number, row in rows(play).items()
    }


def test_what_is_learnt_later_is_used() -> None:
    """The first told nothing; it was taken for one core at a site that is called as its entry."""
    play = told(one(0), *(one(n, cores=8, memory_mib=20_000, site="Here") for n in (1, 2)))
    assert set(_sizes(play).values()) == {(Size(8, 20_000), "Here")}
    assert Assumption.SIZE in rows(play)["7.0"].assumed
    assert play.seconds() == {"decision_problem": 3 * 8 * 1200.0}


def test_what_was_told_stays() -> None:
    """Only what was missing is taken from the others."""
    play = told(one(0, cores=2, site="There"), *(one(n, cores=8, memory_mib=9000) for n in (1, 2)))
    assert _sizes(play)["7.0"] == (Size(2, 2250), "There")
    alike = [one(n, cores=2, memory_mib=3000) for n in (1, 2)]
    play = told(one(0, cores=2), one(3, cores=8, memory_mib=9000), *alike)
    assert _sizes(play)["7.0"] == (Size(2, 3000), "entry")


def test_where_no_other_tells_it_what_was_assumed_stays(play: Play) -> None:
    """Such as what the entry's ads said at that time."""
    play.add_facts([one(0)], {"entry": Size(16, 32_000, 2)})
    play.rest(LATEST, hours=3)
    play.restart()
    play.add_facts([one(1)])
    play.rest(2 * LATEST, hours=3)
    revise(play, 3 * LATEST)
    assert _sizes(play)["7.0"] == (Size(16, 32_000, 2), "entry")


def test_it_is_as_large_as_its_runs_were_at_once(play: Play) -> None:
    """What the entry's others have is too little; runs that only meet by a clock do not count."""
    small = [one(n, cores=1, memory_mib=2000) for n in (1, 2)]
    play.add_facts([one(0, end_us=us(5000)), *small])
    name = rows_name(play)
    play.poll(
        LATEST,
        records=[
            record("1.0", 100, 1000, startd=name, started=0, cores=2),
            record("2.0", 500, 1000, startd=name, started=0, cores=2),
            record("3.0", 990, 4000, startd=name, started=0, cores=2),
        ],
    )
    play.rest(LATEST + 60, hours=12)
    assert _sizes(play)["7.0"] == (Size(4, 8000), "entry")
    revise(play, LATEST + 13 * 3600)
    assert _sizes(play)["7.0"] == (Size(4, 8000), "entry")
    play.stored.prove()


def rows_name(play: Play) -> str:
    """The startd's name of the pilot 7.0."""
    return next(
        pilot.identity.name
        for pilot in play.accounting.pilots
        if pilot.identity.factory_job == "factory#7.0"
    )


def test_which_kinds_of_pilots_become_what() -> None:
    """What is told stays, and who was only guessed has no say in what its entry's factory is."""
    sizes = frozenset({Assumption.SIZE, Assumption.GPUS})
    eight = Size(8, 16_000)
    told = PilotKind(
        ReportedSize(*eight, site=True), eight, frozenset(), "Here", "f", "g", "collector"
    )
    unknown = PilotKind(ReportedSize(), Size(1, 2000), sizes, "entry", "", "g", "files")
    guessed = unknown._replace(rules=sizes | {Assumption.NO_OUTPUT}, factory="guess")
    there = told._replace(site="There")
    found = dict(
        changes("entry", {told: [1, 2], there: [7], unknown: [3], guessed: [4, 5, 6]}, 2000)
    )
    only_size = frozenset({Assumption.SIZE})  # its others have no GPUs, nor is one assumed
    assert found == {
        SizeChange(eight, only_size, "Here", ""): [3],
        SizeChange(eight, only_size, "Here", "f"): [4, 5, 6],
    }
    as_found = unknown._replace(size=eight, rules=only_size, site="Here")
    assert dict(changes("entry", {told: [1, 2], as_found: [3]}, 2000)) == {}
