"""Serves the stage ``evaluate``: figures of a run by who asked, and by how much of the collection they may see.

An approximate index knows nothing of callers, so what it loses it loses for those who see little. Whoever finds less than is
promised is named here; what each query found was measured before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from pgrag.evaluate._system import percentile

__all__ = ["ANN_RECALL", "BANDS", "PROMISE", "ann_recall", "band_of", "by_band", "by_principals"]

BANDS: Mapping[str, float] = {
    "70–100 %": 0.7,
    "30–70 %": 0.3,
    "3–30 %": 0.03,
    "0.3–3 %": 0.003,
    "0–0.3 %": 0.0,
}
"""Shares of a collection's passages that an asker may see: a band's name, and the share from which it starts.

They are about 100 %, 50 %, 10 %, 1 % and 0.1 %; the upper end belongs to the next wider one."""
PROMISE = 0.99
"""The recall of dense search beside exact search that nobody may fall below."""
ANN_RECALL = "ann_recall@10"
"""Share of the 10 exactly nearest passages that dense search found, a measure of the arm ``dense``."""

_RECALL = "recall@10"
# Distances that differ by less are the same.
_EQUAL = 1e-9
# Whose time is that of a search, the first that was run.
_TIMED = ("hybrid", "dense", "lexical", "lsa")

Query = Mapping[str, Any]


def ann_recall(found: Sequence[float], nearest: Sequence[float]) -> float | None:
    """Return the share of the nearest that were found, by their distances; None where there are none.

    Args:
        found: Of dense search, nearest first.
        nearest: Of exact search for as many. Whatever is as near as the last of these is one of them.
    """
    if not nearest:
        return None
    within = sum(distance <= nearest[-1] + _EQUAL for distance in found)
    return min(within, len(nearest)) / len(nearest)


def band_of(share: float) -> str:
    """Return the name of the band that a share is in; who sees nothing is in the lowest."""
    return next(name for name, start in BANDS.items() if share >= start)


def by_band(queries: Sequence[Query]) -> list[dict[str, Any]]:
    """Return the figures of each band that somebody asked from, widest first.

    Args:
        queries: As in the run document; those without a share are left out.

    Returns:
        ``band`` (its name in ``BANDS``), ``queries``, ``metrics`` (arm to measure to mean) and ``p50_ms`` (arm to median time) of each.
    """
    groups: dict[str, list[Query]] = {}
    for one in queries:
        if one.get("share") is not None:
            groups.setdefault(band_of(one["share"]), []).append(one)
    return [
        {
            "band": band,
            "queries": len(groups[band]),
            "metrics": _means(groups[band]),
            "p50_ms": {
                arm: percentile(times, 50)
                for arm in _arms(groups[band])
                if (times := _totals(groups[band], arm))
            },
        }
        for band in BANDS
        if band in groups
    ]


def by_principals(queries: Sequence[Query], *, promise: float = PROMISE) -> list[dict[str, Any]]:
    """Return the figures of everybody who asked, by their names.

    Args:
        queries: As in the run document.
        promise: The least recall of dense search beside exact search, the mean over somebody's queries.

    Returns:
        ``principals``, ``share`` (the mean), ``queries``, ``recall@10`` by arm against the judgements, ``ann_recall@10`` where
        it was measured, ``p50_ms`` and ``p95_ms`` of the widest arm, and ``below_promise``.
    """
    groups: dict[tuple[str, ...], list[Query]] = {}
    for one in queries:
        groups.setdefault(tuple(one["principals"]), []).append(one)
    return [_person(who, groups[who], promise) for who in sorted(groups)]


def _person(who: tuple[str, ...], asked: Sequence[Query], promise: float) -> dict[str, Any]:
    means = _means(asked)
    figures: dict[str, Any] = {
        "principals": list(who),
        "queries": len(asked),
        _RECALL: {arm: values[_RECALL] for arm, values in means.items() if _RECALL in values},
    }
    shares = [one["share"] for one in asked if one.get("share") is not None]
    if shares:
        figures["share"] = fmean(shares)
    times = next((found for arm in _TIMED if (found := _totals(asked, arm))), [])
    if times:
        figures |= {"p50_ms": percentile(times, 50), "p95_ms": percentile(times, 95)}
    recall = means.get("dense", {}).get(ANN_RECALL)
    if recall is not None:
        figures[ANN_RECALL] = recall
    figures["below_promise"] = recall is not None and recall < promise
    return figures


def _arms(queries: Iterable[Query]) -> list[str]:
    return list(dict.fromkeys(arm for one in queries for arm in one["metrics"]))


def _means(queries: Sequence[Query]) -> dict[str, dict[str, float]]:
    """Return the mean of each arm and measure, over the queries that have it."""
    values: dict[str, dict[str, list[float]]] = {}
    for one in queries:
        for arm, measures in one["metrics"].items():
            for name, value in measures.items():
                values.setdefault(arm, {}).setdefault(name, []).append(value)
    return {arm: {name: fmean(found) for name, found in of.items()} for arm, of in values.items()}


def _totals(queries: Sequence[Query], arm: str) -> list[float]:
    return [
        one["stages_ms"][arm]["total"] for one in queries if "total" in one.get("stages_ms", {}).get(arm, {})
    ]
