"""A judge on a real socket: it answers the prompts of pgrag by rules so simple that its judgements are known beforehand."""

from __future__ import annotations

import json
import re
from typing import Any

_DATA = re.compile(r"^([^\n:]+):\n<data ([0-9a-f]{16})>\n(.*?)\n</data \2>$", re.MULTILINE | re.DOTALL)


def said(body: dict[str, Any], content: Any) -> dict[str, Any]:
    """A completion that says this."""
    return {
        "object": "chat.completion",
        "model": f"{body['model']}-2026",
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {
                    "role": "assistant",
                    "content": content if isinstance(content, str) else json.dumps(content),
                },
            }
        ],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10},
    }


def parts_of(body: dict[str, Any]) -> dict[str, str]:
    """The texts of a request by their labels."""
    return {label: text for label, _, text in _DATA.findall(body["messages"][-1]["content"])}


def judgement(body: dict[str, Any]) -> Any:
    """What the judge thinks: a sentence is a claim, supported where a passage holds it; a passage that says what the
    reference answer says is useful; an answer of sentence S answers the question "S?", thrice."""
    parts = parts_of(body)
    passages = [text for label, text in parts.items() if label.startswith("Passage")]
    task = body["messages"][-1]["content"].partition("\n<data ")[0]
    if '"claims"' in task:
        return {"claims": [one.strip() for one in parts["Text"].split(".") if one.strip()]}
    if '"verdicts"' in task:
        claims = [line.partition(". ")[2] for line in parts["Claims"].split("\n")]
        return {
            "verdicts": [
                {"number": number, "supported": any(claim in text for text in passages)}
                for number, claim in enumerate(claims, 1)
            ]
        }
    if '"questions"' in task:
        return {
            "noncommittal": "don't know" in parts["Text"],
            "questions": [one.strip() + "?" for one in parts["Text"].split(".") if one.strip()],
        }
    assert '"useful"' in task
    return {"useful": any(parts["Reference answer"].rstrip(".") in text for text in passages)}


def completion(body: dict[str, Any]) -> dict[str, Any]:
    return said(body, judgement(body))


JUDGE = {"/v1/chat/completions": completion}
