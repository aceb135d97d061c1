"""Serves the stage ``embed``: models behind an HTTP endpoint that speaks OpenAI's ``/v1/embeddings``."""

from __future__ import annotations

import datetime
import email.utils
import math
import os
import re
import threading
import time
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pgrag._version import __version__
from pgrag.embed._encoder import EncoderError, Vectors
from pgrag.embed._model_folder import resolve_prompts, space_name
from pgrag.embed._texts import encode_distinct, unit_length
from pgrag.errors import PgragError

if TYPE_CHECKING:
    import httpx2
    import tenacity

__all__ = ["EndpointEncoder"]

_KEY = "PGRAG_ENDPOINT_API_KEY"
_OPENAI_HOST = "api.openai.com"
_OPENAI_KEY = "OPENAI_API_KEY"
_ADDRESS = "https://host/v1#model, or with options: https://host/v1#model?dimensions=512"
# Answers after which the same request may succeed: too early, too many, and the server's own trouble.
_PASSING = {408, 425, 429, 500, 502, 503, 504, 529}
_ABOUT_TEXTS = {400, 413, 422}
_FIRST_WAIT_SECONDS, _LONGEST_BACKOFF_SECONDS = 0.5, 30.0
_SHOWN_CHARACTERS = 300


class _Passing(Exception):
    """A request failed in a way that may pass; ``wait_seconds`` is what the server asks for."""

    def __init__(self, reason: str, wait_seconds: float | None = None) -> None:
        super().__init__(reason)
        self.wait_seconds = wait_seconds


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

    Raises:
        PgragError: the extra is not installed, or the address is none.
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
    ) -> None:
        try:
            import httpx2
            import tenacity
        except ImportError as error:
            raise PgragError(
                f"encoding with {model} at an endpoint needs {error.name}, which is not installed",
                "pip install 'pgrag-rls[endpoint]'",
            ) from error
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or not model:
            raise PgragError(f"{url!r} with model {model!r} is no embeddings endpoint", f"Write {_ADDRESS}")
        if parts.username is not None or parts.password is not None:
            raise PgragError(
                f"the address of the endpoint at {parts.hostname} holds credentials",
                f"Put the key into {_KEY}.",
            )
        self._url = parts._replace(
            path=parts.path.rstrip("/").removesuffix("/embeddings") + "/embeddings", fragment=""
        ).geturl()
        self.model = model
        self.name = name or space_name(model)
        # Without what stands after a question mark, which may be a secret.
        self.address = self._url.partition("?")[0]
        self._dimension = dimensions
        self._dimensions = dimensions
        self._prompts = resolve_prompts(prompts or {})
        self._batch_texts = batch_texts
        self._batch_characters = batch_characters
        self._max_characters = max_characters
        self._max_wait_seconds = max_wait_seconds
        self._pause_seconds = 60.0 / requests_per_minute if requests_per_minute else 0.0
        self._next_at = -math.inf
        self._pace = threading.Lock()
        headers = {"user-agent": f"pgrag/{__version__}"}
        key = _key(parts.hostname)
        if key:
            headers["authorization"] = f"Bearer {key}"
        # Without TLS there is no certificate to check; to load the authorities' takes a while.
        self._client = httpx2.Client(timeout=timeout_seconds, headers=headers, verify=parts.scheme == "https")
        backoff = tenacity.wait_random_exponential(
            multiplier=_FIRST_WAIT_SECONDS, max=_LONGEST_BACKOFF_SECONDS
        )
        self._retrying = tenacity.Retrying(
            stop=tenacity.stop_after_attempt(attempts),
            wait=lambda state: wait if (wait := _asked(state)) is not None else backoff(state),
            retry=tenacity.retry_if_exception_type(_Passing),
            sleep=_sleep,
            reraise=True,
        )

    @classmethod
    def at(cls, address: str, *, name: str | None = None) -> EndpointEncoder:
        """Return the encoder of an address: ``https://host/v1#model``.

        Args:
            address: The API's URL, ``#``, the model's name, and where wanted ``?`` and options as in a query:
                ``dimensions``, ``query`` and ``document`` (what is put before such a text), ``requests_per_minute``,
                ``timeout_seconds``, ``batch_texts``, ``max_characters``.
            name: The space's name; made from the model's name when None.

        Raises:
            PgragError: as of the class, or an option is unknown or no number.
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
                elif option in ("requests_per_minute", "timeout_seconds"):
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
        self._client.close()

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
        try:
            answer = self._retrying(self._post, body)
        except _Passing as error:
            raise EncoderError(
                f"{self._who} doesn't answer: {error}", "See whether the endpoint runs, then try again."
            ) from error
        return self._checked(answer, len(texts))

    def _post(self, body: Mapping[str, Any]) -> Any:
        import httpx2

        self._wait_for_turn()
        try:
            response = self._client.post(self._url, json=body)
        except (httpx2.UnsupportedProtocol, httpx2.LocalProtocolError, httpx2.InvalidURL) as error:
            raise EncoderError(f"{self._who} can't be asked: {error}", f"Write {_ADDRESS}") from error
        except httpx2.HTTPError as error:
            raise _Passing(f"{type(error).__name__} {error}".strip()) from error
        if response.is_success:
            try:
                return response.json()
            except (ValueError, RecursionError) as error:
                raise self._wrong(f"it isn't JSON, but {_excerpt(response.text)!r}") from error
        raise self._failure(response)

    def _failure(self, response: httpx2.Response) -> Exception:
        status, reason = response.status_code, _reason(response)
        said = f"{self._who} answers {status}: {reason}"
        if status in (401, 403):
            return EncoderError(said, f"Put a key that may use the model into {_KEY}.")
        if status == 429 and "insufficient_quota" in response.text:
            return EncoderError(said, "The account has no quota left; waiting doesn't help.")
        if status in _PASSING:
            wait = _retry_after(response.headers.get("retry-after"))
            if wait is not None and wait > self._max_wait_seconds:
                return EncoderError(
                    f"{said}; it asks to wait for {wait:,.0f} seconds",
                    "Try again then, or raise max_wait_seconds.",
                )
            return _Passing(f"{status} {reason}", wait)
        if status in _ABOUT_TEXTS:
            return PgragError(
                said,
                "Smaller requests or shorter texts may do: batch_texts, max_characters; or see the model's name.",
            )
        return EncoderError(said, f"See that URL and model are right: {_ADDRESS}")

    def _checked(self, answer: Any, count: int) -> Vectors:
        """Return the vectors of an answer, in the order of the texts, of length 1."""
        data = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
            raise self._wrong("it holds no list `data` of objects")
        if len(data) != count:
            raise self._wrong(f"{count} texts gave {len(data)} vectors")
        by_index = {
            item["index"]: item.get("embedding") for item in data if isinstance(item.get("index"), int)
        }
        if by_index.keys() != set(range(count)):
            raise self._wrong(f"its indexes are not those from 0 to {count - 1}, each once")
        try:
            vectors = np.array([by_index[index] for index in range(count)], np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise self._wrong(f"its vectors are not lists of numbers of one length: {error}") from error
        if vectors.ndim != 2 or vectors.shape[1] == 0:
            raise self._wrong("its vectors are not lists of numbers")
        if not np.isfinite(vectors).all():
            raise self._wrong("a vector holds NaN or infinity")
        if not vectors.any(axis=1).all():
            raise self._wrong("a vector is zero, and has no direction")
        expected = self._dimension or vectors.shape[1]
        if vectors.shape[1] != expected:
            raise self._wrong(f"its vectors are of dimension {vectors.shape[1]}, not {expected}")
        self._dimension = expected
        # Divided first: float32 ends at 3.4e38.
        largest = np.abs(vectors).max(axis=1, keepdims=True)
        return unit_length((vectors / np.where(largest > 0, largest, 1)).astype(np.float32))

    def _wait_for_turn(self) -> None:
        with self._pace:
            now = time.monotonic()
            at = max(now, self._next_at)
            self._next_at = at + self._pause_seconds
        if at > now:
            _sleep(at - now)

    @property
    def _who(self) -> str:
        return f"{self.address} (model {self.model})"

    def _wrong(self, what: str) -> PgragError:
        return PgragError(
            f"{self._who} gave a wrong answer: {what}",
            "See that the endpoint speaks OpenAI's /v1/embeddings and that the model makes embeddings.",
        )


def _key(host: str) -> str | None:
    """Return the API key for a host, if the environment has one."""
    name = _KEY if os.environ.get(_KEY) or host != _OPENAI_HOST else _OPENAI_KEY
    key = os.environ.get(name, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise PgragError(f"the key in {name} holds a character that no key has", f"Set {name} again.")
    return key or None


def _sleep(seconds: float) -> None:
    time.sleep(seconds)


def _asked(state: tenacity.RetryCallState) -> float | None:
    """Return the seconds that the server asked to wait for, if it did."""
    error = state.outcome.exception() if state.outcome is not None else None
    return error.wait_seconds if isinstance(error, _Passing) else None


def _retry_after(header: str | None) -> float | None:
    """Read ``Retry-After``: seconds, or a date; None where it says neither."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            then = email.utils.parsedate_to_datetime(header)
        except ValueError:
            return None
        seconds = (then - datetime.datetime.now(then.tzinfo)).total_seconds() if then.tzinfo else 0.0
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _reason(response: httpx2.Response) -> str:
    """Return what an answer says in the way of an error."""
    try:
        said = response.json()
    except (ValueError, RecursionError):
        return _excerpt(response.text)
    error = said.get("error", said) if isinstance(said, dict) else said
    message = error.get("message", error) if isinstance(error, dict) else error
    return _excerpt(str(message))


def _excerpt(text: str) -> str:
    shown = "".join(character if character.isprintable() else " " for character in text[:_SHOWN_CHARACTERS])
    return " ".join(shown.split()) or "nothing more"
