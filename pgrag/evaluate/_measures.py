"""Serves the stage ``evaluate``: measures of a ranking against judgements, by ir-measures.

Who asks, what is searched and which span counts for which document is settled before; here are names and numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal

from pgrag.errors import PgragError
from pgrag.evaluate._extra import needs_extra

__all__ = ["DEFAULT_MEASURES", "HIGHEST_GRADE", "MEASURES", "Measured", "measure", "ranking"]

DEFAULT_MEASURES = (
    "ndcg@10",
    "recall@10",
    "recall@100",
    "mrr",
    "map",
    "precision@10",
    "hit@10",
    "judged@10",
)

# trec_eval keeps a counter for each gain up to the highest, so a gain can't be any number.
HIGHEST_GRADE = 32_767
_HIGHEST_EXPONENT = 20
_NAME = re.compile(r"([a-z_]+)(?:@([1-9][0-9]{0,5}))?")


@dataclass(frozen=True)
class _Kind:
    """One family of measures: what it says, whether it needs a k, and what ir-measures calls it."""

    says: str
    cutoff: Literal["needed", "may be"]
    make: Callable[
        [Any, int], Any
    ]  # the module ir_measures and the highest grade to the measure without cutoff


def _exponential(ir_measures: Any, highest: int) -> Any:
    # What ir-measures calls nDCG(dcg='exp-log2'), which would need Perl and gives five decimals.
    return ir_measures.nDCG(gains={grade: 2**grade - 1 for grade in range(1, highest + 1)})


_KINDS = {
    "recall": _Kind(
        "share of the relevant documents that are among the first k", "needed", lambda ir, _: ir.R
    ),
    "hit": _Kind("1 where one of the first k is relevant, else 0", "needed", lambda ir, _: ir.Success),
    "mrr": _Kind("1 / rank of the first relevant document, 0 beyond k", "may be", lambda ir, _: ir.RR),
    "ndcg": _Kind("nDCG; a grade is its gain, as trec_eval has it", "may be", lambda ir, _: ir.nDCG),
    "ndcg_exp": _Kind("nDCG; the gain of a grade is 2^grade - 1", "may be", _exponential),
    "map": _Kind(
        "mean of the precisions at the ranks of the relevant documents", "may be", lambda ir, _: ir.AP
    ),
    "precision": _Kind("share of k that is relevant", "needed", lambda ir, _: ir.P),
    "judged": _Kind(
        "share of the first k that somebody judged, either way", "needed", lambda ir, _: ir.Judged
    ),
}

MEASURES: Mapping[str, str] = {
    name + ("@k" if kind.cutoff == "needed" else "[@k]"): kind.says for name, kind in _KINDS.items()
}
"""Every measure that is known, with what it says; ``[@k]`` may be left out."""


@dataclass(frozen=True)
class Measured:
    """What a run is worth by judgements.

    Attributes:
        per_query: Query to measure to value, each query that counts, also those that found nothing.
        mean: Measure to the mean over these queries, each with equal weight; empty where none counts.
        left_out: Queries that don't count, since nothing relevant is known for them.
        unjudged: Queries of the run that have no judgements at all.
    """

    per_query: dict[str, dict[str, float]]
    mean: dict[str, float]
    left_out: tuple[str, ...]
    unjudged: tuple[str, ...] = ()


def ranking(documents: Iterable[str]) -> dict[str, float]:
    """Make what a run holds for one query from documents, best first; of a document named twice the first place counts."""
    return {uri: -float(rank) for rank, uri in enumerate(dict.fromkeys(documents))}


def measure(
    run: Mapping[str, Mapping[str, float]],
    qrels: Mapping[str, Mapping[str, int]],
    measures: Sequence[str] = DEFAULT_MEASURES,
    *,
    unanswerable: Literal["skip", "abstain"] = "skip",
    threshold: float | None = None,
) -> Measured:
    """Measure rankings against judgements.

    A judged query counts whether it found something or not; without results each measure is 0. Documents with equal scores are
    ranked by name, the last in the order of bytes first, as trec_eval does. Grades below 1 are judged and not relevant;
    documents without judgement aren't relevant. ``judged@k`` and only it is of what was returned, where that is less
    than k.

    Args:
        run: Query to document to score, more is better; ``ranking`` makes one of documents in order.
        qrels: Query to document to grade, at most 32,767 (of ``ndcg_exp`` 20).
        measures: Names as in ``MEASURES``, such as ``ndcg@10``.
        unanswerable: Queries that no document is relevant for: ``skip`` leaves them out, and names them; with ``abstain``
            each measure but ``judged@k`` is 1 where nothing was returned, else 0.
        threshold: What scores less doesn't count as returned, for no query; None: everything counts.

    Raises:
        PgragError: a measure isn't known, a grade is too high, a score is NaN, or the extra ``evaluate`` is missing.
    """
    missing = needs_extra("ir_measures", what="measuring a run")
    if missing is not None:
        raise missing
    names = list(dict.fromkeys(measures))
    wanted = [_parsed(name) for name in names]
    grades = {
        query: {uri: max(0, int(grade)) for uri, grade in of_query.items()}
        for query, of_query in qrels.items()
    }
    _check_grades(grades, exponential=any(kind is _KINDS["ndcg_exp"] for kind, _ in wanted))
    ranked = {query: _ranked(query, run.get(query, {}), threshold) for query in grades}
    values = _values(dict(zip(names, wanted, strict=True)), ranked, grades)
    per_query: dict[str, dict[str, float]] = {}
    for query, of_query in grades.items():
        if not any(of_query.values()) and unanswerable == "skip":
            continue
        per_query[query] = {name: values.get((query, name), 0.0) for name in names}
        if not any(of_query.values()):
            abstained = 0.0 if ranked[query] else 1.0
            per_query[query] |= {
                name: abstained
                for name, (kind, _) in zip(names, wanted, strict=True)
                if kind is not _KINDS["judged"]
            }
    return Measured(
        per_query=per_query,
        mean={name: fmean(one[name] for one in per_query.values()) for name in names if per_query},
        left_out=tuple(query for query in grades if query not in per_query),
        unjudged=tuple(query for query in run if query not in grades),
    )


def _parsed(name: str) -> tuple[_Kind, int | None]:
    """Return kind and k of a measure's name."""
    found = _NAME.fullmatch(name)
    kind = _KINDS.get(found[1]) if found else None
    if found is None or kind is None or (kind.cutoff == "needed" and found[2] is None):
        raise PgragError(
            f"{name!r} is no measure that is known", f"Known are {', '.join(MEASURES)}; k is 1 to 999999."
        )
    return kind, int(found[2]) if found[2] else None


def _check_grades(grades: Mapping[str, Mapping[str, int]], *, exponential: bool) -> None:
    most = _HIGHEST_EXPONENT if exponential else HIGHEST_GRADE
    for query, of_query in grades.items():
        for uri, grade in of_query.items():
            if grade > most:
                raise PgragError(
                    f"the grade of {uri!r} for query {query!r} is {grade}, and the highest is {most:,}",
                    "Judge with small whole numbers, such as 0 to 3."
                    + (" ndcg_exp takes 2 to that power." if exponential else ""),
                )


def _ranked(query: str, scores: Mapping[str, float], threshold: float | None) -> dict[str, float]:
    """Return the documents of a query with scores that fall with their rank: providers differ on ties, and keep float32."""
    if any(math.isnan(score) for score in scores.values()):
        raise PgragError(f"a score of query {query!r} is NaN, and has no place in an order", None)
    kept = ((score, uri) for uri, score in scores.items() if threshold is None or score >= threshold)
    return ranking(
        uri
        for _, uri in sorted(
            kept, key=lambda one: (one[0], one[1].encode("utf-8", "surrogatepass")), reverse=True
        )
    )


def _values(
    wanted: Mapping[str, tuple[_Kind, int | None]],
    run: Mapping[str, Mapping[str, float]],
    grades: Mapping[str, Mapping[str, int]],
) -> dict[tuple[str, str], float]:
    """Return the value of each query and measure that ir-measures gives."""
    import ir_measures

    # What found nothing, or has no judgement, makes some providers divide by zero; its values are 0 anyway.
    qrels = {query: dict(of_query) for query, of_query in grades.items() if of_query}
    found = {query: dict(of_query) for query, of_query in run.items() if of_query and query in qrels}
    highest = max((grade for of_query in qrels.values() for grade in of_query.values()), default=0)
    values = {}
    # Apart, since in one call ir-measures may compute nDCG with the gains that another nDCG in it was given.
    for exponential in (False, True):
        of_name = {}
        for name, (kind, cutoff) in wanted.items():
            if (kind is _KINDS["ndcg_exp"]) == exponential:
                made = kind.make(ir_measures, max(1, highest))
                of_name[made if cutoff is None else made @ cutoff] = name
        if found and of_name:
            for one in ir_measures.iter_calc(list(of_name), qrels, found):
                values[one.query_id, of_name[one.measure]] = float(one.value)
    return values
