"""``pgrag eval export``: write judged queries, and what a run found, for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import psycopg
import typer

from pgrag.errors import translated
from pgrag.evaluate import export_beir, export_trec
from pgrag_cli._database import DatabaseUrl, resolve_dsn

__all__ = ["export"]


def export(
    collection: Annotated[str, typer.Option("--collection", metavar="NAME", help="Whose judged queries.")],
    beir: Annotated[
        Path | None,
        typer.Option(
            "--beir",
            metavar="DIR",
            file_okay=False,
            show_default=False,
            help="Into this folder, in BEIR's layout: queries.jsonl and qrels/test.tsv.",
        ),
    ] = None,
    trec: Annotated[
        Path | None,
        typer.Option(
            "--trec",
            metavar="DIR",
            file_okay=False,
            show_default=False,
            help="Into this folder, in TREC's formats: topics.tsv and qrels.txt.",
        ),
    ] = None,
    run: Annotated[
        int | None,
        typer.Option(
            "--run",
            metavar="RUN",
            min=1,
            max=2**63 - 1,
            show_default=False,
            help="What this run found too: a file of TREC's an arm.",
        ),
    ] = None,
    split: Annotated[
        str, typer.Option("--split", metavar="NAME", help="What BEIR calls the judgements.")
    ] = "test",
    database_url: DatabaseUrl = None,
) -> None:
    """Write judged queries into files, from which they are taken in the same."""
    if (beir is None) == (trec is None):
        raise typer.BadParameter("name one of --beir DIR and --trec DIR")
    with translated(), psycopg.connect(resolve_dsn(database_url), autocommit=True) as connection:
        if beir is not None:
            done = export_beir(connection, collection, beir, split=split, run_id=run)
        elif trec is not None:
            done = export_trec(connection, collection, trec, run_id=run)
    for file in done.files:
        typer.echo(file)
    typer.echo(f"{done.queries:,} judged queries with {done.judgements:,} judgements.", err=True)
