"""Serves the stage ``evaluate``: asks the judged queries of a collection, and keeps what each arm found, how well and how fast.

Who may see what is decided by the database: each query is asked as its principals. Measures, statistics and the ledger are
their own modules'; here they are brought together into one document, that is kept in ``pgrag.run``.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import psycopg

from pgrag._acting import act_as
from pgrag._vector import to_text
from pgrag.errors import PgragError, translated
from pgrag.evaluate._extra import needs_extra
from pgrag.evaluate._judged import JudgedQuery, judged
from pgrag.evaluate._ledger import Trace, counterfactuals, trace
from pgrag.evaluate._lsa import DIMENSIONS, LatentSemantics, fit_lsa
from pgrag.evaluate._measures import DEFAULT_MEASURES, Measured, measure, ranking
from pgrag.evaluate._principals import ANN_RECALL, ann_recall, by_band, by_principals
from pgrag.evaluate._significance import interval
from pgrag.evaluate._system import builds, cache_counts, cache_hits, latency, machine, update_lag
from pgrag.spaces import check_encoder, query_encoder_of, space_passport

if TYPE_CHECKING:
    from pgrag.embed import Encoder

__all__ = ["ARMS", "Options", "RunDocument", "evaluate_collection", "load_run", "options_of"]

RunDocument = dict[str, Any]

# An arm of a search and the weights that it is searched by; None: the collection's. Reranking is an arm more when it comes.
_WEIGHTS: Mapping[str, str | None] = {
    "lexical": '{"lexical": 1, "dense": 0}',
    "dense": '{"lexical": 0, "dense": 1}',
    "hybrid": None,
}
_LSA = "lsa"
ARMS = (*_WEIGHTS, _LSA)
"""What can be asked: three arms of a search, and a baseline in memory."""

_BY_VECTOR = ("dense", "hybrid")
_DEPTH = 100
_DEEPEST = 1000
_LSA_DOCUMENTS = 200_000
# What pgrag.pack_context is given where nothing is said; it takes its candidates from so many hits.
_BUDGET_TOKENS = 2000
_PACKED_FROM = 20
_NEAREST = 10
_ROWS = 5000

_SNAPSHOT = "set transaction isolation level repeatable read, read only"
_RANK = (
    "select rank, uri, ordinal, score from pgrag.rank_documents"
    "(%s, %s, %s, %s, weights => %s, space => %s, passages => %s)"
)
_TIME = (
    "select stage, ms from pgrag.time_search"
    "(%s, %s, %s, %s, weights => %s, space => %s, depth => %s, budget_tokens => %s)"
)
_NEAR = "select distance from pgrag.search_dense(%s, %s, %s, space => %s, exact => %s)"


@dataclass(frozen=True)
class Options:
    """What is asked, and how; kept with the run, so that it can be repeated.

    Attributes:
        arms: Of ``ARMS``; empty: all that the collection can be asked by.
        queries: By their ids; empty: all that are judged.
        principals: Who asks the queries that name nobody; empty: the public.
        space: The embedding space; None: the one that answers the collection.
        measures: Names as in ``MEASURES``.
        documents: How many are ranked, at most 1,000.
        k: Hits of a search whose losses the ledger tells.
        budget_tokens: Of packing, in ledger and times; None: packing isn't asked.
        lsa_learns_from: What the baseline learns from: ``asker``: what who asks may read; ``public``: what all may.
        unanswerable: What becomes of queries that nothing answers, see ``measure``.
        ledger: Tell of each piece of evidence at which stage it was lost.
        timings: Measure stages.
        system: Measure update lag as well.
        seed: Of what is drawn.
    """

    arms: tuple[str, ...] = ()
    queries: tuple[str, ...] = ()
    principals: tuple[str, ...] = ()
    space: str | None = None
    measures: tuple[str, ...] = DEFAULT_MEASURES
    documents: int = 100
    k: int = 10
    budget_tokens: int | None = _BUDGET_TOKENS
    lsa_learns_from: Literal["asker", "public"] = "asker"
    unanswerable: Literal["skip", "abstain"] = "skip"
    ledger: bool = True
    timings: bool = True
    system: bool = False
    seed: int = 0


@dataclass(frozen=True)
class _Hit:
    uri: str
    ordinal: int
    score: float


@dataclass
class _Asked:
    """One query, and what came of it, by arm."""

    query: JudgedQuery
    vector: str | None = None
    embed_ms: float | None = None
    visible: int = 0
    hits: dict[str, list[_Hit]] = field(default_factory=dict)
    stages_ms: dict[str, dict[str, float]] = field(default_factory=dict)
    ann_recall: float | None = None


@dataclass(frozen=True)
class _Plan:
    """How the collection is asked."""

    connection: psycopg.Connection[Any]
    collection: str
    options: Options
    arms: tuple[str, ...]
    space: str | None
    encoder: Encoder | None
    embedded_by: str | None
    depth: int

    def of_search(self) -> Iterator[str]:
        """Yield the arms that are a search."""
        return (arm for arm in self.arms if arm in _WEIGHTS)


def evaluate_collection(
    connection: psycopg.Connection[Any],
    collection: str,
    *,
    options: Options | None = None,
    encoder: Encoder | None = None,
    name: str | None = None,
    about: Mapping[str, Any] | None = None,
    on_progress: Callable[[str, int, int], None] = lambda stage, done, total: None,
) -> RunDocument:
    """Ask the judged queries of a collection, each as its principals and in one snapshot, and keep what came out.

    Documents are ranked by their best passage. The first passages, ``depth`` of them and at least ``k``, are those that a
    search gives by the collection's settings; where they are of fewer documents than are ranked, those of a deeper search
    follow. Interrupted, it leaves nothing; killed, a run
    without ``finished_at``.

    Args:
        connection: In autocommit mode, of a member of ``pgrag_owner`` that may take the role ``pgrag_app``.
        collection: Its name.
        options: What is asked; None: all that can be.
        encoder: Embeds queries by the space's model; None: the space's token table does, in SQL.
        name: Of the run; None: its arms.
        about: Further settings to keep, such as which model ``encoder`` is.
        on_progress: Called with what is done (``asking``, ``lsa``, ``tracing``, ``counterfactuals``), how much of it, and
            all.

    Returns:
        The run document, see ``pgrag.load_run``.

    Raises:
        PgragError: the extra ``evaluate`` is missing, there are no judged queries, an arm can't be asked, or it isn't known.
        Refused: there is no such collection or space, the role may not act for others, or the encoder isn't of that space.
    """
    options = options or Options()
    missing = needs_extra("ir_measures", "scipy", what="measuring a collection on judged queries")
    if missing is not None:
        raise missing
    queries = _queries(connection, collection, options)
    plan, notes = _plan(connection, collection, options, encoder)
    # What can't be measured is refused before anything is asked.
    measure({}, {one.query_id: one.grades for one in queries}, options.measures)
    with translated():
        run_id = _begin(plan, queries, name, about or {}, notes)
        try:
            plan = replace(plan, depth=_depth(load_run(connection, run_id)))
            before = cache_counts(connection)
            asked = _ask_all(plan, queries, on_progress)
            cached = cache_hits(before, cache_counts(connection))
            if _LSA in plan.arms:
                _ask_lsa(plan, asked, on_progress)
            measured = _measure(plan, asked)
            evidence, tried = _ledger(plan, asked, on_progress) if options.ledger else ([], [])
            figures: dict[str, Any] = {
                "intervals": {arm: _intervals(of) for arm, of in measured.items()},
                "left_out": list(next(iter(measured.values())).left_out),
                "system": _system(plan, cached),
            }
            if options.ledger:
                figures["counterfactuals"] = tried
            _keep(plan, run_id, asked, measured, evidence, figures)
        except BaseException:
            with contextlib.suppress(Exception):
                connection.execute("select pgrag.drop_run(%s)", (run_id,))
            raise
    return load_run(connection, run_id)


def load_run(connection: psycopg.Connection[Any], run_id: int) -> RunDocument:
    """Return a run that was kept, as one document.

    Args:
        connection: Of a member of ``pgrag_writer`` or ``pgrag_owner``.
        run_id: Its number.

    Raises:
        Refused: there is no such run.
    """
    if not 0 <= run_id < 2**63:
        raise PgragError(f"run {run_id} does not exist", "Those that do: pgrag eval runs")
    with translated(), connection.transaction():
        row = connection.execute("select pgrag.load_run(%s)", (run_id,)).fetchone()
    return dict(row[0]) if row else {}


def options_of(run: Mapping[str, Any]) -> Options:
    """Return what a run was asked by, to ask it again.

    Raises:
        PgragError: it isn't a run of ``evaluate_collection``.
    """
    again = run.get("settings", {}).get("again")
    if not isinstance(again, Mapping):
        raise PgragError(
            f"run {run.get('run_id')} can't be repeated: it wasn't made by pgrag eval run",
            "pgrag eval run --collection NAME",
        )
    known: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in again.items()
        if name in Options.__dataclass_fields__
    }
    return Options(**known)


def _plan(
    connection: psycopg.Connection[Any], collection: str, options: Options, encoder: Encoder | None
) -> tuple[_Plan, list[str]]:
    """Find out by which arms the collection can be asked, and say why not by others."""
    for arm in options.arms:
        if arm not in ARMS:
            raise PgragError(f'"{arm}" is no arm', f"They are {', '.join(ARMS)}.")
    if not 1 <= options.documents <= _DEEPEST:
        raise PgragError(f"documents must be 1 to {_DEEPEST:,}, got {options.documents}", None)
    with translated(), connection.transaction():
        row = connection.execute("select space from pgrag.collection_settings(%s)", (collection,)).fetchone()
    space = options.space or (row[0] if row else None)
    if options.space is not None:
        space_passport(connection, options.space)  # refuses one that isn't there
    embedded_by, why = None, f'no space answers collection "{collection}"'
    if space is not None and encoder is not None:
        check_encoder(connection, space, encoder)
        embedded_by = f"model {encoder.passport['model']}"
    elif space is not None:
        table = query_encoder_of(connection, space)
        embedded_by = f"token table {table}" if table is not None else None
        why = f'nothing embeds queries for space "{space}": name its model with --model'
    notes = []
    wanted = options.arms or ARMS
    cannot = [arm for arm in wanted if arm in _BY_VECTOR] if embedded_by is None else []
    if cannot and options.arms:
        raise PgragError(f"{' and '.join(cannot)} can't be asked: {why}", "Or leave them out of --arm.")
    if cannot:
        notes.append(f"{' and '.join(cannot)} were left out: {why}")
    if _LSA in wanted:
        refused = _lsa_refused(connection, collection)
        if refused is not None and options.arms:
            raise refused
        if refused is not None:
            notes.append(f"lsa was left out: {refused.message}")
            cannot.append(_LSA)
    arms = tuple(arm for arm in ARMS if arm in wanted and arm not in cannot)
    plan = _Plan(
        connection,
        collection,
        options,
        arms,
        space if embedded_by is not None else None,
        encoder if embedded_by is not None else None,
        embedded_by,
        _DEPTH,
    )
    return plan, notes


def _lsa_refused(connection: psycopg.Connection[Any], collection: str) -> PgragError | None:
    """Return the error that says why the baseline can't be asked, or None."""
    missing = needs_extra("sklearn", what="the baseline lsa")
    if missing is not None:
        return missing
    with translated(), connection.transaction():
        row = connection.execute("select count(*) from pgrag.document_texts(%s)", (collection,)).fetchone()
    if row and row[0] > _LSA_DOCUMENTS:
        return PgragError(
            f"it ranks in memory, and there are {row[0]:,} documents, more than {_LSA_DOCUMENTS:,}",
            "Leave it out: --arm lexical --arm dense --arm hybrid",
        )
    return None


def _queries(connection: psycopg.Connection[Any], collection: str, options: Options) -> list[JudgedQuery]:
    """Return what is asked, and who asks it."""
    known = judged(connection, collection)
    wanted = set(options.queries or (one.query_id for one in known))
    if not known or not wanted:
        raise PgragError(
            f'collection "{collection}" has no judged queries',
            f"pgrag eval import --collection {collection} --beir DIR",
        )
    unknown = sorted(wanted - {one.query_id for one in known})
    if unknown:
        raise PgragError(
            f'collection "{collection}" has no judged query "{unknown[0]}"'
            + (f", nor {len(unknown) - 1:,} others" if unknown[1:] else ""),
            f"pgrag eval import --collection {collection} --beir DIR",
        )
    return [
        one if one.principals else replace(one, principals=options.principals)
        for one in known
        if one.query_id in wanted
    ]


def _begin(
    plan: _Plan,
    queries: Sequence[JudgedQuery],
    name: str | None,
    about: Mapping[str, Any],
    notes: Sequence[str],
) -> int:
    """Write down what is asked, and return the number of the run."""
    digest = plan.connection.execute("select pgrag.collection_digest(%s)", (plan.collection,)).fetchone()
    settings: dict[str, Any] = {
        "kind": "run",
        "arms": list(plan.arms),
        "again": asdict(plan.options),
        "judged": _judged_set(queries),
        "digest": digest[0] if digest else None,
        "documents_ranked": plan.options.documents,
        "measures": list(plan.options.measures),
        "unanswerable": plan.options.unanswerable,
        "libraries": {
            one: importlib.metadata.version(one)
            for one in ("ir-measures", "scipy", "numpy", "scikit-learn")
            if one != "scikit-learn" or _LSA in plan.arms
        },
        "machine": machine(),
        "notes": list(notes),
    }
    if plan.space is not None:
        passport = space_passport(plan.connection, plan.space)
        settings |= {
            "space": plan.space,
            "passport": {key: value for key, value in passport.items() if key != "figures"},
            "queries_embedded_by": plan.embedded_by,
        }
    if _LSA in plan.arms:
        settings["lsa"] = {
            "learned_from": "what all may read"
            if plan.options.lsa_learns_from == "public"
            else "what who asks may read",
            "ranked": "documents whole, by cosine, of those that the asker may read",
            "dimensions": DIMENSIONS,
            "words": "1 + ln tf, smoothed idf, words as they are written, in lower case",
        }
    if plan.options.timings:
        settings["timings"] = {
            "taken": "on the server, one query after another, each asked once before; a model's on the client",
            "k": _PACKED_FROM,
            "budget_tokens": plan.options.budget_tokens,
        }
    row = plan.connection.execute(
        "select pgrag.record_run(%s, %s, %s, '{}')",
        (plan.collection, name or ", ".join(plan.arms), json.dumps(settings | dict(about))),
    ).fetchone()
    return int(row[0]) if row else 0


def _judged_set(queries: Sequence[JudgedQuery]) -> dict[str, Any]:
    """Return how large the judged set is, and what tells it from another."""
    lines = [
        [
            one.query_id,
            one.query,
            list(one.principals),
            sorted(
                [line.uri, line.char_start or 0, line.char_end or 0, line.grade] for line in one.judgements
            ),
        ]
        for one in queries
    ]
    return {
        "queries": len(queries),
        "judgements": sum(len(one.judgements) for one in queries),
        "sha256": hashlib.sha256(json.dumps(lines, ensure_ascii=True).encode()).hexdigest(),
    }


def _depth(run: RunDocument) -> int:
    """Return how many candidates each arm of the collection's searches has."""
    settings = run["settings"].get("collection", {}).get("search_settings") or {}
    return int(settings.get("depth") or _DEPTH)


def _ask_all(
    plan: _Plan, queries: Sequence[JudgedQuery], on_progress: Callable[[str, int, int], None]
) -> list[_Asked]:
    """Ask each query by the arms of a search."""
    asked = []
    if plan.encoder is not None and queries:
        plan.encoder.encode_queries([queries[0].query])  # warm
    for nth, query in enumerate(queries, 1):
        one = _Asked(query)
        if plan.encoder is not None:
            began = time.perf_counter()
            vector = plan.encoder.encode_queries([query.query])[0]
            one.embed_ms = (time.perf_counter() - began) * 1000
            # A text without a known word has no direction: words alone find it.
            one.vector = to_text(vector) if vector.any() else None
        _ask(plan, one)
        asked.append(one)
        on_progress("asking", nth, len(queries))
    return asked


def _ask(plan: _Plan, one: _Asked) -> None:
    """Ask one query as who asks it, in one snapshot."""
    connection, here = plan.connection, [plan.collection]
    with connection.transaction():
        connection.execute(_SNAPSHOT)
        act_as(connection, one.query.principals)
        row = connection.execute("select chunks from pgrag._visible_collections(%s)", (here,)).fetchone()
        one.visible = int(row[0]) if row else 0
        if one.visible == 0:
            one.hits = {arm: [] for arm in plan.of_search()}
            return
        if plan.space is not None and plan.encoder is None:
            row = connection.execute(
                "select pgrag.embed_query(%s, %s)::text", (one.query.query, plan.space)
            ).fetchone()
            one.vector = row[0] if row else None
        for arm in plan.of_search():
            rows = connection.execute(
                _RANK,
                (
                    one.query.query,
                    plan.options.documents,
                    here,
                    one.vector,
                    _WEIGHTS[arm],
                    plan.space,
                    min(max(plan.depth, plan.options.k), _DEEPEST),
                ),
            ).fetchall()
            one.hits[arm] = [_Hit(uri, ordinal, score) for _, uri, ordinal, score in rows]
        if "dense" in plan.arms and one.vector is not None:
            found, exact = (
                [
                    row[0]
                    for row in connection.execute(
                        _NEAR, (one.vector, _NEAREST, here, plan.space, exactly)
                    ).fetchall()
                ]
                for exactly in (False, True)
            )
            one.ann_recall = ann_recall(found, exact)
        if plan.options.timings:
            for arm in plan.of_search():
                one.stages_ms[arm] = _timed(plan, one, arm)


def _timed(plan: _Plan, one: _Asked, arm: str) -> dict[str, float]:
    """Return stage to milliseconds of one arm; what a model takes is part of the total."""
    rows = plan.connection.execute(
        _TIME,
        (
            one.query.query,
            _PACKED_FROM,
            [plan.collection],
            one.vector if plan.encoder is not None else None,
            _WEIGHTS[arm],
            plan.space,
            plan.depth,
            plan.options.budget_tokens if arm == "hybrid" else None,
        ),
    ).fetchall()
    stages = {str(stage): float(ms) for stage, ms in rows}
    if one.embed_ms is not None and arm in _BY_VECTOR:
        stages["embed"] = one.embed_ms
        stages["total"] += one.embed_ms
    return stages


def _ask_lsa(plan: _Plan, asked: Sequence[_Asked], on_progress: Callable[[str, int, int], None]) -> None:
    """Ask the baseline, who asks by who asks: what each may read is read once, as them, in one snapshot."""
    groups: dict[tuple[str, ...], list[_Asked]] = {}
    for one in asked:
        groups.setdefault(tuple(sorted(one.query.principals)), []).append(one)
    learned: LatentSemantics | None = None
    if plan.options.lsa_learns_from == "public":
        with _texts(plan, ()) as documents:
            learned = fit_lsa(documents, most=_LSA_DOCUMENTS, seed=plan.options.seed)
    done = 0
    for principals, theirs in groups.items():
        with _texts(plan, principals) as documents:
            if learned is None:
                model = fit_lsa(documents, most=_LSA_DOCUMENTS, seed=plan.options.seed)
            else:
                model = learned.place(documents, most=_LSA_DOCUMENTS)
        for one in theirs:
            began = time.perf_counter()
            found = model.rank(one.query.query, plan.options.documents)
            one.stages_ms[_LSA] = {"total": (time.perf_counter() - began) * 1000}
            one.hits[_LSA] = [_Hit(uri, 0, score) for uri, score in found]
            done += 1
            on_progress("lsa", done, len(asked))


@contextlib.contextmanager
def _texts(plan: _Plan, principals: Sequence[str]) -> Iterator[Iterator[tuple[str, str]]]:
    """Yield the names and texts of what somebody may read, as they come from the server."""
    connection = plan.connection
    with connection.transaction():
        connection.execute(_SNAPSHOT)
        act_as(connection, principals)
        with connection.cursor("pgrag_lsa") as cursor:
            cursor.execute("select uri, content from pgrag.document_texts(%s)", (plan.collection,))
            yield ((uri, content) for uri, content in cursor)


def _measure(plan: _Plan, asked: Sequence[_Asked]) -> dict[str, Measured]:
    """Measure each arm; of the judgements of one document the highest counts."""
    grades = {one.query.query_id: one.query.grades for one in asked}
    return {
        arm: measure(
            {one.query.query_id: ranking(hit.uri for hit in one.hits[arm]) for one in asked},
            grades,
            plan.options.measures,
            unanswerable=plan.options.unanswerable,
        )
        for arm in plan.arms
    }


def _intervals(measured: Measured) -> dict[str, tuple[float, float]]:
    """Return measure to the ends of the interval that holds the mean with a confidence of 95 %."""
    return {
        name: interval(np.array([values[name] for values in measured.per_query.values()]))
        for name in measured.mean
    }


def _ledger(
    plan: _Plan, asked: Sequence[_Asked], on_progress: Callable[[str, int, int], None]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return where each piece of evidence was lost, and which settings would have kept it."""
    settings: dict[str, Any] = {
        "k": plan.options.k,
        "space": plan.space,
        "budget": plan.options.budget_tokens,
    }
    traces = []
    for nth, one in enumerate(asked, 1):
        vector = None if one.vector is None else np.fromstring(one.vector[1:-1], np.float32, sep=",")
        found = trace(plan.connection, plan.collection, one.query, embedding=vector, **settings)
        traces.append(Trace(one.query, tuple(found), vector))
        on_progress("tracing", nth, len(asked))
    tried = counterfactuals(
        plan.connection,
        plan.collection,
        traces,
        on_search=lambda done, total: on_progress("counterfactuals", done, total),
        **settings,
    )
    rows = [{"query_id": one.query.query_id} | asdict(piece) for one in traces for piece in one.evidence]
    return rows, [asdict(one) for one in tried]


def _system(plan: _Plan, cached: Mapping[str, float]) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    if cached:
        figures["cache_hits"] = dict(cached)
    if plan.space is not None and (built := builds(plan.connection, plan.space)):
        figures["builds"] = {plan.space: built}
    if plan.options.system:
        figures["update_lag_ms"] = update_lag(plan.connection, space=plan.space, encoder=plan.encoder)
    return figures


def _keep(
    plan: _Plan,
    run_id: int,
    asked: Sequence[_Asked],
    measured: Mapping[str, Measured],
    evidence: Sequence[Mapping[str, Any]],
    figures: dict[str, Any],
) -> None:
    """Write everything down, in one transaction."""
    passages = load_run(plan.connection, run_id)["settings"]["passages"]
    values = {one.query.query_id: _values(plan, one, measured) for one in asked}
    described = [
        {
            "query_id": one.query.query_id,
            "principals": list(one.query.principals),
            "share": one.visible / passages if passages else None,
            "metrics": values[one.query.query_id],
            "stages_ms": one.stages_ms,
        }
        for one in asked
    ]
    figures |= {
        "latency_ms": latency(described),
        "bands": by_band(described),
        "principals": by_principals(described),
    }
    means = {arm: dict(of.mean) for arm, of in measured.items()}
    recalls = [one.ann_recall for one in asked if one.ann_recall is not None]
    if recalls:
        means["dense"][ANN_RECALL] = float(np.mean(recalls))
    queries = [
        {
            "query_id": one.query.query_id,
            "arm": arm,
            "query": one.query.query,
            "principals": list(one.query.principals),
            "visible": one.visible,
            "metrics": values[one.query.query_id].get(arm, {}),
            "stages_ms": one.stages_ms.get(arm, {}),
        }
        for one in asked
        for arm in plan.arms
    ]
    hits = [
        {"query_id": one.query.query_id, "arm": arm, "rank": rank} | asdict(hit)
        for one in asked
        for arm in plan.arms
        for rank, hit in enumerate(one.hits[arm], 1)
    ]
    with plan.connection.transaction():
        for function, rows in (
            ("select pgrag.record_run_queries(%s, %s)", queries),
            ("select pgrag.record_run_hits(%s, %s)", hits),
            ("select pgrag.record_run_evidence(%s, %s)", evidence),
        ):
            for first in range(0, len(rows), _ROWS):
                plan.connection.execute(function, (run_id, json.dumps(rows[first : first + _ROWS])))
        plan.connection.execute(
            "select pgrag.finish_run(%s, %s, %s)", (run_id, json.dumps(means), json.dumps(figures))
        )


def _values(plan: _Plan, one: _Asked, measured: Mapping[str, Measured]) -> dict[str, dict[str, float]]:
    """Return arm to measure to value of one query."""
    values = {arm: dict(measured[arm].per_query.get(one.query.query_id, {})) for arm in plan.arms}
    if one.ann_recall is not None:
        values["dense"][ANN_RECALL] = one.ann_recall
    return {arm: found for arm, found in values.items() if found}
