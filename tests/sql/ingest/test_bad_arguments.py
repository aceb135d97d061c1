"""Arguments that no document can have are refused by name, before the tables would refuse them by constraint."""

from __future__ import annotations

import random
from typing import Any

import psycopg
import pytest
from _pgrag import Database

LONGEST = 2000


def characters(count: int) -> str:
    """CJK of three bytes each that doesn't compress."""
    return "".join(chr(0x4E00 + random.Random(count + place).randrange(20000)) for place in range(count))


def refusal(db: Database, query: str, *arguments: Any) -> str | None:
    with pytest.raises(psycopg.Error) as caught:
        db.execute(query, arguments)
    return caught.value.sqlstate


def test_the_longest_uri_is_taken(db: Database) -> None:
    uri = characters(LONGEST // 3)
    db.put(uri, "turn the valve")
    assert db.rows_as("public", "select uri from pgrag.search('valve')") == [(uri,)]


@pytest.mark.parametrize("uri", ["", characters(LONGEST // 3 + 1)])
def test_a_staged_uri_that_fits_into_no_index_is_refused(db: Database, uri: str) -> None:
    batch = db.value("select gen_random_uuid()")
    db.execute(
        "insert into pgrag.staging (batch_id, uri, content_hash, readers, content)"
        " values (%s, %s, '', array['public'], 'turn the valve')",
        (batch, uri),
    )
    assert refusal(db, "select pgrag.load_staged('docs', %s)", batch) == "RG001"


@pytest.mark.parametrize("stage", [None, "", "index"])
def test_a_failure_at_no_stage_is_refused(db: Database, stage: str | None) -> None:
    assert refusal(db, "select pgrag.record_failure('docs', %s, 'a', 'why')", stage) == "RG001"


def test_a_failure_of_a_path_too_long_for_an_index_keeps_its_end(db: Database) -> None:
    path = characters(LONGEST)
    db.execute("select pgrag.record_failure('docs', 'parse', %s, 'why')", (path,))
    assert db.value("select uri from pgrag.failure") == "…" + path[-499:]


def test_a_chunk_of_no_collection_is_refused_by_name(db: Database) -> None:
    with pytest.raises(psycopg.Error, match="collection 999 does not exist") as caught:
        db.execute(
            "insert into pgrag.chunk (collection_id, acl_id, document_id, ordinal, char_start, char_end, token_count, content)"
            " values (999, 1, 1, 0, 0, 5, 1, 'valve')"
        )
    assert caught.value.sqlstate == "RG002"
