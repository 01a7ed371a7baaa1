"""Packed values are those that were packed, in their order, however often they are read."""

from __future__ import annotations

import pickle

from hypothesis import given
from hypothesis import strategies as st

from gwmond.model.packed import Packed


@given(st.lists(st.one_of(st.integers(), st.text(max_size=5))), st.integers(1, 7))
def test_all_come_out_twice_also_after_they_were_sent(values: list[int | str], times: int) -> None:
    packed = Packed.joined([Packed(values)] * times)
    sent: Packed[int | str] = pickle.loads(pickle.dumps(packed))
    assert list(sent) == list(sent) == values * times
    assert len(sent) == len(values) * times


def test_a_part_is_read_at_a_time() -> None:
    packed = Packed(range(12_001))
    assert [len(part) for part in packed.parts()] == [5000, 5000, 2001]
    assert list(packed) == list(range(12_001))
