"""Serves the stage ``index``: makes collections and keeps their lexical index compact; all work is in SQL."""

from __future__ import annotations

from typing import Any

import psycopg

from pgrag.errors import translated

__all__ = ["compact", "create_collection", "status"]


def create_collection(
    connection: psycopg.Connection[Any],
    name: str,
    *,
    analyzer: str = "english",
    chunk_tokens: int = 256,
    space: str | None = None,
) -> int:
    """Make a collection, the place where documents are put.

    Args:
        connection: Of a member of ``pgrag_writer`` or ``pgrag_owner``.
        name: Its name.
        analyzer: A text search configuration.
        chunk_tokens: Most tokens in a chunk, 16 to 8,192.
        space: Its embedding space; None is the first active static one, or none.

    Returns:
        Its ``collection_id``.

    Raises:
        Refused: the name is taken, or there is no such analyzer or space.
    """
    with translated(), connection.transaction():
        row = connection.execute(
            "select pgrag.create_collection(%s, %s, chunk_tokens => %s, space => %s)",
            (name, analyzer, chunk_tokens, space),
        ).fetchone()
    assert row is not None  # noqa: S101 - a function call gives one row
    return int(row[0])


def compact(connection: psycopg.Connection[Any], *, max_runs: int = 20_000) -> int:
    """Merge the runs of the posting log until none is left to merge.

    Args:
        connection: In autocommit mode: each call is a transaction of its own, so nobody waits long.
        max_runs: Runs to merge in one transaction, at least 2.

    Returns:
        Transactions that it took.
    """
    calls = 0
    with translated():
        left: int | None = None
        while left is None or left > 0:
            row = connection.execute("select pgrag.compact(%s)", (max_runs,)).fetchone()
            calls += 1
            now = int(row[0]) if row else 0
            if left is not None and now >= left:
                break
            left = now
    return calls


def status(dsn: str) -> dict[str, Any]:
    """Count what a database holds and what waits: ``pgrag.status``.

    Args:
        dsn: Connection string of a member of ``pgrag_writer`` or ``pgrag_owner``.

    Returns:
        ``version``, ``collections``, ``documents``, ``chunks``, ``spaces``, ``waiting_for_vectors`` and ``failures``.

    Raises:
        NotInstalled: the database has no pgrag.
        DatabaseError: the role may not ask, or no database answers.
    """
    with translated(), psycopg.connect(dsn, autocommit=True) as connection:
        row = connection.execute("select pgrag.status()").fetchone()
    return dict(row[0]) if row else {}
