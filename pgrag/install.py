"""Installs pgrag into a database and upgrades it: versioned tables by alembic, everything else from ``sql/``.

Two steps, since they need different rights. :func:`init` is an administrator's, once a database: extension,
roles, schema. :func:`upgrade` needs membership of ``pgrag_owner`` only and runs after every change of version.
"""

from __future__ import annotations

import hashlib
import importlib.resources
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, create_engine
from sqlalchemy.pool import NullPool

from alembic import command
from pgrag._version import __version__
from pgrag.errors import InstallError, translated

__all__ = ["InstallResult", "init", "sql_folder", "upgrade"]

OLDEST_SERVER = 16
NEWEST_SERVER = 18
# Before these, a plan that was kept for one role could serve another past row-level security (CVE-2024-10976).
OLDEST_MINORS = {16: 160_005, 17: 170_001}
OLDEST_VECTOR = (0, 8, 4)
# Shorter than deadlock_timeout's default, so that an upgrade gives way before a caller is made to.
LOCK_TIMEOUT_MS = 500
LOCK_ATTEMPTS = 200
REPEATABLE = ("functions", "triggers", "policies")

# Files that need pgvector's types say `set search_path from current`; wherever the extension was put, this finds it.
_SEARCH_PATH = """
select pg_catalog.set_config(
    'search_path', 'pg_catalog, pgrag, ' || pg_catalog.quote_ident(n.nspname) || ', pg_temp', true
)
from pg_catalog.pg_extension as e
inner join pg_catalog.pg_namespace as n on n.oid = e.extnamespace
where e.extname = 'vector'
"""

# Whatever this transaction did not create or replace is an overload or a function of an earlier release.
# pgvector may be in a schema of its own, which everyone who works here must be able to look into.
_OPEN_VECTOR_SCHEMA = """
do $$
declare
    place name;
    who name;
begin
    select n.nspname into place
    from pg_catalog.pg_extension as e
    inner join pg_catalog.pg_namespace as n on n.oid = e.extnamespace
    where e.extname = 'vector';
    foreach who in array array['pgrag_owner', 'pgrag_reader', 'pgrag_app', 'pgrag_writer'] loop
        if not pg_catalog.has_schema_privilege(who, place, 'usage') then
            execute pg_catalog.format('grant usage on schema %I to %I', place, who);
        end if;
    end loop;
end
$$
"""

# All in one statement, since an atomic body depends on the functions that it calls.
_DROP_STALE_FUNCTIONS = """
do $$
declare
    stale text;
begin
    select pg_catalog.string_agg(p.oid::regprocedure::text, ', ') into stale
    from pg_catalog.pg_proc as p
    where p.pronamespace = 'pgrag'::regnamespace and p.xmin <> pg_catalog.pg_current_xact_id()::xid;
    if stale is not null then
        execute pg_catalog.format('drop routine %s', stale);
    end if;
end
$$
"""

# Triggers and policies are made again, which takes these locks one by one; a search or a writer that comes by in
# another order would meet them in a circle.
_LOCK_TABLES = """
do $$
begin
    execute (
        select 'lock table ' || pg_catalog.string_agg(c.oid::regclass::text, ', ' order by c.oid) || ' in access exclusive mode'
        from pg_catalog.pg_class as c
        where c.relnamespace = 'pgrag'::regnamespace and c.relkind in ('r', 'p')
    );
end
$$
"""


@dataclass(frozen=True)
class InstallResult:
    """What an installation did.

    Attributes:
        version: Release of pgrag that the database is at now.
        changed: False where it was there already.
        advice: What to run afterwards, and why; for what a revision can't do in one transaction.
    """

    version: str
    changed: bool
    advice: tuple[str, ...] = ()


def _beside(packaged: str, in_checkout: str) -> Path:
    """Return a folder of the wheel, or the one of the checkout where pgrag runs from there."""
    root = Path(str(importlib.resources.files("pgrag")))
    return root / packaged if (root / packaged).is_dir() else root.parent / in_checkout


def sql_folder() -> Path:
    """Return the folder with the SQL files: ``pgrag/_sql`` in a wheel, ``sql`` in a checkout."""
    return _beside("_sql", "sql")


def init(dsn: str) -> InstallResult:
    """Prepare a database for pgrag: extension, roles and schema. Doing it twice changes nothing.

    Args:
        dsn: Connection string of an administrator: a superuser, or one who may create roles and extensions.

    Raises:
        InstallError: the server or pgvector is too old or missing, or the rights don't suffice.
        DatabaseError: the server can't be reached.
    """
    with translated(), psycopg.connect(dsn) as connection:
        _check_server(connection)
        if connection.execute("select pg_catalog.pg_is_in_recovery()").fetchone() == (True,):
            raise InstallError("this server is a standby", "Connect to its primary.")
        connection.execute(
            "select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('pgrag.init', 0))"
        )
        _check_vector(connection)
        before = connection.execute("select pg_catalog.to_regnamespace('pgrag')").fetchone()
        try:
            connection.execute((sql_folder() / "roles.sql").read_text("utf-8").encode())
            connection.execute("create schema if not exists pgrag authorization pgrag_owner")
            connection.execute(_OPEN_VECTOR_SCHEMA)
        except psycopg.errors.InsufficientPrivilege as error:
            raise InstallError(
                f"the role may not prepare the database: {error.diag.message_primary}",
                "Connect as an administrator who may create roles, or have the roles of sql/roles.sql made.",
            ) from error
    return InstallResult(__version__, before == (None,))


def upgrade(dsn: str) -> InstallResult:
    """Bring the database to this release, in one transaction, under an advisory lock.

    Any number may run at once: one works, the rest wait and find it done.

    Args:
        dsn: Connection string of a member of ``pgrag_owner``.

    Raises:
        InstallError: :func:`init` wasn't run, or the database is newer than this release.
        DatabaseError: the server can't be reached or refuses.
    """
    digest = _digest()
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(dsn), poolclass=NullPool)
    with translated(), engine.begin() as connection:
        run = _bare_cursor(connection)
        _check_server(run.connection)
        run.execute(
            "select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('pgrag.upgrade', 0))"
        )
        if run.execute("select pg_catalog.to_regnamespace('pgrag')").fetchone() == (None,):
            raise InstallError(
                "the database isn't prepared: it has no schema pgrag", "As an administrator: pgrag init"
            )
        _check_vector(run.connection)
        try:
            run.execute("set local role pgrag_owner")
        except (psycopg.errors.InsufficientPrivilege, psycopg.errors.InvalidParameterValue) as error:
            raise InstallError(
                "only a member of pgrag_owner may upgrade",
                "As an administrator: grant pgrag_owner to NAME, or pgrag init",
            ) from error
        run.execute(_SEARCH_PATH)
        # Files come in the order of their names, so a body may name a function of a later file; tests run them all.
        run.execute("set local check_function_bodies = off")
        config = _alembic(connection)
        advice: tuple[str, ...] = ()
        if run.execute("select pg_catalog.to_regclass('pgrag.installation')").fetchone() == (None,):
            for file in sorted((sql_folder() / "tables").glob("*.sql")):
                _run_file(run, file)
            command.stamp(config, "head")
        else:
            _refuse_newer(run, config)
            run.execute("select digest = %s and version = %s from pgrag.installation", (digest, __version__))
            if run.fetchone() == (True,):
                return InstallResult(__version__, False)
            _lock_tables(run)
            advice = _advice(run, config)
            command.upgrade(config, "head")
        for file in _repeatable_files():
            _run_file(run, file)
        run.execute(_DROP_STALE_FUNCTIONS)
        _run_file(run, sql_folder() / "grants.sql")
        run.execute("delete from pgrag.installation")
        run.execute("insert into pgrag.installation (version, digest) values (%s, %s)", (__version__, digest))
    return InstallResult(__version__, True, advice)


def _lock_tables(cursor: psycopg.Cursor[tuple[Any, ...]]) -> None:
    """Lock every table at once, in attempts too short for those at work to wait for long, or in a circle."""
    cursor.execute("savepoint unlocked")
    for attempt in range(LOCK_ATTEMPTS):
        try:
            cursor.execute(
                "select pg_catalog.current_setting('lock_timeout'),"
                " pg_catalog.set_config('lock_timeout', %s, true)",
                (f"{LOCK_TIMEOUT_MS}ms",),
            )
            before = cursor.fetchone() or ("0",)
            cursor.execute(_LOCK_TABLES)
            cursor.execute("select pg_catalog.set_config('lock_timeout', %s, true)", (before[0],))
            cursor.execute("release savepoint unlocked")
            return
        except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
            cursor.execute("rollback to savepoint unlocked")
            time.sleep(LOCK_TIMEOUT_MS / 1000 * min(attempt, 2))
    raise InstallError(
        "the tables are in use: some transaction holds them all the time",
        "End long transactions, such as a backup or a forgotten session (see pg_stat_activity), then: pgrag upgrade",
    )


def _bare_cursor(connection: Connection) -> psycopg.Cursor[tuple[Any, ...]]:
    """Return psycopg's own cursor: SQLAlchemy would read ``:name`` and ``%`` in the files as parameters."""
    cursor: psycopg.Cursor[tuple[Any, ...]] = connection.connection.cursor()  # type: ignore[assignment]
    return cursor


def _run_file(cursor: psycopg.Cursor[tuple[Any, ...]], file: Path) -> None:
    try:
        cursor.execute(file.read_text("utf-8").encode())
    except psycopg.Error as error:
        error.add_note(f"in {file.relative_to(sql_folder())}")
        raise


def _repeatable_files() -> Iterator[Path]:
    for folder in REPEATABLE:
        yield from sorted((sql_folder() / folder).rglob("*.sql"), key=lambda file: file.as_posix().encode())


def _digest() -> str:
    """Return the sha256, in hex, of every repeatable file with its name."""
    digest = hashlib.sha256()
    for file in (*_repeatable_files(), sql_folder() / "grants.sql"):
        digest.update(file.relative_to(sql_folder()).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def _alembic(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(_beside("_alembic", "alembic")).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def _refuse_newer(cursor: psycopg.Cursor[tuple[Any, ...]], config: Config) -> None:
    cursor.execute("select version_num from pgrag.alembic_version")
    for (revision,) in cursor.fetchall():
        try:
            ScriptDirectory.from_config(config).get_revision(revision)
        except CommandError as error:
            raise InstallError(
                f"the database is newer than pgrag {__version__}: it is at revision {revision}",
                "Upgrade the package: pip install --upgrade pgrag-rls",
            ) from error


def _advice(cursor: psycopg.Cursor[tuple[Any, ...]], config: Config) -> tuple[str, ...]:
    """Return what the revisions say that the database doesn't have yet, the oldest first."""
    cursor.execute("select version_num from pgrag.alembic_version")
    scripts = ScriptDirectory.from_config(config)
    missing = [each for (at,) in cursor.fetchall() for each in scripts.iterate_revisions("head", at)]
    return tuple(each.module.advice for each in reversed(missing) if hasattr(each.module, "advice"))


def _check_server(connection: psycopg.Connection[Any]) -> None:
    major = connection.info.server_version // 10_000
    if major < OLDEST_SERVER:
        raise InstallError(
            f"pgrag needs PostgreSQL {OLDEST_SERVER} or newer, this server is {major}",
            f"Upgrade the server; {OLDEST_SERVER} to {NEWEST_SERVER} are supported.",
        )
    if connection.info.server_version < (oldest := OLDEST_MINORS.get(major, 0)):
        raise InstallError(
            f"PostgreSQL {major}.{connection.info.server_version % 10_000} may use one role's plan for another"
            " (CVE-2024-10976), and row-level security fails",
            f"Upgrade the server to {major}.{oldest % 10_000} or a later {major}.",
        )


def _check_vector(connection: psycopg.Connection[Any]) -> None:
    """Create the extension if need be, and refuse a pgvector that is missing or known to corrupt indexes."""
    needed = ".".join(map(str, OLDEST_VECTOR))
    row = connection.execute(
        "select installed_version, default_version from pg_catalog.pg_available_extensions where name = 'vector'"
    ).fetchone()
    if row is None:
        raise InstallError(
            "this server has no pgvector",
            f"Install pgvector {needed} or newer on the server, or use: pgrag up",
        )
    if row[0] is None:
        try:
            connection.execute("create extension if not exists vector")
        except psycopg.errors.InsufficientPrivilege as error:
            raise InstallError(
                "the role may not create extensions", "As an administrator: create extension vector"
            ) from error
    found = row[0] or row[1]
    if tuple(int(part) for part in re.findall(r"\d+", found)[:3]) < OLDEST_VECTOR:
        raise InstallError(
            f"pgrag needs pgvector {needed} or newer, this database has {found}: earlier ones corrupt HNSW indexes",
            "Install a newer pgvector, then: alter extension vector update",
        )
    schema, open_to_all = connection.execute(
        "select n.nspname, pg_catalog.has_schema_privilege('public', n.oid, 'create')"
        " from pg_catalog.pg_extension as e inner join pg_catalog.pg_namespace as n on n.oid = e.extnamespace"
        " where e.extname = 'vector'"
    ).fetchone() or ("?", False)
    if open_to_all:
        # Functions of the owner look there for pgvector's operators: whoever may create could slip in their own.
        raise InstallError(
            f'anybody may create functions in the schema "{schema}", where pgvector is',
            f"revoke create on schema {schema} from public",
        )
