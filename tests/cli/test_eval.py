"""pgrag eval import: judged queries from a folder in BEIR's layout."""

from __future__ import annotations

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
        'Of the judged documents, 1 are not in collection "docs": a document is meant by its uri.\n'
    )
    assert db.execute("select distinct principals from pgrag.judged_query") == [(["user:ana"],)]


def test_a_folder_that_is_none_of_beir_is_refused(db: Database, tmp_path: Path) -> None:
    done = pgrag(db.dsn, "eval", "import", "--collection", "docs", "--beir", str(tmp_path))
    assert done.returncode == 1
    assert "has neither qrels/test.tsv nor qrels.tsv" in done.stderr


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
