"""The tables of what factories say, on the metadata of ``schema``.

Always: ``number`` of a series = ``pruned`` + sum of its hours; it never falls.  No hour before
``pilot_batches.pruned_before`` has a row.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Integer,
    Table,
    Text,
    UniqueConstraint,
)

from gwmond.ledger.schema import ROW_NUMBER, metadata

factory_totals = Table(
    "factory_totals",
    metadata,
    Column("id", ROW_NUMBER, primary_key=True),
    Column("entry", Text, nullable=False),
    Column("client", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("created", Double, nullable=False),
    # What was taken out of factory_hours by retention, with what came later for such hours.
    Column("pruned", BigInteger, nullable=False, server_default="0"),
    UniqueConstraint("entry", "client", "kind", name="factory_totals_key"),
    CheckConstraint("pruned >= 0 AND number >= pruned", name="factory_totals_number"),
)

factory_hours = Table(
    "factory_hours",
    metadata,
    Column("hour", Integer, primary_key=True, autoincrement=False),
    Column(
        "series",
        BigInteger,
        ForeignKey("factory_totals.id", name="factory_hours_series"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("number", BigInteger, nullable=False),
    CheckConstraint("number >= 0", name="factory_hours_number"),
    sqlite_with_rowid=False,
)
