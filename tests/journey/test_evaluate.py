"""The handbook's questions asked as those who ask them: figures, hits and the ledger, held against plain Python."""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import handbook
import numpy as np
import pytest
from _cli import pgrag
from _pgrag import Database

from pgrag.access import add_groups, check_readers, load_readers_file
from pgrag.client import connect
from pgrag.embed import StaticEncoder
from pgrag.evaluate import JudgedQuery, Judgement, Options, evaluate_collection, import_judged
from pgrag.ingest import ingest_paths
from pgrag.spaces import embed_static

HANDBOOK = Path(handbook.__file__).parent
QUESTIONS = {question.id: question for question in handbook.questions()}
ANSWERED = [question for question in QUESTIONS.values() if question.relevant]
WEIGHTS = {"lexical": {"lexical": 1, "dense": 0}, "dense": {"lexical": 0, "dense": 1}, "hybrid": None}


def grades(question: Any) -> dict[str, int]:
    """The best grade of each document that answers a question."""
    best: dict[str, int] = {}
    for one in question.relevant:
        best[one.uri] = max(one.grade, best.get(one.uri, 0))
    return best


def ndcg(ranked: list[str], wanted: dict[str, int], k: int = 10) -> float:
    ideal = sorted(wanted.values(), reverse=True)[:k]
    gain = sum(wanted.get(uri, 0) / math.log2(rank + 1) for rank, uri in enumerate(ranked[:k], 1))
    return gain / sum(grade / math.log2(rank + 1) for rank, grade in enumerate(ideal, 1))


def recall(ranked: list[str], wanted: dict[str, int], k: int = 10) -> float:
    return len(set(ranked[:k]) & wanted.keys()) / len(wanted)


def reciprocal_rank(ranked: list[str], wanted: dict[str, int]) -> float:
    return next((1 / rank for rank, uri in enumerate(ranked, 1) if uri in wanted), 0.0)


@pytest.fixture(scope="module")
def database(hybrid_template: str, session_database: Callable[..., str]) -> Iterator[Database]:
    made = Database(session_database(template=hybrid_template))
    rules = load_readers_file(HANDBOOK / "readers.toml")
    made.execute("select pgrag.create_collection('handbook')")
    check_readers(made.admin, rules.principals, create=True)
    add_groups(made.admin, rules.groups)
    report = ingest_paths(
        made.admin, [HANDBOOK / "documents"], collection="handbook", readers=(), readers_for=rules.readers_of
    )
    assert report.failures == ()
    embed_static(made.admin, "handbook", StaticEncoder.shipped())
    import_judged(
        made.admin,
        "handbook",
        [
            JudgedQuery(
                question.id,
                question.query,
                question.askers,
                None,
                tuple(Judgement(one.uri, grade=one.grade, quote=one.quote) for one in question.relevant),
            )
            for question in QUESTIONS.values()
        ],
    )
    yield made
    made.close()


@pytest.fixture(scope="module")
def document(database: Database) -> dict[str, Any]:
    return evaluate_collection(database.admin, "handbook", options=Options(timings=False))


@pytest.fixture(scope="module")
def hits(database: Database, document: dict[str, Any]) -> dict[tuple[str, str], list[str]]:
    """What each arm found for each question, best first."""
    found = defaultdict(list)
    for query_id, arm, uri in database.execute(
        "select query_id, found_by, uri from pgrag.run_hits(%s) order by query_id, found_by, rank",
        (document["run_id"],),
    ):
        found[arm, query_id].append(uri)
    return found


def test_every_question_is_asked_by_every_arm(document: dict[str, Any]) -> None:
    assert document["settings"]["arms"] == ["lexical", "dense", "hybrid", "lsa"]
    assert {one["query_id"] for one in document["queries"]} == QUESTIONS.keys()
    assert set(document["left_out"]) == {one.id for one in QUESTIONS.values() if not one.relevant}


@pytest.mark.parametrize("arm", WEIGHTS)
def test_an_arm_ranks_as_a_search_does(
    database: Database, hits: dict[tuple[str, str], list[str]], arm: str
) -> None:
    with connect(database.dsn) as store:
        for question in QUESTIONS.values():
            caller = store.as_principals(*question.askers)
            found = caller.search(question.query, k=100, collections=["handbook"], weights=WEIGHTS[arm])
            uris = list(dict.fromkeys(hit.uri for hit in found))
            assert hits[arm, question.id][: len(uris)] == uris


@pytest.mark.parametrize("arm", [*WEIGHTS, "lsa"])
@pytest.mark.parametrize(
    ("measure", "formula"), [("ndcg@10", ndcg), ("recall@10", recall), ("mrr", reciprocal_rank)]
)
def test_means_are_those_of_plain_python(
    document: dict[str, Any],
    hits: dict[tuple[str, str], list[str]],
    arm: str,
    measure: str,
    formula: Callable[[list[str], dict[str, int]], float],
) -> None:
    values = [formula(hits[arm, question.id], grades(question)) for question in ANSWERED]
    assert document["metrics"][arm][measure] == pytest.approx(sum(values) / len(values))


def test_nobody_is_given_by_any_arm_what_they_may_not_read(hits: dict[tuple[str, str], list[str]]) -> None:
    wrong = [
        (arm, query_id, uri)
        for (arm, query_id), uris in hits.items()
        for uri in uris
        if not any(handbook.may_read(asker, uri) for asker in QUESTIONS[query_id].askers)
    ]
    assert wrong == []
    assert sum(len(uris) for uris in hits.values()) > 10_000


def test_the_ledger_has_each_passage_once_and_its_counts_add_up(document: dict[str, Any]) -> None:
    pieces = Counter(
        (one["query_id"], piece["uri"], piece["char_start"])
        for one in document["queries"]
        for piece in one["evidence"]
    )
    assert set(pieces.values()) == {1}
    assert sum(document["ledger"].values()) == sum(len(question.relevant) for question in ANSWERED)
    # The questions are asked by those who may read the answers.
    assert document["ledger"].get("not_permitted", 0) == document["ledger"].get("not_ingested", 0) == 0
    assert {one["stage"] for one in document["counterfactuals"]} <= document["ledger"].keys() - {"kept"}


def test_everybody_who_asks_has_figures_of_their_own(document: dict[str, Any]) -> None:
    rows = {tuple(row["principals"]): row for row in document["principals"]}
    assert rows.keys() == {question.askers for question in QUESTIONS.values()}
    ana = [one for one in document["queries"] if one["principals"] == ["user:ana"]]
    assert rows["user:ana",]["queries"] == len(ana)
    # So few passages are compared exactly, for everybody.
    assert {row["ann_recall@10"] for row in rows.values()} == {1.0}
    assert not any(row["below_promise"] for row in rows.values())
    assert sum(row["queries"] for row in document["bands"]) == len(QUESTIONS)


def test_the_baseline_is_that_of_numpy(
    database: Database, document: dict[str, Any], hits: dict[tuple[str, str], list[str]]
) -> None:
    person = "user:zoe"
    texts = {
        uri: (f"{title}\n" if title is not None else "") + content
        for uri, title, content in database.execute(
            "select d.uri, d.title, t.content from pgrag.document as d join pgrag.document_text as t using (document_id)"
        )
        if handbook.may_read(person, uri)
    }
    uris = sorted(texts, key=str.encode)
    counts = [Counter(re.findall(r"\w+", texts[uri].lower())) for uri in uris]
    terms = {term: place for place, term in enumerate(sorted(set().union(*counts)))}
    df = Counter(term for one in counts for term in one)
    idf = np.array([math.log((1 + len(uris)) / (1 + df[term])) + 1 for term in terms])

    def row(one: Counter[str]) -> np.ndarray:
        weights = np.zeros(len(terms))
        for term, times in one.items():
            if term in terms:
                weights[terms[term]] = (1 + math.log(times)) * idf[terms[term]]
        return weights / np.linalg.norm(weights)

    matrix = np.stack([row(one) for one in counts])
    axes = np.linalg.svd(matrix, full_matrices=False)[2][: min(300, len(uris) - 1)].T
    placed = matrix @ axes
    placed /= np.linalg.norm(placed, axis=1, keepdims=True)
    for question in QUESTIONS.values():
        if question.askers != (person,):
            continue
        asked = row(Counter(re.findall(r"\w+", question.query.lower()))) @ axes
        cosines = dict(zip(uris, placed @ asked / np.linalg.norm(asked), strict=True))
        kept = dict(
            database.execute(
                "select uri, score from pgrag.run_hits(%s, 'lsa') where query_id = %s",
                (document["run_id"], question.id),
            )
        )
        assert kept.keys() >= {uri for uri, cosine in cosines.items() if cosine > 1e-6}
        # Seven iterations bring the drawn decomposition this close.
        assert kept == pytest.approx({uri: cosines[uri] for uri in kept}, abs=1e-6)


def test_the_same_settings_give_the_same_and_a_comparison_says_so(database: Database) -> None:
    asked = tuple(sorted(QUESTIONS)[:20])
    options = Options(arms=("lexical", "lsa"), queries=asked, timings=False, ledger=False)
    before = evaluate_collection(database.admin, "handbook", options=options)
    first = str(before["run_id"])
    again = pgrag(database.dsn, "eval", "run", "--again", first, "--json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout) == before["metrics"]
    assert "Nothing has changed since" in again.stderr
    second = str(database.value("select max(run_id) from pgrag.run"))
    comparison = json.loads(pgrag(database.dsn, "eval", "compare", first, second, "--json").stdout)
    assert comparison["settings"] == []
    assert {one["figures"]["difference"] for one in comparison["arms"]} == {0.0}
    assert {one["figures"]["p_permutation"] for one in comparison["arms"]} == {1.0}
