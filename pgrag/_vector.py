"""Teaches a connection pgvector's types, in whatever schema the extension was put, and writes vectors as it reads them."""

from __future__ import annotations

from typing import Any

import numpy as np
import psycopg
from numpy.typing import NDArray
from pgvector.psycopg import register_vector, register_vector_async

__all__ = ["register", "register_async", "to_text"]

# Until the end of the transaction, which looking up the types has begun.
_SEARCH_PATH = """
select pg_catalog.set_config('search_path', 'pg_catalog, ' || pg_catalog.quote_ident(n.nspname), true)
from pg_catalog.pg_extension as e
inner join pg_catalog.pg_namespace as n on n.oid = e.extnamespace
where e.extname = 'vector'
"""


def register(connection: psycopg.Connection[Any]) -> None:
    """Let a connection, in no transaction, send and receive vectors.

    Raises:
        psycopg.ProgrammingError: the database has no pgvector.
    """
    with connection.transaction():
        connection.execute(_SEARCH_PATH)
        register_vector(connection)


async def register_async(connection: psycopg.AsyncConnection[Any]) -> None:
    """Do what :func:`register` does, for asyncio."""
    await connection.execute(_SEARCH_PATH)
    await register_vector_async(connection)
    await connection.commit()


def to_text(vector: NDArray[np.float32]) -> str:
    """Return a vector as pgvector reads it, each number as exact as it is."""
    return "[" + ",".join(map(repr, vector.tolist())) + "]"
