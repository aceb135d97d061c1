"""The scripts of ``docker/`` as plain shell, against the server of the tests."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from pgrag.server import EmbeddedServer

DOCKER = Path(__file__).resolve().parents[2] / "docker"
LOGINS = {"pgrag_upgrader": "pgrag_owner", "pgrag_worker": "pgrag_writer", "pgrag_api": "pgrag_app"}
AWKWARD = r"a:b\c'd e$f"

# Stands where `pgrag` would: prints what it was given, and what it finds of the database.
PGRAG = """#!{python}
import os, sys, psycopg
print(*sys.argv[1:])
for name in ("PGPASSWORD", "PGPASSFILE", "PGRAG_DATABASE_URL"):
    print(name, os.environ.get(name))
if "PGPASSFILE" in os.environ:
    file = os.environ["PGPASSFILE"]
    print(oct(os.stat(file).st_mode & 0o777), open(file).read(), end="")
if sys.argv[1:2] == ["database"]:
    print(psycopg.connect(os.environ["PGRAG_DATABASE_URL"]).info.dbname)
"""


@pytest.fixture
def shell(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """``shell(script, *arguments, **environment)`` runs a script with nothing else in its environment."""
    commands = tmp_path / "bin"
    commands.mkdir()
    (commands / "pgrag").write_text(PGRAG.format(python=sys.executable))
    (commands / "pgrag").chmod(0o755)

    def run(script: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        path = f"{commands}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        given = {"PATH": path, "TMPDIR": str(tmp_path), "PGRAG_WAIT_TRIES": "2", "PGRAG_WAIT_SECONDS": "0"}
        return subprocess.run(
            ["sh", str(DOCKER / script), *arguments],
            env=given | environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )

    return run


def libpq(dsn: str) -> dict[str, str]:
    """The same connection as libpq's environment."""
    names = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "dbname": "PGDATABASE"}
    return {names[key]: str(value) for key, value in conninfo_to_dict(dsn).items() if key in names}


# entrypoint.sh


def test_a_url_is_used_as_it_is(shell: Any, new_database: Any) -> None:
    dsn = new_database()
    done = shell("entrypoint.sh", "database", PGRAG_DATABASE_URL=dsn)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == conninfo_to_dict(dsn)["dbname"]


def test_without_a_url_libpqs_variables_say_where_the_database_is(shell: Any, new_database: Any) -> None:
    dsn = new_database()
    done = shell("entrypoint.sh", "database", **libpq(dsn))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == conninfo_to_dict(dsn)["dbname"]


def test_arguments_arrive_unchanged(shell: Any, server_dsn: str) -> None:
    done = shell("entrypoint.sh", "search", "two words", "*", PGRAG_DATABASE_URL=server_dsn)
    assert done.stdout.splitlines()[0] == "search two words *"


def test_the_password_is_in_a_private_file_and_in_no_variable(
    shell: Any, server_dsn: str, tmp_path: Path
) -> None:
    secret = tmp_path / "password"
    secret.write_text(AWKWARD + "\n")
    done = shell("entrypoint.sh", "worker", PGRAG_PASSWORD_FILE=str(secret), **libpq(server_dsn))
    _, password, passfile, url, line = done.stdout.splitlines()
    assert password == "PGPASSWORD None"
    assert passfile.startswith(f"PGPASSFILE {tmp_path}/pgpass.")
    assert url == "PGRAG_DATABASE_URL postgresql://"
    assert line == r"0o600 *:*:*:*:a\:b\\c'd e$f"


def test_a_password_file_that_cannot_be_read_is_named(shell: Any, server_dsn: str) -> None:
    done = shell("entrypoint.sh", "worker", PGRAG_PASSWORD_FILE="/nowhere", PGRAG_DATABASE_URL=server_dsn)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: the password file /nowhere can't be read")


def test_without_any_database_it_says_what_to_set(shell: Any) -> None:
    done = shell("entrypoint.sh", "worker")
    assert done.returncode == 1
    assert done.stderr.startswith("Error: neither PGRAG_DATABASE_URL nor PGHOST and PGUSER are set.")


def test_it_gives_up_after_so_many_tries_and_says_why(shell: Any, tmp_path: Path) -> None:
    done = shell("entrypoint.sh", "worker", PGHOST=str(tmp_path), PGUSER="nobody", PGRAG_WAIT_TRIES="3")
    assert done.returncode == 1
    assert done.stderr.startswith("Error: no database answered, asked 3 times: ")
    assert "No such file or directory" in done.stderr.splitlines()[0]


def test_it_waits_for_a_database_that_comes_later(shell: Any, server_dsn: str, tmp_path: Path) -> None:
    # The first try meets nothing and makes the database's place known.
    later = tmp_path / "later"
    waiting = tmp_path / "bin" / "sleep"
    waiting.write_text(f"#!/bin/sh\nln -sfn '{libpq(server_dsn)['PGHOST']}' '{later}'\n")
    waiting.chmod(0o755)
    done = shell("entrypoint.sh", "database", **(libpq(server_dsn) | {"PGHOST": str(later)}))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("arguments", [[], ["--version"]])
def test_help_and_version_need_no_database(shell: Any, arguments: list[str]) -> None:
    done = shell("entrypoint.sh", *arguments)
    assert done.returncode == 0
    assert done.stdout.splitlines()[0] == " ".join(arguments)


# make-secrets.sh


def test_secrets_are_random_and_in_a_private_folder(shell: Any, tmp_path: Path) -> None:
    folder = tmp_path / "with a space" / "secrets"
    assert shell("make-secrets.sh", str(folder)).returncode == 0
    passwords = {file.name: file.read_text() for file in folder.iterdir()}
    assert set(passwords) == {f"{name}_password" for name in ("admin", "upgrader", "worker", "api")}
    assert {len(password) for password in passwords.values()} == {48}
    assert len(set(passwords.values())) == 4
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_secrets_that_exist_are_kept(shell: Any, tmp_path: Path) -> None:
    (tmp_path / "api_password").write_text("mine")
    shell("make-secrets.sh", str(tmp_path))
    assert (tmp_path / "api_password").read_text() == "mine"


# init-roles.sh


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    folder = tmp_path / "secrets"
    folder.mkdir()
    for name in LOGINS:
        (folder / f"{name.removeprefix('pgrag_')}_password").write_text(AWKWARD)
    return folder


@pytest.fixture
def as_administrator(
    dsn: str, shell: Any, secrets: Path, tmp_path: Path
) -> Iterator[Callable[[], subprocess.CompletedProcess[str]]]:
    """Runs ``init-roles.sh`` on a database with pgrag; the roles go afterwards."""
    if shutil.which("psql") is None:
        (tmp_path / "bin" / "psql").symlink_to(EmbeddedServer().binary("psql"))
    yield lambda: shell("init-roles.sh", PGRAG_SECRETS=str(secrets), **libpq(dsn))
    with psycopg.connect(dsn, autocommit=True) as admin:
        for name in LOGINS:
            admin.execute(sql.SQL("drop role if exists {}").format(sql.Identifier(name)))


def is_password(verifier: str, password: str) -> bool:
    """Whether a SCRAM-SHA-256 verifier of PostgreSQL was made from this password (RFC 5802)."""
    iterations, salt, keys = re.fullmatch(r"SCRAM-SHA-256\$(\d+):(.+)\$(.+):.+", verifier).groups()  # type: ignore[union-attr]
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), base64.b64decode(salt), int(iterations))
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    return hmac.compare_digest(stored, base64.b64decode(keys))


def test_the_logins_are_members_of_one_role_each_and_no_superusers(as_administrator: Any, dsn: str) -> None:
    done = as_administrator()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    query = (
        "select r.rolname,"
        " (select array_agg(m.roleid::regrole::text) from pg_auth_members as m where m.member = r.oid),"
        " r.rolsuper or r.rolcreaterole or r.rolcreatedb or r.rolreplication or r.rolbypassrls, r.rolcanlogin"
        " from pg_roles as r where r.rolname = any(%s)"
    )
    with psycopg.connect(dsn) as admin:
        rows = admin.execute(query, (list(LOGINS),)).fetchall()
    assert sorted(rows) == sorted((name, [granted], False, True) for name, granted in LOGINS.items())


def test_a_password_arrives_whole_and_is_stored_as_a_verifier(as_administrator: Any, dsn: str) -> None:
    as_administrator()
    with psycopg.connect(dsn) as admin:
        rows = admin.execute(
            "select rolpassword from pg_authid where rolname = any(%s)", (list(LOGINS),)
        ).fetchall()
    assert [is_password(verifier, AWKWARD) for (verifier,) in rows] == [True] * len(LOGINS)


def test_run_again_it_changes_the_passwords(as_administrator: Any, dsn: str, secrets: Path) -> None:
    as_administrator()
    (secrets / "api_password").write_text("another")
    assert as_administrator().returncode == 0
    with psycopg.connect(dsn) as admin:
        row = admin.execute("select rolpassword from pg_authid where rolname = 'pgrag_api'").fetchone()
    assert row is not None
    assert is_password(row[0], "another")


def test_a_secret_that_is_missing_is_named_and_no_role_is_made(
    as_administrator: Any, dsn: str, secrets: Path
) -> None:
    (secrets / "worker_password").unlink()
    done = as_administrator()
    assert done.returncode == 1
    assert done.stderr.startswith(f"Error: {secrets}/worker_password is empty or missing.")
    with psycopg.connect(dsn) as admin:
        assert (
            admin.execute("select from pg_roles where rolname = any(%s)", (list(LOGINS),)).fetchone() is None
        )


# The services of compose.yaml, in their order.


def test_from_an_empty_database_to_a_worker_that_is_no_superuser(
    roles: None, new_database: Any, shell: Any, as_administrator: Any, secrets: Path, tmp_path: Path
) -> None:
    (tmp_path / "bin" / "pgrag").unlink()  # the next one on PATH is the real one
    database = libpq(new_database())
    steps = [
        ("entrypoint.sh", "init", database),
        ("init-roles.sh", None, database | {"PGRAG_SECRETS": str(secrets)}),
        ("entrypoint.sh", "upgrade", database | {"PGUSER": "pgrag_upgrader"}),
        ("entrypoint.sh", "worker", database | {"PGUSER": "pgrag_worker"}),
    ]
    for script, command, environment in steps:
        arguments = {None: [], "worker": ["worker", "--once"]}.get(command, [command])
        done = shell(script, *arguments, **environment)
        assert done.returncode == 0, (command, done.stderr)
    assert done.stdout == "0 vectors stored, 0 attempts failed, 0 chunks had changed\n"
