"""The scenario is played once for each version of HTCondor, for all tests of this folder."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.conftest import VERSIONS
from tests.proof.played import Played, play
from tests.proof.sight import Surprise


@pytest.fixture(scope="package", params=VERSIONS, ids=lambda version: f"htcondor{version}")
def htcondor(request: pytest.FixtureRequest) -> str:
    """The version of the pool in which the scenario is played."""
    return str(request.param)


@pytest.fixture(scope="package")
def played(tmp_path_factory: pytest.TempPathFactory, htcondor: str) -> Iterator[Played]:
    """The scenario, once it is over; once more where its truth could not be seen."""
    with ExitStack() as stack:
        try:
            over = stack.enter_context(play(tmp_path_factory.mktemp("proof"), htcondor))
        except Surprise as surprise:
            warnings.warn(f"the scenario is played again: {surprise}", stacklevel=2)
            over = stack.enter_context(play(tmp_path_factory.mktemp("proof"), htcondor))
        yield over
