"""Serves the stage ``embed``: makes the space of a static encoder, and embeds by it here."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import psycopg

from pgrag._vector import register
from pgrag.errors import NO_SPACE, Refused, translated
from pgrag.spaces._query_encoder import load_tokens
from pgrag.worker import drain

if TYPE_CHECKING:
    from pgrag.embed import StaticEncoder

__all__ = ["embed_static", "load_static_space"]


def load_static_space(dsn: str, encoder: StaticEncoder) -> bool:
    """Make the space of a static encoder and load its token vectors, so that SQL can embed queries.

    The space becomes the default of collections made from then on.

    Args:
        dsn: Connection string of a member of ``pgrag_owner``.
        encoder: The encoder; its name is the space's.

    Returns:
        False where the space was there already.

    Raises:
        DatabaseError: the database refuses, or can't be reached.
    """
    with translated(), psycopg.connect(dsn) as connection:
        register(connection)
        connection.execute("set local role pgrag_owner")
        connection.execute(
            "select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('pgrag.upgrade', 0))"
        )
        found = connection.execute("select pgrag.has_space(%s)", (encoder.name,)).fetchone()
        if found == (True,):
            return False
        connection.execute(
            "select pgrag.create_space(%s, %s, %s, kind => 'static', passport => %s)",
            (encoder.name, encoder.passport["model"], encoder.dimension, json.dumps(encoder.passport)),
        )
        load_tokens(connection, encoder.name, encoder.token_rows())
        connection.execute("select pgrag.open_space(%s)", (encoder.name,))
    return True


def embed_static(connection: psycopg.Connection[Any], collection: str, encoder: StaticEncoder) -> int:
    """Embed, here and fast, what the space of a static encoder lacks of a collection.

    Args:
        connection: In autocommit mode, of a member of ``pgrag_writer`` or ``pgrag_owner``.
        collection: Its name; spaces of a model are left to the workers, other static ones are embedded in SQL.
        encoder: The encoder; its name is the space's.

    Returns:
        Vectors written by the encoder.
    """
    with translated():
        rows = connection.execute(
            "select space, kind, pending from pgrag.space_backlog(%s)", (collection,)
        ).fetchall()
        # A space of a table that an earlier release shipped: the database has it, and goes on with it.
        for space, kind, pending in rows:
            if kind == "static" and pending and space != encoder.name:
                with _unless_dropped():
                    while connection.execute("select pgrag.embed_pending(%s)", (space,)).fetchone() != (0,):
                        pass
    if any(space == encoder.name and pending for space, _, pending in rows):
        with _unless_dropped():
            # A lease would outlive an ingest that is killed, and its successor would pass those chunks over.
            return drain(connection, encoder, space=encoder.name, lease=timedelta(0))
    return 0


@contextlib.contextmanager
def _unless_dropped() -> Iterator[None]:
    """Pass over a space that is dropped meanwhile: the other spaces of the collection are filled all the same."""
    try:
        with translated():
            yield
    except Refused as error:
        if error.code != NO_SPACE:
            raise
