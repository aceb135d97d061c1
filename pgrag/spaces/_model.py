"""Serves the stage ``embed``: lets a model answer a collection, from nothing to the first search, in one step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg

from pgrag.errors import translated
from pgrag.spaces._build import BuildProgress, build_space
from pgrag.spaces._space import activate_space, check_encoder, create_space
from pgrag.worker import drain

if TYPE_CHECKING:
    from collections.abc import Callable

    from pgrag.embed import Encoder
    from pgrag.worker import WorkProgress

__all__ = ["use_model"]


def use_model(
    connection: psycopg.Connection[Any],
    collection: str,
    encoder: Encoder,
    *,
    on_progress: Callable[[WorkProgress], None] | None = None,
    on_build: Callable[[BuildProgress], None] = lambda progress: None,
) -> int:
    """Let a model answer the dense searches of a collection: its space is made, filled, indexed and then activated.

    Searches answer from the space before until the new one lacks nothing. What was embedded before a stop is
    kept, so calling again goes on. The index is built at the end where the server's ``maintenance_work_mem`` holds
    it, which is quicker; else each vector is put into it as it comes.

    Args:
        connection: In autocommit mode, of a member of ``pgrag_owner``.
        collection: Its name.
        encoder: The model; its name is the space's, and its passport is kept there.
        on_progress: Called after each batch.
        on_build: Called while the index is built, from another thread.

    Returns:
        Vectors written.

    Raises:
        Refused: there is no such collection, or the space belongs to another model.
        EncoderError: the model fails for every text.
    """
    with translated():
        connection.execute("select * from pgrag.collection_settings(%s)", (collection,))
        if connection.execute("select pgrag.has_space(%s)", (encoder.name,)).fetchone() != (True,):
            row = connection.execute(
                "select pgrag._fits_build(%s, %s)", (collection, encoder.dimension)
            ).fetchone()
            create_space(connection, encoder, with_index=row != (True,))
        check_encoder(connection, encoder.name, encoder)
        connection.execute("select pgrag.attach_space(%s, %s)", (collection, encoder.name))
    written = drain(connection, encoder, space=encoder.name, on_progress=on_progress)
    build_space(connection, encoder.name, on_progress=on_build)
    activate_space(connection, collection, encoder.name)
    return written
