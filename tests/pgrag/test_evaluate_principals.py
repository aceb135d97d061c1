"""Figures of a run by who asked, and by how much they may see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pgrag.evaluate._principals import ann_recall, band_of, by_band, by_principals


def query(
    who: Sequence[str] = (),
    share: float | None = 1.0,
    *,
    recall: float = 1.0,
    ann: float | None = None,
    ms: float | None = None,
) -> dict[str, Any]:
    dense: dict[str, float] = {"recall@10": recall} | ({} if ann is None else {"ann_recall@10": ann})
    return {
        "principals": list(who),
        "share": share,
        "metrics": {"dense": dense},
        "stages_ms": {} if ms is None else {"dense": {"dense": ms / 2, "total": ms}},
    }


@pytest.mark.parametrize(
    ("share", "band"),
    [
        (1.0, "70–100 %"),
        (0.73, "70–100 %"),
        (0.7, "70–100 %"),
        (0.69, "30–70 %"),
        (0.5, "30–70 %"),
        (0.1, "3–30 %"),
        (0.01, "0.3–3 %"),
        (0.001, "0–0.3 %"),
        (0.0, "0–0.3 %"),
    ],
)
def test_a_band_is_named_by_the_shares_that_are_in_it(share: float, band: str) -> None:
    assert band_of(share) == band


def test_bands_have_their_own_means_and_times_widest_first() -> None:
    rows = by_band(
        [
            query(share=0.01, recall=0.5, ms=4),
            query(share=1.0, recall=1.0, ms=1),
            query(share=0.011, recall=0.0, ms=6),
        ]
    )
    assert [(row["band"], row["queries"]) for row in rows] == [("70–100 %", 1), ("0.3–3 %", 2)]
    assert rows[1]["metrics"] == {"dense": {"recall@10": (0.5 + 0.0) / 2}}
    assert rows[1]["p50_ms"] == {"dense": (4 + 6) / 2}


def test_a_query_of_unknown_share_is_in_no_band() -> None:
    assert by_band([query(share=None)]) == []


def test_the_lowest_band_has_its_name() -> None:
    assert by_band([query(share=0.0005)])[0]["band"] == "0–0.3 %"


def test_each_asker_has_their_figures() -> None:
    rows = by_principals(
        [
            query(["user:bo"], 0.5, recall=0.0, ms=10),
            query(["user:ana"], 0.2, recall=1.0, ann=1.0, ms=4),
            query(["user:ana"], 0.4, recall=0.5, ann=0.9, ms=6),
        ]
    )
    assert [row["principals"] for row in rows] == [["user:ana"], ["user:bo"]]
    ana = rows[0]
    assert ana["queries"] == 2
    assert ana["share"] == pytest.approx((0.2 + 0.4) / 2)
    assert ana["recall@10"] == {"dense": (1.0 + 0.5) / 2}
    assert ana["ann_recall@10"] == pytest.approx((1.0 + 0.9) / 2)
    assert ana["p50_ms"] == 5
    assert ana["p95_ms"] == pytest.approx(4 + 0.95 * (6 - 4))


def test_who_finds_less_than_is_promised_is_told() -> None:
    asked = [query(["user:ana"], ann=1.0), query(["user:ana"], ann=0.9), query(["user:bo"], ann=1.0)]
    told = {tuple(row["principals"]): row["below_promise"] for row in by_principals(asked)}
    assert told == {("user:ana",): True, ("user:bo",): False}


def test_exactly_what_is_promised_is_enough() -> None:
    asked = [query(ann=1.0) for _ in range(9)] + [query(ann=0.9)]  # (9 + 0.9) / 10 = 0.99
    assert by_principals(asked)[0]["below_promise"] is False


def test_who_was_not_asked_by_vectors_is_not_below_the_promise() -> None:
    rows = by_principals([query(["user:ana"], recall=0.0)])
    assert rows[0]["below_promise"] is False
    assert "ann_recall@10" not in rows[0]


@pytest.mark.parametrize(
    ("found", "nearest", "recall"),
    [
        ([0.1, 0.2, 0.3], [0.1, 0.2, 0.3], 1.0),
        ([0.1, 0.3, 0.4], [0.1, 0.2, 0.3], 2 / 3),
        ([], [0.1, 0.2], 0.0),
        ([0.1], [0.1, 0.2], 1 / 2),
        # Another that is as near as the last one is as good.
        ([0.1, 0.2, 0.2], [0.1, 0.2], 1.0),
        ([], [], None),
    ],
)
def test_what_dense_search_found_is_held_against_the_nearest(
    found: list[float], nearest: list[float], recall: float | None
) -> None:
    assert ann_recall(found, nearest) == recall
