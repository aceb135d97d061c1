"""Serves the stage ``embed``: what an encoder is, to the worker, to the client and to whoever writes another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pgrag.errors import PgragError

__all__ = ["Encoder", "EncoderError", "Vectors"]

Vectors = NDArray[np.float32]


class EncoderError(PgragError):
    """The encoder fails for every text: it is broken, it can't be reached, or it isn't the one of the space."""


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
        """What makes the vectors: name, model, dimension, normalised; and what else is known."""

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """Encode passages: float32 (n, dimension), rows of length 1, or zero where nothing of a text can be seen."""

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """Encode queries: shape and lengths as of ``encode_documents``; a model may prefix them otherwise."""

    def count_tokens(self, text: str) -> int:
        """Count the tokens of a text, without those that the model adds itself."""
