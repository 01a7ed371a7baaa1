"""Fixtures: a ledger of pilots."""

from __future__ import annotations

import pytest

from tests.build import pilot_ledger


@pytest.fixture(scope="session")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A ledger with pilots, which tests only read; one of their users has HTML in its name."""
    url = str(tmp_path_factory.mktemp("pilots") / "ledger.sqlite")
    pilot_ledger.write(url)
    return url
