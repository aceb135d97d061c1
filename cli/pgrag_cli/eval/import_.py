"""``pgrag eval import``: take in judged queries."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import psycopg
import typer

from pgrag.errors import translated
from pgrag.evaluate import import_beir, import_trec
from pgrag_cli._database import DatabaseUrl, resolve_dsn
from pgrag_cli.eval._words import say_left

__all__ = ["import_"]


def import_(
    collection: Annotated[
        str, typer.Option("--collection", metavar="NAME", help="Whose documents answer them.")
    ],
    beir: Annotated[
        Path | None,
        typer.Option(
            "--beir",
            metavar="DIR",
            exists=True,
            file_okay=False,
            show_default=False,
            help="A folder in BEIR's layout: queries.jsonl, and qrels/test.tsv or qrels.tsv; qrels are optional beside"
            " judgements.jsonl.",
        ),
    ] = None,
    trec: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            "--trec",
            metavar="TOPICS QRELS",
            exists=True,
            dir_okay=False,
            show_default=False,
            help="Two files of TREC's: topics (number, tab, text; or <top>), and qrels.",
        ),
    ] = None,
    as_: Annotated[
        list[str] | None,
        typer.Option(
            "--as",
            metavar="PRINCIPAL",
            help="Who asks a query of which no file says it; else the public.",
            show_default=False,
        ),
    ] = None,
    askers: Annotated[
        Path | None,
        typer.Option(
            "--askers",
            metavar="FILE",
            exists=True,
            dir_okay=False,
            show_default=False,
            help='Who asks, a line {"query_id": …, "principals": […]}; else askers.jsonl beside the queries.',
        ),
    ] = None,
    judgements: Annotated[
        Path | None,
        typer.Option(
            "--judgements",
            metavar="FILE",
            exists=True,
            dir_okay=False,
            show_default=False,
            help='Of spans, a line {"query_id": …, "uri": …, "grade": …, "quote": …}, or start and end, or ordinal;'
            " else judgements.jsonl beside the queries.",
        ),
    ] = None,
    split: Annotated[
        str, typer.Option("--split", metavar="NAME", help="Of the judgements of a folder.")
    ] = "test",
    database_url: DatabaseUrl = None,
) -> None:
    """Take in judged queries; a document is meant by its uri, which is BEIR's _id and TREC's docno."""
    if (beir is None) == (trec is None):
        raise typer.BadParameter("name one of --beir DIR and --trec TOPICS QRELS")
    with translated(), psycopg.connect(resolve_dsn(database_url), autocommit=True) as connection:
        if beir is not None:
            done = import_beir(
                connection,
                collection,
                beir,
                principals=as_ or (),
                split=split,
                askers=askers,
                judgements=judgements,
            )
        elif trec is not None:
            done = import_trec(
                connection, collection, *trec, principals=as_ or (), askers=askers, judgements=judgements
            )
    typer.echo(f"{done.queries:,} judged queries with {done.judgements:,} judgements.", err=True)
    if done.changed:
        typer.echo(
            f"Of the judged spans, {done.changed:,} no longer read as their quotes: the documents have changed.",
            err=True,
        )
    say_left(done, collection, marked_in="queries.jsonl" if beir is not None else "askers.jsonl")
    if done.hidden is None:
        typer.echo(
            "Whether who asks can read the answers was not checked: this role may not act for others.",
            err=True,
        )
