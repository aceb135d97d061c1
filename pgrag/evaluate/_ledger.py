"""Serves the stage ``evaluate``: the ledger, which says at which stage each piece of judged evidence was lost.

What happened to a piece of evidence, and what another setting would have done to it, is asked of the database
(``pgrag.trace_evidence``); here are the traces of judged queries, their sums, and the settings that are tried.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import psycopg

from pgrag._acting import act_as
from pgrag._vector import to_text
from pgrag.errors import translated
from pgrag.evaluate._judged import JudgedQuery, Judgement
from pgrag.types import Embedding

if TYPE_CHECKING:
    from pgrag.embed import Encoder

__all__ = [
    "STAGES",
    "Counterfactual",
    "Evidence",
    "Trace",
    "counterfactuals",
    "ledger",
    "space_of",
    "trace",
]

STAGES = (
    "not_ingested",
    "not_permitted",
    "split",
    "representation",
    "ann",
    "fusion",
    "rerank",
    "pack",
    "kept",
)
"""Where evidence can be, in the order in which they are asked: the first that applies."""

_TRACE = (
    "select stage, chunk_id, lexical_rank, dense_rank_exact, dense_rank, fused_rank, packed, detail"
    " from pgrag.trace_evidence(%(query)s, %(uris)s, %(char_starts)s::int[], %(char_ends)s::int[], %(quotes)s::text[],"
    " k => %(k)s::int, collection => %(collection)s, embedding => %(embedding)s, filter => %(filter)s,"
    " depth => %(depth)s::int, rrf_k => %(rrf_k)s::int, weights => %(weights)s, space => %(space)s,"
    " fusion => %(fusion)s, budget => %(budget)s::int, exact => %(exact)s) order by place"
)
_PRESENCE = (
    "select has_document, has_quote from pgrag.evidence_presence(%(collection)s, %(uris)s, %(char_starts)s::int[],"
    " %(char_ends)s::int[], %(quotes)s::text[]) order by place"
)
_COVERED = "select chunk_tokens, covered from pgrag.covering_budgets(%s, %s, %s, %s, %s::int[])"
_MODEL_SPACE = "select coalesce(%s, pgrag.model_space(%s, %s, %s))"
_CHECK_SPACE = "select pgrag.check_space(%s, %s, %s, %s) where pgrag.has_space(%s)"
_SNAPSHOT = "set transaction isolation level repeatable read, read only"

_DEPTHS = (200, 500, 1000)
_KS = (20, 50)
_DEEPEST = 1000
_RRF_KS = (10, 20, 120)
_WEIGHTS: tuple[dict[str, float], ...] = (
    {"lexical": 2, "dense": 1},
    {"lexical": 1, "dense": 2},
    {"lexical": 1, "dense": 0},
    {"lexical": 0, "dense": 1},
)
_EFFORTS = (2, 4, 8)
_CHUNK_TOKENS = (256, 512, 1024, 2048, 4096, 8192)
_BUDGETS = (2, 4)


@dataclass(frozen=True)
class Evidence:
    """A piece of judged evidence, and the one stage at which it is.

    Attributes:
        uri: Its document.
        char_start: Where the judged span begins, in characters from 0; None is the whole document.
        char_end: Where it ends, exclusive; None likewise.
        grade: How well it answers, above 0.
        stage: One of ``STAGES``.
        rank: Place after fusion, from 1; None where no arm has it.
        detail: What decided; with the passage that counts (``chunk_id``) and its ranks in the arms, as far as there are any.
    """

    uri: str
    char_start: int | None
    char_end: int | None
    grade: int
    stage: str
    rank: int | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Trace:
    """A judged query with the evidence that it needs, in the order of its judgements, and the vector it was asked by."""

    query: JudgedQuery
    evidence: tuple[Evidence, ...]
    embedding: Embedding | None = None


@dataclass(frozen=True)
class Counterfactual:
    """What one setting would do for the evidence that one stage lost: measured by searching again with it.

    What else it would lose isn't counted: ``pgrag eval tune`` weighs both.

    Attributes:
        stage: Where it was lost.
        setting: What is set otherwise: an argument of ``pgrag.search`` or ``pgrag.pack_context``; ``index_effort``:
            times the calibrated effort of the approximate index; ``chunk_tokens``: the collection's.
        value: To what.
        keeps: How many pieces are kept to the end; for ``split`` how many one passage would hold, since what
            is found of other passages only a new index could tell.
        passes: How many get past their stage, whether or not a later one loses them.
        of: How many that stage lost.
    """

    stage: str
    setting: str
    value: Any
    keeps: int
    passes: int
    of: int


@dataclass(frozen=True)
class _Settings:
    """How the search is made whose losses are asked for."""

    k: int
    depth: int | None
    rrf_k: int | None
    weights: Mapping[str, float] | None
    space: str | None
    fusion: str | None
    filter: Mapping[str, Any] | None
    budget: int | None
    exact: bool
    index_effort: float = 1

    def arguments(self) -> dict[str, Any]:
        return {
            "k": self.k,
            "depth": self.depth,
            "rrf_k": self.rrf_k,
            "weights": None if self.weights is None else json.dumps(dict(self.weights)),
            "space": self.space,
            "fusion": self.fusion,
            "filter": json.dumps(dict(self.filter or {})),
            "budget": self.budget,
            "exact": self.exact,
        }


def trace(
    connection: psycopg.Connection[Any],
    collection: str,
    query: JudgedQuery,
    *,
    embedding: Embedding | None = None,
    k: int = 10,
    depth: int | None = None,
    rrf_k: int | None = None,
    weights: Mapping[str, float] | None = None,
    space: str | None = None,
    fusion: str | None = None,
    filter: Mapping[str, Any] | None = None,  # noqa: A002 - the name of the argument in SQL
    budget: int | None = None,
    exact: bool = False,
) -> list[Evidence]:
    """Say at which stage each piece of evidence of a judged query is lost, asked as its principals and in one snapshot.

    Args:
        connection: In no transaction, of a role that may take ``pgrag_app``. That a document is there and the asker
            may not see it, ``not_permitted``, is told to members of ``pgrag_writer`` and ``pgrag_owner``; to
            others it is ``not_ingested``.
        collection: Where the evidence is, and what is searched.
        query: Its judgements with a grade above 0 are the evidence.
        embedding: The query's vector by the space's model; None or a zero one: made in SQL where the space has a token
            table, else words alone are searched.
        k: Most hits of the search, and candidates of packing.
        depth: Candidates of each arm; None, here and for the next: the collection's settings.
        rrf_k: The constant of reciprocal rank fusion.
        weights: Of the arms ``lexical`` and ``dense``.
        space: Answer from this embedding space; None is the collection's own.
        fusion: ``rrf`` or ``minmax``.
        filter: What a document's metadata must contain.
        budget: Tokens of ``pgrag.pack_context``; None: packing isn't asked.
        exact: Forbid the approximate index.

    Returns:
        One each, in the order of the judgements.

    Raises:
        PgragError: the role may not act for others.
        Refused: an argument is out of its range, or there is no such collection.
    """
    settings = _Settings(k, depth, rrf_k, weights, space, fusion, filter, budget, exact)
    return _trace(connection, collection, query, embedding, settings, tell_permitted=True)


def space_of(
    connection: psycopg.Connection[Any],
    encoder: Encoder,
    *,
    principals: Sequence[str],
    space: str | None = None,
) -> str:
    """Name the space whose vectors an encoder's may be compared with, as the principals see it.

    Args:
        connection: In no transaction, of a role that may take ``pgrag_app``.
        encoder: Embeds the query.
        principals: Who asks; none: the public.
        space: A space by its name; None is that of the encoder's name, or one that was made by its model.

    Raises:
        PgragError: the role may not act for others.
        Refused: the space was made by another model.
    """
    model, fingerprint = encoder.passport["model"], encoder.passport.get("sha256")
    with translated(), connection.transaction():
        act_as(connection, principals)
        row = connection.execute(_MODEL_SPACE, (space, model, fingerprint, encoder.name)).fetchone()
        assert row is not None  # noqa: S101 - a function call gives one row
        connection.execute(_CHECK_SPACE, (row[0], model, encoder.dimension, fingerprint, row[0]))
    return str(row[0])


def ledger(evidence: Iterable[Evidence]) -> dict[str, int]:
    """Count evidence by stage: all of ``STAGES`` in their order, so that the sum is that of all evidence."""
    counts = dict.fromkeys(STAGES, 0)
    for one in evidence:
        counts[one.stage] += 1
    return counts


def counterfactuals(
    connection: psycopg.Connection[Any],
    collection: str,
    traces: Sequence[Trace],
    *,
    k: int = 10,
    depth: int | None = None,
    rrf_k: int | None = None,
    weights: Mapping[str, float] | None = None,
    space: str | None = None,
    fusion: str | None = None,
    filter: Mapping[str, Any] | None = None,  # noqa: A002 - the name of the argument in SQL
    budget: int | None = None,
    exact: bool = False,
    on_search: Callable[[int, int], None] = lambda done, total: None,
) -> list[Counterfactual]:
    """Measure what other settings would have kept of the evidence that each stage lost.

    Each query that lost evidence is asked again for each setting that could keep it, all else as it was: more effort
    of the index and none of it for ``ann``, more ``depth`` for ``representation``, more ``k`` (where one piece was lost, the
    least that can keep it), other ``weights``, ``rrf_k``, ``fusion`` and ``depth`` for ``fusion``, a larger ``budget`` for
    ``pack``. For ``split`` the texts are cut anew, and nothing is stored. Nothing can be tried for what isn't ingested or
    permitted.

    Args:
        connection: As in :func:`trace`.
        collection: As in :func:`trace`.
        traces: What it returned, with the queries; those that lost nothing cost nothing.
        k: As it was traced, like the rest.
        depth: As it was traced.
        rrf_k: As it was traced.
        weights: As it was traced.
        space: As it was traced.
        fusion: As it was traced.
        filter: As it was traced.
        budget: As it was traced.
        exact: As it was traced.
        on_search: Called after each query that was asked again, with those done so far and all.

    Returns:
        By stage in their order, then by setting.

    Raises:
        PgragError: the role may not act for others.
        Refused: an argument is out of its range, or there is no such collection.
    """
    settings = _Settings(k, depth, rrf_k, weights, space, fusion, filter, budget, exact)
    # With the places of the evidence that the stage lost.
    lost = {
        stage: [
            (one, places)
            for one in traces
            if (places := [nth for nth, piece in enumerate(one.evidence) if piece.stage == stage])
        ]
        for stage in ("split", "representation", "ann", "fusion", "pack")
    }
    tried = {
        stage: list(
            _others(
                stage,
                settings,
                max((_depth(one, places) for one, places in asked), default=0),
                _only_place(asked),
            )
        )
        for stage, asked in lost.items()
    }
    total = sum(len(tried[stage]) * len(asked) for stage, asked in lost.items())
    done = 0
    found = _recut(connection, collection, lost["split"])
    for stage, asked in lost.items():
        of = sum(len(places) for _, places in asked)
        if not of:
            continue
        for name, value, other in tried[stage]:
            keeps = passes = 0
            for one, places in asked:
                after = _trace(connection, collection, one.query, one.embedding, other, tell_permitted=False)
                stages = [after[place].stage for place in places]
                keeps += stages.count("kept")
                passes += sum(STAGES.index(now) > STAGES.index(stage) for now in stages)
                done += 1
                on_search(done, total)
            found.append(Counterfactual(stage, name, value, keeps, passes, of))
    return found


def _only_place(asked: Sequence[tuple[Trace, list[int]]]) -> int | None:
    """Return the place after fusion of the one piece that a stage lost; None where there are others, or it has none."""
    pieces = [one.evidence[place] for one, places in asked for place in places]
    return pieces[0].rank if len(pieces) == 1 else None


def _others(
    stage: str, now: _Settings, depth_now: int, only_place: int | None
) -> Iterator[tuple[str, Any, _Settings]]:
    """Yield the settings that could keep what a stage loses: name, value, and all settings with it."""
    if stage == "ann":
        for effort in _EFFORTS:
            yield "index_effort", effort, replace(now, index_effort=effort)
        yield "exact", True, replace(now, exact=True)
    if stage == "fusion":
        # Of one piece, the least that can keep it; a search gives no more than the deepest.
        for k in _KS if only_place is None or only_place > _DEEPEST else (only_place,):
            if k > now.k:
                yield "k", k, replace(now, k=k)
        for weights in _WEIGHTS:
            if weights != now.weights:
                yield "weights", weights, replace(now, weights=weights)
        for rrf_k in _RRF_KS:
            if rrf_k != now.rrf_k and now.fusion != "minmax":
                yield "rrf_k", rrf_k, replace(now, rrf_k=rrf_k)
        if now.fusion != "minmax":
            yield "fusion", "minmax", replace(now, fusion="minmax")
    if stage in ("representation", "fusion"):
        for depth in _DEPTHS:
            if depth > depth_now:
                yield "depth", depth, replace(now, depth=depth)
    if stage == "pack" and now.budget is not None:
        for times in _BUDGETS:
            yield "budget", times * now.budget, replace(now, budget=times * now.budget)


def _depth(one: Trace, places: Sequence[int]) -> int:
    """Return how deep the arms were searched, as far as it decided."""
    return max(int(one.evidence[place].detail.get("depth", 0)) for place in places)


def _recut(
    connection: psycopg.Connection[Any], collection: str, lost: Sequence[tuple[Trace, list[int]]]
) -> list[Counterfactual]:
    """Cut the texts of split evidence anew, and count the spans that one passage would hold, by budget."""
    kept = dict.fromkeys(_CHUNK_TOKENS, 0)
    of = 0
    for one, places in lost:
        with translated(), connection.transaction():
            connection.execute(_SNAPSHOT)
            act_as(connection, one.query.principals)
            for piece in (one.evidence[place] for place in places):
                start, end = piece.detail.get("moved_to", (piece.char_start, piece.char_end))
                rows = connection.execute(_COVERED, (collection, piece.uri, start, end, list(_CHUNK_TOKENS)))
                for tokens, covered in rows.fetchall():
                    kept[tokens] += covered
                of += 1
    return [Counterfactual("split", "chunk_tokens", tokens, n, n, of) for tokens, n in kept.items() if of]


def _trace(
    connection: psycopg.Connection[Any],
    collection: str,
    query: JudgedQuery,
    embedding: Embedding | None,
    settings: _Settings,
    *,
    tell_permitted: bool,
) -> list[Evidence]:
    needed = [one for one in query.judgements if one.grade > 0]
    if not needed:
        return []
    vector = None if embedding is None else np.asarray(embedding, np.float32)
    arguments = settings.arguments() | {
        "query": query.query,
        "collection": collection,
        "uris": [one.uri for one in needed],
        "char_starts": [one.char_start for one in needed],
        "char_ends": [one.char_end for one in needed],
        "quotes": [one.quote for one in needed],
        # A text without a known word has no direction.
        "embedding": to_text(vector) if vector is not None and vector.any() else None,
    }
    with translated(), connection.transaction():
        connection.execute(_SNAPSHOT)
        present = _presence(connection, arguments) if tell_permitted else None
        act_as(connection, query.principals)
        if settings.index_effort != 1:
            connection.execute(
                "select set_config('pgrag.index_effort', %s, true)", (str(settings.index_effort),)
            )
        rows = connection.execute(_TRACE, arguments).fetchall()
    return [
        _evidence(judged, row, *(present[nth] if present is not None else (False, False)))
        for nth, (judged, row) in enumerate(zip(needed, rows, strict=True))
    ]


def _presence(
    connection: psycopg.Connection[Any], arguments: Mapping[str, Any]
) -> list[tuple[bool, bool]] | None:
    """Tell of each piece of evidence whether its document, and it, is there at all; None where the role may not know."""
    try:
        with connection.transaction():
            return connection.execute(_PRESENCE, arguments).fetchall()
    except psycopg.errors.InsufficientPrivilege:
        return None


def _evidence(judged: Judgement, row: tuple[Any, ...], has_document: bool, has_quote: bool) -> Evidence:
    """Make a row of the trace a piece of evidence, with what only writers and owners know."""
    stage, chunk_id, lexical_rank, dense_rank_exact, dense_rank, fused_rank, packed, detail = row
    ranks = {
        "chunk_id": chunk_id,
        "lexical_rank": lexical_rank,
        "dense_rank_exact": dense_rank_exact,
        "dense_rank": dense_rank,
        "packed": packed,
    }
    if stage == "not_ingested" and has_quote:
        stage, detail = "not_permitted", {}
    elif stage == "not_ingested" and has_document:
        detail = {"reason": "the document no longer holds it"}
    return Evidence(
        uri=judged.uri,
        char_start=judged.char_start,
        char_end=judged.char_end,
        grade=judged.grade,
        stage=stage,
        rank=fused_rank,
        detail={name: value for name, value in ranks.items() if value is not None} | detail,
    )
