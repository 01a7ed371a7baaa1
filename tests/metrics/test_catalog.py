"""All metrics: their names, their help, and the page that lists them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from gwmond.metrics import catalog
from gwmond.metrics.family import Family
from gwmond.metrics.render import FOLDED
from tests.metrics import golden

PAGE = Path(__file__).parent.parent.parent / "docs" / "metrics.md"
ALL = [*catalog.FAMILIES, FOLDED]
BASE_UNITS = {"seconds", "bytes", "ratio", ""}
NOT_BASE_UNITS = re.compile(r"_(milliseconds|ms|minutes|hours|days|mb|mib|kib|gb|percent)(_|$)")
families = pytest.mark.parametrize("family", ALL, ids=lambda family: family.name)


def test_page_is_what_its_command_prints() -> None:
    """docs/metrics.md is what the code says."""
    command = [sys.executable, "-m", "gwmond.metrics.catalog"]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    assert PAGE.read_text() == done.stdout, (
        "Run: python -m gwmond.metrics.catalog > docs/metrics.md"
    )


def test_page_lists_every_family_once() -> None:
    """Each family has one row, with as many columns as the others."""
    rows = [line for line in catalog.page().splitlines() if line.startswith("| `")]
    assert [row.split("`")[1] for row in rows] == [family.name for family in ALL]
    assert {row.count("|") for row in rows} == {5}


def test_names_are_unique() -> None:
    """No two families have one name, in neither format."""
    names = [family.name.removesuffix("_total") for family in ALL]
    assert len(set(names)) == len(names)


@families
def test_help(family: Family) -> None:
    """Help is a sentence that states a unit, and says of which time the value is."""
    assert re.search(r"\bUnit: \w|\bNo unit\b", family.help)
    assert family.help.endswith(" As of the last poll.") or (
        family.kind == "counter" and "Integrated over real time between polls" in family.help
    )
    assert "\n" not in family.help
    assert "  " not in family.help


@families
def test_name(family: Family) -> None:
    """Names begin alike, and end as their type and unit demand."""
    assert re.fullmatch(r"gwmond(_[a-z]+)+", family.name)
    assert (family.kind == "counter") == family.name.endswith("_total")
    assert family.kind != "info" or family.name.endswith("_info")
    assert not NOT_BASE_UNITS.search(family.name)
    assert family.unit in BASE_UNITS
    if family.unit:
        assert family.name.removesuffix("_total").endswith("_" + family.unit)
    elif not family.name.endswith(("_canonical_units", "_info")):
        ending = family.name.removesuffix("_total").rpartition("_")[2]
        assert ending not in {"seconds", "bytes", "ratio"}


@families
def test_labels(family: Family) -> None:
    """Labels are plain words, none of which Prometheus or Kubernetes puts on by itself."""
    taken = {
        "type",
        "cluster",
        "owner",
        "zone",
        "job",
        "instance",
        "namespace",
        "pod",
        "le",
        "name",
    }
    assert not taken & set(family.labels)
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", label) for label in family.labels)
    assert len(set(family.labels)) == len(family.labels)


@families
def test_samples_have_the_labels_of_their_family(family: Family) -> None:
    """Each sample has a value for each label, and the whole example has one of each family."""
    text = golden.TEXT.read_text()
    if family.name == "gwmond_replay_speed_ratio":
        return
    bucket = "_bucket" if family.kind == "histogram" else ""
    lines = [line for line in text.splitlines() if re.match(rf"{family.name}{bucket}[ {{]", line)]
    assert lines
    for line in lines:
        assert set(re.findall(r'[{,](\w+)="', line)) - {"le"} == set(family.labels)
