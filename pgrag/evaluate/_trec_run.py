"""Serves the stage ``evaluate``: what a run found, in TREC's form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import psycopg

from pgrag.errors import PgragError, translated

__all__ = ["Export", "run_files", "trec_name"]


@dataclass(frozen=True)
class Export:
    """What an export of judged queries wrote.

    Attributes:
        queries: Judged queries.
        judgements: Judgements of them.
        files: What was written.
    """

    queries: int
    judgements: int
    files: tuple[Path, ...]


def trec_name(name: str) -> str:
    """Return a name that TREC's formats can hold.

    Raises:
        PgragError: it is empty or holds white space, which is between the columns.
    """
    if name.split() != [name]:
        raise PgragError(
            f"TREC's formats can't hold the name {name!r}: it is empty or has white space",
            "Export it in BEIR's layout, with --beir.",
        )
    return name


def run_files(connection: psycopg.Connection[Any], run_id: int) -> dict[str, str]:
    """Return the lines ``query Q0 document rank score run`` of a run, by the name of a file for each arm.

    Documents are ranked by their best passage. Scores fall with the rank: of equal ones each is the next lower number,
    since trec_eval goes by the scores and would put ties into another order.

    Args:
        connection: Of a member of ``pgrag_writer`` or ``pgrag_owner``.
        run_id: Of the run.

    Raises:
        PgragError: a name holds white space, or nothing was kept of what the run found.
        Refused: there is no such run.
    """
    with translated(), connection.transaction():
        rows = connection.execute("select * from pgrag.run_hits(%s)", (run_id,)).fetchall()
    if not rows:
        raise PgragError(
            f"of what run {run_id} found nothing was kept", "Those that were made: pgrag eval runs"
        )
    files = {}
    for arm, hits in groupby(rows, key=lambda row: str(row[1])):
        lines: list[str] = []
        for query_id, found in groupby(hits, key=lambda row: str(row[0])):
            best: dict[str, float] = {}
            for row in found:
                best.setdefault(row[3], row[5])
            query = trec_name(query_id)
            lines += [
                f"{query} Q0 {trec_name(uri)} {rank} {score:.9g} pgrag-{run_id}-{arm}\n"
                for rank, (uri, score) in enumerate(zip(best, _falling(list(best.values())), strict=True), 1)
            ]
        files[f"run-{run_id}-{trec_name(arm)}.txt"] = "".join(lines)
    return files


def _falling(scores: Sequence[float]) -> Iterator[np.float32]:
    """Yield scores in single precision, as trec_eval reads them, each below the one before."""
    last = np.float32(np.inf)
    for score in scores:
        last = min(np.float32(score), np.nextafter(last, np.float32(-np.inf)))
        yield last
