"""pgrag create-collection: makes it, or says why not."""

from __future__ import annotations

from typing import Any

import pytest
from _cli import pgrag
from _pgrag import login_dsn


def test_a_collection_is_made_as_asked(db: Any) -> None:
    done = pgrag(db.dsn, "create-collection", "manuals", "--analyzer", "german", "--chunk-tokens", "64")
    assert (done.returncode, done.stdout) == (0, "")
    made = db.execute("select analyzer, chunk_tokens from pgrag.collection where name = 'manuals'")
    assert made == [("german", 64)]


def test_the_next_command_is_named(db: Any) -> None:
    assert "pgrag ingest PATH --collection manuals" in pgrag(db.dsn, "create-collection", "manuals").stderr


def test_a_writer_may(db: Any) -> None:
    assert pgrag(login_dsn(db.dsn, "pgrag_test_writer"), "create-collection", "manuals").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["docs"], 'Error: collection "docs" exists already'),
        (["manuals", "--analyzer", "klingon"], 'Error: there is no analyzer "klingon"'),
        (["manuals", "--space", "nowhere"], 'Error: space "nowhere" does not exist'),
    ],
)
def test_a_refusal_says_what_to_do(db: Any, arguments: list[str], error: str) -> None:
    done = pgrag(db.dsn, "create-collection", *arguments)
    first, second = done.stderr.splitlines()
    assert (done.returncode, first) == (1, error)
    assert second.startswith("Try: ")


def test_a_budget_out_of_range_is_wrong_usage(db: Any) -> None:
    assert pgrag(db.dsn, "create-collection", "manuals", "--chunk-tokens", "15").returncode == 2


@pytest.mark.parametrize("role", ["pgrag_test_app", "pgrag_test_nobody"])
def test_a_role_that_may_not_write_is_told_which_may(db: Any, role: str) -> None:
    done = pgrag(login_dsn(db.dsn, role), "create-collection", "manuals")
    assert done.returncode == 1
    assert "pgrag_writer" in done.stderr
