"""A run: judged queries are asked as who asks them, measured, kept, and can be repeated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from _pgrag import Database
from numpy.typing import NDArray

from pgrag.errors import PgragError, Refused
from pgrag.evaluate import (
    JudgedQuery,
    Judgement,
    Options,
    evaluate_collection,
    import_judged,
    load_run,
    options_of,
)
from pgrag.evaluate._lsa import fit_lsa
from pgrag.worker import drain

SPACE = "minilm-static-2"
# Neither times nor the ledger, where a test is about something else.
PLAIN = {"timings": False, "ledger": False}


class Model:
    """Puts the text n at n degrees, documents and queries alike."""

    name = "degrees"
    dimension = 2
    passport: dict[str, Any] = {"name": "degrees", "model": "degrees", "dimension": 2, "normalised": True}  # noqa: RUF012

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self.encode_queries([text.split()[-1] for text in texts])

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        angles = np.radians([float(text) for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)

    def count_tokens(self, text: str) -> int:
        return 1


def judge(db: Database, *queries: tuple[str, str, Sequence[str], dict[str, int]]) -> None:
    """Take in queries: id, text, who asks, and grades by uri."""
    import_judged(
        db.admin,
        "docs",
        [
            JudgedQuery(
                name, text, tuple(who), None, tuple(Judgement(uri, grade=g) for uri, g in grades.items())
            )
            for name, text, who, grades in queries
        ],
    )


def run(db: Database, **options: Any) -> dict[str, Any]:
    return evaluate_collection(db.admin, "docs", options=Options(**{**PLAIN, **options}))


def found(db: Database, document: dict[str, Any], arm: str, query_id: str) -> list[str]:
    rows = db.execute(
        "select uri from pgrag.run_hits(%s, %s) where query_id = %s order by rank",
        (document["run_id"], arm, query_id),
    )
    return [uri for (uri,) in rows]


def pumps(db: Database) -> None:
    """Three documents, of which the first says most of the pump."""
    db.put("a", "pump pump pump")
    db.put("b", "pump and a filter")
    db.put("c", "a valve and a hose and a pump")


def test_each_measure_is_that_of_the_ranking(db: Database) -> None:
    pumps(db)
    judge(db, ("q1", "pump", [], {"b": 2, "c": 1}), ("q2", "filter", [], {"b": 1}))
    document = run(db, arms=("lexical",))
    assert found(db, document, "lexical", "q1") == ["a", "b", "c"]
    of = {one["query_id"]: one["metrics"]["lexical"] for one in document["queries"]}
    ndcg = (2 / math.log2(3) + 1 / math.log2(4)) / (2 / math.log2(2) + 1 / math.log2(3))
    assert of["q1"]["ndcg@10"] == pytest.approx(ndcg)
    assert of["q1"]["mrr"] == pytest.approx(1 / 2)
    assert of["q1"]["recall@10"] == 1.0
    assert document["metrics"]["lexical"]["mrr"] == pytest.approx((1 / 2 + 1) / 2)


def test_a_query_is_asked_as_who_asks_it(db: Database) -> None:
    pumps(db)
    db.put("secret", "pump pump pump pump", readers=["user:ana"])
    db.execute("select pgrag.create_principals('user:bo')")
    judge(
        db,
        ("ana", "pump", ["user:ana"], {"secret": 1}),
        ("bo", "pump", ["user:bo"], {"secret": 1}),
        ("nobody", "pump", [], {"secret": 1}),
    )
    document = run(db)
    for arm in ("lexical", "lsa"):
        assert "secret" in found(db, document, arm, "ana")
        assert "secret" not in found(db, document, arm, "bo")
        assert "secret" not in found(db, document, arm, "nobody")
    assert [one["visible"] for one in document["queries"]] == [4, 3, 3]
    assert [one["share"] for one in document["queries"]] == [1.0, 3 / 4, 3 / 4]


def test_who_is_named_asks_the_queries_that_name_nobody(db: Database) -> None:
    db.put("secret", "pump", readers=["user:ana"])
    db.execute("select pgrag.create_principals('user:bo')")
    judge(db, ("q1", "pump", [], {"secret": 1}), ("q2", "pump", ["user:bo"], {"secret": 1}))
    document = run(db, principals=("user:ana",), arms=("lexical",))
    assert [one["principals"] for one in document["queries"]] == [["user:ana"], ["user:bo"]]
    assert [one["metrics"]["lexical"]["recall@10"] for one in document["queries"]] == [1.0, 0.0]


def test_who_may_read_nothing_finds_nothing_by_any_arm(hybrid: Database) -> None:
    hybrid.put("secret", "the pump", readers=["user:ana"])
    judge(hybrid, ("q", "the pump", [], {"secret": 1}))
    document = run(hybrid, timings=True, ledger=True)
    assert document["settings"]["arms"] == ["lexical", "dense", "hybrid", "lsa"]
    assert [piece["stage"] for piece in document["queries"][0]["evidence"]] == ["not_permitted"]
    assert [found(hybrid, document, arm, "q") for arm in document["settings"]["arms"]] == [[]] * 4


def test_the_baseline_learns_from_what_the_asker_may_read(db: Database) -> None:
    # Only the secret says that a pump and a gadget go together.
    db.put("secret", "pump gadget pump gadget", readers=["user:ana"])
    db.put("a", "gadget alone in a text of its own")
    db.put("b", "hose and valve")
    db.put("c", "pump and filter")
    judge(db, ("ana", "pump", ["user:ana"], {"a": 1}), ("nobody", "pump", [], {"a": 1}))
    document = run(db, arms=("lsa",))
    assert "secret" in found(db, document, "lsa", "ana")
    assert document["settings"]["lsa"]["learned_from"] == "what who asks may read"
    learned = fit_lsa(db.rows_as("public", "select uri, content from pgrag.document_texts('docs')"))
    assert found(db, document, "lsa", "nobody") == [uri for uri, _ in learned.rank("pump")]
    assert "secret" not in learned.uris


def test_the_baseline_learns_from_what_all_may_read_where_that_is_said(db: Database) -> None:
    db.put("secret", "gadget", readers=["user:ana"])
    db.put("a", "pump and hose")
    db.put("b", "valve")
    judge(db, ("ana", "gadget", ["user:ana"], {"secret": 1}))
    document = run(db, arms=("lsa",), lsa_learns_from="public")
    # Nothing public says gadget, so the word is unknown even to who may read it.
    assert found(db, document, "lsa", "ana") == []
    assert document["settings"]["lsa"]["learned_from"] == "what all may read"


def test_documents_are_ranked_by_their_best_passage(db: Database) -> None:
    db.put("crowd", "\n\n".join(f"# Part {n}\n\npump pump pump" for n in range(12)))
    db.put("b", "pump and a filter and a hose")
    judge(db, ("q", "pump", [], {"b": 1}))
    document = run(db, arms=("lexical",))
    assert found(db, document, "lexical", "q") == ["crowd", "b"]


def test_a_query_that_nothing_answers_is_left_out_and_named(db: Database) -> None:
    pumps(db)
    judge(db, ("q1", "pump", [], {"a": 1}), ("q2", "pump", [], {}))
    document = run(db, arms=("lexical",))
    assert document["left_out"] == ["q2"]
    assert document["metrics"]["lexical"]["mrr"] == 1.0


def test_or_it_counts_where_that_is_said(db: Database) -> None:
    pumps(db)
    judge(db, ("q1", "pump", [], {"a": 1}), ("q2", "pump", [], {}), ("q3", "zebra", [], {}))
    document = run(db, arms=("lexical",), unanswerable="abstain")
    # Something was found for q2, and nothing for q3, as should be.
    assert document["metrics"]["lexical"]["mrr"] == pytest.approx((1 + 0 + 1) / 3)


def test_without_a_space_vectors_are_left_out_and_it_says_so(db: Database) -> None:
    pumps(db)
    judge(db, ("q", "pump", [], {"a": 1}))
    document = run(db)
    assert document["settings"]["arms"] == ["lexical", "lsa"]
    assert document["settings"]["notes"] == [
        'dense and hybrid were left out: no space answers collection "docs"'
    ]


def test_an_arm_that_is_asked_for_and_cannot_be_is_refused(db: Database) -> None:
    pumps(db)
    judge(db, ("q", "pump", [], {"a": 1}))
    with pytest.raises(PgragError, match="dense can't be asked: no space answers"):
        run(db, arms=("dense",))
    assert db.value("select count(*) from pgrag.run") == 0


def test_a_collection_too_large_for_memory_leaves_the_baseline_out_and_it_says_so(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    pumps(db)
    judge(db, ("q", "pump", [], {"a": 1}))
    monkeypatch.setattr("pgrag.evaluate._run._LSA_DOCUMENTS", 2)
    document = run(db)
    assert document["settings"]["arms"] == ["lexical"]
    assert any("there are 3 documents, more than 2" in note for note in document["settings"]["notes"])
    with pytest.raises(PgragError, match="more than 2"):
        run(db, arms=("lsa",))


def test_a_hybrid_search_goes_by_the_settings_of_its_collection(hybrid: Database) -> None:
    pumps(hybrid)
    judge(hybrid, ("q", "the pump", [], {"a": 1}))
    hybrid.execute("""select pgrag.set_search_settings('docs', '{"weights": {"lexical": 0, "dense": 1}}')""")
    document = run(hybrid)
    assert document["settings"]["collection"]["search_settings"]["weights"] == {"lexical": 0, "dense": 1}
    scores = {
        arm: hybrid.execute("select uri, score from pgrag.run_hits(%s, %s)", (document["run_id"], arm))
        for arm in ("dense", "hybrid")
    }
    assert scores["hybrid"] == scores["dense"] != []


@pytest.mark.parametrize("depth", [1, 2, 5, 20])
def test_the_first_places_are_those_of_a_search_by_the_depth_of_the_collection(
    hybrid: Database, depth: int
) -> None:
    words = ["pump", "filter", "valve", "hose", "seal", "motor", "tank", "oil", "water", "engine"]
    for number in range(30):
        hybrid.put(
            f"{number:02}", " ".join(words[(number * step + step**2) % len(words)] for step in range(1, 7))
        )
    queries = ["the pump and its motor", "water engine", "oil in the tank", "a seal of the hose", "liquid"]
    judge(hybrid, *((text, text, [], {"01": 1}) for text in queries))
    hybrid.execute("select pgrag.set_search_settings('docs', %s)", (f'{{"depth": {depth}}}',))
    document = run(hybrid, k=4)
    for text in queries:
        searched = hybrid.rows_as("public", "select uri from pgrag.search(%s, 4, array['docs'])", (text,))
        assert len(searched) == 4
        assert found(hybrid, document, "hybrid", text)[:4] == [uri for (uri,) in searched]


def test_an_arm_that_is_none_is_refused(db: Database) -> None:
    judge(db, ("q", "pump", [], {"a": 1}))
    with pytest.raises(PgragError, match='"sparse" is no arm'):
        run(db, arms=("sparse",))


def test_without_judged_queries_it_says_how_to_get_them(db: Database) -> None:
    with pytest.raises(PgragError, match="has no judged queries") as refused:
        run(db)
    assert "pgrag eval import --collection docs" in (refused.value.hint or "")


def test_a_query_that_is_not_judged_is_refused(db: Database) -> None:
    judge(db, ("q", "pump", [], {"a": 1}))
    with pytest.raises(PgragError, match='no judged query "other"'):
        run(db, queries=("q", "other"))


def test_only_the_queries_that_are_named_are_asked(db: Database) -> None:
    pumps(db)
    judge(db, ("q1", "pump", [], {"a": 1}), ("q2", "filter", [], {"b": 1}))
    assert [one["query_id"] for one in run(db, queries=("q2",))["queries"]] == ["q2"]


def test_a_model_embeds_the_queries_of_its_space(db: Database) -> None:
    for number in range(4):
        db.put(f"{10 * number}", f"text {10 * number}")
    db.execute("select pgrag.create_space('degrees', 'degrees', 2)")
    db.execute("select pgrag.attach_space('docs', 'degrees')")
    drain(db.admin, Model(), space="degrees")
    db.execute("select pgrag.activate_space('docs', 'degrees')")
    judge(db, ("q", "19", [], {"20": 1}))
    document = evaluate_collection(
        db.admin, "docs", options=Options(ledger=False, arms=("dense",)), encoder=Model()
    )
    assert found(db, document, "dense", "q") == ["20", "10", "30", "0"]
    assert document["settings"]["queries_embedded_by"] == "model degrees"
    assert document["metrics"]["dense"]["ann_recall@10"] == 1.0
    stages = document["queries"][0]["stages_ms"]["dense"]
    assert stages["total"] >= stages["embed"] > 0


def test_another_models_encoder_is_refused(hybrid: Database) -> None:
    hybrid.put("a", "pump")
    judge(hybrid, ("q", "pump", [], {"a": 1}))
    with pytest.raises(Refused, match="holds vectors of"):
        evaluate_collection(hybrid.admin, "docs", encoder=Model())
    assert hybrid.value("select count(*) from pgrag.run") == 0


def test_stages_are_timed_and_summed_up(hybrid: Database) -> None:
    pumps(hybrid)
    judge(hybrid, *((f"q{n}", "the pump", [], {"a": 1}) for n in range(3)))
    document = run(hybrid, timings=True)
    assert document["latency_ms"]["hybrid"].keys() == {
        "embed", "lexical", "dense", "fuse", "text", "pack", "total",
    }  # fmt: skip
    assert document["latency_ms"]["lexical"].keys() == {"lexical", "fuse", "text", "total"}
    totals = [one["stages_ms"]["dense"]["total"] for one in document["queries"]]
    assert document["latency_ms"]["dense"]["total"]["p50"] == pytest.approx(sorted(totals)[1])
    assert document["latency_ms"]["lsa"].keys() == {"total"}


def test_the_ledger_has_each_piece_of_evidence(db: Database) -> None:
    pumps(db)
    judge(db, ("q1", "pump", [], {"a": 1, "gone": 1}), ("q2", "filter", [], {"b": 2, "c": 0}))
    document = run(db, ledger=True)
    assert {stage: n for stage, n in document["ledger"].items() if n} == {"kept": 2, "not_ingested": 1}
    assert sum(len(one["evidence"]) for one in document["queries"]) == 3
    assert document["counterfactuals"] == []


def test_what_is_kept_is_what_is_returned(hybrid: Database) -> None:
    pumps(hybrid)
    judge(hybrid, ("q", "the pump", [], {"a": 1}))
    document = run(hybrid, ledger=True, timings=True)
    assert load_run(hybrid.admin, document["run_id"]) == document
    assert document["finished_at"] is not None


@pytest.mark.parametrize("stage", ["asking", "lsa", "tracing"])
def test_an_interrupted_run_leaves_nothing(db: Database, stage: str) -> None:
    pumps(db)
    judge(db, ("q", "pump", [], {"a": 1}))

    def interrupt(now: str, done: int, total: int) -> None:
        if now == stage:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate_collection(db.admin, "docs", on_progress=interrupt)
    assert db.value("select count(*) from pgrag.run") == 0


def test_settings_say_what_is_needed_to_repeat_it(hybrid: Database) -> None:
    pumps(hybrid)
    judge(hybrid, ("q", "the pump", [], {"a": 1}))
    settings = run(hybrid)["settings"]
    assert settings["collection"]["name"] == "docs"
    assert settings["collection"]["k1"] == 1.2
    assert (settings["space"], settings["passport"]["name"]) == (SPACE, SPACE)
    assert settings["queries_embedded_by"] == f"token table {SPACE}"
    assert set(settings["versions"]) == {"pgrag", "postgresql", "pgvector"}
    assert {"ir-measures", "scikit-learn"} <= settings["libraries"].keys()
    assert (settings["judged"]["queries"], settings["judged"]["judgements"]) == (1, 1)
    assert (settings["documents"], settings["passages"]) == (3, 3)


def test_a_run_can_be_repeated_by_its_settings(db: Database) -> None:
    pumps(db)
    judge(db, ("q1", "pump", [], {"b": 1}), ("q2", "hose", [], {"c": 1}))
    options = Options(arms=("lexical",), queries=("q1",), measures=("ndcg@3",), documents=2, ledger=False)
    first = evaluate_collection(db.admin, "docs", options=options)
    assert options_of(first) == options
    again = evaluate_collection(db.admin, "docs", options=options_of(first))
    assert again["metrics"] == first["metrics"]
    assert again["settings"] == first["settings"]


def test_a_gate_is_no_run_that_can_be_repeated(db: Database) -> None:
    run_id = db.value("select pgrag.record_run('docs', 'gate', '{\"kind\": \"gate\"}', '{\"a\": 1}')")
    with pytest.raises(PgragError, match=f"run {run_id} can't be repeated"):
        options_of(load_run(db.admin, run_id))


def test_a_role_that_may_not_act_for_others_is_refused_and_nothing_is_kept(db: Database) -> None:
    pumps(db)
    judge(db, ("q", "pump", [], {"a": 1}))
    with db.connect("pgrag_test_writer") as writer, pytest.raises(PgragError, match="may not act for others"):
        evaluate_collection(writer, "docs")
    assert db.value("select count(*) from pgrag.run") == 0


def test_update_lag_is_measured_where_it_is_asked_for(hybrid: Database) -> None:
    pumps(hybrid)
    judge(hybrid, ("q", "the pump", [], {"a": 1}))
    assert "update_lag_ms" not in run(hybrid)["system"]
    lag = run(hybrid, system=True)["system"]["update_lag_ms"]
    assert {arm: set(figures) for arm, figures in lag.items()} == {
        "lexical": {"p50", "p95", "p99"},
        "dense": {"p50", "p95", "p99"},
    }
    assert hybrid.value("select count(*) from pgrag.collection") == 1


def test_a_space_that_is_not_there_is_refused(db: Database) -> None:
    db.put("a", "a pump")
    judge(db, ("1", "pump", (), {"a": 1}))
    with pytest.raises(Refused, match="nowhere"):
        run(db, space="nowhere")


def test_a_number_that_no_run_can_have_is_refused_as_one_that_is_not_there(db: Database) -> None:
    for number in (-1, 2**63, 10**30):
        with pytest.raises(PgragError, match=f"run {number} does not exist"):
            load_run(db.admin, number)


@pytest.mark.parametrize(
    ("grade", "measures", "message"),
    [(40_000, ("mrr",), "the highest is 32,767"), (1, ("cleverness",), "'cleverness' is no measure")],
)
def test_what_cannot_be_measured_is_refused_before_anything_is_asked(
    db: Database, grade: int, measures: tuple[str, ...], message: str
) -> None:
    db.put("a", "a pump")
    judge(db, ("1", "pump", (), {"a": grade}))
    asked: list[str] = []
    with pytest.raises(PgragError, match=message):
        evaluate_collection(
            db.admin,
            "docs",
            options=Options(**PLAIN, measures=measures),
            on_progress=lambda stage, done, total: asked.append(stage),
        )
    assert asked == []
