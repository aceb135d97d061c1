"""The index of the posting log comes back to its size, and merges write as little of it as they can."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from _index import assert_index_is_right
from _pgrag import Database

SIZE = "select pg_relation_size('pgrag.posting_term_idx')"
UPKEEP = "select pgrag._posting_upkeep()"
INVALID = "select count(*) from pg_index where indrelid = 'pgrag.posting'::regclass and not indisvalid"
ADD = """
insert into pgrag.posting (term, collection_id, acl_id, n, sign, max_tf, min_ratio, entries)
select hashint8extended(t, 0), 1, 1, 1, 1, 1, 5, array[pgrag._pack_posting(t, 1, 5)] from generate_series(1, %s) as t
"""


def written_by_a_merge(db: Database, *what: str) -> list[object]:
    """Merge, and return how many rows of the log that inserted, updated or deleted."""
    names = ", ".join(f"n_tup_{each}" for each in what)
    # A session counts what it has not yet told the server, of earlier transactions too: so one of its own.
    with db.connect() as merger, merger.transaction():
        merger.execute("select pgrag.compact()")
        query = f"select {names} from pg_stat_xact_all_tables where relid = 'pgrag.posting'::regclass"
        return list(merger.execute(query).fetchall()[0])


@pytest.fixture
def quiet(db: Database) -> Database:
    """A log that autovacuum leaves alone."""
    db.execute("alter table pgrag.posting set (autovacuum_enabled = off)")
    return db


@pytest.fixture
def outgrown(quiet: Database) -> Database:
    """A log whose index was made for 50,000 runs, of which 500 are left."""
    quiet.execute(ADD, (50_000,))
    quiet.execute("delete from pgrag.posting where (entries[1] >> 23) % 100 <> 0")
    quiet.execute("vacuum analyze pgrag.posting")
    return quiet


def test_an_index_that_outgrew_its_rows_is_to_be_built_again(outgrown: Database) -> None:
    assert outgrown.execute(UPKEEP) == [("reindex index concurrently pgrag.posting_term_idx",)]


def test_an_index_that_was_built_again_has_the_size_of_its_rows(outgrown: Database) -> None:
    before = outgrown.value(SIZE)
    for (statement,) in outgrown.execute(UPKEEP):
        outgrown.execute(statement)
    assert outgrown.value(SIZE) < before / 50
    assert outgrown.execute(UPKEEP) == []


def test_an_index_made_anew_is_left_alone(quiet: Database) -> None:
    quiet.execute(ADD, (50_000,))
    quiet.execute("reindex index pgrag.posting_term_idx")
    quiet.execute("vacuum analyze pgrag.posting")
    assert quiet.value(SIZE) > 50_000 * 36
    assert quiet.execute(UPKEEP) == []


def test_an_index_of_rows_that_were_never_counted_is_left_alone(quiet: Database) -> None:
    quiet.execute(ADD, (50_000,))
    assert quiet.value("select reltuples from pg_class where oid = 'pgrag.posting'::regclass") == -1
    assert quiet.execute(UPKEEP) == []


def test_a_writer_that_does_not_own_the_index_is_told_nothing(outgrown: Database) -> None:
    assert outgrown.connect("pgrag_test_writer").execute(UPKEEP).fetchall() == []


def test_what_a_cut_off_rebuild_left_is_dropped(quiet: Database) -> None:
    quiet.put("a", "turn the valve")
    builder = quiet.connect()
    with quiet.connect() as reader, reader.transaction(), ThreadPoolExecutor(1) as aside:
        # The rebuild waits for whoever reads.
        reader.execute("select from pgrag.posting")
        built = aside.submit(builder.execute, "reindex index concurrently pgrag.posting_term_idx")
        while quiet.value(INVALID) == 0:
            assert not built.done()
        quiet.execute("select pg_cancel_backend(%s)", (builder.info.backend_pid,))
        with pytest.raises(psycopg.errors.QueryCanceled):
            built.result(60)
    for (statement,) in quiet.execute(UPKEEP):
        quiet.execute(statement)
    assert quiet.value(INVALID) == 0
    assert_index_is_right(quiet.admin)


def test_a_rebuild_that_goes_on_is_not_taken_for_one_that_was_cut_off(quiet: Database) -> None:
    quiet.put("a", "turn the valve")
    quiet.execute("create index posting_term_idx_ccnew on pgrag.posting (term)")
    quiet.execute(
        "update pg_index set indisvalid = false where indexrelid = 'pgrag.posting_term_idx_ccnew'::regclass"
    )
    with quiet.connect() as other, other.transaction():
        other.execute("lock table pgrag.posting in share update exclusive mode")
        assert quiet.execute(UPKEEP) == []
    assert quiet.execute(UPKEEP) == [("drop index concurrently if exists pgrag.posting_term_idx_ccnew",)]


def test_an_edit_is_merged_over_the_run_that_is_there(db: Database) -> None:
    for n in range(5):
        db.put(f"d{n}", "turn the valve")
    db.execute("select pgrag.compact()")
    db.put("d2", "turn the valve slowly")
    # Of turn and valve an old run, a negative one and a new one; slowly has one, as after the merge.
    assert written_by_a_merge(db, "ins", "upd", "del") == [0, 2, 2 * 2]
    assert_index_is_right(db.admin)


def test_a_merge_beside_free_space_writes_nothing_into_the_index(quiet: Database) -> None:
    quiet.put("a", "turn the valve")
    for n in range(5):
        quiet.put("a", f"turn the valve slowly {n}")
        quiet.execute("select pgrag.compact()")
    quiet.put("a", "turn the valve slowly again")
    words = len({"turn", "valve", "slowly"})
    assert written_by_a_merge(quiet, "upd", "hot_upd") == [words, words]


def test_a_lone_negative_is_not_written_again_and_again(db: Database) -> None:
    db.load(["valve"] * 200)
    db.execute(
        "insert into pgrag.posting select p.term, p.collection_id, p.acl_id, 1, -1, 1, 1, array[pgrag._pack_posting(999, 1, 1)]"
        " from pgrag.posting as p limit 1"
    )
    db.execute("select pgrag.compact()")
    before = db.execute("select ctid, sign from pgrag.posting order by ctid")
    assert [sign for _, sign in before] == [1, -1]
    db.execute("select pgrag.compact()")
    assert db.execute("select ctid, sign from pgrag.posting order by ctid") == before
