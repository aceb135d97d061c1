"""Serves the stage ``embed``: turns text into vectors, by a token table or by sentence-transformers.

Storing vectors is left to ``pgrag.spaces`` and the ingest; the same static encoder runs inside the database
as ``pgrag.embed_query``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from pgrag.errors import PgragError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

__all__ = ["Encoder", "SentenceTransformerEncoder", "StaticEncoder"]

# Texts tokenised at a time: bounds the memory of encoding a long list.
_BATCH = 256


@runtime_checkable
class Encoder(Protocol):
    """What turns texts into the vectors of one embedding space."""

    @property
    def name(self) -> str:
        """The space's name in the database."""

    @property
    def dimension(self) -> int:
        """Numbers per vector."""

    @property
    def passport(self) -> dict[str, Any]:
        """What made the vectors: model, revision, licence, weights' sha256, tokenizer, precision, metrics."""

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """Encode passages: float32 (n, dimension), rows of length 1, or zero where a text has no vector."""

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """Encode queries: shape and lengths as of ``encode_documents``; a model may prefix them otherwise."""

    def count_tokens(self, text: str) -> int:
        """Count the tokens of a text, without those that the model adds itself."""


class StaticEncoder:
    """A table of token vectors: a text's vector is the normalised sum of its tokens' vectors.

    The vectors are multiples of 2**-11 below 1, exact in float16; sums are exact in float32 up to thousands
    of tokens: neither the order of tokens nor the batch nor whether Python or SQL adds them up changes it.

    Args:
        folder: Holds ``tokens.npz``, ``vocab.txt`` and ``passport.json``.

    Raises:
        PgragError: a file is missing, or the table is not the one that the passport describes.
    """

    def __init__(self, folder: Path) -> None:
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
            grid = np.float32(file["grid"])
            values = np.rint(file["codes"].astype(np.float32) * file["scale"][:, None] * grid) / grid
        self.name = str(self.passport["name"])
        self.dimension = int(values.shape[1])
        self._table: Vectors = np.zeros((len(self._vocabulary), self.dimension), np.float32)
        self._table[self._ids] = values
        self.tokenizer = _bert_tokenizer(self._vocabulary)

    @classmethod
    def shipped(cls) -> StaticEncoder:
        """Return the encoder that comes with pgrag: ``minilm-static``, 384 dimensions, mainly English."""
        return cls(Path(__file__).parent / "data" / "minilm_static")

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
            batch = [_encodable(text) for text in texts[start : start + _BATCH]]
            for row, encoding in enumerate(
                self.tokenizer.encode_batch_fast(batch, add_special_tokens=False), start
            ):
                tokens, counts = np.unique(np.array(encoding.ids, np.int64), return_counts=True)
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
        return len(self.tokenizer.encode(_encodable(text), add_special_tokens=False))

    def token_rows(self) -> Iterator[tuple[str, int, Vectors]]:
        """Yield each token that has a vector: token, its id in the vocabulary, float32 (dimension,)."""
        for token_id in self._ids.tolist():
            yield self._vocabulary[token_id], token_id, self._table[token_id]


class SentenceTransformerEncoder:
    """A sentence-transformers model, on CUDA where there is one. Needs the extra ``models``.

    Args:
        model: A model's name on the hub, or a folder.
        name: The space's name; made from the model's name when None.
        batch_size: Texts encoded at a time.

    Raises:
        PgragError: the extra is not installed, or there is no such model.
    """

    def __init__(self, model: str | Path, *, name: str | None = None, batch_size: int = 32) -> None:
        try:
            import sentence_transformers
        except ImportError as error:
            raise PgragError(
                f"encoding with {model} needs sentence-transformers, which is not installed",
                "pip install 'pgrag-rls[models]'",
            ) from error
        try:
            self._model = sentence_transformers.SentenceTransformer(str(model))
        except (OSError, ValueError) as error:
            raise PgragError(
                f"the model {model} can't be loaded: {error}",
                "Name a folder with a sentence-transformers model, or a model on the hub.",
            ) from error
        self._batch_size = batch_size
        self.name = name or Path(model).name.lower()
        probe = self._model.encode(["dimension"], show_progress_bar=False)
        self.dimension = int(probe.shape[1])
        self.passport: dict[str, Any] = {
            "name": self.name,
            "model": str(model),
            "dimension": self.dimension,
            "normalised": True,
            "max_tokens": self._model.max_seq_length,
            "similarity": self._model.similarity_fn_name,
            "prompts": dict(self._model.prompts),
            "sentence_transformers": sentence_transformers.__version__,
            "device": str(self._model.device),
        }

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """Encode passages with the model's prompt for documents, cut at its longest length."""
        return self._vectors(self._model.encode_document, texts)

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """Encode queries with the model's prompt for queries."""
        return self._vectors(self._model.encode_query, texts)

    def count_tokens(self, text: str) -> int:
        """Count the tokens of a text, without those that the model adds itself."""
        return len(
            self._model.tokenizer(_encodable(text), add_special_tokens=False, verbose=False)["input_ids"]
        )

    def _vectors(self, encode: Any, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.zeros((0, self.dimension), np.float32)
        vectors = encode(
            [_encodable(text) for text in texts],
            batch_size=self._batch_size,
            normalize_embeddings=True,
            show_progress_bar=False,
        )
        out: Vectors = np.asarray(vectors, np.float32)
        # A text without a word has the vector of the model's special tokens, which means nothing.
        out[[not text.strip() for text in texts]] = 0
        return out


def _bert_tokenizer(vocabulary: Sequence[str]) -> Tokenizer:
    """Build BERT's uncased tokenizer, to which ``[SEP]`` and the like in a text are plain text."""
    ids = {token: token_id for token_id, token in enumerate(vocabulary)}
    tokenizer = Tokenizer(WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=100))  # noqa: S106
    tokenizer.normalizer = BertNormalizer(
        clean_text=True, handle_chinese_chars=True, strip_accents=True, lowercase=True
    )
    tokenizer.pre_tokenizer = BertPreTokenizer()
    return tokenizer


def _encodable(text: str) -> str:
    """Drop lone surrogates, which neither UTF-8 nor the tokenizer can hold."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "ignore").decode("utf-8")
    return text
