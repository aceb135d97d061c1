"""put_document: what it refuses, in its own words."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from _pgrag import Database
from psycopg.types.json import Jsonb


@pytest.mark.parametrize("uri", [None, "", "é" * 1001])
def test_a_uri_has_1_to_2000_bytes(db: Database, uri: str | None) -> None:
    length = "NULL" if uri is None else len(uri.encode())
    with pytest.raises(psycopg.Error, match=f"1 to 2,000 bytes, got {length}") as caught:
        db.execute("select pgrag.put_document('docs', %s, 'text', array['public'])", (uri,))
    assert caught.value.sqlstate == "RG001"


@pytest.mark.parametrize("metadata", [[], "text", 1])
def test_metadata_is_an_object(db: Database, metadata: Any) -> None:
    with pytest.raises(psycopg.Error, match="metadata must be a JSON object") as caught:
        db.put("x", "text", metadata=Jsonb(metadata))
    assert caught.value.sqlstate == "RG001"


def test_no_metadata_is_an_empty_object(db: Database) -> None:
    db.put("x", "text", metadata=None)
    assert db.value("select metadata from pgrag.document") == {}


def test_a_static_vector_that_is_there_already_is_written_again(hybrid: Database) -> None:
    hybrid.put("x", "open the valve")
    # As after taking the space away from the collection and attaching it again.
    hybrid.execute(
        "insert into pgrag.embed_queue (collection_id, space_id, chunk_id) select 1, 1, chunk_id from pgrag.chunk"
    )
    hybrid.put("x", "open the valve")
    assert hybrid.value("select count(*) from pgrag.embed_queue") == 0
    assert hybrid.value("select count(*) from pgrag.embedding_1") == 1
