"""Invisible means absent, on the whole handbook: each person, every question, against a twin without the hidden."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import handbook
import psycopg
import pytest
from _pgrag import Database

from pgrag.access import add_groups, check_readers, load_readers_file
from pgrag.embed import StaticEncoder
from pgrag.ingest import ingest_paths
from pgrag.spaces import embed_static

HANDBOOK = Path(handbook.__file__).parent

SEARCH = """
select s.uri, c.ordinal, s.title, s.heading_path, s.content, s.score, s.lexical_rank, s.lexical_score, s.dense_rank,
    s.dense_distance, s.dense_plan
from pgrag.search(%s, 20) as s inner join pgrag.chunk as c using (chunk_id)
"""
PACK = "select place, passage_id, uri, page, char_start, token_count, text, left_out from pgrag.pack_context(%s, 800)"
EXPLAIN = """
select e.stage, e.rank, e.value, e.detail from pgrag.explain_search(%s, array(select chunk_id from pgrag.search(%s, 3))) as e
"""


def fill(database: Database, folder: Path) -> None:
    """Ingest documents with the handbook's readers, vectors included."""
    rules = load_readers_file(HANDBOOK / "readers.toml")
    database.execute("select pgrag.create_collection('handbook')")
    check_readers(database.admin, rules.principals, create=True)
    add_groups(database.admin, rules.groups)
    report = ingest_paths(
        database.admin, [folder], collection="handbook", readers=(), readers_for=rules.readers_of
    )
    assert report.failures == ()
    embed_static(database.admin, "handbook", StaticEncoder.shipped())


@pytest.fixture(scope="module")
def whole(hybrid_template: str, session_database: Callable[..., str]) -> Database:
    database = Database(session_database(template=hybrid_template))
    fill(database, HANDBOOK / "documents")
    return database


@pytest.fixture(scope="module")
def everything(whole: Database) -> dict[str, list[tuple[Any, ...]]]:
    """What each person finds in the whole handbook."""
    found = {person: answers(whole, person) for person in handbook.people()}
    whole.close()
    return found


def answers(database: Database, person: str) -> list[tuple[Any, ...]]:
    """Everything that a person can get out of every question of everybody."""
    rows: list[tuple[Any, ...]] = []
    with database.acting(person) as connection:
        rows += connection.execute("select * from pgrag.collections()").fetchall()
        for question in handbook.questions():
            rows.append((question.id, *connection.execute(SEARCH, (question.query,)).fetchall()))
            if person in question.askers:
                rows += connection.execute(PACK, (question.query,)).fetchall()
                rows += connection.execute(EXPLAIN, (question.query, question.query)).fetchall()
    return rows


@pytest.mark.parametrize("person", handbook.people())
def test_a_person_finds_what_a_database_without_the_hidden_gives(
    everything: dict[str, list[tuple[Any, ...]]],
    hybrid_template: str,
    new_database: Callable[..., str],
    tmp_path: Path,
    person: str,
) -> None:
    for document in handbook.documents():
        uri = document.relative_to(HANDBOOK / "documents").as_posix()
        if handbook.may_read(person, uri):
            (tmp_path / uri).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(document, tmp_path / uri)
    twin = Database(new_database(template=hybrid_template))
    fill(twin, tmp_path)
    assert answers(twin, person) == everything[person]
    twin.close()


def test_nobody_finds_a_document_that_the_rules_deny(everything: dict[str, list[tuple[Any, ...]]]) -> None:
    for person, rows in everything.items():
        uris = {hit[0] for row in rows if len(row) > 1 and isinstance(row[-1], tuple) for hit in row[1:]}
        assert uris
        assert [uri for uri in uris if not handbook.may_read(person, uri)] == []


def test_who_does_not_say_for_whom_finds_nothing(
    hybrid_template: str, new_database: Callable[..., str]
) -> None:
    database = Database(new_database(template=hybrid_template))
    fill(database, HANDBOOK / "documents" / "company")
    application = database.connect("pgrag_test_app")
    assert application.execute("select * from pgrag.search('company')").fetchall() == []
    assert application.execute("select * from pgrag.collections()").fetchall() == []
    with application.transaction():
        application.execute("set local pgrag.principals = 'user:lena'")
        assert application.execute("select * from pgrag.search('company')").fetchall() == []
    database.close()


def test_a_person_without_any_right_gets_no_error_that_names_the_collection(
    hybrid_template: str, new_database: Callable[..., str]
) -> None:
    database = Database(new_database(template=hybrid_template))
    fill(database, HANDBOOK / "documents" / "hr")
    query = "select * from pgrag.search('salary', collections => array[%s], embedding => '[1,2]'::halfvec, space => %s)"
    for collection in ("handbook", "nowhere"):
        for space in ("minilm-static-2", "nowhere"):
            assert database.rows_as("user:nobody", query, (collection, space)) == []
    with pytest.raises(psycopg.Error, match="dimension 384, got dimension 2"):
        database.rows_as("user:lena", query, ("handbook", "minilm-static-2"))
    database.close()
