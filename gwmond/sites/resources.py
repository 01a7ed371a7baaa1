"""Canonical units of one resource: of a pilot, and of a slot or remainder."""

from __future__ import annotations
