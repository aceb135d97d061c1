"""pgrag check and pgrag reindex: what they say, where, and with which exit code."""

from __future__ import annotations

import json
from typing import Any

from _cli import pgrag
from _pgrag import login_dsn


def spoil(db: Any) -> None:
    with db.admin.transaction():
        db.execute("set local session_replication_role = replica")
        db.execute("delete from pgrag.posting")


def test_nothing_found_is_said_and_exits_0(db: Any) -> None:
    db.put("a", "a valve")
    done = pgrag(db.dsn, "check")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.endswith("Nothing found: the index says what the documents say.\n")


def test_a_finding_is_shown_with_the_next_step_and_exits_1(db: Any) -> None:
    db.put("a", "a valve")
    spoil(db)
    done = pgrag(db.dsn, "check", "--collection", "docs")
    assert done.returncode == 1
    assert "a #0" in done.stdout
    assert "Try: pgrag reindex --lexical --rebuild --collection docs\n" in done.stderr


def test_json_has_an_object_a_finding(db: Any) -> None:
    db.put("a", "a valve")
    spoil(db)
    (line,) = pgrag(db.dsn, "check", "--json").stdout.splitlines()
    assert json.loads(line) == {
        "finding": "posting",
        "collection": "docs",
        "subject": "a #0",
        "detail": "0 postings, its text has 1",
    }


def test_the_next_step_repairs(db: Any) -> None:
    db.put("a", "a valve")
    spoil(db)
    assert pgrag(db.dsn, "reindex", "--lexical", "--rebuild", "--collection", "docs").returncode == 0
    assert pgrag(db.dsn, "check").returncode == 0


def test_an_unknown_collection_is_an_error(db: Any) -> None:
    done = pgrag(db.dsn, "check", "--collection", "nowhere")
    assert done.returncode == 1
    assert 'Error: collection "nowhere" does not exist' in done.stderr


def test_an_application_may_not_check(db: Any) -> None:
    done = pgrag(login_dsn(db.dsn, "pgrag_test_app"), "check")
    assert done.returncode == 1
    assert "Error: permission denied" in done.stderr


def test_a_change_of_analyzer_is_said_and_reaches_every_chunk(db: Any) -> None:
    for n in range(3):
        db.put(f"d{n}", "Die Häuser")
    done = pgrag(
        db.dsn, "reindex", "--lexical", "--collection", "docs", "--analyzer", "german", "--batch", "2"
    )
    assert done.returncode == 0
    assert 'Collection "docs" is searched by german from now on' in done.stderr
    assert done.stderr.endswith("3 chunks are analysed as the analyzer does now.\n")
    assert db.rows_as("user:ana", "select count(*) from pgrag.search_lexical('Hauses')") == [(3,)]


def test_an_unknown_analyzer_changes_nothing(db: Any) -> None:
    done = pgrag(db.dsn, "reindex", "--lexical", "--collection", "docs", "--analyzer", "klingon")
    assert done.returncode == 1
    assert 'Error: there is no analyzer "klingon"' in done.stderr
    assert db.value("select analyzer from pgrag.collection") == "english"


def test_reindexing_what_is_not_said_is_wrong_usage(db: Any) -> None:
    done = pgrag(db.dsn, "reindex", "--collection", "docs")
    assert done.returncode == 2
    assert "--lexical" in done.stderr
