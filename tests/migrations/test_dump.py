"""A dump that is restored gives the same answers, to the last bit, and an index that says what the documents say."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from _pgrag import Database, login_dsn

from pgrag import install
from pgrag._server_binaries import find_binaries
from pgrag.errors import PgragError

# What `upgrade` wrote into a database that data are restored into is not brought along.
DATA_ONLY = (
    "--data-only",
    "--exclude-table=pgrag.installation",
    "--exclude-table=pgrag.alembic_version",
)


@pytest.fixture(scope="module")
def client(server_dsn: str, postgres_bindir: Path | None) -> Callable[..., str]:
    """``client("pg_dump", dsn, …)`` runs a program of the server's own major version and returns what it printed."""
    with psycopg.connect(server_dsn) as connection:
        major = connection.info.server_version // 10_000
    folder = next((folder for folder in _folders(postgres_bindir) if _major(folder) == major), None)
    if folder is None:
        pytest.skip(f"there is no pg_dump {major} here")

    def run(program: str, dsn: str, *arguments: str, text: str | None = None) -> str:
        done = subprocess.run(
            [folder / program, f"--dbname={dsn}", *arguments],
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def _folders(postgres_bindir: Path | None) -> list[Path]:
    found = [postgres_bindir] if postgres_bindir is not None else []
    with contextlib.suppress(PgragError):
        found.append(find_binaries())
    on_path = shutil.which("pg_dump")
    return found + ([Path(on_path).parent] if on_path else [])


def _major(folder: Path) -> int | None:
    if not os.access(folder / "pg_dump", os.X_OK):
        return None
    done = subprocess.run([folder / "pg_dump", "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"\) (\d+)", done.stdout)
    return int(found[1]) if found else None


def fill(db: Database) -> None:
    """Two ACLs, a moved, a changed and a deleted document, a group: every sign of the log."""
    db.put("hr", "# Pay\n\nThe pay of the crew.\n\n# Key\n\nRotate TS-999.", ["group:hr"])
    db.put("all", "Rotate the key of the pump, then wait. 北京大学 снова", ["public"])
    db.put("moved", "The valve of the pump.", ["user:ana"])
    db.put("changed", "An old pump with an old key.", ["public"])
    db.put("gone", "A pump that goes.", ["public"])
    db.execute("select pgrag.add_member('group:hr', 'user:ana')")
    db.execute("select pgrag.set_readers('docs', 'moved', array['group:hr'])")
    db.put("changed", "A new pump with a key.", ["public"])
    db.execute("select pgrag.delete_document('docs', 'gone')")


def answers(db: Database) -> list[Any]:
    search = "select * from pgrag.search('\"key of\" TS-999 pump rot*', exact => true)"
    return [db.rows_as(who, search) for who in ("user:ana", "user:bo")]


def restore(client: Callable[..., str], dsn: str, dump: str) -> None:
    client("psql", dsn, "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", text=dump)


@pytest.fixture
def new(new_database: Callable[..., str]) -> str:
    return new_database()


def same(before: Database, dsn: str) -> None:
    """Assert that the restored database answers as the dumped one, then and after a write to both."""
    after = Database(dsn)
    try:
        assert after.execute("select * from pgrag.check()") == []
        assert answers(after) == answers(before)
        for db in (before, after):
            db.put("changed", "A third pump with keys.", ["group:hr"])
        assert after.execute("select * from pgrag.check()") == []
        assert [len(rows) for rows in answers(after)] == [len(rows) for rows in answers(before)]
    finally:
        after.close()


def test_a_full_dump_is_the_same_database(hybrid: Database, new: str, client: Callable[..., str]) -> None:
    fill(hybrid)
    restore(client, new, client("pg_dump", hybrid.dsn))
    assert install.upgrade(new).changed is False
    same(hybrid, new)


def test_a_full_dump_needs_no_superuser(db: Database, new: str, client: Callable[..., str]) -> None:
    fill(db)
    db.execute("grant pgrag_owner to pgrag_test_nobody with inherit false")
    try:
        owner = login_dsn(db.dsn, "pgrag_test_nobody")
        dump = client("pg_dump", owner, "--role=pgrag_owner", "--enable-row-security", "--schema=pgrag")
    finally:
        db.execute("revoke pgrag_owner from pgrag_test_nobody")
    install.init(new)
    restore(client, new, dump.replace("CREATE SCHEMA pgrag;", ""))
    same(db, new)


@pytest.mark.parametrize("how", [(), ("--disable-triggers",), ("--inserts",)])
def test_data_restored_into_a_new_installation_are_not_indexed_twice(
    db: Database, new: str, client: Callable[..., str], how: tuple[str, ...]
) -> None:
    fill(db)
    install.init(new)
    install.upgrade(new)
    with psycopg.connect(new) as connection:
        connection.execute("delete from pgrag.principal")
    restore(client, new, client("pg_dump", db.dsn, *DATA_ONLY, *how))
    same(db, new)


def test_data_with_vectors_are_restored_where_the_spaces_are(
    hybrid: Database, hybrid_template: str, new_database: Callable[..., str], client: Callable[..., str]
) -> None:
    fill(hybrid)
    new = new_database(template=hybrid_template)
    with psycopg.connect(new) as connection:
        connection.execute("delete from pgrag.principal")
    spaces = ("--exclude-table=pgrag.space", "--exclude-table=pgrag.encoder_token")
    restore(client, new, client("pg_dump", hybrid.dsn, *DATA_ONLY, *spaces, "--disable-triggers"))
    same(hybrid, new)


def test_a_restore_that_lost_the_log_is_found_and_repaired(
    db: Database, new: str, client: Callable[..., str]
) -> None:
    fill(db)
    install.init(new)
    install.upgrade(new)
    with psycopg.connect(new) as connection:
        connection.execute("delete from pgrag.principal")
    restore(client, new, client("pg_dump", db.dsn, *DATA_ONLY, "--exclude-table=pgrag.posting"))
    with psycopg.connect(new) as connection:
        assert connection.execute("select distinct finding from pgrag.check()").fetchall() == [("posting",)]
        connection.execute("select pgrag.rebuild_postings('docs')")
    same(db, new)


@pytest.mark.parametrize("role", ["pgrag_test_writer", "pgrag_test_app"])
def test_nobody_whom_the_policies_bind_can_switch_the_triggers_off(db: Database, role: str) -> None:
    fill(db)
    with db.connect(role) as connection:
        connection.execute("set row_security = off")
        for statement in (
            "update pgrag.chunk set content = 'unseen'",
            "delete from pgrag.chunk",
            "insert into pgrag.chunk overriding system value select * from pgrag.chunk",
            "select pgrag.put_document('docs', 'x', 'valve', array['public'])",
            "select pgrag.set_readers('docs', 'all', array['user:bo'])",
            "delete from pgrag.document",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)
    assert db.execute("select * from pgrag.check()") == []
