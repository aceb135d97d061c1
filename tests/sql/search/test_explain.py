"""Explanations of many chunks: each as if it were asked about alone, at the price of one."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from _pgrag import Database

TEXTS = ["A valve and a pump.", "Two valves, two pumps.", "The gauge of a pump.", "Nothing of it."]
COPIES = 15
QUERY = "valves pump gauge spring"


@pytest.fixture
def two(db: Database) -> Database:
    """Two collections of the same texts, in two languages."""
    db.execute("select pgrag.create_collection('more')")
    for collection in ("docs", "more"):
        for n, text in enumerate(TEXTS * COPIES):
            db.put(f"{n}", text, collection=collection, language="de" if n % 2 else "en")
    # It's read where a connection begins.
    db.execute(
        "do $$ begin execute format('alter database %I set track_functions = pl', current_database()); end $$"
    )
    return db


def chunk_ids(db: Database) -> list[int]:
    return [chunk_id for (chunk_id,) in db.execute("select chunk_id from pgrag.chunk order by chunk_id")]


def explained(db: Database, ids: list[int]) -> tuple[list[tuple[Any, ...]], int, int]:
    """The rows, how often the query was read, and the rows of posting that were."""
    with db.acting("public") as connection:
        # What is read is what the statement asks for, not what a plan happens to read or to remember.
        connection.execute("set local enable_seqscan = off")
        connection.execute("set local enable_memoize = off")
        rows = connection.execute(
            "select chunk_id, stage, rank, float8send(value), detail from pgrag.explain_search(%s, %s)",
            (QUERY, ids),
        ).fetchall()
        ((calls, read),) = connection.execute(
            "select (select calls from pg_stat_xact_user_functions where funcname = '_parse_query_by'),"
            " (select idx_tup_fetch from pg_stat_xact_all_tables where schemaname = 'pgrag' and relname = 'posting')"
        ).fetchall()
    return rows, calls, read


def test_chunks_are_explained_as_each_would_be_alone(two: Database) -> None:
    ids = chunk_ids(two)
    some = [ids[-1], ids[2], ids[0], ids[-2], ids[3]]
    assert explained(two, some)[0] == [row for one in some for row in explained(two, [one])[0]]


def test_a_chunk_that_is_asked_about_twice_is_explained_twice(two: Database) -> None:
    first = chunk_ids(two)[0]
    assert explained(two, [first, first])[0] == 2 * explained(two, [first])[0]


def test_the_query_is_read_once_for_the_chunks_of_all_collections(two: Database) -> None:
    ids = chunk_ids(two)
    assert len(ids) == 2 * COPIES * len(TEXTS)
    # Once by the search of each collection.
    assert explained(two, ids)[1] == 2 + 1


def test_postings_are_counted_once_however_many_chunks_are_asked_about(two: Database) -> None:
    ids = chunk_ids(two)
    both = [ids[0], ids[-1]]
    assert explained(two, ids)[2] == explained(two, both)[2] > 0


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("pump -valves", "lost: it holds what the query excludes"),
        ('pump "valve and gauge"', "lost: it lacks a phrase of the query"),
    ],
)
def test_a_chunk_that_the_query_bars_is_told_so_by_every_arm(db: Database, query: str, reason: str) -> None:
    db.put("a", "A valve and a pump.")
    asked = "select stage, detail from pgrag.explain_search(%s, %s) where stage in ('lexical', 'dense')"
    assert db.rows_as("public", asked, (query, chunk_ids(db))) == [("lexical", reason), ("dense", reason)]


@pytest.mark.parametrize("ids", [None, []])
def test_no_chunks_give_no_rows(db: Database, ids: list[int] | None) -> None:
    db.put("a", "A valve.")
    assert db.rows_as("public", "select * from pgrag.explain_search('valve', %s::bigint[])", (ids,)) == []


def test_too_many_chunks_are_refused(db: Database) -> None:
    with pytest.raises(
        psycopg.Error, match="number of chunk_ids must be between 0 and 1000, got 1001"
    ) as caught:
        db.rows_as("public", "select * from pgrag.explain_search('valve', %s)", (list(range(1001)),))
    assert caught.value.sqlstate == "RG001"
