"""Analysing again, online: only what the analyzer makes something else of is written, and the log follows."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from _pgrag import Database

CHECK = "select finding, subject from pgrag.check('docs')"


def reindex(db: Database, batch: int = 1000) -> int:
    """Run every batch as a writer, and return how many there were."""
    calls, after = 0, 0
    with db.connect("pgrag_test_writer") as writer:
        while True:
            row: Any = writer.execute(
                "select pgrag.reindex_chunks('docs', %s, %s)", (after, batch)
            ).fetchone()
            if row[0] is None:
                return calls
            calls, after = calls + 1, row[0]


def fill(db: Database, documents: int = 5) -> None:
    for n in range(documents):
        db.put(f"d{n}", f"Die Häuser der Stadt, Haus {n}", [f"user:u{n % 2}"])


def test_a_changed_analyzer_finds_what_the_new_one_stems_alike(db: Database) -> None:
    fill(db)
    search = "select count(*) from pgrag.search_lexical('Häusern')"
    assert db.rows_as("user:u0", search) == [(0,)]
    assert db.value("select pgrag.set_analyzer('docs', 'german')") is True
    reindex(db)
    assert db.rows_as("user:u0", search) == [(3,)]
    assert db.execute(CHECK) == []


def test_each_batch_leaves_a_log_that_says_what_the_chunks_do(db: Database) -> None:
    fill(db)
    db.execute("select pgrag.set_analyzer('docs', 'german')")
    after = db.value("select pgrag.reindex_chunks('docs', 0, 2)")
    assert db.execute(CHECK) == [("tsv", f"d{n} #0") for n in (2, 3, 4)]
    db.execute("select pgrag.reindex_chunks('docs', %s, 2)", (after,))
    assert db.execute(CHECK) == [("tsv", "d4 #0")]


def test_chunks_that_an_earlier_release_analysed_without_their_language_are_put_right(db: Database) -> None:
    fill(db)
    # As after an upgrade: the language was stored, and nothing came of it.
    with db.connect() as restoring:
        restoring.execute("set session_replication_role = replica")
        restoring.execute("update pgrag.document set language = 'de' where uri <> 'd3'")
    assert db.execute(CHECK) == [("tsv", f"d{n} #0") for n in (0, 1, 2, 4)]
    reindex(db)
    assert db.execute("select analyzer, count(*) from pgrag.chunk group by 1 order by 1") == [
        ("english", 1),
        ("german", 4),
    ]
    assert db.execute(CHECK) == []


def test_between_two_batches_a_query_is_analysed_both_ways(db: Database) -> None:
    fill(db)
    db.execute("select pgrag.set_analyzer('docs', 'german')")
    db.execute("select pgrag.reindex_chunks('docs', 0, 3)")
    search = "select count(*) from pgrag.search_lexical('Häuser')"
    assert db.rows_as("user:u0", search) == [(3,)]


def test_an_analyzer_that_makes_the_same_lexemes_is_noted_all_the_same(db: Database) -> None:
    db.put("x", "E-4021")
    db.execute("select pgrag.set_analyzer('docs', 'simple')")
    reindex(db)
    assert db.rows_as("public", "select analyzers from pgrag._visible_collections(null)") == [(["simple"],)]
    assert db.execute(CHECK) == []


def test_chunks_that_are_right_are_not_written(db: Database) -> None:
    fill(db)
    before = db.execute("select ctid, xmin::text from pgrag.chunk order by 1")
    assert reindex(db, 2) == 3
    assert db.execute("select ctid, xmin::text from pgrag.chunk order by 1") == before


def test_a_stopped_run_writes_only_the_rest_when_it_begins_again(db: Database) -> None:
    fill(db)
    db.execute("select pgrag.set_analyzer('docs', 'german')")
    db.execute("select pgrag.reindex_chunks('docs', 0, 2)")
    done = db.execute("select ctid from pgrag.chunk order by chunk_id limit 2")
    reindex(db)
    assert db.execute("select ctid from pgrag.chunk order by chunk_id limit 2") == done
    assert db.execute(CHECK) == []


def test_vectors_and_ids_stay(hybrid: Database) -> None:
    fill(hybrid)
    kept = "select c.chunk_id, c.hash, e.xmin::text from pgrag.chunk as c join pgrag.embedding_1 as e using (chunk_id) order by 1"
    before = hybrid.execute(kept)
    hybrid.execute("select pgrag.set_analyzer('docs', 'german')")
    reindex(hybrid)
    assert hybrid.execute(kept) == before
    assert len(before) == 5


def test_only_chunks_of_the_collection_are_written(db: Database) -> None:
    fill(db)
    db.execute("select pgrag.create_collection('second')")
    db.execute("select pgrag.put_document('second', 'x', 'Häuser', array['public'])")
    other = "select ctid, tsv from pgrag.chunk where collection_id <> 1"
    before = db.execute(other)
    db.execute("select pgrag.set_analyzer('docs', 'german')")
    reindex(db)
    assert db.execute(other) == before


def test_a_writer_cannot_plant_an_analysis(db: Database) -> None:
    fill(db, 1)
    before = db.execute("select tsv, lexeme_count, hash from pgrag.chunk")
    with db.connect("pgrag_test_writer") as writer:
        writer.execute("update pgrag.chunk set tsv = 'planted:1', lexeme_count = 7, hash = 'x'")
    assert db.execute("select tsv, lexeme_count, hash from pgrag.chunk") == before
    assert db.execute(CHECK) == []


def test_a_document_that_is_written_meanwhile_is_waited_for(db: Database) -> None:
    fill(db, 2)
    db.execute("select pgrag.set_analyzer('docs', 'german')")
    writer, other = db.connect("pgrag_test_writer"), db.connect("pgrag_test_writer")
    other.execute("set lock_timeout = '50ms'")
    with writer.transaction():
        writer.execute("select pgrag.set_readers('docs', 'd1', array['public'])")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            other.execute("select pgrag.reindex_chunks('docs')")
    reindex(db)
    assert db.execute(CHECK) == []


def test_setting_the_same_analyzer_changes_nothing(db: Database) -> None:
    assert db.value("select pgrag.set_analyzer('docs', 'english')") is False


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ("reindex_chunks('nowhere')", "RG002"),
        ("reindex_chunks('docs', 0, 0)", "RG001"),
        ("rebuild_postings('nowhere')", "RG002"),
        ("set_analyzer('nowhere', 'german')", "RG002"),
        ("set_analyzer('docs', 'klingon')", "RG010"),
        ("set_analyzer('docs', null)", "RG010"),
    ],
)
def test_bad_input_is_refused(db: Database, call: str, code: str) -> None:
    with pytest.raises(psycopg.Error) as caught:
        db.execute(f"select pgrag.{call}")
    assert caught.value.sqlstate == code


def test_an_empty_collection_is_done_at_once(db: Database) -> None:
    assert reindex(db) == 0
    assert db.value("select pgrag.rebuild_postings('docs')") == 0


def test_a_chunk_that_its_new_analyzer_makes_too_much_of_does_not_stop_the_others(db: Database) -> None:
    # Each word has one stem in English and two in German: with its umlaut and without.
    words = " ".join(f"\u00e4{number:x}\u00f6f" for number in range(80_000))
    document = db.put("big.md", "short")
    db.execute("update pgrag.document_text set content = %s where document_id = %s", (words, document))
    db.execute(
        "update pgrag.chunk set content = %s, char_end = length(%s) where document_id = %s",
        (words, words, document),
    )
    db.put("behind.md", "die Pumpen")
    db.execute("select pgrag.set_analyzer('docs', 'german')")
    after = 0
    while after is not None:
        after = db.value("select pgrag.reindex_chunks('docs', %s, 10)", (after,))
    assert db.execute(
        "select d.uri, c.analyzer from pgrag.chunk as c join pgrag.document as d using (document_id) order by 1"
    ) == [
        ("behind.md", "german"),
        ("big.md", "english"),
    ]
    assert {row[0] for row in db.execute("select finding from pgrag.check('docs')")} == {"tsv"}
