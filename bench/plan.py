"""What `pgrag plan` says beside what is: sizes and times of tables and indexes that are made here of random vectors and real texts.

    python bench/plan.py --vectors 20000
    python bench/plan.py --texts-only

A ratio above 1 says that more was planned than there is. Times are of the server's process on the CPU, which is what can be
compared on a machine that does other things as well.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from _bench import Row, arguments, database, load, passages, report
from ingest import chunks_of

from pgrag.index import compact
from pgrag.plan import SEARCH_MS, TextFigures, build_seconds, index_bytes, table_bytes, text_bytes

Connection = psycopg.Connection[Any]

# Dimension, precision, kind and options of the index.
SPACES: Sequence[tuple[int, str, str, Mapping[str, int]]] = (
    (384, "halfvec", "hnsw", {}),
    (384, "vector", "hnsw", {}),
    (384, "bit", "hnsw", {}),
    (768, "halfvec", "hnsw", {"m": 8}),
    (768, "vector", "hnsw", {}),
    (768, "bit", "hnsw", {"m": 32}),
    (1024, "halfvec", "hnsw", {"ef_construction": 128}),
    (1536, "halfvec", "hnsw", {}),
    (384, "halfvec", "ivfflat", {"lists": 100}),
    (1024, "halfvec", "ivfflat", {"lists": 20}),
    (384, "halfvec", "none", {}),
)
# Words a passage, ACLs, passages a document.
TEXTS = ((40, 50, 1), (150, 5, 1), (150, 500, 1), (150, 50, 10), (300, 50, 1))


@contextmanager
def cpu(connection: Connection) -> Iterator[list[float]]:
    """Yield a list that gets the seconds which the connection's process computed meanwhile."""
    spent: list[float] = []
    before = _cpu(connection)
    yield spent
    spent.append(_cpu(connection) - before)


def _cpu(connection: Connection) -> float:
    fields = Path(f"/proc/{connection.info.backend_pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def one(connection: Connection, call: str, *values: object) -> Any:
    """Return the first column of the first row."""
    row = connection.execute(call, values or None).fetchone()
    assert row is not None
    return row[0]


def compared(what: str, planned: float, measured: float, unit: str) -> Row:
    """Return a row of the table."""
    shown = "{:,.2f}" if measured < 100 else "{:,.0f}"
    return {
        "what": what,
        "planned": shown.format(planned),
        "measured": shown.format(measured),
        "unit": unit,
        "ratio": f"{planned / measured:.2f}",
    }


def fill(connection: Connection, table: str, keys: Sequence[Sequence[int]], vectors: np.ndarray) -> None:
    """Copy random vectors into a space's table."""
    call = f"copy pgrag.{table} (chunk_id, collection_id, acl_id, embedding) from stdin"
    with connection.cursor() as cursor, cursor.copy(call) as copy:
        for key, vector in zip(keys, vectors, strict=True):
            copy.write_row((*key, "[" + ",".join(f"{number:.5f}" for number in vector) + "]"))


def exact_seconds(connection: Connection, name: str, queries: np.ndarray) -> float:
    """Return the least seconds of an exact search for somebody who sees everything, on the CPU."""
    taken = []
    for query in queries:
        with connection.transaction():
            connection.execute("set local role pgrag_app")
            connection.execute("select pgrag.act_as('user:all')")
            text = "[" + ",".join(f"{number:.5f}" for number in query) + "]"
            call = "select count(*) from pgrag.search_dense(%s, 100, space => %s, exact => true)"
            connection.execute(call, (text, name))
            with cpu(connection) as spent:
                for _ in range(20):
                    connection.execute(call, (text, name))
            taken.append(spent[0] / 20)
    return min(taken)


def spaces(connection: Connection, count: int, seed: int) -> Iterator[Row]:
    """Yield what was planned of each space beside what is."""
    random = np.random.default_rng(seed)
    readers = [[f"group:g{n % 100}"] for n in range(count)]
    connection.execute("select pgrag.create_collection('vectors')")
    load(
        connection,
        "vectors",
        [{"_id": f"{n:08}", "title": "", "text": f"w{n}"} for n in range(count)],
        readers,
    )
    connection.execute(
        "select pgrag.add_member(g.name, 'user:all') from (select distinct unnest(%s::text[])) as g (name)",
        ([name for (name,) in readers],),
    )
    keys = connection.execute(
        "select chunk_id, collection_id, acl_id from pgrag.chunk where collection_id = pgrag._collection_id('vectors') order by 1"
    ).fetchall()
    for dimension, precision, kind, options in SPACES:
        name = f"{precision}-{dimension}-{kind}"
        vectors = random.standard_normal((count, dimension)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        space_id = one(
            connection,
            "select pgrag.create_space(%s, 'random', %s, index_kind => %s, \"precision\" => %s, index_options => %s,"
            " with_index => false)",
            name,
            dimension,
            kind,
            precision,
            json.dumps(dict(options)),
        )
        connection.execute("select pgrag.attach_space('vectors', %s)", (name,))
        table = f"embedding_{space_id}"
        about = f"{dimension} {precision}"
        fill(connection, table, keys, vectors)
        connection.execute(f"vacuum analyze pgrag.{table}")
        size = one(connection, f"select pg_table_size('pgrag.{table}') + pg_indexes_size('pgrag.{table}')")
        yield compared(f"table, {about}", table_bytes(count, dimension, precision) / 1e6, size / 1e6, "MB")
        if kind == "none":
            # The least of several: the clock of a machine that does other things as well only ever says more.
            measured = min(
                one(connection, "select pgrag.calibrate_space(%s, 20)", name)["exact_us"] for _ in range(5)
            )
            planned = one(
                connection,
                "select exact_ms from pgrag._plan_dense(%s, 100, %s, %s, null)",
                json.dumps(
                    {
                        "dimension": dimension,
                        "precision": precision,
                        "index_kind": "none",
                        "calibration": {"exact_us": measured},
                    }
                ),
                count,
                count,
            )
            spent = exact_seconds(connection, name, vectors[:10])
            yield compared(f"exact search, {about}", SEARCH_MS + planned, 1000 * spent, "ms")
        else:
            if precision == "bit":
                connection.execute("select pgrag.center_codes(%s)", (name,))
            statement = one(connection, "select pgrag._space_index(%s, false)", name)
            with cpu(connection) as built:
                connection.execute(statement)
            words = "".join(f" {option} {value}" for option, value in options.items())
            size = one(connection, f"select pg_relation_size('pgrag.embedding_{space_id}_{kind}_idx')")
            planned = index_bytes(count, dimension, precision, kind, options)
            yield compared(f"{kind}{words}, {about}", planned / 1e6, size / 1e6, "MB")
            planned = build_seconds(count, dimension, precision, kind, options)
            yield compared(f"building {kind}{words}, {about}", planned, built[0], "s")
        connection.execute("select pgrag.retire_space(%s)", (name,))
        connection.execute("select pgrag.drop_space(%s)", (name,))


def texts(dsn: str, count: int, seed: int) -> Iterator[Row]:
    """Yield what was planned of documents, passages and the lexical index beside what is, each in a collection of its own."""
    tables = {
        "documents": ("document", "document_text", "document_history"),
        "passages": ("chunk",),
        "lexical index": ("posting", "lexeme"),
    }
    rows = passages(count * 5, seed, shuffled=False)
    with psycopg.connect(dsn, autocommit=True) as connection:
        for words, acls, together in TEXTS:
            chunks = chunks_of(rows, words * together, count // together)
            for chunk in chunks:
                chunk["group"] = ""
            of_each = max(1, len(chunks) // acls)
            readers = [[f"group:a{min(n // of_each, acls - 1)}"] for n in range(len(chunks))]
            before = {name: _sizes(connection, of) for name, of in tables.items()}
            held = one(connection, "select pgrag.corpus_figures()")
            name = f"t{words}-{acls}-{together}"
            connection.execute("select pgrag.create_collection(%s)", (name,))
            if together == 1:
                load(connection, name, chunks, readers)
            else:
                names = sorted({who for (who,) in readers})
                connection.execute("select pgrag.create_principals(variadic %s)", (names,))
                for chunk, who in zip(chunks, readers, strict=True):
                    connection.execute(
                        "select pgrag.put_document(%s, %s, %s, %s)", (name, chunk["_id"], chunk["text"], who)
                    )
            compact(connection)
            connection.execute("vacuum full pgrag.posting")
            connection.execute("vacuum full pgrag.lexeme")
            connection.execute("vacuum analyze")
            now = one(connection, "select pgrag.corpus_figures()")
            made = {key: now[key] - held[key] for key in ("chunks", "tokens", "postings", "pairs")}
            average = made["tokens"] / made["chunks"]
            if together == 1:
                # The loader writes a quarter of the characters, which isn't what pgrag counts.
                average = one(
                    connection,
                    "select avg(pgrag._estimate_tokens(h.content)) from pgrag.chunk as h"
                    " where h.collection_id = pgrag._collection_id(%s)",
                    name,
                )
            planned = text_bytes(made["chunks"], float(average), acls, len(chunks), TextFigures())
            about = f"{words} words, {acls} ACLs" + (
                f", documents of {words * together}" if together > 1 else ""
            )
            for (part, of), bytes_ in zip(tables.items(), planned, strict=True):
                yield compared(
                    f"{part}, {about}", bytes_ / 1e6, (_sizes(connection, of) - before[part]) / 1e6, "MB"
                )


def _sizes(connection: Connection, tables: Sequence[str]) -> int:
    return sum(one(connection, f"select pg_total_relation_size('pgrag.{table}')") for table in tables)


def main() -> None:
    """Run the bench."""
    parser = arguments(__doc__)
    parser.add_argument("--vectors", type=int, default=20_000)
    parser.add_argument("--chunks", type=int, default=10_000)
    parser.add_argument("--texts-only", action="store_true")
    given = parser.parse_args()
    settings = {"maintenance_work_mem": "500MB", "max_parallel_maintenance_workers": "0"}
    table: list[Row] = []
    with database(given.database_url, settings) as dsn:
        # Texts first: what vectors hang on leaves rows behind, which aren't the texts'.
        for row in texts(dsn, given.chunks, given.seed):
            print(json.dumps(row), flush=True)
            table.append(row)
        if not given.texts_only:
            with psycopg.connect(dsn, autocommit=True) as connection:
                for row in spaces(connection, given.vectors, given.seed):
                    print(json.dumps(row), flush=True)
                    table.append(row)
        about = {"vectors": given.vectors, "passages": given.chunks, "seed": given.seed}
        report("What is planned, and what is", dsn, about, table, given.json)


if __name__ == "__main__":
    main()
