"""``pgrag embed``: lets a model answer the dense searches of a collection."""

from __future__ import annotations

from typing import Annotated

import psycopg
import typer

from pgrag.errors import translated
from pgrag.spaces import use_model
from pgrag.worker import WorkProgress
from pgrag_cli._database import DatabaseUrl, resolve_dsn
from pgrag_cli._encoder import load_encoder
from pgrag_cli.space._progress import build_progress

__all__ = ["embed"]


def embed(
    model: Annotated[
        str, typer.Argument(help="A sentence-transformers model, by name or folder.", show_default=False)
    ],
    collection: Annotated[str, typer.Option("--collection", metavar="NAME", help="Whose passages.")],
    space: Annotated[
        str | None,
        typer.Option(
            "--space", metavar="NAME", help="Name of its space; else the model's own.", show_default=False
        ),
    ] = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Let a model answer the dense searches of a collection: its space is made, filled, then activated.

    The space before answers until then; a stopped run goes on where it was. Needs the extra `models`.
    """
    encoder = load_encoder(model, space)

    def show(progress: WorkProgress) -> None:
        typer.echo(f"{progress.stored:,} vectors", err=True)

    with (
        translated(),
        psycopg.connect(resolve_dsn(database_url), autocommit=True) as connection,
        build_progress() as show_build,
    ):
        written = use_model(connection, collection, encoder, on_progress=show, on_build=show_build)
    typer.echo(
        f'Collection "{collection}" is searched by {encoder.name}; {written:,} vectors were new.', err=True
    )
    named = f" --space {space}" if space is not None else ""
    typer.echo(
        f"Next: pgrag search QUERY --as user:NAME --collection {collection} --model {model}{named}", err=True
    )
