"""What a static space still lacks, embedded in SQL: for a table that no process outside has."""

from __future__ import annotations

import psycopg
import pytest
from _pgrag import Database

from pgrag.embed import StaticEncoder
from pgrag.spaces import embed_static


@pytest.fixture
def lacking(db: Database) -> Database:
    """Three documents that a static space holds no vectors of yet; one has no known word."""
    db.execute("select pgrag.create_space('by-table', 'toy', 2, kind => 'static', index_kind => 'none')")
    db.execute(
        "select pgrag.load_encoder_tokens('by-table', array['valve', 'pump'], array[1, 2], array['[1,0]', '[0,1]']::halfvec[])"
    )
    db.execute("select pgrag.open_space('by-table')")
    db.execute("select pgrag.attach_space('docs', 'by-table')")
    db.load(["valve", "pump", "gauge"])
    return db


def embed(db: Database, most: int = 100, space: str = "by-table") -> int:
    with db.connect("pgrag_test_writer") as writer:
        row = writer.execute("select pgrag.embed_pending(%s, %s)", (space, most)).fetchone()
    assert row is not None
    return int(row[0])


def stored(db: Database) -> list[str]:
    table = db.value("select 'pgrag.embedding_' || space_id from pgrag.space where name = 'by-table'")
    return [row[0] for row in db.execute(f"select embedding::text from {table} order by chunk_id")]


def test_a_writer_embeds_what_is_lacking(lacking: Database) -> None:
    embed(lacking)
    assert stored(lacking) == ["[1,0]", "[0,1]"]


def test_nothing_is_due_afterwards(lacking: Database) -> None:
    assert [embed(lacking), embed(lacking)] == [3, 0]


def test_no_more_than_asked_is_embedded(lacking: Database) -> None:
    assert [embed(lacking, 2), embed(lacking, 2), embed(lacking, 2)] == [2, 1, 0]


def test_a_space_of_a_model_is_refused(lacking: Database) -> None:
    lacking.execute("select pgrag.create_space('two', 'model', 2)")
    with pytest.raises(psycopg.Error, match="not embedded in SQL") as caught:
        embed(lacking, space="two")
    assert caught.value.sqlstate == "RG005"


def test_an_ingest_fills_the_space_of_a_table_that_is_not_shipped_any_more(lacking: Database) -> None:
    embed_static(lacking.admin, "docs", StaticEncoder.shipped())
    assert stored(lacking) == ["[1,0]", "[0,1]"]


def test_a_space_that_is_dropped_meanwhile_holds_up_no_other(lacking: Database) -> None:
    lacking.execute("select pgrag.create_space('a-first', 'toy', 2, kind => 'static', index_kind => 'none')")
    lacking.execute("select pgrag.attach_space('docs', 'a-first')")

    class Dropping(StaticEncoder):
        """Its name is asked for once it is known what the spaces lack."""

        def __getattribute__(self, name: str) -> object:
            if name == "name" and lacking.value("select pgrag.has_space('a-first')"):
                lacking.execute("select pgrag.drop_space('a-first')")
            return super().__getattribute__(name)

    embed_static(lacking.connect("pgrag_test_writer"), "docs", Dropping.shipped())
    assert stored(lacking) == ["[1,0]", "[0,1]"]
