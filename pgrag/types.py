"""What the stages hand to each other: frozen, with the names that the SQL functions use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Collection", "Embedding", "Explanation", "Hit", "QueryEncoder"]

Embedding = Sequence[float] | NDArray[np.float32] | NDArray[np.float16]


@dataclass(frozen=True)
class Hit:
    """A chunk that a search found, and why it is at its place; a row of ``pgrag.search``.

    Attributes:
        chunk_id: The chunk.
        document_id: Its document.
        uri: The document's key in its collection.
        title: The document's title, or None.
        heading_path: Headings above the chunk, outermost first.
        content: The chunk's text.
        score: Sum over arms of weight / (rrf_k + rank).
        lexical_rank: From 1; None where the lexical arm didn't find it.
        lexical_score: BM25, above 0; None likewise.
        dense_rank: From 1; None where the dense arm didn't find it.
        dense_distance: Cosine distance, 0 to 2; None likewise.
        dense_plan: How the dense arm was answered: exactly, or through an index.
    """

    chunk_id: int
    document_id: int
    uri: str
    title: str | None
    heading_path: tuple[str, ...]
    content: str
    score: float
    lexical_rank: int | None
    lexical_score: float | None
    dense_rank: int | None
    dense_distance: float | None
    dense_plan: str | None


@dataclass(frozen=True)
class Collection:
    """A collection in which the caller may see something; a row of ``pgrag.collections``.

    Attributes:
        name: Its name.
        documents: Visible documents.
        chunks: Visible chunks.
        space: The embedding space that answers dense search, or None.
    """

    name: str
    documents: int
    chunks: int
    space: str | None


@dataclass(frozen=True)
class Explanation:
    """Why a chunk is at its place, or where it was lost; a row of ``pgrag.explain_search``.

    Attributes:
        chunk_id: The chunk.
        stage: ``word``, ``lexical``, ``dense`` or ``fusion``.
        rank: Its place at that stage, from 1; None where the stage didn't have it.
        value: What a word gave, BM25, cosine distance or fused score; None likewise.
        detail: The same in words.
    """

    chunk_id: int
    stage: str
    rank: int | None
    value: float | None
    detail: str


class QueryEncoder(Protocol):
    """What a store needs to embed queries with a model outside the database."""

    @property
    def name(self) -> str:
        """Name of the space that its vectors belong to."""

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one vector a text, shape (n, dimension), unit length."""
