"""Rules that hold for every object of the schema: each is a query over the catalogs that must return no row."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from _pgrag import Database

from pgrag.errors import CODES
from pgrag.install import sql_folder

FUNCTIONS = sql_folder() / "functions"

# Tables that have no row-level security, and why.
WITHOUT_ROW_SECURITY = {
    "staging": "COPY refuses a table that has it; writers insert, nobody selects",
    "alembic_version": "alembic's own; nobody but the owner has a privilege",
}

# Functions that run with the rights of pgrag_owner, and why.
DEFINER = {
    "_access_version": "reads access_change, which readers may not",
    "_acl_bits_stamp": "calls _access_version, which only the owner may",
    "_acl_id": "writes acl and acl_entry, which writers may only read",
    "_analyze_chunk": "trigger: the same whoever writes",
    "_check_membership": "trigger: reads memberships, whoever writes them",
    "_compute_acl_bits": "reads acl_entry, which readers may not",
    "_embed_static_document": "writes vectors and takes chunks off the queue in one go",
    "_embedding_table": "makes a table that pgrag_owner owns, whoever of its members calls",
    "_index_chunks": "trigger: writes the posting log, which writers may only read",
    "_keep_acl_bits": "reads acl_entry and access_change, which readers may not",
    "_keep_code": "trigger: reads the space, whoever writes a vector",
    "_log_document": "trigger: writes document_history, which writers may only read",
    "_note_access_change": "trigger: writes access_change, which only the owner may",
    "_principals_of": "reads memberships, which readers may not",
    "_queue_chunks": "trigger: deletes vectors, whoever changes a chunk",
    "center_codes": "locks and rewrites a table that pgrag_owner owns, whoever of its members calls",
    "claim_chunks": "locks rows of the queue, whatever the caller's policies",
    "compact": "rewrites the posting log, which writers may only read",
    "embed_pending": "reads the tokens of an encoder, which writers may not",
    "fail_chunk": "writes the queue and the failures in one go",
    "load_staged": "reads staging, from which nobody may select",
    "rebuild_postings": "rewrites the posting log, which writers may only read",
    "release_chunks": "writes the queue, whatever the caller's policies",
    "reuse_vectors": "writes a table whose name only the space knows",
    "store_vectors": "writes a table whose name only the space knows",
    "visible_acl_bits": "reads acl_entry and access_change, which readers may not",
    "visible_acl_ids": "reads acl_entry, which readers may not",
}

RULES = {
    "every function has a comment": """
        select p.oid::regprocedure from pg_proc as p
        where p.pronamespace = 'pgrag'::regnamespace and obj_description(p.oid, 'pg_proc') is null""",
    "the first line of a function's comment is a sentence": """
        select p.oid::regprocedure from pg_proc as p
        where p.pronamespace = 'pgrag'::regnamespace and left(p.proname, 1) <> '_'
            and split_part(obj_description(p.oid, 'pg_proc'), E'\\n', 1) !~ '^[A-Z].{10,}[.:]( |$)'
            and split_part(obj_description(p.oid, 'pg_proc'), E'\\n', 1) !~ '^[A-Z].{10,}\\.'""",
    "every table has a comment": """
        select c.oid::regclass from pg_class as c
        where c.relnamespace = 'pgrag'::regnamespace and c.relkind in ('r', 'p', 'v') and obj_description(c.oid, 'pg_class') is null
            and c.relname <> 'alembic_version'""",
    "every policy has a comment": """
        select p.polrelid::regclass, p.polname from pg_policy as p
        inner join pg_class as c on c.oid = p.polrelid and c.relnamespace = 'pgrag'::regnamespace
        where obj_description(p.oid, 'pg_policy') is null""",
    "nobody grants with an option to grant on": """
        select c.oid::regclass from pg_class as c cross join lateral aclexplode(c.relacl) as a
        where c.relnamespace = 'pgrag'::regnamespace and a.is_grantable and a.grantee <> c.relowner""",
    "everything belongs to pgrag_owner": """
        select c.oid::regclass::text from pg_class as c
        where c.relnamespace = 'pgrag'::regnamespace and c.relowner <> 'pgrag_owner'::regrole
        union all
        select p.oid::regprocedure::text from pg_proc as p
        where p.pronamespace = 'pgrag'::regnamespace and p.proowner <> 'pgrag_owner'::regrole""",
    "PUBLIC executes no function": """
        select p.oid::regprocedure from pg_proc as p
        cross join lateral aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) as a
        where p.pronamespace = 'pgrag'::regnamespace and a.grantee = 0""",
    "a function has an atomic body or a fixed search_path": """
        select p.oid::regprocedure from pg_proc as p
        where p.pronamespace = 'pgrag'::regnamespace and p.prosqlbody is null
            and not exists (select from unnest(p.proconfig) as s where s like 'search_path=%')""",
    "a search_path is one of two": """
        select p.oid::regprocedure, s from pg_proc as p
        cross join lateral unnest(p.proconfig) as s
        where p.pronamespace = 'pgrag'::regnamespace and s like 'search_path=%' and s <> all(array[
            'search_path=pg_catalog, pg_temp',
            (select format('search_path=pg_catalog, pgrag, %I, pg_temp', n.nspname)
             from pg_extension as e inner join pg_namespace as n on n.oid = e.extnamespace where e.extname = 'vector')
        ])""",
    "a definer function is written in a language that keeps its search_path": """
        select p.oid::regprocedure from pg_proc as p
        where p.pronamespace = 'pgrag'::regnamespace and p.prosecdef and p.prosqlbody is null and p.proconfig is null""",
    "a definer function of readers looks in no schema that others could write": """
        select p.oid::regprocedure from pg_proc as p
        where p.pronamespace = 'pgrag'::regnamespace and p.prosecdef and p.prosqlbody is null
            and has_function_privilege('pgrag_reader', p.oid, 'execute')
            and not p.proconfig @> array['search_path=pg_catalog, pg_temp']""",
    "a foreign key has an index that finds its rows": """
        select k.conrelid::regclass, k.conname from pg_constraint as k
        inner join pg_class as c on c.oid = k.conrelid and c.relnamespace = 'pgrag'::regnamespace
        where k.contype = 'f' and not exists (
            select from pg_index as i
            where i.indrelid = k.conrelid and i.indpred is null
                -- its first two columns are enough: few rows are left
                and (i.indkey::int2[])[0:least(2, i.indnkeyatts, cardinality(k.conkey)) - 1] <@ k.conkey
                and (i.indisunique or i.indnkeyatts >= least(2, cardinality(k.conkey)))
        )""",
    "a policy asks for its caller once a statement": """
        select p.polrelid::regclass, p.polname from pg_policy as p
        inner join pg_class as c on c.oid = p.polrelid and c.relnamespace = 'pgrag'::regnamespace
        where pg_get_expr(p.polqual, p.polrelid) ~ '(visible_acl|current_setting|current_user)'
            and pg_get_expr(p.polqual, p.polrelid) !~ '\\( SELECT pgrag\\.visible_acl_bits\\(CURRENT_USER\\)'""",
    "a policy is for named roles": """
        select p.polrelid::regclass, p.polname from pg_policy as p
        inner join pg_class as c on c.oid = p.polrelid and c.relnamespace = 'pgrag'::regnamespace
        where p.polroles = '{0}' or not p.polpermissive""",
    "a view is none that could pass by the policies": """
        select c.oid::regclass from pg_class as c
        where c.relnamespace = 'pgrag'::regnamespace and c.relkind in ('v', 'm')
            and not coalesce(c.reloptions @> array['security_invoker=true'], false)""",
    "every table with an acl_id, and only these, has the bit test as its policy": """
        select c.oid::regclass from pg_class as c
        where c.relnamespace = 'pgrag'::regnamespace and c.relkind in ('r', 'p')
            and c.relname not in ('acl', 'acl_entry', 'document_history')
            and exists (select from pg_attribute as a where a.attrelid = c.oid and a.attname = 'acl_id')
            <> exists (
                select from pg_policy as p
                where p.polrelid = c.oid and pg_get_expr(p.polqual, p.polrelid) like '%visible_acl_bits%'
            )""",
    "a function that reads is not volatile, one that writes is": """
        select p.oid::regprocedure from pg_proc as p
        where p.pronamespace = 'pgrag'::regnamespace and p.proname ~ '^(search|explain|pack|embed_query|collections|current|visible)'
            and p.provolatile = 'v'""",
}


@pytest.fixture(scope="module")
def installed(installed_template: str, session_database: Callable[..., str]) -> Iterator[Database]:
    database = Database(session_database(template=installed_template))
    database.execute("select pgrag.create_space('linted', 'none', 3)")
    yield database
    database.close()


@pytest.mark.parametrize("rule", RULES)
def test_rule(installed: Database, rule: str) -> None:
    assert installed.execute(RULES[rule]) == []


def test_every_table_has_forced_row_security(installed: Database) -> None:
    without = installed.execute(
        "select c.relname from pg_class as c where c.relnamespace = 'pgrag'::regnamespace and c.relkind in ('r', 'p') "
        "and not (c.relrowsecurity and c.relforcerowsecurity)"
    )
    assert {name for (name,) in without} == set(WITHOUT_ROW_SECURITY)


def test_definer_functions_are_those_with_a_reason(installed: Database) -> None:
    found = installed.execute(
        "select proname from pg_proc where pronamespace = 'pgrag'::regnamespace and prosecdef"
    )
    assert {name for (name,) in found} == set(DEFINER)


def test_readers_call_only_the_definer_functions_that_say_who_they_are(installed: Database) -> None:
    found = installed.execute(
        "select proname from pg_proc where pronamespace = 'pgrag'::regnamespace and prosecdef "
        "and prorettype <> 'trigger'::regtype and has_function_privilege('pgrag_reader', oid, 'execute')"
    )
    assert {name for (name,) in found} == {
        "_keep_acl_bits",
        "_principals_of",
        "visible_acl_bits",
        "visible_acl_ids",
    }


def test_every_refusal_has_a_code_that_is_listed() -> None:
    raised = {
        code
        for file in sql_folder().rglob("*.sql")
        for code in re.findall(r"errcode = '(RG\d{3})'", file.read_text("utf-8"))
    }
    assert raised == set(CODES)


def test_every_refusal_says_what_to_do_next() -> None:
    silent = [
        file.name
        for file in FUNCTIONS.rglob("*.sql")
        for statement in re.findall(r"raise exception.*?;\n", file.read_text("utf-8"), re.DOTALL)
        if "hint =" not in statement
    ]
    assert silent == []


@pytest.mark.parametrize("file", sorted(FUNCTIONS.rglob("*.sql")), ids=lambda file: file.stem)
def test_a_file_holds_the_function_that_it_is_named_after(file: Path) -> None:
    text = file.read_text("utf-8")
    assert re.findall(r"^create or replace function pgrag\.(\w+)\(", text, re.MULTILINE) == [file.stem]
    assert set(re.findall(r"^comment on function pgrag\.(\w+)\(", text, re.MULTILINE)) == {file.stem}
    assert re.match(r"-- \S.*\.\n", text), "the first line is one sentence"


def test_no_file_makes_a_function_that_another_one_makes() -> None:
    names = [file.stem for file in FUNCTIONS.rglob("*.sql")]
    assert sorted(names) == sorted(set(names))


def test_every_function_comes_from_a_file(installed: Database) -> None:
    found = installed.execute(
        "select distinct proname from pg_proc where pronamespace = 'pgrag'::regnamespace"
    )
    assert {name for (name,) in found} == {file.stem for file in FUNCTIONS.rglob("*.sql")}
