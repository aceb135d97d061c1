"""pgrag eval run: judged queries are asked, and what comes of it is printed, written and kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from _cli import pgrag
from _pgrag import Database, login_dsn

import pgrag as pgrag_package


@pytest.fixture
def beir(tmp_path: Path) -> Path:
    folder = tmp_path / "beir"
    folder.mkdir()
    (folder / "queries.jsonl").write_text('{"_id": "1", "text": "pump"}\n{"_id": "2", "text": "filter"}\n')
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n1\ta\t1\n2\tb\t1\n")
    return folder


@pytest.fixture
def filled(db: Database) -> Database:
    db.put("a", "pump pump pump")
    db.put("b", "pump and a filter")
    db.put("secret", "filter filter", readers=["user:ana"])
    return db


def run(db: Database, *arguments: str) -> Any:
    return pgrag(db.dsn, "eval", "run", "--collection", "docs", *arguments)


# Both answers come first, for the public.
ONES = {"ndcg@10": 1.0, "recall@10": 1.0, "mrr": 1.0}


@pytest.mark.parametrize("as_json", [["--json"], ["--json", "-"], ["--json", "--no-ledger"]])
def test_json_prints_the_means_by_arm_and_nothing_else(
    filled: Database, beir: Path, as_json: list[str]
) -> None:
    done = run(filled, "--beir", str(beir), "--as", "public", *as_json)
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    means = json.loads(line)
    assert means.keys() == {"lexical", "lsa"}
    assert {name: means["lexical"][name] for name in ONES} == ONES


def test_json_and_full_are_written_into_files(filled: Database, beir: Path, tmp_path: Path) -> None:
    means, whole = tmp_path / "means.json", tmp_path / "run.json"
    done = run(filled, "--beir", str(beir), "--json", str(means), "--full", str(whole))
    assert done.returncode == 0, done.stderr
    document = json.loads(whole.read_text())
    assert document["metrics"] == json.loads(means.read_text())
    assert [one["query_id"] for one in document["queries"]] == ["1", "2"]
    assert "ndcg@10" in done.stdout


def test_means_are_shown_with_their_intervals_and_the_run_is_named(filled: Database, beir: Path) -> None:
    done = run(filled, "--beir", str(beir))
    assert done.returncode == 0, done.stderr
    (row,) = (line for line in done.stdout.splitlines() if "ndcg@10" in line)
    assert "1.000" in row
    assert "kept" in done.stdout
    run_id = filled.value("select max(run_id) from pgrag.run")
    assert "2 judged queries counted.\n" in done.stderr
    assert f"Kept as run {run_id}." in done.stderr
    assert 'Dense and hybrid were left out: no space answers collection "docs".' in done.stderr


def test_beneath_what_would_keep_evidence_it_says_what_that_does_not_count(
    filled: Database, beir: Path
) -> None:
    (beir / "qrels.tsv").write_text("1\tb\t1\n2\tb\t1\n")
    done = run(filled, "--beir", str(beir), "-k", "1", "--budget", "500")
    assert "By the search with k 1, budget 500 tokens" in done.stdout
    assert "│ k 2 keeps 1 of 1" in done.stdout
    assert (
        "What a setting would lose elsewhere isn't counted: weigh both by pgrag eval tune --collection docs"
        in " ".join(done.stdout.split())
    )


def test_queries_that_nothing_answers_are_named(filled: Database, beir: Path) -> None:
    with (beir / "queries.jsonl").open("a") as file:
        for name in "3456":
            file.write(json.dumps({"_id": name, "text": "what?", "unanswerable": True}) + "\n")
    done = run(filled, "--beir", str(beir), "--arm", "lexical", "--no-ledger")
    assert (
        "2 judged queries counted; 4 that nothing answers were left out: 3, 4, 5 and 1 more.\n" in done.stderr
    )


def test_documents_beyond_the_depth_of_the_collection_are_said_to_be_of_a_deeper_search(
    filled: Database, beir: Path
) -> None:
    filled.execute("""select pgrag.set_search_settings('docs', '{"depth": 5}')""")
    done = run(filled, "--beir", str(beir), "--arm", "lexical", "--no-ledger", "-k", "3")
    assert (
        "By depth and k a search gives 5 passages; documents beyond these, up to 100, are those of a deeper search.\n"
        in done.stderr
    )


def test_measures_that_are_not_of_the_judgements_alone_are_explained(filled: Database, beir: Path) -> None:
    out = run(filled, "--beir", str(beir), "--arm", "lexical", "--no-ledger").stdout
    assert "judged@10: share of the first 10 that somebody judged" in out
    assert "ann_recall@10:" not in out


def test_who_asks_is_who_is_named(filled: Database, beir: Path) -> None:
    done = run(filled, "--beir", str(beir), "--as", "user:ana", "--arm", "lexical", "--json")
    means = json.loads(done.stdout)
    # For ana her own text, which says filter twice, comes before the public one.
    assert means["lexical"]["mrr"] == (1 + 1 / 2) / 2


def test_only_the_queries_of_the_folder_are_asked(filled: Database, beir: Path) -> None:
    assert run(filled, "--beir", str(beir), "--json").returncode == 0
    (beir / "queries.jsonl").write_text('{"_id": "3", "text": "filter"}\n')
    (beir / "qrels.tsv").write_text("3\tb\t1\n")
    done = run(filled, "--beir", str(beir), "--full", "-")
    assert [one["query_id"] for one in json.loads(done.stdout)["queries"]] == ["3"]


def test_a_run_is_repeated_and_what_changed_is_said(filled: Database, beir: Path) -> None:
    run(filled, "--beir", str(beir), "--arm", "lexical", "--name", "as it was", "--json")
    first = filled.value("select max(run_id) from pgrag.run")
    same = pgrag(filled.dsn, "eval", "run", "--again", str(first), "--json")
    assert same.returncode == 0, same.stderr
    assert f"Nothing has changed since run {first}: collection, queries and versions." in same.stderr
    assert filled.value("select name from pgrag.run order by run_id desc limit 1") == "as it was"
    filled.put("c", "a third text about pumps")
    changed = pgrag(filled.dsn, "eval", "run", "--again", str(first), "--json")
    assert f"Changed since run {first}: documents: 3 is 4 now." in changed.stderr
    assert f"Changed since run {first}: the documents, or who may read them.\n" in changed.stderr
    assert f"Next: pgrag eval compare {first} " in changed.stderr


def test_a_run_by_a_model_is_repeated_by_that_model(hybrid: Database, beir: Path) -> None:
    hybrid.put("a", "pump")
    hybrid.put("b", "filter")
    model = str(Path(pgrag_package.__file__).parent / "data" / "minilm_static")
    done = run(hybrid, "--beir", str(beir), "--model", model, "--arm", "dense", "--full", "-")
    assert done.returncode == 0, done.stderr
    settings = json.loads(done.stdout)["settings"]
    assert settings["model"] == model
    assert settings["queries_embedded_by"].startswith("model ")
    again = pgrag(hybrid.dsn, "eval", "run", "--again", str(json.loads(done.stdout)["run_id"]), "--full", "-")
    assert json.loads(again.stdout)["settings"]["queries_embedded_by"] == settings["queries_embedded_by"]
    assert "Nothing has changed since" in again.stderr


def test_the_update_lag_is_shown_where_it_is_asked_for(filled: Database, beir: Path) -> None:
    assert "found after a write" in run(filled, "--beir", str(beir), "--system").stdout


def test_whoever_is_below_the_promise_is_named(
    hybrid: Database, beir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hybrid.put("a", "pump")
    hybrid.put("b", "filter")
    # An index that loses one in ten is hard to make of so few texts.
    monkeypatch.setattr("pgrag.evaluate._run.ann_recall", lambda found, nearest: 0.9)
    done = run(hybrid, "--beir", str(beir), "--as", "user:ana")
    assert "Below the promise: user:ana finds 0.900 of the 10 nearest, 0.99 is promised." in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name the collection, or the run to repeat"),
        (["--collection", "docs", "--again", "1"], "name the collection or the run to repeat, not both"),
        (["--again", "1", "--arm", "lexical"], "a run is repeated by its own settings"),
        (["--collection", "docs", "--json", "-", "--full", "-"], "stdout holds one of them"),
    ],
)
def test_what_does_not_go_together_is_wrong_usage(db: Database, arguments: list[str], message: str) -> None:
    done = pgrag(db.dsn, "eval", "run", *arguments)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.replace("│", " ").split())


def test_a_collection_without_judged_queries_says_what_to_do(filled: Database) -> None:
    done = run(filled)
    assert done.returncode == 1
    assert done.stderr == (
        'Error: collection "docs" has no judged queries\nTry: pgrag eval import --collection docs --beir DIR\n'
    )


def test_a_file_that_cannot_be_written_is_named_and_the_run_is_kept(filled: Database, beir: Path) -> None:
    done = run(filled, "--beir", str(beir), "--json", str(beir / "nowhere" / "means.json"))
    assert done.returncode == 1
    assert "means.json can't be written" in done.stderr
    assert filled.value("select count(*) from pgrag.run where finished_at is not null") == 1


def test_a_run_that_is_not_there_cannot_be_repeated(db: Database) -> None:
    done = pgrag(db.dsn, "eval", "run", "--again", "77")
    assert done.returncode == 1
    assert "77" in done.stderr


def test_an_application_may_not(filled: Database) -> None:
    done = pgrag(login_dsn(filled.dsn, "pgrag_test_app"), "eval", "run", "--collection", "docs")
    assert done.returncode == 1
    assert done.stderr.startswith("Error: permission denied")
