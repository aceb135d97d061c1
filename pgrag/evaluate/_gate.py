"""Serves the stage ``evaluate``: the gate, which says whether one space answers judged queries worse than another.

Searching and keeping the figures is SQL; measures and the test of significance are those of every other comparison.
"""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

import psycopg

from pgrag._acting import act_as
from pgrag._vector import to_text
from pgrag.errors import PgragError, translated
from pgrag.evaluate._extra import needs_extra
from pgrag.evaluate._measures import measure, ranking
from pgrag.evaluate._significance import RESAMPLES, SIGNIFICANCE, paired
from pgrag.spaces import check_encoder, query_encoder_of, space_passport

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pgrag.embed import Encoder

__all__ = ["Comparison", "Verdict", "compare_spaces", "has_judged"]

MEASURES = ("nDCG@10", "recall@10")
# With fewer queries a difference that matters would often pass unseen, so nothing is said of significance.
FEWEST_QUERIES = 20

_PASSAGES = 100
_DOCUMENTS = 10
_WEIGHTS = {
    "words": '{"lexical": 1, "dense": 0}',
    "dense": '{"lexical": 0, "dense": 1}',
    "hybrid": '{"lexical": 1, "dense": 1}',
}
_SEARCH = "select uri from pgrag.search(%s, %s, %s, %s, weights => %s, space => %s)"


@dataclass(frozen=True)
class Comparison:
    """One figure of two spaces, the mean over the judged queries.

    Attributes:
        arm: ``dense`` or ``hybrid``.
        measure: ``nDCG@10`` or ``recall@10``.
        old: Of the space that answers now, or of words alone; None where there is nothing to compare with.
        new: Of the new space.
        p: How likely chance alone makes a difference like this one, two-sided: paired permutation test; None where
            there is nothing to compare with.
        wins: Queries that the new space answers better.
        ties: Queries that both answer equally well.
        losses: Queries that the new space answers worse.
    """

    arm: str
    measure: str
    old: float | None
    new: float
    p: float | None
    wins: int
    ties: int
    losses: int

    @property
    def is_worse(self) -> bool:
        """Whether the new space is significantly worse."""
        return self.old is not None and self.p is not None and self.new < self.old and self.p < SIGNIFICANCE


@dataclass(frozen=True)
class Verdict:
    """Whether a new space may answer a collection, by its judged queries.

    Attributes:
        collection: The collection.
        old: The space that answers now, or None.
        new: The space that is to answer.
        compared_with: What the new one was held against, in words.
        queries: Judged queries that counted.
        left_out: Those that didn't, since the collection holds none of their answers.
        comparisons: The figures, by arm and measure.
        passed: Whether the gate is open.
        reason: Why, in one sentence.
        run_id: Where it is kept in ``pgrag.run``; None where it isn't.
    """

    collection: str
    old: str | None
    new: str
    compared_with: str
    queries: int
    left_out: int
    comparisons: tuple[Comparison, ...]
    passed: bool
    reason: str
    run_id: int | None = None


@dataclass(frozen=True)
class _Judged:
    """A row of ``pgrag.judged_queries``."""

    query_id: str
    query: str
    principals: list[str]
    grades: dict[str, int]
    known: int


@dataclass(frozen=True)
class _Side:
    """How one side of the comparison is searched: in which space, by which arms, with which vectors."""

    space: str | None
    arms: Mapping[str, str]  # the arm that is compared, and the weights it is searched by
    vectors: NDArray[np.float32] | None  # None: embedded in SQL, or not at all


def has_judged(connection: psycopg.Connection[Any], collection: str) -> bool:
    """Tell whether a collection has judged queries that count: whose answers it holds.

    Args:
        connection: Of a member of ``pgrag_writer`` or ``pgrag_owner``.
        collection: Its name.

    Raises:
        Refused: there is no such collection.
    """
    return any(one.known for one in _judged(connection, collection))


def compare_spaces(
    connection: psycopg.Connection[Any],
    collection: str,
    new: Encoder,
    *,
    old: str | None,
    old_encoder: Encoder | None = None,
    on_query: Callable[[int, int], None] = lambda done, total: None,
) -> Verdict:
    """Hold a new space against the one that answers now, on the judged queries of a collection.

    Each query is asked as its principals, in both spaces and in one snapshot, by vectors alone (``dense``) and with words
    (``hybrid``); documents are ranked by their best passage. The gate is open unless nDCG@10 or recall@10 of one arm is
    significantly lower in the new space. What came out is kept in ``pgrag.run`` and in the new space's passport.

    Args:
        connection: In autocommit mode, of a member of ``pgrag_owner`` that may take the role ``pgrag_app``.
        collection: Its name.
        new: Embeds queries for the new space; its name is the space's.
        old: The space that answers now; None is none.
        old_encoder: Embeds queries for it; None is its token table, in SQL, and where it has none, words alone are
            what the new space is held against.
        on_query: Called after each with the queries asked so far and all.

    Raises:
        PgragError: the extra ``evaluate`` is missing, or there is no judged query whose answer the collection holds.
        Refused: the role may not act for others, or the old model is not that of the space of now.
    """
    missing = needs_extra()
    if missing is not None:
        raise missing
    everything = _judged(connection, collection)
    judged = [one for one in everything if one.known]
    if not judged:
        raise PgragError(
            f'collection "{collection}" has no judged queries'
            + (", or holds none of their answers" if everything else ""),
            f"pgrag eval import --collection {collection} --beir DIR; or say --force",
        )
    texts = [one.query for one in judged]
    before, compared_with = _old_side(connection, old, old_encoder, texts)
    after = _Side(
        new.name, {"dense": _WEIGHTS["dense"], "hybrid": _WEIGHTS["hybrid"]}, new.encode_queries(texts)
    )
    found: dict[str, tuple[dict[str, list[str]], dict[str, list[str]]]] = {
        arm: ({}, {}) for arm in after.arms
    }
    with translated():
        for nth, one in enumerate(judged):
            for arm, sides in _ask(connection, collection, one, nth, before, after).items():
                for of_side, uris in zip(found[arm], sides, strict=True):
                    of_side[one.query_id] = uris
            on_query(nth + 1, len(judged))
    qrels = {one.query_id: one.grades for one in judged}
    values = {
        (arm, name): (of_old, of_new)
        for arm, sides in found.items()
        for name, of_old, of_new in zip(MEASURES, *(_measured(side, qrels) for side in sides), strict=True)
    }
    comparisons = tuple(
        _compare(arm, name, *values[arm, name], compared=arm in before.arms)
        for arm in ("dense", "hybrid")
        for name in MEASURES
    )
    passed, reason = _judge(comparisons, len(judged))
    verdict = Verdict(
        collection=collection,
        old=old,
        new=new.name,
        compared_with=compared_with,
        queries=len(judged),
        left_out=len(everything) - len(judged),
        comparisons=comparisons,
        passed=passed,
        reason=reason,
    )
    per_query = {
        f"{arm} {name}": {
            one.query_id: pair for one, pair in zip(judged, zip(*both, strict=True), strict=True)
        }
        for (arm, name), both in values.items()
    }
    return _keep(connection, verdict, per_query)


def _old_side(
    connection: psycopg.Connection[Any],
    old: str | None,
    encoder: Encoder | None,
    texts: Sequence[str],
) -> tuple[_Side, str]:
    """Return how the space of now is searched, and what that is in words."""
    both = {"dense": _WEIGHTS["dense"], "hybrid": _WEIGHTS["hybrid"]}
    words = _Side(None, {"hybrid": _WEIGHTS["words"]}, None)
    if old is None:
        return words, "words alone, since no space answers now"
    if encoder is not None:
        check_encoder(connection, old, encoder)
        return _Side(old, both, encoder.encode_queries(texts)), f"space {old}, with queries by its model"
    table = query_encoder_of(connection, old)
    if table is not None:
        return _Side(old, both, None), _by_table(connection, old, table)
    return (
        words,
        f"words alone, since nothing embeds queries for space {old}: name its model with --old-model",
    )


def _by_table(connection: psycopg.Connection[Any], old: str, table: str) -> str:
    """Say that queries are embedded by a token table, and where it stands in for a model, how to compare models."""
    said = f"space {old}, with queries by the token table {table}"
    with translated(), connection.transaction():
        kinds = connection.execute("select space, kind from pgrag.space_backlog()").fetchall()
    if (old, "static") in kinds:
        return said  # the table embeds its documents as well
    model = space_passport(connection, old)["model"]
    return f"{said} as searches in SQL do, not by its model {model}: --old-model compares with that"


def _ask(
    connection: psycopg.Connection[Any], collection: str, one: _Judged, nth: int, before: _Side, after: _Side
) -> dict[str, tuple[list[str], list[str]]]:
    """Ask one query as who asks it, in one snapshot; the best documents of the old and of the new side, by arm."""

    def ask(side: _Side, arm: str) -> list[str]:
        if arm not in side.arms:
            return []
        vector = None if side.vectors is None else side.vectors[nth]
        rows = connection.execute(
            _SEARCH,
            (
                one.query,
                _PASSAGES,
                [collection],
                None if vector is None or not vector.any() else to_text(vector),
                side.arms[arm],
                side.space,
            ),
        ).fetchall()
        return list(dict.fromkeys(uri for (uri,) in rows))[:_DOCUMENTS]

    with connection.transaction():
        connection.execute("set transaction isolation level repeatable read, read only")
        act_as(connection, one.principals)
        return {arm: (ask(before, arm), ask(after, arm)) for arm in after.arms}


def _measured(
    found: Mapping[str, Sequence[str]], qrels: Mapping[str, Mapping[str, int]]
) -> list[list[float]]:
    """Return the values of each measure, in the order of the queries."""
    names = [name.lower() for name in MEASURES]
    of_query = measure({one: ranking(uris) for one, uris in found.items()}, qrels, names).per_query
    return [[of_query[one][name] for one in qrels] for name in names]


def _compare(
    arm: str, name: str, old: Sequence[float], new: Sequence[float], *, compared: bool
) -> Comparison:
    if not compared:
        return Comparison(arm, name, None, fmean(new), None, 0, 0, 0)
    pairs = paired(old, new)
    return Comparison(
        arm=arm,
        measure=name,
        old=fmean(old),
        new=fmean(new),
        p=pairs.p_permutation,
        wins=pairs.wins,
        ties=pairs.ties,
        losses=pairs.losses,
    )


def _judge(comparisons: Sequence[Comparison], queries: int) -> tuple[bool, str]:
    if queries < FEWEST_QUERIES:
        return False, (
            f"{queries} judged {'query says' if queries == 1 else 'queries say'} too little; {FEWEST_QUERIES} are the fewest"
            " of which significance is claimed"
        )
    worse = [one for one in comparisons if one.is_worse]
    if worse:
        which = " and ".join(
            f"{one.arm} {one.measure} ({one.new:.3f} against {one.old:.3f})" for one in worse
        )
        return False, f"it is significantly worse by {which}"
    return True, f"nothing is significantly worse (p < {SIGNIFICANCE}) on {queries} judged queries"


def _keep(
    connection: psycopg.Connection[Any], verdict: Verdict, per_query: Mapping[str, Mapping[str, Any]]
) -> Verdict:
    """Write a verdict down: a run of the collection, and figures in the new space's passport."""
    passports = {
        side: None if name is None else _passport(connection, name)
        for side, name in (("old", verdict.old), ("new", verdict.new))
    }
    settings = {
        "kind": "gate",
        "compared_with": verdict.compared_with,
        "passports": passports,
        "spaces": {"old": verdict.old, "new": verdict.new},
        "passages": _PASSAGES,
        "test": f"paired permutation, two-sided, {RESAMPLES} resamples",
        "significance": SIGNIFICANCE,
        "libraries": {name: importlib.metadata.version(name) for name in ("ir_measures", "scipy", "numpy")},
    }
    figures = asdict(verdict)
    figures["comparisons"] = [asdict(one) for one in verdict.comparisons]
    del figures["run_id"]
    with translated(), connection.transaction():
        row = connection.execute(
            "select pgrag.record_run(%s, %s, %s, %s)",
            (
                verdict.collection,
                f"gate: {verdict.old or 'words'} to {verdict.new}",
                json.dumps(settings),
                json.dumps(figures | {"per_query": per_query}),
            ),
        ).fetchone()
        kept = replace(verdict, run_id=int(row[0]) if row else None)
        connection.execute(
            "select pgrag.note_figures(%s, %s)",
            (verdict.new, json.dumps({"gate": figures | {"run_id": kept.run_id}})),
        )
    return kept


def _passport(connection: psycopg.Connection[Any], space: str) -> dict[str, Any]:
    """Return what made the vectors of a space, without what was measured of them before."""
    return {key: value for key, value in space_passport(connection, space).items() if key != "figures"}


def _judged(connection: psycopg.Connection[Any], collection: str) -> list[_Judged]:
    with translated(), connection.transaction():
        rows = connection.execute("select * from pgrag.judged_queries(%s)", (collection,)).fetchall()
    return [_Judged(*row) for row in rows]
