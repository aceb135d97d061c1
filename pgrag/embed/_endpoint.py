"""Serves the stage ``embed``: models behind an HTTP endpoint that speaks OpenAI's ``/v1/embeddings``."""

from __future__ import annotations

import math
import re
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pgrag._model_endpoint import Api, ModelEndpoint, check_ranges
from pgrag.embed._encoder import EncoderError, Vectors
from pgrag.embed._model_folder import resolve_prompts, space_name
from pgrag.embed._texts import encode_distinct, unit_length
from pgrag.errors import PgragError

__all__ = ["EndpointEncoder"]

_ADDRESS = "https://host/v1#model, or with options: https://host/v1#model?dimensions=512"
_API = Api(
    path="/embeddings",
    noun="embeddings endpoint",
    doing="encoding",
    key="PGRAG_ENDPOINT_API_KEY",
    extra="endpoint",
    address=_ADDRESS,
    smaller="Smaller requests or shorter texts may do: batch_texts, max_characters; or see the model's name.",
    quicker="Send less at once, batch_texts, or allow more: total_seconds.",
    right="See that the endpoint speaks OpenAI's /v1/embeddings and that the model makes embeddings.",
    failed=EncoderError,
)
# An answer may be as long as vectors of the most numbers that a space takes, each written at length, and a word of its own.
_MOST_NUMBERS, _NUMBER_BYTES, _BASE_BYTES = 16_000, 32, 1 << 20
_RANGES: dict[str, tuple[float, float]] = {
    "dimensions": (1, _MOST_NUMBERS),
    "batch_texts": (1, 100_000),
    "batch_characters": (1, 1_000_000_000),
    "max_characters": (1, 1_000_000_000),
}


class EndpointEncoder:
    """A model behind an OpenAI-compatible embeddings endpoint. Needs the extra ``endpoint``.

    The API key comes from the environment alone: ``PGRAG_ENDPOINT_API_KEY``, or for api.openai.com
    ``OPENAI_API_KEY``. Each distinct text is sent once, batched by length. A request that fails for a reason that may
    pass is sent again after a wait, which grows, or after as long as the server asks for by ``Retry-After``.

    Args:
        url: Of the API, as ``https://host/v1``; ``/embeddings`` is added.
        model: The model's name there.
        name: The space's name; made from the model's name when None.
        dimensions: Ask for vectors of so many numbers; None is the model's own.
        prompts: What is put before a ``query`` and before a ``document``; nothing when None.
        batch_texts: Most texts of a request.
        batch_characters: Most characters of a request; a longer text is a request of its own.
        max_characters: Of a text that are sent, its prompt included; the rest is cut off. The endpoint's tokenizer isn't
            known here, so the limit is in characters.
        timeout_seconds: For a connection, and for each part of an answer.
        attempts: Times that a request is sent before it counts as failed.
        max_wait_seconds: The longest wait that a server may ask for.
        requests_per_minute: Most requests of this encoder; None sends one after the other without a pause.
        total_seconds: For a request with all its attempts and the waits between them, but those for
            ``requests_per_minute``; looked at between two parts of an answer.

    Raises:
        PgragError: the extra is not installed, the address is none, or a number is out of its range.
    """

    def __init__(
        self,
        url: str,
        model: str,
        *,
        name: str | None = None,
        dimensions: int | None = None,
        prompts: Mapping[str, str] | None = None,
        batch_texts: int = 32,
        batch_characters: int = 50_000,
        max_characters: int = 24_000,
        timeout_seconds: float = 60.0,
        attempts: int = 6,
        max_wait_seconds: float = 300.0,
        requests_per_minute: float | None = None,
        total_seconds: float = 600.0,
    ) -> None:
        self._endpoint = ModelEndpoint(
            url,
            model,
            api=_API,
            timeout_seconds=timeout_seconds,
            attempts=attempts,
            max_wait_seconds=max_wait_seconds,
            requests_per_minute=requests_per_minute,
            total_seconds=total_seconds,
        )
        check_ranges(
            _RANGES,
            _ADDRESS,
            dimensions=dimensions,
            batch_texts=batch_texts,
            batch_characters=batch_characters,
            max_characters=max_characters,
        )
        self.model = model
        self.name = name or space_name(model)
        self.address = self._endpoint.address
        self._dimension = dimensions
        self._dimensions = dimensions
        self._prompts = resolve_prompts(prompts or {})
        self._batch_texts = batch_texts
        self._batch_characters = batch_characters
        self._max_characters = max_characters

    @classmethod
    def at(cls, address: str, *, name: str | None = None) -> EndpointEncoder:
        """Return the encoder of an address: ``https://host/v1#model``.

        Args:
            address: The API's URL, ``#``, the model's name, and where wanted ``?`` and options as in a query:
                ``dimensions``, ``query`` and ``document`` (what is put before such a text), ``requests_per_minute``,
                ``timeout_seconds``, ``total_seconds``, ``batch_texts``, ``max_characters``.
            name: The space's name; made from the model's name when None.

        Raises:
            PgragError: as of the class, or an option is unknown or not a number.
        """
        url, _, rest = address.partition("#")
        model, _, given = rest.partition("?")
        options: dict[str, Any] = {}
        prompts: dict[str, str] = {}
        for option, value in urllib.parse.parse_qsl(given, keep_blank_values=True):
            try:
                if option in ("query", "document"):
                    prompts[option] = value
                elif option in ("dimensions", "batch_texts", "max_characters"):
                    options[option] = int(value)
                elif option in ("requests_per_minute", "timeout_seconds", "total_seconds"):
                    options[option] = float(value)
                else:
                    raise PgragError(f"an endpoint has no option {option!r}", f"Write {_ADDRESS}")
            except ValueError as error:
                raise PgragError(f"{option}={value} is not a number", f"Write {_ADDRESS}") from error
        return cls(url, urllib.parse.unquote(model), name=name, prompts=prompts, **options)

    @property
    def dimension(self) -> int:
        """Numbers per vector; the endpoint is asked once, where it hasn't answered before."""
        if self._dimension is None:
            self._ask(["dimension"])
        assert self._dimension is not None  # noqa: S101 - _ask sets it or raises
        return self._dimension

    @property
    def passport(self) -> dict[str, Any]:
        """What makes the vectors, as far as can be known from here: no sha256, no tokenizer."""
        return {
            "name": self.name,
            "model": self.model,
            "dimension": self.dimension,
            "normalised": True,
            "prompts": self._prompts,
            "similarity": "cosine",
            "runtime": "endpoint",
            "endpoint": self.address,
            "max_characters": self._max_characters,
        }

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """Encode passages with the prompt for documents, cut at ``max_characters``.

        Raises:
            EncoderError: the endpoint can't be reached, or refuses whatever it is sent.
            PgragError: it refuses these texts, or its answer is wrong.
        """
        return self._vectors(texts, self._prompts["document"])

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """Encode queries with the prompt for queries; cut and refused as ``encode_documents``."""
        return self._vectors(texts, self._prompts["query"])

    def count_tokens(self, text: str) -> int:
        """Estimate the tokens of a text, as ``pgrag._estimate_tokens`` in SQL: the tokenizer isn't known here."""
        if not text:
            return 0
        pieces = len(re.findall(r"[^\W_]+|[^\w\s]|_", text))
        size = len(text.encode("utf-8", "ignore"))
        return math.ceil(max(1.1 * pieces, len(text) / 4 + 3 / 8 * max(0, size - len(text))))

    def close(self) -> None:
        """Close the connections."""
        self._endpoint.close()

    def _vectors(self, texts: Sequence[str], prompt: str) -> Vectors:
        most = self._max_characters
        return encode_distinct(
            texts,
            lambda: self.dimension,
            lambda distinct: self._encode([(prompt + text)[:most] for text in distinct]),
        )

    def _encode(self, texts: list[str]) -> Vectors:
        order = sorted(range(len(texts)), key=lambda row: len(texts[row]))
        out: Vectors | None = None
        for rows in self._batches([len(texts[row]) for row in order]):
            batch = [order[place] for place in rows]
            vectors = self._ask([texts[row] for row in batch])
            if out is None:
                out = np.zeros((len(texts), vectors.shape[1]), np.float32)
            out[batch] = vectors
        assert out is not None  # noqa: S101 - there is a text
        return out

    def _batches(self, lengths: Sequence[int]) -> Iterator[range]:
        first, characters = 0, 0
        for place, length in enumerate(lengths):
            full = place - first == self._batch_texts or characters + length > self._batch_characters
            if place > first and full:
                yield range(first, place)
                first, characters = place, 0
            characters += length
        yield range(first, len(lengths))

    def _ask(self, texts: Sequence[str]) -> Vectors:
        """Send one request, again where that may help, and check its answer."""
        body: dict[str, Any] = {"model": self.model, "input": list(texts), "encoding_format": "float"}
        if self._dimensions is not None:
            body["dimensions"] = self._dimensions
        answer = self._endpoint.ask(
            body,
            most_bytes=_BASE_BYTES + len(texts) * _MOST_NUMBERS * _NUMBER_BYTES,
            about=f"{len(texts)} texts",
        )
        return self._checked(answer, len(texts))

    def _checked(self, answer: Any, count: int) -> Vectors:
        """Return the vectors of an answer, in the order of the texts, of length 1."""
        data = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
            raise self._endpoint.wrong("it holds no list `data` of objects")
        if len(data) != count:
            raise self._endpoint.wrong(f"{count} texts gave {len(data)} vectors")
        by_index = {
            item["index"]: item.get("embedding") for item in data if isinstance(item.get("index"), int)
        }
        if by_index.keys() != set(range(count)):
            raise self._endpoint.wrong(f"its indexes are not those from 0 to {count - 1}, each once")
        try:
            vectors = np.array([by_index[index] for index in range(count)], np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise self._endpoint.wrong(
                f"its vectors are not lists of numbers of one length: {error}"
            ) from error
        if vectors.ndim != 2 or vectors.shape[1] == 0:
            raise self._endpoint.wrong("its vectors are not lists of numbers")
        if not np.isfinite(vectors).all():
            raise self._endpoint.wrong("a vector holds NaN or infinity")
        if not vectors.any(axis=1).all():
            raise self._endpoint.wrong("a vector is zero, and has no direction")
        expected = self._dimension or vectors.shape[1]
        if vectors.shape[1] != expected:
            raise self._endpoint.wrong(f"its vectors are of dimension {vectors.shape[1]}, not {expected}")
        self._dimension = expected
        # Divided first: float32 ends at 3.4e38.
        largest = np.abs(vectors).max(axis=1, keepdims=True)
        return unit_length((vectors / np.where(largest > 0, largest, 1)).astype(np.float32))
