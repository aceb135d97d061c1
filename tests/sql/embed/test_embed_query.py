"""Query vectors made in SQL: the same as the package makes in Python."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import psycopg
import pytest
from _pgrag import Database

from pgrag.embed import StaticEncoder

Connection = psycopg.Connection[tuple[Any, ...]]
QUERIES = [
    "How do I rotate an API key?",
    "error E-4021 after std::vector<int> foo_bar.py",
    "Wie setze ich das Passwort zurück?",
    "機密情報 key: 中文の取り扱い",
    "the the the",
    "key " * 3_000,
]


@pytest.fixture(scope="module")
def encoder() -> StaticEncoder:
    return StaticEncoder.shipped()


@pytest.fixture(scope="module")
def connection(hybrid_template: str, session_database: Callable[..., str]) -> Iterator[Connection]:
    """One database for the module: encoding writes nothing."""
    with psycopg.connect(session_database(template=hybrid_template), autocommit=True) as connection:
        yield connection


def embed(connection: Connection, text: str | None) -> np.ndarray | None:
    row = connection.execute("select pgrag.embed_query(%s, 'minilm-static-2')::text", (text,)).fetchone()
    assert row is not None
    return None if row[0] is None else np.array(json.loads(row[0]))


@pytest.mark.parametrize("query", QUERIES, ids=range(len(QUERIES)))
def test_sql_and_python_make_the_same_vector(
    connection: Connection, encoder: StaticEncoder, query: str
) -> None:
    # halfvec keeps 11 bits: a number below 1 is off by at most half of 2**-11; float32 rounds far below that.
    assert embed(connection, query) == pytest.approx(encoder.encode_queries([query])[0], abs=2**-12 + 2**-20)


def test_a_vector_has_length_one(connection: Connection) -> None:
    vector = embed(connection, "rotate the signing key")
    assert vector is not None
    # Each number is off by at most 2**-12 of itself, and so is the length.
    assert np.linalg.norm(vector) == pytest.approx(1, abs=2**-12)


@pytest.mark.parametrize("query", [None, "", " \n", "\u200b", "😀", "x" * 101])
def test_a_query_without_a_known_token_has_no_vector(connection: Connection, query: str | None) -> None:
    assert embed(connection, query) is None


def test_case_accents_and_spaces_make_no_difference(connection: Connection) -> None:
    assert np.array_equal(embed(connection, "Naïve  KEY\n"), embed(connection, "naive key"))


def test_a_reader_of_a_collection_may_embed_a_query_for_it(hybrid: Database) -> None:
    hybrid.put("keys.md", "Keys are rotated each month.", readers=["public"])
    query = "select pgrag.embed_query('rotate a key')::text"
    assert hybrid.rows_as("user:ana", query) == hybrid.execute(query) != [(None,)]


def test_a_stranger_to_every_collection_embeds_nothing(hybrid: Database) -> None:
    hybrid.put("keys.md", "Keys are rotated each month.", readers=["user:ana"])
    assert hybrid.rows_as("user:bob", "select pgrag.embed_query('rotate a key')::text") == [(None,)]


@pytest.mark.parametrize("caller", ["superuser", "reader"])
def test_where_collections_use_several_spaces_they_are_named_and_the_next_step_is(
    hybrid: Database, caller: str
) -> None:
    hybrid.put("a", "turn the valve")
    hybrid.execute("select pgrag.create_space('beside', 'beside', 2, kind => 'static')")
    hybrid.execute("select pgrag.create_collection('other')")
    hybrid.put("a", "turn the valve", collection="other")
    hybrid.execute("select pgrag.attach_space('other', 'beside')")
    hybrid.execute("select pgrag.activate_space('other', 'beside', force => true)")
    ask = hybrid.execute if caller == "superuser" else partial(hybrid.rows_as, "public")
    with pytest.raises(psycopg.Error) as caught:
        ask("select pgrag.embed_query('valve')")
    assert caught.value.sqlstate == "RG005"
    assert caught.value.diag.message_primary == 'the collections use the spaces "beside", "minilm-static-2"'
    assert caught.value.diag.message_hint is not None
    assert caught.value.diag.message_hint.endswith("space => 'beside'")
