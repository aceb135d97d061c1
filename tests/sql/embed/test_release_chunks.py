"""Chunks that a worker gives back are due at once."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

SPACE = "tiny"


@pytest.fixture
def claimed(db: Any) -> list[int]:
    """The ids of two chunks that somebody claimed; a third is free."""
    db.execute("select pgrag.create_space(%s, 'by-hand', 2)", (SPACE,))
    db.execute("select pgrag.attach_space('docs', %s)", (SPACE,))
    for number in range(3):
        db.put(f"{number}.md", f"Note {number}.")
    return [row[0] for row in db.execute("select chunk_id from pgrag.claim_chunks(%s, 2)", (SPACE,))]


def due(db: Any) -> int:
    return int(db.value("select count(*) from pgrag.claim_chunks(%s)", (SPACE,)))


def test_what_is_given_back_is_due_at_once(db: Any, claimed: list[int]) -> None:
    assert db.value("select pgrag.release_chunks(%s, %s)", (SPACE, claimed[:1])) == 1
    assert due(db) == 1 + 1


def test_no_attempt_is_counted(db: Any, claimed: list[int]) -> None:
    db.execute("select pgrag.release_chunks(%s, %s)", (SPACE, claimed))
    assert db.value("select max(attempts) from pgrag.embed_queue") == 0


def test_what_left_the_queue_is_passed_over(db: Any, claimed: list[int]) -> None:
    db.execute("select pgrag.delete_document('docs', '0.md')")
    assert db.value("select pgrag.release_chunks(%s, %s)", (SPACE, claimed)) == 1


def test_a_chunk_that_nobody_claimed_stays_as_it_is(db: Any, claimed: list[int]) -> None:
    free = db.value("select max(chunk_id) from pgrag.embed_queue")
    assert db.value("select pgrag.release_chunks(%s, array[%s::bigint])", (SPACE, free)) == 0


@pytest.mark.parametrize("role", ["pgrag_test_reader", "pgrag_test_app", "pgrag_test_nobody"])
def test_only_a_writer_may_call_it(db: Any, claimed: list[int], role: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        db.connect(role).execute("select pgrag.release_chunks(%s, array[1])", (SPACE,))


def test_a_space_that_isnt_there_is_refused(db: Any) -> None:
    with pytest.raises(psycopg.Error, match='space "nope" does not exist'):
        db.execute("select pgrag.release_chunks('nope', array[1])")
