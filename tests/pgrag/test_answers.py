"""Answers judged over a real socket, each metric by hand; and what people would say of them."""

from __future__ import annotations

import importlib.util
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from _endpoint_server import Server, Status
from _judge_endpoint import JUDGE, completion, said
from _pgrag import Database
from numpy.typing import NDArray

from pgrag.errors import PgragError, Refused
from pgrag.evaluate import (
    ANSWER_METRICS,
    Answer,
    Judge,
    JudgedAnswer,
    JudgeError,
    answer_figures,
    judge_answers,
    keep_answers,
    read_answers,
    read_labels,
)

pytest.importorskip("httpx2", reason="pip install 'pgrag-rls[endpoint]'")
pytest.importorskip("ir_measures", reason="pip install 'pgrag-rls[evaluate]'")


class Angles:
    """Puts a text at so many degrees as its first number says, without one at 0; "nothing" has no vector."""

    name, dimension = "angles", 2
    passport: ClassVar[dict[str, Any]] = {
        "name": "angles",
        "model": "angles",
        "dimension": 2,
        "normalised": True,
    }

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        raise AssertionError("questions are encoded as queries")

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        degrees = [next((int(word) for word in text.split() if word.isdigit()), 0) for text in texts]
        return np.array(
            [
                (0, 0) if "nothing" in text else (math.cos(math.radians(at)), math.sin(math.radians(at)))
                for text, at in zip(texts, degrees, strict=True)
            ],
            np.float32,
        )

    def count_tokens(self, text: str) -> int:
        return 1


ENDPOINT = JUDGE
pytestmark = pytest.mark.usefixtures("waits")


@pytest.fixture
def judge(server: Server) -> Iterator[Judge]:
    made = Judge(server.url, "m", tries=1, attempts=1)
    yield made
    made.close()


def judged(
    judge: Judge, *answers: Answer, metrics: Sequence[str] = tuple(ANSWER_METRICS)
) -> list[JudgedAnswer]:
    return judge_answers(answers, judge, encoder=Angles(), metrics=metrics, parallel=1)


def answer(text: str, *contexts: str, reference: str | None = None, query: str = "Why?") -> Answer:
    return Answer("q", query, text, contexts, reference)


# By hand --------------------------------------------------------------------------------------------------------------


def test_faithfulness_is_the_share_of_claims_that_the_contexts_support(judge: Judge) -> None:
    (one,) = judged(
        judge, answer("It rains. It pours. It snows.", "It rains", "It pours"), metrics=["faithfulness"]
    )
    assert one.metrics == {"faithfulness": pytest.approx(2 / 3)}
    assert one.detail["faithfulness"][2] == {"claim": "It snows", "supported": False}


def test_context_recall_is_the_share_of_the_references_claims_that_the_contexts_support(judge: Judge) -> None:
    asked = answer("No.", "It rains", reference="It rains. It pours. It snows. It hails.")
    (one,) = judged(judge, asked, metrics=["context_recall"])
    assert one.metrics == {"context_recall": 1 / 4}


@pytest.mark.parametrize(
    ("useful", "expected"),
    [
        ("yy", (1 / 1 + 2 / 2) / 2),
        ("ny", 1 / 2),
        ("nyny", (1 / 2 + 2 / 4) / 2),
        ("ynnny", (1 / 1 + 2 / 5) / 2),
        ("nn", 0),
    ],
)
def test_context_precision_is_the_mean_of_the_precisions_at_useful_ranks(
    judge: Judge, useful: str, expected: float
) -> None:
    contexts = ["So: It rains" if one == "y" else "No" for one in useful]
    (one,) = judged(judge, answer("", *contexts, reference="It rains."), metrics=["context_precision"])
    assert one.metrics == {"context_precision": pytest.approx(expected)}


def test_answer_relevance_is_the_mean_cosine_of_the_questions(judge: Judge) -> None:
    asked = answer("It is 0 degrees. It is 60 degrees. It is 90 degrees.", query="Is it 0 degrees?")
    (one,) = judged(judge, asked, metrics=["answer_relevance"])
    # Vectors are of float32.
    assert one.metrics["answer_relevance"] == pytest.approx((1 + 1 / 2 + 0) / 3, abs=1e-6)
    assert one.detail["answer_relevance"]["questions"][1] == "It is 60 degrees?"


def test_questions_to_the_contrary_count_against_it(judge: Judge) -> None:
    asked = answer("It is 180 degrees. It is 120 degrees.", query="Is it 0 degrees?")
    (one,) = judged(judge, asked, metrics=["answer_relevance"])
    assert one.metrics["answer_relevance"] == pytest.approx((-1 - 1 / 2) / 2, abs=1e-6)


@pytest.mark.parametrize("text", ["I don't know.", "", " \n"])
def test_a_noncommittal_answer_is_not_relevant(judge: Judge, text: str) -> None:
    (one,) = judged(judge, answer(text), metrics=["answer_relevance"])
    assert one.metrics == {"answer_relevance": 0.0}


def test_a_question_without_a_vector_is_like_nothing(judge: Judge) -> None:
    asked = answer("It is nothing. It is 0 degrees.", query="Is it 0 degrees?")
    (one,) = judged(judge, asked, metrics=["answer_relevance"])
    assert one.metrics["answer_relevance"] == pytest.approx((0 + 1) / 2, abs=1e-6)


# What is missing ------------------------------------------------------------------------------------------------------


def test_without_contexts_what_needs_them_is_not_judged_and_nobody_is_asked(
    judge: Judge, server: Server
) -> None:
    (one,) = judged(judge, answer("It rains.", reference="It rains."))
    assert set(one.metrics) == {"answer_relevance"}
    assert one.unjudged == dict.fromkeys(
        ["faithfulness", "context_precision", "context_recall"], "no contexts"
    )
    assert not any("claims" in body["messages"][1]["content"] for body in server.bodies)


def test_without_a_reference_what_needs_one_is_not_judged(judge: Judge) -> None:
    (one,) = judged(judge, answer("It rains.", "It rains"))
    assert set(one.metrics) == {"faithfulness", "answer_relevance"}
    assert one.unjudged == dict.fromkeys(["context_precision", "context_recall"], "no reference answer")


def test_without_both_both_are_named_and_the_answer_is_counted(judge: Judge) -> None:
    found = judged(judge, answer("It rains."), metrics=["context_recall"])
    assert found[0].unjudged == {"context_recall": "no contexts, no reference answer"}
    (figure,) = answer_figures(found)
    assert (figure.mean, figure.judged, figure.unjudged) == (None, 0, 1)


@pytest.mark.parametrize("text", ["", "..."])
def test_an_answer_that_claims_nothing_is_neither_faithful_nor_not(judge: Judge, text: str) -> None:
    (one,) = judged(judge, answer(text, "It rains"), metrics=["faithfulness"])
    assert (one.metrics, one.unjudged) == ({}, {"faithfulness": "the answer makes no claim"})


def test_a_metric_that_nobody_knows_is_refused_with_those_that_are(judge: Judge) -> None:
    with pytest.raises(PgragError, match="'bleu' is no metric of answers") as refused:
        judged(judge, answer("It rains."), metrics=["bleu"])
    assert all(name in (refused.value.hint or "") for name in ANSWER_METRICS)


# What goes wrong ------------------------------------------------------------------------------------------------------


def test_what_the_judge_refuses_is_unjudged_and_the_rest_goes_on(judge: Judge, server: Server) -> None:
    server.script = [lambda body: said(body, "I'd rather not.")]
    first, second = judged(
        judge, answer("It rains.", "It rains"), answer("It pours.", "No"), metrics=["faithfulness"]
    )
    assert "I'd rather not." in first.unjudged["faithfulness"]
    assert second.metrics == {"faithfulness": 0.0}


def test_one_failure_of_the_endpoint_leaves_one_metric_unjudged(judge: Judge, server: Server) -> None:
    server.script = [Status(500, "down")]
    (one,) = judged(judge, answer("It rains.", "It rains"))
    assert "doesn't answer: 500 down" in one.unjudged["faithfulness"]
    assert "answer_relevance" in one.metrics


def test_an_endpoint_that_never_answers_ends_it_after_three(judge: Judge, server: Server) -> None:
    server.script = [Status(401, "no key")] * 100
    with pytest.raises(JudgeError, match="401: no key"):
        judged(judge, *[answer("It rains.", "It rains")] * 10)
    assert len(server.bodies) == 3


def test_an_endpoint_that_stops_answering_costs_no_judgement_that_was_made(
    judge: Judge, server: Server
) -> None:
    server.script = [completion, completion, *[Status(500, "down")] * 100]
    found = judged(judge, *[answer("It rains.", "It rains")] * 10, metrics=["faithfulness"])
    assert [one.metrics.get("faithfulness") for one in found] == [1.0] + [None] * 9
    assert "kept failing" in found[9].unjudged["faithfulness"]
    assert len(server.bodies) == 2 + 3


def test_failures_that_pass_are_no_reason_to_give_up(judge: Judge, server: Server) -> None:
    server.script = [Status(500, "down"), completion, completion] * 5
    found = judged(judge, *[answer("It rains.", "It rains")] * 10, metrics=["faithfulness"])
    assert [len(one.metrics) for one in found] == [0, 1] * 5


def test_several_are_judged_at_once_and_come_back_in_order(server: Server) -> None:
    answers = [Answer(f"q{n}", "Why?", f"It is {n}.", (f"It is {n}" if n % 2 else "No",)) for n in range(12)]
    done: list[int] = []
    found = judge_answers(
        answers,
        Judge(server.url, "m"),
        encoder=Angles(),
        metrics=["faithfulness"],
        parallel=4,
        on_answer=lambda count, total: done.append(count),
    )
    assert [(one.query_id, one.metrics["faithfulness"]) for one in found] == [
        (f"q{n}", n % 2) for n in range(12)
    ]
    assert done == list(range(1, 13))


# What people would say ------------------------------------------------------------------------------------------------


def values(*given: float | None, name: str = "faithfulness") -> list[JudgedAnswer]:
    return [
        JudgedAnswer(
            f"q{n}", "Why?", {} if value is None else {name: value}, {name: "no"} if value is None else {}
        )
        for n, value in enumerate(given)
    ]


def labels(*given: float, name: str = "faithfulness") -> dict[str, dict[str, float]]:
    return {f"q{n}": {name: value} for n, value in enumerate(given)}


def test_the_mean_is_of_what_was_judged_and_the_rest_is_counted() -> None:
    (one,) = answer_figures(values(1.0, 0.5, None))
    assert (one.mean, one.judged, one.unjudged) == ((1 + 0.5) / 2, 2, 1)
    assert (one.estimate, one.low, one.high, one.why_none) == (None, None, None, None)


def test_where_nothing_was_judged_there_is_no_mean() -> None:
    (one,) = answer_figures(values(None, None))
    assert (one.mean, one.judged, one.unjudged) == (None, 0, 2)


ppi_only = pytest.mark.skipif(
    importlib.util.find_spec("ppi_py") is None, reason="pip install 'pgrag-rls[judge]'"
)


def hand_ppi(people: list[float], of_judge: list[float], alone: list[float]) -> tuple[float, float, float]:
    """PPI++ of a mean (Angelopoulos, Duchi and Zrnic 2023, example 6.1): reliance, estimate and interval."""
    y, f, g = (np.array(one) for one in (people, of_judge, alone))
    n, rest = len(y), len(g)
    both = np.concatenate([f, g])
    reliance = np.clip(((y - y.mean()) * (f - f.mean())).mean() / ((1 + n / rest) * both.var(ddof=1)), 0, 1)
    estimate = reliance * g.mean() + (y - reliance * f).mean()
    half = 1.959964 * np.sqrt((reliance * g).var() / rest + (y - reliance * f).var() / n)
    return float(estimate), float(estimate - half), float(estimate + half)


@ppi_only
def test_the_estimate_corrects_the_judge_by_what_people_said() -> None:
    # The judge is too kind by 0.25 in every second case.
    people = [0.25, 0.5] * 10
    of_judge = [0.5, 0.5] * 10
    alone = [0.5, 1.0, 0.25, 0.75] * 20
    of_judge[::4] = [0.25] * 5
    (one,) = answer_figures(values(*of_judge, *alone), labels=labels(*people))
    estimate, low, high = hand_ppi(people, of_judge, alone)
    assert (one.labels, one.why_none) == (20, None)
    assert (one.estimate, one.low, one.high) == pytest.approx((estimate, low, high), abs=1e-6)


@ppi_only
def test_a_judge_that_agrees_with_people_narrows_the_interval() -> None:
    random = np.random.default_rng(0)
    truth = random.uniform(0.2, 0.8, size=400)
    people = list(truth[:40])
    agrees = list(truth + random.normal(0, 0.02, size=400))
    says_anything = list(random.uniform(0.2, 0.8, size=400))
    widths = []
    for of_judge in (agrees, says_anything):
        (one,) = answer_figures(values(*of_judge), labels=labels(*people))
        assert one.low is not None
        assert one.high is not None
        widths.append(one.high - one.low)
    assert widths[0] < widths[1] / 2


@ppi_only
def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    random = np.random.default_rng(1)
    held = 0
    for _ in range(200):
        truth = random.binomial(1, 0.6, size=250).astype(float)
        of_judge = np.where(random.uniform(size=250) < 0.85, truth, 1 - truth)  # wrong in 15 of 100
        (one,) = answer_figures(values(*of_judge), labels=labels(*truth[:50]))
        assert one.low is not None
        assert one.high is not None
        held += one.low <= 0.6 <= one.high
    # Of 200 at 95 %, 4 standard deviations are 4 * sqrt(200 * 0.95 * 0.05), about 12.
    assert held >= 200 * 0.95 - 12


@ppi_only
def test_a_judge_that_says_the_same_of_everything_adds_nothing() -> None:
    people = [0.0, 1.0] * 6
    (one,) = answer_figures(values(*[0.5] * 30), labels=labels(*people))
    half = 1.959964 * np.std(people) / np.sqrt(12)
    assert (one.estimate, one.low, one.high) == pytest.approx((1 / 2, 1 / 2 - half, 1 / 2 + half), abs=1e-6)


@ppi_only
def test_estimate_and_interval_stay_where_values_can_be() -> None:
    people, of_judge, alone = [1.0] * 9 + [0.0], [0.5] * 9 + [0.0], [1.0] * 10
    (one,) = answer_figures(values(*of_judge, *alone), labels=labels(*people))
    estimate, low, high = hand_ppi(people, of_judge, alone)
    assert min(estimate, high) > 1
    assert (one.estimate, one.high) == (1.0, 1.0)
    assert one.low == pytest.approx(low, abs=1e-6)


@pytest.mark.parametrize(
    ("people", "judged_values", "why"),
    [
        ([0.0, 1.0] * 4 + [1.0], [0.5] * 30, "9 labels of judged answers, and 10 are the fewest"),
        ([0.0, 1.0] * 6, [0.5] * 12, "every answer has a label"),
        ([1.0] * 12, [0.5] * 30, "all labels are equal"),
        ([0.0, 1.0] * 6, [None] * 6 + [0.5] * 24, "6 labels of judged answers"),
    ],
)
def test_where_labels_say_too_little_there_is_no_interval_and_a_reason(
    people: list[float], judged_values: list[float | None], why: str
) -> None:
    (one,) = answer_figures(values(*judged_values), labels=labels(*people))
    assert (one.estimate, one.low, one.high) == (None, None, None)
    assert why in (one.why_none or "")


def test_the_library_of_intervals_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(PgragError, match="needs ppi-python") as refused:
        answer_figures(values(*[0.5] * 30), labels=labels(*[0.0, 1.0] * 6))
    assert refused.value.hint == "pip install 'pgrag-rls[judge]'"


def test_without_labels_no_library_of_intervals_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    (one,) = answer_figures(values(1.0, 0.5))
    assert one.mean == (1 + 0.5) / 2


# Files ----------------------------------------------------------------------------------------------------------------


def lines(path: Path, *objects: Any) -> Path:
    path.write_text(
        "".join(one if isinstance(one, str) else json.dumps(one) + "\n" for one in objects), "utf-8"
    )
    return path


def test_answers_are_read_and_completed_by_judged_queries(tmp_path: Path) -> None:
    file = lines(
        tmp_path / "answers.jsonl",
        {"query_id": "a", "answer": "x", "contexts": ["c", "d"]},
        "\n",
        {"query": "Who?", "answer": "y", "reference": "mine"},
        {"query": "What?", "answer": "z\u2028z"},
        {"query_id": 7, "query": "How?", "answer": "", "contexts": [], "reference": None},
    )
    known = {"a": ("Why?", "Because."), "b": ("Who?", "She.")}
    assert read_answers(file, known=known) == [
        Answer("a", "Why?", "x", ("c", "d"), "Because."),
        Answer("b", "Who?", "y", (), "mine"),
        Answer("What?", "What?", "z\u2028z"),
        Answer("7", "How?", ""),
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("nonsense\n", "line 2 isn't JSON"),
        ("[1]\n", "line 2 is no JSON object"),
        ({"answer": "x"}, "line 2 is no answer: it has no query"),
        ({"query": " ", "answer": "x"}, "it has no query"),
        ({"query_id": "z", "answer": "x"}, "no judged query is called 'z'"),
        ({"query": "Who?"}, "it has no answer"),
        ({"query": "Who?", "answer": 5}, "it has no answer"),
        ({"query": "Who?", "answer": "x", "contexts": "c"}, "its contexts are no list of texts"),
        ({"query": "Who?", "answer": "x", "contexts": [None]}, "its contexts are no list of texts"),
        ({"query": "Who?", "answer": "x", "reference": ["r"]}, "its reference is no text"),
        ({"query": "Why?", "answer": "y"}, "line 2 answers 'Why?' again"),
    ],
)
def test_a_line_that_is_no_answer_is_named(tmp_path: Path, line: Any, reason: str) -> None:
    file = lines(tmp_path / "answers.jsonl", {"query": "Why?", "answer": "x"}, line)
    with pytest.raises(PgragError) as refused:
        read_answers(file)
    assert reason in refused.value.message


def test_a_file_without_answers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PgragError, match="holds no answer"):
        read_answers(lines(tmp_path / "answers.jsonl", "\n"))


ANSWERS = [Answer("a", "Why?", "x"), Answer("b", "Who?", "y")]


def test_labels_are_read_by_id_and_by_query(tmp_path: Path) -> None:
    file = lines(
        tmp_path / "labels.jsonl",
        {"query_id": "a", "faithfulness": 1, "answer_relevance": -0.5},
        {"query": "Who?", "faithfulness": 0.25},
        {"query_id": "a", "context_recall": 0},
    )
    assert read_labels(file, ANSWERS) == {
        "a": {"faithfulness": 1.0, "answer_relevance": -0.5, "context_recall": 0.0},
        "b": {"faithfulness": 0.25},
    }


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ({"query_id": "z", "faithfulness": 1}, "line 1 is of no answer: 'z'"),
        ({"faithfulness": 1}, "line 1 is of no answer"),
        ({"query_id": "a", "bleu": 1}, "line 1 has no label for 'bleu'"),
        ({"query_id": "a", "faithfulness": 1.5}, "no label for 'faithfulness': 1.5"),
        ({"query_id": "a", "faithfulness": -0.5}, "no label for 'faithfulness'"),
        ({"query_id": "a", "faithfulness": True}, "no label for 'faithfulness': True"),
        ({"query_id": "a", "faithfulness": "good"}, "no label for 'faithfulness'"),
        ('{"query_id": "a", "faithfulness": NaN}\n', "no label for 'faithfulness'"),
        ('{"query_id": "a", "faithfulness": 1}\n' * 2, "line 2 labels faithfulness of 'a' again"),
    ],
)
def test_a_line_that_is_no_label_is_named(tmp_path: Path, line: Any, reason: str) -> None:
    with pytest.raises(PgragError) as refused:
        read_labels(lines(tmp_path / "labels.jsonl", line), ANSWERS)
    assert reason in refused.value.message


# Kept -----------------------------------------------------------------------------------------------------------------


def test_what_was_judged_is_kept_with_who_judged_and_by_which_prompts(db: Database, judge: Judge) -> None:
    found = judged(judge, answer("It rains. It pours.", "It rains"))
    figures = answer_figures(found)
    run_id = keep_answers(
        db.admin, "docs", found, figures, judge=judge.passport, encoder=Angles.passport, name="mine"
    )
    kept = db.value("select pgrag.load_run(%s)", (run_id,))
    assert (kept["name"], kept["collection"]) == ("mine", "docs")
    assert kept["settings"]["judge"]["model"] == "m"
    assert kept["settings"]["judge"]["prompts"]["version"] == 1
    assert kept["settings"]["encoder"]["name"] == "angles"
    assert kept["metrics"]["answers"]["faithfulness"] == 1 / 2
    assert kept["queries"][0]["metrics"]["answers"]["faithfulness"] == 1 / 2
    assert kept["answers"]["detail"]["q"]["faithfulness"][1] == {"claim": "It pours", "supported": False}


def test_what_is_kept_of_a_collection_that_is_not_there_is_refused(db: Database) -> None:
    with pytest.raises(Refused, match='collection "nowhere" does not exist'):
        keep_answers(db.admin, "nowhere", [], [], judge={"model": "m"}, encoder={})


def test_what_a_database_cannot_keep_of_a_judges_words_costs_no_judgement(db: Database) -> None:
    said_by_it = JudgedAnswer("q1", "Why?\0", {"faithfulness": 1.0}, {}, {"claims": ["a\0b", "c\ud800"]})
    run_id = keep_answers(
        db.admin, "docs", [said_by_it], [], judge={"model": "m", "answered_by": ["\udfff"]}, encoder={}
    )
    kept = db.value("select pgrag.load_run(%s)", (run_id,))
    assert kept["answers"]["detail"]["q1"]["claims"] == ["a\ufffdb", "c" + "\ufffd" * 3]
    assert kept["queries"][0]["metrics"] == {"answers": {"faithfulness": 1.0}}
