"""Small models: a vector a word, a text is their sum; the same in Python, in SQL and in another process."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgrag.worker import drain

__all__ = ["WORDS", "TableEncoder", "judge", "make_space", "serve"]

# Each is a token of its own to BERT's tokenizer with this vocabulary, and no stemmer makes two of them one.
WORDS = tuple(
    f"{first}{last}"
    for first in ("bar", "fen", "gul", "kor", "lum", "nax")
    for last in ("dok", "tim", "vaz", "zub")
)


class TableEncoder:
    """A model of ``dimension`` numbers whose words' vectors are drawn by ``seed``: two seeds agree on nothing."""

    def __init__(self, name: str, dimension: int, seed: int) -> None:
        self.name = name
        self.dimension = dimension
        self.passport: dict[str, Any] = {
            "name": name,
            "model": f"table-{seed}",
            "dimension": dimension,
            "normalised": True,
        }
        drawn = np.random.default_rng(seed).standard_normal((len(WORDS), dimension)).astype(np.float16)
        self.table = dict(zip(WORDS, drawn.astype(np.float32), strict=True))

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.replace(".", " ").split():
                row += self.table.get(word, 0)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return rows / np.where(lengths == 0, 1, lengths)

    encode_queries = encode_documents

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def distance(self, one: str, other: str) -> float:
        """The cosine distance of two texts."""
        first, second = self.encode_documents([one, other])
        return float(1 - first @ second)


def make_space(db: Any, encoder: TableEncoder, *, kind: str) -> None:
    """Make the space of a model with its words in SQL: of a static one for documents and queries, else for queries."""
    arguments = (encoder.name, encoder.passport["model"], encoder.dimension, kind)
    db.execute("select pgrag.create_space(%s, %s, %s, kind => %s)", arguments)
    vectors = ["[" + ",".join(map(repr, vector.tolist())) + "]" for vector in encoder.table.values()]
    db.execute(
        "select pgrag.load_encoder_tokens(%s, %s, %s, %s::halfvec[])",
        (encoder.name, list(WORDS), list(range(len(WORDS))), vectors),
    )
    if kind != "static":
        db.execute("select pgrag.set_query_encoder(%s, %s)", (encoder.name, encoder.name))


def serve(db: Any, encoder: TableEncoder) -> None:
    """Load a document a word into ``docs``, and let a space of a model answer for them."""
    db.load(WORDS)
    db.execute(
        "select pgrag.create_space(%s, %s, %s)", (encoder.name, encoder.passport["model"], encoder.dimension)
    )
    db.execute("select pgrag.attach_space('docs', %s)", (encoder.name,))
    drain(db.admin, encoder, space=encoder.name)
    db.execute("select pgrag.activate_space('docs', %s)", (encoder.name,))


def judge(db: Any) -> None:
    """Judge those documents: a query each, its word."""
    ids = [f"{number:06}" for number in range(len(WORDS))]
    db.execute(
        "select pgrag.import_judged('docs', %s, %s, %s, %s, %s, %s)",
        (ids, list(WORDS), json.dumps([[]] * len(ids)), ids, ids, [1] * len(ids)),
    )
