"""What a plan and a tuning go by is counted as it is."""

from __future__ import annotations

import psycopg
import pytest
from _pgrag import Database


def test_a_corpus_is_counted(db: Database) -> None:
    db.put("a.md", "Pumps and pumps are checked.", readers=["group:a"])
    db.put("b.md", "Pumps are painted.", readers=["group:b"])

    figures = db.value("select pgrag.corpus_figures()")

    # a: pump, check; b: pump, paint.
    assert {name: figures[name] for name in ("chunks", "acls", "postings", "runs", "pairs")} == {
        "chunks": 2,
        "acls": 2,
        "postings": 2 + 2,
        "runs": 2 + 2,
        "pairs": 2 + 2,
    }
    assert figures["tokens"] == db.value("select sum(token_count) from pgrag.chunk")


def test_an_empty_corpus_has_no_postings(db: Database) -> None:
    figures = db.value("select pgrag.corpus_figures()")

    assert [figures[name] for name in ("chunks", "tokens", "postings", "pairs")] == [0, 0, 0, 0]


def test_readers_count_no_corpus(db: Database) -> None:
    with db.connect("pgrag_test_app") as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("select pgrag.corpus_figures()")


def test_what_can_be_tuned_is_told(db: Database) -> None:
    db.execute("select pgrag.set_search_settings('docs', '{\"rrf_k\": 30}')")

    assert db.value("select pgrag.tunable_settings('docs')") == {
        "k1": 1.2,
        "b": 0.75,
        "analyzer": "english",
        "chunk_tokens": 256,
        "search": {"rrf_k": 30},
        "space": None,
        "space_kind": None,
        "query_encoder": None,
    }


def test_a_search_is_planned_by_the_costs_that_a_search_goes_by(db: Database) -> None:
    space_as = '{"dimension": 100, "precision": "halfvec", "index_kind": "ivfflat", "calibration": {}}'

    [(exact_ms, index_ms, effort)] = db.execute(
        "select exact_ms, index_ms, effort from pgrag._plan_dense(%s, 10, 1000000, 1000000, 1000)",
        (space_as,),
    )

    # 0.2 + 0.0005 * 100 microseconds a vector, 1.2 times as much under row-level security.
    assert exact_ms == pytest.approx(1.2 * 0.25 * 1_000_000 / 1000)
    # 10 probes of 1,000 vectors, 1 microsecond each.
    assert (index_ms, effort) == (pytest.approx(10 * 1000 / 1000), 10)
