"""Serves the stage ``evaluate``: takes in judged queries, and says whether one space answers them worse than another.

Searching and keeping the figures is SQL; measures come from ir-measures and the test of significance from SciPy,
both in the extra ``evaluate``.
"""

from __future__ import annotations

import gzip
import importlib.metadata
import importlib.util
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import psycopg

from pgrag._acting import act_as
from pgrag._utf8 import read_utf8
from pgrag._vector import to_text
from pgrag.errors import PgragError, translated
from pgrag.spaces import check_encoder, query_encoder_of, space_passport

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pgrag.embed import Encoder

__all__ = ["Comparison", "Import", "Verdict", "compare_spaces", "has_judged", "import_beir", "needs_extra"]

MEASURES = ("nDCG@10", "recall@10")
# Below this p a difference counts as one.
SIGNIFICANCE = 0.05
# With fewer queries a difference that matters would often pass unseen, so nothing is said of significance.
FEWEST_QUERIES = 20

_PASSAGES = 100
_DOCUMENTS = 10
_RESAMPLES = 9999
_WEIGHTS = {
    "words": '{"lexical": 1, "dense": 0}',
    "dense": '{"lexical": 0, "dense": 1}',
    "hybrid": '{"lexical": 1, "dense": 1}',
}
_SEARCH = "select uri from pgrag.search(%s, %s, %s, %s, weights => %s, space => %s)"


@dataclass(frozen=True)
class Import:
    """What an import of judged queries did.

    Attributes:
        queries: Judged queries taken in.
        judgements: Judgements of them.
        unknown: Judged documents that the collection doesn't hold.
    """

    queries: int
    judgements: int
    unknown: int


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


def import_beir(
    connection: psycopg.Connection[Any],
    collection: str,
    folder: Path,
    *,
    principals: Sequence[str] = (),
    split: str = "test",
) -> Import:
    """Take in the judged queries of a folder in BEIR's layout; those that are judged already are replaced.

    Args:
        connection: Of a member of ``pgrag_writer`` or ``pgrag_owner``.
        collection: Its name; the uri of a document is BEIR's ``_id``.
        folder: Holds ``queries.jsonl`` (``_id``, ``text``; packed with gzip or not) and ``qrels/SPLIT.tsv`` or ``qrels.tsv``
            (query, document and grade between tabs).
        principals: Who asks them; none: the public.
        split: Which judgements, where there are several.

    Returns:
        What was taken in: queries with a judgement, and no others.

    Raises:
        PgragError: a file is missing or isn't what it should be.
        Refused: there is no such collection, or a name is none of a principal.
    """
    grades = list(_qrels(folder, split))
    judged = {query_id for query_id, _, _ in grades}
    texts = {query_id: text for query_id, text in _queries(folder) if query_id in judged}
    if not texts:
        raise PgragError(
            f"{folder} has no query with a judgement",
            "queries.jsonl and qrels.tsv must name the same queries.",
        )
    with translated(), connection.transaction():
        row = connection.execute(
            "select * from pgrag.import_judged(%s, %s, %s, %s, %s, %s, %s)",
            (
                collection,
                list(texts),
                list(texts.values()),
                json.dumps([list(principals)] * len(texts)),
                [query_id for query_id, _, _ in grades],
                [uri for _, uri, _ in grades],
                [grade for _, _, grade in grades],
            ),
        ).fetchone()
    assert row is not None  # noqa: S101 - a function call gives one row
    return Import(*row)


def needs_extra() -> PgragError | None:
    """Return the error that says what is missing, where the extra ``evaluate`` isn't installed; else None."""
    for module, name in (("ir_measures", "ir-measures"), ("scipy", "scipy")):
        if importlib.util.find_spec(module) is None:
            return PgragError(
                f"comparing two spaces on judged queries needs {name}, which is not installed",
                "pip install 'pgrag-rls[evaluate]'",
            )
    return None


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
    values: dict[tuple[str, str], tuple[list[float], list[float]]] = {}
    with translated():
        for nth, one in enumerate(judged):
            found = _ask(connection, collection, one, nth, before, after)
            for arm, (old_uris, new_uris) in found.items():
                for measure, of_old, of_new in _measured(one.grades, old_uris, new_uris):
                    pair = values.setdefault((arm, measure), ([], []))
                    pair[0].append(of_old)
                    pair[1].append(of_new)
            on_query(nth + 1, len(judged))
    comparisons = tuple(
        _compare(arm, measure, *values[arm, measure], compared=arm in before.arms)
        for arm in ("dense", "hybrid")
        for measure in MEASURES
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
        f"{arm} {measure}": {
            one.query_id: pair for one, pair in zip(judged, zip(*both, strict=True), strict=True)
        }
        for (arm, measure), both in values.items()
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
        return _Side(old, both, None), f"space {old}, with queries by the token table {table}"
    return (
        words,
        f"words alone, since nothing embeds queries for space {old}: name its model with --old-model",
    )


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
    grades: Mapping[str, int], old: Sequence[str], new: Sequence[str]
) -> Iterator[tuple[str, float, float]]:
    """Yield each measure of two rankings of one query."""
    import ir_measures

    measures = {ir_measures.nDCG @ _DOCUMENTS: MEASURES[0], ir_measures.R @ _DOCUMENTS: MEASURES[1]}
    qrels = [ir_measures.Qrel("q", uri, max(0, grade)) for uri, grade in grades.items()]
    sides = []
    for ranking in (old, new):
        # Scores that fall with the rank, since ties would be put into another order.
        run = [ir_measures.ScoredDoc("q", uri, -float(rank)) for rank, uri in enumerate(ranking)]
        of_query = {one.measure: one.value for one in ir_measures.iter_calc(list(measures), qrels, run)}
        sides.append({name: float(of_query.get(measure, 0.0)) for measure, name in measures.items()})
    for name in measures.values():
        yield name, sides[0][name], sides[1][name]


def _compare(
    arm: str, measure: str, old: Sequence[float], new: Sequence[float], *, compared: bool
) -> Comparison:
    after, before = np.array(new), np.array(old)
    if not compared:
        return Comparison(arm, measure, None, float(after.mean()), None, 0, 0, 0)
    # Sums of the same numbers in another order differ in the last bits, which is no difference.
    better, worse = after > before + 1e-9, after < before - 1e-9
    return Comparison(
        arm=arm,
        measure=measure,
        old=float(before.mean()),
        new=float(after.mean()),
        p=_p_value(before[better | worse], after[better | worse]),
        wins=int(better.sum()),
        ties=int((~better & ~worse).sum()),
        losses=int(worse.sum()),
    )


def _p_value(old: NDArray[np.float64], new: NDArray[np.float64]) -> float:
    """Return how likely chance alone makes the sums differ this much: which of a pair is whose is drawn anew.

    Fisher's randomisation test on pairs, two-sided; exact where at most 13 differ. Smucker, Allan and Carterette 2007.
    """
    from scipy import stats

    if len(old) < 2:
        return 1.0  # either sign of one difference is as likely
    result = stats.permutation_test(
        (new, old),
        lambda x, y, axis: np.sum(x - y, axis=axis),
        permutation_type="samples",
        n_resamples=_RESAMPLES,
        batch=1000,
        rng=np.random.default_rng(0),
    )
    return min(1.0, float(result.pvalue))


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
        "test": f"paired permutation, two-sided, {_RESAMPLES} resamples",
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


def _queries(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield id and text of each query."""
    path = folder / "queries.jsonl"
    packed = folder / "queries.jsonl.gz"
    try:
        text = gzip.decompress(packed.read_bytes()) if packed.is_file() else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise PgragError(
            f"{path} can't be read: {error}", "It holds an object a line: _id and text."
        ) from error
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            query = json.loads(line)
            yield str(query["_id"]), str(query["text"])
        except (ValueError, KeyError, TypeError) as error:
            raise PgragError(
                f"{path}, line {number} is no query: {error!r}", "It holds an object a line: _id and text."
            ) from error


def _qrels(folder: Path, split: str) -> Iterator[tuple[str, str, int]]:
    """Yield query, document and grade of each judgement."""
    path = next(
        (one for one in (folder / "qrels" / f"{split}.tsv", folder / "qrels.tsv") if one.is_file()), None
    )
    if path is None:
        raise PgragError(
            f"{folder} has neither qrels/{split}.tsv nor qrels.tsv",
            "Name a folder in BEIR's layout; --split names other judgements than test.",
        )
    for number, line in enumerate(read_utf8(path).splitlines(), 1):
        query_id, _, rest = line.partition("\t")
        uri, _, grade = rest.partition("\t")
        try:
            yield query_id, uri, int(grade)
        except ValueError as error:
            if number == 1 and grade.strip().isalpha():
                continue  # the names of the columns
            if line.strip():
                raise PgragError(
                    f"{path}, line {number} is no judgement: {line[:80]!r}",
                    "It holds query, document and grade between tabs.",
                ) from error
