"""Serves the stage ``evaluate``: finds settings that answer the judged queries better, and says whether that is more than chance.

What is chosen is chosen on some queries and scored on others, in folds, so a setting gets nothing for having been tried often.
Searching is SQL; measures and the test of significance are their own modules'.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import psycopg

from pgrag._acting import act_as
from pgrag._vector import to_text
from pgrag.errors import PgragError, translated
from pgrag.evaluate._extra import needs_extra
from pgrag.evaluate._fusing import Candidates, SearchSettings, fused
from pgrag.evaluate._judged import JudgedQuery, judged
from pgrag.evaluate._measures import measure, ranking
from pgrag.evaluate._significance import SIGNIFICANCE, holm, paired
from pgrag.spaces import check_encoder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pgrag.embed import Encoder

__all__ = ["GRID", "SWEEPS", "Budget", "Trial", "Tuning", "cross_validated", "folds_of", "tune_collection"]

GRID: Mapping[str, tuple[Any, ...]] = {
    "k1": (0.6, 0.9, 1.2, 1.5, 2.0),
    "b": (0.3, 0.5, 0.75, 0.9),
    "rrf_k": (10, 30, 60, 120),
    "weights": (
        (1.0, 0.0),
        (1.0, 0.2),
        (1.0, 0.4),
        (1.0, 0.7),
        (1.0, 1.0),
        (0.7, 1.0),
        (0.4, 1.0),
        (0.2, 1.0),
        (0.0, 1.0),
    ),
    "depth": (100, 200, 400),
    "fusion": ("rrf", "minmax"),
    "analyzer": ("simple", "english"),
    "chunking": (128, 256, 512),
    "budget": (500, 1000, 2000, 4000),
}
"""What is tried; the collection's own values are tried too. Weights are of words and of vectors."""
SWEEPS = tuple(GRID)
# What is chosen together, and the order in which it is chosen.
_GROUPS = {
    "bm25": ("k1", "b"),
    "fusion": ("fusion", "rrf_k", "weights"),
    "depth": ("depth",),
    "analyzer": ("analyzer",),
    "chunking": ("chunking",),
}
_TOGETHER = "together"
_BY_VECTOR = ("fusion", "depth")
_ANEW = ("analyzer", "chunking")
FEWEST_QUERIES = 20
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
class Trial:
    """What came of tuning some settings together.

    Attributes:
        group: ``bm25``, ``fusion``, ``depth``, ``analyzer``, ``chunking``, or ``together``: all of the search's.
        tried: Combinations, the present one included.
        old: Mean of the present settings over the queries.
        new: Mean of what was chosen, each query scored by what the other folds chose.
        low: Lower end of the interval of the difference, 95 %.
        high: Its upper end.
        p: Paired permutation test.
        p_holm: After Holm's correction over all groups that were tried.
        wins: Queries that are better.
        ties: Queries that are as good.
        losses: Queries that are worse.
        chosen: What all queries together choose: the settings that differ from the present.
        chosen_by_fold: What each fold's training queries chose.
    """

    group: str
    tried: int
    old: float
    new: float
    low: float
    high: float
    p: float
    p_holm: float
    wins: int
    ties: int
    losses: int
    chosen: Mapping[str, Any]
    chosen_by_fold: tuple[Mapping[str, Any], ...]

    @property
    def is_better(self) -> bool:
        """Whether the gain on queries that did not choose is more than chance."""
        return self.new > self.old and self.p_holm < SIGNIFICANCE and bool(self.chosen)


@dataclass(frozen=True)
class Budget:
    """What a budget of tokens leaves of the evidence.

    Attributes:
        tokens: The budget.
        recall: Share of the relevant documents of which a passage is packed, mean over the queries.
        p_holm: How likely chance alone makes the difference to the largest budget, after Holm's correction.
    """

    tokens: int
    recall: float
    p_holm: float


@dataclass(frozen=True)
class Tuning:
    """What was tried on the judged queries of a collection, and what is proposed.

    Attributes:
        collection: Its name.
        measure: What is compared.
        queries: Judged queries that counted.
        left_out: Those that didn't, since nothing relevant is known for them.
        folds: Parts of the queries; each is scored by what the others chose.
        current: The present settings.
        trials: By group.
        budgets: By budget, where they were asked for.
        budget: The smallest that keeps as much as the largest, as far as can be told; None where it wasn't asked for.
        proposal: Settings to change; empty where nothing is significantly better.
        reason: Why, in one sentence.
        applied: Whether the collection has them now.
        run_id: Where it is kept in ``pgrag.run``.
    """

    collection: str
    measure: str
    queries: int
    left_out: int
    folds: int
    current: Mapping[str, Any]
    trials: tuple[Trial, ...]
    budgets: tuple[Budget, ...]
    budget: int | None
    proposal: Mapping[str, Any]
    reason: str
    applied: bool = False
    run_id: int | None = None


@dataclass(frozen=True)
class _Setting:
    """A point of the sweep."""

    k1: float
    b: float
    analyzer: str
    chunk_tokens: int
    search: SearchSettings

    @property
    def index(self) -> tuple[float, float, str, int]:
        return self.k1, self.b, self.analyzer, self.chunk_tokens

    def with_(self, name: str, value: Any) -> _Setting:
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

    def plain(self) -> _Setting:
        return replace(self, search=self.search.plain())

    def as_json(self) -> dict[str, Any]:
        return {
            "k1": self.k1,
            "b": self.b,
            "analyzer": self.analyzer,
            "chunk_tokens": self.chunk_tokens,
        } | self.search.as_json()

    def beside(self, other: _Setting) -> dict[str, Any]:
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


def tune_collection(
    connection: psycopg.Connection[Any],
    collection: str,
    *,
    sweep: Sequence[str] = ("k1", "b", "rrf_k", "weights", "depth", "fusion"),
    grid: Mapping[str, Sequence[Any]] | None = None,
    folds: int = 5,
    encoder: Encoder | None = None,
    principals: Sequence[str] = (),
    apply: bool = False,
    seed: int = 0,
    measured_by: str = "ndcg@10",
    on_progress: Callable[[str, int, int], None] = lambda stage, done, total: None,
) -> Tuning:
    """Sweep settings on the judged queries of a collection, and propose those that are significantly better.

    Each query is asked as its principals, by exact search, and documents are ranked by the best of the first 100 passages.
    Groups of settings are tuned by themselves from the present ones, those of the search also together, one after the
    other. A group is scored by cross-validation: what the other folds choose is what a fold is scored by. Of the groups
    whose gain is significant, after Holm's correction over all, the one with the largest is proposed; several together only
    where that is significantly better than the best one of them.

    Words under other parameters, analyzers and lengths of passages are asked in transactions that are rolled back: nobody
    else sees any of it, and nothing of it stays.

    Args:
        connection: In autocommit mode, of a member of ``pgrag_owner`` that may take the role ``pgrag_app``.
        collection: Its name.
        sweep: Of ``SWEEPS``. ``analyzer`` and ``chunking`` copy the collection for each value.
        grid: Values to try instead of those of ``GRID``.
        folds: At least 2, at most as many as queries.
        encoder: Embeds queries, and passages that are cut anew, by the space's model; None: its token table does.
        principals: Who asks the queries that name nobody; none: the public.
        apply: Give the collection what is proposed.
        seed: Of the folds.
        measured_by: As of ``measure``.
        on_progress: Called with what is done, how much of it, and all.

    Raises:
        PgragError: the extra ``evaluate`` is missing, there are fewer than 20 judged queries that count, or something that
            can't be swept.
        Refused: there is no such collection, or the role may not act for others.
    """
    missing = needs_extra("ir_measures", "scipy", "statsmodels", what="tuning a collection")
    if missing is not None:
        raise missing
    if not sweep:
        raise PgragError("nothing is named that could be swept", f"--sweep {','.join(SWEEPS)}")
    for name in sweep:
        if name not in GRID:
            raise PgragError(f'"{name}" is nothing that can be swept', f"--sweep {','.join(SWEEPS)}")
    everything = [
        one if one.principals else replace(one, principals=tuple(principals))
        for one in judged(connection, collection)
    ]
    queries = [one for one in everything if any(line.grade > 0 for line in one.judgements)]
    if len(queries) < FEWEST_QUERIES:
        raise PgragError(
            f'collection "{collection}" has {len(queries)} judged queries with an answer, and of fewer than'
            f" {FEWEST_QUERIES} nothing can be claimed",
            f"pgrag eval import --collection {collection} --beir DIR",
        )
    if not 2 <= folds <= len(queries):
        raise PgragError(f"folds must be between 2 and {len(queries)}, got {folds}", "--folds 5")
    values = {name: tuple((grid or {}).get(name, GRID[name])) for name in sweep}
    asker = _Asker(connection, collection, queries, encoder, measured_by, values, on_progress)
    groups = asker.groups(values)
    parts = folds_of(len(queries), folds, seed)
    with translated():
        trials = _trials(asker, groups, values, parts)
        budgets, budget = asker.budgets(values["budget"]) if "budget" in values else ((), None)
        proposal, reason, wanted = _proposal(asker.current, trials)
        tuning = Tuning(
            collection=collection,
            measure=measured_by,
            queries=len(queries),
            left_out=len(everything) - len(queries),
            folds=folds,
            current=asker.current.as_json(),
            trials=tuple(one.trial for one in trials),
            budgets=budgets,
            budget=budget,
            proposal=proposal,
            reason=reason,
        )
        if apply and wanted is not None:
            _apply(connection, collection, asker.current, wanted, on_progress)
            tuning = replace(tuning, applied=True)
        return _keep(connection, tuning, values, seed)


def folds_of(count: int, folds: int, seed: int) -> list[NDArray[np.int64]]:
    """Part numbers from 0 into folds of about the same size, drawn anew for each seed."""
    return [np.sort(part) for part in np.array_split(np.random.default_rng(seed).permutation(count), folds)]


def cross_validated(
    choose: Callable[[NDArray[np.int64]], Any],
    values: Callable[[Any], NDArray[np.float64]],
    folds: Sequence[NDArray[np.int64]],
) -> tuple[NDArray[np.float64], list[Any]]:
    """Score each query by what the queries of the other folds choose.

    Args:
        choose: What these queries choose; it must not look at others.
        values: The value of each query under a choice.
        folds: The queries of each.

    Returns:
        A value a query, and the choice of each fold.
    """
    everything = np.sort(np.concatenate(folds))
    scored, choices = np.zeros(len(everything)), []
    for fold in folds:
        choice = choose(np.setdiff1d(everything, fold))
        scored[fold] = values(choice)[fold]
        choices.append(choice)
    return scored, choices


def _best(asker: _Asker, options: Sequence[_Setting], on: NDArray[np.int64]) -> _Setting:
    """Return the option with the highest mean; of equal ones the first."""
    means = [float(asker.values(option)[on].mean()) for option in options]
    return options[int(np.argmax(np.array(means) > max(means) - 1e-12))]


def _options(start: _Setting, names: Sequence[str], values: Mapping[str, Sequence[Any]]) -> list[_Setting]:
    """Return the combinations of some parameters, the one to start from first."""
    swept = [name for name in names if name in values]
    found = [start]
    for combination in product(*(dict.fromkeys((start.get(name), *values[name])) for name in swept)):
        option = start
        for name, value in zip(swept, combination, strict=True):
            option = option.with_(name, value)
        found.append(option.plain())
    return list(dict.fromkeys(found))


def _trials(
    asker: _Asker,
    groups: Sequence[str],
    values: Mapping[str, Sequence[Any]],
    folds: Sequence[NDArray[np.int64]],
) -> list[_Tried]:
    """Tune each group by itself, and those of the search together."""
    start = asker.current
    before = asker.values(start)

    def one_after_another(together: Sequence[str], on: NDArray[np.int64]) -> _Setting:
        chosen = start
        for group in together:
            chosen = _best(asker, _options(chosen, _GROUPS[group], values), on)
        return chosen

    of_search = [group for group in groups if group not in _ANEW]
    plans = {group: [group] for group in groups} | ({_TOGETHER: of_search} if len(of_search) > 1 else {})
    raw = []
    for name, together in plans.items():
        after, choices = cross_validated(
            lambda on, together=together: one_after_another(together, on),  # type: ignore[misc]
            asker.values,
            folds,
        )
        chosen = one_after_another(together, np.arange(len(before)))
        tried = 1 + sum(len(_options(start, _GROUPS[group], values)) - 1 for group in together)
        raw.append((name, tried, after, choices, chosen, paired(before, after)))
    corrected = holm([one[-1].p_permutation for one in raw])
    return [
        _Tried(
            Trial(
                group=name,
                tried=tried,
                old=float(before.mean()),
                new=float(after.mean()),
                low=pairs.low,
                high=pairs.high,
                p=pairs.p_permutation,
                p_holm=p,
                wins=pairs.wins,
                ties=pairs.ties,
                losses=pairs.losses,
                chosen=chosen.beside(start),
                chosen_by_fold=tuple(choice.beside(start) for choice in choices),
            ),
            chosen,
            after,
        )
        for (name, tried, after, choices, chosen, pairs), p in zip(raw, corrected, strict=True)
    ]


def _proposal(current: _Setting, trials: Sequence[_Tried]) -> tuple[dict[str, Any], str, _Setting | None]:
    """Return the group with the largest gain; several together only where that is more than the best one of them gives."""
    better = [one for one in trials if one.trial.is_better]
    if not better:
        return {}, "nothing that was tried is significantly better on queries that didn't choose it", None
    alone = [one for one in better if one.trial.group != _TOGETHER]
    best = max(alone or better, key=lambda one: one.trial.new)
    for one in better:
        if one.trial.group == _TOGETHER and one.trial.new > best.trial.new:
            best = one if paired(best.values, one.values).p_permutation < SIGNIFICANCE else best
    also = [
        one.trial.group
        for one in alone
        if one is not best and (best.trial.group in _ANEW or one.trial.group in _ANEW)
    ]
    reason = f"{best.trial.group}: {best.trial.old:.3f} to {best.trial.new:.3f}, p {_p(best.trial.p_holm)}"
    if also:
        reason += f"; {' and '.join(also)} alone is better as well: apply this, and tune again"
    return best.chosen.beside(current), reason, best.chosen


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"= {value:.3f}"


@dataclass(frozen=True)
class _Tried:
    """A trial, what all queries choose, and the value of each query by what the other folds chose."""

    trial: Trial
    chosen: _Setting
    values: NDArray[np.float64]


class _Asker:
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
            about = _one(connection, "select pgrag.tunable_settings(%s)", collection)
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
        self._qrels = {
            one.query_id: _grades((line.uri, line.grade) for line in one.judgements) for one in queries
        }
        self._found: dict[tuple[float, float, str, int], list[_Found]] = {}
        self._values: dict[_Setting, NDArray[np.float64]] = {}

    def groups(self, values: Mapping[str, Sequence[Any]]) -> list[str]:
        """Return the groups that can be swept, and refuse those that can't."""
        wanted = [group for group, names in _GROUPS.items() if any(name in values for name in names)]
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

    def values(self, setting: _Setting) -> NDArray[np.float64]:
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

    def budgets(self, tokens: Sequence[int]) -> tuple[tuple[Budget, ...], int]:
        """Return what each budget keeps, and the smallest that isn't significantly worse than the largest."""
        sizes = sorted(set(tokens))
        kept: dict[int, list[float]] = {size: [] for size in sizes}
        for nth, (query, vector) in enumerate(zip(self._queries, self._vectors, strict=True), 1):
            relevant = {line.uri for line in query.judgements if line.grade > 0}
            with self._acting(query):
                for size in sizes:
                    rows = self._connection.execute(
                        "select uri from pgrag.pack_context(%s, %s, collections => %s, embedding => %s) where place is not null",
                        (query.query, size, [self._collection], vector),
                    ).fetchall()
                    kept[size].append(len(relevant & {uri for (uri,) in rows}) / len(relevant))
            self._on_progress("packing", nth, len(self._queries))
        largest = np.array(kept[sizes[-1]])
        corrected = holm([paired(largest, np.array(kept[size])).p_permutation for size in sizes])
        found = tuple(
            Budget(size, float(np.mean(kept[size])), p) for size, p in zip(sizes, corrected, strict=True)
        )
        enough = next(
            one.tokens
            for one in found
            if one.tokens == sizes[-1] or one.p_holm >= SIGNIFICANCE or one.recall >= found[-1].recall
        )
        return found, enough

    def _documents(self, found: Candidates, settings: SearchSettings) -> list[str]:
        places = fused(found, settings)[:_PASSAGES]
        return [self._uris[number] for number in dict.fromkeys(found.documents[places].tolist())]

    def _asked(self, setting: _Setting) -> list[_Found]:
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

    def _ask_with_bm25(self, setting: _Setting) -> list[_Found]:
        """Ask the words under other parameters of BM25, which are taken back; the vectors stay what they are."""
        before = self._asked(self.current)
        with self._connection.transaction(force_rollback=True):
            _one(
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

    def _ask_anew(self, setting: _Setting) -> list[_Found]:
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
    def _copied(self, setting: _Setting, lacking: dict[bytes, str]) -> Iterator[str]:
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
                after = _one(
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
                _one(
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
                while _one(connection, "select pgrag.embed_pending(%s, 10000)", self._space):
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


def _current(about: Mapping[str, Any], dense: bool) -> _Setting:
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
    return _Setting(about["k1"], about["b"], about["analyzer"], about["chunk_tokens"], search)


def _apply(
    connection: psycopg.Connection[Any],
    collection: str,
    current: _Setting,
    wanted: _Setting,
    on_progress: Callable[[str, int, int], None],
) -> None:
    """Give the collection what is proposed; what is indexed anew goes batch by batch, beside searches and writes."""
    with connection.transaction():
        if (wanted.k1, wanted.b) != (current.k1, current.b):
            connection.execute("select pgrag.set_bm25(%s, %s, %s)", (collection, wanted.k1, wanted.b))
        changed = {
            name: value
            for name, value in wanted.search.as_json().items()
            if value != current.search.as_json()[name]
        }
        if changed:
            kept = _one(connection, "select pgrag.tunable_settings(%s)", collection)["search"]
            connection.execute(
                "select pgrag.set_search_settings(%s, %s)", (collection, json.dumps(kept | changed))
            )
        if wanted.analyzer != current.analyzer:
            connection.execute("select pgrag.set_analyzer(%s, %s)", (collection, wanted.analyzer))
        if wanted.chunk_tokens != current.chunk_tokens:
            connection.execute("select pgrag.set_chunk_tokens(%s, %s)", (collection, wanted.chunk_tokens))
    for differs, call in (
        (wanted.analyzer != current.analyzer, "select pgrag.reindex_chunks(%s, %s)"),
        (wanted.chunk_tokens != current.chunk_tokens, "select pgrag.rechunk_documents(%s, %s)"),
    ):
        after: int | None = 0 if differs else None
        while after is not None:
            with connection.transaction():
                after = _one(connection, call, collection, after)
            on_progress("indexing anew", after or 0, after or 0)


def _keep(
    connection: psycopg.Connection[Any], tuning: Tuning, values: Mapping[str, Sequence[Any]], seed: int
) -> Tuning:
    """Keep what was tried in ``pgrag.run``."""
    about = {
        "kind": "tune",
        "sweep": {name: list(tried) for name, tried in values.items()},
        "folds": tuning.folds,
        "seed": seed,
        "measure": tuning.measure,
        "queries": tuning.queries,
        "current": dict(tuning.current),
        "proposal": dict(tuning.proposal),
        "reason": tuning.reason,
        "applied": tuning.applied,
        "trials": [asdict(one) for one in tuning.trials],
        "budgets": [asdict(one) for one in tuning.budgets],
    }
    figures = {one.group: {tuning.measure: one.new} for one in tuning.trials}
    with connection.transaction():
        run_id = _one(
            connection,
            "select pgrag.record_run(%s, %s, %s, %s)",
            tuning.collection,
            "tune",
            json.dumps(about),
            json.dumps(figures),
        )
    return replace(tuning, run_id=run_id)


def _grades(lines: Any) -> dict[str, int]:
    """Return the highest grade of each document."""
    found: dict[str, int] = {}
    for uri, grade in lines:
        found[uri] = max(grade, found.get(uri, grade))
    return found


def _one(connection: psycopg.Connection[Any], call: str, *arguments: object) -> Any:
    row = connection.execute(call, arguments).fetchone()
    return row[0] if row else None
