"""Searching several languages at once: each passage by its own, and none by a language that the caller can't see."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from _pgrag import Database

FOUND = (
    "select d.uri, s.rank, s.score from pgrag.search_lexical(%s, 100) as s"
    " join pgrag.document as d using (document_id) order by s.rank"
)
VISIBLE = "select name, analyzers, chunks, lexemes from pgrag._visible_collections(null)"


def found(db: Database, query: str, who: str = "public") -> list[str]:
    return [str(uri) for uri, _, _ in db.rows_as(who, FOUND, (query,))]


@pytest.fixture
def mixed(db: Database) -> Database:
    """A collection in three languages whose default is English."""
    db.put("english", "The houses of the town were running out of water")
    db.put("german", "Die Häuser der Stadt haben kein Wasser", language="de")
    db.put("french", "Les chevaux nationaux couraient", language="fr-CA")
    db.put("japanese", "東京都の水道", language="ja")
    return db


@pytest.mark.parametrize(
    ("query", "uri"),
    [("house", "english"), ("Häusern", "german"), ("cheval national", "french"), ("水道", "japanese")],
)
def test_a_passage_is_found_by_another_form_in_its_language(mixed: Database, query: str, uri: str) -> None:
    assert found(mixed, query) == [uri]


def test_languages_are_ranked_together(mixed: Database) -> None:
    assert found(mixed, "town Städte Wassers")[0] == "german"
    assert sorted(found(mixed, "town Stadt")) == ["english", "german"]


def test_a_stop_word_of_one_language_is_a_word_of_another(db: Database) -> None:
    db.put("english", "They die of thirst", language="en")
    db.put("german", "Die Wasser", language="de")
    assert found(db, "die") == ["english"]


def test_a_word_that_several_languages_make_counts_once(db: Database) -> None:
    db.put("x", "E-4021")
    db.put("y", "Wasser", ["user:ana"], language="de")
    db.put("z", "gauge", ["user:bo"])
    # Two passages each: the other one of the same length is in the same or in another language.
    ((_, _, with_german),) = db.rows_as("user:ana", FOUND, ("E-4021",))
    ((_, _, with_english),) = db.rows_as("user:bo", FOUND, ("E-4021",))
    assert with_german == with_english


def test_a_phrase_is_read_as_any_language_reads_it(mixed: Database) -> None:
    assert found(mixed, '"Haus der Stadt"') == ["german"]
    assert found(mixed, '"house of the towns"') == ["english"]


def test_an_exclusion_is_read_as_any_language_reads_it(mixed: Database) -> None:
    assert found(mixed, "Wasser water -Haus") == ["english"]
    assert found(mixed, "Wasser water -house") == ["german"]


def test_a_phrase_without_a_word_in_some_language_asks_for_none(db: Database) -> None:
    db.put("english", "water of the town")
    db.put("german", "of the Wasser", language="de")
    assert sorted(found(db, '"of the" water Wasser')) == ["english", "german"]


def test_a_prefix_is_expanded_in_every_language(mixed: Database) -> None:
    assert sorted(found(mixed, "hous* häus*")) == ["english", "german"]


def test_an_explanation_has_the_words_of_each_language(mixed: Database) -> None:
    rows = mixed.rows_as(
        "public",
        "select e.detail from pgrag.explain_search('Häusern town', array(select chunk_id from pgrag.chunk)) as e"
        " where e.stage = 'word'",
    )
    assert sorted(detail.split('"')[1] for (detail,) in rows) == ["haus", "town"]


def parsed(db: Database, analyzers: list[str], query: str) -> dict[str, Any]:
    row = db.execute(
        "select terms, counts, prefixes, required::text, excluded::text, problems from pgrag._parse_query_by(%s, %s)",
        (analyzers, query),
    )[0]
    return dict(zip(("terms", "counts", "prefixes", "required", "excluded", "problems"), row, strict=True))


@pytest.mark.parametrize("query", ["the running houses", '"the houses" -runs ru* E-4021', "the", ""])
def test_one_analyzer_reads_a_query_as_before(db: Database, query: str) -> None:
    before = db.execute(
        "select terms, counts, prefixes, required::text, excluded::text, problems from pgrag._parse_query('english', %s)",
        (query,),
    )[0]
    assert tuple(parsed(db, ["english"], query).values()) == before


def test_the_terms_are_the_union_and_the_counts_the_highest(db: Database) -> None:
    # English stems all three to "hous"; German leaves "house" and "houses" to "hous" and "housing" as it is.
    english = dict(
        db.execute(
            "select unnest(terms), unnest(counts) from pgrag._parse_query('english', 'house houses housing')"
        )
    )
    german = dict(
        db.execute(
            "select unnest(terms), unnest(counts) from pgrag._parse_query('german', 'house houses housing')"
        )
    )
    assert english != german
    both = parsed(db, ["english", "german"], "house houses housing")
    assert dict(zip(both["terms"], both["counts"], strict=True)) == {
        term: max(english.get(term, 0), german.get(term, 0)) for term in english | german
    }
    assert len(both["terms"]) == len(set(both["terms"]))


def test_prefixes_are_distinct_and_in_order(db: Database) -> None:
    both = parsed(db, ["english", "german"], "zu* haus* rotation*")
    assert both["prefixes"] == sorted(set(both["prefixes"]))


def test_what_every_language_ignores_is_said_once(db: Database) -> None:
    assert parsed(db, ["english", "german"], '"..."')["problems"] == [
        '"..." has no word to look for and was ignored'
    ]


def test_only_languages_that_the_caller_sees_count(mixed: Database) -> None:
    mixed.put("italian", "Le case della città", ["user:ana"], language="it")
    ours = ["english", "french", "german", "simple"]
    assert mixed.rows_as("public", VISIBLE)[0][1] == ours
    assert mixed.rows_as("user:ana", VISIBLE)[0][1] == sorted([*ours, "italian"])


def test_a_language_that_was_deleted_counts_no_more(mixed: Database) -> None:
    for uri in ("french", "japanese", "german"):
        mixed.execute("select pgrag.delete_document('docs', %s)", (uri,))
    assert mixed.rows_as("public", VISIBLE)[0][1] == ["english"]
    mixed.execute("select pgrag.compact()")
    assert mixed.rows_as("public", VISIBLE)[0][1] == ["english"]


@pytest.fixture
def twin(installed_template: str, new_database: Callable[..., str]) -> Iterator[Database]:
    """A database that never had the French documents."""
    database = Database(new_database(template=installed_template))
    database.execute("select pgrag.create_collection('docs')")
    yield database
    database.close()


def test_hidden_documents_in_another_language_change_nothing(db: Database, twin: Database) -> None:
    for database in (db, twin):
        for n in range(20):
            database.put(
                f"en{n}", f"The houses national horses running {n} general animals les nous", ["user:ana"]
            )
        for n in range(20):
            database.put(
                f"de{n}", f"Die Häuser nationale Pferde {n} generell Tiere", ["user:ana"], language="de"
            )
            if database is db:
                database.put(
                    f"fr{n}", f"Les maisons nationales chevaux {n} généraux", ["user:bo"], language="fr"
                )
                database.put(f"aa{n}", f"Las casas nacionales {n}", ["user:bo"], language="ar")
    queries = (
        "national nationale nationales",
        "les chevaux généraux",
        '"the houses" les',
        "national -générale",
        "nation* général*",
        "running Häusern 7 E-4021",
        "nous",
    )
    for query in queries:
        assert db.rows_as("user:ana", FOUND, (query,)) == twin.rows_as("user:ana", FOUND, (query,)), query
    assert db.rows_as("user:ana", VISIBLE) == twin.rows_as("user:ana", VISIBLE)
    assert db.rows_as("user:bo", VISIBLE)[0][1] == ["arabic", "french"]
