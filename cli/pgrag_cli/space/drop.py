"""``pgrag space drop``: deletes a space for good."""

from __future__ import annotations

import psycopg
import typer

from pgrag.errors import translated
from pgrag.spaces import drop_space
from pgrag_cli._database import DatabaseUrl, resolve_dsn
from pgrag_cli.space._words import SpaceName

__all__ = ["drop"]


def drop(space: SpaceName, database_url: DatabaseUrl = None) -> None:
    """Delete a space that is retired, or never was active, for good: vectors, token vectors and passport."""
    with translated(), psycopg.connect(resolve_dsn(database_url), autocommit=True) as connection:
        drop_space(connection, space)
    typer.echo(f'Space "{space}" is deleted.', err=True)
