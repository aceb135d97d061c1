"""Serves the stage ``embed``: makes embedding spaces in the database and loads what a static one is encoded from."""

from __future__ import annotations

import itertools
import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import psycopg
from pgvector import HalfVector

from pgrag._vector import register
from pgrag.errors import translated
from pgrag.worker import drain

if TYPE_CHECKING:
    from collections.abc import Callable

    from pgrag.embed import Encoder, StaticEncoder
    from pgrag.worker import WorkProgress

__all__ = ["embed_static", "load_static_space", "use_model"]

_BATCH = 2000


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
        rows = encoder.token_rows()
        while batch := list(itertools.islice(rows, _BATCH)):
            tokens, ids, vectors = zip(*batch, strict=True)
            halves = [HalfVector(vector) for vector in vectors]
            connection.execute(
                "select pgrag.load_encoder_tokens(%s, %s, %s, %b)",
                (encoder.name, list(tokens), list(ids), halves),
            )
        connection.execute("select pgrag.open_space(%s)", (encoder.name,))
    return True


def embed_static(connection: psycopg.Connection[Any], collection: str, encoder: StaticEncoder) -> int:
    """Embed, here and fast, what the space of a static encoder lacks of a collection.

    Args:
        connection: In autocommit mode, of a member of ``pgrag_writer`` or ``pgrag_owner``.
        collection: Its name; other spaces of it are left to the workers.
        encoder: The encoder; its name is the space's.

    Returns:
        Vectors written.
    """
    with translated():
        rows = connection.execute(
            "select space, pending from pgrag.space_backlog(%s)", (collection,)
        ).fetchall()
    if not any(space == encoder.name and pending for space, pending in rows):
        return 0
    # A lease would outlive an ingest that is killed, and its successor would pass those chunks over.
    return drain(connection, encoder, space=encoder.name, lease=timedelta(0))


def use_model(
    connection: psycopg.Connection[Any],
    collection: str,
    encoder: Encoder,
    *,
    on_progress: Callable[[WorkProgress], None] | None = None,
) -> int:
    """Let a model answer the dense searches of a collection: its space is made, filled and then activated.

    Searches answer from the space before until the new one lacks nothing. What was embedded before a stop is
    kept, so calling again goes on.

    Args:
        connection: In autocommit mode, of a member of ``pgrag_owner``.
        collection: Its name.
        encoder: The model; its name is the space's, and its passport is kept there.
        on_progress: Called after each batch.

    Returns:
        Vectors written.

    Raises:
        Refused: there is no such collection, or the space belongs to another model.
        EncoderError: the model fails for every text.
    """
    with translated():
        connection.execute("select * from pgrag.collection_settings(%s)", (collection,))
        if connection.execute("select pgrag.has_space(%s)", (encoder.name,)).fetchone() != (True,):
            connection.execute(
                "select pgrag.create_space(%s, %s, %s, passport => %s)",
                (encoder.name, encoder.passport["model"], encoder.dimension, json.dumps(encoder.passport)),
            )
        connection.execute(
            "select pgrag.check_space(%s, %s, %s)",
            (encoder.name, encoder.passport["model"], encoder.dimension),
        )
        connection.execute("select pgrag.attach_space(%s, %s)", (collection, encoder.name))
    written = drain(connection, encoder, space=encoder.name, on_progress=on_progress)
    with translated():
        connection.execute("select pgrag.activate_space(%s, %s)", (collection, encoder.name))
    return written
