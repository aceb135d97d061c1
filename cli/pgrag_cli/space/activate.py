"""``pgrag space activate``: lets a space answer the searches of a collection."""

from __future__ import annotations

from typing import Annotated

import psycopg
import typer

from pgrag.errors import translated
from pgrag.spaces import activate_space
from pgrag_cli._database import DatabaseUrl, resolve_dsn
from pgrag_cli.space._words import SpaceName

__all__ = ["activate"]


def activate(
    space: SpaceName,
    collection: Annotated[str, typer.Option("--collection", metavar="NAME", help="Whose searches.")],
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Though it lacks vectors: words alone find those passages until it has them."
        ),
    ] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Let a space answer the dense searches of a collection, from the next one on; going back is the same call."""
    with translated(), psycopg.connect(resolve_dsn(database_url), autocommit=True) as connection:
        activate_space(connection, collection, space, force=force)
    typer.echo(f'Collection "{collection}" is searched by {space}.', err=True)
