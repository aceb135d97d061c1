"""The posting log says the same as the chunks, whatever was done to them and in whatever order."""

from __future__ import annotations

import random
from typing import Any

import psycopg
import pytest
from _pgrag import Database

# What the log nets to: per posting its term frequency and length.
NET = """
select f.acl_id, f.term, f.chunk_id, sum(f.sign * f.tf), sum(f.sign * f.length)
from (
    select p.acl_id, p.term, p.sign, unnest(p.chunk_ids) as chunk_id, unnest(p.tfs) as tf, unnest(p.lengths) as length
    from pgrag.posting as p
) as f
group by f.acl_id, f.term, f.chunk_id having sum(f.sign) <> 0
"""

# The same, straight from the chunks.
REBUILT = """
select c.acl_id, hashtextextended(l.lexeme collate "C", 0), c.chunk_id, least(cardinality(l.positions), 255),
    c.lexeme_count
from pgrag.chunk as c cross join lateral unnest(c.tsv) as l
"""

STATISTICS = """
select s.acl_id, sum(s.chunks), sum(s.lexemes) from pgrag.corpus_stat as s
group by s.acl_id having sum(s.chunks) <> 0 or sum(s.lexemes) <> 0
"""
COUNTED = "select c.acl_id, count(*), sum(c.lexeme_count) from pgrag.chunk as c group by c.acl_id"

UNNAMED = """
select c.acl_id, l.lexeme from pgrag.chunk as c cross join lateral unnest(c.tsv) as l
except select x.acl_id, x.lexeme from pgrag.lexeme as x
"""

WORDS = [
    "rotate",
    "key",
    "E-4021",
    "valve",
    "pressure",
    "getUserById",
    "Kessel",
    "北京大学",
    "снова",
    "budget",
    "the",
]


def assert_index_is_right(db: Database) -> None:
    assert set(db.execute(NET)) == set(db.execute(REBUILT))
    assert set(db.execute(STATISTICS)) == set(db.execute(COUNTED))
    assert db.execute(UNNAMED) == []


def sentence(random_: random.Random) -> str:
    return " ".join(random_.choices(WORDS, k=random_.randint(1, 30)))


def step(db: Database, random_: random.Random) -> None:
    uri = f"d{random_.randint(1, 12)}"
    readers = random_.sample(["user:ana", "user:bo", "group:eng", "public"], random_.randint(1, 2))
    match random_.choice(["put", "put", "put", "move", "delete", "compact", "undo", "raw"]):
        case "put":
            db.put(uri, "\n\n".join(sentence(random_) for _ in range(random_.randint(1, 4))), readers)
        case "move":
            db.execute("select pgrag.set_readers('docs', %s, %s)", (uri, readers))
        case "delete":
            db.execute("select pgrag.delete_document('docs', %s)", (uri,))
        case "compact":
            db.execute("select pgrag.compact(%s)", (random_.choice([None, 2, 10]),))
        case "undo":
            with db.admin.transaction() as transaction:
                db.execute("select pgrag.put_document('docs', %s, %s, %s)", (uri, sentence(random_), readers))
                db.execute("delete from pgrag.document where uri = %s", (f"d{random_.randint(1, 12)}",))
                raise psycopg.Rollback(transaction)
        case "raw":
            query = "update pgrag.chunk set content = %s where mod(chunk_id, 5) = %s"
            db.execute(query, (sentence(random_), random_.randint(0, 4)))


@pytest.mark.parametrize("seed", range(4))
def test_the_log_equals_an_index_built_anew_after_every_step(db: Database, seed: int) -> None:
    random_ = random.Random(seed)
    for _ in range(40):
        step(db, random_)
        assert_index_is_right(db)


def test_an_update_that_changes_neither_words_nor_readers_writes_nothing(db: Database) -> None:
    db.put("a", "turn the valve")
    before = db.value("select count(*) from pgrag.posting")
    db.execute("update pgrag.chunk set page = 7")
    assert db.value("select count(*) from pgrag.posting") == before


def test_moving_a_document_appends_each_posting_twice(db: Database) -> None:
    db.put("a", "turn valve", ["user:ana"])
    db.execute("select pgrag.set_readers('docs', 'a', array['user:bo'])")
    signs = db.execute("select sign, sum(n) from pgrag.posting group by sign order by sign")
    assert signs == [(-1, 2), (1, 2 + 2)]


def test_compacting_leaves_one_run_a_term_and_no_pair_that_cancels(db: Database) -> None:
    for n in range(5):
        db.put(f"d{n}", "turn the valve")
    db.execute("select pgrag.delete_document('docs', 'd3')")
    assert db.value("select pgrag.compact()") == 0
    runs = db.execute("select sign, n, array_length(chunk_ids, 1) from pgrag.posting")
    assert runs == [(1, 4, 4), (1, 4, 4)]


def test_compacting_twice_changes_nothing(db: Database) -> None:
    for n in range(5):
        db.put(f"d{n}", "turn the valve")
    db.execute("select pgrag.compact()")
    before = db.execute("select ctid, n from pgrag.posting order by ctid")
    db.execute("select pgrag.compact()")
    assert db.execute("select ctid, n from pgrag.posting order by ctid") == before


def test_a_bound_on_runs_leaves_the_rest_for_the_next_call(db: Database) -> None:
    for n in range(3):
        db.put(f"d{n}", "turn valve slowly")
    assert db.value("select pgrag.compact(3)") == 2
    assert db.value("select pgrag.compact(3)") == 1
    assert db.value("select pgrag.compact(3)") == 0


def test_a_delete_that_is_not_committed_survives_compaction(db: Database) -> None:
    db.put("a", "turn valve")
    db.put("b", "turn valve")
    other = db.connect("pgrag_test_writer")
    with other.transaction():
        other.execute("select pgrag.delete_document('docs', 'a')")
        db.execute("select pgrag.compact()")
    assert_index_is_right(db)
    db.execute("select pgrag.compact()")
    assert_index_is_right(db)


def test_a_compactor_beside_another_returns_at_once(db: Database) -> None:
    db.put("a", "turn valve")
    db.put("b", "turn valve")
    other = db.connect("pgrag_test_writer")
    with other.transaction():
        other.execute("select pgrag.compact()")
        assert db.value("select pgrag.compact()") == 0
    assert_index_is_right(db)


def test_two_writers_of_different_documents_do_not_wait_for_each_other(db: Database) -> None:
    db.put("seed", "turn valve", ["user:ana"])
    one, two = db.connect("pgrag_test_writer"), db.connect("pgrag_test_writer")
    two.execute("set lock_timeout = '2s'")
    put: Any = "select pgrag.put_document('docs', %s, 'turn valve slowly', array['user:ana'])"
    with one.transaction():
        one.execute(put, ("a",))
        two.execute(put, ("b",))
    assert_index_is_right(db)


def test_a_term_frequency_saturates_at_255(db: Database) -> None:
    db.execute("update pgrag.collection set chunk_tokens = 8192")
    db.put("a", "valve " * 300)
    assert db.execute("select distinct max_tf, tfs, lengths from pgrag.posting") == [(255, [255], [255])]


def test_truncate_is_refused(db: Database) -> None:
    with pytest.raises(psycopg.Error, match="can't be truncated") as caught:
        db.execute("truncate pgrag.chunk cascade")
    assert caught.value.sqlstate == "RG006"


def test_an_empty_batch_of_changes_writes_no_row(db: Database) -> None:
    db.execute("delete from pgrag.chunk where false")
    assert db.value("select count(*) from pgrag.posting") == 0


def test_a_full_run_is_left_alone_until_something_in_it_goes(db: Database) -> None:
    db.load(["valve"] * 4096)
    full = "select ctid from pgrag.posting where n = 4096"
    before = db.execute(full)
    for uri in ("x", "y"):
        db.put(uri, "valve")
    assert db.value("select pgrag.compact()") == 0
    assert db.execute(full) == before
    assert db.execute("select n from pgrag.posting order by n") == [(2,), (4096,)]
    db.execute("select pgrag.delete_document('docs', '000007')")
    db.execute("select pgrag.compact()")
    assert db.execute("select sign, n from pgrag.posting") == [(1, 4096 + 2 - 1)]
