"""Writers that meet: none waits for another in a circle, and none gets an answer that the other made wrong."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import combinations
from typing import Any

import psycopg
import pytest
from _pgrag import Database


@pytest.fixture
def aside() -> Iterator[ThreadPoolExecutor]:
    """Where a statement runs that must wait for another."""
    with ThreadPoolExecutor(2) as pool:
        yield pool


def blocked(db: Database, aside: ThreadPoolExecutor, run: Callable[[], Any], pid: int) -> Future[Any]:
    """Start what must wait for a lock, and return when it does."""
    future = aside.submit(run)
    until = time.monotonic() + 30
    while not db.value("select pg_blocking_pids(%s) <> '{}'", (pid,)):
        assert not future.done(), f"did not wait: {future.exception() or future.result()}"
        assert time.monotonic() < until
    return future


def stage(db: Database, uri: str, readers: list[str], heading_path: list[str] | None = None) -> uuid.UUID:
    batch = uuid.uuid4()
    db.execute(
        "insert into pgrag.staging (batch_id, uri, content_hash, readers, content) values (%s, %s, 'x', %s, 'a word')",
        (batch, uri, readers),
    )
    db.execute(
        "insert into pgrag.staging (batch_id, uri, ordinal, char_start, char_end, content, context, token_count, heading_path)"
        " values (%s, %s, 0, 0, 6, 'a word', '', 2, %s)",
        (batch, uri, heading_path),
    )
    return batch


def queued(db: Database) -> tuple[list[int], list[bytes], list[str]]:
    """A document whose chunk waits for a vector, as a worker has it after encoding."""
    db.put("x", "about x")
    db.execute("select pgrag.create_space('toy', 'toy-model', 3, index_kind => 'none')")
    db.execute("select pgrag.attach_space('docs', 'toy')")
    ((chunk_id, hash_, _),) = db.execute("select * from pgrag.claim_chunks('toy')")
    return [chunk_id], [hash_], ["[1,0,0]"]


STORE = "select pgrag.store_vectors('toy', %s, %s, %s)"


@pytest.mark.parametrize(
    ("change", "written"),
    [
        ("select pgrag.set_readers('docs', 'x', array['user:ana'])", 1),
        ("select pgrag.delete_document('docs', 'x')", 0),
        ("select pgrag.put_document('docs', 'x', 'about y', array['public'])", 0),
        ("update pgrag.chunk set content = 'about y'", 0),
    ],
    ids=["moved", "deleted", "replaced", "edited"],
)
def test_a_vector_waits_for_whoever_changes_its_chunk(
    db: Database, aside: ThreadPoolExecutor, change: str, written: int
) -> None:
    job = queued(db)
    writer, worker = db.connect(), db.connect()
    with writer.transaction():
        writer.execute(change)
        stored = blocked(db, aside, lambda: worker.execute(STORE, job).fetchone(), worker.info.backend_pid)
    assert stored.result(30) == (written,)
    assert db.value("select count(*) from pgrag.embedding_1") == written
    assert (
        db.value("select count(*) from pgrag.embedding_1 join pgrag.chunk using (chunk_id, acl_id)")
        == written
    )
    # What has no vector is still waited for.
    assert (
        db.value("select count(*) from pgrag.embed_queue")
        == db.value("select count(*) from pgrag.chunk") - written
    )


def test_a_vector_waits_for_a_document_before_it_touches_the_queue(
    db: Database, aside: ThreadPoolExecutor
) -> None:
    job = queued(db)
    writer, worker = db.connect(), db.connect()
    with writer.transaction():
        writer.execute("update pgrag.document set title = title")
        stored = blocked(db, aside, lambda: worker.execute(STORE, job).fetchone(), worker.info.backend_pid)
        # As put_document goes on: the queue's row, then the vector. A worker that held either would close the circle.
        writer.execute("delete from pgrag.embed_queue")
        writer.execute(
            "insert into pgrag.embedding_1 select chunk_id, collection_id, acl_id, '[0,1,0]' from pgrag.chunk"
        )
    assert stored.exception(30) is None
    assert db.value("select count(*) from pgrag.embed_queue") == 0


def test_acls_of_a_batch_are_made_in_one_order_whatever_the_order_of_readers(db: Database) -> None:
    # {a,b} and {b,a} are one ACL, so the order of the arrays is no order of the ACLs.
    names = [f"user:{n}" for n in "abcdefg"]
    db.execute("select pgrag.create_principals(variadic %s)", (names,))
    batch = uuid.uuid4()
    for number, pair in enumerate(combinations(names, 2)):
        readers = list(pair) if number % 2 else list(reversed(pair))
        db.execute(
            "insert into pgrag.staging (batch_id, uri, content_hash, readers, content) values (%s, %s, 'x', %s, 'a word')",
            (batch, f"d{number}", readers),
        )
    db.execute("select pgrag.load_staged('docs', %s)", (batch,))
    made = [row[0] for row in db.execute("select acl_id from pgrag.acl order by digest")]
    assert len(made) == 21
    assert made == sorted(made)


def test_pruning_takes_documents_in_the_order_of_their_uris(db: Database, aside: ThreadPoolExecutor) -> None:
    db.put("b", "stored first")
    db.put("a", "stored second")
    loader, pruner, other = db.connect(), db.connect(), db.connect()
    with loader.transaction():
        loader.execute("select from pgrag.document where uri = 'a' for update")
        pruned = blocked(
            db,
            aside,
            lambda: pruner.execute("select pgrag.prune_documents('docs', '', '{}')").fetchone(),
            pruner.info.backend_pid,
        )
        other.execute("select from pgrag.document where uri = 'b' for update nowait")
    assert pruned.result(30) == (2,)


@pytest.mark.parametrize("arguments", ["null, '{}'", "'', null"])
def test_pruning_needs_to_know_what_to_keep(db: Database, arguments: str) -> None:
    db.put("a", "stays")
    with pytest.raises(psycopg.Error, match="prefix and keep must not be NULL") as caught:
        db.execute(f"select pgrag.prune_documents('docs', {arguments})")
    assert caught.value.sqlstate == "RG001"
    assert db.value("select count(*) from pgrag.document") == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        ("select pgrag.create_collection('new')", 'collection "new" exists already'),
        ("select pgrag.create_space('new', 'toy-model', 3)", 'space "new" exists already'),
    ],
    ids=["collection", "space"],
)
def test_a_name_that_another_is_taking_right_now_is_taken(
    db: Database, aside: ThreadPoolExecutor, make: str, message: str
) -> None:
    first, second = db.connect(), db.connect()
    with first.transaction():
        first.execute(make)
        made = blocked(db, aside, lambda: second.execute(make), second.info.backend_pid)
    with pytest.raises(psycopg.Error, match=message) as caught:
        made.result(30)
    assert caught.value.sqlstate == "RG004"


@pytest.fixture
def spaced(db: Database) -> Database:
    """The collections ``docs`` and ``more``, without documents; the space ``toy`` is attached to ``docs``."""
    db.execute("select pgrag.create_collection('more')")
    db.execute("select pgrag.create_space('toy', 'toy-model', 3, index_kind => 'none')")
    db.execute("select pgrag.attach_space('docs', 'toy')")
    return db


DROP = "select pgrag.drop_space('toy')"


def test_a_drop_and_an_attach_don_t_wait_for_each_other(spaced: Database, aside: ThreadPoolExecutor) -> None:
    attaching, dropping = spaced.connect(), spaced.connect()
    with attaching.transaction():
        attaching.execute("lock table pgrag.chunk in share mode")
        dropped = blocked(spaced, aside, lambda: dropping.execute(DROP), dropping.info.backend_pid)
        attaching.execute("select pgrag.attach_space('more', 'toy')")
    assert dropped.exception(30) is None


def test_a_drop_and_a_switch_don_t_wait_for_each_other(spaced: Database, aside: ThreadPoolExecutor) -> None:
    switching, dropping = spaced.connect(), spaced.connect()
    with switching.transaction():
        switching.execute("select from pgrag.collection_space for key share")
        dropped = blocked(spaced, aside, lambda: dropping.execute(DROP), dropping.info.backend_pid)
        switching.execute("select pgrag.activate_space('docs', 'toy')")
    with pytest.raises(psycopg.Error, match='space "toy" answers the searches of docs'):
        dropped.result(30)


@pytest.mark.parametrize("call", ["attach_space('more', 'toy')", "retire_space('toy')", "drop_space('toy')"])
def test_a_space_that_was_dropped_meanwhile_is_gone(
    spaced: Database, aside: ThreadPoolExecutor, call: str
) -> None:
    late, dropping = spaced.connect(), spaced.connect()
    with dropping.transaction():
        dropping.execute("lock table pgrag.chunk in access exclusive mode")
        waiting = blocked(spaced, aside, lambda: late.execute(f"select pgrag.{call}"), late.info.backend_pid)
        dropping.execute(DROP)
    with pytest.raises(psycopg.Error, match='space "toy" does not exist') as caught:
        waiting.result(30)
    assert caught.value.sqlstate == "RG005"


def test_spaces_of_collections_that_change_places_both_stay_active(
    spaced: Database, aside: ThreadPoolExecutor
) -> None:
    spaced.execute("select pgrag.create_space('new', 'toy-model', 3, index_kind => 'none')")
    spaced.execute(
        "select pgrag.attach_space(c, s) from unnest('{docs,more,more}'::text[], '{new,toy,new}'::text[]) as u (c, s)"
    )
    spaced.execute("select pgrag.activate_space('docs', 'toy'), pgrag.activate_space('more', 'new')")
    first, second = spaced.connect(), spaced.connect()
    with first.transaction():
        first.execute("select pgrag.activate_space('docs', 'new')")
        other = blocked(
            spaced,
            aside,
            lambda: second.execute("select pgrag.activate_space('more', 'toy')"),
            second.info.backend_pid,
        )
    assert other.exception(30) is None
    assert spaced.execute("select name, state from pgrag.space order by name") == [
        ("new", "active"),
        ("toy", "active"),
    ]


def test_a_batch_without_heading_paths_is_loaded_twice(db: Database) -> None:
    for _ in range(2):
        db.execute("select pgrag.load_staged('docs', %s)", (stage(db, "x", ["public"]),))
    assert db.execute("select heading_path from pgrag.chunk") == [([],)]


DROP_COLLECTION = "select pgrag.drop_collection('docs')"


def test_what_a_compactor_folded_goes_with_a_dropped_collection(
    db: Database, aside: ThreadPoolExecutor
) -> None:
    for uri in ("apple", "pear"):
        db.put(uri, uri)
    compactor, dropping = db.connect(), db.connect()
    with compactor.transaction():
        compactor.execute("select pgrag.compact()")
        dropped = blocked(
            db, aside, lambda: dropping.execute(DROP_COLLECTION).fetchone(), dropping.info.backend_pid
        )
    assert dropped.result(30) == (2,)
    assert [
        db.value(f"select count(*) from pgrag.{table}") for table in ("posting", "corpus_stat", "lexeme")
    ] == [
        0,
        0,
        0,
    ]


@pytest.mark.parametrize(
    "change",
    [
        "select pgrag.set_readers('docs', 'a', array['user:ana'])",
        "select pgrag.delete_document('docs', 'a')",
        "select pgrag.put_document('docs', 'a', 'another text', array['public'])",
        "select pgrag.prune_documents('docs', '', '{}')",
        "select pgrag.rechunk_documents('docs')",
    ],
    ids=["moved", "deleted", "replaced", "pruned", "cut"],
)
def test_a_drop_and_a_writer_don_t_wait_for_each_other(
    db: Database, aside: ThreadPoolExecutor, change: str
) -> None:
    db.put("a", "a text")
    # So that the ACL of the change is known, and asks nothing of the collection.
    db.put("b", "a text", ["user:ana"])
    other, writer, dropping = db.connect(), db.connect(), db.connect()
    with other.transaction():
        other.execute("select from pgrag.document where uri = 'a' for update")
        written = blocked(db, aside, lambda: writer.execute(change), writer.info.backend_pid)
        dropped = blocked(db, aside, lambda: dropping.execute(DROP_COLLECTION), dropping.info.backend_pid)
    assert written.exception(30) is None
    assert dropped.exception(30) is None
    assert db.value("select count(*) from pgrag.document") == 0


def test_a_drop_and_a_switch_of_the_collection_don_t_wait_for_each_other(
    spaced: Database, aside: ThreadPoolExecutor
) -> None:
    other, switching, dropping = spaced.connect(), spaced.connect(), spaced.connect()
    with other.transaction():
        other.execute("select from pgrag.collection_space for update")
        switched = blocked(
            spaced,
            aside,
            lambda: switching.execute("select pgrag.activate_space('docs', 'toy')"),
            switching.info.backend_pid,
        )
        dropped = blocked(spaced, aside, lambda: dropping.execute(DROP_COLLECTION), dropping.info.backend_pid)
    assert switched.exception(30) is None
    assert dropped.exception(30) is None


def test_a_collection_that_two_drop_goes_once(db: Database, aside: ThreadPoolExecutor) -> None:
    first, second = db.connect(), db.connect()
    with first.transaction():
        first.execute(DROP_COLLECTION)
        dropped = blocked(db, aside, lambda: second.execute(DROP_COLLECTION), second.info.backend_pid)
    assert getattr(dropped.exception(30), "sqlstate", None) == "RG002"


def test_a_writer_who_waited_for_a_drop_is_told_that_the_collection_is_gone(
    db: Database, aside: ThreadPoolExecutor
) -> None:
    writer, dropping = db.connect(), db.connect()
    with dropping.transaction():
        dropping.execute(DROP_COLLECTION)
        put = blocked(
            db,
            aside,
            lambda: writer.execute("select pgrag.put_document('docs', 'a', 'a text', array['public'])"),
            writer.info.backend_pid,
        )
    assert getattr(put.exception(30), "sqlstate", None) == "RG002"


def test_cutting_again_goes_on_where_a_batch_was_deleted_meanwhile(
    db: Database, aside: ThreadPoolExecutor
) -> None:
    db.put("a", "a text")
    last_id = db.put("b", "a text")
    deleting, cutting = db.connect(), db.connect()
    with deleting.transaction():
        deleting.execute("select pgrag.delete_document('docs', 'a')")
        cut = blocked(
            db,
            aside,
            lambda: cutting.execute("select pgrag.rechunk_documents('docs', 0, 1)").fetchone(),
            cutting.info.backend_pid,
        )
    assert cut.result(30) == (last_id,)
