"""Writes the golden exposition files anew: ``python -m tests.metrics.golden``."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

from gwmond.metrics import catalog
from gwmond.metrics.render import Exposition, render
from tests.build.snapshots import snapshot

DIRECTORY = Path(__file__).parent.parent / "golden"
TEXT, OPENMETRICS = DIRECTORY / "metrics.txt", DIRECTORY / "metrics.openmetrics.txt"


def exposition() -> Exposition:
    """What is shown of the snapshot that was made by hand, by a gwmond of version 1.2.3."""
    with patch("gwmond.metrics.sources.__version__", "1.2.3"):
        return render(catalog.FAMILIES, snapshot(), 10_000)


if __name__ == "__main__":
    made = exposition()
    DIRECTORY.mkdir(exist_ok=True)
    TEXT.write_bytes(made.text)
    OPENMETRICS.write_bytes(made.openmetrics)
