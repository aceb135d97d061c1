"""``pgrag embed``: lets a model answer the dense searches of a collection."""

from __future__ import annotations

from typing import Annotated

import psycopg
import typer

from pgrag.change import change_model
from pgrag.errors import translated
from pgrag_cli._change import change_progress
from pgrag_cli._database import DatabaseUrl, resolve_dsn
from pgrag_cli._encoder import MODEL_HELP, load_encoder
from pgrag_cli._signals import stop_signals

__all__ = ["embed"]


def embed(
    model: Annotated[str, typer.Argument(help=f"{MODEL_HELP}.", show_default=False)],
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

    As `pgrag reindex --space` without a gate: the space before answers until then, and a stopped run goes on where it was.

    A folder with an .onnx file needs the extra `onnx`, an endpoint `endpoint`, any other model `models`; a static encoder none.
    """
    encoder = load_encoder(model, space)
    with (
        translated(),
        psycopg.connect(resolve_dsn(database_url), autocommit=True) as connection,
        stop_signals() as wait,
        change_progress() as show,
    ):
        done = change_model(
            connection,
            collection,
            encoder,
            judge=False,
            wait=wait,
            on_progress=show,
            on_failure=lambda chunk_id, reason: typer.echo(f"chunk {chunk_id}: {reason}", err=True),
        )
    typer.echo(
        f'Collection "{collection}" is searched by {encoder.name}; {done.written:,} vectors were new.',
        err=True,
    )
    named = f" --space {space}" if space is not None else ""
    typer.echo(
        f"Next: pgrag search QUERY --as user:NAME --collection {collection} --model {model}{named}", err=True
    )
