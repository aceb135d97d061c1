"""``pgrag check``: whether the index says what the documents say."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import psycopg
import typer
from rich.console import Console
from rich.table import Table

from pgrag.errors import translated
from pgrag.index import check as compare
from pgrag_cli._database import DatabaseUrl, resolve_dsn

__all__ = ["check"]


def check(
    collection: Annotated[
        str | None,
        typer.Option("--collection", metavar="NAME", help="Check this one; else all.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per finding.")] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Compare the index with the documents; changes nothing, and exits 1 where something was found."""
    console = Console(stderr=True)
    with (
        translated(),
        psycopg.connect(resolve_dsn(database_url), autocommit=True) as connection,
        console.status("Checking") as shown,
    ):

        def show(name: str, chunks: int) -> None:
            shown.update(f"Checking {name}: {chunks:,} chunks")

        findings = compare(connection, collection, on_collection=show)
    if as_json:
        for finding in findings:
            typer.echo(json.dumps(asdict(finding), ensure_ascii=False))
    elif findings:
        table = Table("finding", "collection", "where", "what")
        for finding in findings:
            table.add_row(finding.finding, finding.collection, finding.subject or "", finding.detail)
        Console().print(table)
    if not findings:
        typer.echo("Nothing found: the index says what the documents say.", err=True)
        return
    for name in sorted({finding.collection for finding in findings}):
        kinds = {finding.finding for finding in findings if finding.collection == name}
        typer.echo(_next_step(name, kinds), err=True)
    raise typer.Exit(1)


def _next_step(collection: str, kinds: set[str]) -> str:
    """Say which command repairs what was found in a collection."""
    if kinds & {"posting", "run", "statistic", "lexeme"}:
        return f"Try: pgrag reindex --lexical --rebuild --collection {collection}"
    if kinds & {"tsv", "hash", "length"}:
        return f"Try: pgrag reindex --lexical --collection {collection}"
    return f"Try: restore a backup, or ingest the documents of {collection} that are listed again."
