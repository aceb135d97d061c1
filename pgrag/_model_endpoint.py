"""Serves the stages ``embed`` and ``evaluate``: sends requests to a model behind an OpenAI-compatible HTTP endpoint.

Retries, waits, limits and what an error means are here; what is asked for, and whether an answer is right, is the caller's.
"""

from __future__ import annotations

import datetime
import email.utils
import json
import math
import os
import threading
import time
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pgrag._version import __version__
from pgrag.errors import PgragError

if TYPE_CHECKING:
    import httpx2
    import tenacity

__all__ = ["Api", "ModelEndpoint", "RequestRefused", "check_ranges"]

_OPENAI_HOST = "api.openai.com"
_OPENAI_KEY = "OPENAI_API_KEY"
# Answers after which the same request may succeed: too early, too many, and the server's own trouble.
_PASSING = {408, 425, 429, 500, 502, 503, 504, 529}
_ABOUT_REQUEST = {400, 413, 422}
_FIRST_WAIT_SECONDS, _LONGEST_BACKOFF_SECONDS = 0.5, 30.0
_SHOWN_CHARACTERS = 300
_DAY_SECONDS = 86_400.0
# What each number may be; a wait longer than a day is no wait.
_RANGES: dict[str, tuple[float, float]] = {
    "timeout_seconds": (0.001, _DAY_SECONDS),
    "total_seconds": (0.001, _DAY_SECONDS),
    "attempts": (1, 1000),
    "max_wait_seconds": (0, _DAY_SECONDS),
    "requests_per_minute": (0.001, 1_000_000),
}


class RequestRefused(PgragError):
    """The endpoint works, and refuses this request: it is too long, or asks for what the model can't do."""


@dataclass(frozen=True)
class Api:
    """One of the requests that an endpoint understands, and the words that errors of it are told in.

    Attributes:
        path: What is added to the address, such as ``/embeddings``.
        noun: What answers, such as ``embeddings endpoint``.
        doing: What it is asked to do, such as ``encoding``.
        key: Name of the environment variable that holds the API key.
        extra: Of pgrag-rls, which brings the libraries.
        address: How an address is written.
        smaller: The next step where a request is refused.
        quicker: The next step where a request takes too long.
        right: The next step where an answer is wrong.
        failed: Raised where the endpoint fails whatever it is sent.
    """

    path: str
    noun: str
    doing: str
    key: str
    extra: str
    address: str
    smaller: str
    quicker: str
    right: str
    failed: type[PgragError]


class _Passing(Exception):
    """A request failed in a way that may pass; ``wait_seconds`` is what the server asks for."""

    def __init__(self, reason: str, wait_seconds: float | None = None) -> None:
        super().__init__(reason)
        self.wait_seconds = wait_seconds


class _TimeUp(Exception):
    """A request with all its attempts took as long as it may."""


class _Deadline:
    """The moment until which a request may take, with all its attempts."""

    def __init__(self, seconds: float) -> None:
        self._at = time.monotonic() + seconds

    def left(self) -> float:
        """Return the seconds that are left; negative afterwards."""
        return self._at - time.monotonic()

    def postpone(self, seconds: float) -> None:
        """Don't count a wait that we asked for ourselves."""
        self._at += seconds


class ModelEndpoint:
    """A model behind an endpoint. Needs the extra ``endpoint``; may be shared between threads.

    The API key comes from the environment alone: ``api.key``, or for api.openai.com ``OPENAI_API_KEY``. A request that
    fails for a reason that may pass is sent again after a wait, which grows, or after as long as the server asks for by
    ``Retry-After``. Redirects aren't followed.

    Args:
        url: Of the API, as ``https://host/v1``; ``api.path`` is added.
        model: The model's name there.
        api: What is asked of it.
        timeout_seconds: For a connection, and for each part of an answer.
        attempts: Times that a request is sent before it counts as failed.
        max_wait_seconds: The longest wait that a server may ask for.
        requests_per_minute: Most requests; None sends one after the other without a pause.
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
        api: Api,
        timeout_seconds: float,
        attempts: int,
        max_wait_seconds: float,
        requests_per_minute: float | None,
        total_seconds: float,
    ) -> None:
        try:
            import httpx2
            import tenacity
        except ImportError as error:
            raise PgragError(
                f"{api.doing} with {model} at an endpoint needs {error.name}, which is not installed",
                f"pip install 'pgrag-rls[{api.extra}]'",
            ) from error
        parts = urllib.parse.urlsplit(url)
        if parts.username is not None or parts.password is not None:
            raise PgragError(
                f"the address of the endpoint at {parts.hostname} holds credentials",
                f"Put the key into {api.key}.",
            )
        if parts.scheme not in ("http", "https") or not parts.hostname or not model:
            raise PgragError(f"{url!r} with model {model!r} is no {api.noun}", f"Write {api.address}")
        check_ranges(
            _RANGES,
            api.address,
            timeout_seconds=timeout_seconds,
            attempts=attempts,
            max_wait_seconds=max_wait_seconds,
            requests_per_minute=requests_per_minute,
            total_seconds=total_seconds,
        )
        self._url = parts._replace(
            path=parts.path.rstrip("/").removesuffix(api.path) + api.path, fragment=""
        ).geturl()
        self.model = model
        # Without what stands after a question mark, which may be a secret.
        self.address = self._url.partition("?")[0]
        self._api = api
        self._max_wait_seconds = max_wait_seconds
        self._timeout_seconds = timeout_seconds
        self._total_seconds = total_seconds
        self._pause_seconds = 60.0 / requests_per_minute if requests_per_minute else 0.0
        self._next_at = -math.inf
        self._pace = threading.Lock()
        headers = {"user-agent": f"pgrag/{__version__}"}
        key = _key(api.key, parts.hostname)
        if key:
            headers["authorization"] = f"Bearer {key}"
        # Without TLS there is no certificate to check; to load the authorities' takes a while.
        self._client = httpx2.Client(timeout=timeout_seconds, headers=headers, verify=parts.scheme == "https")
        backoff = tenacity.wait_random_exponential(
            multiplier=_FIRST_WAIT_SECONDS, max=_LONGEST_BACKOFF_SECONDS
        )
        self._retrying = tenacity.Retrying(
            stop=lambda state: state.attempt_number >= attempts or _too_late(state),
            wait=lambda state: wait if (wait := _asked(state)) is not None else backoff(state),
            retry=tenacity.retry_if_exception_type(_Passing),
            sleep=_sleep,
            reraise=True,
        )

    @property
    def who(self) -> str:
        """Address and model, as errors name them."""
        return f"{self.address} (model {self.model})"

    def ask(self, body: Mapping[str, Any], *, most_bytes: int, about: str) -> Any:
        """Send one request, again where that may help, and return its answer as JSON.

        Args:
            body: What is sent, as JSON.
            most_bytes: How long an answer may be.
            about: What the request holds, as errors name it, such as ``3 texts``.

        Raises:
            PgragError: of the kind ``api.failed`` where the endpoint can't be reached, or refuses whatever it is
                sent; another where its answer isn't JSON.
            RequestRefused: it refuses this request.
        """
        deadline = _Deadline(self._total_seconds)
        try:
            return self._retrying(self._post, body, deadline, most_bytes, about)
        except (_Passing, _TimeUp) as error:
            if isinstance(error, _TimeUp) or deadline.left() <= (_asked_by(error) or 0.0):
                raise self._api.failed(
                    f"{self.who} takes longer than {self._total_seconds:g} seconds, all attempts together: {error}",
                    self._api.quicker,
                ) from error
            raise self._api.failed(
                f"{self.who} doesn't answer: {error}", "See whether the endpoint runs, then try again."
            ) from error

    def wrong(self, what: str) -> PgragError:
        """Return the error that says what is wrong with an answer."""
        return PgragError(f"{self.who} gave a wrong answer: {what}", self._api.right)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _post(self, body: Mapping[str, Any], deadline: _Deadline, most_bytes: int, about: str) -> Any:
        import httpx2

        deadline.postpone(self._wait_for_turn())
        timeout = max(0.001, min(self._timeout_seconds, deadline.left()))
        try:
            with self._client.stream("POST", self._url, json=body, timeout=timeout) as response:
                content = self._read(response, deadline, most_bytes, about)
        except (httpx2.UnsupportedProtocol, httpx2.LocalProtocolError, httpx2.InvalidURL) as error:
            raise self._api.failed(
                f"{self.who} can't be asked: {error}", f"Write {self._api.address}"
            ) from error
        except httpx2.HTTPError as error:
            reason = f"{type(error).__name__} {error}".strip()
            raise _TimeUp(reason) if deadline.left() <= 0 else _Passing(reason) from error
        if response.is_success:
            try:
                return json.loads(content)
            except (ValueError, RecursionError) as error:
                raise self.wrong(f"it isn't JSON, but {_excerpt(_text(content))!r}") from error
        raise self._failure(response, content)

    def _read(self, response: httpx2.Response, deadline: _Deadline, most_bytes: int, about: str) -> bytes:
        """Read an answer, while it is no longer than it can be and takes no longer than it may."""
        content = bytearray()
        for part in response.iter_bytes():
            content += part
            if len(content) > most_bytes:
                raise self._api.failed(
                    f"{self.who} answers with more than {most_bytes:,} bytes for {about}, which is no answer",
                    self._api.right,
                )
            if deadline.left() <= 0:
                raise _TimeUp(f"its answer is still coming, {len(content):,} bytes so far")
        return bytes(content)

    def _failure(self, response: httpx2.Response, content: bytes) -> Exception:
        status, reason = response.status_code, _reason(content)
        said = f"{self.who} answers {status}: {reason}"
        if status in (401, 403):
            return self._api.failed(said, f"Put a key that may use the model into {self._api.key}.")
        if status == 429 and b"insufficient_quota" in content:
            return self._api.failed(said, "The account has no quota left; waiting doesn't help.")
        if status in _PASSING:
            wait = _retry_after(response.headers.get("retry-after"))
            if wait is not None and wait > self._max_wait_seconds:
                return self._api.failed(
                    f"{said}; it asks to wait for {wait:,.0f} seconds",
                    "Try again then, or raise max_wait_seconds.",
                )
            return _Passing(f"{status} {reason}", wait)
        if status in _ABOUT_REQUEST:
            return RequestRefused(said, self._api.smaller)
        return self._api.failed(said, f"See that URL and model are right: {self._api.address}")

    def _wait_for_turn(self) -> float:
        """Wait until the rate allows a request; returns the seconds that it took."""
        with self._pace:
            now = time.monotonic()
            at = max(now, self._next_at)
            self._next_at = at + self._pause_seconds
        if at > now:
            _sleep(at - now)
        return at - now


def check_ranges(ranges: Mapping[str, tuple[float, float]], address: str, **given: float | None) -> None:
    """Refuse a number that is out of its range.

    Args:
        ranges: The least and the most of each.
        address: How an address is written, for the next step.
        **given: What was given; None is nothing.

    Raises:
        PgragError: one isn't in its range; it is named.
    """
    for option, value in given.items():
        least, most = ranges[option]
        if value is not None and not least <= value <= most:  # nor NaN
            raise PgragError(
                f"{option} of an endpoint is {least:g} to {most:,.12g}, got {value}", f"Write {address}"
            )


def _key(variable: str, host: str | None) -> str | None:
    """Return the API key for a host, if the environment has one."""
    name = variable if os.environ.get(variable) or host != _OPENAI_HOST else _OPENAI_KEY
    key = os.environ.get(name, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise PgragError(f"the key in {name} holds a character that no key has", f"Set {name} again.")
    return key or None


def _sleep(seconds: float) -> None:
    time.sleep(seconds)


def _asked(state: tenacity.RetryCallState) -> float | None:
    """Return the seconds that the server asked to wait for, if it did."""
    return _asked_by(state.outcome.exception() if state.outcome is not None else None)


def _asked_by(error: BaseException | None) -> float | None:
    return error.wait_seconds if isinstance(error, _Passing) else None


def _too_late(state: tenacity.RetryCallState) -> bool:
    """Tell whether the next attempt would begin after the deadline."""
    deadline = state.args[1]
    return isinstance(deadline, _Deadline) and deadline.left() <= (_asked(state) or 0.0)


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


def _reason(content: bytes) -> str:
    """Return what an answer says in the way of an error."""
    try:
        said = json.loads(content)
    except (ValueError, RecursionError):
        return _excerpt(_text(content))
    error = said.get("error", said) if isinstance(said, dict) else said
    message = error.get("message", error) if isinstance(error, dict) else error
    return _excerpt(str(message))


def _text(content: bytes) -> str:
    return content[: 4 * _SHOWN_CHARACTERS].decode("utf-8", "replace")


def _excerpt(text: str) -> str:
    shown = "".join(character if character.isprintable() else " " for character in text[:_SHOWN_CHARACTERS])
    return " ".join(shown.split()) or "nothing more"
