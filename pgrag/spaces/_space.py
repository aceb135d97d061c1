"""Serves the stage ``embed``: what is known of an embedding space, and its life from being made to being dropped."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import psycopg

from pgrag._vector import register
from pgrag.embed import StaticEncoder
from pgrag.errors import translated
from pgrag.spaces._query_encoder import attach_shipped, load_tokens

if TYPE_CHECKING:
    from pgrag.embed import Encoder

__all__ = [
    "Space",
    "activate_space",
    "attach_space",
    "calibrate_space",
    "check_encoder",
    "create_space",
    "drop_space",
    "find_space",
    "list_spaces",
    "pause_space",
    "pending_of",
    "query_encoder_of",
    "resume_space",
    "retire_space",
    "space_passport",
]


@dataclass(frozen=True)
class Space:
    """An embedding space, with what it holds and what it lacks; a row of ``pgrag.spaces``.

    Attributes:
        name: Its name.
        kind: ``static``: encoded in SQL from a token table; ``external``: by workers.
        model: The model that makes the document vectors.
        dimension: Numbers per vector that are kept.
        model_dimension: Numbers per vector of the model; more where a trained prefix is kept.
        precision: ``vector``, ``halfvec`` or ``bit``.
        rotate: Whether codes are signs after a rotation.
        index_kind: ``hnsw``, ``ivfflat`` or ``none``.
        index_options: ``m`` and ``ef_construction``, or ``lists``; empty: the usual.
        index_state: ``valid``, ``building``, ``invalid``, ``missing`` or ``none``.
        state: ``building``, ``ready``, ``active`` or ``retired``.
        paused: Whether workers claim nothing of it.
        query_encoder: The token table that embeds queries in SQL, or None.
        collections: Those whose passages it holds.
        answers: Those whose searches it answers.
        vectors: Vectors in it.
        pending: Passages that lack one.
        failing: Of these, those that were tried in vain.
        table_bytes: Size of the vectors, without indexes.
        index_bytes: Size of the approximate index.
        created_at: When it was made.
        passport: What made the vectors, and figures that were measured of them.
        calibration: What dense search goes by on this server.
    """

    name: str
    kind: str
    model: str
    dimension: int
    model_dimension: int
    precision: str
    rotate: bool
    index_kind: str
    index_options: Mapping[str, Any]
    index_state: str
    state: str
    paused: bool
    query_encoder: str | None
    collections: tuple[str, ...]
    answers: tuple[str, ...]
    vectors: int
    pending: int
    failing: int
    table_bytes: int
    index_bytes: int
    created_at: datetime
    passport: Mapping[str, Any]
    calibration: Mapping[str, Any]


def list_spaces(connection: psycopg.Connection[Any]) -> list[Space]:
    """List the embedding spaces, by name.

    Args:
        connection: Of a member of ``pgrag_writer`` or ``pgrag_owner``.
    """
    return _spaces(connection, None)


def find_space(connection: psycopg.Connection[Any], name: str) -> Space:
    """Return one embedding space.

    Args:
        connection: Of a member of ``pgrag_writer`` or ``pgrag_owner``.
        name: Its name.

    Raises:
        Refused: there is no such space.
    """
    return _spaces(connection, name)[0]


def space_passport(connection: psycopg.Connection[Any], name: str) -> dict[str, Any]:
    """Return what made the vectors of a space, and what was measured of them; nothing is counted for it.

    Args:
        connection: Of a member of ``pgrag_writer`` or ``pgrag_owner``.
        name: The space's name.

    Returns:
        Its passport, with ``name``, ``model``, ``dimension`` (numbers per vector that are kept) and ``normalised``.

    Raises:
        Refused: there is no such space.
    """
    with translated(), connection.transaction():
        row = connection.execute("select pgrag.space_passport(%s)", (name,)).fetchone()
    return dict(row[0]) if row else {}


def query_encoder_of(connection: psycopg.Connection[Any], name: str) -> str | None:
    """Name the token table that embeds the queries of a space in SQL; None where there is none, or no such space.

    Args:
        connection: Of a member of ``pgrag_reader`` who may see the space, or of ``pgrag_owner``.
        name: The space's name.
    """
    with translated(), connection.transaction():
        row = connection.execute("select pgrag._query_encoder(%s)", (name,)).fetchone()
    return row[0] if row else None


def pending_of(connection: psycopg.Connection[Any], name: str) -> int:
    """Count the passages that a space still lacks a vector for; 0 where there is no such space.

    Args:
        connection: Of a member of ``pgrag_writer`` or ``pgrag_owner``.
        name: The space's name.
    """
    with translated(), connection.transaction():
        rows = connection.execute("select space, pending from pgrag.space_backlog()").fetchall()
    return sum(pending for space, pending in rows if space == name)


def create_space(
    connection: psycopg.Connection[Any],
    encoder: Encoder,
    *,
    collections: Sequence[str] = (),
    precision: str = "halfvec",
    rotate: bool = False,
    dimension: int | None = None,
    index: str = "hnsw",
    index_options: Mapping[str, int] | None = None,
    with_index: bool | None = None,
) -> int:
    """Make the space of an encoder, in one transaction; nothing is embedded yet.

    Queries are embedded in SQL where the encoder is a static one, or the shipped table was fitted to the model.

    Args:
        connection: Of a member of ``pgrag_owner``, in no transaction.
        encoder: What makes the vectors: its name is the space's, and its passport is kept there.
        collections: Those whose passages it shall hold; workers find them queued.
        precision: ``vector`` (4 bytes a number), ``halfvec`` (2), or ``bit``: halfvec, found by a bit a number.
        rotate: Take the bits after a random rotation.
        dimension: Keep this trained prefix; None is all numbers.
        index: ``hnsw``, ``ivfflat`` or ``none``.
        index_options: ``m`` and ``ef_construction``, or ``lists``; what isn't named is as usual.
        with_index: Make the index now, so that each vector is put into it as it comes; else :func:`build_space`
            does. None is now for ``hnsw``, except with ``bit``; these and ``ivfflat`` are made of vectors that are there.

    Returns:
        Chunks queued for it.

    Raises:
        Refused: the name is taken, something is out of its range, or the prefix isn't trained.
    """
    static = isinstance(encoder, StaticEncoder)
    arguments = (
        encoder.name,
        encoder.passport["model"],
        encoder.dimension if dimension is None else dimension,
        "static" if static else "external",
        bool(encoder.passport.get("normalised", True)),
        index,
        json.dumps(encoder.passport),
        precision,
        rotate,
        encoder.dimension,
        json.dumps(dict(index_options or {})),
        with_index,
    )
    queued = 0
    with translated():
        register(connection)
        with connection.transaction():
            connection.execute(
                "select pgrag.create_space(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)", arguments
            )
            if isinstance(encoder, StaticEncoder):
                load_tokens(connection, encoder.name, encoder.token_rows())
            elif dimension in (None, encoder.dimension):
                attach_shipped(connection, encoder.passport, space=encoder.name)
            for collection in collections:
                row = connection.execute(
                    "select pgrag.attach_space(%s, %s)", (collection, encoder.name)
                ).fetchone()
                queued += int(row[0]) if row else 0
    return queued


def check_encoder(connection: psycopg.Connection[Any], space: str, encoder: Encoder) -> None:
    """Refuse an encoder that is not the one of a space: another model, dimension or weights.

    Args:
        connection: Of a member of ``pgrag_writer`` or ``pgrag_owner``.
        space: The space's name.
        encoder: What shall make vectors or queries of it.

    Raises:
        Refused: there is no such space, or it holds vectors of another model.
    """
    arguments = (space, encoder.passport["model"], encoder.dimension, encoder.passport.get("sha256"))
    with translated(), connection.transaction():
        connection.execute("select pgrag.check_space(%s, %s, %s, %s)", arguments)


def attach_space(connection: psycopg.Connection[Any], collection: str, space: str) -> int:
    """Let a space hold the vectors of a collection; its searches stay as they are.

    Args:
        connection: Of a member of ``pgrag_writer`` or ``pgrag_owner``; of the owner for a retired space.
        collection: Its name.
        space: Its name; vectors that it kept from before are not made again.

    Returns:
        Chunks queued for it; 0 where it held the collection already.

    Raises:
        Refused: there is no such collection or space.
    """
    with translated(), connection.transaction():
        row = connection.execute("select pgrag.attach_space(%s, %s)", (collection, space)).fetchone()
    return int(row[0]) if row else 0


def activate_space(
    connection: psycopg.Connection[Any], collection: str, space: str, *, force: bool = False
) -> None:
    """Let a space answer the dense searches of a collection, from the next statement.

    Args:
        connection: Of a member of ``pgrag_owner``.
        collection: Its name.
        space: Its name; the one before keeps its vectors, so going back is the same call.
        force: Activate it though it lacks vectors of passages that are found by vector now.

    Raises:
        Refused: there is no such collection or space, or it lacks vectors.
    """
    with translated(), connection.transaction():
        connection.execute("select pgrag.activate_space(%s, %s, %s)", (collection, space, force))


def pause_space(connection: psycopg.Connection[Any], space: str) -> bool:
    """Stop the filling of a space: workers finish what they have claimed, and claim nothing more of it.

    Args:
        connection: Of a member of ``pgrag_owner``.
        space: Its name.

    Returns:
        False where it was paused already.

    Raises:
        Refused: there is no such space.
    """
    with translated(), connection.transaction():
        return connection.execute("select pgrag.pause_space(%s)", (space,)).fetchone() == (True,)


def resume_space(connection: psycopg.Connection[Any], space: str) -> bool:
    """Let a paused space be filled again.

    Args:
        connection: Of a member of ``pgrag_owner``.
        space: Its name.

    Returns:
        False where it wasn't paused.

    Raises:
        Refused: there is no such space.
    """
    with translated(), connection.transaction():
        return connection.execute("select pgrag.resume_space(%s)", (space,)).fetchone() == (True,)


def retire_space(connection: psycopg.Connection[Any], name: str) -> bool:
    """Take a space out of use: it gets no new vectors, and may be dropped or brought back.

    Args:
        connection: Of a member of ``pgrag_owner``.
        name: Its name.

    Returns:
        False where it was retired already.

    Raises:
        Refused: there is no such space, or it answers searches.
    """
    with translated(), connection.transaction():
        row = connection.execute("select pgrag.retire_space(%s)", (name,)).fetchone()
    return row == (True,)


def drop_space(connection: psycopg.Connection[Any], name: str) -> None:
    """Delete a space for good, with its vectors and its passport.

    Args:
        connection: Of a member of ``pgrag_owner``.
        name: Its name.

    Raises:
        Refused: there is no such space, or it is in use.
        DatabaseError: long statements hold its tables.
    """
    with translated(), connection.transaction():
        connection.execute("select pgrag.drop_space(%s)", (name,))


def calibrate_space(connection: psycopg.Connection[Any], name: str) -> dict[str, Any]:
    """Measure what exact and approximate search of a space cost on this server, for searches to go by.

    Args:
        connection: Of a member of ``pgrag_owner``.
        name: The space's name.

    Returns:
        What was measured, as ``pgrag.calibrate_space`` keeps it.

    Raises:
        Refused: there is no such space.
    """
    with translated(), connection.transaction():
        row = connection.execute("select pgrag.calibrate_space(%s)", (name,)).fetchone()
    return dict(row[0] or {}) if row else {}


def _spaces(connection: psycopg.Connection[Any], name: str | None) -> list[Space]:
    with translated(), connection.transaction(), connection.cursor() as cursor:
        rows = cursor.execute("select * from pgrag.spaces(%s)", (name,)).fetchall()
        columns = [column.name for column in cursor.description or ()]
    found = [dict(zip(columns, row, strict=True)) for row in rows]
    return [
        Space(**row | {"collections": tuple(row["collections"]), "answers": tuple(row["answers"])})
        for row in found
    ]
