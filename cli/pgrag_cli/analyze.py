"""``pgrag analyze``: what the lexical index makes of a text."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import psycopg
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pgrag.errors import translated
from pgrag.index import explain_analysis
from pgrag_cli._database import DatabaseUrl, resolve_dsn

__all__ = ["analyze"]


def analyze(
    text: Annotated[str, typer.Argument(help="Text of a document or a query.", show_default=False)],
    analyzer: Annotated[
        str, typer.Option("--analyzer", metavar="NAME", help="Text search configuration.")
    ] = "english",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per lexeme.")] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Show the lexemes that a text is found by, and what each was made from."""
    with translated(), psycopg.connect(resolve_dsn(database_url), autocommit=True) as connection:
        lexemes = explain_analysis(connection, text, analyzer=analyzer)
    if as_json:
        for lexeme in lexemes:
            typer.echo(json.dumps(asdict(lexeme), ensure_ascii=False))
        return
    if not lexemes:
        typer.echo("Nothing in it is counted: no words, or only stop words.", err=True)
        return
    table = Table("lexeme", "positions", "why")
    for lexeme in lexemes:
        table.add_row(Text(lexeme.lexeme), ", ".join(map(str, lexeme.positions)), lexeme.why)
    Console().print(table)
