"""Serves the stage ``evaluate``: asks the judged queries of a collection under settings that it doesn't have.

Parameters of BM25 are set in a transaction that is taken back, another analyzer or chunking is tried on a copy that only that
transaction sees; fusion is done on what the arms found.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import psycopg

from pgrag._acting import act_as
from pgrag._vector import to_text
from pgrag.errors import PgragError, translated
from pgrag.evaluate._fusing import Candidates, SearchSettings, fused
from pgrag.evaluate._judged import JudgedQuery
from pgrag.evaluate._measures import measure, ranking
from pgrag.spaces import check_encoder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pgrag.embed import Encoder

__all__ = ["GROUPS", "Asker", "Setting", "one_value"]

# What is chosen together, and the order in which it is chosen.
GROUPS = {
    "bm25": ("k1", "b"),
    "fusion": ("fusion", "rrf_k", "weights"),
    "depth": ("depth",),
    "analyzer": ("analyzer",),
    "chunking": ("chunking",),
}
_BY_VECTOR = ("fusion", "depth")
_PASSAGES = 100
_DOCUMENTS = 10
_DEEPEST = 1000
_BATCH = 500
# With these a query binds its hits, and what binds is applied to so many candidates as the arm has.
_BINDS = re.compile(r'["“”„«»]|(?:^|\s)[-−–]\S')
_ARM = (
    "select chunk_id, uri, lexical_rank, lexical_score, dense_rank, dense_distance from pgrag.search"
    "(%s, %s, %s, %s, depth => %s, weights => %s, exact => true)"
)
_WORDS, _VECTORS = '{"lexical": 1, "dense": 0}', '{"lexical": 0, "dense": 1}'

_Ranking = list[tuple[int, int, float]]


@dataclass(frozen=True)
class Setting:
    """A point of the sweep."""

    k1: float
    b: float
    analyzer: str
    chunk_tokens: int
    search: SearchSettings

    @property
    def index(self) -> tuple[float, float, str, int]:
        return self.k1, self.b, self.analyzer, self.chunk_tokens

    def with_(self, name: str, value: Any) -> Setting:
        """Return it with one parameter of ``GRID`` changed."""
        if name == "weights":
            return replace(self, search=replace(self.search, lexical=value[0], dense=value[1]))
        if name in ("rrf_k", "depth", "fusion"):
            return replace(self, search=replace(self.search, **{name: value}))
        return replace(self, **{"chunk_tokens" if name == "chunking" else name: value})

    def get(self, name: str) -> Any:
        """Return a parameter of ``GRID``."""
        if name == "weights":
            return self.search.lexical, self.search.dense
        if name in ("rrf_k", "depth", "fusion"):
            return getattr(self.search, name)
        return getattr(self, "chunk_tokens" if name == "chunking" else name)

    def plain(self) -> Setting:
        return replace(self, search=self.search.plain())

    def as_json(self) -> dict[str, Any]:
        return {
            "k1": self.k1,
            "b": self.b,
            "analyzer": self.analyzer,
            "chunk_tokens": self.chunk_tokens,
        } | self.search.as_json()

    def beside(self, other: Setting) -> dict[str, Any]:
        """Return what differs from another."""
        before = other.as_json()
        return {name: value for name, value in self.as_json().items() if value != before[name]}


@dataclass(frozen=True)
class _Found:
    """What the arms found for one query; ``at``: by depth, where that isn't the beginning of what is deeper."""

    deep: Candidates
    at: Mapping[int, Candidates]

    def of(self, depth: int) -> Candidates:
        return self.at.get(depth, self.deep)


class Asker:
    """Asks the judged queries under settings; what was asked once isn't asked again."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        collection: str,
        queries: Sequence[JudgedQuery],
        encoder: Encoder | None,
        measured_by: str,
        values: Mapping[str, Sequence[Any]],
        on_progress: Callable[[str, int, int], None],
    ) -> None:
        self._connection = connection
        self._collection = collection
        self._queries = queries
        self._encoder = encoder
        self._measured_by = measured_by
        self._on_progress = on_progress
        with translated():
            about = one_value(connection, "select pgrag.tunable_settings(%s)", collection)
        self._space, self._kind = about["space"], about["space_kind"]
        if encoder is not None and self._space is not None:
            check_encoder(connection, self._space, encoder)
        self.dense = self._space is not None and (encoder is not None or about["query_encoder"] is not None)
        self.current = _current(about, self.dense)
        self._deepest = max(_PASSAGES, self.current.search.depth, *values.get("depth", (0,)))
        if self._deepest > _DEEPEST:
            raise PgragError(f"a depth to sweep is at most {_DEEPEST:,}, got {self._deepest:,}", None)
        self._depths = sorted(map(_asked_depth, {self.current.search.depth, *values.get("depth", ())}))
        self._vectors: list[str | None] = [None] * len(queries)
        if encoder is not None and self.dense:
            made = encoder.encode_queries([one.query for one in queries])
            self._vectors = [to_text(vector) if vector.any() else None for vector in made]
        self._texts: dict[bytes, str | None] = {}
        self._uris: list[str] = []
        self._numbers: dict[str, int] = {}
        self._qrels = {one.query_id: one.grades for one in queries}
        self._found: dict[tuple[float, float, str, int], list[_Found]] = {}
        self._values: dict[Setting, NDArray[np.float64]] = {}

    def groups(self, values: Mapping[str, Sequence[Any]]) -> list[str]:
        """Return the groups that can be swept, and refuse those that can't."""
        wanted = [group for group, names in GROUPS.items() if any(name in values for name in names)]
        if not self.dense:
            wanted = [group for group in wanted if group not in _BY_VECTOR]
        if "chunking" in wanted and self.dense and self._kind != "static" and self._encoder is None:
            raise PgragError(
                f'passages that are cut anew need vectors of space "{self._space}", and nothing makes them',
                "Name its model with --model.",
            )
        if not wanted and "budget" not in values:
            raise PgragError(
                f'nothing of this can be tuned in collection "{self._collection}", which is searched by words alone',
                "--sweep k1,b; or name the model of its space with --model",
            )
        return wanted

    def values(self, setting: Setting) -> NDArray[np.float64]:
        """Return the measure of each query."""
        setting = setting.plain()
        if setting not in self._values:
            search = replace(setting.search, depth=_asked_depth(setting.search.depth))
            run = {
                query.query_id: ranking(self._documents(found.of(search.depth), search))
                for query, found in zip(self._queries, self._asked(setting), strict=True)
            }
            per_query = measure(run, self._qrels, (self._measured_by,)).per_query
            self._values[setting] = np.array(
                [per_query[one.query_id][self._measured_by] for one in self._queries]
            )
        return self._values[setting]

    def kept_within(self, tokens: Sequence[int]) -> dict[int, NDArray[np.float64]]:
        """Return budget to the share of the documents that answer each query which packing keeps within it."""
        kept: dict[int, list[float]] = {size: [] for size in tokens}
        for nth, (query, vector) in enumerate(zip(self._queries, self._vectors, strict=True), 1):
            relevant = {line.uri for line in query.judgements if line.grade > 0}
            with self._acting(query):
                for size in tokens:
                    rows = self._connection.execute(
                        "select uri from pgrag.pack_context(%s, %s, collections => %s, embedding => %s) where place is not null",
                        (query.query, size, [self._collection], vector),
                    ).fetchall()
                    kept[size].append(len(relevant & {uri for (uri,) in rows}) / len(relevant))
            self._on_progress("packing", nth, len(self._queries))
        return {size: np.array(shares) for size, shares in kept.items()}

    def _documents(self, found: Candidates, settings: SearchSettings) -> list[str]:
        places = fused(found, settings)[:_PASSAGES]
        return [self._uris[number] for number in dict.fromkeys(found.documents[places].tolist())]

    def _asked(self, setting: Setting) -> list[_Found]:
        """Return what the arms find under a setting of the index."""
        key = setting.index
        if key not in self._found:
            now = self.current.index
            if key == now:
                self._found[key] = self._ask_all(self._collection, "asking")
            elif key[2:] == now[2:]:
                self._found[key] = self._ask_with_bm25(setting)
            else:
                self._found[key] = self._ask_anew(setting)
        return self._found[key]

    def _ask_with_bm25(self, setting: Setting) -> list[_Found]:
        """Ask the words under other parameters of BM25, which are taken back; the vectors stay what they are."""
        before = self._asked(self.current)
        with self._connection.transaction(force_rollback=True):
            one_value(
                self._connection, "select pgrag.set_bm25(%s, %s, %s)", self._collection, setting.k1, setting.b
            )
            found = []
            for nth, (query, vector) in enumerate(zip(self._queries, self._vectors, strict=True)):
                with self._acting(query):
                    lexical = self._arm(self._collection, query, vector, self._deepest, _WORDS)
                of_query = before[nth]
                found.append(
                    _Found(
                        of_query.deep.with_lexical(lexical),
                        {depth: one.with_lexical(lexical) for depth, one in of_query.at.items()},
                    )
                )
        self._on_progress("asking with other k1 and b", len(self._queries), len(self._queries))
        return found

    def _ask_anew(self, setting: Setting) -> list[_Found]:
        """Ask a copy of the collection with another analyzer or other passages, which is taken back."""
        if self._encoder is not None and self.dense and setting.chunk_tokens != self.current.chunk_tokens:
            # No model is called inside a transaction: first which texts there would be, then their vectors.
            texts: dict[bytes, str] = {}
            with self._copied(setting, texts):
                pass
            if texts:
                made = self._encoder.encode_documents(list(texts.values()))
                self._texts |= {
                    digest: to_text(vector) if vector.any() else None
                    for digest, vector in zip(texts, made, strict=True)
                }
        with self._copied(setting, {}) as name:
            return self._ask_all(name, f"asking {setting.analyzer}, {setting.chunk_tokens} tokens")

    @contextmanager
    def _copied(self, setting: Setting, lacking: dict[bytes, str]) -> Iterator[str]:
        """Yield the name of a copy that only this transaction sees; ``lacking`` gets the texts without a vector."""
        connection = self._connection
        name = f"pgrag_tune_{uuid.uuid4().hex[:12]}"
        anew = setting.chunk_tokens != self.current.chunk_tokens
        with connection.transaction(force_rollback=True):
            connection.execute(
                "select pgrag.create_collection(%s, %s, %s, %s, %s, %s)",
                (name, setting.analyzer, setting.k1, setting.b, setting.chunk_tokens, self._space),
            )
            after: int | None = 0
            while after is not None:
                batch = uuid.uuid4()
                after = one_value(
                    connection,
                    "select pgrag._stage_documents(%s, %s, %s, %s, %s)",
                    self._collection,
                    batch,
                    after,
                    _BATCH,
                    setting.chunk_tokens if anew else None,
                )
                if after is not None:
                    connection.execute("select pgrag.load_staged(%s, %s)", (name, batch))
                    self._on_progress("copying", after, after)
            if self.dense:
                self._fill(lacking)
            yield name

    def _fill(self, lacking: dict[bytes, str]) -> None:
        """Give the chunks of a copy their vectors: those that the space has, those that were made, or by its table."""
        connection = self._connection
        while True:
            claimed = connection.execute(
                "select * from pgrag.claim_chunks(%s, 10000)", (self._space,)
            ).fetchall()
            if not claimed:
                return
            reused = set(
                one_value(
                    connection, "select pgrag.reuse_vectors(%s, %s)", self._space, [row[0] for row in claimed]
                )
                or ()
            )
            rest = [row for row in claimed if row[0] not in reused]
            made = [row for row in rest if bytes(row[1]) in self._texts]
            if made:
                connection.execute(
                    "select pgrag.store_vectors(%s, %s, %s, %s)",
                    (
                        self._space,
                        [row[0] for row in made],
                        [row[1] for row in made],
                        [self._texts[bytes(row[1])] for row in made],
                    ),
                )
            lacking |= {bytes(row[1]): row[2] for row in rest if bytes(row[1]) not in self._texts}
            if self._kind == "static" and self._encoder is None and len(rest) > len(made):
                connection.execute(
                    "select pgrag.release_chunks(%s, %s)", (self._space, [row[0] for row in rest])
                )
                while one_value(connection, "select pgrag.embed_pending(%s, 10000)", self._space):
                    pass

    def _ask_all(self, collection: str, stage: str) -> list[_Found]:
        """Ask each query by both arms, for the most candidates."""
        found = []
        for nth, (query, vector) in enumerate(zip(self._queries, self._vectors, strict=True), 1):
            with self._acting(query):
                lexical = self._arm(collection, query, vector, self._deepest, _WORDS)
                deep = Candidates.of(lexical, self._by_vector(collection, query, vector, self._deepest))
                at = {}
                if self.dense and _BINDS.search(query.query):
                    at = {
                        depth: Candidates.of(lexical, self._by_vector(collection, query, vector, depth))
                        for depth in self._depths
                        if depth < self._deepest
                    }
            found.append(_Found(deep, at))
            self._on_progress(stage, nth, len(self._queries))
        return found

    def _by_vector(self, collection: str, query: JudgedQuery, vector: str | None, depth: int) -> _Ranking:
        return self._arm(collection, query, vector, depth, _VECTORS) if self.dense else []

    def _arm(
        self, collection: str, query: JudgedQuery, vector: str | None, depth: int, weights: str
    ) -> _Ranking:
        """Return what one arm finds: chunk, document, and score or distance, best first."""
        rows = self._connection.execute(
            _ARM, (query.query, depth, [collection], vector, depth, weights)
        ).fetchall()
        words = weights == _WORDS
        ranked = sorted((row[2] if words else row[4], row) for row in rows)
        return [(row[0], self._number(row[1]), row[3] if words else row[5]) for _, row in ranked]

    def _number(self, uri: str) -> int:
        if uri not in self._numbers:
            self._numbers[uri] = len(self._uris)
            self._uris.append(uri)
        return self._numbers[uri]

    @contextmanager
    def _acting(self, query: JudgedQuery) -> Iterator[None]:
        # Taken back, since a role that is set inside a longer transaction would stay.
        with self._connection.transaction(force_rollback=True):
            act_as(self._connection, query.principals)
            yield


def _asked_depth(depth: int) -> int:
    """Return the candidates of each arm that a search has: at least so many as it is asked for passages."""
    return max(depth, _DOCUMENTS)


def _current(about: Mapping[str, Any], dense: bool) -> Setting:
    """Return the present settings of a collection."""
    usual, kept = SearchSettings(), about["search"]
    weights = kept.get("weights", {})
    search = SearchSettings(
        depth=int(kept.get("depth", usual.depth)),
        rrf_k=int(kept.get("rrf_k", usual.rrf_k)),
        lexical=float(weights.get("lexical", 1)),
        dense=float(weights.get("dense", 1)) if dense else 1.0,
        fusion=kept.get("fusion", usual.fusion),
    )
    return Setting(about["k1"], about["b"], about["analyzer"], about["chunk_tokens"], search)


def one_value(connection: psycopg.Connection[Any], call: str, *arguments: object) -> Any:
    row = connection.execute(call, arguments).fetchone()
    return row[0] if row else None
