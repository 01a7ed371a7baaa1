"""Clauses of Requirements: how they are divided, and what each excludes."""

from __future__ import annotations

import random

import htcondor2  # noqa: F401 (names are looked up in both ads once it has been loaded)
import pytest
from classad2 import ClassAd

from gwmond.explain.clauses import (
    Opening,
    counts,
    openings,
    refusals,
    smallest_pair,
    without_clause,
)
from gwmond.model.facts import EntryKey, Size
from gwmond.sources.htcondor import clauses, matching
from gwmond.sources.htcondor.ads import expression, parse
from tests.build.waiting import place


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ()),
        ("A", ("A",)),
        ("A && B", ("A", "B")),
        ("((A) && (B && (C)))", ("A", "B", "C")),
        ("A && B || C", ("A && B || C",)),
        ("A && (B || C && D)", ("A", "B || C && D")),
        ("A ? B && C : D", ("A ? B && C : D",)),
        ('X == "a && (b" && Y', ('X == "a && (b"', "Y")),
        (r'X == "a \" && b" && Y', (r'X == "a \" && b"', "Y")),
        ("(A) && (B)", ("A", "B")),
        ("(A) || (B)", ("(A) || (B)",)),
        ("member(X, {1, 2}) && Z[0] && T.U", ("member(X, {1, 2})", "Z[0]", "T.U")),
    ],
)
def test_expressions_are_divided(text: str, parts: tuple[str, ...]) -> None:
    found = clauses.divide(text)
    assert tuple(" ".join(part.split()) for part in found) == parts


def _drawn(lot: random.Random, depth: int) -> str:
    """Return an expression that was drawn by lot."""
    if depth == 0 or lot.random() < 0.1:
        return lot.choice(_ATOMS)
    left, right, more = (_drawn(lot, depth - 1) for _ in range(3))
    return lot.choice(
        (
            *3 * (f"{left} && {right}", f"({left}) && ({right})"),
            f"({left} || {right})",
            f"({left} ? {right} : {more})",
            f"ifThenElse({left}, {right}, {more})",
        )
    )


_ATOMS = (
    *("A > 1", "TARGET.B =?= 2", "true", "undefined", "error", "MY.C", "D.x", "'odd name' == 3"),
    *("A ?: true", "B ? A > 0 : false", 'stringListMember("x && y", S)', "{1, 2}[0] == 1"),
    *("(A is 1)", "!C", "1", "0", "E", "F"),
)


@pytest.mark.parametrize("seed", range(4))
def test_all_clauses_hold_if_the_expression_does(seed: int) -> None:
    """Of expressions drawn by lot, with names of other expressions in both ads."""
    lot = random.Random(seed)
    held = 0
    for _ in range(400):
        number, switch = lot.randint(0, 2), lot.choice(("true", "false", "undefined", "A > 0 && B"))
        others = f"E = {_drawn(lot, 1)}; F = {_drawn(lot, 2)}; 'odd name' = {lot.randint(2, 3)}"
        job = parse(
            f'[Requirements = {_drawn(lot, 4)}; {others}; A = {number}; C = {switch}; S = "x"]'
        )
        slot = parse(f"[B = {lot.randint(1, 2)}; D = [x = {lot.choice(('true', 'false'))}]]")

        def holds(text: str, job: ClassAd = job, slot: ClassAd = slot) -> bool:
            found = expression(text)
            return found is not None and matching.holds(found, job, slot, untold=False) is True

        whole = holds(str(job.lookup("Requirements")))
        assert all(map(holds, clauses.attribute_clauses(job, "Requirements"))) == whole, str(job)
        held += whole
    assert held > 20


def test_no_expression_takes_long() -> None:
    """However deep it is, and however many clauses it has: those beyond the first are one."""
    deep = "A"
    for number in range(3000):
        deep = f"({deep} && B{number % 7})"
    assert clauses.divide(deep) == ("A", *(f"B{number}" for number in range(7)))
    assert clauses.divide(f"{'(' * 20_000}A{')' * 20_000}") == ("A",)
    many = clauses.divide(" && ".join(f"X == {number}" for number in range(5000)))
    assert len(many) == clauses.MOST
    assert many[-1].startswith("(X == 199) && (X == 200) && ")
    assert many[-1].endswith("(X == 4999)")
    text = "; ".join(
        f"A{level} = " + " && ".join([f"A{level + 1}"] * 100 + [f"C{level}"]) for level in range(8)
    )
    found = clauses.attribute_clauses(parse(f"[{text}; A8 = X]"), "A0")
    assert set(found) == {"X", *(f"C{level}" for level in range(8))}


def test_names_of_expressions_are_followed() -> None:
    ad = parse("[Requirements = Start && Fits; Start = A && MY.Fits; Fits = B; Loop = Loop]")
    assert clauses.attribute_clauses(ad, "Requirements") == ("A", "B")
    assert clauses.attribute_clauses(ad, "Loop") == ("Loop",)
    assert clauses.attribute_clauses(ad, "Missing") == ()
    switch = parse("[Requirements = Start && MY.Open; Start = Ok > 1; Open = false]")
    assert clauses.attribute_clauses(switch, "Requirements") == ("Ok > 1", "MY.Open")


def test_counts_add_up() -> None:
    pilots = [
        place(),
        place(blocked=(0,)),
        place(blocked=(0, 1)),
        place(blocked=(1,), refusals=("S",)),
    ]
    first, second = counts(("A", "B"), pilots)
    assert (first.passed, first.alone, first.total) == (2, 1, 4)
    assert (second.passed, second.alone) == (2, 0)
    assert refusals(pilots) == {}
    assert refusals([place(refusals=("S",)), place(refusals=("S", "T"))]) == {"S": 2, "T": 1}


def test_the_smallest_pair_is_found_where_no_clause_blocks_alone() -> None:
    pilots = [
        place(blocked=(0, 1)),
        place(blocked=(0, 1)),
        place(blocked=(1, 2)),
        place(blocked=(0, 1, 2)),
    ]
    assert smallest_pair(pilots) == (0, 1, 2)
    assert smallest_pair([place(blocked=(0, 1, 2))]) is None
    assert smallest_pair([place(blocked=(0, 1), refusals=("S",))]) is None


def test_what_one_clause_alone_keeps_away() -> None:
    """Where that clause is all that is in the way; of one about sites the others are named."""
    texts = 'TARGET.GLIDEIN_Site == "T"', "TARGET.HasX"
    pilots = [
        place(blocked=(0,)),
        place(blocked=(0,), entry=EntryKey("U", "F")),
        place(blocked=(0, 1), entry=EntryKey("V", "G")),
        place(blocked=(0,), refusals=("VO",), entry=EntryKey("W", "H")),
        place(blocked=(1,), entry=EntryKey("T", "I")),
    ]
    slots = [place(kind="slot", blocked=(0,), number=4), place(kind="slot", blocked=(1,))]
    opening, other = without_clause(texts, pilots, slots)
    assert (other.change, other.pilots, other.slots) == ("without TARGET.HasX", 1, 1)
    assert (opening.change, opening.pilots, opening.slots) == ("also at S, U", 2, 4)


def test_the_smallest_change_of_a_request() -> None:
    clause, key = "TARGET.Memory >= RequestMemory", EntryKey("S", "E")
    large = place(blocked=(0,), entry=key, whole=Size(8, 16000))
    small = place(blocked=(0,), entry=EntryKey("S", "F"), whole=Size(8, 2000))
    other = place(blocked=(0, 1), whole=Size(8, 32000))
    both = place(blocked=(0,), whole=Size(1, 32000))
    found = openings(Size(4, 64000), (clause, "Site"), [large, small, other, both])
    assert found == [Opening("RequestMemory", 64000, 16000, 1, (key,))]
    slots = [
        place(kind="slot", blocked=(0,), size=Size(4, 16000), number=3),
        place(kind="slot", blocked=(0,), size=Size(4, 8000), number=5),  # of it is too much in use
        place(kind="slot", blocked=(0, 1), size=Size(8, 32000), number=7),
        place(kind="slot", size=Size(8, 64000), number=9),  # matches without it
    ]
    (opening,) = openings(Size(4, 64000), (clause, "Site"), [large], slots)
    assert (opening.slots, opening.change) == (3, "RequestMemory 64000 -> 16000")
    assert openings(Size(4, 1000), (clause,), [large]) == []
    more = large._replace(refusals=("TARGET.RequestGPUs > 0",))  # which less memory does not mend
    assert openings(Size(4, 64000), (clause,), [more]) == []
    gpus = place(blocked=(0,), whole=Size(8, 16000, 0))
    assert openings(Size(1, 1000, 1), ("TARGET.GPUs >= RequestGPUs",), [gpus]) == []
