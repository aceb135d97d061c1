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
        ("'s', 'm', 3, kind => 'magic'", 'got "magic", "hnsw" and "halfvec"'),
        ("'s', 'm', 3, index_kind => 'flat'", 'got "external", "flat" and "halfvec"'),
        ("'s', 'm', 3, \"precision\" => 'int8'", 'got "external", "hnsw" and "int8"'),
        ("'s', 'm', 3, rotate => true", 'rotate is for the precision bit, got "halfvec"'),
        ("'s', 'm', 3, model_dimension => 2", "model_dimension must be between 3 and 16000, got 2"),
        (
            "'s', 'm', 3, model_dimension => 8",
            "m is not trained for a prefix of 3 numbers: its passport names none",
        ),
        (
            "'s', 'm', 3, model_dimension => 8, passport => '{\"matryoshka_dims\": [2, 8]}'",
            "its passport names .2, 8.",
        ),
        (
            "'s', 'm', 3000, \"precision\" => 'vector'",
            "at most 2,000 numbers at the precision vector, got 3000",
        ),
        ("'s', 'm', 3, passport => '[]'", r"passport must be a JSON object, got \[\]"),
        ("'s', 'm', 3, passport => null", "passport must be a JSON object, got NULL"),
        ("'s', 'm', 3, index_options => '3'", "index_options must be a JSON object, got 3"),
        (
            "'s', 'm', 3, index_kind => 'ivfflat', with_index => true",
            "kind ivfflat at the precision halfvec is made of the vectors that are there",
        ),
        (
            "'s', 'm', 3, \"precision\" => 'bit', with_index => true",
            "kind hnsw at the precision bit is made of the vectors that are there",
        ),
        ("'s', 'm', 3, index_options => '{\"lists\": 4}'", 'an index of kind hnsw has no option "lists"'),
        ("'s', 'm', 3, index_options => '{\"m\": 16.5}'", "m must be a whole number, got 16.5"),
        (
            "'s', 'm', 3, index_options => '{\"m\": 32, \"ef_construction\": 40}'",
            "ef_construction must be at least twice m, got 40 and 32",
        ),
    ],
)
def test_what_can_t_be_a_space_is_refused(db: Database, arguments: str, message: str) -> None:
    with pytest.raises(psycopg.Error, match=message) as caught:
        db.execute(f"select pgrag.create_space({arguments})")
    assert caught.value.sqlstate == "RG001"


@pytest.mark.parametrize(
    ("index_kind", "precision", "state"),
    [
        ("hnsw", "halfvec", "valid"),
        ("hnsw", "vector", "valid"),
        ("hnsw", "bit", "missing"),
        ("ivfflat", "halfvec", "missing"),
        ("none", "bit", "none"),
    ],
)
def test_an_index_that_vectors_are_needed_for_is_left_to_the_build(
    db: Database, index_kind: str, precision: str, state: str
) -> None:
    db.execute(
        "select pgrag.create_space('s', 'm', 3, index_kind => %s, \"precision\" => %s)",
        (index_kind, precision),
    )
    assert db.value("select index_state from pgrag.spaces()") == state
