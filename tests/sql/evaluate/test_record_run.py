"""Runs: what is kept of an evaluation, how it is read again, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest
from _pgrag import Database

QUERIES = [
    {
        "query_id": "q",
        "arm": arm,
        "query": "what?",
        "principals": ["user:ana"],
        "visible": 1,
        "metrics": {"mrr": value},
        "stages_ms": {"search": 2},
    }
    for arm, value in (("lexical", 1), ("dense", 0.5))
]
HIT = {"query_id": "q", "arm": "dense", "rank": 1, "uri": "a", "ordinal": 0, "score": 0.25}
EVIDENCE = {
    "query_id": "q",
    "uri": "a",
    "char_start": 2,
    "char_end": 5,
    "grade": 3,
    "stage": "fusion",
    "rank": 12,
    "detail": {"lexical": 4},
}


def new_run(db: Database, metrics: str = "{}") -> int:
    return int(db.value("select pgrag.record_run('docs', 'a run', '{\"k\": 10}', %s)", (metrics,)))


def record(db: Database, what: str, run_id: int, rows: Any) -> int:
    return int(db.value(f"select pgrag.record_run_{what}(%s, %s)", (run_id, json.dumps(rows))))


def load(db: Database, run_id: int) -> dict[str, Any]:
    return dict(db.value("select pgrag.load_run(%s)", (run_id,)))


def test_a_run_is_read_as_it_was_recorded(db: Database) -> None:
    db.put("a", "one")
    db.put("b", "two")
    run_id = new_run(db)
    assert record(db, "queries", run_id, QUERIES) == 2
    assert (
        record(db, "evidence", run_id, [EVIDENCE, {**EVIDENCE, "uri": "b", "stage": "kept", "rank": 1}]) == 2
    )
    db.execute("select pgrag.finish_run(%s, %s, %s)", (run_id, '{"dense": {"mrr": 0.5}}', '{"bands": []}'))
    document = load(db, run_id)
    settings = document.pop("settings")
    assert (settings["k"], settings["documents"], settings["collection"]["search_settings"]) == (10, 2, {})
    assert document.pop("started_at") < document.pop("finished_at")
    assert document == {
        "run_id": run_id,
        "name": "a run",
        "collection": "docs",
        "metrics": {"dense": {"mrr": 0.5}},
        "queries": [
            {
                "query_id": "q",
                "query": "what?",
                "principals": ["user:ana"],
                "visible": 1,
                "share": 1 / 2,
                "metrics": {"lexical": {"mrr": 1}, "dense": {"mrr": 0.5}},
                "stages_ms": {"lexical": {"search": 2}, "dense": {"search": 2}},
                "evidence": [
                    {key: value for key, value in EVIDENCE.items() if key != "query_id"},
                    {
                        "uri": "b",
                        "char_start": 2,
                        "char_end": 5,
                        "grade": 3,
                        "stage": "kept",
                        "rank": 1,
                        "detail": {"lexical": 4},
                    },
                ],
            }
        ],
        "ledger": {"fusion": 1, "kept": 1},
        "bands": [],
    }


def test_what_is_known_of_a_judged_query_is_kept_with_the_run(db: Database) -> None:
    db.execute("select pgrag.import_judged('docs', '{q}', '{how?}', '[[\"user:bo\"]]', '{q}', '{a}', '{1}')")
    run_id = new_run(db)
    record(db, "queries", run_id, [{"query_id": "q", "arm": "lexical"}])
    db.execute("delete from pgrag.judged_query")
    (query,) = load(db, run_id)["queries"]
    assert (query["query"], query["principals"]) == ("how?", ["user:bo"])


def test_evidence_of_a_query_that_was_not_measured_is_read(db: Database) -> None:
    run_id = new_run(db)
    record(db, "evidence", run_id, [{**EVIDENCE, "char_start": None, "char_end": None}])
    (query,) = load(db, run_id)["queries"]
    assert (query["query_id"], query["principals"], len(query["evidence"])) == ("q", [], 1)


@pytest.mark.parametrize(("what", "row"), [("queries", QUERIES[0]), ("hits", HIT), ("evidence", EVIDENCE)])
def test_recording_again_replaces(db: Database, what: str, row: dict[str, Any]) -> None:
    run_id = new_run(db)
    table = {"queries": "run_query", "hits": "run_hit", "evidence": "run_evidence"}[what]
    for _ in range(2):
        assert record(db, what, run_id, [row]) == 1
    assert db.value(f"select count(*) from pgrag.{table}") == 1


def test_hits_are_listed_by_arm_and_rank(db: Database) -> None:
    run_id = new_run(db)
    record(db, "hits", run_id, [{**HIT, "rank": 2, "uri": "b"}, HIT, {**HIT, "arm": "lexical", "score": 7}])
    listed = "select found_by, rank, uri, score from pgrag.run_hits"
    assert db.execute(f"{listed}(%s)", (run_id,)) == [
        ("dense", 1, "a", 0.25),
        ("dense", 2, "b", 0.25),
        ("lexical", 1, "a", 7),
    ]
    assert db.execute(f"{listed}(%s, 'lexical')", (run_id,)) == [("lexical", 1, "a", 7)]


def test_runs_are_listed_the_newest_first(db: Database) -> None:
    under_way, gate = new_run(db), new_run(db, '{"passed": true}')
    db.execute('update pgrag.run set settings = \'{"kind": "gate"}\' where run_id = %s', (gate,))
    record(db, "queries", under_way, QUERIES)
    db.execute("select pgrag.create_collection('other')")
    listed = "select run_id, collection_name, kind, finished_at is not null, queries, metrics from pgrag.runs"
    assert db.execute(f"{listed}()") == [
        (gate, "docs", "gate", True, 0, {"passed": True}),
        (under_way, "docs", "run", False, 1, {}),
    ]
    assert db.execute(f"{listed}('other')") == []


def test_a_run_is_forgotten_with_all_that_was_kept_of_it(db: Database) -> None:
    run_id, other = new_run(db), new_run(db)
    for one in (run_id, other):
        record(db, "queries", one, QUERIES)
        record(db, "hits", one, [HIT])
        record(db, "evidence", one, [EVIDENCE])
    db.execute("select pgrag.drop_run(%s)", (run_id,))
    for table in ("run", "run_query", "run_hit", "run_evidence"):
        assert db.execute(f"select distinct run_id from pgrag.{table}") == [(other,)]


def test_a_writer_keeps_and_reads_runs(db: Database) -> None:
    with db.connect("pgrag_test_writer") as writer:
        for query, parameters in (
            ("select pgrag.record_run('docs', 'mine', '{}', '{}')", ()),
            ("select pgrag.record_run_queries(1, %s)", (json.dumps(QUERIES),)),
            ("select pgrag.record_run_hits(1, %s)", (json.dumps([HIT]),)),
            ("select pgrag.record_run_evidence(1, %s)", (json.dumps([EVIDENCE]),)),
            ("select pgrag.finish_run(1, '{}')", ()),
            ("select pgrag.runs()", ()),
            ("select pgrag.run_hits(1)", ()),
        ):
            assert len(writer.execute(query, parameters).fetchall()) == 1
        row = writer.execute("select pgrag.load_run(1) -> 'ledger'").fetchone()
        assert row == ({"fusion": 1},)
        writer.execute("select pgrag.drop_run(1)")


@pytest.mark.parametrize(
    "call",
    [
        "pgrag.record_run_queries(7, '[]')",
        "pgrag.record_run_hits(7, '[]')",
        "pgrag.record_run_evidence(null, '[]')",
        "pgrag.finish_run(7, '{}')",
        "pgrag.load_run(7)",
        "pgrag.run_hits(7)",
        "pgrag.drop_run(null)",
    ],
)
def test_a_run_that_is_none_is_refused(db: Database, call: str) -> None:
    with pytest.raises(psycopg.Error, match=r"run (7|NULL) does not exist") as caught:
        db.execute(f"select {call}")
    assert caught.value.sqlstate == "RG034"


@pytest.mark.parametrize("what", ["queries", "hits", "evidence"])
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({}, "rows must be a JSON array of objects, got {}"),
        ([1], r"rows must be a JSON array of objects, got \[1\]"),
        ([{"arm": "dense"}], 'a row {"arm": "dense"} lacks query_id'),
        ([{"query_id": None}], 'a row {"query_id": null} lacks query_id'),
    ],
)
def test_rows_that_are_none_are_refused(db: Database, what: str, rows: Any, message: str) -> None:
    run_id = new_run(db)
    with pytest.raises(psycopg.Error, match=message) as caught:
        record(db, what, run_id, rows)
    assert caught.value.sqlstate == "RG001"


@pytest.mark.parametrize(
    ("what", "row"),
    [
        ("queries", {**QUERIES[0], "metrics": 1}),
        ("queries", {**QUERIES[0], "visible": -1}),
        ("queries", {**QUERIES[0], "principals": "user:ana"}),
        ("hits", {**HIT, "rank": 0}),
        ("hits", {**HIT, "rank": 1.5}),
        ("evidence", {**EVIDENCE, "detail": []}),
        ("evidence", {**EVIDENCE, "char_end": None}),
        ("evidence", {**EVIDENCE, "char_end": 1}),
    ],
)
def test_a_row_of_another_form_is_refused(db: Database, what: str, row: dict[str, Any]) -> None:
    with pytest.raises(psycopg.Error, match="a row is of another form") as caught:
        record(db, what, new_run(db), [row])
    assert caught.value.sqlstate == "RG001"


@pytest.mark.parametrize(("what", "row"), [("queries", QUERIES[0]), ("hits", HIT), ("evidence", EVIDENCE)])
def test_a_row_that_stands_twice_is_refused(db: Database, what: str, row: dict[str, Any]) -> None:
    with pytest.raises(psycopg.Error, match="a row stands twice in one call") as caught:
        record(db, what, new_run(db), [row, row])
    assert caught.value.sqlstate == "RG001"


def test_a_share_of_an_unknown_number_of_passages_is_unknown(db: Database) -> None:
    run_id = db.value("select pgrag.record_run('docs', 'a run', '{\"passages\": \"many\"}', '{}')")
    record(db, "queries", run_id, QUERIES)
    assert load(db, run_id)["queries"][0]["share"] is None


def test_another_stage_is_refused_with_those_there_are(db: Database) -> None:
    with pytest.raises(psycopg.Error, match='"luck" is not a stage of evidence') as caught:
        record(db, "evidence", new_run(db), [{**EVIDENCE, "stage": "luck"}])
    assert caught.value.sqlstate == "RG001"
    assert "not_ingested, not_permitted, split, representation, ann, fusion, rerank, pack, kept" in (
        caught.value.diag.message_hint or ""
    )


def test_the_stages_are_those_that_the_table_takes(db: Database) -> None:
    run_id = new_run(db)
    stages = [
        "not_ingested",
        "not_permitted",
        "split",
        "representation",
        "ann",
        "fusion",
        "rerank",
        "pack",
        "kept",
    ]
    rows = [{**EVIDENCE, "uri": stage, "stage": stage} for stage in stages]
    assert record(db, "evidence", run_id, rows) == len(stages)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("null, '{}', '{}'", "a run needs a name, got NULL"),
        ("'r', null, '{}'", "settings must be a JSON object, got NULL"),
        ("'r', '[1]', '{}'", r"settings must be a JSON object, got \[1\]"),
        ("'r', '{}', null", "metrics must be a JSON object, got NULL"),
    ],
)
def test_what_is_no_run_is_refused(db: Database, arguments: str, message: str) -> None:
    with pytest.raises(psycopg.Error, match=message) as caught:
        db.execute(f"select pgrag.record_run('docs', {arguments})")
    assert caught.value.sqlstate == "RG001"
