"""No search reads a table whole: under row-level security, as the application's role, at 50,000 chunks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from _pgrag import Database

CHUNKS, WIDTH = 50_000, 8

# Who asks, and how many of the chunks they see; each chunk is for one department, too.
STEPS = {"user:all": 1, "user:tenth": 10, "user:few": 1000}

TOUCHED = """
select relname, coalesce(seq_scan, 0), coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)
from pg_stat_xact_all_tables where schemaname = 'pgrag' and relname in ('chunk', 'posting')
"""

VECTOR = json.dumps([1.0] * WIDTH)
CALLS = {
    "words": ("select * from pgrag.search_lexical('w7x w41x w300x', 10)", ()),
    "a phrase": ("select * from pgrag.search_lexical('\"w1x w2x\"', 10)", ()),
    "an exclusion": ("select * from pgrag.search_lexical('w300x -w7x', 10)", ()),
    "a prefix": ("select * from pgrag.search_lexical('w30*', 10)", ()),
    "a narrow filter": (
        "select * from pgrag.search('w300x', embedding => %s::halfvec, filter => '{\"n\": 5000}')",
        (VECTOR,),
    ),
    "a wide filter": (
        "select * from pgrag.search('w300x', embedding => %s::halfvec, filter => '{\"even\": true}')",
        (VECTOR,),
    ),
    "vectors": ("select * from pgrag.search_dense(%s::halfvec, 10)", (VECTOR,)),
    "both": ("select * from pgrag.search('w7x w300x', embedding => %s::halfvec)", (VECTOR,)),
    "packing": ("select * from pgrag.pack_context('w7x w300x', embedding => %s::halfvec)", (VECTOR,)),
}


@pytest.fixture(scope="module")
def large(installed_template: str, session_database: Callable[..., str]) -> Iterator[Database]:
    """50,000 chunks in 20 departments, with a vector each and an HNSW index."""
    database = Database(session_database(template=installed_template))
    database.execute("select pgrag.create_collection('docs')")
    names = [*STEPS, *(f"group:dep{n}" for n in range(20))]
    database.execute("select pgrag.create_principals(variadic %s)", (names,))
    random_ = np.random.default_rng(0)
    words = np.minimum(random_.zipf(1.15, (CHUNKS, 12)), 5000)
    database.load(
        [" ".join(f"w{word}x" for word in row) for row in words],
        readers=lambda n: [name for name, step in STEPS.items() if n % step == 0] + [f"group:dep{n % 20}"],
        metadata=lambda n: {"n": n, "even": n % 2 == 0},
    )
    database.execute("select pgrag.create_space('toy', 'toy-model', %s)", (WIDTH,))
    database.execute("select pgrag.attach_space('docs', 'toy')")
    vectors = random_.normal(size=(CHUNKS, WIDTH))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    jobs = database.execute("select chunk_id, hash from pgrag.claim_chunks('toy', %s)", (CHUNKS,))
    texts = [json.dumps([round(float(number), 4) for number in vector]) for vector in vectors]
    database.execute(
        "select pgrag.store_vectors('toy', %s, %s, %s)", ([j[0] for j in jobs], [j[1] for j in jobs], texts)
    )
    database.execute("select pgrag.activate_space('docs', 'toy')")
    database.execute("select pgrag.compact()")
    database.execute("vacuum analyze")
    yield database
    database.close()


@pytest.mark.parametrize("who", STEPS)
@pytest.mark.parametrize("call", CALLS)
def test_no_search_scans_chunks_or_postings_whole(large: Database, who: str, call: str) -> None:
    query, parameters = CALLS[call]
    rows = dict(
        large.execute("select relname, reltuples from pg_class where relname in ('chunk', 'posting')")
    )
    assert rows["chunk"] == CHUNKS
    with large.acting(who) as connection:
        found = connection.execute(query, parameters).fetchall()
        touched = {name: (scans, read) for name, scans, read in connection.execute(TOUCHED)}
    assert found or who == "user:few"
    for name, (scans, read) in touched.items():
        assert scans == 0, f"{call}: a sequential scan of {name}"
        assert read < rows[name] / 4, f"{call}: {read} of {rows[name]} rows of {name}"
