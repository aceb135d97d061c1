"""Changing the model of a collection from Python: made, filled, activated; the space before answers until then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from _pgrag import Database
from numpy.typing import NDArray

from pgrag.embed import StaticEncoder
from pgrag.errors import Refused
from pgrag.spaces import embed_static, load_static_space, use_model

TEXTS = {"a": "open the valve", "b": "close the pump", "c": "read the gauge"}


class LetterEncoder:
    """Counts a few letters: enough of a model to tell three texts apart."""

    name = "letters"
    dimension = 4
    passport: dict[str, Any] = {"model": "letter-counts", "dimension": 4}  # noqa: RUF012 - a constant of the test

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.array([[1 + text.count(letter) for letter in "vpge"] for text in texts], np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    encode_queries = encode_documents

    def count_tokens(self, text: str) -> int:
        return len(text.split())


def filled(database: Database) -> Database:
    for uri, text in TEXTS.items():
        database.put(uri, text)
    return database


def test_a_model_answers_once_its_space_is_full(hybrid: Database) -> None:
    filled(hybrid)
    assert use_model(hybrid.admin, "docs", LetterEncoder()) == len(TEXTS)
    vector = LetterEncoder().encode_queries(["valve"])[0].tolist()
    rows = hybrid.rows_as(
        "public", "select uri from pgrag.search('', 1, embedding => %s::float8[]::vector::halfvec)", (vector,)
    )
    assert rows == [("a",)]
    assert (
        hybrid.value("select passport ->> 'model' from pgrag.space where name = 'letters'") == "letter-counts"
    )


def test_calling_again_embeds_only_what_is_new(hybrid: Database) -> None:
    filled(hybrid)
    use_model(hybrid.admin, "docs", LetterEncoder())
    assert use_model(hybrid.admin, "docs", LetterEncoder()) == 0
    hybrid.put("d", "turn the wheel")
    assert use_model(hybrid.admin, "docs", LetterEncoder()) == 1


def test_going_back_needs_one_call(hybrid: Database) -> None:
    filled(hybrid)
    before = hybrid.rows_as("public", "select uri, score from pgrag.search('valve')")
    use_model(hybrid.admin, "docs", LetterEncoder())
    hybrid.execute("select pgrag.activate_space('docs', 'minilm-static')")
    assert hybrid.rows_as("public", "select uri, score from pgrag.search('valve')") == before


@pytest.mark.parametrize(("model", "dimension"), [("letter-counts", 5), ("other", 4)])
def test_a_space_of_another_model_refuses_this_one(hybrid: Database, model: str, dimension: int) -> None:
    filled(hybrid)
    hybrid.execute("select pgrag.create_space('letters', %s, %s)", (model, dimension))
    message = f"holds vectors of {model} of dimension {dimension}, got those of letter-counts of dimension 4"
    with pytest.raises(Refused, match=message):
        use_model(hybrid.admin, "docs", LetterEncoder())


def test_an_unknown_collection_is_refused_before_anything_is_made(hybrid: Database) -> None:
    with pytest.raises(Refused, match='collection "nowhere" does not exist'):
        use_model(hybrid.admin, "nowhere", LetterEncoder())
    assert hybrid.value("select pgrag.has_space('letters')") is False


def test_the_static_space_is_loaded_once(hybrid: Database) -> None:
    assert load_static_space(hybrid.dsn, StaticEncoder.shipped()) is False


def test_embedding_here_fills_what_sql_would_have_filled(hybrid: Database) -> None:
    filled(hybrid)
    table = f"embedding_{hybrid.value('select space_id from pgrag.space')}"
    by_sql = hybrid.execute(f"select chunk_id, embedding::text from pgrag.{table} order by 1")
    hybrid.execute(f"delete from pgrag.{table}")
    hybrid.execute(
        "insert into pgrag.embed_queue (collection_id, space_id, chunk_id) select collection_id, 1, chunk_id from pgrag.chunk"
    )
    assert embed_static(hybrid.admin, "docs", StaticEncoder.shipped()) == len(TEXTS)
    here = hybrid.execute(f"select chunk_id, embedding::text from pgrag.{table} order by 1")
    assert [row[0] for row in here] == [row[0] for row in by_sql]
    for (_, one), (_, other) in zip(by_sql, here, strict=True):
        # Half precision has 11 bits: SQL normalises in it, Python before it.
        assert np.fromstring(one[1:-1], sep=",") == pytest.approx(
            np.fromstring(other[1:-1], sep=","), abs=2**-11
        )


def test_an_ingest_that_is_killed_while_it_embeds_leaves_nothing_to_wait_for(hybrid: Database) -> None:
    class Killed(StaticEncoder):
        def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
            raise KeyboardInterrupt

    filled(hybrid)
    hybrid.execute(
        "insert into pgrag.embed_queue (collection_id, space_id, chunk_id) select collection_id, 1, chunk_id from pgrag.chunk"
    )
    with pytest.raises(KeyboardInterrupt):
        embed_static(hybrid.admin, "docs", Killed.shipped())
    assert embed_static(hybrid.admin, "docs", StaticEncoder.shipped()) == len(TEXTS)
