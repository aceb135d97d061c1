"""The token table of a space of a model: set, replaced and taken away in one step, and never under documents by a table."""

from __future__ import annotations

import psycopg
import pytest
from _pgrag import Database

LOAD = "select pgrag.load_encoder_tokens(%s, array['valve', 'pump'], array[1, 2], %s::text::halfvec[])"
ALONG, ACROSS = '{"[1,0]","[0,1]"}', '{"[0,1]","[1,0]"}'
QUERY = "select pgrag.embed_query('the valve', 'two')::text"
SEARCH = "select uri, dense_rank from pgrag.search('valve', 1, weights => '{\"lexical\": 0, \"dense\": 1}')"


@pytest.fixture
def two(db: Database) -> Database:
    """A space of a model, with a document about valves in it, and answering for ``docs``."""
    db.execute("select pgrag.create_space('two', 'model', 2, index_kind => 'none')")
    db.execute("select pgrag.attach_space('docs', 'two')")
    for uri, text, vector in (("v", "turn the valve", "[1,0]"), ("p", "stop the pump", "[0,1]")):
        db.put(uri, text)
        ((chunk, digest, _),) = db.execute("select * from pgrag.claim_chunks('two')")
        db.execute("select pgrag.store_vectors('two', %s, %s, %s)", ([chunk], [digest], [vector]))
    db.execute("select pgrag.activate_space('docs', 'two')")
    return db


def give(db: Database, vectors: str = ALONG, name: str = "toy") -> None:
    with db.admin.transaction():
        db.execute("select pgrag.set_query_encoder('two')")
        db.execute(LOAD, ("two", vectors))
        db.execute("select pgrag.set_query_encoder('two', %s, '{\"cosine\": 0.9}')", (name,))


def refusal(db: Database, statement: str, parameters: tuple[object, ...] = ()) -> str | None:
    with pytest.raises(psycopg.Error) as caught:
        db.execute(statement, parameters)
    return caught.value.sqlstate


def test_a_space_of_a_model_answers_by_words_alone_without_a_table(two: Database) -> None:
    assert two.rows_as("public", SEARCH) == []


def test_with_a_table_it_embeds_the_query(two: Database) -> None:
    give(two)
    assert two.rows_as("public", SEARCH) == [("v", 1)]


def test_the_only_space_with_a_table_is_the_one_a_query_is_embedded_in(two: Database) -> None:
    two.execute("select pgrag.create_space('other', 'model', 2, index_kind => 'none')")
    two.execute("select pgrag.create_collection('more', space => 'other')")
    give(two)
    assert two.value("select pgrag.embed_query('valve')::text") == "[1,0]"


def test_the_passport_keeps_the_name_and_the_figures(two: Database) -> None:
    give(two)
    assert two.value("select pgrag.space_passport('two') -> 'query_encoder'") == {
        "name": "toy",
        "cosine": 0.9,
    }


def test_the_table_that_answers_is_named_to_readers(two: Database) -> None:
    give(two)
    assert two.rows_as("public", "select pgrag._query_encoder('two')") == [("toy",)]


def test_a_table_is_replaced_by_another(two: Database) -> None:
    give(two)
    give(two, ACROSS, "other")
    assert two.value(QUERY) == "[0,1]"


def test_others_search_by_the_old_table_until_the_new_one_is_committed(two: Database) -> None:
    give(two)
    with two.admin.transaction():
        two.execute("select pgrag.set_query_encoder('two')")
        two.execute(LOAD, ("two", ACROSS))
        two.execute("select pgrag.set_query_encoder('two', 'other')")
        assert two.rows_as("public", SEARCH) == [("v", 1)]
    assert two.rows_as("public", SEARCH) == [("p", 1)]


def test_a_table_that_is_taken_away_leaves_nothing(two: Database) -> None:
    give(two)
    two.execute("select pgrag.set_query_encoder('two')")
    assert two.execute(
        "select query_encoder, passport, (select count(*) from pgrag.encoder_token) from pgrag.space where name = 'two'"
    ) == [(None, {}, 0)]


def test_tokens_are_not_loaded_among_those_of_a_table_in_use(two: Database) -> None:
    give(two)
    assert refusal(two, LOAD, ("two", ACROSS)) == "RG005"


def test_a_table_without_tokens_is_refused(two: Database) -> None:
    assert refusal(two, "select pgrag.set_query_encoder('two', 'toy')") == "RG005"


@pytest.mark.parametrize("name", ["", "Toy", "a b", "x" * 65])
def test_a_name_that_is_none_is_refused(two: Database, name: str) -> None:
    two.execute(LOAD, ("two", ALONG))
    assert refusal(two, "select pgrag.set_query_encoder('two', %s)", (name,)) == "RG001"


def test_tokens_of_another_dimension_are_refused(two: Database) -> None:
    assert refusal(two, LOAD, ("two", '{"[1,0,0]","[0,1,0]"}')) == "RG031"


@pytest.mark.parametrize(
    "statement",
    [
        "select pgrag.set_query_encoder(%s)",
        "select pgrag.sample_passages(%s, 5)",
        "select pgrag.load_encoder_tokens(%s, '{}', '{}', '{}')",
    ],
)
@pytest.mark.parametrize("name", ["nowhere", None])
def test_a_space_that_isn_t_there_is_refused(db: Database, statement: str, name: str | None) -> None:
    assert refusal(db, statement, (name,)) == "RG005"


@pytest.mark.parametrize(
    "statement", ["select pgrag.set_query_encoder('by-table')", "select pgrag.sample_passages('by-table', 5)"]
)
def test_a_space_whose_documents_are_by_its_table_keeps_it(db: Database, statement: str) -> None:
    db.execute("select pgrag.create_space('by-table', 'toy', 2, kind => 'static')")
    assert refusal(db, statement) == "RG005"


def test_a_static_space_takes_no_tokens_once_it_is_in_use(db: Database) -> None:
    db.execute("select pgrag.create_space('by-table', 'toy', 2, kind => 'static')")
    db.execute("select pgrag.open_space('by-table')")
    assert refusal(db, LOAD, ("by-table", ALONG)) == "RG005"


@pytest.mark.parametrize("role", ["pgrag_test_reader", "pgrag_test_writer", "pgrag_test_app"])
@pytest.mark.parametrize("call", ["set_query_encoder('two')", "sample_passages('two', 5)"])
def test_only_the_owner_changes_or_samples(two: Database, role: str, call: str) -> None:
    with two.connect(role) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute(f"select pgrag.{call}")


# The sample


def sampled(db: Database, arguments: str = "") -> list[str]:
    return [row[0] for row in db.execute(f"select content from pgrag.sample_passages('two', 100{arguments})")]


def test_what_public_may_not_read_is_not_sampled(two: Database) -> None:
    two.put("secret", "open the vault", ["user:boss"])
    two.put("barred", "close the vault", ["public", "!public"])
    assert sampled(two) == ["turn the valve", "stop the pump"]


def test_hidden_passages_are_sampled_when_asked_for(two: Database) -> None:
    two.put("secret", "open the vault", ["user:boss"])
    assert "open the vault" in sampled(two, ", hidden => true")


def test_only_the_named_collections_are_sampled(two: Database) -> None:
    two.execute("select pgrag.create_collection('more', space => 'two')")
    assert sampled(two, ", collections => array['more']") == []


def test_a_collection_that_the_space_does_not_hold_is_refused(two: Database) -> None:
    two.execute("select pgrag.create_collection('elsewhere')")
    assert refusal(two, "select pgrag.sample_passages('two', 5, array['elsewhere'])") == "RG005"


def test_a_sample_is_no_larger_than_asked_and_the_same_each_time(two: Database) -> None:
    for number in range(20):
        two.put(f"d{number}", f"gauge {number}")
    draw = "select chunk_id from pgrag.sample_passages('two', 7, seed => 3)"
    first = two.execute(draw)
    assert (len(first), two.execute(draw)) == (7, first)


def test_another_seed_draws_others(two: Database) -> None:
    for number in range(40):
        two.put(f"d{number}", f"gauge {number}")
    draws = {
        tuple(two.execute("select chunk_id from pgrag.sample_passages('two', 5, seed => %s)", (s,)))
        for s in range(4)
    }
    assert len(draws) > 1
