"""Safe access to ClassAds."""

from __future__ import annotations

import itertools
from typing import Any

import classad2
import pytest

from gwmond.sources.htcondor import ads
from tests.sources.make import LATIN_1, attributes, classad

TRAPS = f"""[
    Undef = undefined; Fault = 1 / 0; Missing = NoSuchAttribute + 1;
    NotANumber = real("NaN"); Infinite = real("INF"); MinusInfinite = real("-INF");
    Latin1 = {LATIN_1}; Negative = -5; Huge = 1e300; Long = 9223372036854775807;
    Real = 2.5; Integer = 2; Text = "text"; Empty = ""; Number = "2"; Yes = true; No = false;
    Sum = Integer + 1; Name = strcat(Text, "s"); List = {{ 1, 2.5, 3 }}; Nested = [ a = 1 ];
    WithUndefined = {{ 1, undefined }}; WithExpression = {{ 1, Integer + 1 }};
    WithNaN = {{ 1, real("NaN") }}; WithText = {{ 1, "2" }}; Nothing = {{ }};
    Date = absTime("2023-11-14T22:13:20+00:00")
]"""
NO_VALUE = ("Undef", "Fault", "Missing", "Latin1", "Absent")
NO_NUMBER = (*NO_VALUE, "NotANumber", "Infinite", "MinusInfinite", "Text", "Number", "List", "Date")


@pytest.mark.parametrize("name", NO_VALUE)
def test_traps_have_no_value(name: str) -> None:
    """What is absent, undefined, an error or undecodable is None for every reader."""
    ad = classad(TRAPS)
    readers = (ads.number, ads.integer, ads.count, ads.text, ads.truth, ads.numbers, ads.evaluate)
    assert [reader(ad, name) for reader in readers] == [None] * len(readers)


@pytest.mark.parametrize("name", NO_NUMBER)
def test_no_number(name: str) -> None:
    """Only a finite number is a number: an undefined value, which equals 2, is none."""
    assert ads.number(classad(TRAPS), name) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [("Real", 2.5), ("Integer", 2), ("Negative", -5), ("Sum", 3), ("Yes", 1), ("Huge", 1e300)],
)
def test_number(name: str, value: float) -> None:
    """A number comes out as float, also of an expression or a truth value."""
    found = ads.number(classad(TRAPS), name)
    assert found == value
    assert type(found) is float


def test_integer_is_cut() -> None:
    """A number is cut, not rounded; an integer of any size is exact."""
    ad = classad(TRAPS)
    assert ads.integer(ad, "Real") == 2
    assert ads.integer(ad, "Long") == 2**63 - 1


@pytest.mark.parametrize(
    ("name", "value"),
    [("Integer", 2), ("Real", 2), ("No", 0), ("Negative", None), ("Huge", None), ("Long", None)],
)
def test_count(name: str, value: int | None) -> None:
    """A count is neither negative nor absurd."""
    assert ads.count(classad(TRAPS), name) == value


@pytest.mark.parametrize(
    ("name", "value"),
    [("Text", "text"), ("Name", "texts"), ("Empty", None), ("Integer", None), ("Latin1", None)],
)
def test_text(name: str, value: str | None) -> None:
    """A text is a string that is not empty."""
    assert ads.text(classad(TRAPS), name) == value


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("true", True),
        ('"True"', True),
        ('" true "', True),
        ("1", True),
        ("false", False),
        ('"False"', False),
        ("0", False),
        ("2.5", True),
        ('"maybe"', None),
        ("undefined", None),
        ("{ true }", None),
    ],
)
def test_truth(written: str, value: bool | None) -> None:
    """A truth value is understood however GlideinWMS spells it."""
    assert ads.truth(classad(f"[ A = {written} ]"), "A") is value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("List", [1.0, 2.5, 3.0]),
        ("Nothing", []),
        ("WithUndefined", None),
        ("WithExpression", None),
        ("WithNaN", None),
        ("WithText", None),
        ("Integer", None),
    ],
)
def test_numbers(name: str, value: list[float] | None) -> None:
    """A list is taken whole, and only if each element is a finite number."""
    assert ads.numbers(classad(TRAPS), name) == value


def test_first_of_several() -> None:
    """Of several names the first that has a value of the kind counts."""
    ad = classad(TRAPS)
    assert ads.first_text(ad, ("Absent", "Latin1", "Empty", "Text", "Name")) == "text"
    assert ads.first_number(ad, ("Absent", "Undef", "Text", "Real", "Integer")) == 2.5
    assert ads.first_text(ad, ()) is None
    assert ads.first_number(ad, ("Absent",)) is None


@pytest.mark.parametrize(
    ("written", "value"),
    [
        (r'"Z\374rich"', None),
        ('"T2_Genève"', "T2_Genève"),
        (r'"a\nb\tc"', "a b c"),
        ('"' + "x" * 100 + '"', "x" * 100),
        ('"' + "x" * 101 + '"', "x" * 99 + "…"),
    ],
)
def test_label(written: str, value: str | None) -> None:
    """A label is printable and short, whatever a pilot calls itself."""
    assert ads.label(classad(f"[ A = {written} ]"), ("A",)) == value


def test_source_text_keeps_expressions() -> None:
    """Text of an ad has the named attributes only, as expressions, in an order of its own."""
    ad = classad('[ B = A + 1; A = 1; Requirements = TARGET.X > MY.A; Secret = "s"; L = "\\351" ]')
    text = ads.source_text(ad, ["requirements", "B", "A", "B", "Absent", "L"])
    assert attributes(text) == {"a", "b", "l", "requirements"}
    assert classad(text).eval("B") == 2
    assert text == ads.source_text(ad, ["L", "A", "B", "Requirements"]).replace(
        "Requirements", "requirements"
    )


def test_signature() -> None:
    """A signature tells texts apart, and is short."""
    assert ads.signature("[a = 1]") == ads.signature("[a = 1]")
    assert ads.signature("[a = 1]") != ads.signature("[a = 2]")
    assert len(ads.signature("[a = 1]")) == 24


def test_ads_are_found_by_their_names_with_few_comparisons() -> None:
    """One of 1,000 names takes 10 comparisons, and as ClassAds compare: without case."""
    many = [f"slot1@glidein_{n}@node{n % 7}" for n in range(1000)]
    odd = ["a_b", "aB", "Zürich", "[x]", 'say "x"', "c\\", "A B", "~", "é"]
    names = [*many, *odd]
    wanted = classad2.ExprTree(ads.named(reversed(names)))
    found = {name: wanted.eval(classad2.ClassAd({"Name": name})) for name in names}
    assert set(found.values()) == {True}
    for other in ("", "slot1@glidein_5@node", "slot1@glidein_1000@node6", "b", "é", "zz"):
        assert wanted.eval(classad2.ClassAd({"Name": other})) is (other in odd), other
    assert wanted.eval(classad2.ClassAd({"Name": "SLOT1@GLIDEIN_0@NODE0"})) is True
    steps = ({"(": 1, ")": -1}.get(letter, 0) for letter in ads.named(many))
    assert max(itertools.accumulate(steps)) <= 10
    assert classad2.ExprTree(ads.named(())).eval() is False
    by_entry = classad2.ExprTree(ads.named("abcd", "Entry"))
    entries = "a", "c", "e", None
    there = [by_entry.eval(classad2.ClassAd({"Name": "a", "Entry": one})) for one in entries]
    assert [value is True for value in there] == [True, True, False, False]


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("GET https://eve:pw@host/x failed", "GET https://…@host/x failed"),
        ("s3://h/x?a=1&X-Amz-Signature=ab%2B&b=2", "s3://h/x?a=1&X-Amz-Signature=…&b=2"),
        ("https://h/x?access_token=abc: denied", "https://h/x?access_token=…: denied"),
        ("no // user@host, key=1", "no // user@host, key=1"),
    ],
)
def test_passwords_of_urls_are_left_out(said: str, shown: str) -> None:
    assert ads.clean(said) == shown


_FAN = "; ".join(f"{a} = {' + '.join([b] * 60)}" for a, b in itertools.pairwise("BCDE"))
_SLOW = 'int(regexp("^(a+)+(a+)+(a+)+$", S))'
COSTLY = {
    "attributes that name others often": f"[A = B + B; {_FAN}; E = time()]",
    "regexps": f'[A = {" + ".join([_SLOW] * 9)}; S = "{"a" * 40}b"]',
    "a text that is evaluated": f'[A = eval(strcat("B", "+B")); {_FAN}; E = time()]',
    "a record": f"[A = [B = C; {_FAN}; E = time()].B]",
    "a long text, often": f'[A = size(strcat({", ".join(["S"] * 90)})); S = "{"a" * 40000}"]',
}


class Spied:
    """An ad that notes what is evaluated in it."""

    def __init__(self, ad: classad2.ClassAd) -> None:
        self._ad = ad
        self.evaluated: list[str] = []

    def __contains__(self, name: str) -> bool:
        return name in self._ad

    def __getitem__(self, name: str) -> object:
        return self._ad[name]

    def eval(self, name: str) -> object:
        self.evaluated.append(name)
        return None


@pytest.mark.parametrize("how", COSTLY)
def test_what_costs_too_much_is_not_begun(how: str) -> None:
    """The child that evaluates it would be late, and with it all other ads of its query."""
    ad: Any = Spied(classad(COSTLY[how]))
    assert ads.evaluate(ad, "A") is None
    assert ad.evaluated == []


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("MemoryUsage isnt undefined ? MemoryUsage * 3 / 2 : RequestCpus * 2000", 1500),
        ('ifThenElse(regexp("^el[789]$", System), 1, 2)', 1),
        ('strcat(System, "x") == "el9x" ? 1 : 0', 1),
    ],
)
def test_what_jobs_ask_for_is_evaluated(text: str, value: int) -> None:
    more = 'MemoryUsage = Size / 1024; Size = 1024000; RequestCpus = 4; System = "el9"'
    assert ads.number(classad(f"[A = {text}; {more}]"), "A") == value
