"""``pgrag create-collection``: makes a place for documents."""

from __future__ import annotations

from typing import Annotated

import psycopg
import typer

from pgrag.errors import translated
from pgrag.index import create_collection as make
from pgrag_cli._database import DatabaseUrl, resolve_dsn

__all__ = ["create_collection"]


def create_collection(
    name: Annotated[str, typer.Argument(help="Its name.", show_default=False)],
    analyzer: Annotated[
        str, typer.Option(help="Text search configuration: english, german, simple …")
    ] = "english",
    chunk_tokens: Annotated[int, typer.Option(help="Most tokens in a chunk.", min=16, max=8192)] = 256,
    space: Annotated[
        str | None,
        typer.Option(help="Embedding space; else the shipped one, where it is loaded.", show_default=False),
    ] = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Make a collection, the place where documents are put."""
    with translated(), psycopg.connect(resolve_dsn(database_url)) as connection:
        make(connection, name, analyzer=analyzer, chunk_tokens=chunk_tokens, space=space)
    typer.echo(
        f'Collection "{name}" is ready. Next: pgrag ingest PATH --collection {name} --reader group:NAME',
        err=True,
    )
