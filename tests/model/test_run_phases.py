"""Phases of runs, from their records."""

from __future__ import annotations

from gwmond.model.runs.phases import Phase, Phases, counted_lengths, phases_of
from gwmond.model.runs.run_facts import RunFact, Source, Transfer

S = 10**6
T0 = 1_700_000_000 * S


def fact(**values: object) -> RunFact:
    known: dict[str, object] = {"written_us": T0 + 500 * S, "start_us": T0, "shadow_start": 1}
    return RunFact(Source.EPOCH_HISTORY, "ap#1.0#1", **{**known, **values})  # type: ignore[arg-type]


#: Queued for 20 s, sent for 10 s; the program runs for 300 s; 40 s of output without a queue.
WHOLE = fact(
    transfer_in=Transfer(T0, T0 + 20 * S, T0 + 30 * S, total=5000),
    executing_us=T0 + 31 * S,
    transfer_out=Transfer(None, T0 + 331 * S, T0 + 371 * S, total=800, moved=9800),
)
END = T0 + 372 * S


def test_each_phase_has_its_length_and_bytes() -> None:
    """The wait belongs to its transfer; what is without a wait waited 0; own bytes come first."""
    found = phases_of([WHOLE], T0, END)
    assert found == Phases(30 * S, 300 * S, 40 * S, 20 * S, 0, 5000, 9800)
    assert found.queued_us == 20 * S
    assert counted_lengths([WHOLE], T0, END) == {"stage_in": 30 * S, "stage_out": 40 * S}


def test_absent_is_not_zero() -> None:
    """Without a record of it a phase has no length, and no bytes; a startd has no transfer."""
    startd = RunFact(Source.STARTD_HISTORY, "ap#1.0#1", 1, END, start_us=T0, executing_us=T0 + S)
    assert phases_of([startd], T0, END) == Phases(execute_us=371 * S)
    assert phases_of([], T0, END) == Phases()
    assert phases_of([], T0, END).queued_us is None
    assert counted_lengths([startd], T0, END) == {}


def test_what_did_not_end_lasts_to_the_end_of_the_run() -> None:
    """Input that failed is the whole run, and the program has no time."""
    failed = fact(transfer_in=Transfer(None, T0 + 2 * S, None, total=None))
    assert phases_of([failed], T0, T0 + 9 * S).lengths == {Phase.STAGE_IN: 7 * S}
    assert phases_of([failed], T0, None).lengths == {}


def test_input_ends_where_output_begins() -> None:
    """Where no record has the end of the input, nor when the program began."""
    sent = fact(transfer_in=Transfer(None, T0, None), transfer_out=WHOLE.transfer_out)
    lengths = {Phase.STAGE_IN: 331 * S, Phase.STAGE_OUT: 40 * S}
    assert phases_of([sent], T0, END).lengths == lengths
    assert counted_lengths([sent], T0, END) == {"stage_in": 331 * S, "stage_out": 40 * S}


def test_bytes_of_a_later_run_need_the_run_before() -> None:
    """A shadow's totals go on from run to run: without the one before, nothing is said."""
    later = WHOLE._replace(shadow_start=2)
    assert phases_of([later], T0, END).bytes_in is None
    assert phases_of([later], T0, END).bytes_out == 9800


def test_the_order_of_records_changes_nothing() -> None:
    """The access point's record decides; among those the later."""
    older = WHOLE._replace(written_us=T0, transfer_in=Transfer(None, T0, T0 + S, total=1))
    startd = RunFact(Source.STARTD_HISTORY, "ap#1.0#1", 1, END, start_us=T0, executing_us=T0)
    for facts in ([WHOLE, older, startd], [startd, older, WHOLE]):
        assert phases_of(facts, T0, END) == phases_of([WHOLE], T0, END)
