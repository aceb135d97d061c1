"""``pgrag space list``: which embedding spaces there are, and what each holds and lacks."""

from __future__ import annotations

from typing import Annotated

import psycopg
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pgrag.errors import translated
from pgrag.spaces import list_spaces
from pgrag_cli._database import DatabaseUrl, resolve_dsn
from pgrag_cli.space._words import answering, index, kept, size, to_json

__all__ = ["list_"]


def list_(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a space.")] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """List the embedding spaces, with what each holds and lacks."""
    with translated(), psycopg.connect(resolve_dsn(database_url), autocommit=True) as connection:
        spaces = list_spaces(connection)
    if as_json:
        for space in spaces:
            typer.echo(to_json(space))
        return
    if not spaces:
        typer.echo("No embedding space.\nTry: pgrag space create NAME --model MODEL", err=True)
        return
    table = Table(show_lines=True)
    table.add_column("space\nmodel", no_wrap=True, overflow="ellipsis", max_width=30)
    table.add_column("kept\nindex", no_wrap=True)
    table.add_column("state\nanswers")
    table.add_column("vectors\nsize", justify="right")
    table.add_column("lacking", justify="right")
    for space in spaces:
        state = f"{space.state}, paused" if space.paused else space.state
        held = size(space.table_bytes + space.index_bytes)
        table.add_row(
            Text.assemble((space.name, "bold"), "\n", (space.model, "dim")),
            Text(f"{kept(space)}\n{index(space)}"),
            Text(f"{state}\n{answering(space)}"),
            f"{space.vectors:,}\n{held}",
            f"{space.pending:,}",
        )
    Console().print(table)
