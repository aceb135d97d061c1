"""Serves the stage ``evaluate``: finds settings that answer the judged queries better, and says whether that is more than chance.

What is chosen is chosen on some queries and scored on others, in folds, so a setting gets nothing for having been tried often.
Searching is SQL; measures and the test of significance are their own modules'.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import psycopg

from pgrag.errors import PgragError, translated
from pgrag.evaluate._asker import GROUPS, Asker, Setting, one_value
from pgrag.evaluate._extra import needs_extra
from pgrag.evaluate._judged import judged
from pgrag.evaluate._significance import SIGNIFICANCE, holm, paired

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
_TOGETHER = "together"
_ANEW = ("analyzer", "chunking")
FEWEST_QUERIES = 20


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
    asker = Asker(connection, collection, queries, encoder, measured_by, values, on_progress)
    groups = asker.groups(values)
    parts = folds_of(len(queries), folds, seed)
    with translated():
        trials = _trials(asker, groups, values, parts)
        budgets, budget = _budgets(asker, values["budget"]) if "budget" in values else ((), None)
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


def _best(asker: Asker, options: Sequence[Setting], on: NDArray[np.int64]) -> Setting:
    """Return the option with the highest mean; of equal ones the first."""
    means = [float(asker.values(option)[on].mean()) for option in options]
    return options[int(np.argmax(np.array(means) > max(means) - 1e-12))]


def _options(start: Setting, names: Sequence[str], values: Mapping[str, Sequence[Any]]) -> list[Setting]:
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
    asker: Asker,
    groups: Sequence[str],
    values: Mapping[str, Sequence[Any]],
    folds: Sequence[NDArray[np.int64]],
) -> list[_Tried]:
    """Tune each group by itself, and those of the search together."""
    start = asker.current
    before = asker.values(start)

    def one_after_another(together: Sequence[str], on: NDArray[np.int64]) -> Setting:
        chosen = start
        for group in together:
            chosen = _best(asker, _options(chosen, GROUPS[group], values), on)
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
        tried = 1 + sum(len(_options(start, GROUPS[group], values)) - 1 for group in together)
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


def _budgets(asker: Asker, tokens: Sequence[int]) -> tuple[tuple[Budget, ...], int]:
    """Return what each budget keeps, and the smallest that isn't significantly worse than the largest."""
    sizes = sorted(set(tokens))
    kept = asker.kept_within(sizes)
    corrected = holm([paired(kept[sizes[-1]], kept[size]).p_permutation for size in sizes])
    found = tuple(Budget(size, float(kept[size].mean()), p) for size, p in zip(sizes, corrected, strict=True))
    enough = next(
        one.tokens
        for one in found
        if one.tokens == sizes[-1] or one.p_holm >= SIGNIFICANCE or one.recall >= found[-1].recall
    )
    return found, enough


def _proposal(current: Setting, trials: Sequence[_Tried]) -> tuple[dict[str, Any], str, Setting | None]:
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
    chosen: Setting
    values: NDArray[np.float64]


def _apply(
    connection: psycopg.Connection[Any],
    collection: str,
    current: Setting,
    wanted: Setting,
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
            kept = one_value(connection, "select pgrag.tunable_settings(%s)", collection)["search"]
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
                after = one_value(connection, call, collection, after)
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
        run_id = one_value(
            connection,
            "select pgrag.record_run(%s, %s, %s, %s)",
            tuning.collection,
            "tune",
            json.dumps(about),
            json.dumps(figures),
        )
    return replace(tuning, run_id=run_id)
