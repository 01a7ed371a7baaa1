"""The projection of overlapping the output of a job with the next job."""

from __future__ import annotations

import pytest

from gwmond.advise.judge import LEAST, gain, overlap

#: Table 1 of the report of 2010: upload (minutes), run (hours), change of throughput (%), with a
#: new slot that is idle for 60 s.
TABLE_1 = (
    (0, 1, -1.67),
    (5, 1, 6.15),
    (10, 1, 12.86),
    (30, 1, 32.22),
    (0, 3, -0.56),
    (5, 3, 2.16),
    (10, 3, 4.74),
    (30, 3, 13.81),
    (0, 6, -0.28),
    (5, 6, 1.10),
    (10, 6, 2.43),
    (30, 6, 7.44),
)


@pytest.mark.parametrize(("upload_min", "run_h", "change"), TABLE_1)
def test_table_1_of_the_report_of_2010(upload_min: int, run_h: int, change: float) -> None:
    """Each line to the last digit; the same from measured lengths that are all alike."""
    found = gain(upload_min * 60, run_h * 3600, 60)
    assert found is not None
    assert round(100 * found, 2) == change
    uploads, runs, idles = ([length] * LEAST for length in (upload_min * 60, run_h * 3600, 60))
    measured = overlap(uploads, runs, idles)
    assert measured is not None
    assert measured.least == measured.gain == measured.most == found


def test_the_last_lines_of_table_1() -> None:
    """Maximum and minimum as the report has them; its average is the sum of its lines by nine."""
    gains = [100 * (gain(u * 60, r * 3600, 60) or 0) for u, r, _ in TABLE_1]
    assert (round(max(gains), 2), round(min(gains), 2)) == (32.22, -1.67)
    assert (round(sum(gains) / 9, 2), round(sum(gains) / len(gains), 2)) == (8.93, 6.7)


def test_quartiles_bound_the_gain() -> None:
    """The gain of the medians lies between the worst and the best quartiles."""
    uploads = [float(60 * n) for n in range(40)]
    runs = [3600.0 + 10 * n for n in range(40)]
    found = overlap(uploads, runs, [30.0, 60.0, 90.0] * 10)
    assert found is not None
    assert found.least < found.gain < found.most
    assert found.gain == pytest.approx((1170 - 60) / (1170 + 3795))


def test_too_little_data_says_nothing() -> None:
    """A few runs, or a few new slots, are no measurement; no length is no gain."""
    many = [600.0] * LEAST
    assert overlap(many[1:], many[1:], many) is None
    assert overlap(many, many, many[1:]) is None
    assert overlap([0.0] * LEAST, [0.0] * LEAST, many) is None
