"""What the lexical index must say, told from the chunks alone: net postings, statistics, and BM25 in plain Python.

It reads ``chunk``, ``document``, ``corpus_stat`` and ``lexeme``, and the log by ``pgrag._unpack_postings`` only, so that
it holds for every layout of the log. Words of queries must be their own lexemes, as ``WORDS`` are.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import fsum, log
from typing import Any

import psycopg

__all__ = [
    "WORDS",
    "Document",
    "Passage",
    "Query",
    "Scores",
    "assert_found",
    "assert_index_is_right",
    "best",
    "load",
    "passages",
    "random_query",
    "score",
    "search",
    "sentence",
]

Connection = psycopg.Connection[Any]

K1, B = 1.2, 0.75

# Thirty words that English stemming leaves alone, in pairs that share a beginning, and a stop word.
WORDS = re.findall(
    r"\S+",
    "kado kadu lomo lomu belka belko tarn tarno pivot pivo gorm gorma zund zunda fank fanko dorp dorpa "
    "mulk mulko halk halka rint rinto wolm wolmo quab quabo crint the",
)
UNKNOWN = ("nowhar", "nothar", "nevar")
_WEIGHTS = [1 / rank for rank in range(1, len(WORDS) + 1)]

_WRONG_POSTINGS = """
with held as (
    select o.collection_id, p.acl_id, p.term, p.chunk_id, sum(p.sign) as n, sum(p.sign * p.tf) as tf,
        sum(p.sign * p.length) as length
    from pgrag.collection as o cross join lateral pgrag._unpack_postings(o.collection_id) as p
    group by o.collection_id, p.acl_id, p.term, p.chunk_id having sum(p.sign) <> 0
),
wanted as (
    select c.collection_id, c.acl_id, hashtextextended(l.lexeme collate "C", 0) as term, c.chunk_id, 1::bigint as n,
        least(cardinality(l.positions), 255)::bigint as tf, t.length
    from pgrag.chunk as c
    cross join lateral (
        select least(sum(least(cardinality(u.positions), 255)), 32767)::bigint as length from unnest(c.tsv) as u
    ) as t
    cross join lateral unnest(c.tsv) as l
)
select * from (
    (select 'too much' as what, h.* from held as h except all select 'too much', w.* from wanted as w)
    union all
    (select 'missing', w.* from wanted as w except all select 'missing', h.* from held as h)
) as f limit 20
"""

_WRONG_STATISTICS = """
select coalesce(s.collection_id, c.collection_id), coalesce(s.acl_id, c.acl_id), s.chunks, c.chunks, s.lexemes, c.lexemes
from (
    select s.collection_id, s.acl_id, sum(s.chunks) as chunks, sum(s.lexemes) as lexemes
    from pgrag.corpus_stat as s group by s.collection_id, s.acl_id having sum(s.chunks) <> 0 or sum(s.lexemes) <> 0
) as s
full join (
    select c.collection_id, c.acl_id, count(*) as chunks, sum(c.lexeme_count) as lexemes
    from pgrag.chunk as c group by c.collection_id, c.acl_id
) as c on c.collection_id = s.collection_id and c.acl_id = s.acl_id
where (s.chunks, s.lexemes) is distinct from (c.chunks, c.lexemes)
"""

_UNNAMED = """
select c.collection_id, c.acl_id, l.lexeme from pgrag.chunk as c cross join lateral unnest(c.tsv) as l
except select x.collection_id, x.acl_id, x.lexeme from pgrag.lexeme as x
"""

_COPY = (
    "copy pgrag.staging (batch_id, uri, language, metadata, content_hash, readers, content, ordinal, char_start, char_end,"
    " context, token_count) from stdin"
)
_BATCH = "00000000-0000-0000-0000-000000000002"


def assert_index_is_right(connection: Connection, *, whole: bool = True, drifted: bool = False) -> None:
    """The log, the statistics and the lexemes say what an index made anew from the chunks would.

    Args:
        connection: A superuser's.
        whole: Ask ``pgrag.check`` as well, which analyses every chunk again.
        drifted: Chunks were changed apart from their documents' texts, so that check may say ``span``.
    """
    assert connection.execute(_WRONG_POSTINGS).fetchall() == []
    assert connection.execute(_WRONG_STATISTICS).fetchall() == []
    assert connection.execute(_UNNAMED).fetchall() == []
    if whole:
        findings = connection.execute("select * from pgrag.check()").fetchall()
        assert [row for row in findings if not (drifted and row[0] == "span")] == []


@dataclass(frozen=True, slots=True)
class Document:
    """What a document is put with; its chunks are given, not cut."""

    uri: str
    chunks: tuple[str, ...]
    readers: tuple[str, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    language: str | None = None

    @property
    def content(self) -> str:
        return "\n\n".join(self.chunks)


def load(connection: Connection, documents: Iterable[Document], *, collection: str = "docs") -> None:
    """Put documents by COPY into the staging table and one statement, in one transaction."""
    documents = list(documents)
    names = sorted({reader.lstrip("!") for document in documents for reader in document.readers})
    with connection.transaction(), connection.cursor() as cursor:
        cursor.execute("select pgrag.create_principals(variadic %s::text[])", (names,))
        with cursor.copy(_COPY) as copy:
            for document in documents:
                about = (json.dumps(document.metadata), b"", list(document.readers), document.content)
                copy.write_row((_BATCH, document.uri, document.language, *about, *[None] * 5))
                start = 0
                for ordinal, text in enumerate(document.chunks):
                    place = (ordinal, start, start + len(text))
                    copy.write_row((_BATCH, document.uri, *[None] * 4, text, *place, "", 1))
                    start += len(text) + 2
        cursor.execute("select pgrag.load_staged(%s, %s)", (collection, _BATCH))


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk as the index counts it: for each lexeme the positions that the tsvector holds."""

    chunk_id: int
    collection: str
    uri: str
    ordinal: int
    metadata: Mapping[str, Any]
    positions: Mapping[str, tuple[int, ...]]

    @property
    def length(self) -> int:
        return min(sum(min(len(places), 255) for places in self.positions.values()), 32767)


@lru_cache(maxsize=20_000)
def _positions(tsv: str) -> dict[str, tuple[int, ...]]:
    found = re.findall(r"'((?:[^']|'')*)':([\d,]+)", tsv)
    return {
        word.replace("''", "'"): tuple(int(place) for place in places.split(",")) for word, places in found
    }


def passages(connection: Connection) -> list[Passage]:
    """Return every chunk, in the order of chunk_id; the connection is a superuser's."""
    rows = connection.execute(
        """select c.chunk_id, o.name, d.uri, c.ordinal, d.metadata, c.tsv::text
        from pgrag.chunk as c
        join pgrag.document as d using (collection_id, document_id)
        join pgrag.collection as o using (collection_id)
        order by c.chunk_id"""
    )
    return [Passage(*row[:5], _positions(row[5])) for row in rows]


@dataclass(frozen=True, slots=True)
class Query:
    """A query in parts, so that its meaning needs no parser."""

    words: tuple[str, ...] = ()
    phrases: tuple[tuple[str, ...], ...] = ()
    excluded: tuple[tuple[str, ...], ...] = ()
    prefixes: tuple[str, ...] = ()
    filter: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        parts = [*self.words, *(f"{prefix}*" for prefix in self.prefixes)]
        parts += [f'"{" ".join(phrase)}"' for phrase in self.phrases]
        parts += [f"-{one[0]}" if len(one) == 1 else f'-"{" ".join(one)}"' for one in self.excluded]
        return " ".join(parts)


def sentence(random_: random.Random, length: int) -> str:
    """Words of ``WORDS``, few of them frequent and most rare, as in prose."""
    return " ".join(random_.choices(WORDS, _WEIGHTS, k=length))


def random_query(random_: random.Random) -> Query:
    """One to eight words, known or not, once or more; sometimes phrases, exclusions, prefixes and a filter."""
    # As often rare words as frequent ones.
    words = random_.choices(WORDS, random_.choice([_WEIGHTS, None]), k=random_.randint(1, 8))
    if random_.random() < 0.2:
        words = random_.choices([*words[:3], random_.choice(UNKNOWN)], k=len(words))
    chosen = WORDS[:-1]  # a stop word has no place in a phrase
    return Query(
        words=tuple(words) if random_.random() < 0.9 else (),
        phrases=tuple(tuple(random_.choices(chosen[:8], k=2)) for _ in range(random_.random() < 0.15)),
        excluded=tuple(
            tuple(random_.choices(chosen, k=random_.choice([1, 1, 2]))) for _ in range(random_.random() < 0.2)
        ),
        prefixes=tuple(
            random_.choice(chosen)[: random_.randint(2, 4)] for _ in range(random_.random() < 0.2)
        ),
        filter=random_.choice([{}, {}, {}, {}, {"third": 1}, {"tenth": 3}, {"third": 9}]),
    )


# Score and what it was added up from, by chunk_id: equal parts are a tie for certain, equal sums of others are not.
Scores = dict[int, tuple[float, tuple[float, ...]]]


def _holds(passage: Passage, phrase: Sequence[str]) -> bool:
    first = passage.positions.get(phrase[0], ())
    return any(
        all(start + step in passage.positions.get(word, ()) for step, word in enumerate(phrase))
        for start in first
    )


def score(visible: Sequence[Passage], query: Query, *, k1: float = K1, b: float = B) -> Scores:
    """Score what somebody sees, each collection by its own statistics, as design and comments say.

    Each distinct word that a prefix begins counts once, unless the query has it as a word.
    """
    found: Scores = {}
    for collection in {passage.collection for passage in visible}:
        own = [passage for passage in visible if passage.collection == collection]
        counts = Counter([*query.words, *(word for phrase in query.phrases for word in phrase)])
        if query.prefixes:
            counts.update(
                {word for p in own for word in p.positions if word.startswith(query.prefixes)} - set(counts)
            )
        average = sum(passage.length for passage in own) / len(own)
        idf = {}
        for word in counts:
            df = sum(word in passage.positions for passage in own)
            idf[word] = log(1 + (len(own) - df + 0.5) / (df + 0.5))
        for passage in own:
            parts = []
            norm = k1 * (1 - b + b * passage.length / average) if average else k1
            for word, n in counts.items():
                if word in passage.positions:
                    tf = min(len(passage.positions[word]), 255)
                    parts.append(n * idf[word] * (k1 + 1) * tf / (tf + norm))
            if (
                parts
                and all(_holds(passage, phrase) for phrase in query.phrases)
                and not any(_holds(passage, phrase) for phrase in query.excluded)
                and all(passage.metadata.get(name) == value for name, value in query.filter.items())
            ):
                found[passage.chunk_id] = (fsum(parts), tuple(sorted(parts)))
    return found


def best(scores: Scores, k: int) -> list[int]:
    """The best k, ties by chunk_id."""
    return sorted(scores, key=lambda chunk_id: (-scores[chunk_id][0], chunk_id))[:k]


def search(
    connection: Connection, principals: Sequence[str], query: Query, k: int
) -> list[tuple[int, int, float]]:
    """Return chunk_id, rank and score of what an application finds for somebody, in the connection's own transaction."""
    with connection.transaction(force_rollback=True):
        connection.execute("set local role pgrag_app")
        connection.execute("select pgrag.act_as(variadic %s::text[])", (list(principals),))
        return connection.execute(
            "select chunk_id, rank, score from pgrag.search_lexical(%s, %s, null, %s) order by rank",
            (query.text, k, json.dumps(query.filter)),
        ).fetchall()


def assert_found(
    rows: Sequence[tuple[int, int, float]], expected: Scores, k: int, *, relative: float = 1e-7
) -> None:
    """The rows are the best k: ids, order and scores.

    Scores may differ in rounding, so whose scores are that near may change places: a word gives whole points, of which the
    best possible score has 2 ^ 39 at least, and a word that is nearly everywhere gives a ten-thousandth of it. Where a
    score is the sum of equal parts, it is equal to the bit, and the lower chunk_id comes first.
    """
    wanted = best(expected, k)
    assert [rank for _, rank, _ in rows] == list(range(1, len(wanted) + 1))
    assert [(-score_, chunk_id) for chunk_id, _, score_ in rows] == sorted((-s, c) for c, _, s in rows)
    bits: dict[tuple[float, ...], float] = {}
    for (chunk_id, _, given), due in zip(rows, wanted, strict=True):
        assert chunk_id in expected, f"chunk {chunk_id} matches nothing, or is hidden"
        value, parts = expected[chunk_id]
        assert abs(given - value) <= relative * value, f"chunk {chunk_id}: {given}, should be {value}"
        assert bits.setdefault(parts, given) == given, f"chunk {chunk_id}: a tie that is none"
        if chunk_id != due:
            due_value, due_parts = expected[due]
            assert due_parts != parts, f"chunk {chunk_id} stands before {due}, and they are equal"
            assert abs(value - due_value) <= relative * value, f"chunk {chunk_id} stands where {due} should"
    assert len({chunk_id for chunk_id, _, _ in rows}) == len(rows)
