"""Serves the stage ``evaluate``: judged queries in TREC's formats, topics and qrels."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg

from pgrag._utf8 import read_utf8
from pgrag.errors import PgragError
from pgrag.evaluate._judged import Import, JudgedQuery, import_judged, judged
from pgrag.evaluate._judged_files import (
    ASKERS,
    JUDGEMENTS,
    assemble,
    free,
    grade_of,
    keep_once,
    lines_of,
    spanned,
    write_objects,
    write_text,
)
from pgrag.evaluate._trec_run import Export, run_files, trec_name

__all__ = ["export_trec", "import_trec"]

_TOPIC = re.compile(r"<top>(.*?)</top>", re.DOTALL | re.IGNORECASE)
_FIELD = r"<{0}>\s*(?:{1}:)?([^<]*)"


def import_trec(
    connection: psycopg.Connection[Any],
    collection: str,
    topics: Path,
    qrels: Path,
    *,
    principals: Sequence[str] = (),
    askers: Path | None = None,
    judgements: Path | None = None,
) -> Import:
    """Take in judged queries in TREC's formats; those that are judged already are replaced.

    Args:
        connection: Of a member of ``pgrag_writer`` or ``pgrag_owner``.
        collection: Its name; the uri of a document is TREC's docno.
        topics: A query a line, its number and text with a tab between; or ``<top>`` with ``<num>`` and ``<title>``.
        qrels: Query, a number that isn't read, document and grade a line, with white space between.
        principals: Who asks a query of which no file says it; none: the public.
        askers: Says who asks; None: ``askers.jsonl`` beside the topics, where it is there.
        judgements: Of spans; None: ``judgements.jsonl`` beside the qrels, where it is there.

    Returns:
        What was taken in: queries with a judgement, or said to be unanswerable; and no others.

    Raises:
        PgragError: a file is missing or isn't what it should be.
        Refused: there is no such collection, a name is none of a principal, or a span is none of its document.
    """

    def beside(file: Path, name: str) -> Path | None:
        path = file.with_name(name)
        return path if path.is_file() else None

    found = assemble(
        _topics(topics),
        {},
        _qrels(qrels),
        principals=principals,
        askers=askers or beside(topics, ASKERS),
        judgements=judgements or beside(qrels, JUDGEMENTS),
    )
    if not found.queries:
        raise PgragError(
            f"{topics} has no query with a judgement in {qrels}", "Both must name the same queries."
        )
    done = import_judged(connection, collection, found.queries)
    return replace(done, unjudged=found.unjudged, told_who=found.told_who)


def export_trec(
    connection: psycopg.Connection[Any], collection: str, folder: Path, *, run_id: int | None = None
) -> Export:
    """Write the judged queries of a collection in TREC's formats, from which they are taken in the same.

    Args:
        connection: Of a member of ``pgrag_writer`` or ``pgrag_owner``.
        collection: Its name.
        folder: Gets ``topics.tsv``, ``qrels.txt`` with the highest grade of each document, ``askers.jsonl`` and, where
            spans are judged, ``judgements.jsonl``; made where it isn't there.
        run_id: Of a run whose hits are written too, a file an arm.

    Raises:
        PgragError: a file is there already, or a name or a query holds what the formats can't.
        Refused: there is no such collection or run.
    """
    queries = judged(connection, collection)
    spans = spanned(queries)
    runs = run_files(connection, run_id) if run_id is not None else {}
    topics = "".join(f"{trec_name(one.query_id)}\t{_one_line(one)}\n" for one in queries)
    qrels = "".join(
        f"{one.query_id} 0 {trec_name(uri)} {grade}\n" for one in queries for uri, grade in one.grades.items()
    )
    free(folder, ["topics.tsv", "qrels.txt", ASKERS, *runs] + [JUDGEMENTS] * bool(spans))
    files = [
        write_text(folder / "topics.tsv", topics),
        write_text(folder / "qrels.txt", qrels),
        write_objects(folder / ASKERS, map(_about, queries)),
    ]
    if spans:
        files.append(write_objects(folder / JUDGEMENTS, spans))
    files += [write_text(folder / name, text) for name, text in runs.items()]
    return Export(len(queries), sum(len(one.judgements) for one in queries), tuple(files))


def _about(query: JudgedQuery) -> dict[str, Any]:
    line: dict[str, Any] = {"query_id": query.query_id, "principals": list(query.principals)}
    if query.answer is not None:
        line["answer"] = query.answer
    if not query.judgements:
        line["unanswerable"] = True
    return line


def _one_line(query: JudgedQuery) -> str:
    if set(query.query) & set("\r\n") or not query.query.strip():
        raise PgragError(
            f"TREC's topics can't hold query \"{query.query_id}\": it is empty or has a line break",
            "Export it in BEIR's layout, with --beir.",
        )
    return query.query


def _topics(path: Path) -> dict[str, str]:
    """Return text of each query, by its number."""
    found: dict[str, str] = {}
    for where, number, text in _read_topics(path):
        keep_once(found, number, text, where)
    return found


def _read_topics(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield place, number and text of each query."""
    form = "It holds number and text with a tab between, or <top> with <num> and <title>."
    text = read_utf8(path)
    if "<top>" in text.lower():
        for place, topic in enumerate(_TOPIC.findall(text), 1):
            number = re.search(_FIELD.format("num", "Number"), topic, re.IGNORECASE)
            title = re.search(_FIELD.format("title", "Topic"), topic, re.IGNORECASE)
            if number is None or title is None or not number[1].strip() or not title[1].strip():
                raise PgragError(f"{path}: topic {place} has no <num> or no <title>", form)
            yield f"{path}, topic {place}", number[1].strip(), " ".join(html.unescape(title[1]).split())
        return
    for number_of_line, line in lines_of(text):
        query_id, tab, query = line.partition("\t")
        if not tab or not query_id.strip() or not query.strip():
            raise PgragError(f"{path}, line {number_of_line} is no query: {line[:80]!r}", form)
        yield f"{path}, line {number_of_line}", query_id.strip(), query


def _qrels(path: Path) -> Iterator[tuple[str, str, int]]:
    """Yield query, document and grade of each judgement."""
    for number, line in lines_of(read_utf8(path)):
        try:
            query_id, _, uri, grade = line.split()
            value = grade_of(grade)
        except ValueError as error:
            raise PgragError(
                f"{path}, line {number} is no judgement: {line[:80]!r}: {error}",
                "It holds query, a number, document and grade, with white space between.",
            ) from error
        yield query_id, uri, value
