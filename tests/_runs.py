"""Makes a run's document as ``pgrag eval run --full`` writes it, of any size, the same for the same seed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from statistics import fmean
from typing import Any

__all__ = ["ARMS", "STAGES", "run_document"]

ARMS = {"lexical": 0.62, "dense": 0.66, "hybrid": 0.74, "lsa": 0.48}
STAGES = {
    "not_ingested": 0.02,
    "not_permitted": 0.03,
    "split": 0.04,
    "representation": 0.09,
    "ann": 0.03,
    "fusion": 0.04,
    "pack": 0.05,
    "kept": 0.70,
}
_BANDS = {"70–100 %": 1.0, "30–70 %": 0.5, "3–30 %": 0.1, "0.3–3 %": 0.01, "0–0.3 %": 0.001}
_PEOPLE = {
    ("user:ana",): 0.01,
    ("user:bo", "group:eng"): 0.1,
    ("group:hr",): 0.001,
    ("user:chi",): 0.5,
    (): 1.0,
}
_ASKED = [
    "how do I rotate a signing key",
    "error E-4021 after an upgrade",
    "who approves travel above the limit",
    "retention of audit logs in the EU region",
    "restore a single table from a backup",
    "difference between a viewer and a reader role",
    "why does the worker stop after a lease expires",
]
_PASSAGES = 48_211


def run_document(
    queries: int = 40,
    *,
    seed: int = 1,
    better: float = 0.0,
    run_id: int = 7,
    measures: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Return a run of so many judged queries; ``better`` moves every score, ``measures`` keeps these alone."""
    rng = random.Random(seed)
    made = [_query(rng, place, better) for place in range(queries)]
    for query in made if measures is not None else ():
        for arm, values in query["metrics"].items():
            query["metrics"][arm] = {name: values[name] for name in measures or ()}
    ledger = Counter(piece["stage"] for query in made for piece in query["evidence"])
    return {
        "run_id": run_id,
        "name": f"nightly {run_id}",
        "collection": "handbook",
        "started_at": "2026-11-30T06:01:12+00:00",
        "finished_at": "2026-11-30T06:03:40+00:00",
        "settings": {
            "kind": "run",
            "again": {"k": 10, "arms": [], "seed": 0},
            "notes": ["The baseline learned from what each asker may read."],
            "passages": _PASSAGES,
            "k": 10,
            "depth": 200 if better < 0 else 100,
            "rrf_k": 60,
            "fusion": "rrf",
            "weights": {"lexical": 1, "dense": 1},
            "arms": list(ARMS),
            "collection": {"analyzer": "english", "k1": 1.2, "b": 0.75, "chunk_tokens": 256},
            "space": {
                "name": "minilm",
                "model": "all-MiniLM-L6-v2",
                "dimension": 384,
                "precision": "halfvec",
            },
            "versions": {"pgrag": "0.5.0", "postgresql": "18.1", "pgvector": "0.8.1"},
            "machine": {"cpu": "2 cores", "memory_bytes": 8_589_934_592},
        },
        "metrics": {arm: _means(made, arm) for arm in ARMS},
        "intervals": {
            arm: {
                name: [max(0, value - 0.03), min(1, value + 0.03)]
                for name, value in _means(made, arm).items()
            }
            for arm in ARMS
        },
        "queries": made,
        "ledger": dict(ledger),
        "counterfactuals": [
            {"stage": "representation", "setting": "depth", "value": 200, "passes": 4, "keeps": 3, "of": 9},
            {"stage": "ann", "setting": "index_effort", "value": 4, "passes": 8, "keeps": 7, "of": 9},
            {
                "stage": "fusion",
                "setting": "weights",
                "value": '{"dense": 2}',
                "passes": 3,
                "keeps": 2,
                "of": 5,
            },
            {"stage": "pack", "setting": "budget", "value": 4000, "passes": 4, "keeps": 4, "of": 6},
        ],
        "latency_ms": {arm: _latency(rng, arm) for arm in ARMS if arm != "lsa"},
        "bands": [_band(made, name, share) for name, share in _BANDS.items()],
        "principals": [_person(made, list(who), share) for who, share in _PEOPLE.items()],
        "system": {
            "update_lag_ms": {"lexical": {"p50": 0.0, "p95": 0.0}, "dense": {"p50": 412.0, "p95": 988.0}},
            "builds": {"minilm": {"seconds": 41.2, "workers": 2}},
            "cache_hits": {"heap": 0.998, "index": 0.991},
        },
    }


def _query(rng: random.Random, place: int, better: float) -> dict[str, Any]:
    who, share = rng.choice(list(_PEOPLE.items()))
    hard = rng.gauss(0, 0.22)
    metrics = {arm: _measures(rng, mean + hard + better) for arm, mean in ARMS.items()}
    evidence = []
    for number in range(rng.randint(1, 4)):
        stage = rng.choices(list(STAGES), list(STAGES.values()))[0]
        start = rng.randrange(0, 9000)
        evidence.append(
            {
                "uri": f"handbook/{rng.choice(['security', 'travel', 'ops'])}/{place:04}-{number}.md",
                "char_start": start,
                "char_end": start + rng.randrange(60, 400),
                "grade": rng.randint(1, 3),
                "stage": stage,
                "rank": rng.randint(1, 10) if stage == "kept" else None,
                "detail": {"lexical_rank": rng.randint(1, 300), "dense_rank": rng.randint(1, 300)},
            }
        )
    return {
        "query_id": f"q{place:04}",
        "query": f"{rng.choice(_ASKED)} ({place})",
        "principals": list(who),
        "visible": round(share * _PASSAGES),
        "share": share,
        "metrics": metrics,
        "stages_ms": {
            arm: {"lexical": rng.uniform(0.5, 4), "dense": rng.uniform(1, 9), "total": rng.uniform(4, 14)}
            for arm in ARMS
        },
        "evidence": evidence,
    }


def _measures(rng: random.Random, mean: float) -> dict[str, float]:
    def near(value: float) -> float:
        return round(min(1.0, max(0.0, value + rng.gauss(0, 0.15))), 4)

    return {
        "ndcg@10": near(mean),
        "recall@10": near(mean + 0.08),
        "recall@100": near(mean + 0.2),
        "mrr": near(mean),
        "map": near(mean - 0.05),
        "precision@10": near(mean - 0.5),
        "hit@10": float(rng.random() < mean + 0.2),
        "judged@10": near(0.6),
    }


def _latency(rng: random.Random, arm: str) -> dict[str, dict[str, float]]:
    parts = {"lexical": ["lexical"], "dense": ["embed", "dense"]}.get(
        arm, ["embed", "lexical", "dense", "fuse"]
    )
    made = {}
    for stage in [*parts, "total"]:
        middle = rng.uniform(0.3, 1.2) if stage in ("embed", "fuse") else rng.uniform(2, 6)
        made[stage] = {"p50": middle, "p95": middle * rng.uniform(2, 4), "p99": middle * rng.uniform(5, 12)}
    return made


def _mean(queries: list[dict[str, Any]], arm: str, measure: str) -> float:
    return fmean(query["metrics"][arm][measure] for query in queries)


def _means(queries: list[dict[str, Any]], arm: str) -> dict[str, float]:
    return {name: _mean(queries, arm, name) for name in queries[0]["metrics"][arm]}


def _band(queries: list[dict[str, Any]], name: str, share: float) -> dict[str, Any]:
    among = [query for query in queries if query["share"] == share]
    return {
        "band": name,
        "queries": len(among),
        "metrics": {arm: {"ndcg@10": _mean(among, arm, "ndcg@10")} for arm in ARMS} if among else {},
        "p50_ms": dict.fromkeys(ARMS, 3.2) if among else {},
    }


def _person(queries: list[dict[str, Any]], who: list[str], share: float) -> dict[str, Any]:
    among = [query for query in queries if query["principals"] == who]
    recall = {arm: _mean(among, arm, "recall@10") for arm in ARMS} if among else {}
    return {
        "principals": who,
        "share": share,
        "queries": len(among),
        "recall@10": recall,
        "ann_recall@10": 0.962 if who == ["group:hr"] else 0.998,
        "p50_ms": 4.1,
        "p95_ms": 11.9,
        "below_promise": who == ["group:hr"],
    }
