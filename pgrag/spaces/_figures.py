"""Serves the stage ``embed``: measures how well and how fast a space is searched, and what it costs to keep."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import psycopg
from numpy.typing import NDArray

from pgrag._acting import act_as
from pgrag._vector import to_text
from pgrag.errors import PgragError, translated
from pgrag.spaces._space import find_space

__all__ = ["DepthFigures", "SpaceFigures", "evaluate_space"]

Vectors = NDArray[np.float32]

_DEPTHS = (10, 100)
_DEEPEST = max(_DEPTHS)
_WARM_UP = 3


@dataclass(frozen=True)
class DepthFigures:
    """How a space answers at one depth.

    Attributes:
        k: The depth.
        recall: Share of the ``k`` nearest that ``pgrag.search_dense`` found, 0 to 1, the mean over the queries; one
            as near as the last of the nearest counts as one of them.
        p50_ms: Median time of a search, with the way to the server and back.
        p95_ms: The time that 95 of 100 searches stay under.
        plan: How most searches were answered.
    """

    k: int
    recall: float
    p50_ms: float
    p95_ms: float
    plan: str


@dataclass(frozen=True)
class SpaceFigures:
    """What was measured of a space.

    Attributes:
        space: Its name.
        principals: For whom it was searched; empty: for its owner, who sees everything.
        queries: How many were asked.
        vectors: Vectors in it.
        dimension: Numbers per vector.
        precision: ``vector``, ``halfvec`` or ``bit``.
        rotate: Whether codes are signs after a rotation.
        index_kind: ``hnsw``, ``ivfflat`` or ``none``.
        index_state: ``valid``, ``building``, ``invalid``, ``missing`` or ``none``.
        depths: What ``pgrag.search_dense`` does on its own, by depth.
        exact_p50_ms: Median time of the exact search for the nearest 100.
        exact_p95_ms: The time that 95 of 100 exact searches stay under.
        table_bytes: Size of the vectors, without indexes.
        index_bytes: Size of the approximate index.
        build: Figures of the last build: ``seconds``, ``vectors``, ``workers``, ``needed_bytes``, ``memory_bytes``,
            ``index_bytes`` and ``built_at``; empty where the index grew with the vectors.
        insert_ms: Time to store one vector, in a batch, with index and queue; None where it wasn't measured.
        delete_ms: Time to delete one, without the vacuum that comes later; likewise.
    """

    space: str
    principals: tuple[str, ...]
    queries: int
    vectors: int
    dimension: int
    precision: str
    rotate: bool
    index_kind: str
    index_state: str
    depths: tuple[DepthFigures, ...]
    exact_p50_ms: float
    exact_p95_ms: float
    table_bytes: int
    index_bytes: int
    build: Mapping[str, Any]
    insert_ms: float | None
    delete_ms: float | None


def evaluate_space(
    connection: psycopg.Connection[Any],
    space: str,
    *,
    queries: Vectors | None = None,
    count: int = 50,
    principals: Sequence[str] = (),
    writes: int = 200,
    seed: int = 0,
    on_query: Callable[[int, int], None] = lambda done, total: None,
) -> SpaceFigures:
    """Measure how well and how fast ``pgrag.search_dense`` answers from a space, beside exact search.

    Nothing is changed: vectors that are written to see what that costs are taken back.

    Args:
        connection: In autocommit mode, of a member of ``pgrag_owner``; to act for others, of ``pgrag_app`` too.
        space: The space's name.
        queries: Vectors to ask with, float32 (n, dimension); None is a sample of the space's own, each mixed with
            another.
        count: How many to sample.
        principals: For whom to search, such as ``user:ana``; empty: as the owner, who sees everything.
        writes: Vectors to write and delete for their cost; 0 measures none.
        seed: Of the sample; the same gives the same queries.
        on_query: Called after each with the queries asked so far and all.

    Raises:
        Refused: there is no such space, or the role may not act for others.
        PgragError: nothing is found: the space is empty, or holds nothing that they may see.
    """
    about = find_space(connection, space)
    if queries is None:
        with translated():
            rows = connection.execute(
                "select embedding::text from pgrag._sample_queries(%s, %s, %s)", (space, count, seed)
            ).fetchall()
        texts = [str(text) for (text,) in rows]
    else:
        texts = [to_text(query) for query in queries]
    calls = [(k, False) for k in _DEPTHS] + [(_DEEPEST, True)]
    times: dict[tuple[int, bool], list[float]] = {call: [] for call in calls}
    plans: dict[int, Counter[str]] = {k: Counter() for k in _DEPTHS}
    recalls: dict[int, list[float]] = {k: [] for k in _DEPTHS}
    with translated():
        for text in texts[:_WARM_UP]:
            for call in calls:
                _search(connection, principals, space, text, *call)
        for nth, text in enumerate(texts, 1):
            found = {}
            for call in calls:
                found[call], seconds = _search(connection, principals, space, text, *call)
                times[call].append(seconds * 1000)
            exact = [distance for distance, _ in found[_DEEPEST, True]]
            for k in _DEPTHS:
                rows = found[k, False]
                plans[k].update(plan for _, plan in rows[:1])
                if exact:
                    recalls[k].append(_recall([distance for distance, _ in rows], exact[:k]))
            on_query(nth, len(texts))
        if not any(recalls.values()):
            who = ", ".join(principals) or "its owner"
            raise PgragError(
                f'nothing of space "{space}" is found by {who}',
                f"pgrag space show {space} says what it holds; nothing is found before it is attached to a collection.",
            )
        cost = connection.execute(
            "select insert_ms, delete_ms from pgrag._write_cost(%s, %s)", (space, writes)
        ).fetchone()
    return SpaceFigures(
        space=space,
        principals=tuple(principals),
        queries=len(texts),
        vectors=about.vectors,
        dimension=about.dimension,
        precision=about.precision,
        rotate=about.rotate,
        index_kind=about.index_kind,
        index_state=about.index_state,
        depths=tuple(
            DepthFigures(
                k,
                float(np.mean(recalls[k])),
                *_percentiles(times[k, False]),
                plans[k].most_common(1)[0][0] if plans[k] else "",
            )
            for k in _DEPTHS
        ),
        exact_p50_ms=_percentiles(times[_DEEPEST, True])[0],
        exact_p95_ms=_percentiles(times[_DEEPEST, True])[1],
        table_bytes=about.table_bytes,
        index_bytes=about.index_bytes,
        build=dict(about.passport.get("figures", {}).get("build", {})),
        insert_ms=cost[0] if cost else None,
        delete_ms=cost[1] if cost else None,
    )


def _search(
    connection: psycopg.Connection[Any],
    principals: Sequence[str],
    space: str,
    text: str,
    k: int,
    exact: bool,
) -> tuple[list[tuple[float, str]], float]:
    """Search once, in a transaction of its own; distances and plans, nearest first, and the seconds it took."""
    with _as(connection, principals):
        started = time.perf_counter()
        rows = connection.execute(
            "select distance, plan from pgrag.search_dense(%s, %s, space => %s, exact => %s)",
            (text, k, space, exact),
        ).fetchall()
        return rows, time.perf_counter() - started


@contextmanager
def _as(connection: psycopg.Connection[Any], principals: Sequence[str]) -> Iterator[None]:
    with connection.transaction():
        if principals:
            act_as(connection, principals)
        else:
            connection.execute("set local role pgrag_owner")
        yield


def _recall(found: Sequence[float], nearest: Sequence[float]) -> float:
    """Share of the nearest that were found; whatever is as near as the last of them is one of them."""
    within = sum(distance <= nearest[-1] + 1e-9 for distance in found)
    return min(within, len(nearest)) / len(nearest)


def _percentiles(milliseconds: Sequence[float]) -> tuple[float, float]:
    if not milliseconds:
        return 0.0, 0.0
    return float(np.percentile(milliseconds, 50)), float(np.percentile(milliseconds, 95))
