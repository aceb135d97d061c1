"""Vectors that an approximate index passes over, always: what a search loses by its index, made on purpose."""

from __future__ import annotations

import json
import math

from _pgrag import Database

__all__ = ["direction", "fill_lists"]

# As if the index cost nothing, and had to look into one list.
_ONE_LIST = {"exact_us": 100, "hidden_us": 10, "index_us": 0.001, "effort": 1}


def direction(degrees: float) -> str:
    """Return the vector of length 1 at an angle, as pgvector reads it."""
    return f"[{math.cos(math.radians(degrees))},{math.sin(math.radians(degrees))}]"


def fill_lists(db: Database) -> None:
    """Fill ``docs`` with vectors in two lists of an ivfflat index of which one is looked into.

    The documents ``a0`` to ``a59`` are at 0 to 5 degrees, ``b0`` to ``b59`` at 85 to 90, and ``edge`` at 46: in the list of
    the latter, and from 43 degrees the nearest of all, though the former's middle is nearer. Each text is its angle.
    """
    angles = {f"a{n}": n / 12 for n in range(60)} | {f"b{n}": 85 + n / 12 for n in range(60)} | {"edge": 46}
    db.load([str(angle) for angle in angles.values()])
    db.execute("update pgrag.document set uri = (%s::text[])[uri::int + 1]", (list(angles),))
    db.execute(
        "select pgrag.create_space('toy', 'toy', 2, index_kind => 'ivfflat', index_options => '{\"lists\": 2}',"
        " with_index => false)"
    )
    db.execute("select pgrag.attach_space('docs', 'toy')")
    jobs = db.execute("select chunk_id, hash, content from pgrag.claim_chunks('toy', 1000)")
    db.execute(
        "select pgrag.store_vectors('toy', %s, %s, %s)",
        ([job[0] for job in jobs], [job[1] for job in jobs], [direction(float(job[2])) for job in jobs]),
    )
    db.execute("analyze")
    db.execute(db.value("select pgrag._space_index('toy', false)"))
    db.execute("select pgrag.activate_space('docs', 'toy')")
    db.execute("update pgrag.space set calibration = %s", (json.dumps(_ONE_LIST),))
