"""Serves the stage ``embed``: the token table by which SQL embeds the queries of a space, and a static one's documents."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import psycopg
from numpy.typing import NDArray
from pgvector import HalfVector

from pgrag.embed import StaticEncoder
from pgrag.errors import translated

__all__ = ["TokenRow", "attach_shipped", "embed_queries", "imitates", "load_tokens", "replace_query_encoder"]

Vectors = NDArray[np.float32]
# A token, its number in the tokenizer, and its vector, float32 (dimension,).
TokenRow = tuple[str, int, Vectors]

_BATCH = 2000


def load_tokens(connection: psycopg.Connection[Any], space: str, rows: Iterable[TokenRow]) -> None:
    """Load token vectors into a space that has none.

    Args:
        connection: Of a member of ``pgrag_owner``, that knows pgvector's types.
        space: Its name.
        rows: Vectors of multiples of 2**-11 below 1, so that halfvec holds them exactly.
    """
    rest = iter(rows)
    while batch := list(itertools.islice(rest, _BATCH)):
        tokens, ids, vectors = zip(*batch, strict=True)
        connection.execute(
            "select pgrag.load_encoder_tokens(%s, %s, %s, %b)",
            (space, list(tokens), list(ids), [HalfVector(vector) for vector in vectors]),
        )


def replace_query_encoder(
    connection: psycopg.Connection[Any],
    space: str,
    name: str,
    rows: Iterable[TokenRow],
    figures: Mapping[str, Any],
) -> None:
    """Let a table embed the queries of a space of a model, in the place of the one before.

    Args:
        connection: As of :func:`load_tokens`, in a transaction: so no search sees half of it.
        space: Its name.
        name: The table's, which ``dense_plan`` shows.
        rows: As of :func:`load_tokens`.
        figures: Kept in the passport beneath ``query_encoder``.
    """
    connection.execute("select pgrag.set_query_encoder(%s)", (space,))
    load_tokens(connection, space, rows)
    connection.execute("select pgrag.set_query_encoder(%s, %s, %s)", (space, name, json.dumps(figures)))


def imitates(shipped: StaticEncoder, passport: Mapping[str, Any]) -> bool:
    """Tell whether the shipped table was fitted to the model that a passport describes.

    By the weights' sha256; by the model's name where the passport has none, as an endpoint's.
    """
    if passport.get("dimension") != shipped.dimension:
        return False
    if weights := passport.get("sha256"):
        return bool(weights == shipped.passport["teacher_sha256"])
    teacher = str(shipped.passport["teacher"]).split(",")[0].rpartition("/")[2]
    return str(passport.get("model", "")).rpartition("/")[2].lower() == teacher.lower()


def attach_shipped(connection: psycopg.Connection[Any], passport: Mapping[str, Any], *, space: str) -> bool:
    """Let the shipped table embed the queries of a space, where it was fitted to the very model of that space.

    Call it once the space is made, with the passport of its encoder: then hybrid search needs no model for queries.

    Args:
        connection: As of :func:`load_tokens`; this runs in its transaction, or in one of its own.
        passport: What made the space's vectors.
        space: Its name.

    Returns:
        False where the shipped table belongs to another model; nothing is done then.
    """
    shipped = StaticEncoder.shipped()
    if not imitates(shipped, passport):
        return False
    figures = {key: shipped.passport[key] for key in ("model", "teacher", "licence", "sha256")}
    with translated(), connection.transaction():
        replace_query_encoder(connection, space, shipped.name, shipped.token_rows(), figures)
    return True


def embed_queries(connection: psycopg.Connection[Any], space: str, texts: Sequence[str]) -> Vectors:
    """Embed queries by the token table of a space, in SQL.

    Args:
        connection: Of a member of ``pgrag_reader`` who may see the space, or of ``pgrag_owner``.
        space: The space's name.
        texts: What is asked.

    Returns:
        float32 (n, dimension); fewer than ``texts``, since one without a known word has no vector.
    """
    with translated():
        rows = [
            connection.execute("select pgrag.embed_query(%s, %s)::text", (text, space)).fetchone()
            for text in texts
        ]
    vectors = [np.fromstring(row[0][1:-1], np.float32, sep=",") for row in rows if row and row[0]]
    return np.stack(vectors) if vectors else np.zeros((0, 0), np.float32)
