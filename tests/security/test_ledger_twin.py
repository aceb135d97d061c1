"""The ledger tells a caller nothing of what is hidden: a database without it gives the same, to the last bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from _pgrag import Database

HEADS = ("pump", "valve", "engine", "report")
SHOWN = {
    f"shown{n}.md": f"# {HEADS[n % 4]}\n\n" + f"{HEADS[n % 4]} number {n} and a {HEADS[n % 3]}. " * (n + 1)
    for n in range(12)
}
HIDDEN = {
    f"hidden{n}.md": f"# {HEADS[n % 4]}\n\n" + f"{HEADS[n % 4]} of a merger. " * (n + 1) for n in range(12)
}
# Spans that are whole, split, beyond the end, and the documents; of what is shown, hidden, and nowhere.
EVIDENCE = [
    (uri, *span)
    for uri in (*SHOWN, *HIDDEN, "nowhere.md")
    for span in ((None, None), (0, 6), (2, 40), (0, 9000))
]
SETTINGS = (
    "",
    ", k => 3, budget => 100",
    ", k => 1, depth => 2",
    ", filter => '{\"none\": 1}'",
    """, weights => '{"lexical": 0}', exact => true""",
)
QUERIES = ("pump", "merger", '"merger"', "valve -merger", "a machine that moves water")


def filled(dsn: str, *, hidden: bool) -> Database:
    database = Database(dsn)
    database.execute("select pgrag.create_collection('docs', chunk_tokens => 16)")
    for uri, text in SHOWN.items():
        database.put(uri, text)
    for uri, text in HIDDEN.items() if hidden else ():
        database.put(uri, text, readers=["user:boss"])
    if hidden:
        database.execute("select pgrag.create_collection('secrets')")
        database.put("secret.md", "pump", readers=["user:boss"], collection="secrets")
    return database


def told(connection: psycopg.Connection[Any], query: str, more: str, collection: str = "docs") -> list[Any]:
    uris, starts, ends = (list(column) for column in zip(*EVIDENCE, strict=True))
    return connection.execute(
        f"select * from pgrag.trace_evidence(%s, %s, %s, %s, collection => %s{more})",
        (query, uris, starts, ends, collection),
    ).fetchall()


@pytest.fixture
def twins(hybrid_template: str, new_database: Callable[..., str]) -> tuple[Database, Database]:
    return tuple(filled(new_database(template=hybrid_template), hidden=hidden) for hidden in (True, False))  # type: ignore[return-value]


def test_a_caller_is_told_what_a_database_without_the_hidden_tells(twins: tuple[Database, Database]) -> None:
    answers = []
    for database in twins:
        with database.acting("user:ana") as connection:
            answers.append([told(connection, query, more) for query in QUERIES for more in SETTINGS])
        database.close()
    assert answers[0] == answers[1]
    assert {row[1] for rows in answers[0] for row in rows} >= {
        "not_ingested",
        "split",
        "representation",
        "fusion",
        "pack",
        "kept",
    }


def test_a_hidden_collection_is_one_that_is_not_there(twins: tuple[Database, Database]) -> None:
    whole, without = twins
    for database in twins:
        with database.acting("user:ana") as connection:
            rows = told(connection, "pump", "", "secrets")
            assert {(row[1], row[8]["reason"]) for row in rows} == {("not_ingested", "no such document")}
            assert rows == told(connection, "pump", "", "nowhere")
    whole.close()
    without.close()


def test_budgets_of_a_hidden_document_are_none(twins: tuple[Database, Database]) -> None:
    for database in twins:
        with database.acting("user:ana") as connection:
            for uri in ("hidden1.md", "nowhere.md"):
                rows = connection.execute(
                    "select * from pgrag.covering_budgets('docs', %s, 0, 5, '{16, 8192}')", (uri,)
                ).fetchall()
                assert rows == []
        database.close()


@pytest.mark.parametrize("role", ["pgrag_test_app", "pgrag_test_reader", "pgrag_test_nobody"])
def test_a_reader_may_not_ask_what_is_there(db: Database, role: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        db.connect(role).execute("select * from pgrag.evidence_presence('docs', '{a}')")


def test_a_writer_may_ask_what_is_there(db: Database) -> None:
    db.put("a", "a pump", readers=["user:boss"])
    writer = db.connect("pgrag_test_writer")
    rows = writer.execute(
        "select place, has_document, has_quote, cardinality(chunk_ids) from pgrag.evidence_presence("
        "'docs', '{a,a,a,b}', '{NULL,0,0,NULL}', '{NULL,6,99,NULL}')"
    ).fetchall()
    assert rows == [(1, True, True, 1), (2, True, True, 1), (3, True, False, 0), (4, False, False, 0)]
