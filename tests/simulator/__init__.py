"""A seeded simulator of a truthful GlideinWMS pool, and what it knows to be true.

In: the pool of ``world`` and the week of ``story``.  Out: what gwmond reads (ads, rows of idle
jobs, histories) at any minute of that week, and ``truth``.  ``python -m tests.simulator`` makes
the demo of it.
"""
