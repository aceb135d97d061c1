"""pgrag.check finds each kind of damage and nothing else; reindex_chunks and rebuild_postings repair it."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from _pgrag import Database

CHECK = "select finding, subject, detail from pgrag.check('docs')"


def fill(db: Database) -> None:
    db.put("a", "turn the valve slowly", ["user:ana"])
    db.put("b", "the valve of the pump", ["user:bo"])
    db.put("c", "# Pump\n\nrotate TS-999\n\n# Valve\n\n北京大学 снова", ["user:ana"])


def damage(db: Database, *statements: str) -> None:
    """Run statements as a superuser that no trigger and no foreign key stops."""
    with db.admin.transaction():
        db.execute("set local session_replication_role = replica")
        for statement in statements:
            db.execute(statement)


def findings(db: Database) -> list[str]:
    return [finding for finding, _, _ in db.execute(CHECK)]


def repair(db: Database) -> None:
    with db.connect("pgrag_test_writer") as writer:
        writer.execute("select pgrag.reindex_chunks('docs')")
        writer.execute("select pgrag.rebuild_postings('docs')")


def test_nothing_is_found_after_puts_moves_deletes_and_compaction(db: Database) -> None:
    fill(db)
    db.execute("select pgrag.set_readers('docs', 'b', array['public'])")
    db.put("a", "close the valve")
    db.execute("select pgrag.delete_document('docs', 'c')")
    assert db.execute(CHECK) == []
    db.execute("select pgrag.compact()")
    assert db.execute(CHECK) == []


def test_nothing_is_found_with_vectors(hybrid: Database) -> None:
    fill(hybrid)
    hybrid.put("no-word", "〠〠〠")
    assert hybrid.execute(CHECK) == []


def test_nothing_is_found_in_a_text_of_many_segments(db: Database) -> None:
    db.put("long", "\n\n".join(f"Größe {n} и вентиль number {n}" for n in range(6000)))
    assert db.value("select max(char_end) from pgrag.chunk") > 2 * 65536
    assert db.execute(CHECK) == []


# What is broken, what check says of it, and whether the two functions for it repair it.
LEXICAL = {
    "a tsvector": ("update pgrag.chunk set tsv = 'other:1' where ordinal = 1", {"tsv", "length", "posting", "lexeme"}),
    "a hash": ("update pgrag.chunk set hash = 'x' where ordinal = 1", {"hash"}),
    "a length": (
        "update pgrag.chunk set lexeme_count = lexeme_count + 1 where ordinal = 1",
        {"length", "posting", "statistic"},
    ),
    "a lost run": ("delete from pgrag.posting where ctid = (select min(ctid) from pgrag.posting)", {"posting"}),
    "a doubled log": ("insert into pgrag.posting select * from pgrag.posting", {"posting"}),
    "a frequency": ("update pgrag.posting set entries = array[entries[1] | 127 << 15], max_tf = 127, min_ratio = 0 where n = 1", {"posting"}),
    "an ACL of a run": (
        "update pgrag.posting as p set acl_id = (select max(a.acl_id) from pgrag.acl as a where a.acl_id <> p.acl_id)",
        {"posting"},
    ),
    "a term of a run": ("update pgrag.posting set term = term + 1", {"posting"}),
    "a run of no chunk": (
        "insert into pgrag.posting select term, collection_id, acl_id, 1, 1, 1, 1, array[pgrag._pack_posting(999, 1, 1)]"
        " from pgrag.posting limit 1",
        {"posting"},
    ),
    "the number in a run": ("update pgrag.posting set n = n + 1", {"run"}),
    "a bound of a run": ("update pgrag.posting set min_ratio = min_ratio + 1", {"run"}),
    "the order of a run": (
        "update pgrag.posting set n = 2, entries = array[entries[1] + (1 << 23), entries[1]] where n = 1",
        {"posting", "run"},
    ),
    "the statistics": ("insert into pgrag.corpus_stat select collection_id, acl_id, 1, 0, 'english' from pgrag.acl", {"statistic"}),
    "the list of lexemes": ("delete from pgrag.lexeme where lexeme = 'valv'", {"lexeme"}),
}  # fmt: skip


@pytest.mark.parametrize("what", LEXICAL)
def test_damage_to_the_lexical_index_is_found_and_repaired(db: Database, what: str) -> None:
    statement, expected = LEXICAL[what]
    fill(db)
    untouched = db.rows_as("user:ana", "select uri, score from pgrag.search('valve pump TS-999')")
    damage(db, statement)
    assert set(findings(db)) == expected
    repair(db)
    assert db.execute(CHECK) == []
    assert db.rows_as("user:ana", "select uri, score from pgrag.search('valve pump TS-999')") == untouched


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("update pgrag.chunk set char_start = char_start + 1", {"span"}),
        ("update pgrag.document_text set content = 'x' || content", {"span"}),
        ("delete from pgrag.document_text", {"span"}),
        ("delete from pgrag.document", {"document"}),
        ("update pgrag.document set acl_id = 1 - acl_id", {"readers"}),
        ("update pgrag.document_text set acl_id = 1 - acl_id", {"readers"}),
        ("update pgrag.embedding_1 set acl_id = 1 - acl_id", {"readers"}),
        ("delete from pgrag.embedding_1", {"vector"}),
    ],
)
def test_damage_to_documents_and_vectors_is_found(
    hybrid: Database, statement: str, expected: set[str]
) -> None:
    fill(hybrid)
    damage(hybrid, statement)
    assert set(findings(hybrid)) == expected


def test_a_queued_chunk_is_no_finding(hybrid: Database) -> None:
    fill(hybrid)
    hybrid.execute("update pgrag.chunk set content = content, context = 'Title'")
    assert hybrid.value("select count(*) from pgrag.embed_queue") > 0
    assert "vector" not in findings(hybrid)


def test_a_finding_names_document_and_ordinal(db: Database) -> None:
    fill(db)
    damage(db, "update pgrag.chunk set hash = 'x' where ordinal = 1")
    assert db.execute(CHECK) == [("hash", "c #1", "hash is not that of context and content")]


def test_more_than_a_hundred_of_a_kind_are_counted(db: Database) -> None:
    db.put("many", "\n\n".join(f"# Heading {n}\n\nvalve {n}" for n in range(120)))
    damage(db, "update pgrag.chunk set hash = 'x'")
    rows = db.execute(CHECK)
    chunks = db.value("select count(*) from pgrag.chunk")
    assert chunks > 100
    assert len(rows) == 100 + 1
    assert rows[-1] == ("hash", None, f"{chunks} in all, the first 100 are listed")


def test_each_collection_is_checked_and_named(db: Database) -> None:
    db.execute("select pgrag.create_collection('second')")
    fill(db)
    db.execute("select pgrag.put_document('second', 'x', 'a valve', array['public'])")
    damage(db, "update pgrag.chunk set hash = 'x' where ordinal = 0")
    rows = db.execute("select collection_name, count(*) from pgrag.check() group by 1 order by 1")
    assert rows == [("docs", 3), ("second", 1)]
    assert findings(db) == ["hash"] * 3


def test_an_unknown_collection_is_refused(db: Database) -> None:
    with pytest.raises(psycopg.Error) as caught:
        db.execute("select pgrag.check('nowhere')")
    assert caught.value.sqlstate == "RG002"


@pytest.mark.parametrize("role", ["pgrag_test_reader", "pgrag_test_app"])
@pytest.mark.parametrize(
    "call",
    ["check()", "reindex_chunks('docs')", "rebuild_postings('docs')", "set_analyzer('docs', 'german')"],
)
def test_whoever_searches_may_not(db: Database, role: str, call: str) -> None:
    with db.connect(role) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute(f"select pgrag.{call}")


def test_a_writer_and_an_owner_may(db: Database) -> None:
    fill(db)
    with db.connect("pgrag_test_writer") as writer:
        assert writer.execute(CHECK).fetchall() == []
    with db.connect() as owner:
        owner.execute("set role pgrag_owner")
        assert owner.execute(CHECK).fetchall() == []


def test_a_writer_waits_for_a_rebuild_and_a_reader_does_not(db: Database) -> None:
    fill(db)
    writer: Any = db.connect("pgrag_test_writer")
    with writer.transaction():
        writer.execute("select pgrag.rebuild_postings('docs')")
        other = db.connect("pgrag_test_writer")
        other.execute("set lock_timeout = '50ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            other.execute("select pgrag.put_document('docs', 'd', 'valve', array['public'])")
        assert db.rows_as("user:bo", "select uri from pgrag.search('valve')") == [("b",)]


def test_a_rebuild_needs_a_snapshot_from_after_its_lock(db: Database) -> None:
    fill(db)
    with db.connect("pgrag_test_writer") as writer, writer.transaction():
        writer.execute("set transaction isolation level repeatable read")
        with pytest.raises(psycopg.Error, match="needs READ COMMITTED"):
            writer.execute("select pgrag.rebuild_postings('docs')")


def test_a_rebuild_leaves_other_collections_alone(db: Database) -> None:
    fill(db)
    db.execute("select pgrag.create_collection('second')")
    db.execute("select pgrag.put_document('second', 'x', 'a valve', array['public'])")
    kept = "select ctid, * from pgrag.posting where collection_id <> (select min(collection_id) from pgrag.collection)"
    before = db.execute(kept)
    db.execute("select pgrag.rebuild_postings('docs')")
    assert db.execute(kept) == before


def test_spans_of_a_long_document_are_cut_from_its_text_once(db: Database) -> None:
    db.put("long.md", " ".join(f"w{number % 997}x" for number in range(60_000)))
    with db.admin.transaction():
        db.execute("set local enable_hashjoin = off")
        db.execute("set local enable_mergejoin = off")
        db.execute("set local statement_timeout = '30s'")
        assert (
            db.execute("select * from pgrag._check_chunks((select collection_id from pgrag.collection))")
            == []
        )
