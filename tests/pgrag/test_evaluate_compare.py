"""Two runs beside each other: what may be compared, what comes out, and what was set otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from pgrag.errors import PgragError
from pgrag.evaluate import compare_runs, setting_differences


def run(
    number: int, values: dict[str, dict[str, float]], *, judged: str = "same", **settings: Any
) -> dict[str, Any]:
    """A run document; values: query to arm to nDCG@10."""
    return {
        "run_id": number,
        "name": f"run {number}",
        "settings": {"judged": {"sha256": judged}} | settings,
        "queries": [
            {"query_id": query, "metrics": {arm: {"ndcg@10": value} for arm, value in arms.items()}}
            for query, arms in values.items()
        ],
    }


def of_one_arm(*values: float) -> dict[str, dict[str, float]]:
    return {f"q{n}": {"lexical": value} for n, value in enumerate(values)}


def test_means_differences_and_counts_are_those_of_the_queries() -> None:
    comparison = compare_runs(run(1, of_one_arm(0.2, 0.4, 0.6, 0.5)), run(2, of_one_arm(0.4, 0.6, 0.5, 0.5)))
    (one,) = comparison.arms
    assert (one.arm, one.figures.measure) == ("lexical", "ndcg@10")
    assert one.figures.old == pytest.approx((0.2 + 0.4 + 0.6 + 0.5) / 4)
    assert one.figures.difference == pytest.approx((0.2 + 0.2 - 0.1 + 0.0) / 4)
    assert (one.figures.wins, one.figures.ties, one.figures.losses) == (2, 1, 1)
    assert (comparison.old, comparison.new, comparison.queries) == ("run 1", "run 2", 4)


def test_the_correction_counts_all_arms() -> None:
    values = {f"q{n}": {"lexical": 0.1, "dense": 0.1} for n in range(8)}
    better = {f"q{n}": {"lexical": 0.2 + n / 100, "dense": 0.2 + n / 100} for n in range(8)}
    comparison = compare_runs(run(1, values), run(2, better))
    # Eight differences of one sign: both signs of all are as likely, 2 of 2^8; twice that for two arms.
    assert [one.figures.p_permutation for one in comparison.arms] == pytest.approx([2 / 2**8] * 2)
    assert [one.figures.p_holm for one in comparison.arms] == pytest.approx([2 * 2 / 2**8] * 2)


def test_an_arm_that_only_one_has_is_left_out() -> None:
    old = run(1, {"q": {"lexical": 0.1, "dense": 0.2}})
    comparison = compare_runs(old, run(2, of_one_arm(0.1) | {"q": {"lexical": 0.3}}), shared=True)
    assert [one.arm for one in comparison.arms] == ["lexical"]


def test_runs_of_different_queries_are_refused() -> None:
    with pytest.raises(PgragError, match="run 1 and run 2 are of different judged sets") as refused:
        compare_runs(run(1, of_one_arm(0.1, 0.2)), run(2, of_one_arm(0.1)))
    assert "--shared" in (refused.value.hint or "")


def test_unless_what_both_have_is_asked_for() -> None:
    comparison = compare_runs(run(1, of_one_arm(0.1, 0.2)), run(2, of_one_arm(0.1)), shared=True)
    assert (comparison.queries, comparison.only_old, comparison.only_new) == (1, ("q1",), ())


def test_the_same_queries_judged_otherwise_are_refused() -> None:
    sides = run(1, of_one_arm(0.1)), run(2, of_one_arm(0.1), judged="other")
    with pytest.raises(PgragError, match="the same queries, judged otherwise"):
        compare_runs(*sides)
    assert compare_runs(*sides, shared=True).judged_otherwise


def test_runs_without_a_query_in_common_are_refused_even_then() -> None:
    with pytest.raises(PgragError, match="no query in common"):
        compare_runs(run(1, {"a": {"lexical": 1.0}}), run(2, {"b": {"lexical": 1.0}}), shared=True)


def test_a_query_that_nothing_answers_is_not_compared() -> None:
    values = of_one_arm(0.1, 0.2)
    left, right = run(1, values), run(2, values)
    for side in (left, right):
        side["queries"].append({"query_id": "unanswerable", "metrics": {"dense": {"ann_recall@10": 1.0}}})
    comparison = compare_runs(left, right)
    assert (comparison.queries, [one.arm for one in comparison.arms]) == (2, ["lexical"])


def test_what_is_no_run_is_refused() -> None:
    with pytest.raises(PgragError, match="is no run: it has no queries"):
        compare_runs({"metrics": {}}, run(2, of_one_arm(0.1)))


def test_what_was_set_otherwise_is_said_by_its_path() -> None:
    changes = setting_differences(
        {"collection": {"k1": 1.2, "b": 0.75}, "space": "a", "again": {"arms": []}},
        {"collection": {"k1": 1.5, "b": 0.75}, "model": "m", "again": {"arms": ["lexical"]}},
    )
    assert [(one.name, one.old, one.new) for one in changes] == [
        ("collection.k1", 1.2, 1.5),
        ("model", None, "m"),
        ("space", "a", None),
    ]


def test_what_is_empty_is_not_set() -> None:
    assert setting_differences({"search_settings": {}}, {}) == []


def test_a_comparison_says_what_was_set_otherwise() -> None:
    sides = run(1, of_one_arm(0.1), digest="1"), run(2, of_one_arm(0.1), digest="2")
    assert [one.name for one in compare_runs(*sides).settings] == ["digest"]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"queries": None}, "it has no queries"),
        ({"queries": [1]}, "its query 1 has no query_id or no metrics"),
        ({"queries": [{"query_id": "q", "metrics": None}]}, "its query 1 has no query_id or no metrics"),
        ({"queries": [{"query_id": ["q"], "metrics": {}}]}, "its query 1 has no query_id or no metrics"),
        ({"queries": [{"query_id": "q", "metrics": {"lexical": None}}]}, 'its query "q" is no number'),
        (
            {"queries": [{"query_id": "q", "metrics": {"lexical": {"mrr": "1"}}}]},
            'its query "q" is no number',
        ),
        (
            {"queries": [{"query_id": "q", "metrics": {"lexical": {"mrr": float("nan")}}}]},
            'its query "q" is no number',
        ),
        (
            {"queries": [{"query_id": "q", "metrics": {"lexical": {"mrr": 10**400}}}]},
            'its query "q" is no number',
        ),
        ({"queries": [{"query_id": "q", "metrics": {}}] * 2}, 'it has query "q" twice'),
        ({"settings": [1]}, "its settings are none"),
        ({"settings": {"judged": "x"}}, "judged of its settings is no object"),
        ({"settings": {"arms": [["lexical"]]}}, "arms of its settings is no list of names"),
        (
            {"settings": {"collection": {"search_settings": "x"}}},
            "search_settings of its settings is no object",
        ),
    ],
)
def test_a_document_that_is_no_run_is_told_from_one(wrong: dict[str, Any], why: str) -> None:
    whole = run(1, of_one_arm(0.1, 0.2))
    for sides in ((whole | wrong, whole), (whole, whole | wrong)):
        with pytest.raises(PgragError, match=f"run 1 is no run: .*{why}"):
            compare_runs(*sides)


def test_a_document_without_settings_is_compared() -> None:
    whole = run(1, of_one_arm(0.1, 0.2))
    assert compare_runs(whole | {"settings": None}, whole).queries == 2


def test_how_a_search_was_asked_is_said_by_the_names_of_its_options() -> None:
    def asked(k: int, budget: int | None, **search: int) -> dict[str, Any]:
        return {"again": {"k": k, "budget_tokens": budget}, "collection": {"search_settings": search}}

    changes = setting_differences(asked(10, 2000), asked(5, None, depth=20))
    assert [(one.name, one.old, one.new) for one in changes] == [
        ("budget", 2000, None),
        ("depth", 100, 20),
        ("k", 10, 5),
    ]


def test_what_belongs_to_an_arm_that_one_lacks_is_no_setting_of_the_other() -> None:
    both = {
        "arms": ["lexical", "dense", "lsa"],
        "lsa": {"dimensions": 100},
        "libraries": {"numpy": "2", "scikit-learn": "1"},
        "passport": {"model": "m"},
        "timings": {"taken": "so"},
    }
    alone = {"arms": ["lexical"], "libraries": {"numpy": "2"}}
    assert [one.name for one in setting_differences(both, alone)] == ["arms"]


def test_judged_answers_are_not_held_against_a_run() -> None:
    with pytest.raises(PgragError, match="run 2 is of judged answers, and the other is not"):
        compare_runs(run(1, of_one_arm(0.1)), run(2, of_one_arm(0.1), kind="answers"))
