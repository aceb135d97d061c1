"""pgrag.rank_documents: documents by their best passage, for an evaluation."""

from __future__ import annotations

import psycopg
import pytest
from _pgrag import Database

RANK = "select rank, uri, ordinal from pgrag.rank_documents(%s, %s, array['docs'], passages => %s)"


def crowd(db: Database, passages: int = 4) -> None:
    """One document of many passages that all say the word, and two of one passage that say it beside others."""
    db.put("crowd", "\n\n".join(f"# Part {n}\n\npump pump pump" for n in range(passages)))
    db.put("second", "pump and filter")
    db.put("third", "pump and filter and valve and hose")


def test_a_document_has_one_place_however_many_of_its_passages_are_found(db: Database) -> None:
    crowd(db)
    rows = db.rows_as("public", RANK, ("pump", 10, 100))
    assert [(rank, uri) for rank, uri, _ in rows] == [(1, "crowd"), (2, "second"), (3, "third")]


def test_the_ordinal_is_that_of_the_best_passage(db: Database) -> None:
    db.put(
        "a", "# One\n\nnothing of it, at length\n\n# Two\n\npump pump\n\n# Three\n\npump beside other words"
    )
    assert db.rows_as("public", RANK, ("pump", 10, 100)) == [(1, "a", 1)]


def test_where_the_passages_are_of_too_few_documents_a_deeper_search_follows(db: Database) -> None:
    crowd(db)
    # The first two passages are both of the crowd.
    assert [uri for _, uri, _ in db.rows_as("public", RANK, ("pump", 3, 2))] == ["crowd", "second", "third"]


def test_no_more_than_k_are_given(db: Database) -> None:
    crowd(db)
    assert [uri for _, uri, _ in db.rows_as("public", RANK, ("pump", 2, 2))] == ["crowd", "second"]


def test_a_document_that_the_caller_may_not_see_has_no_place(db: Database) -> None:
    crowd(db)
    db.execute("select pgrag.create_principals('user:ana')")
    db.execute("select pgrag.set_readers('docs', 'second', array['user:ana'])")
    assert [uri for _, uri, _ in db.rows_as("user:bo", RANK, ("pump", 10, 2))] == ["crowd", "third"]


def test_the_first_ones_are_those_of_a_search_for_so_many_passages(hybrid: Database) -> None:
    crowd(hybrid)
    found = hybrid.rows_as("public", "select uri, score from pgrag.search('pump filter', 3, array['docs'])")
    ranked = hybrid.rows_as(
        "public",
        "select uri, score from pgrag.rank_documents('pump filter', 10, array['docs'], passages => 3)",
    )
    best: dict[str, float] = {}
    for uri, score in found:
        best.setdefault(uri, score)
    assert ranked[: len(best)] == list(best.items())


def test_nobody_finds_nothing(db: Database) -> None:
    crowd(db)
    with db.connect("pgrag_test_app") as connection:
        assert connection.execute(RANK, ("pump", 10, 100)).fetchall() == []


@pytest.mark.parametrize(("k", "passages"), [(0, 100), (1001, 100), (10, 0), (10, 1001)])
def test_a_number_out_of_its_range_is_refused(db: Database, k: int, passages: int) -> None:
    with pytest.raises(psycopg.Error) as refused:
        db.rows_as("public", RANK, ("pump", k, passages))
    assert refused.value.sqlstate == "RG001"
