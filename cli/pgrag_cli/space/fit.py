"""``pgrag space fit``: fits the token table that embeds a space's queries in SQL."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import psycopg
import typer
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

from pgrag._utf8 import read_utf8
from pgrag.errors import translated
from pgrag.fit import FitProgress, fit_space
from pgrag_cli._database import DatabaseUrl, resolve_dsn
from pgrag_cli._encoder import MODEL_HELP, load_encoder
from pgrag_cli._stages import show_stages
from pgrag_cli.space._words import SpaceName

__all__ = ["fit"]

_STAGES = {
    "sample": "drawing passages",
    "encode": "encoding texts with the model",
    "fit": "fitting",
    "store": "storing token vectors",
}


def fit(
    space: SpaceName,
    model: Annotated[
        str,
        typer.Option("--model", metavar="MODEL", show_default=False, help=f"The space's own. {MODEL_HELP}."),
    ],
    collection: Annotated[
        list[str] | None,
        typer.Option(
            "--collection",
            metavar="NAME",
            show_default=False,
            help="Take passages of this one; repeat it. Else of all that the space holds.",
        ),
    ] = None,
    sample: Annotated[
        int,
        typer.Option(
            "--sample",
            min=1,
            max=1_000_000,
            help="Most texts cut from the corpus; twice as many take twice as long.",
        ),
    ] = 60_000,
    general: Annotated[
        Path | None,
        typer.Option(
            "--general",
            metavar="FILE",
            exists=True,
            dir_okay=False,
            show_default=False,
            help="Other texts, a line each, that keep the table general; else made of its vocabulary.",
        ),
    ] = None,
    hidden: Annotated[
        bool,
        typer.Option(
            "--hidden",
            help="Take passages too that public may not read; all who search the space may read traces of them.",
        ),
    ] = False,
    epochs: Annotated[int, typer.Option("--epochs", min=1, max=1000, help="At most.")] = 10,
    seed: Annotated[int, typer.Option("--seed", min=0, max=2**31 - 1, help="The same draws the same.")] = 0,
    cache: Annotated[
        Path | None,
        typer.Option(
            "--cache",
            metavar="DIR",
            show_default=False,
            help="Keep what was done there; else in the user's cache until it is finished. It holds texts.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as one JSON object.")] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Fit the token table that embeds a space's queries in SQL to its model and its corpus; a stopped run goes on."""
    encoder = load_encoder(model, space)
    more = {} if general is None else {"general": read_utf8(general).splitlines()}
    with (
        translated(),
        psycopg.connect(resolve_dsn(database_url), autocommit=True) as connection,
        _progress() as show,
    ):
        figures = fit_space(
            connection,
            encoder,
            space=space,
            collections=collection,
            sample=sample,
            hidden=hidden,
            epochs=epochs,
            seed=seed,
            cache=cache,
            on_progress=show,
            **more,
        )
    if as_json:
        typer.echo(json.dumps(asdict(figures), ensure_ascii=False))
    typer.echo(
        f"Queries of {space} are embedded in SQL by {figures.name}: {figures.tokens:,} tokens, fitted on"
        f" {figures.texts:,} texts; held-out texts are at a cosine of {figures.cosine:.3f} to the model's vectors"
        f" ({figures.cosine_before:.3f} before).",
        err=True,
    )


def _progress() -> AbstractContextManager[Callable[[FitProgress], None]]:
    """Return what yields what is to be called with the progress of a fit."""
    return show_stages(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        stage=lambda progress: progress.stage,
        words=_words,
    )


def _words(progress: FitProgress) -> str:
    words = _STAGES.get(progress.stage, progress.stage)
    if progress.cosine is None:
        return words
    return f"{words}, epoch {progress.done} of {progress.total}, held-out cosine {progress.cosine:.4f}"
