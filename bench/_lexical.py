"""What ``lexical.py`` measures beside pgrag: layouts in the schema ``bench`` of the same database, and bm25s in memory.

Nothing of the analysis of a query counts for them: they are given the lexemes. They are under the policy that
the posting table has, or filter by ``acl_id`` themselves.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import bm25s  # type: ignore[import-untyped]
import numpy as np
import psycopg
from numpy.typing import NDArray

Connection = psycopg.Connection[tuple[Any, ...]]
Found = list[tuple[int, float]]
COLLECTION = "bench"
K = 10
# Of scores: pgrag adds in fixed point, PostgreSQL's float sums differ in the last bits.
TOLERANCE = 1e-5
VISIBLE = "/* visible */"
FILTER = "and acl_id = any(%(acl_ids)s::int[])"
PARSE = """
    select array(select hashtextextended(u.term collate "C", 0) from unnest(p.terms) as u (term)), p.counts, p.terms
    from pgrag._parse_query('english', %s) as p
    where cardinality(p.prefixes) = 0 and p.required is null and p.excluded is null
"""
MAKE_LAYOUTS = (
    "drop schema if exists bench cascade",
    "create schema bench",
    "create table bench.passage (chunk_id bigint primary key, acl_id int not null, content text not null, tsv tsvector not null)",
    """
    create table bench.posting (
        term bigint not null, chunk_id bigint not null, acl_id int not null, tf smallint not null, length smallint not null
    )
    """,
    "create table bench.stat (acl_id int not null, chunks bigint not null, lexemes bigint not null)",
)
FILL_PASSAGE = """
    insert into bench.passage (chunk_id, acl_id, content, tsv)
    select c.chunk_id, c.acl_id, c.context || E'\n' || c.content, c.tsv
    from pgrag.chunk as c
    where c.collection_id = %(collection_id)s and c.chunk_id > %(after)s
"""
FILL_POSTING = """
    insert into bench.posting (term, chunk_id, acl_id, tf, length)
    select hashtextextended(l.lexeme collate "C", 0), c.chunk_id, c.acl_id, least(cardinality(l.positions), 255), c.lexeme_count
    from pgrag.chunk as c
    cross join lateral unnest(c.tsv) as l
    where c.collection_id = %(collection_id)s and c.chunk_id > %(after)s
"""
FILL_STAT = """
    insert into bench.stat (acl_id, chunks, lexemes)
    select c.acl_id, count(*), sum(c.lexeme_count)
    from pgrag.chunk as c
    where c.collection_id = %(collection_id)s
    group by c.acl_id
"""
INDEX_LAYOUTS = (
    "create index passage_tsv_idx on bench.passage using gin (tsv)",
    "create index posting_term_idx on bench.posting (term, acl_id, chunk_id) include (tf, length)",
    "create index stat_acl_idx on bench.stat (acl_id)",
    "grant usage on schema bench to pgrag_reader",
    "grant select on all tables in schema bench to pgrag_reader",
)
INDEX_TEXTSEARCH = (
    "create index passage_content_idx on bench.passage using bm25 (content) with (text_config = 'english')"
)
# What PostgreSQL alone makes of the passages.
MAKE_PLAIN = (
    "create table bench.plain as select p.chunk_id, to_tsvector('english', p.content) as tsv from bench.passage as p",
    "create index plain_tsv_idx on bench.plain using gin (tsv)",
)
DROP_EDITED = (
    """
    delete from bench.posting as p
    using (
        select hashtextextended(l.lexeme collate "C", 0) as term, c.acl_id, c.chunk_id
        from bench.passage as c
        cross join lateral unnest(c.tsv) as l
        where c.chunk_id = any(%(before)s)
            and not exists (
                select from pgrag.chunk as k where k.collection_id = %(collection_id)s and k.chunk_id = c.chunk_id
            )
    ) as o
    where p.term = o.term and p.acl_id = o.acl_id and p.chunk_id = o.chunk_id
    """,
    """
    delete from bench.passage as c
    where c.chunk_id = any(%(before)s)
        and not exists (
            select from pgrag.chunk as k where k.collection_id = %(collection_id)s and k.chunk_id = c.chunk_id
        )
    """,
)
PGRAG = "select chunk_id, score from pgrag.search_lexical(%(query)s, %(k)s, array[%(collection)s])"
TS_RANK = """
    select chunk_id, ts_rank_cd(tsv, %(tsquery)s::tsquery) as score
    from bench.passage
    where tsv @@ %(tsquery)s::tsquery /* visible */
    order by score desc
    limit %(k)s
"""
ROWS = """
    with wanted as materialized (
        select u.term, u.n from unnest(%(terms)s::bigint[], %(counts)s::int[]) as u (term, n)
    ),

    hit as materialized (
        select p.term, p.chunk_id, p.tf, p.length from bench.posting as p
        where p.term = any(%(terms)s::bigint[]) /* visible */
    ),

    corpus as materialized (
        select sum(s.chunks)::float8 as chunks, (sum(s.lexemes) / sum(s.chunks))::float8 as average
        from bench.stat as s
        where true /* visible */
    ),

    weight as materialized (
        select f.term, w.n * ln(1 + (c.chunks - f.df + 0.5) / (f.df + 0.5)) * (%(k1)s + 1) as most
        from (select h.term, count(*)::float8 as df from hit as h group by h.term) as f
        inner join wanted as w on w.term = f.term
        cross join corpus as c
    ),

    unit as materialized (
        select power(2::float8, 51 - ceil(log(2, sum(w.most order by w.term)::numeric))::float8) as one from weight as w
    ),

    scored as (
        select h.chunk_id,
            sum(round(
                w.most * u.one * h.tf / (h.tf + %(k1)s * (1 - %(b)s) + h.length * (%(k1)s * %(b)s / c.average))
            )) as points
        from hit as h
        inner join weight as w on w.term = h.term
        cross join unit as u
        cross join corpus as c
        group by h.chunk_id
        order by points desc, h.chunk_id
        limit %(k)s
    )

    select s.chunk_id, s.points / u.one as score from scored as s cross join unit as u order by s.points desc, s.chunk_id
"""
TEXTSEARCH = """
    select chunk_id, -(content <@> to_bm25query(%(query)s, 'bench.passage_content_idx')) as score
    from bench.passage
    where true /* visible */
    order by content <@> to_bm25query(%(query)s, 'bench.passage_content_idx')
    limit %(k)s
"""
PLAIN = """
    select chunk_id, ts_rank_cd(tsv, q.q) as score
    from bench.plain cross join (select replace(plainto_tsquery('english', %(query)s)::text, '&', '|')::tsquery as q) as q
    where tsv @@ q.q
    order by score desc
    limit %(k)s
"""


@dataclass(frozen=True)
class Query:
    """A query, and what each system is given of it.

    Attributes:
        text: As somebody types it.
        terms: Hashes of its lexemes, as in the posting table.
        counts: How often each stands in it.
        tsquery: Its lexemes, OR-ed.
    """

    text: str
    terms: tuple[int, ...]
    counts: tuple[int, ...]
    tsquery: str


@dataclass(frozen=True)
class Caller:
    """Who asks: the share of the passages that they see, and through which ACLs."""

    name: str
    share: float
    acl_ids: list[int]


@dataclass(frozen=True)
class System:
    """One way to search; where it isn't secured, it runs as a superuser and filters by itself."""

    name: str
    secured: bool
    search: Callable[[Connection, Query, Caller], Found]

    @property
    def label(self) -> str:
        """Return its name, and whether row-level security is on."""
        return self.name if self.secured or self.name == "bm25s" else f"{self.name}, no RLS"


class InMemory:
    """bm25s over the postings that the row-per-posting layout holds: what can be had without a database."""

    def __init__(self, connection: Connection) -> None:
        # A row of COPY's binary format: how many fields, then each after its length.
        kinds = (("term", ">i8"), ("chunk", ">i8"), ("tf", ">i2"), ("acl", ">i4"))
        packed = np.dtype(
            [("fields", ">i2"), *(part for kind in kinds for part in ((f"{kind[0]}_bytes", ">i4"), kind))]
        )
        with (
            connection.cursor() as cursor,
            cursor.copy(
                "copy (select term, chunk_id, tf, acl_id from bench.posting) to stdout (format binary)"
            ) as copy,
        ):
            read = b"".join(bytes(block) for block in copy)
        rows = np.frombuffer(read, packed, (len(read) - 19) // packed.itemsize, 19)
        del read
        terms, term = np.unique(rows["term"].astype(np.int64), return_inverse=True)
        chunks, first, place = np.unique(
            rows["chunk"].astype(np.int64), return_index=True, return_inverse=True
        )
        order = np.argsort(place, kind="stable")
        tf = rows["tf"].astype(np.int64)
        tokens = np.repeat(term[order], tf[order]).tolist()
        ends = np.cumsum(np.bincount(place, weights=tf).astype(np.int64)).tolist()
        documents = [tokens[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        self._chunk_ids = chunks
        self._acl_ids = rows["acl"].astype(np.int64)[first]
        self._token = {int(name): number for number, name in enumerate(terms)}
        self._masks: dict[str, NDArray[np.float32]] = {}
        self._index = bm25s.BM25(k1=1.2, b=0.75, method="lucene")
        start = time.perf_counter()
        self._index.index((documents, {str(n): n for n in range(len(terms))}), show_progress=False)
        self.seconds = time.perf_counter() - start

    def search(self, connection: Connection, query: Query, caller: Caller) -> Found:
        """Score all chunks, then those that the caller may see."""
        del connection
        tokens = [
            self._token[term]
            for term, count in zip(query.terms, query.counts, strict=True)
            if term in self._token
            for _ in range(count)
        ]
        if not tokens:
            return []
        mask = None
        if caller.share < 1:
            if caller.name not in self._masks:
                self._masks[caller.name] = np.isin(self._acl_ids, caller.acl_ids).astype(np.float32)
            mask = self._masks[caller.name]
        found, scores = self._index.retrieve(
            [tokens], k=min(K, len(self._chunk_ids)), show_progress=False, weight_mask=mask
        )
        return [
            (int(self._chunk_ids[place]), float(score))
            for place, score in zip(found[0], scores[0], strict=True)
            if score > 0
        ]


def by_sql(statement: str, collection: str = COLLECTION) -> Callable[[Connection, Query, Caller], Found]:
    """Return the search that one statement does."""

    def search(connection: Connection, query: Query, caller: Caller) -> Found:
        given = {
            "query": query.text,
            "terms": list(query.terms),
            "counts": list(query.counts),
            "tsquery": query.tsquery,
            "acl_ids": caller.acl_ids,
            "collection": collection,
            "k": K,
            "k1": 1.2,
            "b": 0.75,
        }
        return connection.execute(statement, given).fetchall()

    return search


def systems_for(limit: InMemory, share: float, *, textsearch: bool) -> list[System]:
    """Return what is measured for a caller who sees that share."""
    layouts = {"ts_rank_cd": TS_RANK, "row per posting": ROWS} | (
        {"pg_textsearch": TEXTSEARCH} if textsearch else {}
    )
    everything = share == 1
    return [
        System("pgrag", True, by_sql(PGRAG)),
        *(System(name, True, by_sql(query.replace(VISIBLE, ""))) for name, query in layouts.items()),
        # Without row-level security nothing in pgrag filters for a caller who sees a part.
        *([System("pgrag", False, by_sql(PGRAG))] if everything else []),
        *(
            System(name, False, by_sql(query.replace(VISIBLE, "" if everything else FILTER)))
            for name, query in layouts.items()
        ),
        System("bm25s", False, limit.search),
    ]


def ask(
    app: Connection, superuser: Connection, caller: Caller, query: Query, systems: Sequence[System]
) -> tuple[dict[str, tuple[float, Found]], float]:
    """Ask every system one query; return milliseconds and answers, and the milliseconds of act_as.

    A connection for each kind of role: plans that depend on policies are made anew where the role changes.
    """
    answers = {}
    for secured, connection in ((True, app), (False, superuser)):
        with connection.transaction():
            connection.execute("set local role pgrag_app")
            start = time.perf_counter()
            connection.execute("select pgrag.act_as(%s)", (caller.name,))
            if secured:
                acting = 1000 * (time.perf_counter() - start)
            else:
                connection.execute("reset role")
            for system in systems:
                if system.secured is secured:
                    start = time.perf_counter()
                    found = system.search(connection, query, caller)
                    answers[system.label] = (1000 * (time.perf_counter() - start), found)
    return answers, acting


def differs(found: Found, right: Found) -> bool:
    """Whether an answer isn't the right one: other scores, or another chunk where no equal score explains it."""
    if len(found) != len(right):
        return True
    known = dict(right)
    return any(
        not math.isclose(score, there, rel_tol=TOLERANCE)
        or not math.isclose(score, known.get(chunk_id, right[-1][1]), rel_tol=TOLERANCE)
        for (chunk_id, score), (_, there) in zip(found, right, strict=True)
    )


def parsed(connection: Connection, texts: Iterable[str], count: int) -> list[Query]:
    """Return the first queries that are of words only, with their lexemes."""
    made: list[Query] = []
    for text in texts:
        row = connection.execute(PARSE, (text,)).fetchone()
        if row is None or not row[0]:
            continue
        quoted = ["'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'" for lexeme in row[2]]
        made.append(Query(text, tuple(row[0]), tuple(row[1]), " | ".join(quoted)))
        if len(made) == count:
            break
    return made


def words_of(text: str) -> str:
    """Return a text without what the query language would take for its own."""
    return re.sub(r'["“”„«»*]|(?<!\S)-|\bOR\b', " ", text)
