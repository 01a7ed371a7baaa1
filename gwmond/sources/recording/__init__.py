"""Recordings of a pool, and their replay."""
