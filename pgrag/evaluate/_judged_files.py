"""Serves the stage ``evaluate``: files of judged queries that are alike in every layout.

``askers.jsonl`` says of queries what a layout has no place for, an object a line: ``query_id``, and what is known of
``principals`` (who asks: names, none of them for the public), ``answer`` (what a good answer says) and
``unanswerable`` (true: the collection holds no answer, and none is judged).

``judgements.jsonl`` judges spans, an object a line: ``query_id``, ``uri``, ``grade`` (1 where it isn't said), and what
of the document is judged: ``start`` and ``end`` in characters from 0, the end exclusive; ``ordinal``, the place of a
passage from 0; ``quote``, which the document's text holds once; or nothing of these, for the whole. Beside ``start``
and ``end`` a ``quote`` is what they read when they were judged. What it says of a query and a document is all that
counts: lines of qrels for them are left out.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pgrag._utf8 import read_utf8
from pgrag.errors import PgragError
from pgrag.evaluate._judged import JudgedQuery, Judgement
from pgrag.evaluate._measures import HIGHEST_GRADE

__all__ = [
    "About",
    "Assembled",
    "assemble",
    "free",
    "grade_of",
    "is_name",
    "keep_once",
    "lines_of",
    "objects",
    "read_askers",
    "read_judgements",
    "spanned",
    "told",
    "write_objects",
    "write_text",
]

ASKERS = "askers.jsonl"
JUDGEMENTS = "judgements.jsonl"

_T = TypeVar("_T")
_GRADE = re.compile(r"\s*[+-]?[0-9]+\s*", re.ASCII)


@dataclass(frozen=True)
class About:
    """What a file says of a query beside its text.

    Attributes:
        principals: Who asks it; None: not said.
        answer: What a good answer says; None: not said.
        unanswerable: Whether it is taken in without a judgement.
    """

    principals: tuple[str, ...] | None = None
    answer: str | None = None
    unanswerable: bool = False


@dataclass(frozen=True)
class Assembled:
    """What several files say together.

    Attributes:
        queries: Those with a judgement, or said to be unanswerable.
        unjudged: query_ids of the others, which are left out.
        told_who: query_ids of those whose asker a file says.
    """

    queries: tuple[JudgedQuery, ...]
    unjudged: tuple[str, ...]
    told_who: frozenset[str]


def lines_of(text: str) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line that isn't empty; only a line feed ends one."""
    for number, line in enumerate(text.split("\n"), 1):
        line = line.removesuffix("\r")
        if line.strip():
            yield number, line


def objects(path: Path, what: str, form: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield number and object of each line of a file, packed with gzip or not.

    Args:
        path: The file; where there is one with ``.gz`` after its name, that.
        what: What a line is, for a message.
        form: What it holds, as the next step.

    Raises:
        PgragError: it can't be read, or a line is no object.
    """
    packed = path.with_name(f"{path.name}.gz")
    if packed.is_file():
        try:
            text = gzip.decompress(packed.read_bytes()).decode("utf-8-sig")
        except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
            raise PgragError(f"{path} can't be read: {error}", form) from error
    else:
        text = read_utf8(path)
    for number, line in lines_of(text):
        try:
            value = json.loads(line)
            json.dumps(value, ensure_ascii=False).encode()  # half of a surrogate pair is no text
        except (ValueError, RecursionError) as error:
            raise PgragError(f"{path}, line {number} is no {what}: {error!r}", form) from error
        if not isinstance(value, dict):
            raise PgragError(f"{path}, line {number} is no {what}: {line[:80]!r}", form)
        yield number, value


def grade_of(value: str | int) -> int:
    """Return a grade as it is written in a file.

    Raises:
        ValueError: it is no whole number, or so high or low that nothing could be measured by it.
    """
    if isinstance(value, str) and not _GRADE.fullmatch(value):
        raise ValueError(f"{value!r:.80} is no whole number")
    grade = int(value)
    if abs(grade) > HIGHEST_GRADE:
        raise ValueError(f"the grade is beyond {HIGHEST_GRADE:,}")
    return grade


def is_name(value: object) -> bool:
    """Say whether a value of a line can name a query: a text that isn't empty, or a whole number."""
    return type(value) is int or (isinstance(value, str) and value != "")


def keep_once(found: dict[str, _T], query_id: str, value: _T, where: str) -> None:
    """Keep what a file says of a query; said again, it must be the same.

    Raises:
        PgragError: it isn't.
    """
    if found.setdefault(query_id, value) != value:
        raise PgragError(
            f'{where} says something else of query "{query_id}" than was said before',
            "Keep one of both, or give each query an id of its own.",
        )


def told(path: Path, number: int, line: Mapping[str, Any]) -> About:
    """Return what a line says of a query beside its text.

    Raises:
        PgragError: a value is of another type.
    """
    principals, answer = line.get("principals"), line.get("answer")
    if principals is not None and not (
        isinstance(principals, list) and all(isinstance(name, str) for name in principals)
    ):
        raise PgragError(
            f"{path}, line {number}: principals is no list of names: {principals!r:.80}",
            'Write "principals": ["user:ana"]; [] is the public.',
        )
    if answer is not None and not isinstance(answer, str):
        raise PgragError(f"{path}, line {number}: answer is no text: {answer!r:.80}", 'Write "answer": "…".')
    return About(
        None if principals is None else tuple(principals), answer, line.get("unanswerable", False) is True
    )


def read_askers(path: Path) -> dict[str, About]:
    """Return what ``askers.jsonl`` says, by query.

    Raises:
        PgragError: a line is of another form.
    """
    form = 'A line holds {"query_id": "1", "principals": ["user:ana"]}.'
    found: dict[str, About] = {}
    for number, line in objects(path, "object about a query", form):
        if not is_name(line.get("query_id")):
            raise PgragError(f"{path}, line {number} names no query", form)
        keep_once(found, str(line["query_id"]), told(path, number, line), f"{path}, line {number}")
    return found


def read_judgements(path: Path) -> list[tuple[str, Judgement]]:
    """Return query and judgement of each line of ``judgements.jsonl``.

    Raises:
        PgragError: a line is of another form.
    """
    form = 'A line holds {"query_id": "1", "uri": "a.md", "grade": 1, "quote": "…"}; or start and end, or ordinal.'
    found = []
    for number, line in objects(path, "judgement", form):
        numbers = [line.get(key) for key in ("start", "end", "ordinal")] + [line.get("grade", 1)]
        known = (
            is_name(line.get("query_id"))
            and isinstance(line.get("uri"), str)
            and line["uri"] != ""
            and isinstance(line.get("quote"), str | None)
            and all(one is None or type(one) is int for one in numbers)
            and numbers[-1] is not None
        )
        if not known:
            raise PgragError(f"{path}, line {number} is no judgement: {json.dumps(line)[:120]}", form)
        start, end, ordinal, grade = numbers
        try:
            grade = grade_of(grade or 0)
        except ValueError as error:
            raise PgragError(f"{path}, line {number} is no judgement: {error}", form) from error
        found.append(
            (str(line["query_id"]), Judgement(line["uri"], start, end, grade, line.get("quote"), ordinal))
        )
    return found


def assemble(
    texts: Mapping[str, str],
    told_in_line: Mapping[str, About],
    grades: Iterable[tuple[str, str, int]],
    *,
    principals: Sequence[str],
    askers: Path | None,
    judgements: Path | None,
) -> Assembled:
    """Put queries and what is said of them in several files together.

    Args:
        texts: Of the queries, by query_id.
        told_in_line: What is said of a query where its text is.
        grades: Query, document and grade, of whole documents.
        principals: Who asks a query of which nothing else is said.
        askers: A file in the form of ``askers.jsonl``, which beats what stands beside the text; None: there is none.
        judgements: A file in the form of ``judgements.jsonl``, which beats grades; None: there is none.

    Raises:
        PgragError: a file names a query that there is none of, or is of another form.
    """
    about = read_askers(askers) if askers is not None else {}
    spans = read_judgements(judgements) if judgements is not None else []
    for path, ids in ((askers, about.keys()), (judgements, [query_id for query_id, _ in spans])):
        missing = next((query_id for query_id in ids if query_id not in texts), None)
        if missing is not None:
            raise PgragError(
                f'{path} names query "{missing}", which is not among the queries',
                "Name it as the file of queries does.",
            )
    beaten = {(query_id, line.uri) for query_id, line in spans}
    lines: dict[str, list[Judgement]] = {}
    for query_id, uri, grade in grades:
        if (query_id, uri) not in beaten:
            lines.setdefault(query_id, []).append(Judgement(uri, grade=grade))
    for query_id, line in spans:
        lines.setdefault(query_id, []).append(line)

    found, unjudged, told_who = [], [], []
    nothing = About()
    for query_id, text in texts.items():
        aside, inline = about.get(query_id, nothing), told_in_line.get(query_id, nothing)
        asked_by = next((one for one in (aside.principals, inline.principals) if one is not None), None)
        if not (query_id in lines or aside.unanswerable or inline.unanswerable):
            unjudged.append(query_id)
        else:
            if asked_by is not None:
                told_who.append(query_id)
            found.append(
                JudgedQuery(
                    query_id,
                    text,
                    tuple(principals) if asked_by is None else asked_by,
                    inline.answer if aside.answer is None else aside.answer,
                    tuple(lines.get(query_id, ())),
                )
            )
    return Assembled(tuple(found), tuple(unjudged), frozenset(told_who))


def spanned(queries: Iterable[JudgedQuery]) -> list[dict[str, Any]]:
    """Return the lines of ``judgements.jsonl``: all judgements of each query and document of which a span is judged."""
    found = []
    for one in queries:
        uris = {line.uri for line in one.judgements if line.char_start is not None or line.quote is not None}
        for line in one.judgements:
            if line.uri in uris:
                values = {"start": line.char_start, "end": line.char_end, "quote": line.quote}
                kept = {key: value for key, value in values.items() if value is not None}
                found.append({"query_id": one.query_id, "uri": line.uri, "grade": line.grade} | kept)
    return found


def write_objects(path: Path, lines: Iterable[Mapping[str, Any]]) -> Path:
    """Write an object a line, and return the path."""
    return write_text(path, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))


def write_text(path: Path, text: str) -> Path:
    """Write a text in UTF-8 with line feeds as they are, and return the path.

    Raises:
        PgragError: it is there already, or can't be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8", newline="") as file:
            file.write(text)
    except FileExistsError as error:
        raise PgragError(f"{path} is there already", "Name a folder without it.") from error
    except OSError as error:
        raise PgragError(
            f"{path} can't be written: {error.strerror or error}", "Name another folder."
        ) from error
    return path


def free(folder: Path, names: Collection[str]) -> None:
    """Refuse a folder that holds a file of one of these names already, before one is written.

    Raises:
        PgragError: it does.
    """
    there = next((name for name in sorted(names) if (folder / name).exists()), None)
    if there is not None:
        raise PgragError(f"{folder / there} is there already", "Name a folder without it.")
