"""The posting log says the same as the chunks, whatever was done to them: what each change and each merge does to it.

Changes at random are in ``test_posting_machine.py``, changes at once in ``test_posting_concurrency.py``.
"""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from _index import Document, Query, assert_found, assert_index_is_right, load, passages, score, search
from _pgrag import Database

# Postings by sign, whatever the layout of the log.
SIGNS = """
select p.sign, count(*) from pgrag.collection as o cross join lateral pgrag._unpack_postings(o.collection_id) as p
group by p.sign order by p.sign
"""


def test_an_update_that_changes_neither_words_nor_readers_writes_nothing(db: Database) -> None:
    db.put("a", "turn the valve")
    before = db.value("select count(*) from pgrag.posting")
    db.execute("update pgrag.chunk set page = 7")
    assert db.value("select count(*) from pgrag.posting") == before


def test_moving_a_document_appends_each_posting_twice(db: Database) -> None:
    db.put("a", "turn valve", ["user:ana"])
    db.execute("select pgrag.set_readers('docs', 'a', array['user:bo'])")
    assert db.execute(SIGNS) == [(-1, 2), (1, 2 + 2)]


def test_compacting_leaves_no_pair_that_cancels(db: Database) -> None:
    for n in range(5):
        db.put(f"d{n}", "turn the valve")
    db.execute("select pgrag.delete_document('docs', 'd3')")
    assert db.value("select pgrag.compact()") == 0
    assert db.execute(SIGNS) == [(1, 2 * 4)]


def test_a_compacted_log_has_hardly_more_rows_than_one_made_anew(db: Database) -> None:
    rows = "select count(*) from pgrag.posting"
    for n in range(60):
        db.put(f"d{n}", f"turn the valve {n % 7} of pump {n % 11}", [f"user:u{n % 3}"])
    for n in range(0, 60, 4):
        db.put(f"d{n}", f"close the valve {n % 5}", [f"user:u{n % 3}"])
    before = db.value(rows)
    db.execute("select pgrag.compact()")
    compacted = db.value(rows)
    db.execute("select pgrag.rebuild_postings('docs')")
    assert compacted <= 1.3 * db.value(rows)
    assert compacted < before / 4


def test_compacting_twice_changes_nothing(db: Database) -> None:
    for n in range(5):
        db.put(f"d{n}", "turn the valve")
    db.execute("select pgrag.compact()")
    before = db.execute("select ctid from pgrag.posting order by ctid")
    db.execute("select pgrag.compact()")
    assert db.execute("select ctid from pgrag.posting order by ctid") == before


def test_calls_with_a_bound_on_runs_come_to_the_end(db: Database) -> None:
    for n in range(6):
        db.put(f"d{n}", "turn valve slowly")
    db.execute("select pgrag.delete_document('docs', 'd4')")
    left = []
    while not left or left[-1] > 0:
        left.append(db.value("select pgrag.compact(2)"))
        assert_index_is_right(db.admin)
        assert len(left) <= 3 * 7, "a call that merges nothing and says that something is left"
    assert left[0] > 0
    assert db.execute(SIGNS) == [(1, 3 * 5)]


def test_a_delete_that_is_not_committed_survives_compaction(db: Database) -> None:
    db.put("a", "turn valve")
    db.put("b", "turn valve")
    other = db.connect("pgrag_test_writer")
    with other.transaction():
        other.execute("select pgrag.delete_document('docs', 'a')")
        db.execute("select pgrag.compact()")
    assert_index_is_right(db.admin)
    db.execute("select pgrag.compact()")
    assert_index_is_right(db.admin)


def test_a_compactor_beside_another_returns_at_once(db: Database) -> None:
    db.put("a", "turn valve")
    db.put("b", "turn valve")
    other = db.connect("pgrag_test_writer")
    with other.transaction():
        other.execute("select pgrag.compact()")
        assert db.value("select pgrag.compact()") == 0
    assert_index_is_right(db.admin)


def test_two_writers_of_different_documents_do_not_wait_for_each_other(db: Database) -> None:
    db.put("seed", "turn valve", ["user:ana"])
    one, two = db.connect("pgrag_test_writer"), db.connect("pgrag_test_writer")
    two.execute("set lock_timeout = '2s'")
    put: Any = "select pgrag.put_document('docs', %s, 'turn valve slowly', array['user:ana'])"
    with one.transaction():
        one.execute(put, ("a",))
        two.execute(put, ("b",))
    assert_index_is_right(db.admin)


def test_a_term_frequency_saturates_at_255(db: Database) -> None:
    db.execute("update pgrag.collection set chunk_tokens = 8192")
    db.put("a", "valve " * 300)
    postings = "select p.tf, p.length from pgrag.collection as o cross join lateral pgrag._unpack_postings(o.collection_id) as p"
    assert db.execute(postings) == [(255, 255)]


def test_a_length_saturates_at_32767(db: Database) -> None:
    words = [f"k{a}{b}{c}q" for a in "bdfgklmnprstvz" for b in "bdfgklmnprstvz" for c in "bdfgklmnprstvz"]
    long = Document(
        "long", (" ".join(f"{word}{end}" for end in "bdfgklmnprstvz" for word in words),), ("public",)
    )
    load(db.admin, [long, Document("short", ("kbbbqb",), ("public",))])
    assert db.value("select length(tsv) from pgrag.chunk order by chunk_id limit 1") == 14**4
    lengths = "select distinct p.length from pgrag.collection as o cross join lateral pgrag._unpack_postings(o.collection_id) as p"
    assert sorted(db.execute(lengths)) == [(1,), (32767,)]
    expected = score(passages(db.admin), Query(("kbbbqb",)))
    assert_found(search(db.admin, ["public"], Query(("kbbbqb",)), 10), expected, 10)
    db.execute("select pgrag.compact()")
    assert_found(search(db.admin, ["public"], Query(("kbbbqb",)), 10), expected, 10)
    assert_index_is_right(db.admin)


def test_truncate_is_refused(db: Database) -> None:
    with pytest.raises(psycopg.Error, match="can't be truncated") as caught:
        db.execute("truncate pgrag.chunk cascade")
    assert caught.value.sqlstate == "RG006"


def test_an_empty_batch_of_changes_writes_no_row(db: Database) -> None:
    db.execute("delete from pgrag.chunk where false")
    assert db.value("select count(*) from pgrag.posting") == 0


def test_a_log_of_many_chunks_stays_right_when_some_go_and_some_come(db: Database) -> None:
    db.load(["valve"] * 9000)
    for uri in ("x", "y"):
        db.put(uri, "valve")
    db.execute("select pgrag.compact()")
    assert_index_is_right(db.admin, whole=False)
    db.execute("delete from pgrag.document where uri in ('000007', '004095', '004096', '008999')")
    assert_index_is_right(db.admin, whole=False)
    db.execute("select pgrag.compact()")
    assert_index_is_right(db.admin, whole=False)
    assert db.execute(SIGNS) == [(1, 9000 + 2 - 4)]


def test_a_merge_in_parts_reads_no_more_of_the_log_than_its_part(db: Database) -> None:
    # 9,000 terms with three runs each, of one collection: what comes after a key must not be taken for the whole log.
    db.execute(
        "insert into pgrag.posting (term, collection_id, acl_id, n, sign, max_tf, min_ratio, entries)"
        " select t, 1, 1, 1, 1, 1, 5, array[pgrag._pack_posting(3 * t + r, 1, 5)]"
        " from generate_series(1, 9000) as t cross join generate_series(0, 2) as r"
    )
    db.execute("insert into pgrag.corpus_stat select 1, 1, 1, 5, 'english' from generate_series(1, 2)")
    db.execute("analyze pgrag.posting")
    with db.admin.transaction():
        db.execute("set local statement_timeout = '60s'")
        calls = 0
        while db.value("select pgrag.compact(3000)"):
            calls += 1
        assert calls == 9000 * 3 // 3000
        assert db.value("select pg_stat_get_xact_numscans('pgrag.posting'::regclass)") == 0
    assert db.value("select count(*) from pgrag.posting") == 9000
