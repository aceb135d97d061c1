"""Serves the stage ``evaluate``: fuses what the arms of a search found as ``pgrag.search`` does, for many settings at once.

What an arm finds first does not depend on how many candidates it is asked for, nor on how they are fused. So it is asked
once, for the most, and each setting is computed from that; a test holds the result against ``pgrag.search``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["FUSIONS", "Candidates", "SearchSettings", "fused"]

FUSIONS = ("rrf", "minmax")


@dataclass(frozen=True)
class SearchSettings:
    """What a search goes by once the arms are known.

    Attributes:
        depth: Candidates of each arm.
        rrf_k: Of reciprocal rank fusion; of no account for another.
        lexical: Weight of the words; 0 leaves them out.
        dense: Weight of the vectors; 0 leaves them out.
        fusion: ``rrf`` or ``minmax``.
    """

    depth: int = 100
    rrf_k: int = 60
    lexical: float = 1.0
    dense: float = 1.0
    fusion: str = "rrf"

    def as_json(self) -> dict[str, Any]:
        """Return them as ``pgrag.set_search_settings`` takes them."""
        return {
            "depth": self.depth,
            "rrf_k": self.rrf_k,
            "weights": {"lexical": self.lexical, "dense": self.dense},
            "fusion": self.fusion,
        }

    def plain(self) -> SearchSettings:
        """Return settings that find the same and are equal for all that do: of one arm, nothing is fused."""
        if self.fusion != "rrf":
            return replace(self, rrf_k=60)
        return self


@dataclass(frozen=True)
class Candidates:
    """What the arms found for one query, a chunk a place, by chunk_id.

    Attributes:
        chunk_ids: Ascending.
        documents: A number for each chunk's document.
        lexical_ranks: From 1; 0 where the arm did not find the chunk.
        lexical_scores: BM25.
        dense_ranks: From 1; 0 where the arm did not find the chunk.
        dense_distances: Cosine distances.
    """

    chunk_ids: NDArray[np.int64]
    documents: NDArray[np.int64]
    lexical_ranks: NDArray[np.int64]
    lexical_scores: NDArray[np.float64]
    dense_ranks: NDArray[np.int64]
    dense_distances: NDArray[np.float64]

    @classmethod
    def of(
        cls, lexical: Sequence[tuple[int, int, float]], dense: Sequence[tuple[int, int, float]]
    ) -> Candidates:
        """Bring two rankings together.

        Args:
            lexical: Chunk, document and score, best first.
            dense: Chunk, document and distance, nearest first.
        """
        documents = {chunk: document for chunk, document, _ in (*lexical, *dense)}
        ids = sorted(documents)
        place = {chunk: nth for nth, chunk in enumerate(ids)}
        ranks = np.zeros((2, len(ids)), np.int64)
        values = np.zeros((2, len(ids)))
        for arm, ranking in enumerate((lexical, dense)):
            for rank, (chunk, _, value) in enumerate(ranking, 1):
                ranks[arm, place[chunk]], values[arm, place[chunk]] = rank, value
        return cls(
            np.array(ids, np.int64),
            np.array([documents[chunk] for chunk in ids], np.int64),
            ranks[0],
            values[0],
            ranks[1],
            values[1],
        )

    def with_lexical(self, lexical: Sequence[tuple[int, int, float]]) -> Candidates:
        """Return these with another ranking by words."""
        order = np.argsort(
            np.where(self.dense_ranks > 0, self.dense_ranks, np.iinfo(np.int64).max), kind="stable"
        )
        dense = [
            (int(self.chunk_ids[at]), int(self.documents[at]), float(self.dense_distances[at]))
            for at in order[: int((self.dense_ranks > 0).sum())]
        ]
        return Candidates.of(lexical, dense)


def fused(found: Candidates, settings: SearchSettings) -> NDArray[np.int64]:
    """Return the places of the candidates that a search with these settings ranks, best first, ties by chunk_id.

    ``rrf``: sum over arms of weight / (rrf_k + rank). ``minmax``: sum over arms of weight * (score - least) / (most - least),
    among the arm's candidates; of distances, the nearest is the most.
    """
    lexical = (found.lexical_ranks > 0) & (found.lexical_ranks <= settings.depth) & (settings.lexical > 0)
    dense = (found.dense_ranks > 0) & (found.dense_ranks <= settings.depth) & (settings.dense > 0)
    if settings.fusion == "rrf":
        score = np.where(lexical, settings.lexical / (settings.rrf_k + found.lexical_ranks), 0.0)
        score = score + np.where(dense, settings.dense / (settings.rrf_k + found.dense_ranks), 0.0)
    else:
        score = settings.lexical * _scaled(found.lexical_scores, lexical)
        score = score + settings.dense * _scaled(-found.dense_distances, dense)
    places = np.flatnonzero(lexical | dense)
    # Stable, and chunk_ids ascend.
    return places[np.argsort(-score[places], kind="stable")]


def _scaled(values: NDArray[np.float64], chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Scale the chosen values from 0 to 1, equal ones to 1; the others are 0."""
    scaled = np.zeros(len(values))
    if chosen.any():
        of_arm = values[chosen]
        least, most = of_arm.min(), of_arm.max()
        scaled[chosen] = (of_arm - least) / (most - least) if most > least else 1.0
    return scaled
