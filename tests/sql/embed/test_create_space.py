"""create_space: what it refuses, in its own words."""

from __future__ import annotations

import psycopg
import pytest
from _pgrag import Database


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("null, 'm', 3", 'begins with a letter, got "NULL"'),
        ("'Upper', 'm', 3", 'begins with a letter, got "Upper"'),
        ("'s', 'm', 0", "dimension must be between 1 and 4000, got 0"),
        ("'s', 'm', 4001", "dimension must be between 1 and 4000, got 4001"),
        ("'s', 'm', 3, kind => 'magic'", 'got "magic" and "hnsw"'),
        # Nothing would make that index, and a scan of everything would be called a search through it.
        ("'s', 'm', 3, index_kind => 'ivfflat'", 'got "external" and "ivfflat"'),
    ],
)
def test_what_can_t_be_a_space_is_refused(db: Database, arguments: str, message: str) -> None:
    with pytest.raises(psycopg.Error, match=message) as caught:
        db.execute(f"select pgrag.create_space({arguments})")
    assert caught.value.sqlstate == "RG001"
