"""Serves no stage but the choice before the first: what so many passages take to keep, to index, to search and to read.

Sizes follow from how PostgreSQL and pgvector fill pages. What depends on the machine comes from a space that was
calibrated and built on it, what depends on the texts from the passages of the database, and else from what is usual.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg

from pgrag.errors import PgragError, translated
from pgrag.spaces import find_space

if TYPE_CHECKING:
    from pgrag.embed import Encoder
    from pgrag.spaces import Space

__all__ = [
    "SEARCH_MS",
    "Answering",
    "Building",
    "Memory",
    "Plan",
    "Searching",
    "Storage",
    "TextFigures",
    "build_seconds",
    "encoding_rate",
    "index_bytes",
    "plan",
    "table_bytes",
    "text_bytes",
]

# PostgreSQL, in bytes: a page, its header, the pointer to a row, the headers of a row and of an index entry.
_PAGE = 8192
_PAGE_HEADER = 24
_POINTER = 4
_ROW_HEADER = 24
_ENTRY_HEADER = 8
# A longer row is cut: a vector goes to the side table in pieces, uncompressed.
_TOAST_AT = 2032
_TOAST_PIECE = 1996
_TOAST_PIECE_HEADER = 36
_TOAST_POINTER = 18
# A B-tree that grows at its end is packed to this share.
_PACKED = 0.9
# pgvector keeps 8 bytes at the end of each page of an index. An hnsw element has room for ten rows with the same vector.
_INDEX_ROOM = _PAGE - _PAGE_HEADER - 8
_HNSW_ELEMENT = 72
# Entries of equal keys share them: a row's place and little more.
_ACL_ENTRY = 8.6

# Fewer passages don't tell what texts take.
_FEWEST_CHUNKS = 1000

# Postings in a row at most.
_RUN = 240

SEARCH_MS = 2.0
"""Milliseconds that a search takes whatever it compares: rights, statistics and plans."""

_PRECISIONS = ("vector", "halfvec", "bit")
_INDEXES = ("hnsw", "ivfflat", "none")
# Microseconds to build a vector into hnsw with m 16 and ef_construction 64 among 20,000, by one process, and per number of it.
_BUILD_US = 150.0
_BUILD_US_PER_NUMBER = 0.8
_BUILD_AMONG = 20_000
_BUILD_POWER_OF_M = 1.3
# And into ivfflat, per number of it, and per number and list: it is compared with each.
_LISTS_US = 2.0
_LISTS_US_PER_NUMBER = 0.035
_LISTS_US_PER_LIST = 0.0002
# Passages with n tokens have so many times n ** 0.7 postings: words that occur again count once.
_POSTINGS_POWER = 0.7


@dataclass(frozen=True)
class TextFigures:
    """What texts take; the values here are of English documentation, as ``bench/plan.py`` measures them.

    Attributes:
        postings: Of a passage with n tokens, divided by n ** 0.7.
        heaps: Different words among n tokens under one ACL, divided by n ** ``heaps_power``: Heaps' law.
        heaps_power: See ``heaps``.
        chunk_bytes: Of a passage's row with its indexes, whatever its length.
        chunk_bytes_per_token: And for each token of it: text, context and tsvector.
        document_bytes: Of a document's rows, whatever its length.
        document_bytes_per_token: And for each token of it.
        compressed_from: Bytes of a document's text, beyond which it takes half as much.
        run_bytes: Of a row of postings with its index entry, without the postings, which take 8 each.
        lexeme_bytes: Of a word under an ACL, kept for prefix queries.
        of: Where this is from, in words.
    """

    postings: float = 1.547
    heaps: float = 2.06
    heaps_power: float = 0.7
    chunk_bytes: float = 680.0
    chunk_bytes_per_token: float = 6.5
    document_bytes: float = 590.0
    document_bytes_per_token: float = 3.4
    compressed_from: float = 1700.0
    run_bytes: float = 118.0
    lexeme_bytes: float = 93.0
    of: str = "usual for English documentation"


@dataclass(frozen=True)
class Storage:
    """Bytes on disk, without the write-ahead log, and before rows that are dead.

    Attributes:
        documents: Documents and their texts.
        chunks: Passages, with their indexes.
        postings: The lexical index, merged.
        vectors: The table of vectors, with its two B-trees.
        index: The approximate index.
        total: Their sum.
        vector_bytes: Of one vector's value, by its precision.
    """

    documents: int
    chunks: int
    postings: int
    vectors: int
    index: int
    total: int
    vector_bytes: int


@dataclass(frozen=True)
class Memory:
    """Bytes of memory.

    Attributes:
        build: What building the approximate index takes; with less, hnsw is many times slower and ivfflat refuses.
        maintenance_work_mem: What the server allows a build.
        build_fits: Whether that is enough.
        hot: What searches read: the approximate index, or all vectors where there is none, and the lexical index.
        shared_buffers: The server's; the system's cache holds more.
    """

    build: int
    maintenance_work_mem: int
    build_fits: bool
    hot: int
    shared_buffers: int


@dataclass(frozen=True)
class Building:
    """Seconds.

    Attributes:
        index: To build the approximate index, by one process; two take somewhat more than half.
        embed: To embed the passages; None where no rate is known.
        index_from: Where ``index`` is from, in words.
        chunks_per_second: The rate of ``embed``.
    """

    index: float
    embed: float | None
    index_from: str
    chunks_per_second: float | None


@dataclass(frozen=True)
class Searching:
    """A dense search for somebody.

    Attributes:
        visible: Passages that they see.
        k: Passages asked for.
        exact_ms: To compare all that they see.
        index_ms: Through the index; None where it would not be tried.
        effort: Of the index: ef_search or probes; 0 where it would not be tried.
        reason: Why, as ``dense_plan`` says it.
        rerank_ms: For the pairs that are reranked; None where the time of one isn't given.
        costs_from: Where the times are from, in words.
    """

    visible: int
    k: int
    exact_ms: float
    index_ms: float | None
    effort: int
    reason: str
    rerank_ms: float | None
    costs_from: str


@dataclass(frozen=True)
class Answering:
    """What a generator reads for one question: the passages that were found, or all there is.

    Attributes:
        retrieved_tokens: Of the passages that are packed.
        everything_tokens: Of all passages.
        fits: Whether all would fit into the context; None where its size isn't given.
        retrieved_cost: Price of reading the passages.
        everything_cost: Price of reading all; None, as the price before, where none is given.
        retrieved_seconds: Time to read the passages.
        everything_seconds: Time to read all; None, as the time before, where no rate is given.
    """

    retrieved_tokens: int
    everything_tokens: int
    fits: bool | None
    retrieved_cost: float | None
    everything_cost: float | None
    retrieved_seconds: float | None
    everything_seconds: float | None


@dataclass(frozen=True)
class Plan:
    """What so many passages take.

    Attributes:
        chunks: How many.
        dimension: Numbers per vector.
        precision: ``vector``, ``halfvec`` or ``bit``.
        index_kind: ``hnsw``, ``ivfflat`` or ``none``.
        index_options: ``m`` and ``ef_construction``, or ``lists``, as they would be.
        average_tokens: Tokens in a passage.
        acls: Different sets of readers.
        texts_from: Where the figures of texts are from, in words.
        storage: Bytes on disk.
        memory: Bytes of memory.
        building: Seconds, once.
        searching: For who sees all and for who sees less.
        answering: A prompt by retrieval, and one with everything.
    """

    chunks: int
    dimension: int
    precision: str
    index_kind: str
    index_options: Mapping[str, int]
    average_tokens: int
    acls: int
    texts_from: str
    storage: Storage
    memory: Memory
    building: Building
    searching: tuple[Searching, ...]
    answering: Answering


def value_bytes(dimension: int, precision: str) -> int:
    """Return the bytes of one vector's value in an index: 4 a number, 2, or an eighth, and 8."""
    return 8 + {"vector": 4 * dimension, "halfvec": 2 * dimension, "bit": -(-dimension // 8)}[precision]


def table_bytes(vectors: int, dimension: int, precision: str) -> int:
    """Return the bytes of the table of vectors with its primary key and its index over ACLs.

    A row has a header of 24, passage, collection and ACL in 16, and its value: at ``bit`` the halfvec and the code. Where
    that is more than 2,032 the value is kept beside, in pieces of 1,996.
    """
    value = value_bytes(dimension, "vector" if precision == "vector" else "halfvec")
    code = _short(value_bytes(dimension, "bit")) if precision == "bit" else 0
    row, beside = _aligned(_ROW_HEADER + 16 + value + code), 0.0
    if row > _TOAST_AT:
        row = _aligned(_ROW_HEADER + 16 + _TOAST_POINTER + code)
        whole, rest = divmod(value - 4, _TOAST_PIECE)
        pieces = [_TOAST_PIECE] * whole + ([rest] if rest else [])
        beside = _paged([_aligned(_TOAST_PIECE_HEADER + piece) for piece in pieces])
        beside += len(pieces) * _btree_entry(8)
    return math.ceil(vectors * (_row_share(row) + beside + _btree_entry(16) + _ACL_ENTRY))


def index_bytes(
    vectors: int, dimension: int, precision: str, kind: str, options: Mapping[str, int] | None = None
) -> int:
    """Return the bytes of the approximate index.

    hnsw: an element (72 bytes and the value) and its neighbours (6 bytes for each of 2 ``m``, and ``m`` a level above)
    stand on one page where both fit; a vector reaches each level above with probability 1 / ``m``. ivfflat: an entry of 8
    bytes and the value, and for each list half a page that isn't filled, and its centre.
    """
    options = options or {}
    value = value_bytes(dimension, precision)
    if kind == "ivfflat":
        lists = options.get("lists") or usual_lists(vectors)
        entries = _INDEX_ROOM // (_aligned(_ENTRY_HEADER + _short(value)) + _POINTER)
        centres = _INDEX_ROOM // (_aligned(8 + value) + _POINTER)
        return math.ceil(_PAGE * (vectors / entries + lists / 2 + lists / centres + 1))
    if kind != "hnsw":
        return 0
    m = options.get("m", 16)
    element = _aligned(_HNSW_ELEMENT + value)
    pages, level, share = 1.0, 0, 1.0
    while share * vectors >= 1:
        # Elements whose highest level this is.
        here = share * (1 - 1 / m)
        neighbours = _aligned(4 + 6 * m * (level + 2))
        both = element + neighbours + 2 * _POINTER
        pages += here * vectors * (1 / (_INDEX_ROOM // both) if both <= _INDEX_ROOM else 2)
        share /= m
        level += 1
    return math.ceil(_PAGE * pages)


def usual_lists(vectors: int) -> int:
    """Return the lists of ivfflat that ``pgrag space build`` makes: one for 1,000 vectors up to a million, then the root."""
    return round(max(10, min(32768, math.sqrt(vectors) if vectors > 1_000_000 else vectors / 1000)))


def text_bytes(
    chunks: int, average_tokens: float, acls: int, documents: float, figures: TextFigures
) -> tuple[int, int, int]:
    """Return the bytes of documents, of passages, and of the lexical index with its words.

    A row holds at most 240 postings of one word under one ACL, 8 bytes each. So the more ACLs there are, the more rows:
    Heaps' law says how many words there are under each.
    """
    text = chunks * average_tokens / max(documents, 1e-9) * figures.document_bytes_per_token
    postings = chunks * figures.postings * average_tokens**_POSTINGS_POWER
    under_each = chunks * average_tokens / acls
    words = min(postings / acls, figures.heaps * under_each**figures.heaps_power)
    rows = words + _further_rows(postings / acls, words, chunks / acls)
    return (
        math.ceil(documents * (figures.document_bytes + text - max(0.0, text - figures.compressed_from) / 2)),
        math.ceil(chunks * (figures.chunk_bytes + average_tokens * figures.chunk_bytes_per_token)),
        math.ceil(8 * postings + acls * (figures.run_bytes * rows + figures.lexeme_bytes * words)),
    )


def _further_rows(postings: float, words: float, chunks: float) -> float:
    """Return how many rows more than one a word there are, where the word of rank r has 1 / r of the first's postings (Zipf)."""
    if words < 2:
        return 0.0
    first = postings / (math.log(words) + 0.5772)
    last = min(words, first / _RUN)  # the rank of the last word with a full row
    capped = min(last, first / chunks)  # those before it are in every passage
    if last <= 1:
        return 0.0
    held = chunks * capped + first * math.log(last / max(capped, 1e-9)) if capped < last else chunks * capped
    return max(0.0, held / _RUN - last / 2)


def build_seconds(
    vectors: int, dimension: int, precision: str, kind: str, options: Mapping[str, int] | None = None
) -> float:
    """Return the seconds that one process usually takes to build an index in memory.

    hnsw: each vector is searched for with ``ef_construction``, which takes half of the time at 64, and longer by the logarithm of
    those that are there; the more neighbours (``m``) the more is compared. Fitted to what ``bench/plan.py`` measures.
    ivfflat: each vector is compared with every list.
    """
    options = options or {}
    if kind == "ivfflat":
        lists = options.get("lists") or usual_lists(vectors)
        return vectors * 1e-6 * (_LISTS_US + dimension * (_LISTS_US_PER_NUMBER + lists * _LISTS_US_PER_LIST))
    if kind != "hnsw" or vectors < 2:
        return 0.0
    numbers = dimension / 8 if precision == "bit" else dimension
    grown = math.log(vectors) / math.log(_BUILD_AMONG)
    effort = (
        (1 + options.get("ef_construction", 64) / 64) / 2 * (options.get("m", 16) / 16) ** _BUILD_POWER_OF_M
    )
    return float(vectors * 1e-6 * (_BUILD_US + _BUILD_US_PER_NUMBER * numbers) * effort * grown)


def _aligned(size: int) -> int:
    return -(-size // 8) * 8


def _short(value: int) -> int:
    """Return the bytes of a value in a row: the header of a short one is 1 byte, not 4."""
    return value - 3 if value <= 127 else value


def _row_share(row: int) -> float:
    """Return the bytes of the table that a row takes, by how many fit on a page."""
    return _PAGE / ((_PAGE - _PAGE_HEADER) // (row + _POINTER))


def _paged(rows: list[int], *, values: int = 100) -> float:
    """Return the bytes of pages that the pieces of a value take, when those of many are put one after the other."""
    pages, room = 0, 0
    for row in rows * values:
        if room < row + _POINTER:
            pages, room = pages + 1, _PAGE - _PAGE_HEADER
        room -= row + _POINTER
    return _PAGE * pages / values


def _btree_entry(key: int) -> float:
    return (_aligned(_ENTRY_HEADER + key) + _POINTER) / _PACKED


def encoding_rate(encoder: Encoder, *, average_tokens: int = 200, count: int = 32) -> float:
    """Return the passages a second that an encoder encodes on this machine, from a short trial.

    Args:
        encoder: Not an endpoint, since that would send texts.
        average_tokens: Of the passages, which are made of common words.
        count: Passages of the trial.
    """
    words = [
        "the",
        "key",
        "of",
        "a",
        "gateway",
        "is",
        "rotated",
        "when",
        "its",
        "certificate",
        "ends",
        "and",
        "nobody",
        "may",
        "read",
        "it",
        "before",
    ]
    texts = [
        " ".join(words[(n + place) % len(words)] for place in range(average_tokens)) for n in range(count)
    ]
    encoder.encode_documents(texts[:1])
    started = time.perf_counter()
    encoder.encode_documents(texts)
    return count / (time.perf_counter() - started)


def plan(
    connection: psycopg.Connection[Any],
    chunks: int,
    *,
    space: str | None = None,
    dimension: int | None = None,
    precision: str | None = None,
    index: str | None = None,
    index_options: Mapping[str, int] | None = None,
    average_tokens: int = 200,
    acls: int = 500,
    chunks_per_document: float = 10,
    shares: tuple[float, ...] = (1.0, 0.1, 0.01),
    k: int = 100,
    chunks_per_second: float | None = None,
    rerank_pairs: int = 100,
    rerank_ms: float | None = None,
    passages: int = 10,
    context_tokens: int | None = None,
    price_per_million_tokens: float | None = None,
    prefill_tokens_per_second: float | None = None,
) -> Plan:
    """Say what so many passages of a model take: storage, memory, time to build, to search and to read.

    Args:
        connection: Of a member of ``pgrag_owner``.
        chunks: Passages, at least 1.
        space: A space whose dimension, precision, index and figures count; what is said besides is as it is said, and then its
            figures count where they still apply.
        dimension: Numbers per vector; None is the space's.
        precision: ``vector``, ``halfvec`` or ``bit``; None is the space's, else ``halfvec``.
        index: ``hnsw``, ``ivfflat`` or ``none``; None is the space's, else ``hnsw``.
        index_options: ``m`` and ``ef_construction``, or ``lists``; None is the space's, else as usual.
        average_tokens: Tokens in a passage.
        acls: Different sets of readers; at most as many as documents count.
        chunks_per_document: Passages of a document.
        shares: Of the passages, that somebody sees; one search each.
        k: Passages that a dense search asks for.
        chunks_per_second: At which the model embeds.
        rerank_pairs: Passages that are reranked.
        rerank_ms: Milliseconds for each of them.
        passages: Those that a prompt gets.
        context_tokens: Of the generator.
        price_per_million_tokens: Of its input, in any currency.
        prefill_tokens_per_second: At which it reads.

    Raises:
        PgragError: neither a dimension nor a space is named, or a number is out of its range.
        Refused: there is no such space, or the role may not.
    """
    found = find_space(connection, space) if space is not None else None
    if dimension is None:
        if found is None:
            raise PgragError(
                "a plan needs the model's dimension",
                "pgrag plan --dimension 384, or --model MODEL, or --space NAME",
            )
        dimension = found.dimension
    precision = precision or (found.precision if found else "halfvec")
    index = index or (found.index_kind if found else "hnsw")
    if index_options is None:
        index_options = dict(found.index_options) if found and found.index_kind == index else {}
    _check(chunks, dimension, precision, index, average_tokens, acls, chunks_per_document, shares)
    if index == "ivfflat":
        index_options = {"lists": usual_lists(chunks), **index_options}
    same = (
        found is not None
        and (found.dimension, found.precision, found.index_kind) == (dimension, precision, index)
        and (index == "ivfflat" or dict(found.index_options) == dict(index_options))
    )
    documents = chunks / chunks_per_document
    with translated(), connection.transaction():
        corpus = _one(connection, "select pgrag.corpus_figures()")
        needed = _one(
            connection,
            "select pgrag._build_bytes(%s, %s, %s, %s, %s)",
            chunks,
            dimension,
            precision,
            index,
            json.dumps(dict(index_options)),
        )
        calibration = _calibration(found, dimension, same)
        searching = tuple(
            _searching(
                connection,
                {
                    "space_id": 0,
                    "dimension": dimension,
                    "precision": precision,
                    "index_kind": index,
                    "calibration": calibration,
                },
                k,
                max(1, round(share * chunks)),
                chunks,
                index_options.get("lists", 1) if index != "none" else None,
                None if rerank_ms is None else rerank_ms * rerank_pairs,
                _costs_from(found, calibration),
            )
            for share in shares
        )
    texts = own_figures(corpus) or _usual_figures(corpus)
    of_documents, of_chunks, of_postings = text_bytes(
        chunks, average_tokens, min(acls, max(1, round(documents))), documents, texts
    )
    vectors = table_bytes(chunks, dimension, precision)
    of_index = index_bytes(chunks, dimension, precision, index, index_options)
    build, build_from = _build(found if same else None, chunks, dimension, precision, index, index_options)
    everything = chunks * average_tokens
    retrieved = min(everything, passages * average_tokens)
    return Plan(
        chunks=chunks,
        dimension=dimension,
        precision=precision,
        index_kind=index,
        index_options=dict(index_options),
        average_tokens=average_tokens,
        acls=acls,
        texts_from=texts.of,
        storage=Storage(
            documents=of_documents,
            chunks=of_chunks,
            postings=of_postings,
            vectors=vectors,
            index=of_index,
            total=of_documents + of_chunks + of_postings + vectors + of_index,
            vector_bytes=value_bytes(dimension, "vector" if precision == "vector" else "halfvec"),
        ),
        memory=Memory(
            build=needed,
            maintenance_work_mem=corpus["maintenance_work_mem"],
            build_fits=needed <= corpus["maintenance_work_mem"],
            hot=of_postings + (of_index + (vectors if precision == "bit" else 0) if of_index else vectors),
            shared_buffers=corpus["shared_buffers"],
        ),
        building=Building(
            index=build,
            embed=None if chunks_per_second is None else chunks / chunks_per_second,
            index_from=build_from,
            chunks_per_second=chunks_per_second,
        ),
        searching=searching,
        answering=Answering(
            retrieved_tokens=retrieved,
            everything_tokens=everything,
            fits=None if context_tokens is None else everything <= context_tokens,
            retrieved_cost=_times(retrieved, price_per_million_tokens, 1e-6),
            everything_cost=_times(everything, price_per_million_tokens, 1e-6),
            retrieved_seconds=_seconds(retrieved, prefill_tokens_per_second),
            everything_seconds=_seconds(everything, prefill_tokens_per_second),
        ),
    )


def own_figures(corpus: Mapping[str, Any]) -> TextFigures | None:
    """Return the figures of this database's texts, or None where it holds too few to tell: less than 1,000 passages.

    Args:
        corpus: What ``pgrag.corpus_figures`` counted. Dead rows and what isn't merged count as well, as they do on disk.
    """
    chunks, tokens, postings, pairs = (corpus[name] for name in ("chunks", "tokens", "postings", "pairs"))
    if chunks < _FEWEST_CHUNKS or not tokens or not postings or not pairs:
        return None
    usual = TextFigures()
    average = tokens / chunks
    under_each = tokens / corpus["acls"]
    scale = corpus["chunk_bytes"] / (chunks * (usual.chunk_bytes + average * usual.chunk_bytes_per_token))
    return TextFigures(
        postings=postings / chunks / average**_POSTINGS_POWER,
        heaps=pairs / corpus["acls"] / under_each**usual.heaps_power,
        heaps_power=usual.heaps_power,
        chunk_bytes=scale * usual.chunk_bytes,
        chunk_bytes_per_token=scale * usual.chunk_bytes_per_token,
        document_bytes=0.0,
        document_bytes_per_token=corpus["document_bytes"] / tokens,
        compressed_from=math.inf,
        run_bytes=max(0.0, corpus["posting_bytes"] - 8 * postings) / corpus["runs"],
        lexeme_bytes=corpus["lexeme_bytes"] / pairs,
        of=f"measured of the {chunks:,} passages in this database",
    )


def _usual_figures(corpus: Mapping[str, Any]) -> TextFigures:
    """Return the usual figures of texts, which say why they are not this database's."""
    chunks = corpus["chunks"]
    if not 0 < chunks < _FEWEST_CHUNKS:
        return TextFigures()
    return TextFigures(
        of=f"usual; this database has {chunks:,} passage{'' if chunks == 1 else 's'}, from {_FEWEST_CHUNKS:,} it goes by them"
    )


def _check(
    chunks: int,
    dimension: int,
    precision: str,
    index: str,
    average_tokens: int,
    acls: int,
    chunks_per_document: float,
    shares: tuple[float, ...],
) -> None:
    if precision not in _PRECISIONS:
        raise PgragError(
            f'there is no precision "{precision}"',
            "--precision vector, --precision halfvec or --precision bit",
        )
    if index not in _INDEXES:
        raise PgragError(f'there is no index "{index}"', "--index hnsw, --index ivfflat or --index none")
    for name, value, least, most in (
        ("chunks", chunks, 1, 10**12),
        ("dimension", dimension, 1, 4000),
        ("average_tokens", average_tokens, 1, 8192),
        ("acls", acls, 1, 10**9),
        ("chunks_per_document", chunks_per_document, 1, 10**6),
        *(("a share that somebody sees", share, 0, 1) for share in shares),
    ):
        if not least <= value <= most:
            raise PgragError(
                f"{name} must be between {least:,} and {most:,}, got {value:,}", "pgrag plan --help"
            )
    if precision == "vector" and index != "none" and dimension > 2000:
        raise PgragError(
            f"an index holds vectors of at most 2,000 numbers at the precision vector, got {dimension:,}",
            "--precision halfvec, or --index none",
        )


def _calibration(found: Space | None, dimension: int, same: bool) -> dict[str, Any]:
    """Return what was measured of a space and holds for the plan: of its index only where that is the same."""
    if found is None or not found.calibration:
        return {}
    kept = {"hidden_us": found.calibration["hidden_us"]}
    if found.dimension == dimension:
        kept["exact_us"] = found.calibration["exact_us"]
    if same and "index_us" in found.calibration:
        kept |= {name: found.calibration[name] for name in ("index_us", "effort")}
    return kept


def _costs_from(found: Space | None, calibration: Mapping[str, Any]) -> str:
    if found is None:
        return "usual"
    if not found.calibration:
        return f"usual: space {found.name} is not calibrated"
    if "exact_us" not in calibration:
        return f"usual: space {found.name} has another dimension"
    if found.index_kind != "none" and "index_us" not in calibration:
        return f"space {found.name} measured here, its index usual"
    return f"space {found.name} measured here"


def _searching(
    connection: psycopg.Connection[Any],
    space_as: Mapping[str, Any],
    k: int,
    visible: int,
    vectors: int,
    lists: int | None,
    rerank_ms: float | None,
    costs_from: str,
) -> Searching:
    row = connection.execute(
        "select exact_ms, index_ms, effort, reason from pgrag._plan_dense(%s, %s, %s, %s, %s)",
        (json.dumps(space_as), k, visible, vectors, lists),
    ).fetchone()
    assert row is not None  # noqa: S101 - a function with OUT parameters gives one row
    return Searching(
        visible=visible,
        k=k,
        exact_ms=SEARCH_MS + row[0],
        index_ms=None if row[1] is None else SEARCH_MS + row[1],
        effort=row[2],
        reason=row[3],
        rerank_ms=rerank_ms,
        costs_from=costs_from,
    )


def _build(
    found: Space | None,
    chunks: int,
    dimension: int,
    precision: str,
    index: str,
    options: Mapping[str, int],
) -> tuple[float, str]:
    """Return the seconds of the build and where they are from: the space's last one, grown, or what is usual."""
    usual = build_seconds(chunks, dimension, precision, index, options)
    built = dict(found.passport.get("figures", {}).get("build", {})) if found else {}
    before = build_seconds(built.get("vectors", 0), dimension, precision, index, options) if built else 0.0
    if found is None or before <= 0 or index == "none":
        return usual, "usual"
    return (
        usual * built["seconds"] * (1 + built.get("workers", 0)) / before,
        f"grown from the last build of space {found.name}, {built['vectors']:,} vectors",
    )


def _times(tokens: int, price: float | None, unit: float) -> float | None:
    return None if price is None else tokens * price * unit


def _seconds(tokens: int, rate: float | None) -> float | None:
    return None if rate is None else tokens / rate


def _one(connection: psycopg.Connection[Any], call: str, *arguments: object) -> Any:
    row = connection.execute(call, arguments).fetchone()
    assert row is not None  # noqa: S101 - a function call gives one row
    return row[0]
