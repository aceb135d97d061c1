"""No search reads a table whole: under row-level security, as the application's role, at 100,000 chunks."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import psycopg
import pytest
from _index import Document, load
from _pgrag import Database

# Every fifth chunk has a vector.
CHUNKS, VECTORS, WIDTH = 100_000, 20_000, 8

# Who asks, and how many of the chunks they see; each chunk is for one department, too.
STEPS = {"user:all": 1, "user:tenth": 10, "user:few": 1000}

# Every scan that the transaction began, in whatever statement of whatever function.
TOUCHED = """
select relname, coalesce(seq_scan, 0), coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)
from pg_stat_xact_all_tables where schemaname = 'pgrag' and relname in ('chunk', 'posting')
"""
# The share of a table that a search may read: its words' runs, which may be looked at twice, and its candidates.
MOST = {"posting": 1 / 8, "chunk": 1 / 50}

# A function's statements get their final plans when they ran five times.
TIMES = 7

VECTOR = json.dumps([WIDTH**-0.5] * WIDTH)
CALLS = {
    "words": ("select * from pgrag.search_lexical('w7x w41x w300x', 10)", ()),
    "common words": ("select * from pgrag.search_lexical('w1x w2x w3x', 10)", ()),
    "a rare word": ("select * from pgrag.search_lexical('w4321x', 10)", ()),
    "sixty words": (
        "select * from pgrag.search_lexical((select string_agg('w' || n || 'x', ' ') from generate_series(50, 109) as n), 10)",
        (),
    ),
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
    "an explanation": (
        "select * from pgrag.explain_search('w7x w300x', array(select chunk_id from pgrag.search_lexical('w7x w300x', 3)))",
        (),
    ),
    "packing": ("select * from pgrag.pack_context('w7x w300x', embedding => %s::halfvec)", (VECTOR,)),
}
LEXICAL = [call for call, (query, _) in CALLS.items() if "pgrag.search_lexical(" in query]


def fill(database: Database) -> None:
    """Put 100,000 documents of twelve words as a restore would: no trigger, and the index made anew at the end."""
    words = np.minimum(np.random.default_rng(0).zipf(1.15, (CHUNKS, 12)), 5000)
    with database.admin.transaction(), database.admin.cursor() as cursor:
        cursor.execute(
            "create temporary table made (n int, readers text[], metadata jsonb, content text, tsv tsvector) on commit drop"
        )
        with cursor.copy("copy made from stdin") as copy:
            for n, row in enumerate(words):
                readers = [name for name, step in STEPS.items() if n % step == 0] + [f"group:dep{n % 20}"]
                places: dict[str, list[int]] = {}
                for place, word in enumerate(row, 1):
                    places.setdefault(f"w{word}x", []).append(place)
                tsv = " ".join(f"{word}:{','.join(map(str, at))}" for word, at in places.items())
                about = (readers, json.dumps({"n": n, "even": n % 2 == 0}))
                copy.write_row((n, *about, " ".join(f"w{word}x" for word in row), tsv))
        cursor.execute(
            """create temporary table own on commit drop as
            select r.readers, o.collection_id, pgrag._acl_id(o.collection_id, r.readers) as acl_id, o.analyzer
            from pgrag.collection as o cross join (select distinct m.readers from made as m) as r"""
        )
        cursor.execute("set local session_replication_role = replica")
        cursor.execute(
            """with d as (
                insert into pgrag.document (collection_id, acl_id, uri, content_hash, metadata)
                select o.collection_id, o.acl_id, m.n::text, '', m.metadata
                from made as m join own as o using (readers) order by m.n
                returning *
            ),
            t as (
                insert into pgrag.document_text (collection_id, document_id, acl_id, content)
                select d.collection_id, d.document_id, d.acl_id, m.content from d join made as m on m.n = d.uri::int
            )
            insert into pgrag.chunk (
                collection_id, acl_id, document_id, ordinal, char_start, char_end, token_count, lexeme_count, hash, content, tsv,
                analyzer
            )
            select d.collection_id, d.acl_id, d.document_id, 0, 0, length(m.content), 12, 12, pgrag._chunk_hash('', m.content),
                m.content, m.tsv, o.analyzer
            from d join made as m on m.n = d.uri::int join own as o using (readers)
            order by m.n"""
        )
    database.execute("select pgrag.rebuild_postings('docs')")


def embed(database: Database) -> None:
    """Make a space with an HNSW index, and give every fifth chunk a vector."""
    database.execute("select pgrag.create_space('toy', 'toy-model', %s)", (WIDTH,))
    database.execute("select pgrag.attach_space('docs', 'toy')")
    vectors = np.random.default_rng(1).normal(size=(VECTORS, WIDTH))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    database.execute("delete from pgrag.embed_queue where mod(chunk_id, 5) <> 1")
    jobs = database.execute("select chunk_id, hash from pgrag.claim_chunks('toy', %s)", (CHUNKS,))
    texts = [json.dumps([round(float(number), 4) for number in vector]) for vector in vectors]
    database.execute(
        "select pgrag.store_vectors('toy', %s, %s, %s)", ([j[0] for j in jobs], [j[1] for j in jobs], texts)
    )
    database.execute("select pgrag.activate_space('docs', 'toy')")


@pytest.fixture(scope="module")
def large(installed_template: str, session_database: Callable[..., str]) -> Iterator[Database]:
    """100,000 chunks in 20 departments, and an HNSW index."""
    database = Database(session_database(template=installed_template))
    database.execute("select pgrag.create_collection('docs')")
    names = [*STEPS, *(f"group:dep{n}" for n in range(20))]
    database.execute("select pgrag.create_principals(variadic %s)", (names,))
    fill(database)
    embed(database)
    database.execute("select pgrag.compact()")
    database.execute("vacuum analyze")
    yield database
    database.close()


def rows_of(database: Database) -> dict[str, int]:
    names = "select relname, reltuples from pg_class where relname in ('chunk', 'posting')"
    rows = {str(name): int(count) for name, count in database.execute(names)}
    assert rows["chunk"] == CHUNKS
    return rows


def assert_no_scan(connection: psycopg.Connection, call: str, rows: dict[str, int], who: str) -> None:
    """Call some times, and compare what was read with what there is."""
    query, parameters = CALLS[call]

    def touched() -> Counter[tuple[str, str]]:
        counts: Counter[tuple[str, str]] = Counter()
        for name, scans, read in connection.execute(TOUCHED):
            counts[name, "scans"], counts[name, "rows"] = scans, read
        return counts

    before = touched()
    for _ in range(TIMES):
        found = connection.execute(query, parameters).fetchall()
    after = touched()
    assert found or who == "user:few"
    for name, count in rows.items():
        assert after[name, "scans"] == before[name, "scans"], f"{call}: a sequential scan of {name}"
        read = (after[name, "rows"] - before[name, "rows"]) / TIMES
        assert read < count * MOST[name], f"{call}: {read} of {count} rows of {name}"


@pytest.mark.parametrize("who", STEPS)
@pytest.mark.parametrize("call", CALLS)
def test_no_search_scans_chunks_or_postings_whole(large: Database, who: str, call: str) -> None:
    rows = rows_of(large)
    with large.acting(who) as connection:
        assert_no_scan(connection, call, rows, who)


@pytest.mark.parametrize("who", STEPS)
def test_no_search_scans_a_log_that_was_not_merged_yet(large: Database, who: str) -> None:
    rows = rows_of(large)
    with large.admin.transaction(force_rollback=True):
        for first in range(0, 400, 20):
            made = [
                Document(str(n), (f"w1x w2x w300x w7x w{n}x new{n}",), ("user:all", f"group:dep{n % 20}"))
                for n in range(first, first + 20)
            ]
            load(large.admin, made)
        large.execute("delete from pgrag.document where uri like '%77'")
        large.execute("set local role pgrag_app")
        large.execute("select pgrag.act_as(%s)", (who,))
        for call in LEXICAL:
            assert_no_scan(large.admin, call, rows, who)
