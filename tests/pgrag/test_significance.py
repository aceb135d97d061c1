"""Whether two sides differ: tests, correction and intervals, by arithmetic where there is some."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

from pgrag.errors import PgragError
from pgrag.evaluate import compare
from pgrag.evaluate._significance import holm, paired, permutation_p

stats = pytest.importorskip("scipy.stats", reason="pip install 'pgrag-rls[evaluate]'")
pytest.importorskip("statsmodels", reason="pip install 'pgrag-rls[evaluate]'")


def side(values: list[float], name: str = "mrr") -> dict[str, dict[str, float]]:
    return {f"q{number}": {name: value} for number, value in enumerate(values)}


def test_means_difference_wins_ties_and_losses() -> None:
    (one,) = compare(side([0.0, 0.5, 1.0, 0.25]), side([1.0, 0.5, 0.5, 0.5]))
    assert (one.measure, one.queries) == ("mrr", 4)
    assert (one.old, one.new) == ((0 + 0.5 + 1 + 0.25) / 4, (1 + 0.5 + 0.5 + 0.5) / 4)
    assert one.difference == pytest.approx(one.new - one.old)
    assert (one.wins, one.ties, one.losses) == (2, 1, 1)


def test_sums_in_another_order_are_ties() -> None:
    pairs = paired([0.1 + 0.2 + 0.3] * 5, [0.3 + 0.2 + 0.1] * 5)
    assert (pairs.wins, pairs.ties, pairs.losses, pairs.p_permutation, pairs.p_t) == (0, 5, 0, 1.0, 1.0)


def test_the_permutation_test_counts_signs_where_few_differ() -> None:
    # Eight times the same difference: all signs alike in 2 of 2^8 cases.
    pairs = paired([0.0] * 20, [0.1] * 8 + [0.0] * 12)
    assert pairs.p_permutation == pytest.approx(2 / 2**8)


def test_one_loss_among_wins_is_counted_too() -> None:
    # With one or no sign against, or one or none for: 2 * (C(10,0) + C(10,1)) of 2^10 are as far from even.
    pairs = paired([0.0] * 9 + [1.0], [1.0] * 9 + [0.0])
    assert pairs.p_permutation == pytest.approx(2 * (comb(10, 0) + comb(10, 1)) / 2**10)


@pytest.mark.parametrize("count", [0, 1])
def test_one_difference_says_nothing(count: int) -> None:
    assert permutation_p(np.zeros(count), np.ones(count)) == 1.0


def test_the_permutation_test_agrees_with_the_t_test_where_that_holds() -> None:
    random = np.random.default_rng(1)
    old = random.uniform(size=60)
    pairs = paired(old, old + random.normal(0.05, 0.2, size=60))
    # Both are estimates; Smucker and others 2007 found them this close on such data.
    assert pairs.p_permutation == pytest.approx(pairs.p_t, abs=0.01)


def test_the_t_test_is_scipys_paired_one() -> None:
    random = np.random.default_rng(2)
    old, new = random.uniform(size=(2, 40))
    assert paired(old, new).p_t == pytest.approx(stats.ttest_rel(new, old).pvalue)


def test_where_all_differ_by_the_same_the_t_test_has_no_say() -> None:
    pairs = paired([0.0] * 5, [0.5] * 5)
    assert pairs.p_t == pairs.p_permutation == pytest.approx(2 / 2**5)


def test_holm_multiplies_the_smallest_by_all_the_next_by_one_less() -> None:
    # Sorted 0.01, 0.03, 0.04: times 3, times 2, times 1, and never less than the one before.
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.03 * 2, 0.01 * 3, 0.03 * 2])


def test_a_family_of_none_is_corrected_to_none() -> None:
    assert holm([]) == []


def test_all_measures_that_are_compared_at_once_are_one_family() -> None:
    old = {f"q{n}": {"mrr": 0.0, "map": 0.0, "hit@1": 0.0} for n in range(8)}
    new = {f"q{n}": {"mrr": 0.5, "map": 0.0, "hit@1": 0.0} for n in range(8)}
    found = {one.measure: one for one in compare(old, new)}
    assert found["mrr"].p_holm == pytest.approx(3 * 2 / 2**8)
    assert found["map"].p_holm == 1.0
    assert found["mrr"].is_significant
    assert not found["map"].is_significant


def test_the_interval_holds_the_difference_and_zero_where_nothing_is_significant() -> None:
    random = np.random.default_rng(3)
    old = random.uniform(size=50)
    pairs = paired(old, old + random.normal(0, 0.1, size=50))
    assert pairs.low < 0 < pairs.high
    assert pairs.low < pairs.difference < pairs.high


def test_the_interval_is_about_that_of_the_normal_distribution_where_that_holds() -> None:
    random = np.random.default_rng(4)
    old = random.uniform(size=400)
    new = old + random.normal(0.05, 0.2, size=400)
    pairs = paired(old, new)
    half = 1.96 * np.std(new - old, ddof=1) / np.sqrt(400)
    # 9,999 samples place an end to about a hundredth of the interval.
    assert (pairs.low, pairs.high) == pytest.approx(
        (pairs.difference - half, pairs.difference + half), abs=half * 0.1
    )


def test_the_interval_of_equal_differences_is_a_point() -> None:
    pairs = paired([0.25] * 7, [0.75] * 7)
    assert (pairs.low, pairs.high) == (0.5, 0.5)


def test_of_one_query_the_interval_knows_nothing() -> None:
    pairs = paired([0.2], [0.4])
    assert (pairs.low, pairs.high, pairs.p_permutation, pairs.p_t) == (-1.0, 1.0, 1.0, 1.0)


@pytest.mark.parametrize("count", [2, 3, 50, 500])
def test_one_difference_among_many_has_an_interval(count: int) -> None:
    pairs = paired([0.0] * count, [1.0] + [0.0] * (count - 1))
    assert 0.0 <= pairs.low <= 1 / count <= pairs.high <= 1.0


def test_the_same_sides_give_the_same_numbers() -> None:
    random = np.random.default_rng(5)
    old, new = (side(list(random.uniform(size=40))) for _ in range(2))
    assert compare(old, new) == compare(old, new)


def test_queries_and_measures_of_one_side_alone_are_left_out() -> None:
    old = {"a": {"mrr": 0.0, "map": 0.0}, "b": {"mrr": 0.0, "map": 0.0}, "c": {"mrr": 1.0, "map": 1.0}}
    new = {"d": {"mrr": 1.0}, "b": {"mrr": 1.0}, "a": {"mrr": 0.5}}
    (one,) = compare(old, new)
    assert (one.measure, one.queries, one.old, one.new) == ("mrr", 2, 0.0, (0.5 + 1) / 2)


def test_sides_without_a_common_query_are_refused() -> None:
    with pytest.raises(PgragError, match="no query is on both sides"):
        compare({"a": {"mrr": 1.0}}, {"b": {"mrr": 1.0}})


def test_sides_without_a_common_measure_are_refused() -> None:
    with pytest.raises(PgragError, match="no measure is on both sides"):
        compare({"a": {"mrr": 1.0}}, {"a": {"map": 1.0}})
