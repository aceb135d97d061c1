"""Serves the stage ``evaluate``: figures of the system, not of its answers: latency by stage, update lag, builds, cache.

The server takes the times, in SQL; what a model takes is measured here.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import psycopg

from pgrag._vector import to_text
from pgrag.errors import translated
from pgrag.spaces import find_space

if TYPE_CHECKING:
    from pgrag.embed import Encoder

__all__ = [
    "SEARCH_STAGES",
    "builds",
    "cache_counts",
    "cache_hits",
    "latency",
    "machine",
    "percentile",
    "update_lag",
]

SEARCH_STAGES = ("embed", "lexical", "dense", "fuse", "text", "pack", "total")
"""Stages of a search that are timed, in the order in which they come; ``total`` is without ``pack``."""

_PERCENTILES = (50, 95, 99)
_PROBES = 20
# With words that any model knows, and one that no other text has.
_PROBE = "A note about the pump in hall {number}: its filter was changed, see record probe{number}x."


def percentile(milliseconds: Sequence[float], which: int) -> float:
    """Return a percentile, between the two nearest values in proportion."""
    return float(np.percentile(milliseconds, which))


def latency(queries: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, dict[str, float]]]:
    """Return arm to stage to ``p50``, ``p95`` and ``p99`` in milliseconds.

    Args:
        queries: As in the run document.
    """
    times: dict[str, dict[str, list[float]]] = {}
    for one in queries:
        for arm, stages in one["stages_ms"].items():
            for stage, ms in stages.items():
                times.setdefault(arm, {}).setdefault(stage, []).append(ms)
    return {
        arm: {
            stage: {f"p{which}": percentile(stages[stage], which) for which in _PERCENTILES}
            for stage in SEARCH_STAGES
            if stage in stages
        }
        for arm, stages in times.items()
    }


def update_lag(
    connection: psycopg.Connection[Any],
    *,
    space: str | None = None,
    encoder: Encoder | None = None,
    probes: int = _PROBES,
) -> dict[str, dict[str, float]]:
    """Measure how long a new document waits until searches find it, by words and by vectors; nothing is left behind.

    Documents are put into a collection that is made for them, searched for, and taken back with it. For a space of a model
    the time in which it encodes one is part of the lag; how long a worker sleeps before it looks at the queue is not. Other
    writers wait while vectors are measured, which is less than a second.

    Args:
        connection: In autocommit mode, of a member of ``pgrag_owner``.
        space: By vectors of this one as well; None: by words alone.
        encoder: Makes the vectors of a space of a model; without it such a space isn't measured.
        probes: How many documents.

    Returns:
        ``lexical`` and ``dense`` to ``p50``, ``p95`` and ``p99`` in milliseconds, from the end of the write to the end of the
        search that found it.

    Raises:
        Refused: there is no such space.
        DatabaseError: the role may not, or a probe wasn't found.
    """
    texts = [_PROBE.format(number=number) for number in range(1, probes + 1)]
    vectors: list[str] | None = None
    encoding = [0.0] * probes
    if space is not None and find_space(connection, space).kind != "static":
        if encoder is None:
            space = None
        else:
            encoder.encode_documents(texts[:1])  # warm
            vectors = []
            for place, text in enumerate(texts):
                began = time.perf_counter()
                vectors.append(to_text(encoder.encode_documents([f"\n{text}"])[0]))
                encoding[place] = (time.perf_counter() - began) * 1000
    with translated(), connection.transaction():
        connection.execute("set local role pgrag_owner")
        rows = connection.execute(
            "select arm, ms from pgrag._update_lag(%s, %s, %s)", (texts, space, vectors)
        ).fetchall()
    found = {arm: [ms for of, ms in rows if of == arm] for arm in ("lexical", "dense")}
    if vectors is not None:
        found["dense"] = [ms + spent for ms, spent in zip(found["dense"], encoding, strict=True)]
    return {
        arm: {f"p{which}": percentile(times, which) for which in _PERCENTILES}
        for arm, times in found.items()
        if times
    }


def builds(connection: psycopg.Connection[Any], space: str) -> dict[str, Any]:
    """Return the figures of the last index build of a space; empty where its index grew with the vectors, or there is none.

    Args:
        connection: Of a member of ``pgrag_writer`` or ``pgrag_owner``.
        space: Its name.
    """
    return dict(find_space(connection, space).passport.get("figures", {}).get("build", {}))


def cache_counts(connection: psycopg.Connection[Any]) -> tuple[int, int]:
    """Return how many blocks of pgrag's tables were found in the server's cache, and how many were not, since it began.

    Args:
        connection: In autocommit mode, of a member of ``pgrag_writer`` or ``pgrag_owner``.
    """
    with translated():
        row = connection.execute("select hits, reads from pgrag.cache_counts()").fetchone()
    return (int(row[0]), int(row[1])) if row else (0, 0)


def cache_hits(before: tuple[int, int], after: tuple[int, int]) -> dict[str, float]:
    """Return what came between two counts: ``hits``, ``reads``, and ``share`` of hits, 0 to 1; empty for nothing."""
    hits, reads = after[0] - before[0], after[1] - before[1]
    if hits < 0 or reads < 0 or hits + reads == 0:  # the statistics were reset meanwhile
        return {}
    return {"hits": hits, "reads": reads, "share": hits / (hits + reads)}


def machine() -> dict[str, Any]:
    """Return what this client runs on: Python, system, processor and its cores. The server may be another machine."""
    return {
        "python": platform.python_version(),
        "system": platform.platform(terse=True),
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
    }
