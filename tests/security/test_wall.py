"""The wall: what a stranger's row shows of itself to whoever may not read it, which is nothing.

Everything here is planted in a collection ``secret`` that only ``user:boss`` reads, beside an open collection ``docs``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from _pgrag import Database

CONTENT = ("document", "document_text", "chunk", "posting", "lexeme", "corpus_stat")
WITH_COLLECTION = (
    "collection",
    "collection_space",
    "space",
    "space_axis",
    "encoder_token",
    "embedding_1",
    "embedding_2",
)
PRIVATE = (
    "access_change",
    "acl",
    "acl_entry",
    "alembic_version",
    "document_history",
    "embed_queue",
    "failure",
    "judged_query",
    "judgement",
    "membership",
    "principal",
    "run",
    "run_evidence",
    "run_hit",
    "run_query",
    "search_log",
    "space_figures",
    "staging",
)


@pytest.fixture(scope="module")
def walled(installed_template: str, session_database: Callable[..., str]) -> Iterator[Database]:
    """One database for all tests here, none of which changes it: an open document, and a hidden collection with a
    static space of its own and one of codes; ``mine`` is a schema where the application may make functions."""
    db = Database(session_database(template=installed_template))
    db.execute("select pgrag.create_collection('docs')")
    db.execute("select pgrag.create_space('private', 'toy', 3, kind => 'static')")
    db.execute(
        "select pgrag.load_encoder_tokens('private', array['zanzibar', 'merger'], array[1, 2],"
        " array['[1,0,0]', '[0,1,0]']::halfvec[])"
    )
    db.execute("select pgrag.open_space('private')")
    db.execute("select pgrag.create_collection('secret', space => 'private')")
    db.put("open", "The merger of two rivers.")
    with db.connect("pgrag_test_writer") as writer:
        writer.execute(
            "select pgrag.put_document('secret', 'plan', 'The zanzibar merger is at 0 dollars.', array['user:boss'],"
            " title => 'Zanzibar', metadata => '{\"price\": 0}')"
        )
    db.execute(
        "select pgrag.create_space('codes', 'model', 3, \"precision\" => 'bit', rotate => true,"
        ' passport => \'{"sha256": "aaaa"}\')'
    )
    db.execute("select pgrag.attach_space('secret', 'codes')")
    db.execute(
        "select pgrag.store_vectors('codes', array_agg(c.chunk_id), array_agg(c.hash), array_agg('[1,0,0]'::text))"
        " from pgrag.claim_chunks('codes') as c"
    )
    db.execute("select pgrag.note_figures('codes', '{\"ndcg\": 0.5}')")
    db.execute("analyze")
    db.execute("create schema mine")
    db.execute("grant create, usage on schema mine to pgrag_test_app")
    yield db
    db.close()


def denied(database: Database, login: str, statement: str) -> str | None:
    """SQLSTATE of the refusal, or None where the statement ran; whatever it did is rolled back."""
    with database.connect(login) as connection:
        try:
            with connection.transaction(force_rollback=True):
                connection.execute(statement)
        except psycopg.Error as error:
            return error.sqlstate
    return None


def answer(database: Database, statement: str) -> object:
    """Rows, or the whole error, that a stranger gets."""
    with database.acting("user:stranger") as connection:
        try:
            with connection.transaction(force_rollback=True):
                return connection.execute(statement).fetchall()
        except psycopg.Error as error:
            return (
                error.sqlstate,
                error.diag.message_primary,
                error.diag.message_hint,
                error.diag.message_detail,
            )


# Rows


@pytest.mark.parametrize("table", CONTENT + WITH_COLLECTION)
def test_what_is_planted_is_there_for_the_one_who_may_read_it(walled: Database, table: str) -> None:
    assert walled.rows_as("user:boss", f"select from pgrag.{table}")


@pytest.mark.parametrize("table", CONTENT + WITH_COLLECTION)
@pytest.mark.parametrize(
    "query",
    [
        "select from pgrag.{} where {}",
        "select from (select count(*) as n from pgrag.{} where {}) as c where n > 0",
        "select from (select exists (select from pgrag.{} where {}) as e) as c where e",
        "select from pgrag.{} as a inner join pgrag.document as d on true where {}",
        "select from pgrag.document as d left join pgrag.{} as a on true where a is not null and {}",
        "select from (select from pgrag.{} where {} order by random() limit 1 offset 0) as o",
        "select from pgrag.{} tablesample system (100) where {}",
    ],
)
def test_a_stranger_s_row_is_invisible(walled: Database, table: str, query: str) -> None:
    alias = "a." if " as a " in query else ""
    hidden = {
        "lexeme": f"{alias}lexeme like 'zanzi%'",
        "collection": f"{alias}name = 'secret'",
        "collection_space": "true",
        "space": "true",
        "space_axis": "true",
        "encoder_token": "true",
        "embedding_1": "true",
        "embedding_2": "true",
    }.get(table, f"{alias}collection_id = 2")
    assert walled.rows_as("user:stranger", query.format(table, hidden)) == []


@pytest.mark.parametrize(
    "call",
    [
        "has_space('{}')",
        "check_space('{}', 'model', 3, 'aaaa')",
        "embed_query('zanzibar', '{}')",
        "_query_encoder('{}')",
        "model_space('model', 'aaaa')",
        "model_space('model', 'aaaa', 'mine')",
        "search_dense('[1,0,0]', space => '{}')",
        "search_dense('[1,0,0]', space => '{}', exact => true)",
        "search('merger', space => '{}')",
        "search('merger', embedding => '[1,0,0]', space => '{}')",
        "spaces()",
        "space_passport('{}')",
    ],
)
@pytest.mark.parametrize("space", ["private", "codes"])
def test_a_stranger_s_space_is_as_if_it_were_not_there(walled: Database, call: str, space: str) -> None:
    hidden = answer(walled, f"select * from pgrag.{call.format(space)}")
    absent = answer(walled, f"select * from pgrag.{call.format('absent')}")
    assert repr(hidden).replace(space, "absent") == repr(absent)


def test_the_space_of_a_model_is_named_to_who_may_see_it(walled: Database) -> None:
    with walled.acting("user:boss") as connection:
        call = "select pgrag.model_space(%s, null, 'usual')"
        assert connection.execute(call, ("toy",)).fetchone() == ("private",)
    assert walled.rows_as("user:stranger", "select pgrag.model_space('toy', null, 'usual')") == [("usual",)]


@pytest.mark.parametrize("table", PRIVATE)
@pytest.mark.parametrize("login", ["pgrag_test_app", "pgrag_test_reader"])
def test_readers_may_not_select_what_is_no_content(walled: Database, table: str, login: str) -> None:
    assert denied(walled, login, f"select from pgrag.{table}") == "42501"


@pytest.mark.parametrize("table", CONTENT + WITH_COLLECTION + PRIVATE)
@pytest.mark.parametrize("login", ["pgrag_test_app", "pgrag_test_reader"])
@pytest.mark.parametrize("verb", ["insert into pgrag.{} default values", "delete from pgrag.{}", "truncate pgrag.{}",
                                  "lock table pgrag.{} in exclusive mode"])  # fmt: skip
def test_readers_write_nothing(walled: Database, table: str, login: str, verb: str) -> None:
    assert denied(walled, login, verb.format(table)) == "42501"


@pytest.mark.parametrize("table", CONTENT)
@pytest.mark.parametrize("login", ["pgrag_test_app", "pgrag_test_reader"])
def test_readers_move_nothing_to_another_acl(walled: Database, table: str, login: str) -> None:
    assert denied(walled, login, f"update pgrag.{table} set acl_id = 1") == "42501"


@pytest.mark.parametrize("verb", ["select from", "delete from", "truncate"])
@pytest.mark.parametrize("table", ["membership", "access_change"])
def test_writers_do_not_touch_memberships(walled: Database, table: str, verb: str) -> None:
    assert denied(walled, "pgrag_test_writer", f"{verb} pgrag.{table}") == "42501"


@pytest.mark.parametrize(
    "statement",
    [
        "insert into pgrag.membership values ('group:a', 'user:b')",
        "insert into pgrag.acl_entry values (1, 1, 'user:stranger', true)",
        "update pgrag.acl_entry set allow = true",
        "delete from pgrag.principal",
        "update pgrag.principal set name = 'user:stranger' where name = 'user:boss'",
        "delete from pgrag.posting",
        "select pgrag.add_member('group:a', 'user:b')",
        "select pgrag.remove_member('group:a', 'user:b')",
        "select from pgrag.staging",
        "delete from pgrag.staging",
        "update pgrag.staging set content = ''",
        "select pgrag._compute_acl_bits(current_user)",
        "alter table pgrag.chunk no force row level security",
        "create policy mine on pgrag.chunk using (true)",
        "set role pgrag_owner",
    ],
)
@pytest.mark.parametrize("login", ["pgrag_test_writer", "pgrag_test_app", "pgrag_test_reader"])
def test_nobody_but_the_owner_changes_who_may_read(walled: Database, login: str, statement: str) -> None:
    assert denied(walled, login, statement) == "42501"


@pytest.mark.parametrize(
    "statement", ["select pgrag.search('merger')", "select from pgrag.chunk", "table pgrag.installation"]
)
def test_a_role_of_no_kind_does_not_even_use_the_schema(walled: Database, statement: str) -> None:
    assert denied(walled, "pgrag_test_nobody", statement) == "42501"


@pytest.mark.parametrize("table", CONTENT)
def test_copy_takes_out_only_what_is_visible(walled: Database, table: str) -> None:
    with walled.acting("user:stranger") as connection:
        with connection.cursor().copy(f"copy pgrag.{table} (collection_id) to stdout") as copy:
            copied = {bytes(row) for row in copy}
        assert copied == {b"1\n"}


@pytest.mark.parametrize("table", PRIVATE)
def test_copy_takes_out_nothing_else(walled: Database, table: str) -> None:
    assert denied(walled, "pgrag_test_app", f"copy pgrag.{table} to stdout") == "42501"


@pytest.mark.parametrize("statement", ["copy pgrag.chunk from stdin", "copy pgrag.chunk to program 'cat'",
                                       "copy pgrag.staging from program 'cat'"])  # fmt: skip
@pytest.mark.parametrize("login", ["pgrag_test_app", "pgrag_test_writer"])
def test_copy_is_no_way_in(walled: Database, login: str, statement: str) -> None:
    assert denied(walled, login, statement) in {"42501", "0A000"}


def test_statistics_of_the_planner_are_hidden(walled: Database) -> None:
    assert walled.rows_as("user:stranger", "select from pg_stats where schemaname = 'pgrag'") == []


def test_the_sequences_that_number_documents_are_hidden(walled: Database) -> None:
    hidden = walled.rows_as(
        "user:stranger", "select from pg_sequences where schemaname = 'pgrag' and last_value is not null"
    )
    assert hidden == []


# Leaks by what a query does with rows before the policy has seen them


@contextmanager
def telling(database: Database) -> Iterator[tuple[psycopg.Connection[Any], list[str]]]:
    """A stranger with functions of its own that tell what they are shown, and what they told; rolled back."""
    with database.acting("user:stranger") as connection, connection.transaction(force_rollback=True):
        told: list[str] = []
        connection.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))
        connection.execute(
            "create function mine.tell(told text) returns boolean language plpgsql immutable parallel safe"
            " cost 0.0000001 as $$ begin raise notice '%', told; return true; end $$"
        )
        connection.execute(
            "create function mine.tell(a text, b text) returns boolean language plpgsql immutable cost 0.0000001"
            " as $$ begin raise notice '%', a; return true; end $$"
        )
        connection.execute("create operator mine.=== (function = mine.tell, leftarg = text, rightarg = text)")
        yield connection, told


@pytest.mark.parametrize("table", CONTENT + WITH_COLLECTION)
@pytest.mark.parametrize(
    "query",
    [
        "select from pgrag.{} as a where mine.tell(a::text)",
        "select from pgrag.document as d inner join pgrag.{} as a on mine.tell(a::text)",
        "select from pgrag.{} as a order by mine.tell(a::text) limit 1",
        "select a from pgrag.{} as a group by a having mine.tell(a::text)",
        "select mine.tell(a::text) from pgrag.{} as a",
    ],
)
def test_a_leaky_function_is_never_shown_a_hidden_row(walled: Database, table: str, query: str) -> None:
    with telling(walled) as (connection, told):
        connection.execute(query.format(table))
    if table in WITH_COLLECTION:
        assert [row for row in told if "docs" not in row] == []
    else:
        assert sorted(set(told)) == sorted(
            {
                row
                for (row,) in walled.execute(
                    f"select a::text from pgrag.{table} as a where collection_id = 1"
                )
            }
        )


def test_an_operator_of_one_s_own_is_never_shown_a_hidden_row(walled: Database) -> None:
    with telling(walled) as (connection, told):
        connection.execute("select from pgrag.chunk where content operator(mine.===) 'x'")
    assert told == ["The merger of two rivers."]


@pytest.mark.parametrize(
    "query",
    [
        "select 1 / (metadata ->> 'price')::int from pgrag.document where metadata ? 'price'",
        "select from pgrag.document where 1 / (metadata ->> 'price')::int > 0",
        "select from pgrag.chunk where content::int > 0 and content like 'The zanz%'",
        "select from pgrag.document where title::uuid is not null and title is not null",
        "select from pgrag.lexeme where lexeme like 'zanz%' and lexeme::int > 0",
        "select from pgrag.posting where collection_id = 2 and 1 / (n - n) > 0",
        "select from pgrag.collection where name = 'secret' and name::int > 0",
        "select from pgrag.encoder_token where token::int > 0",
        "select from pgrag.space where name::int > 0",
        "select from pgrag.corpus_stat where collection_id = 2 and 1 / (chunks - chunks) > 0",
        "select from pgrag.embedding_1 where 1 / (collection_id - 2) > 0",
        "select (select content from pgrag.chunk where collection_id = 2 union all select 'x' where false)::int",
    ],
)
def test_a_hidden_row_makes_no_error(walled: Database, query: str) -> None:
    result = answer(walled, query)
    assert isinstance(result, list)
    assert [row for row in result if row not in {(), (None,)}] == []


@pytest.mark.parametrize("uri", ["plan", "no such document"])
@pytest.mark.parametrize("statement", ["insert into pgrag.document (collection_id, acl_id, uri, content_hash) values (2, 1, '{}', '')",
                                       "select pgrag.put_document('secret', '{}', 'x', array['public'])",
                                       "select pgrag.delete_document('secret', '{}')",
                                       "select pgrag.set_readers('secret', '{}', array['public'])"])  # fmt: skip
def test_whether_a_uri_is_taken_can_not_be_tried(walled: Database, uri: str, statement: str) -> None:
    assert denied(walled, "pgrag_test_app", statement.format(uri)) == "42501"


def test_no_foreign_key_of_one_s_own_asks_whether_a_row_is_there(walled: Database) -> None:
    statement = "create table mine.probe (c int, d bigint, foreign key (c, d) references pgrag.document)"
    assert denied(walled, "pgrag_test_app", statement) == "42501"


# A hidden collection answers like one that isn't there


BY_COLLECTION = (
    "select * from pgrag.search('zanzibar merger', collections => array['{}'])",
    "select * from pgrag.search('zanzibar merger', collections => array['{}', 'docs'])",
    "select * from pgrag.search('\"zanzibar merger\" -x zan*', collections => array['{}'], filter => '{{\"price\": 0}}')",
    "select * from pgrag.search('zanzibar', collections => array['{}'], embedding => '[1,0,0]')",
    "select * from pgrag.search('zanzibar', collections => array['{}'], embedding => '[1,0]')",
    "select * from pgrag.search('zanzibar', collections => array['{}'], space => 'private')",
    "select * from pgrag.search('zanzibar', k => 0, collections => array['{}'])",
    "select * from pgrag.search('zanzibar', collections => array['{}'], weights => '{{\"x\": 1}}')",
    "select * from pgrag.search('zanzibar', collections => array['{}'], filter => '[]')",
    "select * from pgrag.search(repeat('zanzibar ', 20000), collections => array['{}'])",
    "select * from pgrag.search_lexical('zanzibar merger', collections => array['{}'])",
    "select * from pgrag.search_lexical('zanzibar', 0, array['{}'])",
    "select * from pgrag.search_dense('[1,0,0]', collections => array['{}'])",
    "select * from pgrag.search_dense('[1,0]', collections => array['{}'])",
    "select * from pgrag.search_dense('[0,0,0]', collections => array['{}'])",
    "select * from pgrag.search_dense('[1,0,0]', collections => array['{}'], space => 'private')",
    "select * from pgrag.pack_context('zanzibar merger', collections => array['{}'])",
    "select * from pgrag.pack_context('zanzibar', 0, collections => array['{}'])",
    "select * from pgrag.explain_search('zanzibar', array[1, 2, 3], collections => array['{}'])",
    "select pgrag._collection_id('{}')",
    "select pgrag.visible_uris('{}', array['hidden', 'open'])",
    "select * from pgrag.rank_documents('zanzibar merger', collections => array['{}'])",
    "select stage from pgrag.time_search('zanzibar merger', collections => array['{}'], budget_tokens => 100)",
    "select * from pgrag.document_texts('{}')",
    "select * from pgrag.trace_evidence('zanzibar', array['hidden', 'open'], collection => '{}')",
    "select * from pgrag.trace_evidence('zanzibar', array['hidden'], '{{0}}', '{{4}}', collection => '{}', budget => 100)",
    "select * from pgrag.trace_evidence('zanzibar', array['hidden'], '{{4}}', '{{0}}', collection => '{}')",
    "select * from pgrag.covering_budgets('{}', 'hidden', 0, 4, array[100])",
    "select * from pgrag._evidence_spans('{}', array['hidden', 'open'], null, null, array['zanzibar', 'meadow'])",
    "select * from pgrag._visible_collections(array['{}'])",
    "select * from pgrag._dense_arms('zanzibar', null, array['{}'], null)",
    "select * from pgrag._fuse('zanzibar', array['{}'], null, '{{}}', 10, 60, '{{}}', null, false)",
)


@pytest.mark.parametrize("query", BY_COLLECTION)
def test_a_hidden_collection_answers_like_none(walled: Database, query: str) -> None:
    hidden = repr(answer(walled, query.format("secret")))
    assert hidden.replace("secret", "absent") == repr(answer(walled, query.format("absent")))


BY_SPACE = (
    "select pgrag.embed_query('zanzibar', '{}')",
    "select pgrag.has_space('{}')",
    "select * from pgrag.search_dense('[1,0,0]', space => '{}')",
    "select * from pgrag.search_dense('[1,0]', space => '{}')",
    "select * from pgrag.search('zanzibar merger', space => '{}')",
    "select * from pgrag.search('zanzibar merger', embedding => '[1,0]', space => '{}')",
    "select * from pgrag.pack_context('zanzibar merger', space => '{}')",
    "select * from pgrag.explain_search('zanzibar merger', array[1, 2], space => '{}')",
    "select pgrag._query_space('{}')",
)


@pytest.mark.parametrize("query", BY_SPACE)
def test_a_hidden_space_answers_like_none(walled: Database, query: str) -> None:
    hidden = repr(answer(walled, query.format("private")))
    assert hidden.replace("private", "absent") == repr(answer(walled, query.format("absent")))


# A row of the hidden space, made up by whoever calls.
SPACE = """
jsonb_populate_record(null::pgrag.space, '{"space_id": 1, "precision": "halfvec", "index_kind": "hnsw", "calibration": {}}')
"""


@pytest.mark.parametrize(
    "query",
    [
        "select pgrag.embed_query('zanzibar merger')",
        "select pgrag._embed_static(1, 'zanzibar')",
        f"select * from pgrag._nearest({SPACE}, array[1, 2], '[1,0,0]', 10, '{{}}', 10, true)",
        f"select * from pgrag._nearest({SPACE}, array[1, 2], '[1,0,0]', 10, '{{}}', 1000000, false)",
        "select * from pgrag._score_lexical(2, '{english}', 1.2, 0.75, 10, 100, 'zanzibar merger', 10, '{}')",
        "select chunks from pgrag._sum_visible(2, null)",
        "select lexemes from pgrag._sum_visible(2, array(select n from generate_series(0, 99) as n))",
        "select analyzers from pgrag._sum_visible(2, null)",
        "select * from unnest(pgrag._narrow_filter(2, '{\"price\": 0}'))",
        "select * from pgrag.explain_search('zanzibar', array[2])",
    ],
)
def test_a_helper_called_by_hand_shows_nothing_hidden(walled: Database, query: str) -> None:
    result = answer(walled, query)
    assert isinstance(result, list)
    assert [row for row in result if row != (None,)] == []


def test_a_hidden_vector_is_one_that_is_not_there(walled: Database) -> None:
    (held,) = walled.execute("select chunk_id from pgrag.embedding_1 where collection_id = 2")[0]
    query = f"select pgrag._without_vector({SPACE}, 2, array[{held}, 999]::bigint[])"
    assert walled.execute(query) == [([999],)]
    assert answer(walled, query) == [([held, 999],)]


def test_an_explanation_of_a_hidden_chunk_is_that_of_none(walled: Database) -> None:
    (hidden,) = walled.execute("select chunk_id from pgrag.chunk where collection_id = 2")[0]
    query = "select * from pgrag.explain_search('merger', array[1, {}])"
    assert answer(walled, query.format(hidden)) == answer(walled, query.format(999))


@pytest.mark.xfail(
    strict=True, reason="compact() can't yet tell a word that is gone from one that is being put"
)
def test_words_of_a_document_that_went_away_are_gone_after_compaction(db: Database) -> None:
    db.put("open", "meadow", ["public"])
    db.put("gone", "quagmire", ["public"])
    with db.connect("pgrag_test_writer") as writer:
        writer.execute("select pgrag.set_readers('docs', 'gone', array['user:boss'])")
        writer.execute("select pgrag.compact()")
    assert db.rows_as("user:stranger", "select lexeme from pgrag.lexeme") == [("meadow",)]
