"""Random pilots and jobs with known truth, and their accounting poll by poll."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from hypothesis import strategies as st

from gwmond.model.facts import Berth, EntryKey, Pilot, Size
from gwmond.model.names import DAY_S, NameLimits, Names
from gwmond.model.runs.endings import Ending
from gwmond.model.runs.run_facts import JobRecord, Move, RunFact, Source, Transfer
from gwmond.model.times import SECOND_US
from gwmond.pilots.accounting import PilotAccounting
from gwmond.pilots.life.rules import FAR_US, Rules
from gwmond.pilots.runs.verdicts import Evidence
from gwmond.sources.folding import fold as fold_names
from gwmond.sources.htcondor.pilots.slots import Slots
from gwmond.sources.round import SLOTS
from tests.build.accounting import Steps
from tests.build.kept import Kept, kept

T0 = 1_700_000_000
POLL_S = 60
RULES = Rules(linger_us=300 * SECOND_US, quiet_us=600 * SECOND_US, refresh_us=0)


class Run(NamedTuple):
    """One run, in seconds from T0; ``late_s`` is how long its record takes.

    ``sends_s``: how long it sends its output at its end; None: it has none.
    """

    pilot: int
    start_s: int
    length_s: int
    cores: int
    ending: Ending
    late_s: int
    live: bool
    sources: tuple[Source, ...]
    sends_s: int | None = None


class Truth(NamedTuple):
    """Pilots by (start, length, cores, shown by collectors), and what ran on them.

    Their ads are renewed ``every_s``, and stay for ``ghost_s`` after their end.  ``overlap``: those
    that take the next job while one only sends its output.  ``moved_s``: so long after its begin a
    run that has a record of its own gets one of transfers.
    """

    pilots: tuple[tuple[int, int, int, bool], ...]
    runs: tuple[Run, ...]
    restarts: frozenset[int]
    drops: int
    every_s: int = POLL_S
    ghost_s: int = 0
    overlap: frozenset[int] = frozenset()
    moved_s: int | None = None


ENDINGS = st.sampled_from(
    [
        Ending(over=True, exit_code=0, own_accord=True, began=True, early=False),
        Ending(over=True, exit_code=3, own_accord=True, began=True, early=False),
        Ending(over=True, exit_code=1, own_accord=True, began=True, early=True),
        Ending(over=True, vacate_code=1005, began=True),
        Ending(over=True, vacate_code=1008, began=True),
        Ending(over=True, hold_code=13, began=False),
        Ending(over=True),
    ]
)


SOURCES = st.sampled_from(
    [
        (Source.EPOCH_HISTORY,),
        (Source.EPOCH_HISTORY, Source.SCHEDD_HISTORY),
        (Source.STARTD_HISTORY, Source.EPOCH_HISTORY),
        (),
    ]
)


@st.composite
def truths(draw: st.DrawFn) -> Truth:
    """A few pilots with jobs, in an hour or two."""
    pilots = draw(
        st.lists(
            st.tuples(st.integers(0, 1500), st.integers(1, 4000), st.integers(1, 8), st.booleans()),
            min_size=1,
            max_size=3,
        )
    )
    runs = draw(
        st.lists(
            st.builds(
                Run,
                pilot=st.integers(0, len(pilots) - 1),
                start_s=st.integers(-70, 4000),
                length_s=st.integers(0, 3000),
                cores=st.integers(0, 8),
                ending=ENDINGS,
                late_s=st.integers(0, 8000),
                live=st.booleans(),
                sources=SOURCES,
                sends_s=st.none() | st.integers(0, 3000),
            ),
            max_size=6,
        )
    )
    restarts = draw(st.frozensets(st.integers(0, 200), max_size=4))
    overlap = draw(st.frozensets(st.integers(0, len(pilots) - 1)))
    drops = draw(st.integers(0, 3))
    return Truth(tuple(pilots), tuple(runs), restarts, drops, overlap=overlap)


def _records(truth: Truth) -> list[tuple[int, JobRecord]]:
    """What histories tell, and when (seconds from T0)."""
    told = []
    for number, run in enumerate(truth.runs):
        start_s = truth.pilots[run.pilot][0]
        begin = T0 + start_s + run.start_s
        end = begin + run.length_s
        if truth.moved_s is not None and Source.EPOCH_HISTORY in run.sources:
            at = begin - T0 + min(truth.moved_s, run.length_s)
            job, written_us = f"schedd#{number}.0#{T0}", (T0 + at) * SECOND_US
            move = Move("input", "root", "se.org", "plugin", written_us, files=1)
            moved = RunFact(Source.TRANSFERS, job, 1, written_us, moves=(move,))
            told.append((at, JobRecord(moved, f"glidein_{run.pilot}@node")))
        for delay, source in enumerate(run.sources):
            at = end - T0 + run.late_s * (delay + 1)
            fact = RunFact(
                source,
                f"schedd#{number}.0#{T0}",
                1,
                (T0 + at) * SECOND_US,
                None,
                begin * SECOND_US,
                end * SECOND_US + delay * 1000,
                Size(run.cores, run.cores * 2000),
                "user",
                "group",
                run.ending,
                transfer_out=_sent(run, end) if source is not Source.STARTD_HISTORY else None,
            )
            told.append((at, JobRecord(fact, f"glidein_{run.pilot}@node", T0 + start_s)))
    return sorted(told, key=lambda of: of[0])


def _sent(run: Run, end: int) -> Transfer | None:
    if run.sends_s is None:
        return None
    return Transfer(start_us=(end - run.sends_s) * SECOND_US, end_us=end * SECOND_US)


def no_release() -> None:
    """A restart with the same rules."""


def play(
    truth: Truth,
    release: Callable[[], None] = no_release,
    rules: Rules = RULES,
    after: Callable[[Kept, int], None] = lambda *_: None,
    bound: int | None = None,
) -> Kept:
    """Tell the truth as it comes, poll by poll; ``release`` is called before each restart.

    ``after`` is called after each poll, with what is stored then and its time (microseconds).
    ``bound``: so many entries, and as many of their groups, are kept apart.
    """
    stored = kept()
    names = None if bound is None else Names(NameLimits(bound, bound, bound, DAY_S))
    steps = Steps(PilotAccounting(stored.load(), rules, names), stored)
    records = _records(truth)
    last = max([at for at, _ in records] + [s + n for s, n, _, _ in truth.pilots])
    ends = [start + length + truth.ghost_s for start, length, *_ in truth.pilots]
    ends += [_begin(truth, run) - T0 + run.length_s for run in truth.runs]
    polls = (last + 90_000) // POLL_S
    done = 0
    poll = 0
    while poll <= polls:
        now = T0 + poll * POLL_S
        shown = [
            Pilot(
                name=f"glidein_{number}@node",
                started=T0 + start,
                entry=EntryKey("Site", f"entry{number % 2}"),
                group="f.g",
                factory="F",
                size=Size(cores, cores * 2000),
                free=(),
                jobs=(),
                accepting=True,
                senders=cores if number in truth.overlap else 0,
                remaining_s=None,
                last_heard=T0
                + start
                + min(now - T0 - start, length) // truth.every_s * truth.every_s
                if truth.ghost_s
                else now,
            )
            for number, (start, length, cores, visible) in enumerate(truth.pilots)
            if visible and T0 + start <= now < T0 + start + length + truth.ghost_s
        ]
        if names is not None:
            names.note(
                Counter(Berth(pilot.entry, pilot.group) for pilot in shown), frozenset(), now
            )
            shown = fold_names(names, SLOTS, Slots(tuple(shown), (), ())).pilots
        steps.add_ads(now * SECOND_US, POLL_S * SECOND_US, shown, complete=True)
        claims = [
            _claim(truth, number, now)
            for number, run in enumerate(truth.runs)
            if run.live and _begin(truth, run) <= now < _begin(truth, run) + run.length_s
        ]
        steps.add_claims(now * SECOND_US, claims, complete=True)
        until = done
        while until < len(records) and records[until][0] <= poll * POLL_S:
            until += 1
        chunk = records[max(0, done - truth.drops) : until]  # some come twice
        steps.add_records([record for _, record in chunk])
        done = until
        steps.settle(now * SECOND_US, (now - 120) * SECOND_US)
        steps.accounting.settlement.judge(now * SECOND_US, Evidence((now - 120) * SECOND_US), {})
        steps.store(now * SECOND_US)
        after(stored, now * SECOND_US)
        # Each poll while anything is shown, and 20 minutes more; then records alone are awaited.
        step = 1 if now - T0 < max(ends) + 1200 else 5 if now - T0 < last + 9000 else 60
        if truth.restarts.intersection(range(poll, poll + step)):
            release()
            if names is not None and bound is not None:
                names = Names(
                    NameLimits(bound, bound, bound, DAY_S)
                )  # nothing is remembered of them
            steps = Steps(PilotAccounting(stored.load(), rules, names), stored)
            if release is no_release:  # what was posted is what the same rules make of the facts
                assert all(pilot.changed_since_us == FAR_US for pilot in steps.accounting.pilots)
        poll += step
    assert not any(steps.accounting.settlement.residual.values())
    return stored


def _begin(truth: Truth, run: Run) -> int:
    return T0 + truth.pilots[run.pilot][0] + run.start_s


def _claim(truth: Truth, number: int, now: int) -> JobRecord:
    """A slot's ad, which is renewed all the time."""
    run = truth.runs[number]
    fact = RunFact(
        Source.LIVE_SLOT,
        f"schedd#{number}.0#{T0}",
        None,
        now * SECOND_US,
        None,
        (_begin(truth, run) + 2) * SECOND_US,
        None,
        Size(run.cores, run.cores * 2000),
    )
    return JobRecord(fact, f"glidein_{run.pilot}@node", T0 + truth.pilots[run.pilot][0])
