"""``pgrag eval``: judged queries, by which a change is held against what was before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import psycopg
import typer

from pgrag.errors import translated
from pgrag.evaluate import import_beir
from pgrag_cli._database import DatabaseUrl, resolve_dsn

__all__ = ["COMMANDS", "app"]


def import_(
    collection: Annotated[
        str, typer.Option("--collection", metavar="NAME", help="Whose documents answer them.")
    ],
    beir: Annotated[
        Path,
        typer.Option(
            "--beir",
            metavar="DIR",
            exists=True,
            file_okay=False,
            help="A folder in BEIR's layout: queries.jsonl, and qrels/test.tsv or qrels.tsv.",
        ),
    ],
    as_: Annotated[
        list[str] | None,
        typer.Option("--as", metavar="PRINCIPAL", help="Who asks them; else the public.", show_default=False),
    ] = None,
    split: Annotated[str, typer.Option("--split", metavar="NAME", help="Of qrels.")] = "test",
    database_url: DatabaseUrl = None,
) -> None:
    """Take in judged queries; a document is meant by its uri, which is BEIR's _id."""
    with translated(), psycopg.connect(resolve_dsn(database_url), autocommit=True) as connection:
        done = import_beir(connection, collection, beir, principals=as_ or (), split=split)
    typer.echo(f"{done.queries:,} judged queries with {done.judgements:,} judgements.", err=True)
    if done.unknown:
        typer.echo(
            f'Of the judged documents, {done.unknown:,} are not in collection "{collection}": a document is meant by its uri.',
            err=True,
        )


COMMANDS: list[Callable[..., None]] = [import_]

app = typer.Typer(
    no_args_is_help=True, help="Judged queries, by which a change is held against what was before."
)


@app.callback()
def _group() -> None:
    """Judged queries, by which a change is held against what was before."""


for command in COMMANDS:
    app.command(command.__name__.rstrip("_"))(command)
