"""``make bench`` prints what the README quotes: its visibilities are fair, its recall is arithmetic, its file is complete."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"
COLUMNS = {
    "system",
    "passages",
    "visible",
    "ndcg_at_10",
    "recall_at_10",
    "judged_recall_at_10",
    "p50_ms",
    "p95_ms",
    "ingest_per_s",
    "bytes_per_passage",
    "found",
    "queries",
    "visible_passages",
    "plan",
    "note",
}


@pytest.fixture(autouse=True)
def on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("bm25s", reason="the bench needs bm25s")
    monkeypatch.syspath_prepend(str(BENCH))


@pytest.fixture
def corpus_module(on_path: None) -> ModuleType:
    import _peers_corpus

    return _peers_corpus


@pytest.fixture
def access(corpus_module: ModuleType) -> object:
    # 50 passages a block; 30 questions of three askers, two answers each.
    passages = [{"title": "", "text": f"passage {row}"} for row in range(50_000)]
    asked = [corpus_module.Judged(f"question {n}", {2 * n: 1, 2 * n + 1: 2}) for n in range(30)]
    documents = np.ones((len(passages), 2), np.float32)
    corpus = corpus_module.Corpus("made", "none", passages, asked, documents, documents[:30])
    return corpus_module.Access(corpus, seed=0)


@pytest.fixture(scope="module")
def made(server_dsn: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """What one small run over the handbook writes, with pgrag and the limits alone."""
    pytest.importorskip("bm25s", reason="the bench needs bm25s")
    import psycopg

    folder = tmp_path_factory.mktemp("peers")
    with psycopg.connect(server_dsn, autocommit=True) as admin:
        admin.execute("drop database if exists pgrag_bench_peers")
        admin.execute("create database pgrag_bench_peers")
    try:
        done = subprocess.run(
            [
                *(sys.executable, str(BENCH / "peers.py"), "--json", str(folder / "peers.json")),
                *("--passages", "500", "--queries", "8", "--model", "static", "--only", "limits"),
                *("--judged", str(folder), "--cache", str(folder / "cache"), "--memory", "64MB"),
                *("--database-url", psycopg.conninfo.make_conninfo(server_dsn, dbname="pgrag_bench_peers")),
            ],
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    finally:
        with psycopg.connect(server_dsn, autocommit=True) as admin:
            admin.execute("drop database if exists pgrag_bench_peers with (force)")
    written: dict[str, object] = json.loads((folder / "peers.json").read_text("utf-8"))
    written["printed"] = done.stdout
    written["said"] = done.stderr
    return written


def test_a_caller_sees_every_answer_to_their_questions(access: object) -> None:
    for _, questions in access.callers():
        for question in questions:
            assert question.grades == {2 * question.number: 1, 2 * question.number + 1: 2}


def test_a_caller_sees_the_share_that_is_named(access: object) -> None:
    seen = {question.visible: int(mask.sum()) for mask, (question, *_) in access.callers()}
    assert seen == {
        "100 %": 50_000,
        "50 %": pytest.approx(25_000, abs=50),
        "10 %": pytest.approx(5_000, abs=50),
        "1 %": pytest.approx(500, abs=50),
        "0.1 %": pytest.approx(50, abs=50),
    }


def test_who_sees_more_sees_all_that_they_saw_with_less(access: object) -> None:
    wider = None
    for mask, (question, *_) in access.callers():
        if question.visible != "100 %":
            assert not (mask & ~wider).any()
        wider = mask


def test_readers_of_a_passage_are_those_who_see_it(access: object) -> None:
    for mask, (question, *_) in access.callers():
        (group,) = question.principals
        for row in range(0, 50_000, 997):
            assert (group in access.readers(row)) == mask[row]


def test_a_share_of_less_than_a_block_is_left_out(corpus_module: ModuleType) -> None:
    # 40 blocks of 25 passages: 1 % is 0.4 of a block.
    passages = [{"title": "", "text": str(row)} for row in range(1000)]
    vectors = np.ones((1000, 2), np.float32)
    corpus = corpus_module.Corpus(
        "made", "none", passages, [corpus_module.Judged("q", {0: 1})], vectors, vectors[:1]
    )
    assert list(corpus_module.Access(corpus, seed=0).shares) == ["100 %", "50 %", "10 %"]


def test_recall_counts_what_scores_as_well_as_the_last_that_is_right() -> None:
    import _peers_right

    # Passages 2 and 3 are as good, and one of them was let in.
    right = _peers_right.Right(count=2, least=0.5, scores={1: 0.9, 2: 0.5, 3: 0.5, 4: 0.1})
    assert right.recall([1, 3]) == 2 / 2
    assert right.recall([4, 1]) == 1 / 2
    assert right.recall([]) == 0 / 2


def test_recall_of_a_question_with_no_right_answer_is_none() -> None:
    import _peers_right

    assert _peers_right.Right(count=0, least=np.inf, scores={}).recall([1]) is None


def test_every_system_has_a_row_at_every_visibility(made: dict[str, object]) -> None:
    rows = made["rows"]
    systems = [
        "pgrag, words",
        "pgrag, vectors",
        "pgrag, both",
        "pgrag, both, by scores",
        "bm25s, in memory",
        "numpy, in memory",
    ]
    assert [(row["system"], row["visible"]) for row in rows] == [
        (system, visible) for system in systems for visible in ("100 %", "50 %", "10 %")
    ]
    assert {frozenset(row) for row in rows} == {frozenset(COLUMNS)}


def test_pgrag_finds_what_exact_search_in_memory_finds(made: dict[str, object]) -> None:
    recall = {row["system"]: row["recall_at_10"] for row in made["rows"] if row["visible"] == "100 %"}
    assert recall["pgrag, words"] == 1
    assert recall["pgrag, vectors"] == 1


def test_the_file_says_what_its_figures_depend_on(made: dict[str, object]) -> None:
    assert {"pgrag", "PostgreSQL", "pgvector", "CPU", "bm25s", "model", "questions", "seed"} <= set(
        made["about"]
    )


def test_without_the_judged_data_the_corpus_is_the_handbook_and_that_is_said(made: dict[str, object]) -> None:
    assert "the corpus is made of the handbook" in made["said"]
    assert "of the example handbook" in made["title"]


def test_the_readme_gets_its_tables_from_the_file(made: dict[str, object]) -> None:
    import _readme

    shown = _readme.shown(made)
    assert [table.partition("\n")[0].split("@")[0].split(" ")[0] for table in shown] == [
        "nDCG",
        "Recall",
        "Ingest",
    ]
    assert [table.count("With pgrag") for table in shown] == [0, 0, 1]
    assert all(table in made["printed"] for table in shown)
