"""Verdicts that pilots check, as rows of ``verdict_checks``.

Each function runs in the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, delete, literal_column, select

from gwmond.ledger.backend import upsert
from gwmond.ledger.pilot_codec import Undecodable, time_us, whole
from gwmond.ledger.schema import verdict_checks
from gwmond.ledger.writes import Row, clean
from gwmond.model.experiments import Experiment, PilotResult, SiteVerdict
from gwmond.model.facts import EntryKey
from gwmond.model.states import State

_ROW = tuple(verdict_checks.c)


def experiment_values(experiment: Experiment) -> Row:
    """Return the columns of an experiment; raises ``ValueError`` for what cannot be stored."""
    return {
        "pilot": whole(experiment.pilot),
        "site": clean(experiment.entry.site),
        "entry": clean(experiment.entry.entry),
        "group_name": clean(experiment.group),
        "state": experiment.verdict.state.value,
        "reason": clean(experiment.verdict.reason),
        "evidence": experiment.verdict.evidence,
        "registered_us": time_us(experiment.registered_us),
        "result": experiment.result.value,
    }


def experiment_row(values: Sequence[Any]) -> Experiment:
    """Return the experiment of the columns, or raise ``Undecodable``."""
    pilot, site, entry, group, state, reason, evidence, registered_us, result = values
    try:
        verdict = SiteVerdict(State(state), reason, evidence)
        return Experiment(
            pilot, EntryKey(site, entry), group, verdict, registered_us, PilotResult(result)
        )
    except ValueError as exc:
        raise Undecodable(f"verdict check of pilot {pilot}: {exc!r}") from exc


def store_experiments(connection: Connection, rows: Sequence[Row]) -> None:
    """Put rows in the place of those of the same pilots."""
    if rows:
        statement = upsert(connection, verdict_checks)
        changed = {"result": statement.excluded["result"]}
        statement = statement.on_conflict_do_update(index_elements=["pilot"], set_=changed)
        connection.execute(statement, list(rows))


def open_experiments(connection: Connection) -> tuple[Experiment, ...]:
    """Return those without a result."""
    waiting = verdict_checks.c.result == literal_column("''")  # no parameter: the index is of it
    query = select(*_ROW).where(waiting).order_by(verdict_checks.c.pilot)
    return tuple(map(experiment_row, connection.execute(query)))


def experiments_within(
    connection: Connection, since_us: int, until_us: int
) -> tuple[Experiment, ...]:
    """Return those of pilots that registered in a period, in the order of their numbers."""
    at_us = verdict_checks.c.registered_us
    query = select(*_ROW).where(at_us >= since_us, at_us < until_us)
    return tuple(map(experiment_row, connection.execute(query.order_by(verdict_checks.c.pilot))))


def prune_experiments(connection: Connection, before_us: int) -> dict[str, int]:
    """Forget those with a result whose pilots registered before; what they counted stays."""
    c = verdict_checks.c
    old = delete(verdict_checks).where(
        c.registered_us < before_us, c.result != PilotResult.OPEN.value
    )
    return {"experiments": connection.execute(old).rowcount}
