"""Serves the stage ``embed``: the static encoder, whose vectors are sums of token vectors.

The same encoder runs inside the database as ``pgrag.embed_query``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from pgrag.embed._encoder import Vectors
from pgrag.embed._texts import encodable
from pgrag.embed._word_pairs import WordPairs
from pgrag.errors import PgragError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["StaticEncoder"]

# Texts tokenised at a time: bounds the memory of encoding a long list.
_BATCH = 256


class StaticEncoder:
    """A table of token vectors: a text's vector is the normalised sum of its tokens' vectors.

    Some pairs of words have a vector too, which is added where they stand side by side.

    The vectors are multiples of 2**-11 below 1, exact in float16; sums are exact in float32 up to thousands
    of tokens: neither the order of tokens nor the batch nor whether Python or SQL adds them up changes it.

    Args:
        folder: Holds ``tokens.npz``, ``vocab.txt`` and ``passport.json``.
        name: Name of its space; None is that of the passport.

    Raises:
        PgragError: a file is missing, or the table is not the one that the passport describes.
    """

    def __init__(self, folder: Path, *, name: str | None = None) -> None:
        try:
            self.passport: dict[str, Any] = json.loads((folder / "passport.json").read_text(encoding="utf-8"))
            self._vocabulary = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")[:-1]
            weights = (folder / "tokens.npz").read_bytes()
        except OSError as error:
            raise PgragError(
                f"the static encoder at {folder} can't be read: {error.strerror}",
                "Install pgrag again, or train a table: python bench/train_static.py",
            ) from error
        if hashlib.sha256(weights).hexdigest() != self.passport["sha256"]:
            raise PgragError(
                f"{folder / 'tokens.npz'} is not the table that its passport describes: its sha256 differs",
                "Install pgrag again.",
            )
        with np.load(folder / "tokens.npz", allow_pickle=False) as file:
            self._ids: NDArray[np.int32] = file["ids"]
            pairs = file["pairs"] if "pairs" in file else np.zeros((0, 2), np.int32)
            grid = np.float32(file["grid"])
            values = np.rint(file["codes"].astype(np.float32) * file["scale"][:, None] * grid) / grid
        self.name = name or str(self.passport["name"])
        self.dimension = int(values.shape[1])
        self._table: Vectors = np.zeros((len(self._vocabulary) + len(pairs), self.dimension), np.float32)
        self._table[self._ids] = values[: len(self._ids)]
        self._table[len(self._vocabulary) :] = values[len(self._ids) :]
        self.pairs = WordPairs(self._vocabulary, pairs)
        self.tokenizer = _bert_tokenizer(self._vocabulary)

    @classmethod
    def shipped(cls) -> StaticEncoder:
        """Return the encoder that comes with pgrag: ``minilm-static``, 384 dimensions, mainly English."""
        return cls(Path(__file__).parents[1] / "data" / "minilm_static")

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Encode texts of any length.

        Args:
            texts: Any strings; control characters and lone surrogates are ignored.

        Returns:
            float32 (n, dimension). Each row has length 1, except that a text with no token that has a vector
            (empty, or unknown characters only) gives a row of zeros: it has no direction, so store none.
        """
        out: Vectors = np.zeros((len(texts), self.dimension), np.float32)
        for start in range(0, len(texts), _BATCH):
            batch = [encodable(text) for text in texts[start : start + _BATCH]]
            for row, encoding in enumerate(
                self.tokenizer.encode_batch_fast(batch, add_special_tokens=False), start
            ):
                ids = np.array(encoding.ids, np.int64)
                tokens, counts = np.unique(np.append(ids, self.pairs.of(ids)), return_counts=True)
                total = counts.astype(np.float32) @ self._table[tokens]
                length = np.sqrt(np.sum(np.square(total, dtype=np.float64)))
                if length > 0:
                    out[row] = total / length
        return out

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """Encode passages; the same as ``encode``."""
        return self.encode(texts)

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """Encode queries; the same as ``encode``."""
        return self.encode(texts)

    def count_tokens(self, text: str) -> int:
        """Count the WordPiece tokens of a text, unknown words as one each."""
        return len(self.tokenizer.encode(encodable(text), add_special_tokens=False))

    def token_rows(self) -> Iterator[tuple[str, int, Vectors]]:
        """Yield each token that has a vector: token, its id in the vocabulary, float32 (dimension,).

        Pairs of words come last, written with a space between, their ids beyond those of the vocabulary.
        """
        for token_id in self._ids.tolist():
            yield self._vocabulary[token_id], token_id, self._table[token_id]
        for token_id, pair in enumerate(self.pairs.written(), len(self._vocabulary)):
            yield pair, token_id, self._table[token_id]


def _bert_tokenizer(vocabulary: Sequence[str]) -> Tokenizer:
    """Build BERT's uncased tokenizer, to which ``[SEP]`` and the like in a text are plain text."""
    ids = {token: token_id for token_id, token in enumerate(vocabulary)}
    tokenizer = Tokenizer(WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=100))  # noqa: S106
    tokenizer.normalizer = BertNormalizer(
        clean_text=True, handle_chinese_chars=True, strip_accents=True, lowercase=True
    )
    tokenizer.pre_tokenizer = BertPreTokenizer()
    return tokenizer
