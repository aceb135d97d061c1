"""Vectors that workers write: each belongs to its chunk's text and readers, whatever happens to them meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from _pgrag import Database

VECTOR = "[1,0]"
STORE = "select pgrag.store_vectors('two', %s, %s, %s)"


@pytest.fixture
def chunk(db: Database) -> tuple[int, bytes]:
    """A chunk that a worker has claimed for the space ``two``."""
    db.execute("select pgrag.create_space('two', 'model', 2, index_kind => 'none')")
    db.execute("select pgrag.attach_space('docs', 'two')")
    db.put("a", "turn the valve", ["user:ana"])
    ((chunk_id, digest, _),) = db.execute("select * from pgrag.claim_chunks('two')")
    return chunk_id, digest


def stored_while(db: Database, change: str, chunk: tuple[int, bytes]) -> list[Any]:
    """Store the chunk's vector while a change of it isn't committed yet; returns what is stored at the end."""
    other, worker = db.connect("pgrag_test_writer"), db.connect("pgrag_test_writer")
    errors: list[psycopg.Error] = []

    def store() -> None:
        try:
            worker.execute(STORE, ([chunk[0]], [chunk[1]], [VECTOR]))
        except psycopg.Error as error:
            errors.append(error)

    thread = threading.Thread(target=store)
    with other.transaction():
        other.execute(change)
        thread.start()
        until(lambda: bool(db.value("select count(*) from pg_locks where not granted")))
    thread.join(10)
    assert errors == []
    table = db.value("select 'pgrag.embedding_' || space_id from pgrag.space where name = 'two'")
    return db.execute(
        f"select e.acl_id = c.acl_id from {table} as e inner join pgrag.chunk as c using (chunk_id)"
    )


def until(true: Callable[[], bool], tries: int = 20000) -> None:
    assert any(true() for _ in range(tries))


def test_a_chunk_that_is_moved_meanwhile_gets_a_vector_for_its_new_readers(
    db: Database, chunk: tuple[int, bytes]
) -> None:
    assert stored_while(db, "select pgrag.set_readers('docs', 'a', array['user:bo'])", chunk) == [(True,)]


def test_a_chunk_that_is_deleted_meanwhile_is_passed_over(db: Database, chunk: tuple[int, bytes]) -> None:
    assert stored_while(db, "select pgrag.delete_document('docs', 'a')", chunk) == []


def test_a_chunk_whose_text_changes_meanwhile_gets_no_vector_of_the_old_one(
    db: Database, chunk: tuple[int, bytes]
) -> None:
    assert stored_while(db, "update pgrag.chunk set content = 'close the pump'", chunk) == []
    assert db.value("select count(*) from pgrag.embed_queue") == 1


@pytest.mark.parametrize("batch", [0, -1, None])
def test_a_batch_of_no_chunks_is_refused(db: Database, chunk: tuple[int, bytes], batch: int | None) -> None:
    with pytest.raises(psycopg.Error, match="batch must be between") as caught:
        db.execute("select pgrag.claim_chunks('two', %s)", (batch,))
    assert caught.value.sqlstate == "RG001"


def test_a_chunk_that_stands_twice_in_one_call_is_refused_by_name(
    db: Database, chunk: tuple[int, bytes]
) -> None:
    with pytest.raises(psycopg.Error, match=f"chunk {chunk[0]} stands twice in one call") as caught:
        db.execute(STORE, ([chunk[0]] * 2, [chunk[1]] * 2, [VECTOR, "[0,1]"]))
    assert caught.value.sqlstate == "RG007"


@pytest.mark.parametrize("function", ["store_vectors('two', '{}', '{}', '{}')", "reuse_vectors('two', '{}')"])
def test_a_space_that_is_dropped_at_this_moment_is_waited_for_and_named(
    db: Database, chunk: tuple[int, bytes], function: str
) -> None:
    other, worker = db.connect(), db.connect("pgrag_test_writer")
    errors: list[psycopg.Error] = []

    def call() -> None:
        try:
            worker.execute(f"select pgrag.{function}")
        except psycopg.Error as error:
            errors.append(error)

    thread = threading.Thread(target=call)
    with other.transaction():
        other.execute("select pgrag.drop_space('two')")
        thread.start()
        until(lambda: bool(db.value("select count(*) from pg_locks where not granted")))
    thread.join(10)
    assert [(error.sqlstate, error.diag.message_primary) for error in errors] == [
        ("RG005", 'space "two" does not exist')
    ]


@pytest.mark.parametrize("lease", ["-1 second", "31 days", "infinity", None])
def test_a_lease_that_is_none_is_refused(db: Database, chunk: tuple[int, bytes], lease: str | None) -> None:
    if lease == "infinity" and db.admin.info.server_version < 170000:
        pytest.skip("an interval has no infinity before PostgreSQL 17")
    with pytest.raises(psycopg.Error, match="a lease is 0 seconds to 30 days") as caught:
        db.execute("select pgrag.claim_chunks('two', 1, %s::interval)", (lease,))
    assert caught.value.sqlstate == "RG001"
