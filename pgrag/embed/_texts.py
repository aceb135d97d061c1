"""Serves the stage ``embed``: what every encoder does to the texts that it is given, and to their vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from pgrag.embed._encoder import Vectors

__all__ = ["encodable", "encode_distinct", "is_blank", "unit_length"]


def encodable(text: str) -> str:
    """Drop lone surrogates, which neither UTF-8 nor a tokenizer can hold."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "ignore").decode("utf-8")
    return text


def is_blank(text: str) -> bool:
    """Tell whether nothing of a text can be seen: spaces, control characters and lone surrogates only."""
    return not any(character.isprintable() and not character.isspace() for character in text)


def encode_distinct(
    texts: Sequence[str], dimension: Callable[[], int], encode: Callable[[list[str]], Vectors]
) -> Vectors:
    """Encode each distinct text once.

    Args:
        texts: Any strings.
        dimension: Gives the numbers per vector; asked after ``encode``.
        encode: Gives float32 (n, dimension) for the texts that are left; not called where none is.

    Returns:
        float32 (n, dimension), a row a text. One of spaces, control characters and lone surrogates only has a row
        of zeros: a model would give it the vector of its special tokens, which means nothing.
    """
    places: dict[str, list[int]] = {}
    for place, text in enumerate(texts):
        if not is_blank(text):
            places.setdefault(encodable(text), []).append(place)
    vectors = encode(list(places)) if places else None
    out: Vectors = np.zeros((len(texts), dimension()), np.float32)
    if vectors is not None:
        for rows, vector in zip(places.values(), vectors, strict=True):
            out[rows] = vector
    return out


def unit_length(vectors: Vectors) -> Vectors:
    """Divide each row by its length; rows of zeros stay."""
    lengths = np.sqrt(np.sum(np.square(vectors, dtype=np.float64), axis=1, keepdims=True))
    out: Vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return out
