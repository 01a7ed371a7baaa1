"""Hypothesis: no files in the tree, and no deadline on a machine that others use too."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("metrics", deadline=None, database=None, print_blob=True)
settings.load_profile("metrics")
