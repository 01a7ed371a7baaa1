"""The scenario is played once for each version of HTCondor, for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import VERSIONS
from tests.proof.played import Played, play


@pytest.fixture(scope="package", params=VERSIONS, ids=lambda version: f"htcondor{version}")
def htcondor(request: pytest.FixtureRequest) -> str:
    """The version of the pool in which the scenario is played."""
    return str(request.param)


@pytest.fixture(scope="package")
def played(tmp_path_factory: pytest.TempPathFactory, htcondor: str) -> Iterator[Played]:
    """The scenario, once it is over."""
    with play(tmp_path_factory.mktemp("proof"), htcondor) as over:
        yield over
