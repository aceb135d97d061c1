"""What ``peers.py`` holds answers against: the exact answer of the same kind, over what the caller may see.

Words: bm25s over the lexemes that pgrag's index holds, with the statistics of what the caller sees. Vectors: numpy's
products. Both: reciprocal rank fusion of the two. None of it is pgrag's code, but the analysis of texts and queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import bm25s  # type: ignore[import-untyped]
import numpy as np
import psycopg
from _dense import K, Vectors, halved, unit
from _lexical import PARSE
from _peers_corpus import Access, Corpus, Question, Seen
from numpy.typing import NDArray

Connection = psycopg.Connection[tuple[Any, ...]]
Scores = dict[int, float]

# What kinds of answers there are, by what they are held against.
WORDS, HALVES, VECTORS, BOTH = "words", "vectors at half precision", "vectors", "both"
# Of each arm, as pgrag.search and pghybrid have it.
DEPTH = 100
_RRF_K = 60
# Sums in another order differ in the last bits of float32: cosines by as much, BM25 by that part of a score.
_TIE = 2e-6
_TIE_SHARE = 1e-5
_LEXEMES = """
    select d.uri::int, array(select hashtextextended(l.lexeme collate "C", 0) from unnest(c.tsv) as l order by l.lexeme),
        array(select cardinality(l.positions) from unnest(c.tsv) as l order by l.lexeme)
    from pgrag.chunk as c
    inner join pgrag.document as d on d.collection_id = c.collection_id and d.document_id = c.document_id
"""


@dataclass(frozen=True)
class Right:
    """An exact answer: how many rows are right, the score of the last of them, and the scores of the best hundred."""

    count: int
    least: float
    scores: Scores

    def recall(self, rows: Sequence[int]) -> float | None:
        """Return the share of the right rows that are among the first ten; None where nothing is right."""
        if not self.count:
            return None
        good = sum(self.scores.get(row, -np.inf) >= self.least for row in rows[:K])
        return min(good, self.count) / self.count


class Words:
    """The lexemes of each passage, as pgrag's index holds them, and those of each question.

    Args:
        connection: To a database with the corpus in pgrag.
        corpus: The corpus; passages are known by their row.
    """

    def __init__(self, connection: Connection, corpus: Corpus) -> None:
        self._tokens: list[NDArray[np.int64]] = [np.empty(0, np.int64)] * len(corpus.passages)
        number: dict[int, int] = {}
        with connection.transaction(), connection.cursor("lexemes") as cursor:
            cursor.itersize = 2000
            for row, terms, counts in cursor.execute(_LEXEMES):
                ids = [number.setdefault(term, len(number)) for term in terms]
                self._tokens[row] = np.repeat(np.array(ids, np.int64), counts)
        self._asked: list[list[int] | None] = []
        for question in corpus.questions:
            found = connection.execute(PARSE, (question.text,)).fetchone()
            self._asked.append(
                None
                if found is None
                else [
                    number[term]
                    for term, count in zip(found[0], found[1], strict=True)
                    if term in number
                    for _ in range(count)
                ]
            )

    def index(self, seen: Seen) -> Index:
        """Return the index over some passages."""
        return Index(self._tokens, np.flatnonzero(seen))

    def asked(self, number: int) -> list[int] | None:
        """Return the lexemes of a question; None where it says more than words, such as a phrase."""
        return self._asked[number]


class Index:
    """BM25 in memory over some passages.

    Args:
        tokens: The lexemes of every passage, by its row.
        rows: Those that are in it.
    """

    def __init__(self, tokens: Sequence[NDArray[np.int64]], rows: NDArray[np.int64]) -> None:
        self._rows = rows
        chosen = [tokens[row] for row in rows]
        lexemes, places = np.unique(np.concatenate(chosen), return_inverse=True)
        ends = np.cumsum([len(each) for each in chosen])[:-1]
        self._place = {int(lexeme): place for place, lexeme in enumerate(lexemes)}
        documents = [each.tolist() for each in np.split(places, ends)]
        self._bm25 = bm25s.BM25(k1=1.2, b=0.75, method="lucene")
        self._bm25.index((documents, {str(n): n for n in range(len(lexemes))}), show_progress=False)

    @property
    def bytes(self) -> int:
        """Return the size of its arrays."""
        arrays = (self._bm25.scores[name] for name in ("data", "indices", "indptr"))
        return sum(array.nbytes for array in arrays)

    def best(self, asked: Sequence[int], k: int, mask: NDArray[np.float32] | None = None) -> Scores:
        """Return the best passages that hold a word of the query, best first, with their scores."""
        places = [self._place[lexeme] for lexeme in asked if lexeme in self._place]
        if not places:
            return {}
        found, scores = self._bm25.retrieve(
            [places], k=min(k, len(self._rows)), show_progress=False, weight_mask=mask
        )
        return {
            int(self._rows[place]): float(score)
            for place, score in zip(found[0], scores[0], strict=True)
            if score > 0
        }


def right_answers(corpus: Corpus, access: Access, words: Words) -> dict[tuple[int, str], dict[str, Right]]:
    """Return the right answers of each kind to each question at each visibility."""
    halves = unit(corpus.documents.astype(np.float16).astype(np.float32))
    whole_index: Index | None = None
    right: dict[tuple[int, str], dict[str, Right]] = {}
    for seen, questions in access.callers():
        rows = np.flatnonzero(seen)
        if len(rows) == len(seen):
            index = whole_index = whole_index or words.index(seen)
        else:
            index = words.index(seen)
        for question in questions:
            lexemes = words.asked(question.number)
            by_vector = _nearest(halves, halved(question.vector), rows)
            kinds = {
                HALVES: _right(by_vector, _TIE),
                VECTORS: _right(_nearest(corpus.documents, question.vector, rows), _TIE),
            }
            if lexemes is not None:
                by_words = index.best(lexemes, DEPTH)
                kinds[WORDS] = _right(by_words, _TIE_SHARE * min([*by_words.values()][:K], default=0.0))
                kinds[BOTH] = _right(_fused(by_words, by_vector), 1e-12)
            right[question.number, question.visible] = kinds
    return right


def nearest(documents: Vectors, question: Question, k: int = K) -> list[int]:
    """Return the rows of the nearest that the caller sees, nearest first."""
    cosines = np.where(question.seen, documents @ question.vector, -np.inf)
    return _best(cosines, min(k, int(question.seen.sum()))).tolist()


def _nearest(documents: Vectors, vector: Vectors, rows: NDArray[np.int64]) -> Scores:
    cosines = documents[rows] @ vector if len(rows) < len(documents) else documents @ vector
    return {int(rows[place]): float(cosines[place]) for place in _best(cosines, min(DEPTH, len(rows)))}


def _best(scores: Vectors, k: int) -> NDArray[np.int64]:
    chosen = np.argpartition(scores, len(scores) - k)[len(scores) - k :]
    best: NDArray[np.int64] = chosen[np.argsort(-scores[chosen])]
    return best


def _fused(*arms: Scores) -> Scores:
    fused: Scores = {}
    for arm in arms:
        for rank, row in enumerate(arm, 1):
            fused[row] = fused.get(row, 0.0) + 1 / (_RRF_K + rank)
    return dict(sorted(fused.items(), key=lambda item: -item[1]))


def _right(scores: Scores, tie: float) -> Right:
    best = [*scores.values()][:K]
    return Right(len(best), best[-1] - tie if best else np.inf, scores)
