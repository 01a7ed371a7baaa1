"""Tables fit into the width that there is, and nothing of them is lost."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from gwmond import cli
from gwmond.reports.render import terminal, writing
from gwmond.reports.render.document import Document
from gwmond.reports.render.table import Cell, Column, Table
from gwmond.reports.render.terminal import lines, room, show
from tests.build.gwms import generate, simulated

ENTRIES = (
    "CMSHTPC_T2_US_Florida_gaivota_whole_gp",
    "OSG_US_UWMadison_chtc-ce2_opportunisti",
    "CMS_T1_IT_CNAF_ce03-htc_singularity_mc",
)
SITES = ("T2_US_Florida", "OSG_US_NMSU-Discovery-CE1", "T1_IT_CNAF")


def columns(headers: Sequence[str], names: int = 1, **wrapped: int) -> tuple[Column[None], ...]:
    """Columns of which the first are names, and others may be wrapped; ``%`` is a share."""
    return tuple(
        Column(
            header,
            lambda _: "",
            name=at < names,
            text=header in wrapped,
            wrap=wrapped.get(header, 0),
            share=header == "%",
        )
        for at, header in enumerate(headers)
    )


def said(table: Table, width: int) -> list[str]:
    return [line.plain for line in lines(table, width)]


def test_what_fits_is_one_table() -> None:
    rows = (("A", "1.0", "5%"), ("Long", "20.5", "95%"))
    table = Table("", columns(("site", "hours", "%")), rows)
    assert said(table, 80) == ["site  hours    %", "A       1.0   5%", "Long   20.5  95%"]


def test_headers_in_two_lines_come_first() -> None:
    """A header of several words has two lines where that is enough."""
    table = Table("", columns(("site", "unexplained hours", "pilots")), (("A", "1.0", "3"),))
    assert said(table, 31) == ["site  unexplained hours  pilots", "A                   1.0       3"]
    assert said(table, 30) == [
        "      unexplained",
        "site        hours  pilots",
        "A             1.0       3",
    ]


def test_words_are_divided_only_at_soft_hyphens() -> None:
    """And only where there is no room for them."""
    headers = columns(("site", "provi\u00adsioned", "match\u00ading"))
    table = Table("", headers, (("A", "2048", "71"),))
    assert said(table, 40)[0] == "site  provisioned  matching"
    assert said(table, 25) == [
        "      provi-  match-",
        "site  sioned     ing",
        "A       2048      71",
    ]


def test_texts_are_wrapped_between_words() -> None:
    """As far as they may, and not within a word."""
    rows = (("1", "failed validation: a/longish_test.sh", "7"), ("2", "idle", "8"))
    table = Table("", columns(("id", "doing", "n"), doing=10), rows)
    assert said(table, 30) == [
        "id  doing                    n",
        "1   failed validation:       7",
        "    a/longish_test.sh",
        "2   idle                     8",
    ]
    assert said(table, 12)[1:4] == ["1   failed", "    validation:", "    a/longish_test.sh"]


def test_shared_names_stand_above() -> None:
    """Rows of one site stand together, in the order of the first; the total is of all."""
    rows = (("A", "e1", "1"), ("B", "e2", "2"), ("A", "e3", "3"))
    site: Column[None] = Column("site", lambda _: "", name=True, head=True)
    others = columns(("", "entry", "pilots"), names=2)[1:]
    table = Table("", (site, *others), rows, ("all", "", "6"))
    assert said(table, 19) == [
        "site  entry  pilots",
        "A     e1          1",
        "B     e2          2",
        "A     e3          3",
        "all               6",
    ]
    assert said(table, 18) == [
        "  entry  pilots",
        "A",
        "  e1          1",
        "  e3          3",
        "B",
        "  e2          2",
        "all           6",
    ]


def test_columns_are_closer_before_they_are_moved_below() -> None:
    table = Table("", columns(("site", "hours", "runs")), (("A", "1.0", "3"),))
    assert said(table, 17)[0] == "site  hours  runs"
    assert said(table, 15)[0] == "site hours runs"
    assert said(table, 14)[0] == "site  hours"


def test_columns_in_several_tables() -> None:
    """Each has the rows' names, and a share stays with what it is a share of."""
    headers = columns(("entry", "goodput", "%", "overhead", "%", "runs"))
    table = Table("", headers, (("e1", "10.0", "40%", "15.0", "60%", "3"),))
    assert said(table, 20) == [
        "entry  goodput    %",
        "e1        10.0  40%",
        "",
        "entry  overhead    %",
        "e1         15.0  60%",
        "",
        "entry  runs",
        "e1        3",
    ]


def test_what_matters_least_is_moved_below_first() -> None:
    held: Column[None] = Column("held", lambda _: "", rank=1)
    site, pilots, jobs = columns(("site", "pilots", "jobs"))
    table = Table("", (site, held, pilots, jobs), (("A", "1", "2", "3"),))
    assert said(table, 18) == [
        *("site  pilots  jobs", "A          2     3", ""),
        *("site  held", "A        1"),
    ]


@given(st.data())
def test_nothing_is_lost_or_too_wide(data: st.DataObject) -> None:
    """Whatever the table: each cell is there, and a line too long has one name and one cell."""
    word = st.text("abcdefgh_-.", min_size=1, max_size=30)
    number = data.draw(st.integers(2, 8))
    names = data.draw(st.integers(1, min(3, number - 1)))
    headers = [f"h{n} {'x' * n}" for n in range(number)]
    rows = data.draw(
        st.lists(st.lists(word, min_size=number, max_size=number), min_size=1, max_size=6)
    )
    heads = data.draw(st.integers(0, names - 1))
    wrapped = {headers[-1]: 5} if data.draw(st.booleans()) else {}
    width = data.draw(st.integers(30, 130))
    made = tuple(
        Column(column.header, column.cell, name=True, head=at < heads) if column.name else column
        for at, column in enumerate(columns(headers, names, **wrapped))
    )
    found = said(Table("", made, tuple(map(tuple, rows))), width)
    text = "\n".join(found)
    for row in rows:
        for cell in row:
            assert cell in text
    for line in found:
        if len(line) > width:  # names, and at most one column besides, need that much
            assert len(re.findall(r"\S+(?: \S+)*", line)) <= names + 1


def test_control_characters_and_markup_are_only_text() -> None:
    into = io.StringIO()
    console = Console(file=into, width=80, force_terminal=True)
    rows = (("[red]x[/red]",), (Cell("\x1b[2Jy", "red"),))
    show(console, [Table("", columns(("name",)), rows)])
    assert "[red]x[/red]" in into.getvalue()
    assert "\x1b[2J" not in into.getvalue()
    assert "?[2Jy" in into.getvalue()


def test_columns_in_which_nothing_is_said_are_named_instead() -> None:
    """Of zeros only those that may be; what is not known in any line is not zero."""
    zeros = {"held", "other", "pending"}
    headers = ("site", "held", "%", "other", "%", "pending", "pilots", "why", "asked")
    made: tuple[Column[None], ...] = tuple(
        Column(header, lambda _: "", name=not at, zero=header in zeros, share=header == "%")
        for at, header in enumerate(headers)
    )
    rows = (
        ("A", "0", "0%", "0", "0%", "?", "0", "", "?"),
        ("B", "0", "0%", "3", "9%", "0", "0", "", "?"),
    )
    shown = Table("", made, rows, note="Units.").without_nothing()
    assert shown.headers == ("site", "other", "%", "pending", "pilots")
    assert shown.rows[1] == ("B", "3", "9%", "0", "0")
    assert shown.note == (
        "Units. Not shown, as all of it is 0: held. Not shown, as nothing is known of it: asked."
    )
    one = Table("", made, (("A", *["0"] * 8),)).without_nothing()
    assert one.note == "Not shown, as all of it is 0: held, other, pending."
    little = Table("", made, (("A", "0.0", "3%", "-", "-", "0%", *["1"] * 3),)).without_nothing()
    assert little.headers == ("site", "pilots", "why", "asked")
    assert little.note == (
        "Not shown, as all of it rounds to 0: held, pending. "
        "Not shown, as nothing is known of it: other."
    )


def test_headers_are_not_divided_anew_for_each_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long table costs what its cells cost."""
    divided: list[str] = []

    def wrapped(text: str, width: int) -> list[str]:
        divided.append(text)
        return [text]

    monkeypatch.setattr(terminal, "wrapped", wrapped)
    counts = []
    for rows in (10, 1000):
        said(Table("", columns(("site", "hours")), (("A", "1.0"),) * rows), 80)
        counts.append(divided.count("hours"))
        divided.clear()
    assert counts[0] == counts[1]


def test_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of the terminal, but not less than 80; 120 where it is none."""
    monkeypatch.setenv("COLUMNS", "200")
    assert (room(terminal=True), room(terminal=False)) == (200, 120)
    monkeypatch.setenv("COLUMNS", "40")
    assert room(terminal=True) == 80


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of pilots at entries whose names have 40 letters, as real ones have."""
    directory = tmp_path_factory.mktemp("factory")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gwmond.service.host.log.configure", lambda _options: None)
        patch.setattr(simulated, "ENTRIES", 9)
        name = property(lambda of: f"{ENTRIES[of.entry % 3]}{of.entry:02d}")
        patch.setattr(simulated.Pilot, "entry_name", name)
        patch.setattr(simulated.Pilot, "site", property(lambda of: SITES[of.entry % 3]))
        generate.write(directory / "logs", 7, 60)
        path = directory / "ledger.sqlite"
        assert cli.main(["import", "--ledger", str(path), str(directory / "logs")]) == 0
    return path


@pytest.mark.parametrize(
    "command",
    [
        ["report", "--by", "entry"],
        ["report", "--by", "site,entry", "--failures"],
        ["report", "--by", "failure,entry"],
        ["report", "--by", "user,entry"],
        ["report", "--by", "node"],
        ["report", "--style", "analyze-entries"],
        ["report", "--style", "analyze-entries", "--by", "group"],
        ["reconcile"],
        ["pilots", "--past"],
        ["pilot", "7"],
        ["pilot", "20"],
        ["ledger", "check"],
        ["ledger", "stats"],
    ],
    ids=" ".join,
)
def test_no_line_is_too_long(
    command: list[str],
    ledger: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Piped, with entries of 40 letters: no line has more than 120, and every name is whole."""
    monkeypatch.setattr("gwmond.service.host.log.configure", lambda _options: None)
    period = ["--from", "2025-10-09", "--to", "2025-10-16"]
    timed = command[0] in {"report", "reconcile", "pilots"}
    assert cli.main([*command, "--ledger", str(ledger), *(period if timed else [])]) == 0
    text = capsys.readouterr().out
    where = str(ledger.parent)
    long = [line for line in text.splitlines() if len(line) > 120 and where not in line]
    assert long == []
    if timed and command[-1] not in {"node", "group"}:
        names = {f"{ENTRIES[n % 3]}{n:02d}" for n in range(9)}
        assert names <= set(re.findall(r"[\w-]{40}(?![\w-])", text))
    assert "…" not in text


@pytest.mark.parametrize("form", ["table", "markdown", "html"])
def test_a_table_without_rows_is_a_sentence(form: str) -> None:
    """No headers and notes of columns that have nothing; others show their total."""
    total = ("all", "0")
    table = Table("Pilots", columns(("site", "hours")), (), total, "Of time.", "No pilot ended.")
    of_one = replace(table, rows=(("A", "1"),))
    shown = writing.text(Document(lambda: [table], dict), form, width=80)
    assert "Pilots" in shown
    assert "No pilot ended." in shown
    assert not any(word in shown for word in ("hours", "Of time.", "all</td>"))
    shown = writing.text(Document(lambda: [of_one], dict), form, width=80)
    assert all(word in shown for word in ("hours", "Of time."))
    assert "No pilot ended." not in shown
