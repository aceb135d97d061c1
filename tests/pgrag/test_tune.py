"""Tuning proposes what is better on queries that did not choose it, and leaves the collection as it was."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import psycopg
import pytest
from _pgrag import Database

from pgrag.errors import PgragError
from pgrag.evaluate import measure, ranking
from pgrag.evaluate._asker import Setting
from pgrag.evaluate._fusing import Candidates, SearchSettings, fused
from pgrag.evaluate._tune import (
    Trial,
    Tuning,
    _proposal,
    _Tried,
    cross_validated,
    folds_of,
    tune_collection,
)

pytest.importorskip("ir_measures", reason="needs the extra evaluate")

SUBJECTS = ["gateway", "vault", "ledger", "badge", "printer", "pump"]
THINGS = ["key", "certificate", "password", "battery"]
FOUND = "select uri from pgrag.search(%s, 10, array['docs'], exact => true) order by score desc, chunk_id"
USUAL = {"k1": [1.2], "b": [0.75]}


def put_corpus(db: Database) -> None:
    """Put a document a subject and thing, and long ones that name them all, which only ``b`` holds back."""
    texts = {
        f"{subject}-{thing}.md": f"The {thing} of a {subject} is replaced once a year."
        for subject in SUBJECTS
        for thing in THINGS
    }
    for subject in SUBJECTS:
        words = " ".join(f"{subject} {thing} {subject} {thing}" for thing in THINGS)
        texts[f"{subject}-all.md"] = f"{words} " + "and many more words that say nothing at all " * 8
    db.execute(
        "select pgrag.put_document('docs', u.uri, u.text, '{public}') from unnest(%s::text[], %s::text[]) as u (uri, text)",
        (list(texts), list(texts.values())),
    )


def judge(db: Database, principals: Sequence[str] = ()) -> None:
    pairs = [(subject, thing) for subject in SUBJECTS for thing in THINGS]
    ids = [f"{subject}-{thing}" for subject, thing in pairs]
    db.execute(
        "select pgrag.import_judged('docs', %s, %s, %s, %s, %s, %s)",
        (
            ids,
            [f"replace {thing} {subject}" for subject, thing in pairs],
            json.dumps([list(principals)] * len(pairs)),
            ids,
            [f"{one}.md" for one in ids],
            [1] * len(pairs),
        ),
    )


def tuned(db: Database, *sweep: str, **given: Any) -> Tuning:
    with psycopg.connect(db.dsn, autocommit=True) as connection:
        return tune_collection(connection, "docs", sweep=sweep, **given)


@pytest.fixture
def words(db: Database) -> Database:
    """Searched by words, with parameters of BM25 that prefer long passages."""
    put_corpus(db)
    judge(db)
    db.execute("select pgrag.set_bm25('docs', 10, 0)")
    return db


@pytest.fixture
def both(hybrid: Database) -> Database:
    put_corpus(hybrid)
    judge(hybrid)
    return hybrid


def ask(db: Database, query: str, weights: str, depth: int) -> list[tuple[Any, ...]]:
    return db.rows_as(
        "public",
        "select chunk_id, document_id, lexical_score, dense_distance from pgrag.search"
        "(%s, %s, array['docs'], depth => %s, weights => %s, exact => true)"
        " order by coalesce(lexical_rank, dense_rank)",
        (query, depth, depth, weights),
    )


def candidates(db: Database, query: str, depth: int = 400) -> Candidates:
    lexical = ask(db, query, '{"lexical": 1, "dense": 0}', depth)
    dense = ask(db, query, '{"lexical": 0, "dense": 1}', depth)
    return Candidates.of(
        [(chunk, document, score) for chunk, document, score, _ in lexical],
        [(chunk, document, distance) for chunk, document, _, distance in dense],
    )


@pytest.mark.parametrize("fusion", ["rrf", "minmax"])
@pytest.mark.parametrize("weights", [(1, 1), (1, 0.3), (0.2, 1), (1, 0), (0, 1)])
@pytest.mark.parametrize(("depth", "rrf_k"), [(5, 60), (20, 10), (400, 60)])
def test_what_is_fused_here_is_what_a_search_finds(
    both: Database, fusion: str, weights: tuple[float, float], depth: int, rrf_k: int
) -> None:
    settings = SearchSettings(depth, rrf_k, *weights, fusion)
    for query in ("replace key gateway", "who changes the battery of a pump?", "printer"):
        found = candidates(both, query)
        expected = both.rows_as(
            "public",
            "select chunk_id from pgrag.search(%s, 5, array['docs'], depth => %s, rrf_k => %s, weights => %s,"
            " fusion => %s, exact => true)",
            (query, depth, rrf_k, json.dumps({"lexical": weights[0], "dense": weights[1]}), fusion),
        )

        assert [(chunk,) for chunk in found.chunk_ids[fused(found, settings)[:5]].tolist()] == expected


def test_reciprocal_ranks_are_added() -> None:
    found = Candidates.of([(7, 0, 3.0), (5, 1, 2.0)], [(5, 1, 0.1), (9, 2, 0.2)])

    # 1 / 62 + 1 / 61 for 5, 1 / 61 for 7, 1 / 62 for 9.
    assert found.chunk_ids[fused(found, SearchSettings())].tolist() == [5, 7, 9]


def test_scores_are_scaled_from_the_least_to_the_most() -> None:
    found = Candidates.of([(1, 0, 9.0), (2, 1, 8.0), (3, 2, 1.0)], [(3, 2, 0.1), (2, 1, 0.2), (1, 0, 0.9)])

    # 1: 1 + 0. 2: 7 / 8 + 7 / 8. 3: 0 + 1; ties by chunk_id.
    assert found.chunk_ids[fused(found, SearchSettings(fusion="minmax"))].tolist() == [2, 1, 3]


def test_what_is_beyond_the_depth_is_no_candidate() -> None:
    found = Candidates.of([(1, 0, 9.0), (2, 1, 8.0)], [(3, 2, 0.1), (4, 3, 0.2)])

    assert found.chunk_ids[fused(found, SearchSettings(depth=1))].tolist() == [1, 3]


def test_folds_hold_each_query_once() -> None:
    parts = folds_of(23, 5, seed=0)

    assert sorted(np.concatenate(parts)) == list(range(23))
    assert {len(part) for part in parts} == {4, 5}


def test_a_query_is_scored_by_what_the_others_choose() -> None:
    # Each option is good for one half only, and is chosen by that half: for the other it is worth nothing.
    worth = {"first": np.array([1.0, 1, 0, 0]), "second": np.array([0.0, 0, 1, 1])}
    halves = [np.array([0, 1]), np.array([2, 3])]

    scored, choices = cross_validated(
        lambda on: max(worth, key=lambda name: worth[name][on].mean()), worth.__getitem__, halves
    )

    assert (scored.tolist(), choices) == ([0, 0, 0, 0], ["second", "first"])


def test_better_parameters_are_proposed(words: Database) -> None:
    made = tuned(words, "k1", "b", grid=USUAL)

    [trial] = made.trials
    assert trial.is_better
    assert made.proposal["b"] > 0
    assert trial.tried == 2 * 2


def test_nothing_is_changed_unless_it_is_asked_for(words: Database) -> None:
    assert not tuned(words, "k1", "b", grid=USUAL).applied

    assert words.execute("select k1, b from pgrag.collection where name = 'docs'") == [(10, 0)]


def test_what_is_proposed_is_applied_on_request(words: Database) -> None:
    made = tuned(words, "k1", "b", apply=True, grid=USUAL)

    [(k1, b)] = words.execute("select k1, b from pgrag.collection where name = 'docs'")
    assert made.applied
    assert ({"k1": 10, "b": 0} | dict(made.proposal)) == {"k1": k1, "b": b}


def test_nothing_is_proposed_where_nothing_is_better(db: Database) -> None:
    put_corpus(db)
    judge(db)

    made = tuned(db, "k1", "b", grid=USUAL)

    assert (made.proposal, made.trials[0].old) == ({}, made.trials[0].new)


def test_weights_are_tuned_from_one_retrieval(both: Database) -> None:
    made = tuned(both, "weights", "rrf_k", "fusion", "depth", grid={"rrf_k": [60], "depth": [200]})

    assert [one.group for one in made.trials] == ["fusion", "depth", "together"]


def test_settings_of_the_search_are_applied(both: Database) -> None:
    both.execute("select pgrag.set_bm25('docs', 10, 0)")
    both.execute("""select pgrag.set_search_settings('docs', '{"weights": {"dense": 0}, "rrf_k": 30}')""")

    made = tuned(both, "weights", apply=True, grid={"weights": [(0.0, 1.0)]})

    assert made.applied
    kept = both.value("select search_settings from pgrag.collection where name = 'docs'")
    assert kept == {"rrf_k": 30, "weights": {"lexical": 0, "dense": 1}}


def test_a_depth_below_100_is_what_the_present_settings_are_scored_by(both: Database) -> None:
    both.execute("""select pgrag.set_search_settings('docs', '{"depth": 12}')""")
    made = tuned(both, "depth", grid={"depth": [100]})

    run = {
        one: [row[0] for row in both.rows_as("public", FOUND, (query,))]
        for one, query in both.execute("select query_id, query from pgrag.judged_query")
    }
    expected = measure(
        {one: ranking(list(dict.fromkeys(uris))) for one, uris in run.items()},
        {one: {f"{one}.md": 1} for one in run},
        ["ndcg@10"],
    )
    assert made.current["depth"] == 12
    assert made.trials[0].old == pytest.approx(expected.mean["ndcg@10"])


def test_a_search_for_10_has_10_candidates_of_each_arm_at_least(both: Database) -> None:
    both.execute("""select pgrag.set_search_settings('docs', '{"depth": 2}')""")
    made = tuned(both, "depth", grid={"depth": [10]})

    assert made.current["depth"] == 2
    assert (made.trials[0].old, made.trials[0].ties) == (made.trials[0].new, 24)


def test_another_analyzer_is_tried_in_a_copy_that_nobody_sees(db: Database) -> None:
    put_corpus(db)
    judge(db)
    db.execute("select pgrag.set_analyzer('docs', 'simple')")
    before = db.execute("select name, analyzer from pgrag.collection")

    made = tuned(db, "analyzer", grid={"analyzer": ["english"]})

    assert {one.group for one in made.trials} == {"analyzer"}
    assert db.execute("select name, analyzer from pgrag.collection") == before
    assert db.value("select count(distinct collection_id) from pgrag.chunk") == 1


def test_a_copy_finds_what_the_collection_would(db: Database) -> None:
    put_corpus(db)
    judge(db)
    copied = tuned(db, "analyzer", grid={"analyzer": ["simple"]}).trials[0]
    assert copied.tried == 2
    values = copied.chosen_by_fold
    db.execute("select pgrag.set_analyzer('docs', 'simple')")
    db.execute("select pgrag.reindex_chunks('docs')")

    again = tuned(db, "analyzer", grid={"analyzer": ["english"]}).trials[0]

    # What was the copy is the collection now, so the choice is the other way round, and as good.
    assert (again.old, len(values)) == (pytest.approx(copied.new if copied.chosen else again.old), 5)


def test_other_lengths_of_passages_are_tried_with_vectors(both: Database) -> None:
    made = tuned(both, "chunking", grid={"chunking": [32]})

    assert [one.group for one in made.trials] == ["chunking"]
    assert both.value("select count(*) from pgrag.embed_queue") == 0


def test_budgets_tell_the_smallest_that_keeps_the_answers(db: Database) -> None:
    put_corpus(db)
    judge(db)

    made = tuned(db, "budget", grid={"budget": [1, 4000]})

    assert [one.recall for one in made.budgets] == [0, pytest.approx(1, abs=0.2)]
    assert made.budget == 4000


def test_queries_are_asked_as_their_principals(db: Database) -> None:
    put_corpus(db)
    judge(db, principals=["user:nobody"])
    db.execute("select pgrag.create_principals('group:hr')")
    db.execute("select pgrag.set_readers('docs', d.uri, '{group:hr}') from pgrag.document as d")

    assert tuned(db, "k1", grid=USUAL).trials[0].old == 0


def test_phrases_are_asked_at_each_depth(both: Database) -> None:
    both.execute("update pgrag.judged_query set query = '\"' || split_part(query, ' ', 2) || '\" ' || query")

    made = tuned(both, "depth", grid={"depth": [100, 150]})

    assert made.trials[0].tried == 2


def test_what_was_tried_is_kept(words: Database) -> None:
    made = tuned(words, "k1", grid=USUAL)

    settings = words.value("select settings from pgrag.run where run_id = %s", (made.run_id,))
    assert (settings["kind"], settings["folds"], settings["trials"][0]["group"]) == ("tune", 5, "bm25")


@pytest.mark.parametrize(
    ("sweep", "given", "message"),
    [
        (["colour"], {}, '"colour" is nothing that can be swept'),
        (["k1"], {"folds": 1}, "folds must be between 2 and 24, got 1"),
        (["weights"], {}, "searched by words alone"),
        (["k1", "depth"], {"grid": {"depth": [2000]}}, "at most 1,000"),
    ],
)
def test_what_cannot_be_tuned_is_named(
    words: Database, sweep: Sequence[str], given: dict[str, Any], message: str
) -> None:
    with pytest.raises(PgragError, match=message):
        tuned(words, *sweep, **given)


def test_of_few_queries_nothing_is_claimed(db: Database) -> None:
    with pytest.raises(PgragError, match="has 0 judged queries"):
        tuned(db, "k1")


def tried(group: str, values: Sequence[float], setting: Setting) -> _Tried:
    new = float(np.mean(values))
    trial = Trial(group, 2, 0.0, new, 0.0, 1.0, 0.001, 0.002, 1, 0, 0, setting.beside(PRESENT), ())
    return _Tried(trial, setting, np.array(values))


PRESENT = Setting(1.2, 0.75, "english", 256, SearchSettings())


def test_several_groups_together_are_proposed_where_they_are_more_than_one_alone() -> None:
    one = tried("fusion", [0.5] * 40, PRESENT.with_("rrf_k", 10))
    both = tried("together", [0.6] * 40, PRESENT.with_("rrf_k", 10).with_("k1", 0.9))

    assert _proposal(PRESENT, [one, both])[0] == {"k1": 0.9, "rrf_k": 10}


def test_what_adds_nothing_that_is_more_than_chance_is_left_as_it_is() -> None:
    one = tried("fusion", [0.5] * 40, PRESENT.with_("rrf_k", 10))
    both = tried("together", [0.5] * 39 + [0.6], PRESENT.with_("rrf_k", 10).with_("k1", 0.9))

    assert _proposal(PRESENT, [one, both])[0] == {"rrf_k": 10}


def test_what_needs_a_new_index_is_proposed_alone() -> None:
    one = tried("fusion", [0.5] * 40, PRESENT.with_("rrf_k", 10))
    anew = tried("chunking", [0.6] * 40, PRESENT.with_("chunking", 128))

    proposal, reason, _ = _proposal(PRESENT, [one, anew])

    assert proposal == {"chunk_tokens": 128}
    assert "fusion alone is better as well: apply this, and tune again" in reason


def test_a_measure_of_more_than_10_documents_counts_them_all(db: Database) -> None:
    uris = [f"{number}.md" for number in range(15)]
    for uri in uris:
        db.put(uri, "the pump in the hall")
    asked = [f"q{number}" for number in range(20)]
    db.execute(
        "select pgrag.import_judged('docs', %s, %s, %s, %s, %s, %s)",
        (
            asked,
            ["pump"] * len(asked),
            json.dumps([[]] * len(asked)),
            [query for query in asked for _ in uris],
            uris * len(asked),
            [1] * len(asked) * len(uris),
        ),
    )

    (trial,) = tune_collection(
        db.admin, "docs", sweep=["k1"], grid={"k1": [1.2]}, measured_by="recall@100"
    ).trials

    assert trial.old == 15 / 15


def test_sweeping_nothing_is_refused(db: Database) -> None:
    with pytest.raises(PgragError, match="nothing is named that could be swept"):
        tuned(db)
