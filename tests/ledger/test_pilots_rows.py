"""Rows come back from the database as they were, whatever they hold."""

from __future__ import annotations

import tempfile
from math import inf, nan
from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gwmond.ledger.database.columns import LARGEST, LATEST_US, clean, identity
from gwmond.ledger.rows.fact_codec import decode_facts, encode_facts
from gwmond.ledger.store import Ledger
from gwmond.model.facts import EntryKey, Size
from gwmond.model.pilot_life import (
    KINDS,
    Assumption,
    Category,
    Outcome,
    RunKey,
    SizeStep,
    Validation,
)
from gwmond.model.pilots.pilot_facts import (
    AdFacts,
    FailedAdFacts,
    OutputFacts,
    PilotFacts,
    ValidationTest,
)
from gwmond.model.pilots.stored_pilots import PilotIdentity, PilotRow, RunRow
from gwmond.model.poll.batch import Batch
from gwmond.model.runs.endings import Ending
from gwmond.model.runs.run_facts import JobFact, Move, RunFact, Source, Transfer, Used
from gwmond.model.units import RESOURCES
from tests.examples import examples
from tests.ledger.pilot_batches import now_us, pilot_at

# Control characters come back otherwise, see ``clean``.
texts = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="".join(map(chr, range(32)))),
    max_size=12,
)
times = st.integers(0, LATEST_US)
amounts = st.integers(0, LARGEST)
intervals = st.tuples(times, times).filter(lambda of: of[0] < of[1])
sizes = st.builds(
    Size, *[st.integers(0, 2**40) | st.floats(0, 2**40, allow_nan=False) for _ in range(3)]
)


def built(record: type[Any], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return values for all fields of a record: by its types, and times by their names."""
    for name, kind in get_type_hints(record).items():
        plain = {of for of in get_args(kind) or (kind,) if of is not type(None)}
        if plain == {int}:
            number = times if name.endswith("_us") else st.integers(0, 2**62)
            fields.setdefault(name, number | st.none() if type(None) in get_args(kind) else number)
        elif plain == {str}:
            fields.setdefault(name, texts | st.none() if type(None) in get_args(kind) else texts)
        elif plain == {Size}:
            fields.setdefault(name, sizes | st.none() if type(None) in get_args(kind) else sizes)
        else:
            fields.setdefault(name, st.from_type(kind))
    return st.builds(record, **fields)


finite = st.none() | st.floats(0, 1e9)
told = {
    "ending": built(Ending),
    "transfer_in": st.none() | built(Transfer),
    "transfer_out": st.none() | built(Transfer),
    "about_job": st.none() | built(JobFact),
    "moves": st.lists(built(Move), max_size=3).map(tuple),
    "used": st.none() | st.builds(Used, finite, finite, finite),
}


@st.composite
def runs(draw: st.DrawFn) -> RunRow:
    """A run whose facts often tell what the row has."""
    row = built(
        RunRow,
        pilot=st.integers(0, 5),
        key=st.builds(RunKey, texts, st.integers(0, 10**6)),
        outcome=st.none() | built(Outcome),
        result=st.sampled_from(["", "failed_early", "succeeded", "lasted"]),
        settled=st.dictionaries(st.sampled_from(KINDS), amounts),
        facts=st.just(()),
    )
    run: RunRow = draw(row)

    def usual(value: Any, other: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return st.just(value) | st.none() | other

    facts = built(
        RunFact,
        job=st.just(run.key.job) | texts,
        shadow_start=usual(run.key.number, st.integers(0, 10)),
        written_us=st.integers(-(2**70), 2**70),
        pilot=st.none() | st.sampled_from(["pilot", "another"]) | texts,
        start_us=usual(run.start_us, times),
        end_us=usual(run.end_us, times),
        size=usual(run.size, sizes),
        user=usual(run.user, texts),
        job_group=usual(run.job_group, texts),
        **told,
    )
    return run._replace(facts=tuple(draw(st.lists(facts, max_size=4))))


pilots = built(
    PilotRow,
    identity=built(PilotIdentity, key=st.builds(EntryKey, texts, texts)),
    steps=st.lists(st.builds(SizeStep, times, sizes), max_size=3).map(tuple),
    assumed=st.dictionaries(st.sampled_from(Assumption), intervals, max_size=3),
    assumed_micros=st.dictionaries(
        st.tuples(st.sampled_from(Assumption), st.sampled_from(RESOURCES)),
        st.integers(1, LARGEST),
        max_size=3,
    ),
    settled=st.dictionaries(
        st.tuples(
            *(st.sampled_from(RESOURCES), st.sampled_from(["resource", "canonical"])),
            *(st.sampled_from(Category), texts),
        ),
        amounts,
        max_size=6,
    ),
    runs_pruned=st.just(0),
    facts=st.builds(
        PilotFacts,
        ads=st.none()
        | st.builds(AdFacts, last_heard_us=times, sizes=st.just((SizeStep(1, Size(2, 3)),))),
        failed_ads=st.none() | st.builds(FailedAdFacts, times, times, failure=texts.map(clean)),
        output=st.none()
        | st.builds(
            OutputFacts,
            times,
            times,
            pid=st.integers(0, 2**40),
            unnamed=st.booleans(),
            tests=st.lists(st.builds(ValidationTest, texts, times, times, texts)).map(tuple),
        ),
        central_log_us=st.none() | times,
    ),
)

ZEROS = PilotRow(
    id=0,
    identity=PilotIdentity("", 0, "", "", EntryKey("", ""), "", ""),
    start_us=0,
    end_us=0,
    posted_last_heard_us=0,
    steps=(SizeStep(0, Size(0, 0, 0)),),
    validation=Validation.UNKNOWN,
    assumed={Assumption.BEGIN: (0, 1)},
    end_source="",
    retire_us=0,
    die_us=0,
    known_until_us=0,
    settled_until_us=0,
    ran_jobs=False,
    closed=False,
    settled={("cpu", "resource", Category.GOODPUT, ""): 0},
    validation_end_us=0,
    facts=PilotFacts(ads=AdFacts(0, 0), output=OutputFacts(0, 0, 0, cores=0, pid=0)),
)
_CODES: dict[str, Any] = {
    name: 0 for name in Ending._fields if name.endswith(("code", "signal", "status"))
}
ZERO_CODES = Ending(**_CODES)
ZERO_FACT = RunFact(Source.STARTD_HISTORY, "", 0, 0, "", 0, 0, Size(0, 0, 0), "", "", ZERO_CODES)
ZERO_RUN = RunRow(
    pilot=0,
    key=RunKey("", 0),
    start_us=0,
    end_us=0,
    size=Size(0, 0, 0),
    user="",
    job_group="",
    outcome=None,
    result="",
    open=False,
    settled=dict.fromkeys(KINDS, 0),
    facts=(ZERO_FACT, ZERO_FACT._replace(source=Source.LIVE_SLOT, shadow_start=None)),
)
"""Rows in which every number is 0, which is not the same as absent."""


@settings(max_examples=examples(200))
@given(runs())
def test_facts_come_back_exactly(row: RunRow) -> None:
    """With their types: a flag is a bool, and None is not False."""
    found = decode_facts(row._replace(facts=()), encode_facts(row))
    assert found == row.facts
    for one, other in zip(found, row.facts, strict=True):
        assert list(map(type, one)) == list(map(type, other))
        assert list(map(type, one.ending)) == list(map(type, other.ending))


@settings(max_examples=examples(60))
@given(
    st.lists(pilots, max_size=3, unique_by=lambda row: row.id),
    st.lists(runs(), max_size=6, unique_by=lambda row: (row.pilot, row.key)),
)
@example([ZEROS], [ZERO_RUN])
def test_rows_come_back(rows: list[PilotRow], theirs: list[RunRow]) -> None:
    with (
        tempfile.TemporaryDirectory() as directory,
        Ledger.open(str(Path(directory) / "ledger.sqlite")) as ledger,
    ):
        for number in (0, 1):  # written twice they are as they were
            ledger.commit(Batch(number, 0, tuple(rows), tuple(theirs)))
        ids = [row.id for row in rows]
        assert ledger.pilots_by_id(ids) == {row.id: row for row in rows}
        found = ledger.runs_of({row.pilot for row in theirs})
        every = {(row.pilot, row.key): row for run_rows in found.values() for row in run_rows}
        assert every == {(row.pilot, row.key): row for row in theirs}


def test_every_field_of_a_fact_comes_back() -> None:
    """Each alone, whatever it is beside what the row has."""
    found = pilot_at(1, now_us(30))
    assert found is not None
    row = found.runs[0]
    every: tuple[Any, ...] = (
        True,
        False,
        7,
        -7,
        "access_point",
        "",
        None,
        Size(1.5, 2.0, 0.0),
    )
    facts = []
    for name in RunFact._fields:
        fact = row.facts[0]._replace(pilot=None, user=None, size=None)
        facts += [
            fact._replace(**{name: value}) for value in every if _may_be(RunFact, name, value)
        ]
    for name in Ending._fields:
        endings = [Ending(**{name: value}) for value in every if _may_be(Ending, name, value)]
        assert len(endings) >= 2
        facts += [row.facts[0]._replace(ending=ending) for ending in endings]
    row = row._replace(facts=tuple(facts))
    assert decode_facts(row, encode_facts(row)) == row.facts


def _may_be(record: type, name: str, value: object) -> bool:
    """Whether the type of a field has a value."""
    try:
        msgspec.convert(value, get_type_hints(record)[name])
    except msgspec.ValidationError:
        return False
    return True


@pytest.mark.parametrize("size", [Size(inf, 1), Size(1, nan)])
def test_a_size_that_is_no_number_is_refused(size: Size) -> None:
    found = pilot_at(1, now_us(30))
    assert found is not None
    row = found.runs[0]
    with pytest.raises(ValueError, match="is not a size"):
        encode_facts(row._replace(facts=(row.facts[0]._replace(size=size),)))


def test_identities_stay_apart() -> None:
    """However long two names are, what is stored differs, fits, and is stored as itself again."""
    names = ["a" * 511, "a" * 512, "a" * 513, "a" * 514, "\0" * 300, "\0" * 301, "\udcff" * 300]
    stored = [identity(name) for name in names]
    assert len(set(stored)) == len(names)
    assert max(map(len, stored)) <= 512
    assert [identity(name) for name in stored] == stored
    assert stored[:2] == names[:2]
