"""Fusion: by ranks or by scores, as asked, as the collections are set, or by default."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from _pgrag import Database

VECTOR = "[1,0]"
# Distances to the query 0, 0.4 and 1; "valve" stands once, twice and not at all.
TEXTS = {"near": "turn the valve now", "middle": "valve by valve", "far": "a pump"}
VECTORS = {"near": "[1,0]", "middle": "[0.6,0.8]", "far": "[0,1]"}


@pytest.fixture
def arms(db: Database) -> Database:
    """Three passages with vectors in a space that is exact."""
    db.execute("select pgrag.create_space('flat', 'flat-model', 2, index_kind => 'none')")
    db.execute("select pgrag.attach_space('docs', 'flat')")
    for uri, text in TEXTS.items():
        db.put(uri, text)
    jobs = db.execute(
        """select j.chunk_id, j.hash, d.uri from pgrag.claim_chunks('flat', 10) as j
        join pgrag.chunk as c using (chunk_id) join pgrag.document as d using (document_id)"""
    )
    db.execute(
        "select pgrag.store_vectors('flat', %s, %s, %s)",
        ([j[0] for j in jobs], [j[1] for j in jobs], [VECTORS[j[2]] for j in jobs]),
    )
    db.execute("select pgrag.activate_space('docs', 'flat')")
    return db


def scores(db: Database, more: str = "") -> dict[str, float]:
    query = (
        f"select uri, score from pgrag.search('valve', embedding => %s::halfvec{more}) order by score desc"
    )
    return dict(db.rows_as("public", query, (VECTOR,)))


def test_min_max_fusion_sums_each_arm_between_its_worst_and_best_candidate(arms: Database) -> None:
    found = scores(arms, ", fusion => 'minmax', weights => '{\"lexical\": 2, \"dense\": 1}'")
    # By words "middle" is the best and "near" the worst of two; by distance 0, 0.4 and 1.
    assert found == pytest.approx({"near": 2 * 0 + 1.0, "middle": 2 * 1 + 0.6, "far": 0.0}, abs=1e-3)
    assert list(found) == ["middle", "near", "far"]


def test_candidates_that_score_the_same_get_the_whole_weight(arms: Database) -> None:
    found = scores(arms, ", fusion => 'minmax', filter => '{}', depth => 1, k => 1")
    # One candidate an arm: "middle" by words, "near" by meaning; the lower chunk_id first.
    assert found == {"near": 1.0}


def test_a_search_that_says_nothing_goes_by_the_collections_settings(arms: Database) -> None:
    arms.execute('select pgrag.set_search_settings(\'docs\', \'{"rrf_k": 1, "weights": {"dense": 0}}\')')
    assert scores(arms) == pytest.approx({"middle": 1 / (1 + 1), "near": 1 / (1 + 2)})


def test_what_a_search_says_beats_the_collections_settings(arms: Database) -> None:
    arms.execute(
        'select pgrag.set_search_settings(\'docs\', \'{"rrf_k": 1, "fusion": "minmax", "weights": {"dense": 0}}\')'
    )
    found = scores(arms, ", rrf_k => 9, fusion => 'rrf'")
    assert found == pytest.approx({"middle": 1 / (9 + 1), "near": 1 / (9 + 2)})


def test_depth_is_a_setting_too(arms: Database) -> None:
    arms.execute("select pgrag.set_search_settings('docs', '{\"depth\": 1}')")
    assert set(scores(arms, ", k => 1")) <= {"near", "middle"}
    details = arms.rows_as(
        "public",
        """select e.detail from pgrag.explain_search('valve', array(select chunk_id from pgrag.search('pump')), 1,
        embedding => %s::halfvec) as e where e.stage = 'dense'""",
        (VECTOR,),
    )
    assert details == [("not among the first 1 by meaning",)]


def test_settings_count_only_where_the_visible_collections_agree(arms: Database) -> None:
    arms.execute("select pgrag.create_collection('hidden')")
    arms.execute("select pgrag.create_collection('other')")
    arms.execute("select pgrag.put_document('hidden', 'h', 'valve', '{group:hr}')")
    arms.execute("select pgrag.put_document('other', 'o', 'nothing of it', '{public}')")
    for collection, settings in (
        ("docs", '{"rrf_k": 1, "weights": {"dense": 0}}'),
        ("hidden", '{"rrf_k": 7}'),
        ("other", '{"rrf_k": 2, "weights": {"dense": 0}}'),
    ):
        arms.execute("select pgrag.set_search_settings(%s, %s)", (collection, settings))
    # rrf_k differs, so it is 60; the weights are the same; a collection that isn't seen has no say.
    assert scores(arms) == pytest.approx({"middle": 1 / (60 + 1), "near": 1 / (60 + 2)})
    assert scores(arms, ", collections => '{docs}'") == pytest.approx(
        {"middle": 1 / (1 + 1), "near": 1 / (1 + 2)}
    )


def test_no_settings_go_back_to_the_defaults(arms: Database) -> None:
    before = scores(arms)
    arms.execute("select pgrag.set_search_settings('docs', '{\"rrf_k\": 1}')")
    assert scores(arms) != before
    arms.execute("select pgrag.set_search_settings('docs', '{}')")
    assert scores(arms) == before


def test_packing_goes_by_the_collections_settings(arms: Database) -> None:
    arms.execute("select pgrag.set_search_settings('docs', '{\"weights\": {\"dense\": 0}}')")
    found = arms.rows_as(
        "public",
        "select uri from pgrag.pack_context('valve', embedding => %s::halfvec) order by uri",
        (VECTOR,),
    )
    assert found == [("middle",), ("near",)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ('{"k1": 1}', 'there is no search setting "k1"'),
        ('{"depth": 0}', "depth must be between 1 and 10000, got 0"),
        ('{"depth": 1.5}', "depth must be a whole number, got 1.5"),
        ('{"depth": "9"}', 'depth must be a whole number, got "9"'),
        ('{"rrf_k": null}', "rrf_k must be a whole number, got null"),
        ('{"weights": {"sparse": 1}}', 'weights has "sparse": 1'),
        ('{"weights": null}', "weights must be a JSON object, got null"),
        ('{"fusion": "max"}', "fusion must be rrf or minmax, got 'max'"),
        ('{"fusion": null}', "fusion must be rrf or minmax, got NULL"),
        ("[]", "settings must be a JSON object"),
    ],
)
def test_settings_that_a_search_would_refuse_are_refused(db: Database, settings: Any, message: str) -> None:
    with pytest.raises(psycopg.Error, match="^" + message.replace("[", r"\[")) as caught:
        db.execute("select pgrag.set_search_settings('docs', %s)", (settings,))
    assert caught.value.sqlstate == "RG001"


def test_a_way_of_fusion_that_is_not_known_is_refused(arms: Database) -> None:
    with pytest.raises(psycopg.Error, match="fusion must be rrf or minmax, got 'borda'") as caught:
        scores(arms, ", fusion => 'borda'")
    assert caught.value.sqlstate == "RG001"
