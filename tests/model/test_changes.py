"""What is followed of entries and groups, and when a change is noted."""

from __future__ import annotations

from gwmond.model.entries.changes import A_DAY, Changed, ValueKey, ValueLog, values
from gwmond.model.facts import EntryKey, Limit, Size
from tests.build.facts import request, template, totals

ENTRY = EntryKey("S", "e")


def test_what_is_known_of_entries_and_their_pilots() -> None:
    """What is not known is not there; an estimated template says nothing of pilots."""
    limit = Limit("GlideClientLimitTotalGlideinsPerEntry", "count=6, limit=5")
    asked = request(ENTRY, group="fe.main", down=True, limits=(limit, Limit("Held", "1")))
    pilots = template(ENTRY, Size(8, 16000), group="fe.main")
    versions = (("htcondor", "25.1.0"),)
    found = values(
        totals(asked),
        [asked],
        [
            pilots._replace(start="x" * 2000, versions=versions),
            template(ENTRY, Size(1, 2000), evidence="estimated", group="fe.other"),
        ],
    )
    start = found.pop(ValueKey(*ENTRY, "fe.main", Changed.START))
    assert start.startswith("x" * 1000 + "... ")
    assert len(start) == 1020
    assert found == {
        (*ENTRY, "", "downtime"): "yes",
        (*ENTRY, "", "max_pilots"): "1000",
        (*ENTRY, "fe.main", limit.name): "5",
        (*ENTRY, "fe.main", "pilot_size"): "8 cores, 16000 MiB, 0 GPUs",
        (*ENTRY, "fe.main", "htcondor"): "25.1.0",
    }


def test_a_change_is_noted_once_and_what_flaps_so_many_times_a_day() -> None:
    key, log = ValueKey(*ENTRY, "", Changed.DOWNTIME), ValueLog()
    assert [len(log.step(at, {key: "no"})) for at in (1, 2)] == [1, 0]
    assert log.step(3, {}) == []
    noted = sum(len(log.step(at, {key: str(at)})) for at in range(4, 104))
    assert noted == A_DAY - 1
    assert len(log.step(86_400_000_000, {key: "no"})) == 1
