"""``pgrag space create``: makes the space of a model."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import psycopg
import typer

from pgrag.errors import translated
from pgrag.spaces import create_space, find_space
from pgrag_cli._database import DatabaseUrl, resolve_dsn
from pgrag_cli._encoder import MODEL_HELP, load_encoder
from pgrag_cli.space._words import SpaceName

__all__ = ["create"]


class Precision(StrEnum):
    """How vectors are kept."""

    vector = "vector"
    halfvec = "halfvec"
    bit = "bit"


class Index(StrEnum):
    """Which approximate index there is."""

    hnsw = "hnsw"
    ivfflat = "ivfflat"
    none = "none"


# What each index has, as it is typed.
_OPTIONS = {Index.hnsw: ("--m", "--ef-construction"), Index.ivfflat: ("--lists",), Index.none: ()}


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
        Precision,
        typer.Option(
            "--precision",
            help="vector (4 bytes a number), halfvec (2), or bit: halfvec, found by a bit a number.",
        ),
    ] = Precision.halfvec,
    rotate: Annotated[
        bool, typer.Option("--rotate", help="Take the bits after a random rotation; with --precision bit.")
    ] = False,
    dimension: Annotated[
        int | None,
        typer.Option(
            "--dimension",
            metavar="N",
            min=1,
            max=4000,
            show_default=False,
            help="Keep the first N numbers, which the model must be trained for; else all.",
        ),
    ] = None,
    index: Annotated[Index, typer.Option("--index", help="hnsw, ivfflat, or none: exact.")] = Index.hnsw,
    m: Annotated[
        int | None,
        typer.Option("--m", min=2, max=100, show_default=False, help="hnsw: links an element; else 16."),
    ] = None,
    ef_construction: Annotated[
        int | None,
        typer.Option(
            "--ef-construction",
            min=4,
            max=1000,
            show_default=False,
            help="hnsw: candidates a link, at least twice --m; else 64.",
        ),
    ] = None,
    lists: Annotated[
        int | None,
        typer.Option(
            "--lists",
            min=1,
            max=32_768,
            show_default=False,
            help="ivfflat: lists; else one for 1,000 vectors.",
        ),
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
    given = {"m": m, "ef_construction": ef_construction, "lists": lists}
    # Before the model, which takes long to load.
    if rotate and precision is not Precision.bit:
        raise typer.BadParameter(f"is for --precision bit, not {precision.value}", param_hint="--rotate")
    for option in (f"--{name.replace('_', '-')}" for name, value in given.items() if value is not None):
        if option not in _OPTIONS[index]:
            raise typer.BadParameter(f"is no option of --index {index.value}", param_hint=option)
    encoder = load_encoder(model, space)
    with translated(), psycopg.connect(resolve_dsn(database_url), autocommit=True) as connection:
        queued = create_space(
            connection,
            encoder,
            collections=collection or (),
            precision=precision.value,
            rotate=rotate,
            dimension=dimension,
            index=index.value,
            index_options={name: value for name, value in given.items() if value is not None},
            with_index=None if with_index else False,
        )
        unbuilt = find_space(connection, space).index_state == "missing"
    typer.echo(f'Space "{space}" is made; {queued:,} passages are queued for it.', err=True)
    typer.echo(f"Next: pgrag worker --once --space {space} --model {model}", err=True)
    if unbuilt:
        typer.echo(f"Then: pgrag space build {space}", err=True)
