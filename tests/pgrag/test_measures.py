"""Measures of rankings: worked by hand, and held against trec_eval's own code on random runs."""

from __future__ import annotations

import random
import shutil
from math import log2
from typing import Any

import pytest

from pgrag.errors import PgragError
from pgrag.evaluate import DEFAULT_MEASURES, MEASURES, Measured, measure, ranking

pytest.importorskip("ir_measures", reason="pip install 'pgrag-rls[evaluate]'")


def value(documents: str, grades: dict[str, int], name: str) -> float:
    """The measure of one query whose results are the letters, best first."""
    return measure({"q": ranking(documents)}, {"q": grades}, [name]).per_query["q"][name]


def test_mrr_of_ranks_1_3_none_and_2() -> None:
    run = {"a": ranking("rxy"), "b": ranking("xyr"), "c": ranking("xyz"), "d": ranking("xry")}
    measured = measure(run, {query: {"r": 1} for query in run}, ["mrr"])
    assert measured.mean["mrr"] == pytest.approx((1 + 1 / 3 + 0 + 1 / 2) / 4)
    assert round(measured.mean["mrr"], 3) == 0.458


def test_ndcg_with_exponential_gain_of_grades_3_and_1_reversed() -> None:
    expected = ((2**1 - 1) / log2(2) + (2**3 - 1) / log2(3)) / ((2**3 - 1) / log2(2) + (2**1 - 1) / log2(3))
    assert value("ba", {"a": 3, "b": 1}, "ndcg_exp@10") == pytest.approx(expected)
    assert round(expected, 3) == 0.710


def test_ndcg_with_linear_gain_of_grades_3_and_1_reversed() -> None:
    expected = (1 / log2(2) + 3 / log2(3)) / (3 / log2(2) + 1 / log2(3))
    assert value("ba", {"a": 3, "b": 1}, "ndcg@10") == pytest.approx(expected)


def test_recall_and_ndcg_of_relevant_at_ranks_2_and_5_of_three() -> None:
    grades = {"r": 1, "s": 1, "t": 1}
    assert value("xryzs", grades, "recall@5") == pytest.approx(2 / 3)
    expected = (1 / log2(3) + 1 / log2(6)) / (1 / log2(2) + 1 / log2(3) + 1 / log2(4))
    assert value("xryzs", grades, "ndcg@5") == pytest.approx(expected)
    assert round(expected, 3) == 0.478


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("recall@1", 0 / 2),
        ("recall@2", 1 / 2),
        ("recall@4", 2 / 2),
        ("hit@1", 0),
        ("hit@2", 1),
        ("mrr", 1 / 2),
        ("mrr@1", 0),
        ("mrr@2", 1 / 2),
        ("precision@2", 1 / 2),
        ("precision@4", 2 / 4),
        ("precision@10", 2 / 10),  # of k, however many were returned
        ("map", (1 / 2 + 2 / 4) / 2),
        ("map@3", (1 / 2) / 2),
        ("judged@1", 1 / 1),
        ("judged@3", 2 / 3),
        ("judged@10", 3 / 4),  # of what was returned
        ("ndcg@2", (1 / log2(3)) / (2 / log2(2) + 1 / log2(3))),
        ("ndcg", (1 / log2(3) + 2 / log2(5)) / (2 / log2(2) + 1 / log2(3))),
        ("ndcg_exp@4", (1 / log2(3) + 3 / log2(5)) / (3 / log2(2) + 1 / log2(3))),
    ],
)
def test_each_measure_by_hand(name: str, expected: float) -> None:
    # x is judged and not relevant, u isn't judged, and the best comes last.
    assert value("xrub", {"x": 0, "r": 1, "b": 2}, name) == pytest.approx(expected)


def test_every_measure_that_is_listed_is_known() -> None:
    names = [name.replace("[", "").replace("]", "") for name in MEASURES]
    measured = measure({"q": ranking("r")}, {"q": {"r": 1}}, [name.replace("@k", "@1") for name in names])
    assert set(measured.mean.values()) == {1.0}


@pytest.mark.parametrize(
    "name", ["recall", "hit", "ndcg@0", "ndcg@", "ndcg@-1", "nDCG@10", "f1", "", "mrr@1.5", "ndcg@010"]
)
def test_an_unknown_measure_is_answered_with_those_that_are_known(name: str) -> None:
    with pytest.raises(PgragError) as refused:
        measure({}, {"q": {"r": 1}}, [name])
    assert repr(name) in refused.value.message
    assert all(known in (refused.value.hint or "") for known in MEASURES)


@pytest.mark.parametrize(
    "name", ["ndcg@10", "ndcg_exp@10", "recall@10", "mrr", "mrr@10", "map", "hit@10", "judged@10"]
)
@pytest.mark.parametrize("found", [{}, {"nothing": {}}])
def test_queries_that_found_nothing_count_as_0(name: str, found: dict[str, Any]) -> None:
    run = {"good": ranking("r"), **found}
    measured = measure(run, {"good": {"r": 1}, "nothing": {"r": 1}}, [name])
    assert measured.per_query["nothing"] == {name: 0.0}
    assert measured.mean == {name: (1 + 0) / 2}


def test_queries_have_equal_weight_however_many_answers_they_have() -> None:
    qrels = {"one": {"a": 1}, "many": dict.fromkeys("abcdefgh", 1)}
    measured = measure({"one": ranking("a"), "many": ranking("a")}, qrels, ["recall@10"])
    assert measured.mean["recall@10"] == pytest.approx((1 + 1 / 8) / 2)


NONE_RELEVANT: dict[str, dict[str, int]] = {"a": {"r": 1}, "b": {"x": 0}, "c": {}}


def test_queries_without_a_relevant_document_are_left_out_and_named() -> None:
    measured = measure({"a": ranking("r"), "b": ranking("x")}, NONE_RELEVANT, ["mrr"])
    assert measured.left_out == ("b", "c")
    assert measured.per_query == {"a": {"mrr": 1.0}}
    assert measured.mean == {"mrr": 1.0}


def test_abstaining_where_nothing_answers_is_worth_1() -> None:
    measured = measure(
        {"a": ranking("r"), "b": ranking("x")}, NONE_RELEVANT, ["mrr", "recall@5"], unanswerable="abstain"
    )
    assert {query: of["mrr"] for query, of in measured.per_query.items()} == {"a": 1.0, "b": 0.0, "c": 1.0}
    assert measured.mean["recall@5"] == pytest.approx((1 + 0 + 1) / 3)
    assert measured.left_out == ()


def test_how_much_is_judged_is_measured_where_nothing_answers_too() -> None:
    measured = measure({"b": ranking("xu")}, {"b": {"x": 0}}, ["judged@2"], unanswerable="abstain")
    assert measured.per_query == {"b": {"judged@2": 1 / 2}}


def test_what_scores_less_than_the_threshold_was_not_returned() -> None:
    run = {"b": {"x": 0.4}, "d": {"x": 0.5}}
    qrels = {"b": {"x": 0}, "d": {"x": 0}}
    measured = measure(run, qrels, ["mrr"], unanswerable="abstain", threshold=0.5)
    assert measured.per_query == {"b": {"mrr": 1.0}, "d": {"mrr": 0.0}}


def test_a_threshold_costs_the_queries_that_have_an_answer() -> None:
    run = {"a": {"r": 0.4}}
    assert measure(run, {"a": {"r": 1}}, ["mrr"], threshold=0.5).mean == {"mrr": 0.0}


def test_no_query_that_counts_has_no_mean() -> None:
    assert measure({}, {"b": {"x": 0}}) == Measured({}, {}, ("b",))


def test_queries_that_nobody_judged_are_named_and_do_not_count() -> None:
    measured = measure({"a": ranking("r"), "1": ranking("r")}, {"a": {"r": 1}}, ["mrr"])
    assert (measured.unjudged, measured.mean) == (("1",), {"mrr": 1.0})


def test_a_document_that_was_found_twice_counts_at_its_first_place() -> None:
    assert ranking("xrxrs") == {"x": 0.0, "r": -1.0, "s": -2.0}
    assert value("rrrx", {"r": 1, "x": 1}, "precision@2") == 2 / 2


@pytest.mark.parametrize("name", ["mrr", "mrr@10", "ndcg@2", "judged@1"])
def test_documents_with_equal_scores_rank_by_name_the_last_first_for_each_provider(name: str) -> None:
    run = {"q": {"a": 0.5, "c": 0.5, "b": 0.5}}
    first, second = ({"q": {one: 1}} for one in ("c", "b"))
    assert measure(run, first, [name]).mean[name] == 1.0
    assert measure(run, second, [name]).mean[name] < 1.0


def test_scores_that_differ_in_their_last_bits_are_no_ties() -> None:
    run = {"q": {"a": 1.0, "z": 1.0 - 2**-50}}  # one number, to trec_eval's 32 bits
    assert measure(run, {"q": {"a": 1}}, ["mrr"]).mean == {"mrr": 1.0}


def test_grades_below_0_are_judged_and_not_relevant() -> None:
    assert value("xr", {"x": -2, "r": 1}, "judged@2") == 2 / 2
    assert value("xr", {"x": -2, "r": 1}, "ndcg@2") == pytest.approx((1 / log2(3)) / (1 / log2(2)))


def test_a_query_with_grades_below_0_alone_is_one_that_nothing_answers() -> None:
    assert measure({"q": ranking("x")}, {"q": {"x": -1}}, ["mrr"]).left_out == ("q",)


def test_names_may_be_in_any_script() -> None:
    uri = "Ordner/プロジェクト – über uns.md"
    measured = measure({"wer? 你好": {uri: 1.0}}, {"wer? 你好": {uri: 1}}, DEFAULT_MEASURES)
    assert measured.mean["ndcg@10"] == 1.0


def test_a_score_that_is_no_number_is_refused() -> None:
    with pytest.raises(PgragError, match="a score of query 'q' is NaN"):
        measure({"q": {"r": float("nan")}}, {"q": {"r": 1}}, ["mrr"])


@pytest.mark.parametrize(("name", "grade"), [("ndcg@10", 32_768), ("ndcg_exp@10", 21), ("mrr", 2**31 - 1)])
def test_a_grade_that_would_fill_memory_is_refused(name: str, grade: int) -> None:
    with pytest.raises(PgragError, match=f"is {grade}, and the highest is"):
        measure({"q": {"r": 1.0}}, {"q": {"r": grade}}, [name])


def test_without_the_library_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(PgragError, match="measuring a run needs ir-measures") as refused:
        measure({}, {})
    assert refused.value.hint == "pip install 'pgrag-rls[evaluate]'"


def random_run(seed: int) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, int]]]:
    """Sixty queries; scores of few values tie often. Each has a relevant document, and some find nothing."""
    draw = random.Random(seed)
    documents = [f"d{number}" for number in range(80)]
    qrels = {
        str(query): dict.fromkeys(draw.sample(documents, 2), 1)
        | {uri: draw.choice([0, 1, 2, 3]) for uri in draw.sample(documents, 15)}
        | {draw.choice(documents): 1}
        for query in range(60)
    }
    run = {
        query: {uri: draw.randrange(12) / 4 for uri in draw.sample(documents, draw.randrange(1, 60))}
        for query in qrels
        if draw.random() < 0.9
    }
    return run, qrels


TREC_EVAL = {
    "ndcg@10": "ndcg_cut_10",
    "ndcg": "ndcg",
    "recall@10": "recall_10",
    "recall@100": "recall_100",
    "precision@10": "P_10",
    "hit@10": "success_10",
    "mrr": "recip_rank",
    "map": "map",
    "map@10": "map_cut_10",
}


@pytest.mark.parametrize("seed", range(3))
def test_numbers_are_trec_evals(seed: int) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="pip install pytrec-eval-terrier")
    run, qrels = random_run(seed)
    reference = pytrec_eval.RelevanceEvaluator(qrels, set(TREC_EVAL.values())).evaluate(run)
    measured = measure(run, qrels, list(TREC_EVAL))
    for query in qrels:
        # trec_eval leaves out a query without results, or with -c counts it as 0.
        expected = {name: reference.get(query, {}).get(trec, 0.0) for name, trec in TREC_EVAL.items()}
        assert measured.per_query[query] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", ["mrr@5", "mrr@100"])
def test_mrr_with_a_cutoff_is_trec_evals_of_the_first_k(name: str) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="pip install pytrec-eval-terrier")
    run, qrels = random_run(3)
    k = int(name.partition("@")[2])
    first = {
        query: dict(sorted(of.items(), key=lambda one: (one[1], one[0]), reverse=True)[:k])
        for query, of in run.items()
    }
    reference = pytrec_eval.RelevanceEvaluator(qrels, {"recip_rank"}).evaluate(first)
    for query, values in measure(run, qrels, [name]).per_query.items():
        assert values[name] == pytest.approx(reference.get(query, {}).get("recip_rank", 0.0))


@pytest.mark.skipif(shutil.which("perl") is None, reason="gdeval.pl needs Perl")
def test_exponential_gain_is_gdevals() -> None:
    import ir_measures

    run, qrels = random_run(4)
    run = {
        query: ranking(sorted(of, key=lambda uri: (of[uri], uri), reverse=True)) for query, of in run.items()
    }
    reference = {
        one.query_id: one.value
        for one in ir_measures.gdeval.iter_calc([ir_measures.nDCG(dcg="exp-log2") @ 10], qrels, run)
    }
    measured = measure(run, qrels, ["ndcg_exp@10"])
    # gdeval.pl prints five decimals.
    assert {query: of["ndcg_exp@10"] for query, of in measured.per_query.items()} == pytest.approx(
        reference, abs=6e-6
    )


def test_means_are_those_of_ir_measures_where_every_query_has_results() -> None:
    import ir_measures

    run, qrels = random_run(5)
    qrels = {query: of for query, of in qrels.items() if query in run}
    measures = {
        "ndcg@10": ir_measures.nDCG @ 10,
        "recall@10": ir_measures.R @ 10,
        "map": ir_measures.AP,
        "precision@10": ir_measures.P @ 10,
        "hit@10": ir_measures.Success @ 10,
    }
    reference = ir_measures.calc_aggregate(list(measures.values()), qrels, run)
    assert measure(run, qrels, list(measures)).mean == pytest.approx(
        {name: reference[one] for name, one in measures.items()}
    )


def test_measures_do_not_depend_on_what_else_is_measured() -> None:
    run, qrels = random_run(6)
    names = [
        f"{name}@{k}"
        for k in (1, 3, 5, 10, 20)
        for name in ("ndcg", "ndcg_exp", "mrr", "precision", "judged")
    ]
    together = measure(run, qrels, names).mean
    assert together == {name: measure(run, qrels, [name]).mean[name] for name in names}
    assert together["ndcg@10"] != together["ndcg_exp@10"]
