"""Who may do what: every privilege of the roles, as one golden file; a forgotten or a new grant is a line of a diff."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

import pytest
from _pgrag import Database

GOLDEN = Path(__file__).parent / "privileges.txt"
HOW = "If it is meant: PGRAG_WRITE_PRIVILEGES=1 python -m pytest tests/security/test_privileges.py, and read the diff."

# What a role has by grants to itself, to roles it is in, and to PUBLIC; columns count where the table doesn't.
PRIVILEGES = """
with role (name) as (values ('PUBLIC'), ('pgrag_reader'), ('pgrag_app'), ('pgrag_writer')),

holder as (
    select r.name, g.rolname as grantee
    from role as r
    inner join pg_roles as g on r.name <> 'PUBLIC' and pg_has_role(r.name, g.oid, 'usage')
    union all
    select r.name, 'PUBLIC' from role as r
),

granted as (
    select 'schema ' || n.nspname as object, a.* from pg_namespace as n
    cross join lateral aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) as a
    where n.nspname = 'pgrag'
    union all
    select case c.relkind when 'S' then 'sequence ' else 'table ' end || c.relname, a.* from pg_class as c
    cross join lateral aclexplode(coalesce(c.relacl, acldefault((case c.relkind when 'S' then 's' else 'r' end)::"char", c.relowner))) as a
    where c.relnamespace = 'pgrag'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S')
    union all
    select 'column ' || c.relname || '.' || t.attname, a.* from pg_class as c
    inner join pg_attribute as t on t.attrelid = c.oid and t.attacl is not null
    cross join lateral aclexplode(t.attacl) as a
    where c.relnamespace = 'pgrag'::regnamespace
    union all
    select 'function ' || p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')', a.* from pg_proc as p
    cross join lateral aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) as a
    where p.pronamespace = 'pgrag'::regnamespace
)

select distinct h.name || ' | ' || g.object || ' | ' || lower(g.privilege_type)
    || case when g.is_grantable then ' with grant option' else '' end as line
from granted as g
left join pg_roles as r on r.oid = g.grantee
inner join holder as h on h.grantee = coalesce(r.rolname, 'PUBLIC')
order by 1
"""


@pytest.fixture
def privileges(db: Database) -> str:
    """One line a privilege: role, object, privilege; with a space, for the grants on its table."""
    db.execute("select pgrag.create_space('golden', 'none', 3)")
    lines = sorted({line for (line,) in db.execute(PRIVILEGES)})
    return "".join(f"{line}\n" for line in lines)


def test_the_privileges_are_those_that_are_written_down(privileges: str) -> None:
    if os.environ.get("PGRAG_WRITE_PRIVILEGES") == "1":
        GOLDEN.write_text(privileges, "utf-8")
    written = GOLDEN.read_text("utf-8")
    difference = "".join(
        difflib.unified_diff(
            written.splitlines(True), privileges.splitlines(True), GOLDEN.name, "database", n=0
        )
    )
    assert not difference, f"{difference}\n{HOW}"


def test_public_has_nothing(privileges: str) -> None:
    assert [line for line in privileges.splitlines() if line.startswith("PUBLIC")] == []


def test_an_application_has_what_a_reader_has(privileges: str) -> None:
    lines = privileges.splitlines()
    reader = {line.partition(" | ")[2] for line in lines if line.startswith("pgrag_reader")}
    assert {line.partition(" | ")[2] for line in lines if line.startswith("pgrag_app")} == reader


def test_readers_write_nothing(privileges: str) -> None:
    assert {
        line.rpartition(" | ")[2] for line in privileges.splitlines() if line.startswith("pgrag_reader")
    } == {"usage", "select", "execute"}


def test_upgrading_again_changes_no_privilege(db: Database, privileges: str) -> None:
    from pgrag.install import upgrade

    db.execute("update pgrag.installation set digest = 'another'")
    upgrade(db.dsn)
    assert "".join(f"{line}\n" for line in sorted({line for (line,) in db.execute(PRIVILEGES)})) == privileges
