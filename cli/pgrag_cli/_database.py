"""Serves every command: which database to use, and how to speak of it without giving its password away."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated

import psycopg
import typer
from psycopg.conninfo import conninfo_to_dict

from pgrag.errors import PgragError
from pgrag.server import EmbeddedServer

__all__ = ["DATABASE_URL", "DataDirectory", "DatabaseUrl", "redact", "resolve_dsn"]

DATABASE_URL = "PGRAG_DATABASE_URL"

DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database-url",
        metavar="URL",
        show_default=False,
        help=f"The database; else ${DATABASE_URL}, else the server that `pgrag up` started.",
    ),
]
DataDirectory = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        show_default=False,
        help="The embedded server's data directory; else $PGRAG_DATA, else one for this user.",
    ),
]

_HIDDEN = "***"
_PASSWORD_IN_URL = re.compile(r"(\b[a-z][a-z0-9+]*://[^\s:/?#@]*:)\S*@", re.IGNORECASE)
_PASSWORD_AS_WORD = re.compile(r"(\b\w*password\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&'\"]+)", re.IGNORECASE)


def resolve_dsn(option: str | None) -> str:
    """Return the DSN of the database that a command should use.

    Args:
        option: What ``--database-url`` said; it wins over ``PGRAG_DATABASE_URL``, and that over the running
            embedded server.

    Raises:
        PgragError: none of the three is there, or the one that is can't be read.
    """
    given = option or os.environ.get(DATABASE_URL)
    if given:
        try:
            conninfo_to_dict(given)
        except psycopg.ProgrammingError as error:
            # libpq quotes what it can't read, and that may hold a password.
            source = "--database-url" if option else DATABASE_URL
            raise PgragError(
                f"{source} isn't a connection string.", "Write it as postgresql://user@host:5432/database"
            ) from error
        return given
    status = EmbeddedServer().status()
    if status.running:
        return status.dsn
    raise PgragError(
        f"no database: neither --database-url nor {DATABASE_URL} is set, and no embedded server runs.",
        "pgrag up, and the export line that it prints",
    )


def redact(text: str) -> str:
    """Return ``text``, a DSN or a message around one, without passwords; rather too much goes."""
    return _PASSWORD_AS_WORD.sub(rf"\1{_HIDDEN}", _PASSWORD_IN_URL.sub(rf"\1{_HIDDEN}@", text))
