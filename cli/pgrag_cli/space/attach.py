"""``pgrag space attach``: lets a space hold the passages of a collection."""

from __future__ import annotations

from typing import Annotated

import psycopg
import typer

from pgrag.errors import translated
from pgrag.spaces import attach_space
from pgrag_cli._database import DatabaseUrl, resolve_dsn
from pgrag_cli.space._words import SpaceName

__all__ = ["attach"]


def attach(
    space: SpaceName,
    collection: Annotated[str, typer.Option("--collection", metavar="NAME", help="Whose passages.")],
    database_url: DatabaseUrl = None,
) -> None:
    """Let a space hold the passages of a collection too: they are queued for the workers, and searches don't change."""
    with translated(), psycopg.connect(resolve_dsn(database_url), autocommit=True) as connection:
        queued = attach_space(connection, collection, space)
    typer.echo(
        f'Space "{space}" holds collection "{collection}"; {queued:,} passages are queued for it.', err=True
    )
    typer.echo(f"Then, to let it answer: pgrag space activate {space} --collection {collection}", err=True)
