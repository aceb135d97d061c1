"""pgrag compact: fewer runs, the same answers."""

from __future__ import annotations

from typing import Any

from _cli import pgrag
from _pgrag import login_dsn


def test_runs_are_merged_and_searches_give_the_same(db: Any) -> None:
    for number in range(5):
        db.put(f"{number}.md", f"pump number {number}")
    search = "select uri, score from pgrag.search('pump')"
    before = db.rows_as("user:ana", search), db.value("select count(*) from pgrag.posting")
    done = pgrag(db.dsn, "compact")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    after = db.rows_as("user:ana", search), db.value("select count(*) from pgrag.posting")
    assert after[0] == before[0]
    assert after[1] < before[1]


def test_it_says_how_many_transactions_and_runs_it_took(db: Any) -> None:
    for uri in ("a.md", "b.md"):
        db.put(uri, "pump valve")
    # Two runs of each of two words, a word in each transaction; the last one finds the end of the log.
    said = f"The lexical index is compact, after {2 + 1} transactions that looked at {2 * 2} runs or more.\n"
    assert pgrag(db.dsn, "compact", "--max-runs", "2").stderr == said


def test_where_one_transaction_is_enough_it_says_so(db: Any) -> None:
    assert pgrag(db.dsn, "compact").stderr == "The lexical index is compact, after 1 transaction.\n"


def test_an_index_that_outgrew_its_rows_is_built_again(db: Any) -> None:
    db.execute(
        "insert into pgrag.posting (term, collection_id, acl_id, n, sign, max_tf, min_ratio, entries)"
        " select t, 1, 1, 1, 1, 1, 5, array[pgrag._pack_posting(t, 1, 5)] from generate_series(1, 50000) as t"
    )
    db.execute("delete from pgrag.posting")
    db.put("a.md", "pump valve")
    db.execute("vacuum analyze pgrag.posting")
    assert pgrag(db.dsn, "compact").stderr.endswith("; its B-tree was built again.\n")
    assert pgrag(db.dsn, "compact").stderr == "The lexical index is compact, after 1 transaction.\n"


def test_one_run_at_a_time_is_wrong_usage(db: Any) -> None:
    assert pgrag(db.dsn, "compact", "--max-runs", "1").returncode == 2


def test_an_application_may_not(db: Any) -> None:
    done = pgrag(login_dsn(db.dsn, "pgrag_test_app"), "compact")
    assert done.returncode == 1
    assert done.stderr.startswith("Error: permission denied")
