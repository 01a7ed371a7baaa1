"""What tests of the accounting of pilots have in common."""

from __future__ import annotations

import pytest

from tests.build.play import Play


@pytest.fixture
def play() -> Play:
    """An accounting that has seen nothing yet, driven poll by poll."""
    return Play()
