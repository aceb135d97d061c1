"""``pgrag eval tune``: words and exit codes."""

from __future__ import annotations

import json

import pytest
from _cli import pgrag
from _pgrag import Database

from pgrag.evaluate._tune import FEWEST_QUERIES

pytest.importorskip("ir_measures", reason="needs the extra evaluate")


@pytest.fixture
def judged(db: Database) -> Database:
    """Ten plain answers, each asked for twice, and parameters of BM25 that prefer what is long."""
    words = [f"topic{n}" for n in range(10)]
    texts = {f"{word}.md": f"A page on {word}." for word in words}
    texts |= {f"{word}-long.md": f"{word} {word} {word} " + "and much else besides " * 30 for word in words}
    db.execute(
        "select pgrag.put_document('docs', u.uri, u.text, '{public}') from unnest(%s::text[], %s::text[]) as u (uri, text)",
        (list(texts), list(texts.values())),
    )
    ids = [f"{word}-{n}" for word in words for n in range(2)]
    db.execute(
        "select pgrag.import_judged('docs', %s, %s, %s, %s, %s, %s)",
        (
            ids,
            [one.partition("-")[0] for one in ids],
            json.dumps([[]] * len(ids)),
            ids,
            [one.partition("-")[0] + ".md" for one in ids],
            [1] * len(ids),
        ),
    )
    db.execute("select pgrag.set_bm25('docs', 10, 0)")
    return db


def test_what_is_better_is_proposed(judged: Database) -> None:
    done = pgrag(judged.dsn, "eval", "tune", "--collection", "docs", "--sweep", "b", columns=140)

    assert done.returncode == 0, done.stderr
    assert "Proposed: b 0.75 (bm25: " in done.stdout
    assert "Next: pgrag eval tune --collection docs --apply" in done.stderr


def test_it_is_applied_on_request(judged: Database) -> None:
    done = pgrag(judged.dsn, "eval", "tune", "--collection", "docs", "--sweep", "b", "--apply", "--json")

    made = json.loads(done.stdout)
    assert made["applied"]
    assert judged.value("select b from pgrag.collection") == made["proposal"]["b"]


def test_it_is_readable_in_80_columns(judged: Database) -> None:
    done = pgrag(judged.dsn, "eval", "tune", "--collection", "docs", "--sweep", "k1,b", columns=80)

    tables = [line for line in done.stdout.splitlines() if not line.startswith("Proposed")]
    assert max(map(len, tables)) <= 80
    assert "…" not in done.stdout
    (trial,) = [line for line in tables if line.count("/") == 2 and "bm25" in line]
    assert "0/20/0" in trial or "20/0/0" in trial


def test_what_the_collection_has_now_is_told(judged: Database) -> None:
    judged.execute("""select pgrag.set_search_settings('docs', '{"depth": 30}')""")
    done = pgrag(judged.dsn, "eval", "tune", "--collection", "docs", "--sweep", "b")

    assert "now: k1 10, b 0, analyzer english, chunk_tokens 256, depth 30, rrf_k 60" in done.stderr


def test_help_says_how_many_queries_it_needs() -> None:
    words = pgrag("postgresql://nowhere", "eval", "tune", "--help", columns=400).stdout
    assert f"at least {FEWEST_QUERIES} judged queries" in words


def test_what_cannot_be_swept_is_named(judged: Database) -> None:
    done = pgrag(judged.dsn, "eval", "tune", "--collection", "docs", "--sweep", "colour")

    assert done.returncode == 1
    assert 'Error: "colour" is nothing that can be swept' in done.stderr


def test_without_judged_queries_the_command_that_brings_them_is_named(db: Database) -> None:
    done = pgrag(db.dsn, "eval", "tune", "--collection", "docs")

    assert done.returncode == 1
    assert "Try: pgrag eval import --collection docs --beir DIR" in done.stderr
