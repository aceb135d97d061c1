"""Serves the stage ``evaluate``: a baseline that needs no model, latent semantic analysis in memory, by scikit-learn.

TF-IDF and a truncated singular value decomposition: Deerwester and others 1990. Who may read what is decided before:
it ranks the documents that it is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgrag.errors import PgragError
from pgrag.evaluate._extra import needs_extra

__all__ = ["DIMENSIONS", "LatentSemantics", "fit_lsa"]

DIMENSIONS = 300

Rows = NDArray[np.float64]
# Name and text.
Document = tuple[str, str]

_ITERATIONS = 7
# Words of any script, digits and single letters among them; what a collection's analyzer does isn't imitated.
_WORD = r"(?u)\b\w+\b"


@dataclass(frozen=True)
class LatentSemantics:
    """Documents as they lie in the latent space.

    Attributes:
        uris: The documents' names, in order.
        vectors: float64 (documents, dimensions), rows of length 1, or zero where a document has no known word.
        dimensions: Numbers per vector; 0: too few documents or words for a decomposition, TF-IDF is compared as it is.
    """

    uris: tuple[str, ...]
    vectors: Rows
    dimensions: int
    _words: Any
    _decomposition: Any

    def rank(self, query: str, k: int = 100) -> list[tuple[str, float]]:
        """Rank documents by the cosine with a query, best first, ties by uri.

        Returns:
            At most ``k`` of them with their cosine, those above 0 only: a query without a known word has none.
        """
        if self._words is None:
            return []
        scores = self.vectors @ _unit(self._project([query]))[0]
        # Sums in another order differ in the last bits, which is no order.
        scores = np.round(scores, 12)
        best = sorted(
            np.flatnonzero(scores > 0).tolist(), key=lambda place: (-scores[place], self.uris[place])
        )
        return [(self.uris[place], float(scores[place])) for place in best[:k]]

    def place(self, documents: Iterable[Document], *, most: int | None = None) -> LatentSemantics:
        """Return the same space with other documents in it; words that weren't learned say nothing.

        Raises:
            PgragError: there are more documents than ``most``.
        """
        if self._words is None:
            return self
        uris: list[str] = []
        return replace(self, vectors=_unit(self._project(_texts(documents, uris, most))), uris=tuple(uris))

    def _project(self, texts: Iterable[str]) -> Rows:
        weights = self._words.transform(texts)
        rows: Rows = (
            weights.toarray() if self._decomposition is None else self._decomposition.transform(weights)
        )
        return rows


def fit_lsa(
    documents: Iterable[Document], *, dimensions: int = DIMENSIONS, most: int | None = None, seed: int = 0
) -> LatentSemantics:
    """Learn from texts what words mean, by the documents they occur in together, and place these documents by it.

    Args:
        documents: Name and text of each; read once.
        dimensions: Most numbers per vector; fewer where there are fewer documents or words.
        most: Most documents, since the counts of all their words are in memory.
        seed: Of the decomposition; the same gives the same.

    Raises:
        PgragError: there are more documents than that, or the extra ``evaluate`` is missing.
    """
    missing = needs_extra("sklearn", what="the baseline lsa")
    if missing is not None:
        raise missing
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    # 1 + ln tf, as is usual for LSA; idf = ln((1 + n) / (1 + df)) + 1; rows of length 1.
    words = TfidfVectorizer(token_pattern=_WORD, sublinear_tf=True)
    uris: list[str] = []
    try:
        weights = words.fit_transform(_texts(documents, uris, most))
    except ValueError as error:
        if "empty vocabulary" not in str(error):
            raise
        return LatentSemantics((), np.zeros((0, 0)), 0, None, None)
    kept = min(dimensions, min(weights.shape) - 1)
    if kept < 1:  # one document, or one word
        return LatentSemantics(tuple(uris), _unit(weights.toarray()), 0, words, None)
    decomposition = TruncatedSVD(kept, n_iter=_ITERATIONS, random_state=seed)
    return LatentSemantics(
        tuple(uris), _unit(decomposition.fit_transform(weights)), kept, words, decomposition
    )


def _texts(documents: Iterable[Document], uris: list[str], most: int | None) -> Iterator[str]:
    """Yield the texts, and note the names as they are read."""
    for uri, text in documents:
        if most is not None and len(uris) == most:
            raise PgragError(
                f"the baseline lsa ranks in memory, and there are more than {most:,} documents",
                "Leave it out: --arm lexical --arm dense --arm hybrid",
            )
        uris.append(uri)
        yield text


def _unit(rows: Rows) -> Rows:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Rows = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 1e-12)
    return unit
