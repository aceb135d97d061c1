"""A text is embedded once in a space: who lends its vector, who gets it, and what is left alone."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

SPACE = "tiny"
TEXT = "The pump is checked every Tuesday."


@pytest.fixture
def spaced(db: Any) -> Any:
    """A database whose collection has a space of two numbers a vector."""
    db.execute("select pgrag.create_space(%s, 'by-hand', 2)", (SPACE,))
    db.execute("select pgrag.attach_space('docs', %s)", (SPACE,))
    return db


def queued(db: Any) -> list[int]:
    return [row[0] for row in db.execute("select chunk_id from pgrag.embed_queue order by chunk_id")]


def put(db: Any, uri: str, text: str = TEXT, **more: Any) -> int:
    """Put a document of one chunk and return the chunk's id."""
    document_id = db.put(uri, text, **more)
    return int(db.value("select chunk_id from pgrag.chunk where document_id = %s", (document_id,)))


def store(db: Any, chunk_id: int, vector: str = "[0.6,0.8]") -> None:
    db.execute(
        "select pgrag.store_vectors(%s, array[%s::bigint], array(select hash from pgrag.chunk where chunk_id = %s), array[%s])",
        (SPACE, chunk_id, chunk_id, vector),
    )


def reuse(db: Any, *chunk_ids: int) -> list[int]:
    return list(db.value("select pgrag.reuse_vectors(%s, %s::bigint[])", (SPACE, list(chunk_ids))))


def vector(db: Any, chunk_id: int) -> str | None:
    space_id = db.value("select space_id from pgrag.space where name = %s", (SPACE,))
    rows = db.execute(
        f"select embedding::text from pgrag.embedding_{space_id} where chunk_id = %s", (chunk_id,)
    )
    return rows[0][0] if rows else None


def test_a_copy_of_a_text_gets_its_vector_and_leaves_the_queue(spaced: Any) -> None:
    first, second = put(spaced, "a.md"), put(spaced, "b.md")
    store(spaced, first)
    assert reuse(spaced, second) == [second]
    assert vector(spaced, second) == vector(spaced, first) is not None
    assert queued(spaced) == []


def test_all_copies_of_a_call_are_served_in_order_of_their_ids(spaced: Any) -> None:
    first, *others = (put(spaced, f"{n}.md") for n in range(4))
    store(spaced, first)
    assert reuse(spaced, *reversed(others)) == others


def test_another_text_stays_queued(spaced: Any) -> None:
    first, other = put(spaced, "a.md"), put(spaced, "b.md", "The valve isn't.")
    store(spaced, first)
    assert reuse(spaced, other) == []
    assert queued(spaced) == [other]


def test_copies_that_all_lack_a_vector_stay_queued(spaced: Any) -> None:
    chunks = [put(spaced, "a.md"), put(spaced, "b.md")]
    assert reuse(spaced, *chunks) == []
    assert queued(spaced) == chunks


def test_the_same_words_under_another_title_are_another_text(spaced: Any) -> None:
    first, other = put(spaced, "a.md", title="Pumps"), put(spaced, "b.md", title="Orders")
    store(spaced, first)
    assert reuse(spaced, other) == []


def test_another_collection_lends(spaced: Any) -> None:
    spaced.execute("select pgrag.create_collection('archive')")
    spaced.execute("select pgrag.attach_space('archive', %s)", (SPACE,))
    first, second = put(spaced, "a.md", collection="archive"), put(spaced, "a.md")
    store(spaced, first)
    assert reuse(spaced, second) == [second]


def test_a_copy_keeps_its_own_readers(spaced: Any) -> None:
    first, second = put(spaced, "a.md", readers=["user:ana"]), put(spaced, "b.md", readers=["user:bo"])
    store(spaced, first)
    reuse(spaced, second)
    space_id = spaced.value("select space_id from pgrag.space where name = %s", (SPACE,))
    seen = spaced.rows_as("user:bo", f"select chunk_id from pgrag.embedding_{space_id}")
    assert seen == [(second,)]


def test_nothing_is_kept_of_a_deleted_text(spaced: Any) -> None:
    first = put(spaced, "a.md")
    store(spaced, first)
    spaced.execute("select pgrag.delete_document('docs', 'a.md')")
    second = put(spaced, "b.md")
    assert reuse(spaced, second) == []


def test_another_space_lends_nothing(spaced: Any) -> None:
    first, second = put(spaced, "a.md"), put(spaced, "b.md")
    store(spaced, first)
    spaced.execute("select pgrag.create_space('other', 'by-hand', 2)")
    spaced.execute("select pgrag.attach_space('docs', 'other')")
    assert spaced.value("select pgrag.reuse_vectors('other', array[%s::bigint])", (second,)) == []


def test_a_vector_that_is_to_be_made_again_is_not_lent(spaced: Any) -> None:
    first = put(spaced, "a.md")
    store(spaced, first)
    second = put(spaced, "b.md")
    spaced.execute(
        "insert into pgrag.embed_queue (collection_id, space_id, chunk_id)"
        " select collection_id, space_id, %s from pgrag.embed_queue where chunk_id = %s",
        (first, second),
    )
    assert reuse(spaced, first, second) == []


def test_a_chunk_that_isnt_queued_is_left_alone(spaced: Any) -> None:
    first, second = put(spaced, "a.md"), put(spaced, "b.md")
    store(spaced, first)
    store(spaced, second, "[0.8,0.6]")
    before = vector(spaced, second)
    assert reuse(spaced, second, second + 1000) == []
    assert vector(spaced, second) == before


@pytest.mark.parametrize("precision", ["vector", "halfvec", "bit"])
def test_every_precision_lends(db: Any, precision: str) -> None:
    db.execute("select pgrag.create_space(%s, 'by-hand', 2, \"precision\" => %s)", (SPACE, precision))
    db.execute("select pgrag.attach_space('docs', %s)", (SPACE,))
    first, second = put(db, "a.md"), put(db, "b.md")
    store(db, first)
    reuse(db, second)
    space_id = db.value("select space_id from pgrag.space where name = %s", (SPACE,))
    rows = db.execute(f"select to_jsonb(e) - 'chunk_id' - 'acl_id' from pgrag.embedding_{space_id} as e")
    assert len(rows) == 2
    assert rows[0] == rows[1]


def test_no_chunks_give_none(spaced: Any) -> None:
    assert reuse(spaced) == []


@pytest.mark.parametrize("role", ["pgrag_test_reader", "pgrag_test_app", "pgrag_test_nobody"])
def test_only_a_writer_may_call_it(spaced: Any, role: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        spaced.connect(role).execute("select pgrag.reuse_vectors(%s, array[1])", (SPACE,))


def test_a_space_that_isnt_there_is_refused(db: Any) -> None:
    with pytest.raises(psycopg.Error, match='space "nope" does not exist'):
        db.execute("select pgrag.reuse_vectors('nope', array[1])")
