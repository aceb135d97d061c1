"""Serves the stage ``evaluate``: how good answers are by a judge, and how good they then are by people.

Metrics as RAGAS defines them: Es, James, Espinosa-Anke and Schockaert, EACL 2024 (arXiv 2309.15217), and its documentation.
Intervals as ARES takes them: Saad-Falcon, Khattab, Potts and Zaharia, NAACL 2024 (arXiv 2311.09476), by ppi-python.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np
import psycopg

from pgrag._utf8 import read_utf8
from pgrag.errors import PgragError, translated
from pgrag.evaluate._extra import needs_extra
from pgrag.evaluate._judge import Judge, JudgeError, Unjudged
from pgrag.evaluate._measures import measure, ranking

if TYPE_CHECKING:
    from pgrag.embed import Encoder

__all__ = [
    "ANSWER_METRICS",
    "ANSWER_NEEDS",
    "FEWEST_LABELS",
    "Answer",
    "AnswerFigure",
    "JudgedAnswer",
    "answer_figures",
    "judge_answers",
    "keep_answers",
    "read_answers",
    "read_labels",
]

ANSWER_METRICS: Mapping[str, str] = {
    "faithfulness": "share of the answer's claims that can be inferred from the contexts",
    "answer_relevance": "mean cosine of the question to questions that the answer answers; 0 where it is noncommittal",
    "context_precision": "mean of the precisions at the ranks of the contexts that were useful for the reference answer",
    "context_recall": "share of the reference answer's claims that can be inferred from the contexts",
}
"""Every metric of answers, with what it says."""

ANSWER_NEEDS: Mapping[str, tuple[str, ...]] = {
    "faithfulness": ("contexts",),
    "answer_relevance": (),
    "context_precision": ("contexts", "reference"),
    "context_recall": ("contexts", "reference"),
}
"""What each metric needs of a line beside the query and the answer; without it, it is not judged."""
FEWEST_LABELS = 10
"""Fewer labels of a metric say too little for an interval that rests on the normal distribution."""
_LACKS = {"contexts": "no contexts", "reference": "no reference answer"}
_ALPHA = 0.05
# After so many in a row that failed because of the endpoint, the rest isn't asked any more.
_MOST_FAILURES = 3
_FORM = 'It holds an object a line: "query_id" or "query", "answer", "contexts": ["…"], and where known "reference".'


@dataclass(frozen=True)
class Answer:
    """What was answered to a question, and from what.

    Attributes:
        query_id: Names it.
        query: The question.
        answer: What was answered.
        contexts: Passages that it was answered from, best first.
        reference: What a good answer says; None where nobody knows.
    """

    query_id: str
    query: str
    answer: str
    contexts: tuple[str, ...] = ()
    reference: str | None = None


@dataclass(frozen=True)
class JudgedAnswer:
    """What a judge said of an answer.

    Attributes:
        query_id: Of which.
        query: The question.
        metrics: Metric to value, of those that were judged.
        unjudged: Metric to the reason why it wasn't, such as that there are no contexts.
        detail: What the values were made of: claims with verdicts, questions, contexts that were useful.
    """

    query_id: str
    query: str
    metrics: dict[str, float]
    unjudged: dict[str, str]
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class AnswerFigure:
    """One metric of all answers.

    Attributes:
        metric: A name of ``ANSWER_METRICS``.
        mean: Mean of what the judge said; None where it judged nothing.
        judged: Answers that have a value.
        unjudged: Answers that should have one.
        labels: Answers with a value that people judged too.
        estimate: What people would say on average, by their labels and the judge: prediction-powered. None without
            enough labels.
        low: Lower end of the interval that holds that with a confidence of 95 %; None likewise.
        high: Its upper end; None likewise.
        why_none: Why there is no estimate, or None.
    """

    metric: str
    mean: float | None
    judged: int
    unjudged: int
    labels: int = 0
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    why_none: str | None = None


def read_answers(path: Path, *, known: Mapping[str, tuple[str, str | None]] | None = None) -> list[Answer]:
    """Read answers from a file with a JSON object a line.

    Args:
        path: Each line has ``query_id`` or ``query``, ``answer``, ``contexts`` (a list of texts), and may have ``reference``.
        known: Query and reference answer of judged queries by query_id, for what a line doesn't say itself.

    Raises:
        PgragError: a line isn't an answer, names a query that isn't known without saying it, or one that was there before.
    """
    known = known or {}
    ids_of_queries = {query: query_id for query_id, (query, _) in known.items()}
    found: dict[str, Answer] = {}
    for number, line in _lines(path):
        try:
            one = _answer(line, known, ids_of_queries)
        except ValueError as error:
            raise PgragError(f"{path}, line {number} is no answer: {error}", _FORM) from error
        if one.query_id in found:
            raise PgragError(
                f"{path}, line {number} answers {one.query_id!r} again",
                "Give each answer a query_id of its own.",
            )
        found[one.query_id] = one
    if not found:
        raise PgragError(f"{path} holds no answer", _FORM)
    return list(found.values())


def read_labels(path: Path, answers: Sequence[Answer]) -> dict[str, dict[str, float]]:
    """Read what people said of answers from a file with a JSON object a line.

    Args:
        path: Each line has ``query_id`` or ``query``, and values by metric: ``{"query_id": "q1", "faithfulness": 0.5}``.
        answers: The answers that are judged.

    Returns:
        Query_id to metric to value.

    Raises:
        PgragError: a line isn't that, is of no such answer, or says what another says.
    """
    ids = {one.query_id for one in answers}
    ids_of_queries = {one.query: one.query_id for one in answers}
    form = 'It holds an object a line: "query_id" or "query", and values from 0 to 1 of: ' + ", ".join(
        ANSWER_METRICS
    )
    labels: dict[str, dict[str, float]] = {}
    for number, line in _lines(path):
        where = f"{path}, line {number}"
        query_id = (
            str(line["query_id"]) if "query_id" in line else ids_of_queries.get(str(line.get("query")), "")
        )
        if query_id not in ids:
            raise PgragError(
                f"{where} is of no answer: {line.get('query_id', line.get('query'))!r}",
                "Label answers by the query_id or the query that they have.",
            )
        values = {name: value for name, value in line.items() if name not in ("query_id", "query")}
        for name, value in values.items():
            least = -1 if name == "answer_relevance" else 0
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if name not in ANSWER_METRICS or not is_number or not least <= value <= 1:
                raise PgragError(f"{where} has no label for {name!r}: {value!r}", form)
            if name in labels.setdefault(query_id, {}):
                raise PgragError(f"{where} labels {name} of {query_id!r} again", "Keep one label of each.")
            labels[query_id][name] = float(value)
    return labels


def judge_answers(
    answers: Sequence[Answer],
    judge: Judge,
    *,
    encoder: Encoder,
    metrics: Sequence[str] = tuple(ANSWER_METRICS),
    parallel: int = 4,
    on_answer: Callable[[int, int], None] = lambda done, total: None,
) -> list[JudgedAnswer]:
    """Judge answers, each by each metric that it has the texts for, see ``ANSWER_NEEDS``.

    Faithfulness and context recall: the judge takes the answer, or the reference answer, apart into claims, and says of each
    whether it can be inferred from the contexts. Answer relevance: it writes three questions that the answer answers, at
    once; their cosine to the question is by ``encoder``. Context precision: it says of each context whether it was useful.
    Where a text that it needs isn't there, the judge refuses or doesn't keep to the form, or the endpoint fails, the answer
    stays unjudged, with the reason.

    Args:
        answers: What to judge.
        judge: Who judges.
        encoder: Embeds the questions, as queries.
        metrics: Names of ``ANSWER_METRICS``.
        parallel: Answers that are judged at once.
        on_answer: Called after each with the answers judged so far and all.

    Returns:
        One for each answer, in their order.

    Raises:
        PgragError: a metric isn't known, or the extra ``evaluate`` is missing.
        JudgeError: the endpoint failed for the first three answers in a row: nothing was judged.
    """
    missing = needs_extra("ir_measures", what="judging answers")
    if missing is not None:
        raise missing
    unknown = [name for name in metrics if name not in ANSWER_METRICS]
    if unknown or parallel < 1:
        raise PgragError(
            f"{unknown[0]!r} is no metric of answers"
            if unknown
            else f"parallel is 1 or more, got {parallel}",
            f"Known are {', '.join(ANSWER_METRICS)}.",
        )
    bench = _Bench(judge, encoder, tuple(metrics))
    done = []
    with ThreadPoolExecutor(parallel) as pool:
        try:
            for one in pool.map(bench.judge, answers):
                done.append(one)
                on_answer(len(done), len(answers))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return done


def answer_figures(
    judged: Sequence[JudgedAnswer], *, labels: Mapping[str, Mapping[str, float]] | None = None
) -> list[AnswerFigure]:
    """Sum up what a judge said of answers, each with equal weight.

    With labels of people for some, the mean that people would give to all is estimated too: the judge's mean on the others, less
    what it says too much on those that people judged. How far the judge is relied on follows from how well it agrees with
    them (PPI++: Angelopoulos, Duchi and Zrnic 2023). That holds where people judged a random sample of the answers.

    Args:
        judged: What the judge said.
        labels: Query_id to metric to what people said.

    Returns:
        One for each metric that an answer has, or should have.

    Raises:
        PgragError: there are labels, and the extra ``judge`` is missing.
    """
    present = [
        name for name in ANSWER_METRICS if any(name in one.metrics or name in one.unjudged for one in judged)
    ]
    return [_figure(name, judged, labels) for name in present]


def keep_answers(
    connection: psycopg.Connection[Any],
    collection: str,
    judged: Sequence[JudgedAnswer],
    figures: Sequence[AnswerFigure],
    *,
    judge: Mapping[str, Any],
    encoder: Mapping[str, Any],
    name: str | None = None,
) -> int:
    """Keep what was judged as a run of a collection, by the arm ``answers``.

    Args:
        connection: Of a member of ``pgrag_writer`` or ``pgrag_owner``.
        collection: Whose documents were answered from.
        judged: What the judge said.
        figures: What that sums up to.
        judge: Passport of the judge, with its model and the version of the prompts.
        encoder: Passport of the encoder.
        name: Of the run; None is made of the judge's model.

    Returns:
        The run_id.

    Raises:
        Refused: there is no such collection.
    """
    settings = {"kind": "answers", "judge": dict(judge), "encoder": dict(encoder)}
    rows = [
        {"query_id": one.query_id, "arm": "answers", "query": one.query, "metrics": one.metrics}
        for one in judged
    ]
    details = {
        "figures": [asdict(one) for one in figures],
        "unjudged": {one.query_id: one.unjudged for one in judged if one.unjudged},
        "detail": {one.query_id: one.detail for one in judged},
    }
    means = {"answers": {one.metric: one.mean for one in figures if one.mean is not None}}
    settings, rows, details = _storable(settings), _storable(rows), _storable(details)
    with translated(), connection.transaction():
        row = connection.execute(
            "select pgrag.record_run(%s, %s, %s, '{}')",
            (collection, name or f"answers, judged by {judge['model']}", json.dumps(settings)),
        ).fetchone()
        assert row is not None  # noqa: S101 - a function call gives one row
        connection.execute("select pgrag.record_run_queries(%s, %s)", (row[0], json.dumps(rows)))
        connection.execute(
            "select pgrag.finish_run(%s, %s, %s)",
            (row[0], json.dumps(means), json.dumps({"answers": details})),
        )
    return int(row[0])


def _storable(value: Any) -> Any:
    """Return a value with what PostgreSQL can't keep of its texts replaced: NUL, and halves of surrogate pairs.

    A judge may say such things, and its judgements were paid for.
    """
    if isinstance(value, str):
        return value.replace("\0", "\ufffd").encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    if isinstance(value, Mapping):
        return {_storable(key): _storable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_storable(inner) for inner in value]
    return value


class _Bench:
    """Judges one answer after the other, in several threads; gives up on an endpoint that keeps failing."""

    def __init__(self, judge: Judge, encoder: Encoder, metrics: tuple[str, ...]) -> None:
        self._judge = judge
        self._encoder = encoder
        self._metrics = metrics
        self._lock = threading.Lock()
        self._encodes = threading.Lock()
        self._failures = 0
        self._has_judged = False

    def judge(self, one: Answer) -> JudgedAnswer:
        """Judge an answer by each metric, and say of the others what they lack."""
        values: dict[str, float] = {}
        unjudged: dict[str, str] = {}
        detail: dict[str, Any] = {}
        for name in self._metrics:
            lacks = [_LACKS[needed] for needed in ANSWER_NEEDS[name] if not getattr(one, needed)]
            if lacks:
                unjudged[name] = ", ".join(lacks)
                continue
            try:
                self._check()
                values[name], detail[name] = getattr(self, f"_{name}")(one)
            except JudgeError as error:
                self._failed(error)
                unjudged[name] = error.message
            except Unjudged as error:
                unjudged[name] = error.message
            else:
                with self._lock:
                    self._failures, self._has_judged = 0, True
        return JudgedAnswer(one.query_id, one.query, values, unjudged, detail)

    def _check(self) -> None:
        with self._lock:
            if self._failures >= _MOST_FAILURES:
                raise Unjudged("not asked any more, since the endpoint of the judge kept failing", None)

    def _failed(self, error: JudgeError) -> None:
        with self._lock:
            self._failures += 1
            if self._failures >= _MOST_FAILURES and not self._has_judged:
                raise error

    def _faithfulness(self, one: Answer) -> tuple[float, Any]:
        return self._supported(one, one.answer, "answer")

    def _context_recall(self, one: Answer) -> tuple[float, Any]:
        return self._supported(one, one.reference or "", "reference answer")

    def _supported(self, one: Answer, text: str, what: str) -> tuple[float, Any]:
        """Return the share of a text's claims that the contexts support."""
        claims = self._judge.claims(one.query, text) if text.strip() else []
        if not claims:
            raise Unjudged(f"the {what} makes no claim", None)
        verdicts = self._judge.verdicts(claims, one.contexts)
        found = [
            {"claim": claim, "supported": verdict} for claim, verdict in zip(claims, verdicts, strict=True)
        ]
        return fmean(verdicts), found

    def _answer_relevance(self, one: Answer) -> tuple[float, Any]:
        """Return the mean cosine of the question to those that the answer answers."""
        noncommittal, questions = self._judge.questions(one.answer) if one.answer.strip() else (True, [])
        if noncommittal:
            return 0.0, {"noncommittal": True, "questions": questions}
        with self._encodes:
            vectors = np.asarray(self._encoder.encode_queries([one.query, *questions]), np.float64)
        # Of length 1, or 0 where a text has no vector.
        cosines = vectors[1:] @ vectors[0]
        return float(np.clip(cosines, -1, 1).mean()), {"noncommittal": False, "questions": questions}

    def _context_precision(self, one: Answer) -> tuple[float, Any]:
        """Return the average precision of the contexts, where those that were useful are all that there are."""
        useful = [self._judge.is_useful(one.query, one.reference or "", text) for text in one.contexts]
        names = [str(place) for place in range(len(useful))]
        grades = dict(zip(names, map(int, useful), strict=True))
        value = measure({"": ranking(names)}, {"": grades}, ["map"]).mean.get("map", 0.0)
        return value, {"useful": useful}


def _figure(
    name: str, judged: Sequence[JudgedAnswer], labels: Mapping[str, Mapping[str, float]] | None
) -> AnswerFigure:
    values = {one.query_id: one.metrics[name] for one in judged if name in one.metrics}
    figure = AnswerFigure(
        metric=name,
        mean=fmean(values.values()) if values else None,
        judged=len(values),
        unjudged=sum(name in one.unjudged for one in judged),
    )
    if labels is None:
        return figure
    of_people = {one: labels[one][name] for one in values if name in labels.get(one, {})}
    asked, alone = list(of_people.values()), [values[one] for one in values if one not in of_people]
    counted = {**asdict(figure), "labels": len(of_people)}
    if len(asked) < FEWEST_LABELS:
        why = f"{len(asked)} labels of judged answers, and {FEWEST_LABELS} are the fewest"
    elif not alone:
        why = "every answer has a label, so the labels' own mean says more"
    elif np.ptp(asked) == 0:
        why = "all labels are equal, so the sample doesn't say how far people differ"
    else:
        estimate, low, high = _prediction_powered(asked, [values[one] for one in of_people], alone)
        least = -1.0 if name == "answer_relevance" else 0.0
        return AnswerFigure(
            **counted
            | {
                "estimate": min(1.0, max(least, estimate)),
                "low": max(least, low),
                "high": min(1.0, high),
            }
        )
    return AnswerFigure(**counted | {"why_none": why})


def _prediction_powered(
    labels: Sequence[float], predictions: Sequence[float], others: Sequence[float]
) -> tuple[float, float, float]:
    """Return the prediction-powered estimate of a mean, and its interval."""
    missing = needs_extra("ppi_py", what="an interval from labels")
    if missing is not None:
        raise missing
    import ppi_py

    people, of_judge, alone = (np.asarray(one, np.float64) for one in (labels, predictions, others))
    # A judge that says the same of everything says nothing: then the labels alone count, as with a reliance of 0.
    reliance = None if np.ptp(np.concatenate([of_judge, alone])) > 0 else 0
    estimate = ppi_py.ppi_mean_pointestimate(people, of_judge, alone, lam=reliance)
    low, high = ppi_py.ppi_mean_ci(people, of_judge, alone, alpha=_ALPHA, lam=reliance)
    return float(np.squeeze(estimate)), float(np.squeeze(low)), float(np.squeeze(high))


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield number and object of each line."""
    for number, line in enumerate(read_utf8(path).split("\n"), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise PgragError(
                f"{path}, line {number} isn't JSON: {error}", "It holds an object a line."
            ) from error
        if not isinstance(value, dict):
            raise PgragError(f"{path}, line {number} is no JSON object", "It holds an object a line.")
        yield number, value


def _answer(
    line: Mapping[str, Any], known: Mapping[str, tuple[str, str | None]], ids_of_queries: Mapping[str, str]
) -> Answer:
    """Return the answer of a line.

    Raises:
        ValueError: something is missing or isn't what it should be.
    """
    query, reference, contexts = line.get("query"), line.get("reference"), line.get("contexts", [])
    given = line.get("query_id")
    query_id = str(given) if given is not None else ids_of_queries.get(str(query), str(query))
    if query_id in known:
        query = known[query_id][0] if query is None else query
        reference = known[query_id][1] if reference is None else reference
    if not isinstance(query, str) or not query.strip():
        raise ValueError("it has no query" if given is None else f"no judged query is called {query_id!r}")
    if not isinstance(line.get("answer"), str):
        raise ValueError("it has no answer")
    if not isinstance(contexts, list) or not all(isinstance(one, str) for one in contexts):
        raise ValueError("its contexts are no list of texts")
    if reference is not None and not isinstance(reference, str):
        raise ValueError("its reference is no text")
    if reference is not None and not reference.strip():
        reference = None
    return Answer(query_id, query, line["answer"], tuple(contexts), reference)
