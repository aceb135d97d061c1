"""import_judged and record_run: what they refuse, in their own words."""

from __future__ import annotations

import psycopg
import pytest
from _pgrag import Database


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("'{q}', '{what}', '{}', '{}', '{}', '{}'", "array of arrays of names, got {}"),
        ("'{q}', '{what}', null, '{}', '{}', '{}'", "array of arrays of names, got NULL"),
        ("'{q}', '{what}', '[\"p\"]', '{}', '{}', '{}'", 'array of arrays of names, got "p" for a query'),
        ("'{q}', '{what}', '[[1]]', '{}', '{}', '{}'", r"array of arrays of names, got \[1\] for a query"),
        (
            "'{q}', '{what}', '[[null]]', '{}', '{}', '{}'",
            r"array of arrays of names, got \[null\] for a query",
        ),
        ("'{null}', '{what}', '[[]]', '{}', '{}', '{}'", "query_ids must not hold NULL"),
        ("'{q}', '{null}', '[[]]', '{}', '{}', '{}'", "queries must not hold NULL"),
        ("'{q}', '{what}', '[[]]', '{null}', '{a}', '{1}'", "judged_ids must not hold NULL"),
        ("'{q}', '{what}', '[[]]', '{q}', '{null}', '{1}'", "uris must not hold NULL"),
        ("'{q}', '{what}', '[[]]', '{q}', '{a}', '{null}'", "grades must not hold NULL"),
    ],
)
def test_what_is_no_judged_query_is_refused(db: Database, arguments: str, message: str) -> None:
    with pytest.raises(psycopg.Error, match=message) as caught:
        db.execute(f"select * from pgrag.import_judged('docs', {arguments})")
    assert caught.value.sqlstate == "RG001"


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
