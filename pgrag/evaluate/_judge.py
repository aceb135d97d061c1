"""Serves the stage ``evaluate``: a language model behind an endpoint, asked for judgements in JSON.

What is made of the judgements is the business of the metrics; here they are asked for until they have the right form.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from pgrag._model_endpoint import Api, ModelEndpoint, RequestRefused
from pgrag.errors import PgragError
from pgrag.evaluate._prompts import (
    CLAIMS,
    PROMPTS_VERSION,
    QUESTIONS,
    USEFUL,
    VERDICTS,
    Prompt,
    claims_of,
    prompts_sha256,
    questions_of,
    useful_of,
    verdicts_of,
)

__all__ = ["Judge", "JudgeError", "Unjudged"]

_T = TypeVar("_T")

# More than a judgement can need, and less than fills memory.
_MOST_BYTES = 4 << 20
_SHOWN_CHARACTERS = 200
_THOUGHTS = re.compile(r"<think>.*?</think>", re.DOTALL)


class JudgeError(PgragError):
    """The endpoint of the judge fails whatever it is asked: it can't be reached, has no such model, or wants a key."""


class Unjudged(PgragError):
    """The judge has no judgement on this: it refuses, or its answers don't have the form that was asked for."""


_API = Api(
    path="/chat/completions",
    noun="endpoint of a judge",
    doing="judging answers",
    key="PGRAG_JUDGE_API_KEY",
    extra="judge",
    address="https://host/v1",
    smaller="Shorter contexts may do; or see the model's name.",
    quicker="Allow more: total_seconds.",
    right="See that the endpoint speaks OpenAI's /v1/chat/completions.",
    failed=JudgeError,
)


class Judge:
    """A language model that judges answers. Needs the extra ``judge``; may be shared between threads.

    It is asked by OpenAI's chat completions, at temperature 0 and for JSON of a schema where the endpoint can do that;
    where it refuses such options they are left out. The API key comes from the environment alone:
    ``PGRAG_JUDGE_API_KEY``, or for api.openai.com ``OPENAI_API_KEY``.

    Args:
        url: Of the API, as ``https://host/v1``; ``/chat/completions`` is added.
        model: The model's name there.
        tries: Times that it is asked where an answer hasn't the form that was asked for, or is a refusal.
        max_characters: Longest request; what is longer stays unjudged, since a text that is cut off is another text.
        timeout_seconds: For a connection, and for each part of an answer.
        attempts: Times that a request is sent before the endpoint counts as failed.
        max_wait_seconds: The longest wait that a server may ask for.
        requests_per_minute: Most requests; None is as many as it takes.
        total_seconds: For a request with all its attempts and waits.

    Raises:
        PgragError: the extra is not installed, the address is none, or a number is out of its range.
    """

    def __init__(
        self,
        url: str,
        model: str,
        *,
        tries: int = 3,
        max_characters: int = 400_000,
        timeout_seconds: float = 120.0,
        attempts: int = 6,
        max_wait_seconds: float = 300.0,
        requests_per_minute: float | None = None,
        total_seconds: float = 600.0,
    ) -> None:
        if tries < 1:
            raise PgragError(f"tries of a judge is 1 or more, got {tries}", None)
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
        self.model = model
        self.address = self._endpoint.address
        self._tries = tries
        self._max_characters = max_characters
        self._lock = threading.Lock()
        self._form = 0
        self._form_is_known = False
        self._answered_by: set[str] = set()
        self._counts = {"requests": 0, "prompt_tokens": 0, "completion_tokens": 0}

    @property
    def passport(self) -> dict[str, Any]:
        """What judged, as far as can be known from here, and how much it was asked so far."""
        with self._lock:
            return {
                "model": self.model,
                "endpoint": self.address,
                "answered_by": sorted(self._answered_by),
                "prompts": {"version": PROMPTS_VERSION, "sha256": prompts_sha256()},
                "options": sorted(_options(CLAIMS, self._form)),
                "tries": self._tries,
                **self._counts,
            }

    def claims(self, question: str, text: str) -> list[str]:
        """Take a text apart into the claims that it makes as an answer to a question; none are possible.

        Raises:
            Unjudged: the judge refuses, or doesn't answer in the form that was asked for.
            JudgeError: the endpoint can't be reached, or refuses whatever it is sent.
        """
        return self._judged(CLAIMS, [("Question", question), ("Text", text)], claims_of)

    def verdicts(self, claims: Sequence[str], contexts: Sequence[str]) -> list[bool]:
        """Say for each claim whether it can be inferred from the passages; errors as of ``claims``."""
        numbered = "\n".join(f"{number}. {' '.join(claim.split())}" for number, claim in enumerate(claims, 1))
        return self._judged(
            VERDICTS,
            [*((f"Passage {number}", text) for number, text in enumerate(contexts, 1)), ("Claims", numbered)],
            lambda answer: verdicts_of(answer, len(claims)),
        )

    def questions(self, text: str) -> tuple[bool, list[str]]:
        """Say whether a text is noncommittal, and which questions it answers; errors as of ``claims``."""
        return self._judged(QUESTIONS, [("Text", text)], questions_of)

    def is_useful(self, question: str, reference: str, context: str) -> bool:
        """Say whether a passage was useful in arriving at the reference answer; errors as of ``claims``."""
        return self._judged(
            USEFUL,
            [("Question", question), ("Reference answer", reference), ("Passage", context)],
            useful_of,
        )

    def close(self) -> None:
        """Close the connections."""
        self._endpoint.close()

    def _judged(self, prompt: Prompt, parts: Sequence[tuple[str, str]], read: Callable[[Any], _T]) -> _T:
        """Ask until an answer has the form that was asked for; the reason of the last failure is told to the judge."""
        first = prompt.messages(parts)
        length = sum(len(message["content"]) for message in first)
        if length > self._max_characters:
            raise Unjudged(
                f"it takes {length:,} characters to ask, and {self._max_characters:,} are the most",
                "Give fewer or shorter contexts, or raise max_characters.",
            )
        reason = ""
        for again in range(self._tries):
            messages = first
            if again:
                complaint = (
                    f"Your last answer can't be used: {reason}. Answer again, with the JSON object alone."
                )
                # In one message: some models take no two of a user in a row.
                messages = [
                    *first[:-1],
                    {"role": "user", "content": f"{first[-1]['content']}\n\n{complaint}"},
                ]
            try:
                return read(_json_of(self._content(self._send(prompt, messages))))
            except ValueError as error:
                reason = str(error)
        raise Unjudged(
            f"after {self._tries} {'try' if self._tries == 1 else 'tries'} {self._endpoint.who} has no usable answer: {reason}",
            "Take a stronger judge.",
        )

    def _send(self, prompt: Prompt, messages: Sequence[Mapping[str, str]]) -> Any:
        """Send one request, with fewer options where the endpoint doesn't know them."""
        while True:
            with self._lock:
                form, is_known = self._form, self._form_is_known
            body = {"model": self.model, "messages": list(messages), **_options(prompt, form)}
            try:
                answer = self._endpoint.ask(body, most_bytes=_MOST_BYTES, about="a judgement")
            except JudgeError:
                raise
            except RequestRefused as error:
                if is_known or form == len(_FORMS) - 1:
                    with self._lock:
                        self._form = self._form if self._form_is_known else 0
                    raise Unjudged(error.message, error.hint) from error
                with self._lock:
                    self._form = max(self._form, form + 1)
            except PgragError as error:
                raise ValueError(error.message) from error
            else:
                self._count(answer, form)
                return answer

    def _count(self, answer: Any, form: int) -> None:
        answer = answer if isinstance(answer, dict) else {}
        usage = answer.get("usage")
        with self._lock:
            if not self._form_is_known:
                self._form, self._form_is_known = form, True
            self._counts["requests"] += 1
            if isinstance(answer.get("model"), str):
                self._answered_by.add(answer["model"])
            for name in ("prompt_tokens", "completion_tokens"):
                count = usage.get(name) if isinstance(usage, dict) else None
                self._counts[name] += count if isinstance(count, int) else 0

    @staticmethod
    def _content(answer: Any) -> str:
        """Return what the judge said.

        Raises:
            ValueError: it said nothing, refused, or was cut off.
        """
        choices = answer.get("choices") if isinstance(answer, dict) else None
        choice = choices[0] if isinstance(choices, list) and choices else None
        message = choice.get("message") if isinstance(choice, dict) else None
        if not isinstance(choice, dict) or not isinstance(message, dict):
            raise ValueError("it holds no choices[0].message")
        if message.get("refusal"):
            raise ValueError(f"it refuses: {_shown(str(message['refusal']))}")
        if choice.get("finish_reason") in ("content_filter", "length"):
            raise ValueError(f"it was stopped ({choice['finish_reason']})")
        content = message.get("content")
        if not isinstance(content, str) or not content.strip():
            raise ValueError("it is empty")
        return content


# From what makes answers most alike to nothing at all: not every endpoint knows, or allows, each option.
_FORMS: tuple[Callable[[Prompt], dict[str, Any]], ...] = (
    lambda prompt: {
        "temperature": 0,
        "seed": 0,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": prompt.name, "strict": True, "schema": prompt.schema},
        },
    },
    lambda _: {"temperature": 0, "response_format": {"type": "json_object"}},
    lambda _: {"temperature": 0},
    lambda _: {},
)


def _options(prompt: Prompt, form: int) -> dict[str, Any]:
    return _FORMS[form](prompt)


def _json_of(content: str) -> Any:
    """Return the JSON object in what a judge said; it may think aloud before, and put it into a fence.

    Raises:
        ValueError: there is none.
    """
    said = _THOUGHTS.sub("", content)
    start = said.find("{")
    try:
        return json.JSONDecoder().raw_decode(said, start)[0] if start >= 0 else json.loads(said)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it isn't a JSON object, but {_shown(said)!r}") from error


def _shown(text: str) -> str:
    shown = " ".join("".join(one if one.isprintable() else " " for one in text).split())
    return shown if len(shown) <= _SHOWN_CHARACTERS else shown[:_SHOWN_CHARACTERS] + "…"
