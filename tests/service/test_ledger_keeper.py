"""The keeper of the ledger: totals and cursors that last, and a ledger that cannot be written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from gwmond.config.settings import Config
from gwmond.ledger.database.errors import (
    LedgerError,
    LedgerFailed,
    LedgerFull,
    LedgerRefused,
    LedgerUnreachable,
)
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.ledger.rows import writes
from gwmond.ledger.rows.pilot_codec import Values
from gwmond.ledger.rows.pilot_prune import Retention
from gwmond.ledger.store import Ledger
from gwmond.model.cursor_kinds import IMPORTED_LOG, SCHEDD_KINDS
from gwmond.model.demand.idle_history import Waits
from gwmond.model.elapsed import Elapsed, Tick
from gwmond.model.entries.changes import Changed, ValueKey
from gwmond.model.entries.confidence import NO_CHECKS
from gwmond.model.facts import Cursor, EntryKey, Problem
from gwmond.model.names import Standing
from gwmond.model.pilots.stored_pilots import PilotRow
from gwmond.model.poll.batch import Batch, LedgerState, Peak, Totals
from gwmond.model.problem_names import ProblemName
from gwmond.model.totals import SiteKey
from gwmond.service.accounting.ledger_keeper import LedgerKeeper
from gwmond.service.poller import remembered
from gwmond.service.pool.known_entries import EMPTY, Memory, Recalled
from gwmond.sites.capacity import PeakWindow
from gwmond.sites.integrate import SiteTime
from tests.build.accounting import attached
from tests.build.pilot_files import us
from tests.build.play import record
from tests.build.polls import made

A, B = EntryKey("Alpha", "alpha-ce1"), EntryKey("Beta", "beta-ce1")
T0 = 1_700_000_000  # 800 s into its hour
WINDOW = 720
HOURS = WINDOW, 24
PERIOD = 60


def tick(number: float) -> Tick:
    seconds = number * PERIOD
    return Tick(T0 + seconds, 500 + seconds, 600 + seconds, "boot")


def increment(amount: int, entry: EntryKey = A, state: str = "provisioned") -> SiteTime:
    return SiteTime("cpu", state, "", entry, amount)


def key(entry: EntryKey = A, state: str = "provisioned") -> SiteKey:
    return SiteKey("cpu", state, "", *entry)


class Life:
    """A daemon's polls, of which each has an interval of one period."""

    def __init__(self, url: str, **options: str) -> None:
        self.url = url
        self.keeper = LedgerKeeper(Config.model_validate({"ledger": {"url": url, **options}}))
        self.memory = EMPTY

    def poll(self, number: float, *amounts: int, problems: Sequence[Problem] = ()) -> list[Problem]:
        """Open, and account the interval that ends with poll ``number``."""
        self.memory, failed = self.keeper.open(self.memory, HOURS)
        known = self.keeper.accounted is not None
        passed = Elapsed(PERIOD * 1000 if known else 0, known, "" if known else "first_poll")
        increments = [increment(amount) for amount in amounts]
        return failed + self.keeper.add(tick(number), passed, increments, self.memory, problems)

    def stored(self) -> LedgerState:
        with LedgerReader.open(self.url) as reader:
            return reader.load()

    def hours(self) -> dict[int, int]:
        """Stored amounts by hours since that of T0."""
        with LedgerReader.open(self.url) as reader:
            found = reader.hours(0, 10**7)
        return {row.hour - T0 // 3600: row.micros for row in found}

    def total(self, entry: EntryKey = A) -> int:
        """The total that is shown, which must be the one that is stored."""
        stored = self.stored().totals
        assert self.keeper.totals == stored
        return stored.site[key(entry)].micros if key(entry) in stored.site else 0


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    found = Life(f"sqlite:///{tmp_path}/ledger.sqlite")
    yield found
    found.keeper.close()


def test_totals_shown_are_what_is_stored(life: Life) -> None:
    """After each poll the totals in memory are those in the ledger."""
    assert life.poll(0) == []
    assert life.total() == 0
    for number in range(1, 5):
        assert life.poll(number, 1_000_001, 7) == []
        assert life.total() == number * 1_000_008
    assert life.keeper.accounted == life.stored().tick == tick(4)
    assert life.keeper.status == (True, "", tick(4).wall, 0, False)


def test_total_begins_with_its_first_increment(life: Life) -> None:
    """A total was created when the interval of its first increment began, here and stored."""
    life.poll(0)
    life.poll(1, 5)
    life.poll(2, 5)
    assert life.keeper.totals.site[key()].created == T0
    assert life.total() == 10


def test_restart_goes_on_from_what_is_stored(life: Life) -> None:
    """A new keeper has the totals and the tick of the one before, and adds to them."""
    life.poll(0)
    life.poll(1, 10)
    life.keeper.close()
    after = Life(life.url)
    after.memory, problems = after.keeper.open(EMPTY, HOURS)
    assert problems == []
    assert after.keeper.accounted == tick(1)
    assert after.keeper.totals.site[key()].micros == 10
    after.poll(2, 5)
    assert after.total() == 15
    after.keeper.close()


def test_ledger_unavailable_at_the_start(tmp_path: Path) -> None:
    """Without a ledger time is kept in memory and not shown, and stored once there is one."""
    directory = tmp_path / "later"
    life = Life(f"sqlite:///{directory}/ledger.sqlite")
    for number in range(3):
        (problem,) = life.poll(number, *([10] if number else []))
        assert (problem.source, problem.problem) == ("ledger", "location")
        assert "does not exist. Counters stand still" in problem.detail
        assert problem.detail.endswith(f": install -d -m 0750 -o USER_OF_GWMOND {directory}")
        assert life.keeper.totals == Totals()
        assert not life.keeper.status.up
        assert life.keeper.status.last_commit is None
    directory.mkdir()
    assert life.poll(3, 10) == []
    assert life.total() == 30
    assert life.keeper.status.up
    life.keeper.close()


def test_failing_commits_lose_nothing(life: Life) -> None:
    """While commits fail counters stand still; afterwards everything is added, once."""
    life.poll(0)
    life.poll(1, 100)
    with pytest.MonkeyPatch.context() as full:
        full.setattr(Ledger, "commit", _full)
        for number in range(2, 6):
            (problem,) = life.poll(number, 10)
            assert (problem.source, problem.problem) == ("ledger", "full")
            assert "no space left" in problem.detail
            assert life.total() == 100
        assert life.keeper.status[:2] == (False, "ledger L: no space left. Free some.")
        assert life.keeper.status.last_commit == tick(1).wall
        assert life.keeper.status.waiting_increments == 1
    assert life.poll(6, 10) == []
    assert life.total() == 150
    assert life.keeper.status == (True, "", tick(6).wall, 0, False)
    assert life.poll(7, 10) == []
    assert life.total() == 160


def _full(self: Ledger, batch: Batch) -> None:
    raise LedgerFull("L", "no space left", "Free some.")


def test_what_waits_is_merged_and_hours_stay_exact(life: Life) -> None:
    """What waits for hours is few increments, and each hour gets what was spent in it."""
    life.poll(0)
    amounts = {number: 1_000_003 * number for number in range(1, 121)}
    with pytest.MonkeyPatch.context() as full:
        full.setattr(Ledger, "commit", _full)
        for number in range(1, 120):
            life.poll(number, amounts[number])
        assert life.keeper.status.waiting_increments <= 3
    life.poll(120, amounts[120])
    whole, expected = Life(life.url.replace("ledger", "other")), dict[int, int]()
    whole.poll(0)
    for number, amount in amounts.items():
        whole.poll(number, amount)
    expected = whole.hours()
    whole.keeper.close()
    assert life.total() == sum(amounts.values())
    assert sum(expected.values()) == sum(amounts.values())
    assert life.hours() == expected


def test_interval_over_an_hour_is_not_merged_with_others(life: Life) -> None:
    """An interval that reaches over the full hour is divided alone, not with its neighbours."""
    boundary = (3600 - T0 % 3600) / PERIOD
    life.poll(boundary - 1.5)
    with pytest.MonkeyPatch.context() as full:
        full.setattr(Ledger, "commit", _full)
        life.poll(boundary - 0.5, 0)
        life.poll(boundary + 0.5, 1_000_000)
    life.poll(boundary + 1.5, 5_000_000)
    assert life.hours() == {0: 500_000, 1: 5_500_000}


def test_another_writer_in_between(life: Life) -> None:
    """When somebody else has written meanwhile what waits is dropped: that time is theirs."""
    life.poll(0)
    life.poll(1, 100)
    with pytest.MonkeyPatch.context() as broken:
        broken.setattr(Ledger, "commit", _broken)
        life.poll(2, 10)
    life.keeper.close()
    other = Life(life.url)
    other.poll(3, 1000)
    other.keeper.close()
    life.memory, _ = life.keeper.open(life.memory, HOURS)
    assert life.keeper.accounted == tick(3)
    assert life.keeper.status.waiting_increments == 0
    life.poll(4, 1)
    assert life.total() == 1101


def _broken(self: Ledger, batch: Batch) -> None:
    raise LedgerFailed("L", "it failed", "Look.")


def test_conflict_under_our_hands(life: Life) -> None:
    """A tick that is not ours is a problem, after which the ledger is read again."""
    life.poll(0)
    life.poll(1, 100)
    ledger = life.keeper.ledger
    assert ledger is not None
    ledger.commit(Batch(2, 0))
    (problem,) = life.poll(2, 10)
    assert problem.problem == "conflict"
    assert life.poll(3, 10) == []
    assert life.total() == 120
    assert life.keeper.accounted == tick(3)


def test_refused_batch_is_not_tried_for_ever(life: Life) -> None:
    """A batch that the ledger calls nonsense is dropped with a problem, and polls go on."""
    life.poll(0)

    def refuse(self: Ledger, batch: Batch) -> None:
        raise LedgerRefused("L", "refused a batch", "Report it.")

    with pytest.MonkeyPatch.context() as nonsense:
        nonsense.setattr(Ledger, "commit", refuse)
        assert [p.problem for p in life.poll(1, 7)] == ["refused"]
    assert life.poll(2, 10) == []
    assert life.total() == 10


def test_ledger_that_cannot_be_read_is_let_go(life: Life) -> None:
    """A ledger that opens and fails to load is closed again, so that the next try can open it."""
    with pytest.MonkeyPatch.context() as broken:

        def load(self: Ledger, **_: bool) -> LedgerState:
            raise LedgerFailed("L", "cannot read", "Look.")

        broken.setattr(Ledger, "load", load)
        assert [p.problem for p in life.poll(0)] == ["failed"]
    assert life.poll(1) == []


def test_two_keepers(life: Life) -> None:
    """A ledger that another daemon holds is told as locked, and taken once that has ended."""
    life.poll(0)
    other = Life(life.url)
    assert [p.problem for p in other.poll(1)] == ["locked"]
    life.keeper.close()
    assert other.poll(2) == []
    other.keeper.close()


def test_memory_is_recalled(life: Life) -> None:
    """Peaks, what ran under limits, units in use and the first sight of entries outlive it."""
    hour = T0 // 3600
    window = PeakWindow(WINDOW).add(hour - 2, 50).add(hour, 30)
    asked = PeakWindow(HOURS[1]).add(hour - 3, 45).add(hour - 1, 20)
    memory = Memory({A: T0 - 500}, {(A, "cpu"): 30}, {(A, "cpu"): window}, {})
    memory = memory._replace(asked={(A, "cpu"): asked, (A, "gpu"): asked, (B, "cpu"): asked})
    life.memory = memory
    life.poll(0)
    life.keeper.close()
    recalled = Recalled({A: Standing(T0 - 500, T0)}, {}, T0, "", "")
    config = Config.model_validate({"ledger": {"url": life.url}})
    assert remembered(config) == (memory._replace(recalled=recalled), {}, NO_CHECKS)
    assert life.keeper.open(EMPTY, HOURS) == (memory._replace(recalled=recalled), [])


def test_recalled_and_new_memory(life: Life) -> None:
    """Of what was seen while the ledger was away and what it remembers, both count."""
    hour = T0 // 3600
    life.memory = Memory(
        {A: T0 - 500},
        {(A, "cpu"): 30, (B, "gpu"): 2},
        {(A, "cpu"): PeakWindow(WINDOW).add(hour - 2, 50)},
        {},
    )
    life.poll(0)
    life.keeper.close()
    seen = Memory(
        {A: T0 - 60, B: T0 - 30},
        {(A, "cpu"): 40},
        {(A, "cpu"): PeakWindow(WINDOW).add(hour, 40)},
        {},
    )
    after, _ = life.keeper.open(seen, HOURS)
    assert after.first_seen == {A: T0 - 500, B: T0 - 30}
    assert after.provisioned[A, "cpu"] == 40
    assert after.peaks[A, "cpu"].buckets == ((hour - 2, 50), (hour, 40))


def test_peaks_are_written_when_they_change(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """A peak that has changed replaces the entry's in the ledger, others are not written."""
    written: list[set[EntryKey]] = []
    commit = Ledger.commit

    def note(self: Ledger, batch: Batch) -> Totals:
        written.append(set(batch.peaks))
        return commit(self, batch)

    monkeypatch.setattr(Ledger, "commit", note)
    hour = T0 // 3600
    low, high = PeakWindow(WINDOW).add(hour, 10), PeakWindow(WINDOW).add(hour, 20)
    life.memory = Memory({A: T0, B: T0}, {}, {(A, "cpu"): low, (B, "cpu"): low}, {})
    life.poll(0)
    life.memory = life.memory._replace(peaks={(A, "cpu"): high, (B, "cpu"): low})
    life.poll(1)
    life.poll(2)
    assert written == [{A, B}, {A}, set()]
    assert life.stored().peaks == {
        A: (Peak("cpu", hour, 20),),
        B: (Peak("cpu", hour, 10),),
    }


def test_nothing_is_remembered_of_no_ledger(tmp_path: Path) -> None:
    """Where there is no ledger yet nothing is remembered, and none is made."""
    config = Config.model_validate({"ledger": {"url": f"sqlite:///{tmp_path}/ledger.sqlite"}})
    assert remembered(config) == (EMPTY, None, NO_CHECKS)
    assert list(tmp_path.iterdir()) == []


def test_why_jobs_wait_is_stored_with_the_time_of_sites(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each interval once, also when a commit fails or gwmond is started anew."""
    key, down = ("ap1", "g"), Waits("w", "no_pilot", "down", "S")
    busy = down._replace(reason="pilots_there", cause="pilots_busy")

    def poll(number: float, waits: Waits) -> None:
        life.keeper.note_waits(tick(number).wall, {key: waits}, PERIOD)
        life.poll(number, 1)

    def stored() -> list[tuple[float, float | None, str]]:
        ledger = life.keeper.ledger
        assert ledger is not None
        start = T0 * 1_000_000
        return [
            (
                (row.since_us - start) / 60e6,
                None if row.until_us is None else (row.until_us - start) / 60e6,
                row.cause,
            )
            for row in ledger.waits_of_group(*key, start)
        ]

    life.poll(0, 1)
    poll(1, down)
    poll(2, down)
    assert stored() == [(1, None, "down")]
    with monkeypatch.context() as failing:
        failing.setattr(Ledger, "commit", _full)
        poll(3, busy)
    assert stored() == [(1, None, "down")]
    poll(4, busy)
    assert stored() == [(1, 3, "down"), (3, None, "pilots_busy")]
    life.keeper.close()
    life = Life(life.url)
    life.memory, _ = life.keeper.open(life.memory, HOURS)
    poll(5, busy)
    assert stored() == [(1, 3, "down"), (3, None, "pilots_busy")]
    poll(50, busy)
    assert stored()[1:] == [(3, 5, "pilots_busy"), (50, None, "pilots_busy")]
    assert life.keeper.ledger is not None
    keep = Retention(runs_s=30 * PERIOD)
    assert life.keeper.ledger.prune(tick(50).wall, keep).waits == 2


def test_what_changes_is_stored_once(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when a commit fails or gwmond is started anew; retention keeps what still holds."""
    key = ValueKey("S", "e", "", Changed.MAX_PILOTS)

    def poll(number: float, most: str) -> None:
        life.keeper.note_values(tick(number).wall, {key: most})
        life.poll(number, 1)

    def stored(since: float) -> list[tuple[float, str]]:
        assert life.keeper.ledger is not None
        rows = life.keeper.ledger.values((T0 + round(since * PERIOD)) * 1_000_000)
        assert {row.key for row in rows} == {key}
        return [((row.time_us / 1e6 - T0) / PERIOD, row.value) for row in rows]

    life.poll(0, 1)
    poll(1, "10")
    poll(2, "10")
    with monkeypatch.context() as failing:
        failing.setattr(Ledger, "commit", _full)
        poll(3, "20")
    assert stored(0) == [(1, "10")]
    poll(4, "20")
    assert stored(0) == [(1, "10"), (3, "20")]
    life.keeper.close()
    life = Life(life.url)
    life.memory, _ = life.keeper.open(life.memory, HOURS)
    poll(5, "20")
    poll(6, "10")
    assert stored(3.5) == [(3, "20"), (6, "10")]
    assert life.keeper.ledger is not None
    keep = Retention(pilots_s=5 * PERIOD)
    assert life.keeper.ledger.prune(tick(10).wall, keep).values == 1
    assert stored(0) == [(3, "20"), (6, "10")]


def test_problems_are_kept_within_bounds(life: Life) -> None:
    """Problems of a poll are stored, but not without end."""
    many = [Problem("cm", ProblemName.BAD_SIZE, str(number)) for number in range(500)]
    life.poll(0, problems=many)
    with LedgerReader.open(life.url) as reader:
        assert len(reader.problems(1000)) == 100


def test_old_hours_are_pruned(tmp_path: Path) -> None:
    """Hours beyond their retention are forgotten, totals are not."""
    life = Life(f"sqlite:///{tmp_path}/ledger.sqlite", hours_retention="1h")
    life.poll(0)
    life.poll(1, 100)
    life.poll(300, 10)
    assert life.total() == 110
    assert list(life.hours()) == [5]
    life.keeper.close()


# --- Of pilots

DAY_US = 86_400 * 10**6


def test_cursors_of_schedds_go_with_the_pilots(tmp_path: Path) -> None:
    """Once a schedd has not answered for as long as pilots are kept; no other cursor goes."""
    life = Life(f"sqlite:///{tmp_path}/ledger.sqlite", pilots_retention="3d")
    life.poll(0)
    now = T0 * 10**6
    ages = {"gone": 4, "away": 2, "here": 0}
    there = [
        Cursor(name, kind, f"{name} {kind}", now - days * DAY_US)
        for name, days in ages.items()
        for kind in SCHEDD_KINDS
    ]
    others = [
        Cursor("/log", IMPORTED_LOG, "1", now - 4 * DAY_US),
        Cursor("new", "history", "", None),
    ]
    for cursor in (*there, *others):
        life.keeper.add_records((), cursor, None)
    life.keeper.settle(now, 0, ())
    life.poll(60)
    kept = {*there[2:], *others}
    assert set(life.keeper.cursors) == kept
    life.keeper.close()
    with LedgerReader.open(life.url) as reader:
        assert set(reader.cursors().values()) == kept


KIND = "factory_files"
FULL = LedgerFull("L", "no space left", "Free some.")


def state(keeper: LedgerKeeper, source: str, kind: str = KIND) -> str | None:
    """How far a source has been read."""
    cursor = keeper.cursor(source, kind)
    return cursor.state if cursor is not None else None


def fails(ledger: Ledger, monkeypatch: pytest.MonkeyPatch, error: LedgerError) -> None:
    """Let nothing be stored."""

    def commit(_: object) -> None:
        raise error

    monkeypatch.setattr(ledger, "commit", commit)


def test_cursors_of_any_path_go_on_after_a_restart(tmp_path: Path) -> None:
    """Paths that are long, that differ at their end alone, or that are not UTF-8."""
    long = "/" + "x" * 150
    paths = ["/short", f"{long}/a", f"{long}/b", f"/{'y' * 600}1", f"/{'y' * 600}2", "/z\udcff\0é"]
    with Ledger.open(f"{tmp_path}/ledger.sqlite") as ledger:
        for process in range(3):
            keeper = attached(ledger)
            for path in paths:
                assert state(keeper, path) == (f"{process}{path[-1:]!a}" if process else None)
                keeper.add_facts((), Cursor(path, KIND, f"{process + 1}{path[-1:]!a}", None))
            keeper.settle(us(process), 0, ())
            assert len(keeper.cursors) == len(ledger.cursors()) == len(paths)


def test_cursors_that_did_not_move_are_not_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those whose paths are stored otherwise than they are."""
    moved: list[int] = []

    with Ledger.open(f"{tmp_path}/ledger.sqlite") as ledger:
        store = ledger.commit

        def commit(batch: Batch) -> Totals:
            moved.append(len(batch.cursors))
            return store(batch)

        monkeypatch.setattr(ledger, "commit", commit)
        for _ in range(2):
            keeper = attached(ledger)
            keeper.add_facts((), Cursor("/" + "y" * 600, KIND, "1", None))
            keeper.settle(us(0), 0, ())
    assert moved == [1, 0]


def test_nothing_is_taken_in_while_a_batch_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is tried again as it is; what was taken in before is stored once, then more may come."""
    with Ledger.open(f"{tmp_path}/ledger.sqlite") as ledger:
        keeper = attached(ledger)
        keeper.add_records([record("1.0", 0, 60)], Cursor("s", "epochs", "1", None), None)
        with monkeypatch.context() as patch:
            fails(ledger, patch, FULL)
            with pytest.raises(LedgerFull):
                keeper.settle(us(100), 0, ())
            for _ in range(2):
                keeper.use(ledger)
                assert not keeper.ready
                with pytest.raises(LedgerFull):
                    keeper.retry()
        assert ledger.load().batches == 0
        keeper.retry()
        assert keeper.ready
        keeper.retry()  # nothing waits
        stored = ledger.load()
        assert (stored.batches, len(stored.pilots), len(stored.runs)) == (1, 1, 1)
        assert [cursor.state for cursor in stored.cursors.values()] == ["1"]


@pytest.mark.parametrize("stored", [False, True])
def test_a_ledger_that_went_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stored: bool
) -> None:
    """The batch waits until the ledger is back, unless only the answer was lost."""
    url = f"{tmp_path}/ledger.sqlite"
    with ExitStack() as opened:
        ledger = opened.enter_context(Ledger.open(url))
        keeper = attached(ledger)
        keeper.add_records([record("1.0", 0, 60)], Cursor("s", "epochs", "1", None), None)
        commit = ledger.commit

        def lost(batch: Batch) -> None:
            if stored:
                commit(batch)
            raise LedgerUnreachable("L", "it does not answer", "Wait.")

        monkeypatch.setattr(ledger, "commit", lost)
        with pytest.raises(LedgerUnreachable):
            keeper.settle(us(100), 0, ())
        monkeypatch.undo()
        keeper.retry()  # there is none
        assert not keeper.ready
        ledger = opened.enter_context(Ledger.open(url))
        keeper.use(ledger)
        assert keeper.ready is stored
        keeper.retry()
        assert keeper.ready
        assert ledger.load().batches == 1


def test_a_pilot_that_cannot_be_stored_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is counted once among the records that are not accounted; the polls go on."""

    def values(row: PilotRow) -> Values:
        raise ValueError(f"a bug about {row.identity.name}")

    monkeypatch.setattr(writes, "pilot_values", values)
    polls = made(tmp_path, {"schedds": False})
    for _ in range(3):
        polls.hear()
        found = polls.poll()
    accountant = polls.poller.accountant
    assert accountant is not None
    assert accountant.failure is None
    assert found.problems["records", ProblemName.NOT_STORABLE] == 1
    ledger = polls.ledger
    assert ledger.load().batches >= 3
    assert ledger.pilot_rows() == []


def test_a_full_disk_stops_the_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither records nor sightings are taken in; all goes on when there is space again."""
    polls = made(tmp_path, {"schedds": False})
    polls.poll()
    polls.hear()
    accountant = polls.poller.accountant
    assert accountant is not None
    reads: list[float] = []
    real = accountant.central.read

    def read(now: float) -> list[Problem]:
        reads.append(now)
        return real(now)

    monkeypatch.setattr(accountant.central, "read", read)
    ledger = polls.ledger
    with monkeypatch.context() as patch:
        fails(ledger, patch, FULL)
        for _ in range(3):
            polls.poll()
            assert not polls.keeper.ready
            assert not accountant.behind
    assert len(reads) == 1
    polls.poll()
    assert accountant.failure is None
    assert len(reads) == 2
