"""``pgrag space calibrate``: measures what searches of a space cost here."""

from __future__ import annotations

import json
from typing import Annotated

import psycopg
import typer
from rich.console import Console
from rich.table import Table

from pgrag.errors import translated
from pgrag.spaces import calibrate_space
from pgrag_cli._database import DatabaseUrl, resolve_dsn
from pgrag_cli.space._words import SpaceName, flat

__all__ = ["calibrate"]


def calibrate(
    space: SpaceName,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as one JSON object.")] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Measure what exact and approximate search of a space cost on this server, for searches to choose by."""
    console = Console(stderr=True)
    with (
        translated(),
        psycopg.connect(resolve_dsn(database_url), autocommit=True) as connection,
        console.status("Measuring"),
    ):
        measured = calibrate_space(connection, space)
    if as_json:
        typer.echo(json.dumps(measured, ensure_ascii=False))
        return
    table = Table("measured", "value")
    for name, value in flat(measured):
        table.add_row(name, value)
    Console().print(table)
