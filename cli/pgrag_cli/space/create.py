"""``pgrag space create``: makes the space of a model."""

from __future__ import annotations

from typing import Annotated

import psycopg
import typer

from pgrag.errors import translated
from pgrag.spaces import create_space, find_space
from pgrag_cli._database import DatabaseUrl, resolve_dsn
from pgrag_cli._encoder import MODEL_HELP, load_encoder
from pgrag_cli.space._words import SpaceName

__all__ = ["create"]


def create(
    space: SpaceName,
    model: Annotated[
        str, typer.Option("--model", metavar="MODEL", show_default=False, help=f"{MODEL_HELP}.")
    ],
    collection: Annotated[
        list[str] | None,
        typer.Option(
            "--collection",
            metavar="NAME",
            show_default=False,
            help="Let it hold the passages of this one; repeat it.",
        ),
    ] = None,
    precision: Annotated[
        str,
        typer.Option(
            "--precision",
            metavar="KIND",
            help="vector (4 bytes a number), halfvec (2), or bit: halfvec, found by a bit a number.",
        ),
    ] = "halfvec",
    rotate: Annotated[
        bool, typer.Option("--rotate", help="Take the bits after a random rotation; with --precision bit.")
    ] = False,
    dimension: Annotated[
        int | None,
        typer.Option(
            "--dimension",
            metavar="N",
            show_default=False,
            help="Keep the first N numbers, which the model must be trained for; else all.",
        ),
    ] = None,
    index: Annotated[
        str, typer.Option("--index", metavar="KIND", help="hnsw, ivfflat or none: exact.")
    ] = "hnsw",
    m: Annotated[
        int | None, typer.Option("--m", show_default=False, help="hnsw: links an element; else 16.")
    ] = None,
    ef_construction: Annotated[
        int | None,
        typer.Option("--ef-construction", show_default=False, help="hnsw: candidates a link; else 64."),
    ] = None,
    lists: Annotated[
        int | None,
        typer.Option("--lists", show_default=False, help="ivfflat: lists; else one for 1,000 vectors."),
    ] = None,
    with_index: Annotated[
        bool,
        typer.Option(
            "--index-now/--no-index",
            help="Begin the index while there is nothing in it, or leave it to pgrag space build, which is quicker"
            " for many vectors; ivfflat and bit are always left to that.",
        ),
    ] = True,
    database_url: DatabaseUrl = None,
) -> None:
    """Make the space of a model, and queue the passages of its collections for the workers."""
    encoder = load_encoder(model, space)
    given = {"m": m, "ef_construction": ef_construction, "lists": lists}
    with translated(), psycopg.connect(resolve_dsn(database_url), autocommit=True) as connection:
        queued = create_space(
            connection,
            encoder,
            collections=collection or (),
            precision=precision,
            rotate=rotate,
            dimension=dimension,
            index=index,
            index_options={name: value for name, value in given.items() if value is not None},
            with_index=None if with_index else False,
        )
        unbuilt = find_space(connection, space).index_state == "missing"
    typer.echo(f'Space "{space}" is made; {queued:,} passages are queued for it.', err=True)
    typer.echo(f"Next: pgrag worker --once --space {space} --model {model}", err=True)
    if unbuilt:
        typer.echo(f"Then: pgrag space build {space}", err=True)
