"""How a collection is searched and cut can be changed, and the whole of it taken away."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from _pgrag import Database

TEXT = "\n\n".join(
    f"Paragraph {n} says that the pump number {n} is checked every week by a person." for n in range(20)
)


def score(db: Database, uri: str) -> float:
    rows = db.rows_as("public", "select uri, score from pgrag.search('pump', weights => '{\"dense\": 0}')")
    found = db.rows_as(
        "public",
        "select l.score from pgrag.search_lexical('pump') as l inner join pgrag.document as d using (document_id) where d.uri = %s",
        (uri,),
    )
    assert rows
    return float(found[0][0])


def test_bm25_goes_by_its_parameters_from_the_next_statement(db: Database) -> None:
    db.put("once.md", "pump")
    db.put("often.md", "pump pump pump pump")

    assert db.value("select pgrag.set_bm25('docs', 0, 0)")

    # With k1 of 0 it counts only that the word is there.
    assert score(db, "once.md") == score(db, "often.md")


def test_the_same_parameters_change_nothing(db: Database) -> None:
    assert not db.value("select pgrag.set_bm25('docs', 1.2, 0.75)")


@pytest.mark.parametrize(
    "call", ["'docs', 11, 0.5", "'docs', 1, 1.5", "'docs', null, 0.5", "'docs', 1, null"]
)
def test_parameters_out_of_range_are_refused(db: Database, call: str) -> None:
    with pytest.raises(psycopg.DatabaseError) as refused:
        db.execute(f"select pgrag.set_bm25({call})")

    assert refused.value.sqlstate == "RG001"


def test_documents_are_cut_again(db: Database) -> None:
    db.put("a.md", TEXT)
    before = db.value("select count(*) from pgrag.chunk")
    db.execute("select pgrag.set_chunk_tokens('docs', 64)")

    last = db.value("select pgrag.rechunk_documents('docs')")

    db.execute("select pgrag.create_collection('fresh', chunk_tokens => 64)")
    db.put("a.md", TEXT, collection="fresh")
    cut, fresh = (chunks(db, name) for name in ("docs", "fresh"))
    assert cut == fresh
    assert len(cut) > before
    assert db.value("select pgrag.rechunk_documents('docs', %s)", (last,)) is None


def chunks(db: Database, collection: str) -> list[tuple[Any, ...]]:
    return db.execute(
        "select ordinal, char_start, char_end, content from pgrag.chunk"
        " where collection_id = pgrag._collection_id(%s) order by ordinal",
        (collection,),
    )


def test_cutting_again_leaves_the_readers(db: Database) -> None:
    db.put("a.md", TEXT, readers=["user:ana", "!user:bo"])
    db.execute("select pgrag.set_chunk_tokens('docs', 64)")
    before = db.execute("select acl_id from pgrag.document")

    db.execute("select pgrag.rechunk_documents('docs')")

    assert db.execute("select distinct acl_id from pgrag.chunk") == before


def test_cutting_again_goes_batch_by_batch(db: Database) -> None:
    for n in range(3):
        db.put(f"{n}.md", TEXT)
    db.execute("select pgrag.set_chunk_tokens('docs', 64)")

    first = db.value("select pgrag.rechunk_documents('docs', batch => 2)")

    ids = [document_id for (document_id,) in db.execute("select document_id from pgrag.document order by 1")]
    assert first == ids[1]
    assert db.value("select pgrag.rechunk_documents('docs', %s, 2)", (first,)) == ids[2]


def test_passages_that_are_cut_as_before_keep_their_ids(db: Database) -> None:
    db.put("a.md", TEXT)
    before = db.execute("select chunk_id from pgrag.chunk order by 1")

    db.execute("select pgrag.rechunk_documents('docs')")

    assert db.execute("select chunk_id from pgrag.chunk order by 1") == before


def test_a_dropped_collection_leaves_nothing(hybrid: Database) -> None:
    hybrid.put("a.md", "Pumps are checked.", readers=["group:eng"])
    hybrid.execute(
        "select pgrag.import_judged('docs', '{q}', '{pumps}', '[[]]', '{q}', '{a.md}', '{1}')",
    )
    of_id = hybrid.value("select collection_id from pgrag.collection")

    assert hybrid.value("select pgrag.drop_collection('docs')") == 1

    tables = hybrid.execute(
        "select c.table_name from information_schema.columns as c"
        " inner join information_schema.tables as t using (table_schema, table_name)"
        " where c.table_schema = 'pgrag' and c.column_name = 'collection_id' and t.table_type = 'BASE TABLE'"
    )
    left = [
        name
        for (name,) in tables
        if hybrid.value(f"select count(*) from pgrag.{name} where collection_id = %s", (of_id,))
    ]
    assert left == []


def test_dropping_one_leaves_the_others(db: Database) -> None:
    db.execute("select pgrag.create_collection('other')")
    db.put("a.md", "Pumps are checked.")
    db.put("b.md", "Pumps are painted.", collection="other")

    db.execute("select pgrag.drop_collection('docs')")

    assert db.rows_as("public", "select uri from pgrag.search('pumps')") == [("b.md",)]
    assert db.execute("select * from pgrag.check()") == []


def test_an_unknown_collection_is_refused(db: Database) -> None:
    with pytest.raises(psycopg.DatabaseError) as refused:
        db.execute("select pgrag.drop_collection('nowhere')")

    assert refused.value.sqlstate == "RG002"


def test_writers_drop_nothing(db: Database) -> None:
    with db.connect("pgrag_test_writer") as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("select pgrag.drop_collection('docs')")
