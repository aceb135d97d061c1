"""What ``peers.py`` compares: pgrag, tables as people make them of pgvector and full-text search, and two limits in memory.

Each table of a peer has the same readers as pgrag's documents, under one policy: a row names who may read it, and the
application says who asks. Libraries are in ``_peers_libraries.py``.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from _bench import load
from _dense import Vectors, say
from _peers_corpus import Access, Corpus, Question
from _peers_right import BOTH, HALVES, VECTORS, WORDS, Connection, Index, K, Words, nearest
from numpy.typing import NDArray
from pgvector import Vector
from pgvector.psycopg import register_vector

from pgrag.index import compact
from pgrag.spaces import activate_space, build_space, create_space
from pgrag.worker import drain

COLLECTION = SPACE = "bench"
PGRAG: dict[str, tuple[str | None, str, str]] = {
    "pgrag, words": (WORDS, '{"lexical": 1, "dense": 0}', "rrf"),
    "pgrag, vectors": (HALVES, '{"lexical": 0, "dense": 1}', "rrf"),
    "pgrag, both": (BOTH, '{"lexical": 1, "dense": 1}', "rrf"),
    "pgrag, both, by scores": (None, '{"lexical": 1, "dense": 1}', "minmax"),
}
_SEARCH = """
    select s.uri::int, s.content from pgrag.search(
        %(query)s, %(k)s, array[%(collection)s], embedding => %(vector)s::halfvec, weights => %(weights)s::jsonb,
        fusion => %(fusion)s
    ) as s
"""
_AS_PRINCIPALS = "select pgrag.act_as(variadic %(principals)s::text[])"
AS_BENCH = "select set_config('bench.principals', array_to_string(%(principals)s::text[], ','), true)"
# The application's word for who asks. In a subquery it would be computed once, but the planner would not know it,
# and would read by the index of readers even for a caller who sees all.
ASKING = "string_to_array(current_setting('bench.principals', true), ',')"
_PGRAG_BYTES = """
    select coalesce(sum(pg_total_relation_size(c.oid)), 0)
    from pg_class as c
    where c.relnamespace = 'pgrag'::regnamespace and c.relkind in ('r', 'p')
"""
_TABLES = {
    "vectors": (
        """
        create table bench.vectors (
            id int primary key, content text not null, readers text[] not null, embedding vector({dimension}) not null
        )
        """,
        ("create index on bench.vectors using hnsw (embedding vector_cosine_ops)",),
    ),
    "words": (
        """
        create table bench.words (
            id int primary key, content text not null, readers text[] not null,
            tsv tsvector not null generated always as (to_tsvector('english', content)) stored
        )
        """,
        ("create index on bench.words using gin (tsv)",),
    ),
    # As `pghybrid init` writes it.
    "pghybrid": (
        """
        create table bench.pghybrid (
            id int primary key, content text not null, readers text[] not null, embedding vector({dimension}) not null,
            fts tsvector generated always as (to_tsvector('english', coalesce(content, ''))) stored
        )
        """,
        (
            "create index on bench.pghybrid using hnsw (embedding vector_cosine_ops)",
            "create index on bench.pghybrid using gin (fts)",
        ),
    ),
}
_NEAREST = "select id, content from bench.vectors order by embedding <=> %(vector)s::vector limit %(k)s"
# With iterative scan rows come nearly in order, and pgvector's documentation sorts them again.
_NEAREST_RELAXED = """
    with near as materialized (
        select id, content, embedding <=> %(vector)s::vector as distance from bench.vectors order by distance limit %(k)s
    )
    select id, content from near order by distance + 0
"""
# Any of the words: all of them are in hardly any passage.
_RANKED = """
    select w.id, w.content
    from bench.words as w
    cross join (select replace(plainto_tsquery('english', %(query)s)::text, '&', '|')::tsquery as any_word) as q
    where w.tsv @@ q.any_word
    order by ts_rank_cd(w.tsv, q.any_word) desc, w.id
    limit %(k)s
"""


_SCAN = re.compile(r"Seq Scan on|(?:Index Scan using|Bitmap Index Scan on) (?P<index>\S+)")
_INDEXES = {"embedding": "hnsw", "readers": "readers", "tsv": "words", "fts": "words"}


@dataclass(frozen=True)
class Answer:
    """The rows that a system found, best first, and the milliseconds it took."""

    rows: list[int]
    ms: float


@dataclass(frozen=True)
class Made:
    """What making a system's tables took.

    Attributes:
        seconds: From texts with vectors to tables with all their indexes.
        bytes: Of tables and indexes, the passages' texts among them.
    """

    seconds: float
    bytes: int


class System(Protocol):
    """One way to search.

    Attributes:
        name: Of it.
        kind: What its answers are held against; None: nothing exact is of its kind.
        made: What making its tables took.
        note: What one should know of it.
    """

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str | None: ...
    @property
    def made(self) -> Made: ...
    @property
    def note(self) -> str: ...

    def ask(self, question: Question) -> Answer:
        """Search as one caller."""

    def plan(self, question: Question) -> str:
        """Say how the server reads; nothing where that isn't known."""


@dataclass
class BySql:
    """A search that is one statement under row-level security; making the caller known isn't timed.

    Attributes:
        connection: Of its own, in autocommit mode.
        identify: The statement that says who asks.
        given: Parameters beside the question's.
        settings: Of the transaction.
    """

    name: str
    kind: str | None
    made: Made
    connection: Connection
    statement: str
    identify: str = AS_BENCH
    given: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    note: str = ""

    def ask(self, question: Question) -> Answer:
        """Search in a transaction of its own."""
        with self.connection.transaction():
            given = self._begin(question)
            start = time.perf_counter()
            found = self.connection.execute(self.statement, given).fetchall()
            ms = 1000 * (time.perf_counter() - start)
        return Answer([row for row, *_ in found], ms)

    def plan(self, question: Question) -> str:
        """Return the first scan of the statement's plan."""
        with self.connection.transaction():
            given = self._begin(question)
            return first_scan(
                self.connection.execute("explain (costs off) " + self.statement, given).fetchall()
            )

    def _begin(self, question: Question) -> dict[str, Any]:
        given = {
            "query": question.text,
            "vector": question.literal,
            "principals": list(question.principals),
            "k": K,
        } | self.given
        self.connection.execute("set local role pgrag_app")
        for name, value in self.settings.items():
            self.connection.execute("select set_config(%s, %s, true)", (name, value))
        self.connection.execute(self.identify, given)
        return given


class Pgrag(BySql):
    """An arm of pgrag, or both; what it decided stands in its answer."""

    def plan(self, question: Question) -> str:
        """Return how the vectors were searched."""
        statement = self.statement.replace("s.uri::int, s.content", "s.dense_plan")
        with self.connection.transaction():
            found = self.connection.execute(statement, self._begin(question)).fetchone()
        return str(found[0]) if found and found[0] else ""


class Known:
    """An encoder that knows the vectors of the corpus by text, so that ingest is timed without a model."""

    name = SPACE

    def __init__(self, corpus: Corpus) -> None:
        self._vectors = corpus.documents
        self._row = {text: row for row, text in enumerate(corpus.texts)}
        self.dimension = int(corpus.documents.shape[1])
        self.passport: dict[str, Any] = {
            "name": self.name,
            "model": corpus.model,
            "dimension": self.dimension,
            "normalised": True,
        }

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """Look up the vectors."""
        return self._vectors[[self._row[text.strip()] for text in texts]]

    encode_queries = encode_documents

    def count_tokens(self, text: str) -> int:
        """Count words."""
        return len(text.split())


def pgrag_systems(
    connect: Callable[[], Connection], corpus: Corpus, access: Access, memory: str
) -> list[System]:
    """Put the corpus into pgrag, in its own way; return its arms and both."""
    connection = connect()

    def size() -> int:
        connection.execute("vacuum analyze")
        row = connection.execute(_PGRAG_BYTES).fetchone()
        assert row is not None
        return int(row[0])

    connection.execute("select pgrag.create_collection(%s)", (COLLECTION,))
    empty = size()
    rows = [row | {"_id": str(number)} for number, row in enumerate(corpus.passages)]
    start = time.perf_counter()
    load(connection, COLLECTION, rows, [access.readers(row) for row in range(len(rows))])
    compact(connection)
    seconds = time.perf_counter() - start
    words = Made(seconds, size() - empty)
    encoder = Known(corpus)
    start = time.perf_counter()
    create_space(
        connection,
        encoder,
        collections=[COLLECTION],
        precision="halfvec",
        index="hnsw",
        with_index=False,
    )
    drain(connection, encoder, space=SPACE, batch=2000)
    build_space(connection, SPACE, memory=memory)
    activate_space(connection, COLLECTION, SPACE)
    both = Made(seconds + time.perf_counter() - start, size() - empty)
    say(f"pgrag: words in {words.seconds:.0f} s, with vectors in {both.seconds:.0f} s")
    return [
        Pgrag(
            name,
            kind,
            words if kind == WORDS else both,
            connect(),
            _SEARCH,
            _AS_PRINCIPALS,
            {"collection": COLLECTION, "weights": weights, "fusion": fusion},
            note="ingest and size with words alone" if kind == WORDS else "",
        )
        for name, (kind, weights, fusion) in PGRAG.items()
    ]


def make_table(connection: Connection, name: str, corpus: Corpus, access: Access) -> Made:
    """Make a peer's table in schema bench, filled by COPY and indexed then, as pgvector's documentation has it."""
    register_vector(connection)
    table, indexes = _TABLES[name]
    with_vector = "embedding" in table
    start = time.perf_counter()
    connection.execute(table.format(dimension=corpus.documents.shape[1]).encode())
    columns = "id, content, readers" + (", embedding" if with_vector else "")
    with (
        connection.cursor() as cursor,
        cursor.copy(f"copy bench.{name} ({columns}) from stdin (format binary)".encode()) as copy,
    ):
        copy.set_types(["int4", "text", "text[]", *(["vector"] if with_vector else [])])
        for row, text in enumerate(corpus.texts):
            values = (row, text, access.readers(row))
            copy.write_row((*values, Vector(corpus.documents[row])) if with_vector else values)
    for index in indexes:
        connection.execute(index.encode())
    secure(connection, name, "readers", "&&")
    connection.execute(f"create index on bench.{name} using gin (readers)".encode())
    seconds = time.perf_counter() - start
    say(f"{name}: loaded and indexed in {seconds:.0f} s")
    return Made(seconds, size_of(connection, name))


def secure(connection: Connection, table: str, readers: str, operator: str) -> None:
    """Put a table under the policy: whoever asks reads the rows that name them."""
    for statement in (
        f"alter table bench.{table} enable row level security",
        f"create policy read on bench.{table} for select to pgrag_app using ({readers} {operator} {ASKING})",
        f"grant select on bench.{table} to pgrag_app",
    ):
        connection.execute(statement.encode())


def first_scan(plan: Sequence[tuple[Any, ...]]) -> str:
    """Return what a plan reads first: an index by what it is of, or all rows."""
    for (line,) in plan:
        found = _SCAN.search(line)
        if found is None:
            continue
        if found["index"] is None:
            return "all rows"
        return next((what for part, what in _INDEXES.items() if part in found["index"]), found["index"])
    return "?"


def size_of(connection: Connection, table: str) -> int:
    """Return the bytes of a table of schema bench with its indexes, without dead rows' or unread pages' statistics."""
    connection.execute(f"vacuum analyze bench.{table}".encode())
    row = connection.execute("select pg_total_relation_size(%s::regclass)", (f"bench.{table}",)).fetchone()
    assert row is not None
    return int(row[0])


def vector_systems(connect: Callable[[], Connection], corpus: Corpus, access: Access) -> list[System]:
    """Return pgvector as its documentation has it: with its defaults, and with iterative scan."""
    with connect() as connection:
        made = make_table(connection, "vectors", corpus, access)
    return [
        BySql("pgvector", VECTORS, made, connect(), _NEAREST),
        BySql(
            "pgvector, iterative scan",
            VECTORS,
            made,
            connect(),
            _NEAREST_RELAXED,
            settings={"hnsw.iterative_scan": "relaxed_order"},
        ),
    ]


def word_systems(connect: Callable[[], Connection], corpus: Corpus, access: Access) -> list[System]:
    """Return PostgreSQL's own full-text search."""
    with connect() as connection:
        made = make_table(connection, "words", corpus, access)
    return [BySql("ts_rank_cd over GIN", None, made, connect(), _RANKED, note="any of the words")]


@dataclass
class WordsInMemory:
    """bm25s over all passages, masked by what the caller sees: what can be had of words without a database."""

    index: Index
    words: Words
    made: Made
    name: str = "bm25s, in memory"
    kind: str | None = None
    note: str = "statistics of all passages; no database"
    _masks: dict[int, NDArray[np.float32]] = field(default_factory=dict)

    @classmethod
    def of(cls, words: Words, corpus: Corpus) -> WordsInMemory:
        """Index the lexemes of all passages."""
        start = time.perf_counter()
        index = words.index(np.ones(len(corpus.passages), np.bool_))
        return cls(index, words, Made(time.perf_counter() - start, index.bytes))

    def ask(self, question: Question) -> Answer:
        """Score all, then take the best of those that the caller sees."""
        asked = self.words.asked(question.number) or []
        mask = None
        if not question.seen.all():
            key = id(question.seen)
            if key not in self._masks:
                self._masks[key] = question.seen.astype(np.float32)
            mask = self._masks[key]
        start = time.perf_counter()
        rows = list(self.index.best(asked, K, mask))
        return Answer(rows, 1000 * (time.perf_counter() - start))

    def plan(self, question: Question) -> str:
        """Say nothing: it has no plans."""
        del question
        return ""


@dataclass
class VectorsInMemory:
    """numpy over all vectors, masked by what the caller sees: the exact answer, and what it costs without a database."""

    documents: Vectors
    made: Made
    name: str = "numpy, in memory"
    kind: str | None = VECTORS
    note: str = "exact; no database"

    def ask(self, question: Question) -> Answer:
        """Compare with all, then take the nearest of those that the caller sees."""
        start = time.perf_counter()
        rows = nearest(self.documents, question)
        return Answer(rows, 1000 * (time.perf_counter() - start))

    def plan(self, question: Question) -> str:
        """Say nothing: it has no plans."""
        del question
        return ""


def limits(words: Words, corpus: Corpus) -> list[System]:
    """Return what can be had in memory, of words and of vectors."""
    return [
        WordsInMemory.of(words, corpus),
        VectorsInMemory(corpus.documents, Made(0.0, corpus.documents.nbytes)),
    ]
