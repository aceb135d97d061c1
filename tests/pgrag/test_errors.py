"""What a database's error means in the words of pgrag."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from _pgrag import Database

from pgrag.errors import NO_SPACE, DatabaseError, NotInstalled, Refused, translated


def refused(db: Database, query: str, *arguments: Any) -> DatabaseError:
    """Return what a statement's error is translated to."""
    with pytest.raises(DatabaseError) as caught, translated():
        db.admin.execute(query, arguments or None)
    return caught.value


@pytest.mark.parametrize("number", [2**31, 2**63, -(2**31) - 1])
def test_a_number_that_is_too_large_is_not_taken_for_a_missing_installation(
    db: Database, number: int
) -> None:
    error = refused(db, "select pgrag.claim_chunks('none', %s)", number)
    assert not isinstance(error, NotInstalled)
    assert "a number is out of its range" in error.message
    assert "-2147483648 to 2147483647" in (error.hint or "")


def test_one_in_a_list_is_not_either(db: Database) -> None:
    error = refused(
        db,
        "select pgrag.import_judged('docs', '{}', '{}', '[]', '{q}', '{u}', %s)",
        [1, 2**31],
    )
    assert "a number is out of its range" in error.message


def test_one_that_is_cast_is_not_raw_either(db: Database) -> None:
    assert "a number is out of its range" in refused(db, "select %s::int", 2**31).message


def test_a_function_of_another_release_is_missing(db: Database) -> None:
    assert isinstance(refused(db, "select pgrag.no_such_function('a')"), NotInstalled)


def test_the_vectors_of_a_space_that_was_dropped_are_not_taken_for_a_missing_installation(
    db: Database,
) -> None:
    error = refused(db, "select from pgrag.embedding_987654")
    assert (type(error), error.code) == (Refused, NO_SPACE)
    assert error.message == "the space was dropped while it was used"


def test_a_database_without_pgrag_is_said_to_be(server_dsn: str) -> None:
    with pytest.raises(NotInstalled), translated(), psycopg.connect(server_dsn, dbname="template1") as admin:
        admin.execute("select pgrag.spaces()")
