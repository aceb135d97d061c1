"""pgrag eval import, export and runs: judged queries from files and into them, and the runs that were kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from _cli import pgrag
from _pgrag import Database, login_dsn


@pytest.fixture
def beir(tmp_path: Path) -> Path:
    (tmp_path / "queries.jsonl").write_text('{"_id": "1", "text": "one"}\n{"_id": "2", "text": "two"}\n')
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n1\ta\t1\n2\tb\t1\n")
    return tmp_path


def test_it_says_what_it_took_in_and_which_documents_are_unknown(db: Database, beir: Path) -> None:
    db.put("a", "one")
    done = pgrag(db.dsn, "eval", "import", "--collection", "docs", "--beir", str(beir), "--as", "user:ana")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == (
        "2 judged queries with 2 judgements.\n"
        'Of the judged documents, 1 are not in collection "docs": b. A document is meant by its uri.\n'
    )
    assert db.execute("select distinct principals from pgrag.judged_query") == [(["user:ana"],)]


def test_a_folder_that_is_none_of_beir_is_refused(db: Database, tmp_path: Path) -> None:
    done = pgrag(db.dsn, "eval", "import", "--collection", "docs", "--beir", str(tmp_path))
    assert done.returncode == 1
    assert "has neither qrels/test.tsv nor qrels.tsv nor judgements.jsonl" in done.stderr


def test_an_unknown_collection_is_refused(db: Database, beir: Path) -> None:
    done = pgrag(db.dsn, "eval", "import", "--collection", "nowhere", "--beir", str(beir))
    assert done.returncode == 1
    assert done.stderr.startswith('Error: collection "nowhere" does not exist')


def test_an_application_may_not(db: Database, beir: Path) -> None:
    done = pgrag(
        login_dsn(db.dsn, "pgrag_test_app"), "eval", "import", "--collection", "docs", "--beir", str(beir)
    )
    assert done.returncode == 1
    assert done.stderr.startswith("Error: permission denied")


def imported(db: Database, *arguments: str) -> str:
    done = pgrag(db.dsn, "eval", "import", "--collection", "docs", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_topics_and_qrels_of_trec_are_taken_in(db: Database, tmp_path: Path) -> None:
    (tmp_path / "topics").write_text("1\tone\n")
    (tmp_path / "qrels").write_text("1 0 a 1\n")
    db.put("a", "one")
    said = imported(db, "--trec", str(tmp_path / "topics"), str(tmp_path / "qrels"), "--as", "user:ana")
    assert said == "1 judged queries with 1 judgements.\n"
    assert db.execute("select query, principals from pgrag.judged_query") == [("one", ["user:ana"])]


@pytest.mark.parametrize("command", ["import", "export"])
@pytest.mark.parametrize("both", [True, False])
def test_one_format_must_be_named(db: Database, beir: Path, command: str, both: bool) -> None:
    files = [str(beir / "qrels.tsv")] * (2 if command == "import" else 0) or [str(beir)]
    formats = ["--beir", str(beir), "--trec", *files] if both else []
    done = pgrag(db.dsn, "eval", command, "--collection", "docs", *formats)
    assert done.returncode == 2
    assert "name one of --beir DIR and --trec" in done.stderr


def test_files_of_askers_and_of_spans_may_be_named(db: Database, beir: Path, tmp_path: Path) -> None:
    db.put("a", "Stop the pump.")
    askers, spans = tmp_path / "who", tmp_path / "spans"
    askers.write_text('{"query_id": "1", "principals": ["user:eva"]}\n')
    spans.write_text('{"query_id": "1", "uri": "a", "quote": "pump"}\n')
    imported(db, "--beir", str(beir), "--askers", str(askers), "--judgements", str(spans))
    assert db.execute("select principals, quote from pgrag.export_judged('docs') where query_id = '1'") == [
        (["user:eva"], "pump")
    ]


def test_it_says_which_answers_who_asks_cannot_read(db: Database, beir: Path) -> None:
    db.put("a", "one", ["user:bo"])
    db.put("b", "two")
    assert imported(db, "--beir", str(beir), "--as", "user:ana") == (
        "2 judged queries with 2 judgements.\n"
        "Of the answers, 1 can't be read by who asks, and won't be found: a for query 1; --as says who asks.\n"
    )


def test_where_a_file_says_who_asks_it_is_named_as_the_place_to_say_otherwise(
    db: Database, beir: Path
) -> None:
    for name in "abcde":
        db.put(name, name, ["user:bo"])
    (beir / "queries.jsonl").write_text('{"_id": "1", "text": "one", "principals": ["user:ana"]}\n')
    (beir / "qrels.tsv").write_text("".join(f"1\t{name}\t1\n" for name in "abcde"))
    assert imported(db, "--beir", str(beir)).splitlines()[1] == (
        "Of the answers, 5 can't be read by who asks, and won't be found: a for query 1, b for query 1, c for query 1 and 2"
        " more; principals in queries.jsonl or askers.jsonl say who asks."
    )


def test_queries_without_a_judgement_are_named_with_how_to_say_that_nothing_answers_them(
    db: Database, beir: Path
) -> None:
    db.put("a", "one")
    (beir / "qrels.tsv").write_text("1\ta\t1\n")
    assert imported(db, "--beir", str(beir)).splitlines()[1] == (
        '1 query has no judgement: left out (2). Where nothing answers one, say "unanswerable": true in queries.jsonl.'
    )


def test_qrels_may_be_left_out_beside_judgements(db: Database, beir: Path) -> None:
    db.put("a", "one")
    (beir / "qrels.tsv").unlink()
    (beir / "judgements.jsonl").write_text('{"query_id": "1", "uri": "a"}\n')
    assert imported(db, "--beir", str(beir)).startswith("1 judged queries with 1 judgements.\n")


def test_judged_queries_are_forgotten_by_name_or_all(db: Database, beir: Path) -> None:
    imported(db, "--beir", str(beir))

    def forget(*arguments: str) -> str:
        done = pgrag(db.dsn, "eval", "forget", "--collection", "docs", *arguments)
        return done.stderr.splitlines()[0]

    assert forget("7") == 'Error: collection "docs" has no judged query "7"'
    assert forget("1", "7") == "Forgotten: 1 judged queries."
    assert db.execute("select query_id from pgrag.judged_query") == [("2",)]
    assert forget("--all") == "Forgotten: 1 judged queries."
    assert db.execute("select query_id from pgrag.judged_query") == []


@pytest.mark.parametrize("arguments", [[], ["1", "--all"]])
def test_what_to_forget_must_be_said_once(db: Database, arguments: list[str]) -> None:
    done = pgrag(db.dsn, "eval", "forget", "--collection", "docs", *arguments)
    assert done.returncode == 2
    assert "name queries, or say --all" in done.stderr


def test_runs_are_dropped_all_that_are_named_or_none(db: Database) -> None:
    first, second, third = (
        str(db.value("select pgrag.record_run('docs', 'tried', '{}', '{}')")) for _ in range(3)
    )
    refused = pgrag(db.dsn, "eval", "drop", first, "77")
    assert (refused.returncode, refused.stderr.splitlines()[0]) == (1, "Error: run 77 does not exist")
    assert db.value("select count(*) from pgrag.run") == 3
    done = pgrag(db.dsn, "eval", "drop", first, third)
    assert (done.returncode, done.stderr) == (0, f"Forgotten: run {first}, {third}.\n")
    assert [str(number) for (number,) in db.execute("select run_id from pgrag.run")] == [second]


def test_runs_are_listed_with_their_kind_and_how_many_queries_counted(db: Database) -> None:
    run_id = db.value("select pgrag.record_run('docs', 'tried', '{\"kind\": \"run\"}', '{}')")
    rows = [
        {"query_id": name, "arm": "dense", "query": name, "metrics": metrics}
        for name, metrics in (("1", {"mrr": 1}), ("2", {"ann_recall@10": 1}), ("3", {}))
    ]
    db.execute("select pgrag.record_run_queries(%s, %s)", (run_id, json.dumps(rows)))
    db.execute("select pgrag.record_run('docs', 'weights', '{\"kind\": \"tune\"}', '{}')")
    lines = pgrag(db.dsn, "eval", "runs", columns=140).stdout.splitlines()
    cells = [[cell.strip() for cell in line.strip("│").split("│")] for line in lines if "docs" in line]
    assert [(row[1], row[3], row[5]) for row in cells] == [("weights", "tune", ""), ("tried", "run", "1")]


def test_it_says_when_it_cannot_tell_what_is_hidden(db: Database, beir: Path) -> None:
    writer = login_dsn(db.dsn, "pgrag_test_writer")
    done = pgrag(writer, "eval", "import", "--collection", "docs", "--beir", str(beir))
    assert done.returncode == 0
    assert "was not checked: this role may not act for others." in done.stderr


def test_it_says_which_spans_have_changed(db: Database, beir: Path) -> None:
    db.put("a", "Stop the pump.")
    db.put("b", "two")
    (beir / "judgements.jsonl").write_text(
        '{"query_id": "1", "uri": "a", "start": 0, "end": 4, "quote": "Halt"}\n'
    )
    assert "Of the judged spans, 1 no longer read as their quotes" in imported(db, "--beir", str(beir))


@pytest.mark.parametrize(
    ("form", "names"),
    [
        ("--beir", ["queries.jsonl", "qrels/test.tsv"]),
        ("--trec", ["topics.tsv", "qrels.txt", "askers.jsonl"]),
    ],
)
def test_an_export_lists_the_files_that_it_wrote(
    db: Database, beir: Path, tmp_path: Path, form: str, names: list[str]
) -> None:
    imported(db, "--beir", str(beir))
    into = tmp_path / "into"
    done = pgrag(db.dsn, "eval", "export", "--collection", "docs", form, str(into))
    assert done.returncode == 0
    assert done.stdout.splitlines() == [str(into / name) for name in names]
    assert done.stderr == "2 judged queries with 2 judgements.\n"


def test_an_export_writes_what_a_run_found(db: Database, beir: Path, tmp_path: Path) -> None:
    imported(db, "--beir", str(beir))
    run = str(db.value("select pgrag.record_run('docs', 'tried', '{}', '{}')"))
    db.execute(
        "select pgrag.record_run_hits(%s, %s)",
        (run, '[{"query_id": "1", "arm": "dense", "rank": 1, "uri": "a", "ordinal": 0, "score": 1}]'),
    )
    into = tmp_path / "into"
    pgrag(db.dsn, "eval", "export", "--collection", "docs", "--trec", str(into), "--run", run)
    assert (into / f"run-{run}-dense.txt").read_text() == f"1 Q0 a 1 1 pgrag-{run}-dense\n"


def test_an_export_of_a_run_that_is_none_is_refused(db: Database, tmp_path: Path) -> None:
    done = pgrag(
        db.dsn, "eval", "export", "--collection", "docs", "--trec", str(tmp_path / "x"), "--run", "7"
    )
    assert done.returncode == 1
    assert done.stderr.startswith("Error: run 7 does not exist")


def test_runs_are_listed(db: Database) -> None:
    db.execute(
        "select pgrag.record_run('docs', 'k1 [bold] 1.5', '{}', %s)", ('{"lexical": {"ndcg@10": 0.71249}}',)
    )
    db.execute("select pgrag.record_run('docs', 'old to new', '{\"kind\": \"gate\"}', '{\"passed\": false}')")
    db.execute("select pgrag.record_run('docs', 'under way', '{}', '{}')")
    done = pgrag(db.dsn, "eval", "runs", columns=140)
    assert done.returncode == 0
    rows = [line for line in done.stdout.splitlines() if "docs" in line]
    for row, said in zip(
        rows,
        (("under way", "not finished"), ("old to new", "gate closed"), ("k1 [bold] 1.5", "lexical 0.712")),
        strict=True,
    ):
        assert [words for words in said if words not in row] == []


def test_runs_are_printed_as_json_of_one_collection(db: Database) -> None:
    db.execute("select pgrag.create_collection('other')")
    for collection in ("docs", "other"):
        db.execute("select pgrag.record_run(%s, 'tried', '{}', '{\"dense\": {}}')", (collection,))
    done = pgrag(db.dsn, "eval", "runs", "--collection", "other", "--json")
    (one,) = map(json.loads, done.stdout.splitlines())
    assert (one["name"], one["collection"], one["metrics"]) == ("tried", "other", {"dense": {}})


def test_no_runs_say_how_to_make_one(db: Database) -> None:
    done = pgrag(db.dsn, "eval", "runs")
    assert (done.returncode, done.stdout) == (0, "")
    assert "Try: pgrag eval run --collection NAME" in done.stderr
