"""What is to be looked at again."""

from __future__ import annotations

from gwmond.pilots.factory.queue_records import Agenda


def test_each_name_when_it_is_due_first() -> None:
    """The earliest time counts, and what is later is to be added again."""
    agenda = Agenda()
    for name, due_us in (("a", 50), ("b", 20), ("a", 30), ("a", 70)):
        agenda.add(name, due_us)
    assert agenda.take(19) == set()
    assert agenda.take(30) == {"a", "b"}
    agenda.add("a", 40)
    assert agenda.take(60) == {"a"}
    assert agenda.take(100) == set()


def test_what_is_put_off_again_and_again_takes_no_room() -> None:
    """As a pilot whose output grows, which is waited for anew each time."""
    agenda = Agenda()
    for due_us in range(1000):
        agenda.add("a", due_us)
    assert len(agenda) == 1
