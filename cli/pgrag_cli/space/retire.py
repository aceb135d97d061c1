"""``pgrag space retire``: takes a space out of use."""

from __future__ import annotations

import psycopg
import typer

from pgrag.errors import translated
from pgrag.spaces import retire_space
from pgrag_cli._database import DatabaseUrl, resolve_dsn
from pgrag_cli.space._words import SpaceName

__all__ = ["retire"]


def retire(space: SpaceName, database_url: DatabaseUrl = None) -> None:
    """Take a space that answers nothing out of use: it gets no new vectors, and keeps what it has."""
    with translated(), psycopg.connect(resolve_dsn(database_url), autocommit=True) as connection:
        changed = retire_space(connection, space)
    typer.echo(
        f'Space "{space}" {"is" if changed else "was"} retired{"" if changed else " already"}.', err=True
    )
    typer.echo(f"To give its room back: pgrag space drop {space}", err=True)
