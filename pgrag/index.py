"""Serves the stage ``index``: makes collections, and keeps their lexical index compact and right; all work is in SQL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psycopg

from pgrag.errors import Refused, translated

__all__ = [
    "Finding",
    "Lexeme",
    "check",
    "compact",
    "create_collection",
    "ensure_collection",
    "explain_analysis",
    "rebuild",
    "reindex",
    "set_analyzer",
    "slim",
    "status",
]


@dataclass(frozen=True)
class Finding:
    """Something that is not as it should be; a row of ``pgrag.check``.

    Attributes:
        finding: Its kind, such as ``posting``.
        collection: Where.
        subject: The chunk, ACL, lexeme or space; None where ``detail`` counts more findings than are listed.
        detail: What is wrong.
    """

    finding: str
    collection: str
    subject: str | None
    detail: str


@dataclass(frozen=True)
class Lexeme:
    """What the analyzer made of a part of a text; a row of ``pgrag.explain_analysis``.

    Attributes:
        lexeme: What is counted and looked for.
        positions: Where it stands, from 1.
        why: What it was made from.
    """

    lexeme: str
    positions: tuple[int, ...]
    why: str


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


def ensure_collection(connection: psycopg.Connection[Any], name: str) -> bool:
    """Make a collection with default settings, unless there is one.

    Args:
        connection: Of a member of ``pgrag_writer`` or ``pgrag_owner``.
        name: Its name.

    Returns:
        Whether it was made.

    Raises:
        Refused: the name is no name.
        DatabaseError: the role may not.
    """
    try:
        create_collection(connection, name)
    except Refused as error:
        if error.code != "RG004":
            raise
        return False
    return True


def compact(
    connection: psycopg.Connection[Any],
    *,
    max_runs: int = 20_000,
    on_part: Callable[[int], None] = lambda runs: None,
) -> int:
    """Merge the runs of the posting log, once from where the last compaction stopped to the end.

    Args:
        connection: In autocommit mode: each call is a transaction of its own, so nobody waits long.
        max_runs: Runs to merge in one transaction, at least 2.
        on_part: Called after each but the last with the runs that it looked at.

    Returns:
        Transactions that it took.
    """
    calls = 0
    with translated():
        while True:
            row = connection.execute("select pgrag.compact(%s)", (max_runs,)).fetchone()
            calls += 1
            if row is None or not row[0]:
                return calls
            on_part(int(row[0]))


def slim(connection: psycopg.Connection[Any]) -> bool:
    """Build the index of the posting log again, concurrently, where it has outgrown its rows; nobody waits for it.

    Args:
        connection: Of a member of ``pgrag_owner``, in autocommit mode; for others nothing is done.

    Returns:
        Whether there was anything to do.
    """
    with translated():
        statements = [str(row[0]) for row in connection.execute("select pgrag._posting_upkeep()")]
        for statement in statements:
            connection.execute(statement)
        return bool(statements)


def check(
    connection: psycopg.Connection[Any],
    collection: str | None = None,
    *,
    on_collection: Callable[[str, int], None] = lambda name, chunks: None,
) -> list[Finding]:
    """Compare the index with the chunks, and the chunks with their documents; nothing is changed.

    Args:
        connection: Of a member of ``pgrag_writer`` or ``pgrag_owner``; in autocommit mode each collection is one
            snapshot, and none is held longer.
        collection: Its name; None is all of them, by name.
        on_collection: Called with each collection's name and number of chunks before its turn.

    Returns:
        What was found, a hundred of a kind and collection at most; none where all is right.

    Raises:
        Refused: there is no such collection.
    """
    with translated():
        findings: list[Finding] = []
        for name, chunks in _sizes(connection, collection):
            on_collection(name, chunks)
            rows = connection.execute("select * from pgrag.check(%s)", (name,)).fetchall()
            findings += [Finding(*row) for row in rows]
    return findings


def set_analyzer(connection: psycopg.Connection[Any], collection: str, analyzer: str) -> bool:
    """Change the analyzer of a collection, for queries and for what is written from now on; then :func:`reindex`.

    Args:
        connection: Of a member of ``pgrag_writer`` or ``pgrag_owner``.
        collection: Its name.
        analyzer: A text search configuration.

    Returns:
        False where it was that already.

    Raises:
        Refused: there is no such collection or analyzer.
    """
    with translated(), connection.transaction():
        row = connection.execute("select pgrag.set_analyzer(%s, %s)", (collection, analyzer)).fetchone()
    return row is not None and bool(row[0])


def reindex(
    connection: psycopg.Connection[Any],
    collection: str,
    *,
    batch: int = 1000,
    on_batch: Callable[[int, int], None] = lambda done, total: None,
) -> int:
    """Analyse the chunks of a collection again, online, and write those of which the analyzer makes something else.

    Stopped, it may begin again: chunks that are right already cost their analysis and no write.

    Args:
        connection: Of a member of ``pgrag_writer`` or ``pgrag_owner``, in autocommit mode: a batch is a transaction.
        collection: Its name.
        batch: Chunks in one transaction.
        on_batch: Called after each with the chunks looked at so far and those that there were at the beginning.

    Returns:
        Chunks looked at.

    Raises:
        Refused: there is no such collection.
    """
    done, after = 0, 0
    with translated():
        total = sum(chunks for _, chunks in _sizes(connection, collection))
        while True:
            row = connection.execute(
                "select * from pgrag.reindex_chunks(%s, %s, %s)", (collection, after, batch)
            ).fetchone()
            if row is None or row[0] is None:
                return done
            after = int(row[0])
            done = min(done + batch, total)
            on_batch(done, total)


def rebuild(connection: psycopg.Connection[Any], collection: str) -> int:
    """Build postings, statistics and lexemes of a collection anew from its chunks, in one transaction.

    Writers wait meanwhile; searches go on with the old index.

    Args:
        connection: Of a member of ``pgrag_writer`` or ``pgrag_owner``.
        collection: Its name.

    Returns:
        Chunks in it.

    Raises:
        Refused: there is no such collection.
    """
    with translated(), connection.transaction():
        row = connection.execute("select pgrag.rebuild_postings(%s)", (collection,)).fetchone()
    return int(row[0]) if row else 0


def explain_analysis(
    connection: psycopg.Connection[Any], content: str, *, analyzer: str = "english"
) -> list[Lexeme]:
    """Show what the analyzer makes of a text, and why.

    Args:
        connection: Of a member of ``pgrag_reader`` or ``pgrag_writer``.
        content: The text of a document or a query.
        analyzer: A text search configuration.

    Returns:
        The lexemes, in the order of their first position.

    Raises:
        Refused: there is no such analyzer.
    """
    with translated():
        rows = connection.execute(
            "select * from pgrag.explain_analysis(%s, %s)", (content, analyzer)
        ).fetchall()
    return [Lexeme(lexeme, tuple(positions), why) for lexeme, positions, why in rows]


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


def _sizes(connection: psycopg.Connection[Any], collection: str | None) -> list[tuple[str, int]]:
    """List collections by name, with the chunks in them."""
    return connection.execute("select * from pgrag._collection_sizes(%s)", (collection,)).fetchall()
