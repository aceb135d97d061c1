"""Fixtures with pgrag installed: a fresh database a test, and connections as the roles that matter.

Imported by ``tests/conftest.py``. Owner and superuser prove nothing about access, so the role fixtures connect with
session and current user set to a login role that is a member of one pgrag role only.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from psycopg import sql

from pgrag.install import init, upgrade
from pgrag.spaces import load_static_space

__all__ = [
    "Database",
    "db",
    "dsn",
    "hybrid",
    "hybrid_dsn",
    "hybrid_template",
    "installed_template",
    "login_dsn",
    "roles",
]

Row = tuple[Any, ...]

_BATCH = "00000000-0000-0000-0000-000000000001"
_COPY = (
    "copy pgrag.staging (batch_id, uri, metadata, content_hash, readers, content, ordinal, char_start, char_end,"
    " context, token_count) from stdin"
)

# Login roles, and the pgrag role that each is a member of.
LOGINS = {
    "pgrag_test_app": "pgrag_app",
    "pgrag_test_reader": "pgrag_reader",
    "pgrag_test_writer": "pgrag_writer",
    "pgrag_test_nobody": None,
}


def login_dsn(dsn: str, role: str) -> str:
    """Return the DSN by which a role logs in to the same database."""
    return psycopg.conninfo.make_conninfo(dsn, user=role, password="pgrag_test")


class Database:
    """A database with pgrag in it, and the ways to connect."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self.admin = psycopg.connect(dsn, autocommit=True)
        self._connections: list[psycopg.Connection[Row]] = [self.admin]

    def connect(self, role: str | None = None) -> psycopg.Connection[Row]:
        """Return a new autocommit connection, as the superuser or as one of ``LOGINS``."""
        connection = psycopg.connect(self.dsn, autocommit=True)
        self._connections.append(connection)
        if role is not None:
            connection.execute(sql.SQL("set session authorization {}").format(sql.Identifier(role)))
        return connection

    def execute(self, query: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """Run one statement as the superuser and return its rows."""
        cursor = self.admin.execute(query, parameters or None)
        return cursor.fetchall() if cursor.description else []

    def value(self, query: str, parameters: Sequence[Any] = ()) -> Any:
        """Return the first column of the first row, as the superuser."""
        return self.execute(query, parameters)[0][0]

    @contextmanager
    def acting(self, *principals: str, role: str = "pgrag_test_app") -> Iterator[psycopg.Connection[Row]]:
        """Yield a transaction of an application that acts for these principals."""
        connection = self.connect(role)
        with connection.transaction():
            connection.execute("select pgrag.act_as(variadic %s::text[])", (list(principals),))
            yield connection
        connection.close()

    def rows_as(
        self, principals: str | Sequence[str], query: str, parameters: Sequence[Any] = ()
    ) -> list[Row]:
        """Return the rows of one statement that an application runs for these principals."""
        names = [principals] if isinstance(principals, str) else principals
        with self.acting(*names) as connection:
            return connection.execute(query, parameters or None).fetchall()

    def put(self, uri: str, content: str, readers: Sequence[str] = ("public",), **more: Any) -> int:
        """Put a document into the collection ``docs``, as the writer role, and return its id."""
        arguments = {"collection": "docs", "uri": uri, "content": content, "readers": list(readers)} | more
        names = sql.SQL(", ").join(
            sql.SQL("{} => {}").format(sql.Identifier(name), sql.Placeholder(name)) for name in arguments
        )
        with self.connect("pgrag_test_writer") as connection:
            row = connection.execute(
                sql.SQL("select pgrag.put_document({})").format(names), arguments
            ).fetchone()
        assert row is not None
        return int(row[0])

    def load(
        self,
        texts: Sequence[str],
        *,
        readers: Callable[[int], Sequence[str]] = lambda _: ["public"],
        metadata: Callable[[int], dict[str, Any]] = lambda _: {},
    ) -> None:
        """Put texts into ``docs`` in bulk, each as one document of one chunk; its uri is its number in 6 digits."""
        for first in range(0, len(texts), 10_000):
            with self.admin.transaction(), self.admin.cursor() as cursor:
                with cursor.copy(_COPY) as copy:
                    for n, text in enumerate(texts[first : first + 10_000], first):
                        about = (json.dumps(metadata(n)), b"", list(readers(n)))
                        copy.write_row((_BATCH, f"{n:06}", *about, text, *[None] * 5))
                        copy.write_row((_BATCH, f"{n:06}", None, None, None, text, 0, 0, len(text), "", 1))
                cursor.execute("select pgrag.load_staged('docs', %s)", (_BATCH,))

    def close(self) -> None:
        """Close every connection that was made here."""
        for connection in self._connections:
            connection.close()


@pytest.fixture(scope="session")
def roles(server_dsn: str) -> Iterator[None]:
    """The login roles of the tests; they go at the end of the session, after the databases."""
    with psycopg.connect(server_dsn, autocommit=True) as admin:
        admin.execute("select 1")
        _make_roles(admin)
        yield
        for name in LOGINS:
            admin.execute(sql.SQL("drop role if exists {}").format(sql.Identifier(name)))


def _make_roles(admin: psycopg.Connection[Row]) -> None:
    for name in LOGINS:
        if admin.execute("select from pg_roles where rolname = %s", (name,)).fetchone() is None:
            admin.execute(sql.SQL("create role {} login password 'pgrag_test'").format(sql.Identifier(name)))


def _grant_roles(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as admin:
        for name, granted in LOGINS.items():
            if granted is not None:
                admin.execute(sql.SQL("grant {} to {}").format(sql.Identifier(granted), sql.Identifier(name)))


def _name(dsn: str) -> str:
    with psycopg.connect(dsn) as connection:
        return connection.info.dbname


@pytest.fixture(scope="session")
def installed_template(roles: None, session_database: Callable[..., str]) -> str:
    """Name of a database with pgrag installed and nothing in it."""
    dsn = session_database()
    init(dsn)
    upgrade(dsn)
    _grant_roles(dsn)
    return _name(dsn)


@pytest.fixture(scope="session")
def hybrid_template(installed_template: str, session_database: Callable[..., str]) -> str:
    """Name of a database with pgrag and the static space installed."""
    from pgrag.embed import StaticEncoder

    dsn = session_database(template=installed_template)
    load_static_space(dsn, StaticEncoder.shipped())
    return _name(dsn)


@pytest.fixture
def dsn(installed_template: str, new_database: Callable[..., str]) -> str:
    """DSN of a superuser, to a fresh database with pgrag installed."""
    return new_database(template=installed_template)


@pytest.fixture
def db(dsn: str) -> Iterator[Database]:
    """A fresh database with pgrag and an empty collection ``docs``; search is lexical."""
    database = Database(dsn)
    database.execute("select pgrag.create_collection('docs')")
    yield database
    database.close()


@pytest.fixture
def hybrid_dsn(hybrid_template: str, new_database: Callable[..., str]) -> str:
    """DSN of a superuser, to a fresh database with pgrag and the static space."""
    return new_database(template=hybrid_template)


@pytest.fixture
def hybrid(hybrid_dsn: str) -> Iterator[Database]:
    """A fresh database with pgrag, the static space and an empty collection ``docs``; search is hybrid."""
    database = Database(hybrid_dsn)
    database.execute("select pgrag.create_collection('docs')")
    yield database
    database.close()
