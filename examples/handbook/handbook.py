"""Reads the handbook's people, access rules and judged questions; serves the demo, the tests and the docs.

``may_read`` decides who may read what in plain Python, from ``readers.toml`` alone. It shares no code with
pgrag and asks no database, so that security tests can hold what PostgreSQL answers against it.
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

__all__ = [
    "Evidence",
    "Question",
    "document_uris",
    "documents",
    "groups_of",
    "load_groups",
    "may_read",
    "people",
    "questions",
    "readers_of",
]

HERE = Path(__file__).resolve().parent
DOCUMENTS = HERE / "documents"


@dataclass(frozen=True, slots=True)
class Evidence:
    """A passage that answers a question.

    Attributes:
        uri: The document's path relative to ``documents/``, with forward slashes.
        quote: Words that stand in the document's text as they are here, except for the length of white space.
        grade: 2 answers the question, 1 helps.
    """

    uri: str
    quote: str
    grade: int = 2


@dataclass(frozen=True, slots=True)
class Question:
    """A question, who asks it, and where the answer stands.

    Attributes:
        id: ``q01`` and up, unique.
        askers: Principals in whose name it is asked (``principals`` in the file).
        query: What is typed.
        kind: What makes it hard: keyword, identifier, paraphrase, multi, superseded, near-duplicate,
            german, french, cross-lingual, injection, forbidden.
        relevant: Passages that the askers may read; empty where ``kind`` is forbidden.
        forbidden: Passages that would answer, in documents that the askers may not read.
    """

    id: str
    askers: tuple[str, ...]
    query: str
    kind: str
    relevant: tuple[Evidence, ...]
    forbidden: tuple[Evidence, ...] = ()


@cache
def _rules() -> dict[str, Any]:
    return tomllib.loads((HERE / "readers.toml").read_text(encoding="utf-8"))


@cache
def _pattern(glob: str) -> re.Pattern[str]:
    """Turn a glob into a regular expression for a whole path: ``**`` any depth, ``*`` within one folder."""
    out, at = "", 0
    while at < len(glob):
        if glob.startswith("**/", at):
            out, at = out + "(?:.*/)?", at + 3
        elif glob.startswith("**", at):
            out, at = out + ".*", at + 2
        elif glob[at] == "*":
            out, at = out + "[^/]*", at + 1
        else:
            out, at = out + re.escape(glob[at]), at + 1
    return re.compile(out, re.DOTALL)


def load_groups() -> dict[str, list[str]]:
    """Return each group with its direct members, which are people or groups, in the order of the file."""
    return {group: list(members) for group, members in _rules()["groups"].items()}


def people() -> list[str]:
    """Return everybody who is a member of some group, as ``user:<name>``, sorted."""
    return sorted({m for members in load_groups().values() for m in members if m.startswith("user:")})


def groups_of(principal: str) -> set[str]:
    """Return every group that holds the principal, directly or through other groups."""
    groups = load_groups()
    found: set[str] = set()
    ask = [principal]
    while ask:
        member = ask.pop()
        for group, members in groups.items():
            if member in members and group not in found:
                found.add(group)
                ask.append(group)
    return found


def readers_of(uri: str) -> list[str]:
    """Return the readers of a document, deny entries with ``!``, from the last rule whose glob matches.

    Args:
        uri: Path relative to ``documents/``, with forward slashes.

    Returns:
        The rule's readers in the file's order; empty if no rule matches, and then nobody may read it.
    """
    readers: list[str] = []
    for rule in _rules()["access"]:
        if any(_pattern(glob).fullmatch(uri) for glob in rule["paths"]):
            readers = list(rule["readers"])
    return readers


def may_read(person: str, uri: str) -> bool:
    """Tell whether a person may read a document: allowed by some entry and denied by none.

    Args:
        person: ``user:<name>``; anybody else is a stranger, who reads what is public.
        uri: Path relative to ``documents/``, with forward slashes.
    """
    held = {"public", person} | groups_of(person)
    entries = readers_of(uri)
    denied = any(entry.startswith("!") and entry[1:] in held for entry in entries)
    return not denied and any(entry in held for entry in entries)


def documents() -> list[Path]:
    """Return the paths of all documents, sorted by their uri."""
    return [DOCUMENTS / uri for uri in document_uris()]


def document_uris() -> list[str]:
    """Return the uri of every document, sorted."""
    return sorted(path.relative_to(DOCUMENTS).as_posix() for path in DOCUMENTS.rglob("*") if path.is_file())


def _lines(name: str) -> list[dict[str, Any]]:
    lines = (HERE / "judged" / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.strip()]


def questions() -> list[Question]:
    """Return the judged questions in the order of ``judged/queries.jsonl``."""
    evidence: dict[str, list[Evidence]] = {}
    for row in _lines("judgements.jsonl"):
        evidence.setdefault(row["query_id"], []).append(Evidence(row["uri"], row["quote"], row["grade"]))
    return [
        Question(
            id=row["_id"],
            askers=tuple(row["principals"]),
            query=row["text"],
            kind=row["kind"],
            relevant=() if row["kind"] == "forbidden" else tuple(evidence[row["_id"]]),
            forbidden=tuple(evidence[row["_id"]]) if row["kind"] == "forbidden" else (),
        )
        for row in _lines("queries.jsonl")
    ]


def main() -> None:
    """Print who may read how many documents, and how many questions each person asks."""
    uris = document_uris()
    print(f"{len(uris)} documents, {len(questions())} questions")
    for person in [*people(), "user:stranger"]:
        seen = sum(may_read(person, uri) for uri in uris)
        asked = sum(person in question.askers for question in questions())
        print(f"{person:<16} reads {seen:>3}  asks {asked:>3}")


if __name__ == "__main__":
    main()
