"""Words that explanations have in common."""

from __future__ import annotations

from collections.abc import Iterable

from gwmond.model.facts import EntryKey, Size
from gwmond.model.times import SECOND_US
from gwmond.reports.render.formats import counted
from gwmond.reports.render.periods import span

_FEW = 3


def capital(text: str) -> str:
    """Return a text with a capital letter at its begin; names in it stay as they are."""
    return text[:1].upper() + text[1:]


def size_text(size: Size) -> str:
    """Return a size in words."""
    gpus = f", {counted(int(size.gpus), 'GPU')}" if size.gpus else ""
    return f"{counted(int(size.cores), 'core')} and {size.memory_mib:.15g} MiB{gpus}"


def duration(seconds: float) -> str:
    """Return a time span in its two largest units; of what is just ahead of the poll, none."""
    return span(round(max(0.0, seconds)) * SECOND_US)


def names_text(keys: Iterable[EntryKey]) -> str:
    """Return the names of a few entries, and how many more there are."""
    return few(key.entry for key in keys)


def few(texts: Iterable[str]) -> str:
    """Return a few names in their order, and how many more there are."""
    names = sorted(set(texts))
    more = f", and {len(names) - _FEW} more" if len(names) > _FEW else ""
    return ", ".join(names[:_FEW]) + more


def sentence(text: str) -> str:
    """Return a text with a full stop, unless it ends a question."""
    return text if text.endswith("?") else f"{text}."


def kinds(number: int) -> str:
    """Return a number of kinds of pilots."""
    return f"{counted(number, 'kind')} of pilots"
