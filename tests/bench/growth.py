"""Benchmark: by which power of a pool's size a poll grows, in time, CPU and memory.

Jobs, slots, pilots, groups, entries and schedds are doubled several times, each alone, from a
smaller pool (see ``poll_cycle``).  The exponent is the slope of the logarithm over that of the
size: 0 is flat, 1 linear.  What does not grow is in it, so that of the last doubling is higher.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.bench.harness import svg
from tests.bench.poll_cycle import Scale, median, staged

_COLUMNS = {
    "groupby wall": "GroupBy, s",
    "poll wall": "poll, s",
    "poll cpu": "CPU, s",
    "poll own": "CPU of its own process, s",
    "poll memory": "MiB",
}
_DRAWN = {"poll cpu": ("CPU", "#06c"), "poll memory": ("memory", "#c60")}
"""How columns are called, and their colours, in the drawing."""
_SMALL = Scale(25_600, 160, 3, 24_000, 1_500, 20, roomy=10)


class Growth(NamedTuple):
    """What polls cost with ever larger pools: for each column, from the smallest on."""

    name: str
    sizes: list[int]
    columns: dict[str, list[float]]

    def exponent(self, column: str, last: int = 0) -> float:
        """Return the slope of the logarithm over that of the size, or of the last sizes."""
        logs = [math.log2(value) for value in self.columns[column][-last:]]
        return statistics.linear_regression(range(len(logs)), logs).slope


def main() -> None:
    """Double, print a table, draw."""
    parser = argparse.ArgumentParser(prog="growth", description=__doc__)
    for name, value in _SMALL._asdict().items():
        parser.add_argument(f"--{name}", type=int, default=value, help=f"at first ({value})")
    parser.add_argument("--double", type=lambda text: text.split(","), default=Scale._fields[:6])
    parser.add_argument("--times", type=int, default=4, help="to double each (4)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--interval", type=int, default=60, help="of polls, seconds")
    parser.add_argument("--plot", type=Path, help="an SVG to write")
    options = parser.parse_args()
    small = Scale(*(getattr(options, name) for name in Scale._fields))
    titles = ("doubled", "size", *_COLUMNS.values())
    print(f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}", flush=True)
    first: list[float] = []
    grown = []
    for name in options.double:
        sizes = [getattr(small, name) << power for power in range(options.times + 1)]
        rows = [first] if first else []
        for size in sizes[len(rows) :]:
            with staged(small._replace(**{name: size}), options.interval) as bench:
                rounds = bench.rounds(options.rounds)
            rows.append([median(rounds, *column.split()) for column in _COLUMNS])
            print(_row(name, f"{size:,}", rows[-1]), flush=True)
        first = rows[0]
        columns = dict(zip(_COLUMNS, map(list, zip(*rows, strict=True)), strict=True))
        grown.append(Growth(name, sizes, columns))
        for said, last in (("exponent", 0), ("of the last doubling", 2)):
            slopes = [grown[-1].exponent(column, last) for column in _COLUMNS]
            print(_row(f"**{name}**", said, slopes), flush=True)
        if options.plot:
            options.plot.write_text(drawing(grown))


def _row(name: str, size: str, values: Sequence[float]) -> str:
    return f"| {name} | {size} | {' | '.join(f'{value:.2f}' for value in values)} |"


def drawing(grown: Sequence[Growth]) -> str:
    """Draw how CPU and memory grow, as SVG, a panel for each that is doubled, both axes doubling.

    The grey line is what grows as the size does.
    """
    side, left, top, across = 150, 12, 40, 3
    parts = []
    for at, growth in enumerate(grown):
        x0, y0 = left + at % across * (side + 50), top + at // across * (side + 60)
        steps = len(growth.sizes) - 1
        base, step = y0 + side, side / steps
        sizes = f"{growth.sizes[0]:,} to {growth.sizes[-1]:,}"
        parts += [
            f'<text x="{x0}" y="{y0 - 8}">{growth.name}: {sizes}</text>',
            f'<path d="M{x0},{y0}V{base}H{x0 + side}" stroke="#bbb"/>',
            f'<path d="M{x0},{base}L{x0 + side},{y0}" stroke="#ddd"/>',
        ]
        for n, (column, (said, color)) in enumerate(_DRAWN.items()):
            ratios = [value / growth.columns[column][0] for value in growth.columns[column]]
            points = " ".join(
                f"{x0 + k * step:.1f},{base - step * math.log2(ratio):.1f}"
                for k, ratio in enumerate(ratios)
            )
            parts += [
                f'<polyline points="{points}" stroke="{color}" stroke-width="1.5"/>',
                f'<text fill="{color}" x="{x0 + n * side // 2}" y="{base + 16}">'
                f"{said} x {ratios[-1]:.2g}</text>",
            ]
    width, height = across * (side + 50), top + -(-len(grown) // across) * (side + 60) - 20
    return svg(width, height, parts)
