"""Lines about a ledger."""

from __future__ import annotations

from gwmond.model.cursor_kinds import SILENT_BEFORE, UPDATE_GAPS, WAITING_LINES
from gwmond.model.facts import Cursor
from gwmond.model.times import SECOND_US
from gwmond.reports.ledger.ledger_reading import cursor_lines

NOW_US = 1_700_000_000 * SECOND_US


def test_cursors_by_kind() -> None:
    """A line a kind, with the least that was read, and never what is ahead of now."""
    cursors = [
        Cursor(f"/logs/client/entry_{n}", "factory_files", "", NOW_US + n * SECOND_US)
        for n in range(9)
    ]
    (line,) = cursor_lines(cursors, NOW_US, each=False)
    assert line.startswith("cursors factory_files: 9 directories in /logs/client, read until 2023-")
    each = cursor_lines(cursors, NOW_US, each=True)
    assert len(each) == 9
    assert all(line.endswith("until 2023-11-14T22:13:20Z (0s ago)") for line in each)
    (old,) = cursor_lines(cursors[:1], NOW_US + 400 * 86400 * SECOND_US, each=True)
    assert old.endswith("complete until 2023-11-14T22:13:20Z (400d00h ago)")


def test_cursors_of_sources() -> None:
    """Sources that are no paths; some were never read."""
    cursors = [Cursor("a", "history", "", None), Cursor("b", "history", "", NOW_US - SECOND_US)]
    (line,) = cursor_lines([*cursors, Cursor("c", "epochs", "", None)], NOW_US, each=False)[1:]
    assert "2 sources, read until 2023-11-14T22:13:19Z, of 1 nothing yet" in line


def test_cursors_of_logs_that_were_kept() -> None:
    """They have no time up to which they are known, and were read."""
    cursors = [Cursor(f"/logs/{n}.log", "imported_log", "", None) for n in range(2)]
    assert cursor_lines(cursors, NOW_US, each=False) == [
        "cursors imported_log: 2 files in /logs, read (each: --cursors)"
    ]
    assert cursor_lines(cursors[:1], NOW_US, each=False) == [
        "cursor /logs/0.log imported_log: read"
    ]


def test_what_the_book_keeps_is_no_source() -> None:
    """Lines of logs that wait, and how often ads are renewed: nobody reads on from there."""
    kinds = SILENT_BEFORE, UPDATE_GAPS, WAITING_LINES
    cursors = [Cursor("collector", kind, "60 60", None) for kind in kinds]
    assert cursor_lines(cursors, NOW_US, each=True) == []
