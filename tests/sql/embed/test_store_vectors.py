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
