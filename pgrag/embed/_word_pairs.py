"""Serves the stage ``embed``: pairs of neighbouring words, which a token table may hold vectors of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["WordPairs"]

_Ids = NDArray[np.int64]


class WordPairs:
    """Which pairs of whole words have a vector, and where they stand in a text of token ids.

    A word is whole where it is one token: SQL finds the same pairs by looking up the two words with a space between.

    Args:
        vocabulary: Every token, at the place that is its id.
        pairs: Ids of the two words of each pair, (n, 2), no pair twice.
    """

    def __init__(self, vocabulary: Sequence[str], pairs: NDArray[np.integer]) -> None:
        self.pairs: _Ids = np.asarray(pairs, np.int64).reshape(-1, 2)
        self._vocabulary = vocabulary
        self._part = np.array([token.startswith("##") for token in vocabulary], bool)
        keys = self.pairs[:, 0] * len(vocabulary) + self.pairs[:, 1]
        self._places: _Ids = np.argsort(keys)
        self._keys: _Ids = keys[self._places]

    def __len__(self) -> int:
        return len(self.pairs)

    def written(self) -> list[str]:
        """Return the pairs as SQL looks them up."""
        return [f"{self._vocabulary[one]} {self._vocabulary[other]}" for one, other in self.pairs.tolist()]

    def neighbours(self, ids: _Ids) -> _Ids:
        """Return a key for each two whole words that stand side by side in a text, its token ids being given in order."""
        if len(ids) < 2:
            return np.zeros(0, np.int64)
        part = self._part[ids]
        whole = ~part
        whole[:-1] &= ~part[1:]
        here = np.flatnonzero(whole[:-1] & whole[1:])
        found: _Ids = ids[here] * len(self._vocabulary) + ids[here + 1]
        return found

    def of(self, ids: _Ids) -> _Ids:
        """Return the ids of the pairs in a text, beyond those of the vocabulary, one for each time a pair stands there."""
        if not len(self._keys):
            return np.zeros(0, np.int64)
        keys = self.neighbours(ids)
        at = np.searchsorted(self._keys, keys)
        at[at == len(self._keys)] = 0
        found: _Ids = self._places[at[self._keys[at] == keys]] + len(self._vocabulary)
        return found
