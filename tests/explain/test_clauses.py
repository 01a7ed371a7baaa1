"""Clauses of Requirements: how they are divided, and what each excludes."""

from __future__ import annotations

import pytest

from gwmond.explain.clauses import Opening, counts, misspelt, openings, refusals, smallest_pair
from gwmond.model.facts import EntryKey, Size
from gwmond.sources.htcondor import clauses
from gwmond.sources.htcondor.ads import parse
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


def test_names_of_expressions_are_followed() -> None:
    ad = parse("[Requirements = Start && Fits; Start = A && MY.Fits; Fits = B; Loop = Loop]")
    assert clauses.attribute_clauses(ad, "Requirements") == ("A", "B")
    assert clauses.attribute_clauses(ad, "Loop") == ("Loop",)
    assert clauses.attribute_clauses(ad, "Missing") == ()


def test_references_are_followed_and_secrets_left_out() -> None:
    ad = parse(
        "[Requirements = Start && TARGET.Site == X; Start = MY.Y > 1 && ClaimId == 2; Y = Z]"
    )
    assert clauses.references(ad, "Requirements") == {
        *("requirements", "start", "site", "x", "y", "z")
    }


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


def test_misspelt_sites() -> None:
    known = ["Nebraska", "T2_US_Florida"]
    assert misspelt('X == "Nebrasca"', (), known) == [
        'no site is called "Nebrasca"; did you mean "Nebraska"?'
    ]
    listed = misspelt("member(DESIRED_Sites)", [("desired_sites", "Nebraska,T2_US_Forida")], known)
    assert listed == ['no site is called "T2_US_Forida"; did you mean "T2_US_Florida"?']
    assert misspelt('X == "nebraska" && Y == "linux"', [("other", "Nebrasca")], known) == []


def test_the_smallest_change_of_a_request() -> None:
    clause, key = "TARGET.Memory >= RequestMemory", EntryKey("S", "E")
    large = place(blocked=(0,), entry=key, whole=Size(8, 16000))
    small = place(blocked=(0,), entry=EntryKey("S", "F"), whole=Size(8, 2000))
    other = place(blocked=(0, 1), whole=Size(8, 32000))
    both = place(blocked=(0,), whole=Size(1, 32000))
    found = openings(Size(4, 64000), (clause, "Site"), [large, small, other, both])
    assert found == [Opening("RequestMemory", 64000, 16000, 1, (key,))]
    assert openings(Size(4, 1000), (clause,), [large]) == []
