"""What ``dense.py`` compares: pgrag and its two pure strategies, pgvector on its own, and two libraries over it."""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import psycopg
from _dense import Encoded, K, Kept, Question, Visibility, as_text, say
from pgvector import HalfVector, Vector
from pgvector.psycopg import register_vector

Connection = psycopg.Connection[tuple[Any, ...]]

PGRAG, EXACT, INDEX = "pgrag", "pgrag, exact", "pgrag, index alone"
# As pgvector and both libraries have it.
_EF_SEARCH = 40

_AS_PRINCIPALS = "select pgrag.act_as(variadic %(principals)s::text[])"
_SEARCH_DENSE = """
    select s.chunk_id, s.plan from pgrag.search_dense(%(query)s, %(k)s, space => %(space)s, exact => %(exact)s) as s order by s.rank
"""
# The index is walked in its own order, and what it gives is sorted by distance.
_INDEX_ALONE = """
    with near as materialized (
        select e.chunk_id, e.embedding <=> %(query)s as distance from pgrag.{vectors} as e order by {by_index} limit %(k)s
    )
    select n.chunk_id from near as n order by n.distance limit 10
"""
# In a subquery, so that it is computed once and not for each row.
_CODED = "e.code <~> (select pgrag._code({space_id}, %(query)s::vector)::bit({dimension}))"
# As people write it: rows name who may read them, and the application says who asks.
_OWN_TABLE = """
    create table bench.{table} (id int primary key, readers text[] not null, embedding {type} not null);
    alter table bench.{table} enable row level security;
    create policy read on bench.{table} for select to pgrag_app
    using (readers && string_to_array(current_setting('bench.principals', true), ','));
    grant select on bench.{table} to pgrag_app;
"""
_OWN_INDEXES = (
    "create index on bench.{table} using hnsw (embedding {type}_cosine_ops)",
    "create index on bench.{table} using gin (readers)",
)
_AS_BENCH = "select set_config('bench.principals', array_to_string(%(principals)s::text[], ','), true)"
# With iterative scan rows come nearly in order, and pgvector's documentation sorts them again.
_OWN = "select id from bench.{table} order by embedding <=> %(query)s limit %(k)s"
_OWN_RELAXED = """
    with near as materialized (
        select id, embedding <=> %(query)s as distance from bench.{table} order by distance limit %(k)s
    )
    select id from near order by distance + 0
"""
_SCANS = re.compile(r"(Index Only Scan|Bitmap Index Scan|Index Scan|Seq Scan)(?: using| on) (\S+)")


@dataclass(frozen=True)
class Answer:
    """What a system found: rows, nearest first; how long it took, here and in the server's process; and how."""

    rows: list[int]
    ms: float
    cpu_ms: float | None
    plan: str


class System(Protocol):
    """One way to search.

    Attributes:
        name: Of it.
        kept: What it keeps at half precision.
    """

    name: str
    kept: Kept

    def ask(self, question: Question) -> Answer:
        """Search as one caller."""


@dataclass
class BySql:
    """A search that is one statement under row-level security; making the caller known isn't timed.

    Attributes:
        connection: Of its own, in autocommit mode.
        identify: The statement that says who asks.
        given: Parameters beside the question's.
        settings: Of the transaction.
        row: The row of what was found.
    """

    name: str
    kept: Kept
    connection: Connection
    statement: str
    identify: str
    given: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    row: Callable[[int], int] = int
    local: bool = True

    def ask(self, question: Question) -> Answer:
        """Search as one caller, in a transaction of its own."""
        given = {"query": question.text, "principals": list(question.principals), "k": K} | self.given
        pids = [self.connection.info.backend_pid] if self.local else []
        with self.connection.transaction():
            self.connection.execute("set local role pgrag_app")
            for name, value in self.settings.items():
                self.connection.execute("select set_config(%s, %s, true)", (name, value))
            self.connection.execute(self.identify, given)
            before, start = _cpu_ms(pids), time.perf_counter()
            found = self.connection.execute(self.statement, given).fetchall()
            ms = 1000 * (time.perf_counter() - start)
            cpu_ms = _since(before, pids)
            if found and len(found[0]) > 1:
                plan = re.sub(r"\d+", "N", found[0][1])
            else:
                plan = _scan_of(
                    self.connection.execute("explain (costs off) " + self.statement, given).fetchall()
                )
        return Answer([self.row(each[0]) for each in found], ms, cpu_ms, plan)


def pgrag_systems(
    connect: Callable[[], Connection], space: str, place: dict[int, int], *, local: bool
) -> list[System]:
    """Return pgrag as it decides, and what it decides between.

    Args:
        connect: Makes a connection.
        space: The space, calibrated.
        place: The row of each chunk.
        local: Whether the server's processes are of this machine.
    """
    connection = connect()
    row = connection.execute(
        "select s.space_id, s.dimension, s.index_kind, s.precision, s.calibration from pgrag.space as s where s.name = %s",
        (space,),
    ).fetchone()
    assert row is not None
    space_id, dimension, kind, precision, calibration = row
    kept = Kept.QUESTIONS if precision == "vector" else Kept.ALL
    systems: list[System] = [
        BySql(
            name,
            kept,
            connect(),
            _SEARCH_DENSE.replace("%(query)s", "%(query)s::halfvec"),
            _AS_PRINCIPALS,
            {"space": space, "exact": exact},
            row=place.__getitem__,
            local=local,
        )
        for name, exact in ((PGRAG, False), (EXACT, True))
    ]
    if kind == "none" or "effort" not in calibration:
        return systems
    query = "%(query)s::halfvec" if precision != "vector" else "%(query)s::halfvec::vector"
    by_index = (
        _CODED.format(space_id=space_id, dimension=dimension)
        if precision == "bit"
        else f"e.embedding <=> {query}"
    )
    effort = int(calibration["effort"])
    settings = {"enable_sort": "off", f"{kind}.iterative_scan": "relaxed_order"}
    if kind == "hnsw":
        settings |= {
            "hnsw.ef_search": str(effort),
            "hnsw.max_scan_tuples": "2147483647",
            "hnsw.scan_mem_multiplier": "64",
        }
    else:
        settings |= {"ivfflat.probes": str(effort), "ivfflat.max_probes": "32768"}
    statement = _INDEX_ALONE.format(vectors=f"embedding_{space_id}", by_index=by_index)
    # Of codes many are taken and compared exactly.
    given = {"k": effort} if precision == "bit" else {}
    statement = statement.replace("e.embedding <=> %(query)s as", f"e.embedding <=> {query} as")
    systems.append(
        BySql(
            INDEX,
            kept,
            connection,
            statement,
            _AS_PRINCIPALS,
            given,
            settings,
            place.__getitem__,
            local,
        )
    )
    return systems


def pgvector_systems(
    connect: Callable[[], Connection], visibility: Visibility, types: Sequence[str], *, local: bool
) -> list[System]:
    """Make a table of pgvector for each type, with a policy and an index of readers; return plain and iterative scan."""
    systems: list[System] = []
    connection = connect()
    register_vector(connection)
    connection.execute("create schema if not exists bench")
    connection.execute("grant usage on schema bench to pgrag_app")
    documents = visibility.material.documents
    for kind in types:
        start = time.perf_counter()
        table = f"own_{kind}"
        for statement in _OWN_TABLE.split(";")[:-1]:
            typed = f"{kind}({documents.shape[1]})"
            connection.execute(statement.format(table=table, type=typed).encode())
        with (
            connection.cursor() as cursor,
            cursor.copy(
                f"copy bench.{table} (id, readers, embedding) from stdin (format binary)".encode()
            ) as copy,
        ):
            copy.set_types(["int4", "text[]", kind])
            made = HalfVector if kind == "halfvec" else Vector
            for row, vector in enumerate(documents):
                copy.write_row((row, visibility.readers(row), made(vector)))
        for statement in _OWN_INDEXES:
            connection.execute(statement.format(table=table, type=kind).encode())
        say(f"pgvector's {kind}: loaded and indexed in {time.perf_counter() - start:.0f} s")
        query = f"%(query)s::{kind}"
        for name, statement, settings in (
            ("", _OWN, {}),
            (", iterative", _OWN_RELAXED, {"hnsw.iterative_scan": "relaxed_order"}),
        ):
            systems.append(
                BySql(
                    f"pgvector {kind}{name}",
                    Kept.ALL if kind == "halfvec" else Kept.NOTHING,
                    connect(),
                    statement.format(table=table).replace("%(query)s", query),
                    _AS_BENCH,
                    settings=settings,
                    local=local,
                )
            )
    connection.close()
    return systems


class LangChain:
    """PGVectorStore of langchain-postgres: a metadata column holds the ACL, and callers filter by theirs.

    Table and index are made by the library, the rows by COPY. The column has an index of its own.

    Raises:
        ImportError: it isn't installed.
    """

    name = "LangChain PGVectorStore"
    kept = Kept.NOTHING

    def __init__(self, dsn: str, connection: Connection, visibility: Visibility, *, local: bool) -> None:
        from langchain_core.embeddings import DeterministicFakeEmbedding
        from langchain_postgres import Column, PGEngine, PGVectorStore
        from langchain_postgres.v2.indexes import HNSWIndex, HNSWQueryOptions

        start = time.perf_counter()
        documents = visibility.material.documents
        engine = PGEngine.from_connection_string(
            sqlalchemy_url(dsn, "asyncpg"),
            pool_size=1,
            max_overflow=0,
            connect_args={"server_settings": {"application_name": self.name}},
        )
        engine.init_vectorstore_table(
            "langchain", documents.shape[1], schema_name="bench", metadata_columns=[Column("acl", "text")]
        )
        with (
            connection.cursor() as cursor,
            cursor.copy("copy bench.langchain (langchain_id, content, embedding, acl) from stdin") as copy,
        ):
            for row, vector in enumerate(documents):
                copy.write_row(
                    (uuid.UUID(int=row), Encoded.text(row), as_text(vector), visibility.acl_name(row))
                )
        connection.execute("create index on bench.langchain (acl)")
        self._store = PGVectorStore.create_sync(
            engine,
            # Never asked: vectors are given.
            embedding_service=DeterministicFakeEmbedding(size=documents.shape[1]),
            table_name="langchain",
            schema_name="bench",
            metadata_columns=["acl"],
            index_query_options=HNSWQueryOptions(ef_search=_EF_SEARCH),
        )
        self._store.apply_vector_index(HNSWIndex())
        self._watch = _Watch(connection, self.name, engine._pool.sync_engine, local=local)
        say(f"{self.name}: loaded and indexed in {time.perf_counter() - start:.0f} s")

    def ask(self, question: Question) -> Answer:
        """Search with the library, vectors and filter given."""
        vector = question.vector.tolist()
        only = {} if question.acls is None else {"filter": {"acl": {"$in": list(question.acls)}}}
        before, start = self._watch.begin()
        found = self._store.similarity_search_with_score_by_vector(vector, k=K, **only)
        ms, cpu_ms, plan = self._watch.end(before, start)
        return Answer([uuid.UUID(document.id).int for document, _ in found], ms, cpu_ms, plan)


class LlamaIndex:
    """PGVectorStore of LlamaIndex: metadata holds the ACL, and callers filter by theirs.

    Table and indexes are made by the library, that of the ACL too, the rows by COPY.

    Raises:
        ImportError: it isn't installed.
    """

    name = "LlamaIndex PGVectorStore"
    kept = Kept.NOTHING

    def __init__(self, dsn: str, connection: Connection, visibility: Visibility, *, local: bool) -> None:
        from llama_index.core.schema import TextNode
        from llama_index.core.vector_stores.utils import node_to_metadata_dict
        from llama_index.vector_stores.postgres import PGVectorStore
        from sqlalchemy import create_engine
        from sqlalchemy.ext.asyncio import create_async_engine

        start = time.perf_counter()
        documents = visibility.material.documents
        engine = create_engine(
            sqlalchemy_url(dsn, "psycopg2"),
            pool_size=1,
            max_overflow=0,
            connect_args={"application_name": self.name},
        )
        made: dict[str, Any] = {
            "table_name": "llamaindex",
            "schema_name": "bench",
            "embed_dim": int(documents.shape[1]),
            "use_jsonb": True,
            "indexed_metadata_keys": {("acl", "text")},
            "engine": engine,
            "async_engine": create_async_engine(sqlalchemy_url(dsn, "asyncpg")),
            "initialization_fail_on_error": True,
        }
        # The table first, so that the index is built over all rows at once.
        PGVectorStore(**made)._initialize()
        with (
            connection.cursor() as cursor,
            cursor.copy(
                "copy bench.data_llamaindex (node_id, text, metadata_, embedding) from stdin"
            ) as copy,
        ):
            for row, vector in enumerate(documents):
                node = TextNode(
                    id_=str(row), text=Encoded.text(row), metadata={"acl": visibility.acl_name(row)}
                )
                metadata = json.dumps(node_to_metadata_dict(node, remove_text=True))
                copy.write_row((str(row), node.text, metadata, as_text(vector)))
        self._store = PGVectorStore(
            **made,
            hnsw_kwargs={
                "hnsw_m": 16,
                "hnsw_ef_construction": 64,
                "hnsw_ef_search": _EF_SEARCH,
                "hnsw_dist_method": "vector_cosine_ops",
            },
        )
        self._store._initialize()
        self._watch = _Watch(connection, self.name, engine, local=local)
        say(f"{self.name}: loaded and indexed in {time.perf_counter() - start:.0f} s")

    def ask(self, question: Question) -> Answer:
        """Search with the library, vectors and filter given."""
        from llama_index.core.vector_stores.types import (
            FilterOperator,
            MetadataFilter,
            MetadataFilters,
            VectorStoreQuery,
        )

        only = None
        if question.acls is not None:
            allowed = MetadataFilter(key="acl", value=list(question.acls), operator=FilterOperator.IN)
            only = MetadataFilters(filters=[allowed])
        query = VectorStoreQuery(query_embedding=question.vector.tolist(), similarity_top_k=K, filters=only)
        before, start = self._watch.begin()
        found = self._store.query(query)
        ms, cpu_ms, plan = self._watch.end(before, start)
        return Answer([int(node_id) for node_id in found.ids or []], ms, cpu_ms, plan)


class _Watch:
    """Sees what a library asks of the server: the time of its process there, and the plan of its last statement.

    The plan is that of the statement with its values; a prepared one may get another after its fifth time.
    """

    def __init__(self, connection: Connection, name: str, engine: Any, *, local: bool) -> None:
        from sqlalchemy import event

        self._connection = connection
        self._name = name
        self._local = local
        self._pids: list[int] = []
        self._asked: tuple[str, Any] | None = None
        self._settings: list[str] = []
        event.listen(engine, "after_cursor_execute", self._saw)

    def begin(self) -> tuple[float | None, float]:
        """Start the clocks."""
        self._settings = []
        return _cpu_ms(self._pids), time.perf_counter()

    def end(self, before: float | None, start: float) -> tuple[float, float | None, str]:
        """Stop the clocks; return milliseconds here, of the server's process, and the plan."""
        ms = 1000 * (time.perf_counter() - start)
        cpu_ms = _since(before, self._pids)
        if self._local and not self._pids:
            rows = self._connection.execute(
                "select pid from pg_stat_activity where application_name = %s", (self._name,)
            ).fetchall()
            self._pids = [pid for (pid,) in rows]
        return ms, cpu_ms, self._plan()

    def _saw(self, _: Any, cursor: Any, statement: str, parameters: Any, *__: Any) -> None:
        # psycopg2 puts parameters into the statement itself, asyncpg hands them over as $1, $2.
        whole = getattr(cursor, "query", None)
        text = whole.decode() if isinstance(whole, bytes) else statement
        if text.lstrip().upper().startswith("SELECT"):
            self._asked = (text, None if isinstance(whole, bytes) else parameters)
        elif text.lstrip().upper().startswith("SET"):
            self._settings.append(re.sub(r"(?i)^\s*set\s+(local\s+)?", "set local ", text))

    def _plan(self) -> str:
        if self._asked is None:
            return "?"
        statement, parameters = self._asked
        with self._connection.transaction(), psycopg.RawCursor(self._connection) as cursor:
            for setting in self._settings:
                cursor.execute(setting.encode())
            explain = ("explain (costs off) " + statement.rstrip().rstrip(";")).encode()
            return _scan_of(cursor.execute(explain, parameters).fetchall())


def _scan_of(plan: Sequence[tuple[Any, ...]]) -> str:
    """Return the first scan of a plan: the access method of its index, or what else it reads."""
    for (line,) in plan:
        found = _SCANS.search(line)
        if found is None:
            continue
        kind, name = found.groups()
        if kind == "Seq Scan":
            return "all rows"
        if name.endswith("embedding_idx") or "langchainvector" in name:
            return "hnsw"
        of_space = re.search("hnsw|ivfflat", name)
        return of_space[0] if of_space else "index of readers"
    return "?"


def sqlalchemy_url(dsn: str, driver: str) -> str:
    """Return a DSN as SQLAlchemy reads it."""
    return re.sub(r"^postgres(ql)?://", f"postgresql+{driver}://", dsn)


def _cpu_ms(pids: Sequence[int]) -> float | None:
    """Return the milliseconds that processes have computed so far; None where the system doesn't say."""
    try:
        return (
            sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in pids) / 1e6
            if pids
            else None
        )
    except OSError:
        return None


def _since(before: float | None, pids: Sequence[int]) -> float | None:
    now = _cpu_ms(pids)
    return None if before is None or now is None else now - before


def make_library(
    make: type[LangChain] | type[LlamaIndex],
    dsn: str,
    connection: Connection,
    visibility: Visibility,
    *,
    local: bool,
) -> list[System]:
    """Make the store of a library, where it is installed; else say so and return none."""
    try:
        return [make(dsn, connection, visibility, local=local)]
    except ImportError as error:
        say(f"{make.name}: left out: {error}")
        return []
