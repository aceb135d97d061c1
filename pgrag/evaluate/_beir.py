"""Serves the stage ``evaluate``: judged queries in BEIR's layout, a folder of queries and judgements."""

from __future__ import annotations

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
    About,
    assemble,
    free,
    grade_of,
    is_name,
    keep_once,
    lines_of,
    objects,
    spanned,
    told,
    write_objects,
    write_text,
)
from pgrag.evaluate._trec_run import Export, run_files

__all__ = ["export_beir", "import_beir"]

_FORM = "It holds an object a line: _id and text."
_HEADER = "query-id\tcorpus-id\tscore\n"


def import_beir(
    connection: psycopg.Connection[Any],
    collection: str,
    folder: Path,
    *,
    principals: Sequence[str] = (),
    split: str = "test",
    askers: Path | None = None,
    judgements: Path | None = None,
) -> Import:
    """Take in the judged queries of a folder in BEIR's layout; those that are judged already are replaced.

    Args:
        connection: Of a member of ``pgrag_writer`` or ``pgrag_owner``.
        collection: Its name; the uri of a document is BEIR's ``_id``.
        folder: Holds ``queries.jsonl`` (``_id``, ``text`` and what there is of ``principals``, ``answer`` and
            ``unanswerable``; packed with gzip or not) and ``qrels/SPLIT.tsv`` or ``qrels.tsv`` (query, document and grade
            between tabs), or ``judgements/SPLIT.jsonl`` or ``judgements.jsonl``.
        principals: Who asks a query of which no file says it; none: the public.
        split: Which judgements, where there are several.
        askers: Says who asks; None: ``askers.jsonl`` in the folder, where it is there.
        judgements: Of spans; None: ``judgements/SPLIT.jsonl`` or ``judgements.jsonl`` in the folder, where they are there.

    Returns:
        What was taken in: queries with a judgement, or said to be unanswerable; and no others.

    Raises:
        PgragError: a file is missing or isn't what it should be.
        Refused: there is no such collection, a name is none of a principal, or a span is none of its document.
    """
    askers = askers or _first(folder / ASKERS)
    judgements = judgements or _first(folder / "judgements" / f"{split}.jsonl", folder / JUDGEMENTS)
    qrels = _first(folder / "qrels" / f"{split}.tsv", folder / "qrels.tsv")
    if qrels is None and judgements is None:
        raise PgragError(
            f"{folder} has neither qrels/{split}.tsv nor qrels.tsv nor judgements.jsonl",
            f"Name a folder in BEIR's layout, with these or with judgements.jsonl (or judgements/{split}.jsonl);"
            " --split names other judgements than test.",
        )
    grades = list(_qrels(qrels)) if qrels is not None else []
    texts, about = _queries(folder / "queries.jsonl")
    found = assemble(texts, about, grades, principals=principals, askers=askers, judgements=judgements)
    if not found.queries:
        raise PgragError(
            f"{folder} has no query with a judgement",
            "queries.jsonl and the judgements must name the same queries.",
        )
    done = import_judged(connection, collection, found.queries)
    return replace(done, unjudged=found.unjudged, told_who=found.told_who)


def export_beir(
    connection: psycopg.Connection[Any],
    collection: str,
    folder: Path,
    *,
    split: str = "test",
    run_id: int | None = None,
) -> Export:
    """Write the judged queries of a collection into a folder in BEIR's layout, from which they are taken in the same.

    Args:
        connection: Of a member of ``pgrag_writer`` or ``pgrag_owner``.
        collection: Its name.
        folder: Gets ``queries.jsonl``, ``qrels/SPLIT.tsv`` with the highest grade of each document and, where spans are
            judged, ``judgements/SPLIT.jsonl``; made where it isn't there.
        split: What the judgements are called.
        run_id: Of a run whose hits are written too, a file an arm, as TREC has them.

    Raises:
        PgragError: a file is there already, or a name holds what the layout can't.
        Refused: there is no such collection or run.
    """
    queries = judged(connection, collection)
    spans = spanned(queries)
    runs = run_files(connection, run_id) if run_id is not None else {}
    for one in queries:
        if not one.query.strip():
            raise PgragError(
                f"BEIR's layout can't hold query \"{one.query_id}\": its text is empty",
                "Take it in again with a text.",
            )
        for name in (one.query_id, *(line.uri for line in one.judgements)):
            if not name or set(name) & set("\t\r\n"):
                raise PgragError(
                    f"BEIR's layout can't hold the name {name!r}: it is empty, or has a tab or a line break",
                    "Give the document another uri, or the query another name.",
                )
    names = ["queries.jsonl", f"qrels/{split}.tsv", *runs] + [f"judgements/{split}.jsonl"] * bool(spans)
    free(folder, names)
    qrels = "".join(
        f"{one.query_id}\t{uri}\t{grade}\n" for one in queries for uri, grade in one.grades.items()
    )
    files = [
        write_objects(folder / "queries.jsonl", map(_line, queries)),
        write_text(folder / "qrels" / f"{split}.tsv", _HEADER + qrels),
    ]
    if spans:
        files.append(write_objects(folder / "judgements" / f"{split}.jsonl", spans))
    files += [write_text(folder / name, text) for name, text in runs.items()]
    return Export(len(queries), sum(len(one.judgements) for one in queries), tuple(files))


def _line(query: JudgedQuery) -> dict[str, Any]:
    line: dict[str, Any] = {
        "_id": query.query_id,
        "text": query.query,
        "principals": list(query.principals),
    }
    if query.answer is not None:
        line["answer"] = query.answer
    if not query.judgements:
        line["unanswerable"] = True
    return line


def _first(*paths: Path) -> Path | None:
    return next((path for path in paths if path.is_file()), None)


def _queries(path: Path) -> tuple[dict[str, str], dict[str, About]]:
    """Return text of each query, and what is said of it beside."""
    texts: dict[str, str] = {}
    about: dict[str, About] = {}
    for number, line in objects(path, "query", _FORM):
        query_id, text = line.get("_id"), line.get("text")
        if not is_name(query_id) or not isinstance(text, str) or not text.strip():
            lacks = "text" if is_name(query_id) else "_id"
            raise PgragError(f"{path}, line {number} is no query: it has no {lacks}", _FORM)
        where = f"{path}, line {number}"
        keep_once(texts, str(query_id), text, where)
        keep_once(about, str(query_id), told(path, number, line), where)
    return texts, about


def _qrels(path: Path) -> Iterator[tuple[str, str, int]]:
    """Yield query, document and grade of each judgement."""
    for number, line in lines_of(read_utf8(path)):
        query_id, _, rest = line.partition("\t")
        uri, _, grade = rest.partition("\t")
        if number == 1 and grade.strip().isalpha():
            continue  # the names of the columns
        try:
            if not query_id or not uri:
                raise ValueError("a name is empty")
            value = grade_of(grade)
        except ValueError as error:
            raise PgragError(
                f"{path}, line {number} is no judgement: {line[:80]!r}: {error}",
                "It holds query, document and grade between tabs.",
            ) from error
        yield query_id, uri, value
