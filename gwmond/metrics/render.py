"""Renders a snapshot as the texts that a scrape returns, once after each poll."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from prometheus_client.openmetrics import exposition as openmetrics_exposition
from prometheus_client.utils import floatToGoString

from gwmond.metrics import budget
from gwmond.metrics.family import POLLED, Family, Sample

if TYPE_CHECKING:
    from gwmond.model.poll.snapshot import Exemplar, Snapshot

TEXT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS_TYPE = openmetrics_exposition.CONTENT_TYPE_LATEST

_number: Callable[[float], str] = floatToGoString

FOLDED = Family(
    "gwmond_series_folded",
    'Series of a family that are summed under "other", to stay within metrics.series_budget; '
    "those at 0 are not counted. Unit: series." + POLLED,
    ("family",),
    lambda _: (),
)


class DuplicateSeries(Exception):
    """A family gave two samples with the same labels: a defect of gwmond."""


class Exposition(NamedTuple):
    """The same metrics in both formats, ready to send; only OpenMetrics has ``_created``.

    They are packed once a poll, not once a scrape.
    """

    text: bytes
    openmetrics: bytes
    text_gzip: bytes = b""
    openmetrics_gzip: bytes = b""


def render(families: Sequence[Family], snapshot: Snapshot, series_budget: int) -> Exposition:
    """Render every family that has samples; raises DuplicateSeries."""
    text: list[str] = []
    openmetrics: list[str] = []
    folded: list[Sample] = []
    for family in families:
        shown = budget.shown(family, family.samples(snapshot), snapshot.names)
        is_weak = budget.weak(family, snapshot.names)
        samples, over = budget.within(shown, family.labels, series_budget, is_weak)
        if samples:
            _write(family, samples, text, openmetrics)
        folded.append(Sample((family.name,), over))
    _write(FOLDED, folded, text, openmetrics)
    packed = ["".join(lines).encode() for lines in (text, [*openmetrics, "# EOF\n"])]
    return Exposition(packed[0], packed[1], *(gzip.compress(part, 1) for part in packed))


def _write(
    family: Family, samples: Sequence[Sample], text: list[str], openmetrics: list[str]
) -> None:
    """Add the lines of a family; those of samples are the same in both formats.

    As prometheus_client writes them, which looks at each character of each name in both formats.
    """
    base = family.name.removesuffix({"counter": "_total", "info": "_info"}.get(family.kind, ""))
    spoken = family.help.replace("\\", r"\\").replace("\n", r"\n")
    kind = "gauge" if family.kind == "info" else family.kind
    text.append(f"# HELP {family.name} {spoken}\n# TYPE {family.name} {kind}\n")
    openmetrics.append(metadata(family, base))
    order = sorted(range(len(family.labels)), key=family.labels.__getitem__)
    before = None
    for sample in sorted(samples, key=itemgetter(0)):  # its labels
        if sample.labels == before:
            raise DuplicateSeries(f"{family.name}{sample.labels}")
        before = sample.labels
        named = [_pair(family.labels[at], before[at]) for at in order]
        labels = f"{{{','.join(named)}}}" if named else ""
        if family.buckets:
            _write_histogram(family, sample, named, text, openmetrics)
            continue
        line = f"{family.name}{labels} {_number(sample.value)}\n"
        text.append(line)
        exemplar = sample.exemplars[0] if sample.exemplars else None
        openmetrics.append(line if exemplar is None else line[:-1] + _spoken(exemplar))
        if family.kind == "counter" and sample.created is not None:
            openmetrics.append(f"{base}_created{labels} {_number(sample.created)}\n")


def _write_histogram(
    family: Family, sample: Sample, named: list[str], text: list[str], openmetrics: list[str]
) -> None:
    """Add the lines of a histogram: a bucket counts what is in those before it too."""
    number = 0
    for bound, counted, exemplar in zip(
        family.buckets, sample.buckets, sample.exemplars, strict=True
    ):
        number += counted
        le = bound if bound == "+Inf" else f"{bound}.0"
        labels = ",".join(sorted([*named, f'le="{le}"']))
        line = f"{family.name}_bucket{{{labels}}} {_number(number)}"
        text.append(f"{line}\n")
        openmetrics.append(line + ("\n" if exemplar is None else _spoken(exemplar)))
    for suffix, value in (("count", number), ("sum", sample.value)):
        line = f"{family.name}_{suffix}{{{','.join(named)}}} {_number(value)}\n"
        text.append(line)
        openmetrics.append(line)


def _spoken(exemplar: Exemplar) -> str:
    """Return what follows a value (OpenMetrics 1.0, "Exemplars")."""
    labels = f'trace_id="{exemplar.trace_id}",span_id="{exemplar.span_id}"'
    return f" # {{{labels}}} {_number(exemplar.value)} {exemplar.at:.3f}\n"


def metadata(family: Family, base: str) -> str:
    """Return the metadata lines of OpenMetrics; ``base``: the name without what the type adds."""
    unit = f"# UNIT {base} {family.unit}\n" if family.unit else ""
    return f"# HELP {base} {escaped(family.help)}\n# TYPE {base} {family.kind}\n{unit}"


def escaped(text: str) -> str:
    r"""Return a text with quotes and backslashes escaped.

    >>> print(escaped('a "b" \\ c'))
    a \"b\" \\ c
    """
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


@lru_cache(50_000)
def _pair(label: str, value: str) -> str:
    """Return a label as it is written; a known place is, in each family, at each poll."""
    return f'{label}="{escaped(value)}"'
