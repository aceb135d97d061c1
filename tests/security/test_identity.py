"""Who the caller is: what counts as an identity, who may assert one, and when it ends.

Documents that appear everywhere here: ``open`` for everybody, ``ana``, ``bo`` and ``hr`` for these alone. The word
``shared`` is in all of them.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from _pgrag import Database
from psycopg import sql

CONTENT = ("document", "document_text", "chunk", "posting", "lexeme", "corpus_stat", "collection")
READS = (
    "select uri from pgrag.search('shared')",
    "select chunk_id from pgrag.search_lexical('shared')",
    "select chunk_id from pgrag.search_dense((select ('[' || repeat('0,', 254) || '1,1]')::halfvec(256)))",
    "select chunk_id from pgrag.pack_context('shared')",
    "select chunk_id from pgrag.explain_search('shared', array(select generate_series(1, 50)::bigint))",
    "select name from pgrag.collections()",
    *(f"select 1 from pgrag.{table}" for table in CONTENT),
)
MALFORMED = (
    "",
    " ",
    "[]",
    "{}",
    "null",
    "true",
    "7",
    '"user:ana"',
    "user:ana",
    "{user:ana}",
    '["user:ana"',
    '["user:ana"] ',
    '["user:ana",]',
    '["user:ana", null]',
    '["user:ana", 7]',
    '["user:ana", ["user:bo"]]',
    '["user:ana", {"name": "user:bo"}]',
    '["user:ana", ""]',
    '["user:ana", "user:"]',
    '["user:ana", "user: bo"]',
    '["user:ana", "ana"]',
    '["user:ana", "User:bo"]',
    '["user:ana", "!user:bo"]',
    '["user:ana", "role:pgrag_owner"]',
    '["user:ana", "user:\\u0000"]',
    '["user:ana", "user:\\ud800"]',
    '[["user:ana"]]',
    json.dumps(["user:ana", "user:" + "x" * 201]),
)
VALID_AFTER_ALL = {'["user:ana"] '}


def populate(database: Database) -> None:
    database.execute("select pgrag.create_collection('docs')")
    database.put("open", "shared words for everybody", ["public"])
    database.put("ana", "shared words for ana", ["user:ana"])
    database.put("bo", "shared words for bo", ["user:bo"])
    database.put("hr", "shared words for people of hr", ["group:hr"])


@pytest.fixture(scope="module")
def shared_dsn(installed_template: str, session_database: Callable[..., str]) -> str:
    dsn = session_database(template=installed_template)
    database = Database(dsn)
    populate(database)
    database.close()
    return dsn


@pytest.fixture
def people(shared_dsn: str) -> Iterator[Database]:
    """A database for tests that leave it as it was."""
    database = Database(shared_dsn)
    yield database
    database.close()


@pytest.fixture
def changing(dsn: str) -> Iterator[Database]:
    """The same, for a test that changes it."""
    database = Database(dsn)
    populate(database)
    yield database
    database.close()


def seen(connection: psycopg.Connection[Any]) -> list[str]:
    """The uris that a caller finds; the same by search and by reading the table, or it is a hole."""
    found = connection.execute("select uri from pgrag.search('shared', k => 100) order by uri").fetchall()
    read = connection.execute("select uri from pgrag.document order by uri").fetchall()
    assert found == read
    return [uri for (uri,) in found]


def seen_by(database: Database, *principals: str) -> list[str]:
    with database.acting(*principals) as connection:
        return seen(connection)


def set_local(connection: psycopg.Connection[Any], name: str, value: str) -> None:
    connection.execute("select set_config(%s, %s, true)", (name, value))


@contextmanager
def role(database: Database, name: str, attributes: str, *granted: str) -> Iterator[str]:
    """A role that lives as long as the test."""
    database.admin.execute(sql.SQL("create role {} " + attributes).format(sql.Identifier(name)))
    try:
        for group in granted:
            database.admin.execute(
                sql.SQL("grant {} to {}").format(sql.Identifier(group), sql.Identifier(name))
            )
        yield name
    finally:
        database.admin.execute(sql.SQL("drop owned by {}").format(sql.Identifier(name)))
        database.admin.execute(sql.SQL("drop role {}").format(sql.Identifier(name)))


def refused(connection: psycopg.Connection[Any], *principals: str | None) -> str:
    """SQLSTATE of the refusal of ``act_as``."""
    with pytest.raises(psycopg.Error) as caught, connection.transaction():
        connection.execute("select pgrag.act_as(variadic %s::text[])", (list(principals),))
    return str(caught.value.sqlstate)


# No identity


@pytest.mark.parametrize("query", READS)
def test_an_application_that_acts_for_nobody_gets_nothing(people: Database, query: str) -> None:
    assert people.connect("pgrag_test_app").execute(query).fetchall() == []


@pytest.mark.parametrize("setting", MALFORMED)
def test_an_empty_or_malformed_identity_is_no_caller(people: Database, setting: str) -> None:
    connection = people.connect("pgrag_test_app")
    expected = ["ana", "open"] if setting in VALID_AFTER_ALL else []
    with connection.transaction():
        set_local(connection, "pgrag.principals", setting)
        assert seen(connection) == expected


def test_an_identity_nested_too_deep_to_read_shows_nothing(people: Database) -> None:
    connection = people.connect("pgrag_test_app")
    connection.execute("select set_config('pgrag.principals', repeat('[', 200000), false)")
    with pytest.raises(psycopg.Error, match="stack depth"):
        connection.execute("select from pgrag.document")


def test_acting_for_an_empty_list_sees_nothing(people: Database) -> None:
    assert seen_by(people) == []


def test_acting_for_an_empty_list_takes_back_what_was_said_before(people: Database) -> None:
    with people.acting("user:ana") as connection:
        connection.execute("select pgrag.act_as(variadic '{}')")
        assert seen(connection) == []


def test_no_caller_counts_as_nobody(people: Database) -> None:
    assert people.connect("pgrag_test_app").execute("select pgrag.current_principals()").fetchone() == ([],)


# Who may assert one


@pytest.mark.parametrize("login", ["pgrag_test_reader"])
def test_a_role_outside_pgrag_app_may_not_act_for_others(people: Database, login: str) -> None:
    assert refused(people.connect(login), "user:ana") == "RG020"


@pytest.mark.parametrize("login", ["pgrag_test_writer", "pgrag_test_nobody"])
def test_a_role_that_does_not_search_can_not_even_call_act_as(people: Database, login: str) -> None:
    connection = people.connect(login)
    assert refused(connection, "user:ana") in {"RG020", "42501"}


def test_a_superuser_may_not_act_for_others(people: Database) -> None:
    assert refused(people.connect(), "user:ana") == "RG021"


def test_a_role_that_bypasses_row_security_may_not_act_for_others(people: Database) -> None:
    with role(people, "pgrag_test_bypass", "bypassrls", "pgrag_app") as name:
        connection = people.connect()
        connection.execute(sql.SQL("set role {}").format(sql.Identifier(name)))
        assert refused(connection, "user:ana") == "RG021"
        connection.close()


def test_act_as_is_refused_where_row_security_is_off(people: Database) -> None:
    connection = people.connect("pgrag_test_app")
    connection.execute("set row_security = off")
    assert refused(connection, "user:ana") == "RG021"


@pytest.mark.parametrize("table", CONTENT)
def test_turning_row_security_off_later_is_an_error_and_no_way_in(people: Database, table: str) -> None:
    with people.acting("user:ana") as connection:
        connection.execute("set local row_security = off")
        with pytest.raises(psycopg.errors.InsufficientPrivilege), connection.transaction():
            connection.execute(sql.SQL("select from pgrag.{}").format(sql.Identifier(table)))


@pytest.mark.parametrize("group", ["pgrag_writer", "pgrag_owner"])
def test_a_role_that_sees_everything_may_not_act_for_others(people: Database, group: str) -> None:
    with role(people, "pgrag_test_both", "", "pgrag_app", group) as name:
        connection = people.connect()
        connection.execute(sql.SQL("set role {}").format(sql.Identifier(name)))
        assert refused(connection, "user:ana") == "RG021"
        connection.close()


@pytest.mark.parametrize(
    "principals",
    [
        [None],
        ["user:ana", None],
        [""],
        ["ana"],
        ["user:"],
        ["user: ana"],
        ["!user:ana"],
        ["role:pgrag_test_reader"],
        ["user:ana", "role:pgrag_owner"],
        ["USER:ana"],
        ["public "],
        ["user:" + "x" * 201],
    ],
)
def test_act_as_refuses_what_is_not_the_name_of_a_person_or_group(
    people: Database, principals: Sequence[str | None]
) -> None:
    assert refused(people.connect("pgrag_test_app"), *principals) == "RG022"


def test_act_as_refuses_null_for_the_whole_array(people: Database) -> None:
    connection = people.connect("pgrag_test_app")
    with pytest.raises(psycopg.Error) as caught:
        connection.execute("select pgrag.act_as(variadic null::text[])")
    assert caught.value.sqlstate == "RG022"


def test_a_refused_act_as_leaves_the_identity_as_it_was(people: Database) -> None:
    with people.acting("user:ana") as connection:
        refused(connection, "user:bo", "role:pgrag_owner")
        assert seen(connection) == ["ana", "open"]


# Settings written by hand


@pytest.mark.parametrize("setting", ['["user:ana"]', '["group:hr"]', '["public", "user:bo"]', "[]", "x"])
def test_a_plain_reader_can_not_assert_an_identity_by_hand(people: Database, setting: str) -> None:
    connection = people.connect("pgrag_test_reader")
    with connection.transaction():
        set_local(connection, "pgrag.principals", setting)
        assert seen(connection) == ["open"]


def test_a_plain_reader_can_not_forge_the_kept_bits(people: Database) -> None:
    with people.acting("user:ana") as application:
        (kept,) = application.execute("select current_setting('pgrag.acl_bits')").fetchone() or ("",)
    connection = people.connect("pgrag_test_reader")
    with connection.transaction():
        set_local(connection, "pgrag.principals", '["user:ana"]')
        set_local(connection, "pgrag.acl_bits", kept)
        connection.execute("select pgrag._keep_acl_bits(current_user)")
        assert seen(connection) == ["open"]


def test_the_kept_bits_are_only_a_memory_of_what_an_application_could_assert_anyway(people: Database) -> None:
    """Documented: members of pgrag_app are believed, since they could as well act as everybody."""
    with people.acting("user:ana") as connection:
        stamp = connection.execute(
            "select substring(current_setting('pgrag.acl_bits') from '^.*:')"
        ).fetchone()
        assert stamp is not None
        set_local(connection, "pgrag.acl_bits", f"{stamp[0]}ffffffff")
        assert connection.execute("select count(*) from pgrag.document").fetchone() == (4,)


def test_kept_bits_of_other_principals_are_not_believed(people: Database) -> None:
    with people.acting("user:ana") as connection:
        set_local(connection, "pgrag.principals", '["user:bo"]')
        assert seen(connection) == ["bo", "open"]


def test_kept_bits_without_principals_are_not_believed(people: Database) -> None:
    with people.acting("user:ana") as connection:
        set_local(connection, "pgrag.principals", "")
        assert seen(connection) == []


@pytest.mark.parametrize("bits", ["", "1", ":", "::", "0::ff", "0:0:ff", "x", "zz:zz:zz", "-1:x:" + "f" * 99])
def test_malformed_kept_bits_are_made_again(people: Database, bits: str) -> None:
    with people.acting("user:ana") as connection:
        set_local(connection, "pgrag.acl_bits", bits)
        assert seen(connection) == ["ana", "open"]


def test_kept_bits_with_the_right_stamp_and_a_wrong_digit_are_made_again(people: Database) -> None:
    with people.acting("user:ana") as connection:
        connection.execute(
            "select set_config('pgrag.acl_bits', current_setting('pgrag.acl_bits') || 'g', true)"
        )
        assert seen(connection) == ["ana", "open"]


# Other roles


@pytest.mark.parametrize("who", ["pgrag_test_app", "pgrag_app", "pgrag_owner", "pgrag_writer", "postgres"])
@pytest.mark.parametrize(
    ("function", "nothing"),
    [("visible_acl_ids", []), ("_principals_of", [])],
)
def test_nobody_learns_what_another_role_sees(
    people: Database, who: str, function: str, nothing: object
) -> None:
    connection = people.connect("pgrag_test_reader")
    call = sql.SQL("select pgrag.{}({})").format(sql.Identifier(function), sql.Literal(who))
    assert connection.execute(call).fetchone() == (nothing,)


def test_the_bits_of_another_role_are_none(people: Database) -> None:
    connection = people.connect("pgrag_test_reader")
    assert connection.execute("select length(pgrag.visible_acl_bits('pgrag_test_app'))").fetchone() == (0,)


def test_a_member_of_a_role_may_ask_for_it(people: Database) -> None:
    connection = people.connect("pgrag_test_reader")
    assert connection.execute("select pgrag._principals_of('pgrag_reader')").fetchone() == (
        ["public", "role:pgrag_reader"],
    )


def test_a_definer_function_of_another_role_sees_nothing_of_its_caller(people: Database) -> None:
    with role(people, "pgrag_test_lender", "", "pgrag_app") as lender:
        people.admin.execute("create schema lent")
        people.admin.execute(
            "create function lent.look() returns setof text language sql security definer "
            "as $$ select uri from pgrag.search('shared') union all select uri from pgrag.document $$"
        )
        people.admin.execute(sql.SQL("alter function lent.look() owner to {}").format(sql.Identifier(lender)))
        people.admin.execute("grant usage on schema lent to public")
        with people.acting("user:ana") as connection:
            assert connection.execute("select lent.look()").fetchall() == []
        people.admin.execute("drop schema lent cascade")


# How long it lasts


def test_identity_ends_at_commit(people: Database) -> None:
    connection = people.connect("pgrag_test_app")
    with connection.transaction():
        connection.execute("select pgrag.act_as('user:ana')")
    assert seen(connection) == []


def test_identity_ends_at_rollback(people: Database) -> None:
    connection = people.connect("pgrag_test_app")
    with connection.transaction(force_rollback=True):
        connection.execute("select pgrag.act_as('user:ana')")
    assert seen(connection) == []


def test_identity_does_not_reach_the_next_statement_without_a_transaction(people: Database) -> None:
    connection = people.connect("pgrag_test_app")
    connection.execute("select pgrag.act_as('user:ana')")
    assert seen(connection) == []


def test_rolling_back_to_a_savepoint_brings_the_older_identity_back(people: Database) -> None:
    with people.acting("user:ana") as connection:
        with connection.transaction(force_rollback=True):
            connection.execute("select pgrag.act_as('user:bo')")
            assert seen(connection) == ["bo", "open"]
        assert seen(connection) == ["ana", "open"]


def test_an_identity_asserted_after_a_savepoint_goes_with_it(people: Database) -> None:
    connection = people.connect("pgrag_test_app")
    with connection.transaction():
        with connection.transaction(force_rollback=True):
            connection.execute("select pgrag.act_as('user:bo')")
        assert seen(connection) == []


def test_a_second_call_replaces_the_first(people: Database) -> None:
    with people.acting("user:ana", "group:hr") as connection:
        connection.execute("select pgrag.act_as('user:bo')")
        assert seen(connection) == ["bo", "open"]


def test_discarding_a_connection_leaves_no_identity(people: Database) -> None:
    connection = people.connect("pgrag_test_app")
    connection.execute("set pgrag.principals = '[\"user:ana\"]'")
    connection.execute("discard all")
    connection.execute("set session authorization pgrag_test_app")  # which was discarded, too
    assert seen(connection) == []


def test_resetting_the_settings_ends_the_identity_at_once(people: Database) -> None:
    with people.acting("user:ana") as connection:
        connection.execute("reset all")
        assert seen(connection) == []


def test_a_prepared_statement_shows_each_role_its_own(people: Database) -> None:
    connection = people.connect()
    connection.execute("set role pgrag_test_app")
    connection.execute("prepare look as select uri from pgrag.document order by uri")
    connection.execute("prepare find as select uri from pgrag.search('shared') order by uri")
    with connection.transaction():
        connection.execute("select pgrag.act_as('user:ana')")
        for _ in range(7):  # past the five custom plans
            assert connection.execute("execute look").fetchall() == [("ana",), ("open",)]
            assert connection.execute("execute find").fetchall() == [("ana",), ("open",)]
        connection.execute("set local role pgrag_test_reader")
        assert connection.execute("execute look").fetchall() == [("open",)]
        assert connection.execute("execute find").fetchall() == [("open",)]
    assert connection.execute("execute look").fetchall() == []
    assert connection.execute("execute find").fetchall() == []
    connection.execute("deallocate all")
    connection.close()


def test_a_cached_plan_of_a_function_shows_each_role_its_own(people: Database) -> None:
    people.admin.execute("create schema cached")
    people.admin.execute("grant usage on schema cached to public")
    people.admin.execute(
        "create function cached.look() returns bigint language plpgsql stable "
        "as $$ begin return (select count(*) from pgrag.chunk); end $$"
    )
    connection = people.connect()
    connection.execute("set role pgrag_test_app")
    with connection.transaction():
        connection.execute("select pgrag.act_as('user:ana', 'group:hr')")
        for _ in range(7):
            assert connection.execute("select cached.look()").fetchone() == (3,)
        connection.execute("set local role pgrag_test_reader")
        assert connection.execute("select cached.look()").fetchone() == (1,)
        connection.execute("set local role pgrag_test_app")
        assert connection.execute("select cached.look()").fetchone() == (3,)
    assert connection.execute("select cached.look()").fetchone() == (0,)
    connection.close()
    people.admin.execute("drop schema cached cascade")


def test_a_held_cursor_keeps_the_rows_it_had_at_commit(people: Database) -> None:
    """Documented: WITH HOLD copies the rows out, as fetching them would; DISCARD ALL closes it."""
    connection = people.connect("pgrag_test_app")
    with connection.transaction():
        connection.execute("select pgrag.act_as('user:ana')")
        connection.execute("declare held cursor with hold for select uri from pgrag.document order by uri")
    assert connection.execute("fetch all from held").fetchall() == [("ana",), ("open",)]
    connection.execute("discard all")
    with pytest.raises(psycopg.errors.InvalidCursorName):
        connection.execute("fetch all from held")


def test_parallel_workers_know_the_caller(people: Database) -> None:
    with people.acting("user:ana") as connection:
        connection.execute("set local debug_parallel_query = on")
        assert seen(connection) == ["ana", "open"]


# Groups


def test_groups_nest(changing: Database) -> None:
    for group, member in [
        ("group:hr", "group:managers"),
        ("group:managers", "group:board"),
        ("group:board", "user:ana"),
    ]:
        changing.execute("select pgrag.add_member(%s, %s)", (group, member))
    assert seen_by(changing, "user:ana") == ["ana", "hr", "open"]


def test_a_name_nobody_knows_sees_what_public_sees(changing: Database) -> None:
    assert seen_by(changing, "user:stranger", "group:unheard-of") == ["open"]


def test_a_deny_wins_over_any_allow(changing: Database) -> None:
    changing.execute("select pgrag.add_member('group:hr', 'user:ana')")
    changing.put("denied", "shared words, not for ana", ["public", "user:ana", "group:hr", "!user:ana"])
    assert "denied" in seen_by(changing, "user:bo")
    assert "denied" not in seen_by(changing, "user:ana")


def test_a_deny_of_a_group_counts_for_members_of_its_groups(changing: Database) -> None:
    changing.execute("select pgrag.add_member('group:guests', 'group:visitors')")
    changing.execute("select pgrag.add_member('group:visitors', 'user:bo')")
    changing.put("denied", "shared words, not for guests", ["public", "!group:guests"])
    assert "denied" not in seen_by(changing, "user:bo")
    assert "denied" in seen_by(changing, "user:ana")


def test_a_deny_of_public_hides_from_everybody(changing: Database) -> None:
    changing.put("closed", "shared words for nobody", ["user:ana", "!public"])
    assert "closed" not in seen_by(changing, "user:ana")


def test_an_empty_list_of_readers_is_nobody(changing: Database) -> None:
    changing.put("closed", "shared words for nobody", [])
    assert "closed" not in seen_by(changing, "user:ana", "user:bo", "group:hr", "public")


@pytest.mark.parametrize("readers", [["!!user:ana", "public"], ["!user:ana", "!!user:ana", "public"]])
def test_more_marks_before_a_name_do_not_undo_a_deny(changing: Database, readers: list[str]) -> None:
    changing.put("denied", "shared words, not for ana", readers)
    assert "denied" not in seen_by(changing, "user:ana")


@pytest.mark.parametrize("chain", [["group:a", "group:b"], ["group:a", "group:b", "group:c", "group:d"]])
def test_a_circle_of_groups_is_refused(changing: Database, chain: list[str]) -> None:
    for group, member in itertools.pairwise(chain):
        changing.execute("select pgrag.add_member(%s, %s)", (group, member))
    with pytest.raises(psycopg.Error) as caught:
        changing.execute("select pgrag.add_member(%s, %s)", (chain[-1], chain[0]))
    assert caught.value.sqlstate == "RG023"


@pytest.mark.parametrize("statement", ["insert into pgrag.membership values ('group:b', 'group:a')",
                                       "update pgrag.membership set group_name = 'group:b', member = 'group:a' "
                                       "where group_name = 'group:c'"])  # fmt: skip
def test_a_circle_made_with_plain_sql_is_refused(changing: Database, statement: str) -> None:
    changing.execute("select pgrag.add_member('group:a', 'group:b')")
    changing.execute("select pgrag.add_member('group:c', 'user:ana')")
    with pytest.raises(psycopg.Error) as caught:
        changing.admin.execute(statement)
    assert caught.value.sqlstate == "RG023"


def test_a_circle_is_refused_where_row_security_is_off(changing: Database) -> None:
    changing.execute("select pgrag.add_member('group:a', 'group:b')")
    changing.execute("set row_security = off")
    with pytest.raises(psycopg.Error) as caught:
        changing.execute("select pgrag.add_member('group:b', 'group:a')")
    assert caught.value.sqlstate == "RG023"


@pytest.mark.parametrize("isolation", ["read committed", "repeatable read", "serializable"])
def test_two_transactions_can_not_each_add_half_of_a_circle(changing: Database, isolation: str) -> None:
    changing.execute("select pgrag.create_principals('group:a', 'group:b')")
    first, second = changing.connect(), changing.connect()
    first.execute("begin")
    second.execute(f"begin isolation level {isolation}")
    second.execute("select count(*) from pgrag.membership")  # takes the snapshot
    first.execute("select pgrag.add_member('group:a', 'group:b')")
    codes: list[str | None] = []

    def close_the_circle() -> None:
        try:
            second.execute("select pgrag.add_member('group:b', 'group:a')")
            codes.append(None)
        except psycopg.Error as error:
            codes.append(error.sqlstate)

    thread = threading.Thread(target=close_the_circle)
    thread.start()
    first.execute("commit")
    thread.join()
    assert codes == ["RG023"]


# What changes meanwhile


def test_a_revocation_counts_from_the_next_statement(changing: Database) -> None:
    changing.execute("select pgrag.add_member('group:hr', 'user:ana')")
    with changing.acting("user:ana") as connection:
        assert seen(connection) == ["ana", "hr", "open"]
        changing.execute("select pgrag.remove_member('group:hr', 'user:ana')")
        assert seen(connection) == ["ana", "open"]


def test_a_revocation_counts_where_the_one_who_makes_it_has_row_security_off(changing: Database) -> None:
    changing.execute("select pgrag.add_member('group:hr', 'user:ana')")
    with changing.acting("user:ana") as connection:
        changing.execute("set row_security = off")
        changing.execute("select pgrag.remove_member('group:hr', 'user:ana')")
        assert seen(connection) == ["ana", "open"]


def test_a_new_membership_counts_from_the_next_statement(changing: Database) -> None:
    with changing.acting("user:ana") as connection:
        assert seen(connection) == ["ana", "open"]
        changing.execute("select pgrag.add_member('group:hr', 'user:ana')")
        assert seen(connection) == ["ana", "hr", "open"]


def test_a_membership_that_is_not_committed_does_not_count(changing: Database) -> None:
    owner = changing.connect()
    with changing.acting("user:ana") as connection, owner.transaction(force_rollback=True):
        owner.execute("select pgrag.add_member('group:hr', 'user:ana')")
        assert seen(connection) == ["ana", "open"]


def test_taking_a_principal_away_is_a_revocation(changing: Database) -> None:
    changing.execute("select pgrag.add_member('group:hr', 'user:carla')")
    with changing.acting("user:carla") as connection:
        assert seen(connection) == ["hr", "open"]
        changing.execute("delete from pgrag.principal where name = 'user:carla'")
        assert seen(connection) == ["open"]


def test_compaction_does_not_bring_a_revoked_membership_back(changing: Database) -> None:
    changing.execute("select pgrag.add_member('group:hr', 'user:ana')")
    with changing.acting("user:ana") as connection:
        changing.execute("select pgrag.remove_member('group:hr', 'user:ana')")
        changing.execute("select pgrag.compact()")
        assert seen(connection) == ["ana", "open"]


def test_a_repeatable_read_keeps_what_its_snapshot_saw(changing: Database) -> None:
    """Documented: a revocation counts from the next snapshot, which such a transaction doesn't take."""
    changing.execute("select pgrag.add_member('group:hr', 'user:ana')")
    connection = changing.connect("pgrag_test_app")
    connection.execute("begin isolation level repeatable read")
    connection.execute("select pgrag.act_as('user:ana')")
    changing.execute("select pgrag.remove_member('group:hr', 'user:ana')")
    assert seen(connection) == ["ana", "hr", "open"]
    connection.execute("commit")


def test_a_document_taken_away_is_gone_in_the_next_statement(changing: Database) -> None:
    with changing.acting("user:ana") as connection:
        assert seen(connection) == ["ana", "open"]
        changing.execute("select pgrag.set_readers('docs', 'ana', array['user:bo'])")
        assert seen(connection) == ["open"]


def test_an_acl_made_meanwhile_is_no_error_and_is_seen_from_the_next_statement(changing: Database) -> None:
    with changing.acting("user:ana") as connection:
        for number in range(70):  # past the end of two words of kept bits
            changing.execute("select pgrag.create_principals(%s)", (f"group:{number}",))
            changing.execute("select pgrag._acl_id(1, array[%s])", (f"group:{number}",))
        changing.put("more", "shared words", ["user:ana", "group:69"])
        assert seen(connection) == ["ana", "more", "open"]


def test_bits_that_end_before_an_acl_hide_it_without_an_error(changing: Database) -> None:
    with changing.acting("user:ana") as connection:
        connection.execute(
            "select set_config('pgrag.acl_bits', substring(current_setting('pgrag.acl_bits') from '^.*:'), true)"
        )
        assert seen(connection) == []


# Roles as principals


def test_a_reader_is_its_role_and_the_roles_it_is_in(changing: Database) -> None:
    connection = changing.connect("pgrag_test_reader")
    assert connection.execute("select pgrag.current_principals()").fetchone() == (
        ["public", "role:pgrag_reader", "role:pgrag_test_reader"],
    )


def test_a_document_for_a_role_is_seen_by_that_role(changing: Database) -> None:
    changing.put("role", "shared words for a role", ["role:pgrag_test_reader"])
    assert seen(changing.connect("pgrag_test_reader")) == ["open", "role"]


def test_a_role_may_be_in_a_group(changing: Database) -> None:
    changing.execute("select pgrag.add_member('group:hr', 'role:pgrag_test_reader')")
    assert seen(changing.connect("pgrag_test_reader")) == ["hr", "open"]


def test_an_application_never_counts_as_its_own_role(changing: Database) -> None:
    changing.put(
        "role", "shared words for a role", ["role:pgrag_test_app", "role:pgrag_app", "role:pgrag_reader"]
    )
    assert seen_by(changing, "user:ana") == ["ana", "open"]
