"""Serves the stage ``evaluate``: judged queries, which are questions whose answers are known, kept in the database."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import psycopg

from pgrag._acting import act_as
from pgrag.errors import PgragError, translated

__all__ = ["Import", "JudgedQuery", "Judgement", "forget_judged", "import_judged", "judged"]


@dataclass(frozen=True)
class Judgement:
    """How well a document, or a span of its text, answers a query.

    Attributes:
        uri: The document.
        char_start: Where the span starts in its text, in characters from 0; None where the whole document is judged.
        char_end: Where it ends, exclusive.
        grade: 0 or less: judged, and not relevant; higher is better.
        quote: The text of the span when it was judged; to be taken in it may stand for the span, which is then where
            the document's text holds it, once. None: unknown.
        ordinal: Of a passage, to be taken in instead of a span; what is kept is the span of that passage.
    """

    uri: str
    char_start: int | None = None
    char_end: int | None = None
    grade: int = 1
    quote: str | None = None
    ordinal: int | None = None


@dataclass(frozen=True)
class JudgedQuery:
    """A query with known answers, and who asks it.

    Attributes:
        query_id: Names it within its collection.
        query: What is asked.
        principals: Who asks it; empty: the public.
        answer: What a good answer says, or None.
        judgements: By uri and span; none where nothing answers it.
    """

    query_id: str
    query: str
    principals: tuple[str, ...] = ()
    answer: str | None = None
    judgements: tuple[Judgement, ...] = ()

    @property
    def grades(self) -> dict[str, int]:
        """The highest grade of each judged document, spans taken together."""
        grades: dict[str, int] = {}
        for line in self.judgements:
            grades[line.uri] = max(line.grade, grades.get(line.uri, line.grade))
        return grades


@dataclass(frozen=True)
class Import:
    """What an import of judged queries did.

    Attributes:
        queries: Judged queries taken in.
        judgements: Judgements of them.
        unknown: Judged documents that the collection doesn't hold.
        changed: Spans that don't read as their quotes, which the document's text doesn't hold once either.
        hidden: Answers that who asks can't read, counted by query and document; None where the role may not act for
            others, and so can't tell.
        query_ids: Which queries they are.
        unknown_uris: The unknown documents.
        hidden_answers: query_id and uri of the hidden answers; none where it can't be told.
        unjudged: query_ids that files name without a judgement and not as unanswerable; they are left out.
        told_who: query_ids of those whose asker a file says.
    """

    queries: int
    judgements: int
    unknown: int
    changed: int = 0
    hidden: int | None = None
    query_ids: tuple[str, ...] = ()
    unknown_uris: tuple[str, ...] = ()
    hidden_answers: tuple[tuple[str, str], ...] = ()
    unjudged: tuple[str, ...] = ()
    told_who: frozenset[str] = frozenset()


def judged(connection: psycopg.Connection[Any], collection: str) -> list[JudgedQuery]:
    """Return the judged queries of a collection, by query_id.

    Args:
        connection: Of a member of ``pgrag_writer`` or ``pgrag_owner``.
        collection: Its name.

    Raises:
        Refused: there is no such collection.
    """
    with translated(), connection.transaction():
        rows = connection.execute("select * from pgrag.export_judged(%s)", (collection,)).fetchall()
    found = []
    for (query_id, query, principals, answer), lines in groupby(
        rows, key=lambda row: (row[0], row[1], tuple(row[2]), row[3])
    ):
        judgements = tuple(Judgement(*line[4:]) for line in lines if line[4] is not None)
        found.append(JudgedQuery(query_id, query, principals, answer, judgements))
    return found


def import_judged(
    connection: psycopg.Connection[Any], collection: str, queries: Iterable[JudgedQuery]
) -> Import:
    """Take in judged queries; what is known of a query_id already is replaced, other queries stay.

    Args:
        connection: Of a member of ``pgrag_writer`` or ``pgrag_owner``.
        collection: Its name.
        queries: What is taken in; of several grades of one span the highest counts.

    Raises:
        Refused: there is no such collection, a name is none of a principal, or a span, a passage or a quote is none of
            its document.
    """
    taken = list({one.query_id: one for one in queries}.values())
    lines = [(one.query_id, line) for one in taken for line in one.judgements]
    with translated(), connection.transaction():
        row = connection.execute(
            "select * from pgrag.import_judged(%s, %s, %s, %s, %s, %s, %s, %s::int[], %s::int[], %s::int[], %s::text[], %s::text[])",
            (
                collection,
                [one.query_id for one in taken],
                [one.query for one in taken],
                json.dumps([list(one.principals) for one in taken]),
                [query_id for query_id, _ in lines],
                [line.uri for _, line in lines],
                [line.grade for _, line in lines],
                [line.char_start for _, line in lines],
                [line.char_end for _, line in lines],
                [line.ordinal for _, line in lines],
                [line.quote for _, line in lines],
                [one.answer for one in taken],
            ),
        ).fetchone()
    assert row is not None  # noqa: S101 - a function call gives one row
    uris = dict.fromkeys(line.uri for _, line in lines)
    with translated(), connection.transaction():
        there = _readable(connection, collection, uris)
    hidden = _hidden(connection, collection, taken, there)
    return replace(
        Import(*row),
        hidden=None if hidden is None else len(hidden),
        query_ids=tuple(one.query_id for one in taken),
        unknown_uris=tuple(uri for uri in uris if uri not in there),
        hidden_answers=tuple(hidden or ()),
    )


def forget_judged(
    connection: psycopg.Connection[Any], collection: str, query_ids: Sequence[str] | None = None
) -> int:
    """Forget judged queries with their judgements, and return how many; runs keep what they found.

    Args:
        connection: Of a member of ``pgrag_writer`` or ``pgrag_owner``.
        collection: Its name.
        query_ids: Which; a name of none is passed over. None: all.

    Raises:
        Refused: there is no such collection.
    """
    with translated(), connection.transaction():
        row = connection.execute(
            "select pgrag.forget_judged(%s, %s::text[])",
            (collection, None if query_ids is None else list(query_ids)),
        ).fetchone()
    return int(row[0]) if row else 0


def _readable(connection: psycopg.Connection[Any], collection: str, uris: Iterable[str]) -> set[str]:
    """Return those of the documents that the role sees."""
    row = connection.execute("select pgrag.visible_uris(%s, %s)", (collection, sorted(set(uris)))).fetchone()
    return set(row[0] if row else ())


def _hidden(
    connection: psycopg.Connection[Any], collection: str, queries: Iterable[JudgedQuery], there: set[str]
) -> list[tuple[str, str]] | None:
    """Return query and document of the answers that are there and that who asks can't read; None where it can't be told."""
    answers: dict[tuple[str, ...], list[tuple[str, str]]] = {}
    for one in queries:
        good = dict.fromkeys(line.uri for line in one.judgements if line.grade > 0 and line.uri in there)
        answers.setdefault(tuple(sorted(one.principals)), []).extend((one.query_id, uri) for uri in good)
    hidden = []
    for principals, pairs in answers.items():
        try:
            # Taken back, since a role that is set inside a caller's transaction would stay.
            with translated(), connection.transaction(force_rollback=True):
                act_as(connection, principals)
                seen = _readable(connection, collection, (uri for _, uri in pairs))
        except PgragError:
            return None
        hidden += [(query_id, uri) for query_id, uri in pairs if uri not in seen]
    return hidden
