"""Which collections a caller sees, with what statistics, and that few ACLs are looked up and not filtered out of all."""

from __future__ import annotations

import json
from typing import Any

import pytest
from _pgrag import Database

VISIBLE = "select name, analyzers, chunks, lexemes from pgrag._visible_collections(null)"


def test_many_acls_are_summed_as_few_are(db: Database) -> None:
    for n in range(270):
        db.put(
            f"d{n}",
            "Wasser" if n % 2 else "water",
            ["group:all", f"user:u{n}"],
            language="de" if n % 2 else None,
        )
    db.execute("select pgrag.add_member('group:all', 'user:all')")
    assert db.rows_as("user:all", "select pgrag._few_acl_ids()") == [(None,)]
    assert db.rows_as("user:all", VISIBLE) == [("docs", ["english", "german"], 270, 270)]
    assert db.rows_as("user:u3", VISIBLE) == [("docs", ["german"], 1, 1)]
    assert db.rows_as("user:nobody", VISIBLE) == []


def test_few_acls_are_those_of_the_policies(db: Database) -> None:
    for n in range(70):
        db.put(f"d{n}", "water", [f"user:u{n}", *(["user:some"] if n % 9 == 0 else [])])
    ids = [row[0] for row in db.execute("select acl_id from pgrag.document order by document_id")]
    assert db.rows_as("user:some", "select pgrag._few_acl_ids()") == [(ids[::9],)]
    assert db.rows_as("user:none", "select pgrag._few_acl_ids()") == [([],)]


def test_a_collection_whose_visible_chunks_were_deleted_is_gone_before_compaction(db: Database) -> None:
    db.put("x", "water", ["user:ana"])
    db.put("y", "water", ["user:bo"])
    db.execute("select pgrag.delete_document('docs', 'x')")
    seen = "select name from pgrag.collection"
    assert db.rows_as("user:ana", seen) == []
    assert db.rows_as("user:bo", seen) == [("docs",)]


def conditions(plan: Any) -> list[str]:
    """Every condition by which an index is searched, anywhere in a plan."""
    if isinstance(plan, list):
        return [found for each in plan for found in conditions(each)]
    if isinstance(plan, dict):
        here = [plan["Index Cond"]] if "Index Cond" in plan else []
        return here + [found for each in plan.values() for found in conditions(each)]
    return []


def test_the_policy_looks_few_acls_up(db: Database) -> None:
    for n in range(400):
        db.put(f"d{n}", "water", [f"user:u{n}"])
    db.execute(
        "insert into pgrag.corpus_stat select 1, acl_id, 0, 0, 'english' from pgrag.acl, generate_series(1, 100)"
    )
    db.execute("analyze pgrag.corpus_stat")
    ((plan,),) = db.rows_as("user:u7", "explain (format json) select name from pgrag.collection")
    found = conditions(plan if not isinstance(plan, str) else json.loads(plan))
    assert [each for each in found if "acl_id = ANY" in each] != []


@pytest.mark.parametrize("role", ["pgrag_test_writer", None])
def test_whoever_writes_sees_every_collection(db: Database, role: str | None) -> None:
    db.put("x", "water", ["user:ana"])
    db.put("y", "Wasser", ["user:bo"], language="de")
    with db.connect(role) as connection:
        assert connection.execute(VISIBLE).fetchall() == [("docs", ["english", "german"], 2, 2)]
