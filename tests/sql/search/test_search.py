"""Fusion: reciprocal ranks of both arms, in arithmetic, over one snapshot."""

from __future__ import annotations

import json

import psycopg
import pytest
from _pgrag import Database

# What `valve` ranks by words: b (twice), then a, then c (longest). By meaning, [1, 0, 0] ranks c, a, b.
TEXTS = {"a": "valve pump", "b": "valve valve", "c": "valve gauge spring"}
VECTORS = {"a": "[0.8,0.6,0]", "b": "[0,1,0]", "c": "[1,0,0]"}
QUERY_VECTOR = "[1,0,0]"

SEARCH = (
    "select uri, score, lexical_rank, dense_rank from pgrag.search('valve', embedding => %s::halfvec, {})"
)


@pytest.fixture
def fused(db: Database) -> Database:
    """Three documents with vectors; all public."""
    for uri, content in TEXTS.items():
        db.put(uri, content)
    db.execute("select pgrag.create_space('toy', 'toy-model', 3, index_kind => 'none')")
    db.execute("select pgrag.attach_space('docs', 'toy')")
    for uri, vector in VECTORS.items():
        db.execute(
            """select pgrag.store_vectors('toy', array_agg(c.chunk_id), array_agg(c.hash), array[%s])
            from pgrag.chunk as c join pgrag.document as d using (document_id) where d.uri = %s""",
            (vector, uri),
        )
    db.execute("select pgrag.activate_space('docs', 'toy')")
    return db


def search(db: Database, arguments: str = "k => 10", who: str = "public") -> list[tuple[object, ...]]:
    return db.rows_as(who, SEARCH.format(arguments), (QUERY_VECTOR,))


def test_the_score_is_the_sum_of_reciprocal_ranks(fused: Database) -> None:
    assert search(fused) == [
        ("b", pytest.approx(1 / (60 + 1) + 1 / (60 + 3)), 1, 3),
        ("c", pytest.approx(1 / (60 + 3) + 1 / (60 + 1)), 3, 1),
        ("a", pytest.approx(1 / (60 + 2) + 1 / (60 + 2)), 2, 2),
    ]


def test_weights_and_rrf_k_enter_the_sum(fused: Database) -> None:
    weights = json.dumps({"lexical": 0.5, "dense": 2})
    assert search(fused, f"k => 1, rrf_k => 5, weights => '{weights}'") == [
        ("c", pytest.approx(0.5 / (5 + 3) + 2 / (5 + 1)), 3, 1)
    ]


def test_a_weight_of_zero_leaves_an_arm_out(fused: Database) -> None:
    words = search(fused, """weights => '{"dense": 0}'""")
    assert [(uri, dense) for uri, _, _, dense in words] == [("b", None), ("a", None), ("c", None)]
    meaning = search(fused, """weights => '{"lexical": 0}'""")
    assert [(uri, lexical) for uri, _, lexical, _ in meaning] == [("c", None), ("a", None), ("b", None)]


def test_a_rank_beyond_the_depth_adds_nothing(fused: Database) -> None:
    assert search(fused, "k => 1, depth => 1") == [("b", pytest.approx(1 / 61), 1, None)]


def test_without_a_vector_words_alone_answer(fused: Database) -> None:
    rows = fused.rows_as("public", "select uri, dense_rank, dense_plan from pgrag.search('valve')")
    assert rows == [("b", None, None), ("a", None, None), ("c", None, None)]


def test_without_a_word_meaning_alone_answers(fused: Database) -> None:
    rows = fused.rows_as(
        "public", "select uri, lexical_rank from pgrag.search('', embedding => %s::halfvec)", (QUERY_VECTOR,)
    )
    assert rows == [("c", None), ("a", None), ("b", None)]


def test_a_row_carries_what_it_needs_to_be_cited(fused: Database) -> None:
    fused.put(
        "t",
        "# Safety\n\n## Valves\n\nClose the brass stopcock.",
        title="Manual",
        metadata='{"product": "vault"}',
    )
    rows = fused.rows_as(
        "public", "select uri, title, heading_path, content from pgrag.search('stopcock', 1)"
    )
    ((uri, title, heading_path, content),) = rows
    assert (uri, title, heading_path) == ("t", "Manual", ["Safety", "Valves"])
    assert "Close the brass stopcock." in content


def test_a_filter_applies_to_both_arms(fused: Database) -> None:
    fused.put("a", TEXTS["a"], metadata='{"product": "vault"}')
    assert [row[0] for row in search(fused, """filter => '{"product": "vault"}'""")] == ["a"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("k => 0", "k must be between 1 and 1000, got 0"),
        ("k => 1001", "k must be between 1 and 1000, got 1001"),
        ("depth => 10001", "depth must be between 1 and 10000, got 10001"),
        ("rrf_k => 0", "rrf_k must be between 1 and 1000000, got 0"),
        ("""weights => '{"lexical": -1}'""", 'weights has "lexical": -1'),
        ("""weights => '{"sparse": 1}'""", 'weights has "sparse": 1'),
        ("weights => '[1, 1]'", r"weights must be a JSON object, got \[1, 1\]"),
        ("filter => '[]'", r"filter must be a JSON object, got \[\]"),
    ],
)
def test_what_is_out_of_range_is_named_with_its_value(fused: Database, arguments: str, message: str) -> None:
    with pytest.raises(psycopg.Error, match=message) as caught:
        search(fused, arguments)
    assert caught.value.sqlstate == "RG001"


def test_an_unknown_space_finds_by_words_alone(fused: Database) -> None:
    rows = search(fused, "space => 'nowhere'")
    assert [(uri, dense) for uri, _, _, dense in rows] == [("b", None), ("a", None), ("c", None)]


def test_a_commit_midway_is_not_seen(fused: Database) -> None:
    """Every statement inside answers from the snapshot of the one that called: its function is stable."""
    reader = fused.connect("pgrag_test_app")
    with reader.transaction():
        reader.execute("set transaction isolation level repeatable read")
        reader.execute("select pgrag.act_as('public')")
        first = reader.execute("select uri from pgrag.search('valve')").fetchall()
        fused.put("d", "valve valve valve")
        assert reader.execute("select uri from pgrag.search('valve')").fetchall() == first


def test_search_leaves_no_trace_that_a_standby_would_refuse(fused: Database) -> None:
    reader = fused.connect("pgrag_test_app")
    with reader.transaction():
        reader.execute("select pgrag.act_as('public')")
        reader.execute("set transaction read only")
        assert len(reader.execute(SEARCH.format("k => 10"), (QUERY_VECTOR,)).fetchall()) == 3


def explained(db: Database, uri: str, arguments: str) -> list[tuple[object, ...]]:
    chunk_id = db.value(
        "select c.chunk_id from pgrag.chunk as c join pgrag.document as d using (document_id) where d.uri = %s",
        (uri,),
    )
    query = f"select stage, rank, detail from pgrag.explain_search('valve', array[%s::bigint], embedding => %s::halfvec, {arguments})"
    return db.rows_as("public", query, (chunk_id, QUERY_VECTOR))


def test_an_explanation_names_what_each_stage_gave(fused: Database) -> None:
    assert explained(fused, "b", "k => 10") == [
        ("word", None, '"valv" stands 2 times in 2 words; 3 of 3 passages have it'),
        ("lexical", 1, "place 1 by words"),
        ("dense", 3, "place 3 by meaning; exact over 3 passages: they are few"),
        ("fusion", 1, "kept at place 1"),
    ]


def test_an_explanation_names_the_stage_that_lost_a_chunk(fused: Database) -> None:
    assert explained(fused, "a", "k => 2")[-1] == ("fusion", 3, "lost: place 3, and k is 2")


def test_words_of_an_explanation_add_up_to_the_score(fused: Database) -> None:
    rows = fused.rows_as(
        "public",
        """select stage, value from pgrag.explain_search('valve spring pump', array(select chunk_id from pgrag.chunk))""",
    )
    words = sum(float(value) for stage, value in rows if stage == "word")
    scores = sum(float(value) for stage, value in rows if stage == "lexical")
    assert words == pytest.approx(scores, rel=1e-9)


def test_a_hidden_chunk_is_explained_like_one_that_is_not_there(fused: Database) -> None:
    fused.execute("select pgrag.set_readers('docs', 'a', array['user:ana'])")
    assert explained(fused, "a", "k => 10") == []


def test_what_is_found_is_not_looked_for_in_every_document_of_every_collection(db: Database) -> None:
    collections = 150
    for n in range(collections):
        db.execute("select pgrag.create_collection(%s)", (f"c{n}",))
        for uri in ("a", "b"):
            db.execute("select pgrag.put_document(%s, %s, 'turn the valve', '{public}')", (f"c{n}", uri))
    db.execute("analyze")
    read = """
    select sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) from pg_stat_xact_all_tables
    where schemaname = 'pgrag' and relname in ('chunk', 'collection', 'document')
    """
    with db.acting("public") as connection:
        hits = connection.execute("select uri from pgrag.search('valve', k => 10)").fetchall()
        row = connection.execute(read).fetchone()
    assert len(hits) == 10
    # A collection is read four times, and its chunks and documents only where they were found.
    assert row is not None
    assert row[0] < 5 * collections


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("valve -pump", [("b", 2), ("c", 1)]),
        ("valve \u200f-pump", [("b", 2), ("c", 1)]),
        ('valve "gauge spring"', [("c", 1)]),
        ('"no such words"', []),
    ],
)
def test_phrases_and_exclusions_bind_the_dense_arm_too(
    fused: Database, query: str, found: list[tuple[str, int]]
) -> None:
    asked = "select uri, dense_rank from pgrag.search(%s, embedding => %s::halfvec) order by uri"
    assert fused.rows_as("public", asked, (query, QUERY_VECTOR)) == found
