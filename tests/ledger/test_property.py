"""The ledger against a dictionary, over any course of batches, prunes and restarts."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st

from gwmond.ledger.rows.pilot_prune import Retention
from gwmond.ledger.store import Ledger
from gwmond.model.elapsed import Tick
from gwmond.model.poll.batch import Batch
from gwmond.model.times import HOUR_S
from gwmond.model.totals import SiteKey
from tests.examples import examples
from tests.ledger.batches import EPOCH, SITE, key, totals

site_times = st.dictionaries(
    st.tuples(st.integers(EPOCH // HOUR_S, EPOCH // HOUR_S + 6), st.integers(0, 3).map(key)),
    st.integers(0, 10**17),
    max_size=6,
)
SiteTime: TypeAlias = dict[tuple[int, SiteKey], int]
Step: TypeAlias = SiteTime | int | None
steps: st.SearchStrategy[Step] = st.one_of(site_times, st.integers(0, 10), st.none())


@settings(max_examples=examples(30))
@given(st.lists(steps, max_size=8))
def test_any_course(course: list[Step]) -> None:
    """Totals are the exact sums, and the residual is 0, after each batch, prune and restart."""
    wanted: Counter[SiteKey] = Counter()
    before: Tick | None = None
    batches = 0
    with tempfile.TemporaryDirectory() as directory:
        url = str(Path(directory) / "ledger.sqlite")
        ledger = Ledger.open(url)
        for number, step in enumerate(course):
            if step is None:
                ledger.close()
                ledger = Ledger.open(url)
            elif isinstance(step, int):
                ledger.prune(EPOCH + step * HOUR_S, Retention(hours_s=0))
            else:
                now = Tick(EPOCH + number / 3, number / 7, number, "boot")
                changed = ledger.commit(Batch(batches, 0, tick=now, site_time=step))
                before, batches = now, batches + 1
                for (_, series), micros in step.items():
                    wanted[series] += micros
                assert {key: total.net for key, total in changed.site.items()} == {
                    key: wanted[key] for _, key in step
                }
            state = ledger.load()
            assert state.tick == before
            assert totals(state) == dict(wanted)
            assert ledger.check()[SITE].micros == 0
        ledger.close()
