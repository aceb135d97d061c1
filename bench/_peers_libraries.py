"""The libraries that ``peers.py`` compares, each as its documentation has it, over a table that it made and filled.

They connect as an application: a role under row-level security. Who asks is set in their connection before a
question, which isn't timed. What isn't installed is named and left out.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from _dense import say
from _dense_systems import sqlalchemy_url
from _peers_corpus import Access, Corpus, Question
from _peers_right import VECTORS, Connection, K
from _peers_systems import AS_BENCH, Answer, Made, System, make_table, secure, size_of

# Candidates of each arm where a library fuses two; pghybrid's own number.
CANDIDATES = 50
_ROLE = "pgrag_app"
_BATCH = 2000
_ASK = "select set_config('bench.principals', :who, false)"


def library_systems(
    make: Callable[[str, Callable[[], Connection], Corpus, Access], list[System]],
    dsn: str,
    connect: Callable[[], Connection],
    corpus: Corpus,
    access: Access,
    missing: list[str],
) -> list[System]:
    """Make the systems of a library; where it isn't installed, say so, add that to what is missing, and return none."""
    try:
        return make(dsn, connect, corpus, access)
    except ImportError as error:
        missing.append(f"{make.__name__.removesuffix('_systems')}: {error}")
        say(f"left out: {missing[-1]}")
        return []


def pghybrid_systems(
    dsn: str, connect: Callable[[], Connection], corpus: Corpus, access: Access
) -> list[System]:
    """Return pghybrid: one statement that fuses pgvector and full-text search; it runs on stock PostgreSQL."""
    from pghybrid.adapters import for_psycopg

    del dsn
    connection = connect()
    made = make_table(connection, "pghybrid", corpus, access)
    search = for_psycopg(
        connection,
        table="bench.pghybrid",
        text_column="content",
        vector_column="embedding",
        tsvector_column="fts",
        candidate_limit=CANDIDATES,
    )

    def ask(question: Question) -> list[int]:
        found = search.search(question.text, embedding=question.vector.tolist(), limit=K)
        return [result.id for result in found]

    class InTransaction(_Library):
        def ask(self, question: Question) -> Answer:
            with connection.transaction():
                return super().ask(question)

    def act(question: Question) -> None:
        connection.execute(f"set local role {_ROLE}".encode())
        connection.execute(AS_BENCH, {"principals": list(question.principals)})

    return [InTransaction("pghybrid", None, made, act, ask, "any of the words; fused by reciprocal ranks")]


def langchain_systems(
    dsn: str, connect: Callable[[], Connection], corpus: Corpus, access: Access
) -> list[System]:
    """Return PGVectorStore of langchain-postgres by vectors, and with its hybrid search."""
    from langchain_core.embeddings import DeterministicFakeEmbedding
    from langchain_postgres import Column, PGEngine, PGVectorStore
    from langchain_postgres.v2.hybrid_search_config import HybridSearchConfig
    from langchain_postgres.v2.indexes import HNSWIndex
    from sqlalchemy import text

    url, dimension = sqlalchemy_url(dsn, "asyncpg"), corpus.documents.shape[1]
    # Never asked: vectors are given.
    service = DeterministicFakeEmbedding(size=dimension)

    def hybrid() -> HybridSearchConfig:
        return HybridSearchConfig(
            tsv_column="content_tsv", primary_top_k=CANDIDATES, secondary_top_k=CANDIDATES
        )

    def store(engine: PGEngine, config: HybridSearchConfig | None) -> PGVectorStore:
        return PGVectorStore.create_sync(
            engine,
            embedding_service=service,
            table_name="langchain",
            schema_name="bench",
            metadata_columns=["readers"],
            hybrid_search_config=config,
        )

    start = time.perf_counter()
    owner = PGEngine.from_connection_string(url, pool_size=1, max_overflow=0)
    owner.init_vectorstore_table(
        "langchain",
        dimension,
        schema_name="bench",
        metadata_columns=[Column("readers", "text[]")],
        hybrid_search_config=hybrid(),
    )
    filled = store(owner, hybrid())
    for rows in _batches(len(corpus.texts)):
        filled.add_embeddings(
            [corpus.texts[row] for row in rows],
            [corpus.documents[row].tolist() for row in rows],
            metadatas=[{"readers": access.readers(row)} for row in rows],
            ids=[str(uuid.UUID(int=row)) for row in rows],
        )
    filled.apply_vector_index(HNSWIndex())
    indexes = ("gin (content_tsv)", "gin (readers)")
    made = _finish(connect(), "langchain", "readers", "&&", indexes, start)
    engine = PGEngine.from_connection_string(
        url, pool_size=1, max_overflow=0, connect_args={"server_settings": {"role": _ROLE}}
    )

    async def become(who: str) -> None:
        async with engine._pool.connect() as connection:
            await connection.execute(text(_ASK), {"who": who})
            await connection.commit()

    def act(question: Question) -> None:
        engine._run_as_sync(become(",".join(question.principals)))

    by_vector, fused = store(engine, None), store(engine, hybrid())

    def ask(question: Question) -> list[int]:
        found = by_vector.similarity_search_with_score_by_vector(question.vector.tolist(), k=K)
        return [uuid.UUID(document.id).int for document, _ in found]

    def ask_both(question: Question) -> list[int]:
        found = fused.similarity_search_with_score_by_vector(
            question.vector.tolist(), k=K, fts_query=question.text
        )
        return [uuid.UUID(document.id).int for document, _ in found]

    return [
        _Library("LangChain PGVectorStore", VECTORS, made, act, ask, "table made for its hybrid search"),
        _Library(
            "LangChain PGVectorStore, hybrid",
            None,
            made,
            act,
            ask_both,
            "all of the words; a weighted sum of scores",
        ),
    ]


def llamaindex_systems(
    dsn: str, connect: Callable[[], Connection], corpus: Corpus, access: Access
) -> list[System]:
    """Return PGVectorStore of LlamaIndex by vectors, and its two modes fused as its documentation advises."""
    from llama_index.core import VectorStoreIndex
    from llama_index.core.embeddings import MockEmbedding
    from llama_index.core.llms import MockLLM
    from llama_index.core.retrievers import QueryFusionRetriever
    from llama_index.core.schema import QueryBundle, TextNode
    from llama_index.core.vector_stores.types import VectorStoreQuery
    from llama_index.vector_stores.postgres import PGVectorStore
    from sqlalchemy import create_engine, text
    from sqlalchemy.ext.asyncio import create_async_engine

    url = sqlalchemy_url(dsn, "psycopg2")

    def store(engine: Any, **given: Any) -> PGVectorStore:
        return PGVectorStore(
            table_name="llamaindex",
            schema_name="bench",
            embed_dim=int(corpus.documents.shape[1]),
            hybrid_search=True,
            text_search_config="english",
            use_jsonb=True,
            indexed_metadata_keys={("readers", "text[]")},
            engine=engine,
            async_engine=create_async_engine(sqlalchemy_url(dsn, "asyncpg")),
            initialization_fail_on_error=True,
            **given,
        )

    def hnsw() -> dict[str, Any]:
        return {
            "hnsw_m": 16,
            "hnsw_ef_construction": 64,
            "hnsw_ef_search": 40,
            "hnsw_dist_method": "vector_cosine_ops",
        }

    start = time.perf_counter()
    owner = create_engine(url)
    filling = store(owner)
    for rows in _batches(len(corpus.texts)):
        filling.add(
            [
                TextNode(
                    id_=str(row),
                    text=corpus.texts[row],
                    metadata={"readers": access.readers(row)},
                    embedding=corpus.documents[row].tolist(),
                )
                for row in rows
            ]
        )
    # The index over all rows at once.
    store(owner, hnsw_kwargs=hnsw())._initialize()
    made = _finish(connect(), "data_llamaindex", "(metadata_ -> 'readers')", "?|", (), start)
    engine = create_engine(url, pool_size=1, max_overflow=0, connect_args={"options": f"-c role={_ROLE}"})
    asked = store(engine, hnsw_kwargs=hnsw(), perform_setup=False)
    index = VectorStoreIndex.from_vector_store(
        asked, embed_model=MockEmbedding(embed_dim=int(corpus.documents.shape[1]))
    )
    fusion = QueryFusionRetriever(
        [
            index.as_retriever(vector_store_query_mode="default", similarity_top_k=CANDIDATES),
            index.as_retriever(vector_store_query_mode="sparse", similarity_top_k=CANDIDATES),
        ],
        similarity_top_k=K,
        # One: no model writes more queries.
        num_queries=1,
        mode="relative_score",
        use_async=False,
        llm=MockLLM(),
    )

    def act(question: Question) -> None:
        with engine.begin() as connection:
            connection.execute(text(_ASK), {"who": ",".join(question.principals)})

    def ask(question: Question) -> list[int]:
        query = VectorStoreQuery(query_embedding=question.vector.tolist(), similarity_top_k=K)
        return [int(node_id) for node_id in asked.query(query).ids or []]

    def ask_both(question: Question) -> list[int]:
        found = fusion.retrieve(QueryBundle(question.text, embedding=question.vector.tolist()))
        return [int(each.node.node_id) for each in found]

    return [
        _Library("LlamaIndex PGVectorStore", VECTORS, made, act, ask, "table made for its hybrid search"),
        _Library(
            "LlamaIndex QueryFusionRetriever",
            None,
            made,
            act,
            ask_both,
            "any of the words; relative scores",
        ),
    ]


class _Library:
    """A search by a library's own call; making the caller known isn't timed."""

    def __init__(
        self,
        name: str,
        kind: str | None,
        made: Made,
        act: Callable[[Question], None],
        search: Callable[[Question], Sequence[int]],
        note: str,
    ) -> None:
        self.name, self.kind, self.made, self.note = name, kind, made, note
        self._act, self._search = act, search

    def ask(self, question: Question) -> Answer:
        """Search as one caller."""
        self._act(question)
        start = time.perf_counter()
        rows = list(self._search(question))
        return Answer(rows, 1000 * (time.perf_counter() - start))

    def plan(self, question: Question) -> str:
        """Say nothing: the library's statements aren't seen."""
        del question
        return ""


def _batches(count: int) -> Iterator[range]:
    for first in range(0, count, _BATCH):
        yield range(first, min(first + _BATCH, count))


def _finish(
    connection: Connection, table: str, readers: str, operator: str, indexes: Sequence[str], start: float
) -> Made:
    """Put a library's table under the policy, and add what indexes it doesn't make; return what making it took."""
    with connection:
        secure(connection, table, readers, operator)
        for index in indexes:
            connection.execute(f"create index on bench.{table} using {index}".encode())
        seconds = time.perf_counter() - start
        say(f"{table}: loaded and indexed in {seconds:.0f} s")
        return Made(seconds, size_of(connection, table))
