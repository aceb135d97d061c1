"""Serves the stage ``evaluate``: the list of runs that were kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg

from pgrag.errors import translated

__all__ = ["Run", "drop_run", "list_runs"]


@dataclass(frozen=True)
class Run:
    """An evaluation that was kept.

    Attributes:
        run_id: Its number.
        name: What was tried.
        collection: Of which collection.
        kind: ``run``; ``gate`` where two spaces were compared, ``tune`` where settings were, ``answers`` where answers were
            judged.
        started_at: When.
        finished_at: None where it is under way, or was interrupted.
        queries: How many counted; those that nothing answers may not.
        metrics: Means, by arm and measure; of a gate its verdict.
    """

    run_id: int
    name: str
    collection: str
    kind: str
    started_at: datetime
    finished_at: datetime | None
    queries: int
    metrics: Mapping[str, Any]


def list_runs(connection: psycopg.Connection[Any], collection: str | None = None) -> list[Run]:
    """Return the runs that were kept, the newest first.

    Args:
        connection: Of a member of ``pgrag_writer`` or ``pgrag_owner``.
        collection: Of this one only; None: of all.

    Raises:
        Refused: there is no such collection.
    """
    with translated(), connection.transaction():
        rows = connection.execute("select * from pgrag.runs(%s)", (collection,)).fetchall()
    return [Run(*row) for row in rows]


def drop_run(connection: psycopg.Connection[Any], run_id: int) -> None:
    """Forget a run with everything that was kept of it.

    Args:
        connection: Of a member of ``pgrag_writer`` or ``pgrag_owner``.
        run_id: Of the run.

    Raises:
        Refused: there is no such run.
    """
    with translated(), connection.transaction():
        connection.execute("select pgrag.drop_run(%s)", (run_id,))
