"""pgrag eval compare: two runs, from the database or from files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from _cli import pgrag
from _pgrag import Database

from pgrag.evaluate import JudgedQuery, Judgement, Options, evaluate_collection, import_judged


def judge(db: Database, *names: str) -> None:
    queries = [JudgedQuery(name, "pump", (), None, (Judgement("b", grade=1),)) for name in names]
    import_judged(db.admin, "docs", queries)


def run(db: Database) -> int:
    options = Options(arms=("lexical",), timings=False, ledger=False)
    return int(evaluate_collection(db.admin, "docs", options=options)["run_id"])


@pytest.fixture
def runs(db: Database) -> tuple[Database, int, int]:
    """Two runs of two queries, whose answer came second, and comes first."""
    db.put("a", "pump pump pump")
    db.put("b", "pump and a filter")
    judge(db, "q1", "q2")
    first = run(db)
    db.execute("select pgrag.delete_document('docs', 'a')")
    return db, first, run(db)


def test_both_are_shown_with_the_difference_and_what_was_otherwise(runs: tuple[Database, int, int]) -> None:
    db, first, second = runs
    done = pgrag(db.dsn, "eval", "compare", str(first), str(second), columns=140)
    assert done.returncode == 0, done.stderr
    (row,) = (line for line in done.stdout.splitlines() if " mrr " in line)
    assert row.replace("│", " ").split()[2:5] == ["0.500", "1.000", "+0.500"]
    assert row.replace("│", " ").split()[-1] == "2/0/0"
    assert any("documents" in line and "2" in line and "1" in line for line in done.stdout.splitlines())
    assert f"2 judged queries; old: run {first}; new: run {second}." in done.stderr
    # Two queries that both win: chance does that in 2 of 4 cases.
    assert "Nothing differs by more than chance explains" in done.stderr


def test_in_80_columns_no_figure_is_cut(runs: tuple[Database, int, int]) -> None:
    db, first, second = runs
    done = pgrag(db.dsn, "eval", "compare", str(first), str(second), columns=80)
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert "…" not in done.stdout
    (row,) = (line for line in lines if " mrr " in line)
    assert row.split()[2:5] + row.split()[-1:] == ["0.500", "1.000", "+0.500", "2/0/0"]


def test_what_no_query_differs_by_is_said_and_not_shown(runs: tuple[Database, int, int]) -> None:
    db, first, second = runs
    done = pgrag(db.dsn, "eval", "compare", str(first), str(second), columns=140)
    assert " recall@10 " not in done.stdout
    assert "Equal for every query: lexical, " in done.stderr
    assert "recall@10" in done.stderr
    itself = pgrag(db.dsn, "eval", "compare", str(first), str(first))
    assert itself.stdout == ""
    assert "Equal for every query: lexical.\n" in itself.stderr


def test_json_holds_the_whole_comparison(runs: tuple[Database, int, int]) -> None:
    db, first, second = runs
    comparison = json.loads(pgrag(db.dsn, "eval", "compare", str(first), str(second), "--json").stdout)
    (one,) = (one for one in comparison["arms"] if one["figures"]["measure"] == "mrr")
    assert (one["arm"], one["figures"]["old"], one["figures"]["new"]) == ("lexical", 0.5, 1.0)
    assert one["figures"]["p_permutation"] == 2 / 4
    assert "documents" in [change["name"] for change in comparison["settings"]]


def test_files_are_compared_without_a_database(runs: tuple[Database, int, int], tmp_path: Path) -> None:
    db, *numbers = runs
    files = []
    for number in numbers:
        file = tmp_path / f"{number}.json"
        file.write_text(json.dumps(db.value("select pgrag.load_run(%s)", (number,))))
        files.append(str(file))
    done = pgrag("postgresql://nobody@/nowhere?host=/nowhere", "eval", "compare", *files, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["queries"] == 2


def test_different_judged_sets_are_refused_unless_what_both_have_is_asked_for(
    runs: tuple[Database, int, int],
) -> None:
    db, first, _ = runs
    judge(db, "q3")
    third = run(db)
    refused = pgrag(db.dsn, "eval", "compare", str(first), str(third))
    assert refused.returncode == 1
    assert f"run {first} and run {third} are of different judged sets" in refused.stderr
    done = pgrag(db.dsn, "eval", "compare", str(first), str(third), "--shared")
    assert done.returncode == 0, done.stderr
    assert "1 more are in one of them only, and left out." in done.stderr


def test_what_is_neither_a_run_nor_a_file_is_refused(db: Database) -> None:
    done = pgrag(db.dsn, "eval", "compare", "nowhere.json", "1")
    assert done.returncode == 1
    assert done.stderr == (
        "Error: nowhere.json is neither the number of a run nor a file\nTry: pgrag eval runs\n"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "holds no JSON"),
        ("[" * 100_000, "holds no JSON"),
        ('{"lexical": {}}', "holds no run"),
    ],
)
def test_a_file_that_holds_no_run_is_named(db: Database, tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "means.json"
    file.write_text(text)
    done = pgrag(db.dsn, "eval", "compare", str(file), "1")
    assert done.returncode == 1
    assert f"{file} {message}" in done.stderr


def test_chosen_measures_alone_are_compared_and_corrected_for(runs: tuple[Database, int, int]) -> None:
    db, first, second = runs
    done = pgrag(
        db.dsn, "eval", "compare", str(first), str(second), "--measure", "mrr", "--measure", "map", "--json"
    )
    figures = [one["figures"] for one in json.loads(done.stdout)["arms"]]
    assert sorted(one["measure"] for one in figures) == ["map", "mrr"]
    assert "Holm's p is corrected for the 2 measures compared; the intervals (95 %) are not.\n" in done.stderr


def test_a_measure_that_not_both_have_is_refused(runs: tuple[Database, int, int]) -> None:
    db, first, second = runs
    done = pgrag(db.dsn, "eval", "compare", str(first), str(second), "--measure", "ndcg@7")
    assert done.returncode == 1
    assert f'Error: run {first} and run {second} don\'t both have "ndcg@7"' in done.stderr


def test_a_run_of_another_kind_is_named(runs: tuple[Database, int, int]) -> None:
    db, first, _ = runs
    tune = db.value("select pgrag.record_run('docs', 'weights', '{\"kind\": \"tune\"}', '{}')")
    done = pgrag(db.dsn, "eval", "compare", str(first), str(tune))
    assert done.returncode == 1
    assert f"Error: run {tune} is a tune, which has no figures by query to compare" in done.stderr
