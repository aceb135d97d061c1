"""``pgrag space show``: everything that is known of one embedding space."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

import psycopg
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pgrag.errors import translated
from pgrag.spaces import find_space
from pgrag_cli._database import DatabaseUrl, resolve_dsn
from pgrag_cli.space._words import SpaceName, flat, index, kept, size, to_json

__all__ = ["show"]


def show(
    space: SpaceName,
    passport: Annotated[
        bool,
        typer.Option(
            "--passport", help="Print all of the passport, with what its model was trained on and how."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as one JSON object.")] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Show a space: what it holds, what it lacks, its sizes and what its passport says in short."""
    with translated(), psycopg.connect(resolve_dsn(database_url), autocommit=True) as connection:
        found = find_space(connection, space)
    if as_json:
        typer.echo(to_json(found))
        return
    failing = f", {found.failing:,} tried in vain" if found.failing else ""
    rows = [
        ("space", found.name),
        ("state", f"{found.state}, paused" if found.paused else found.state),
        ("documents embedded by", "SQL, by its token table" if found.kind == "static" else found.model),
        ("queries embedded in SQL by", found.query_encoder or "nothing: pass a vector, or --model"),
        ("kept", kept(found)),
        ("index", index(found)),
        ("holds", ", ".join(found.collections) or "no collection"),
        ("answers", ", ".join(found.answers) or "no collection"),
        ("vectors", f"{found.vectors:,}, {size(found.table_bytes)}, index {size(found.index_bytes)}"),
        ("lacking", f"{found.pending:,}{failing}"),
        ("made at", f"{found.created_at:%Y-%m-%d %H:%M:%S %Z}"),
    ]
    console = Console()
    console.print(_table(rows))
    short = {
        name: value for name, value in found.passport.items() if not isinstance(value, Mapping | list | tuple)
    }
    for part, values in (
        ("passport", found.passport if passport else short),
        ("calibration", found.calibration),
    ):
        if values:
            console.print(f"\n{part}", style="bold")
            console.print(_table(flat(values)))
    if not passport and len(short) < len(found.passport):
        typer.echo("The passport says more: --passport", err=True)


def _table(rows: Iterable[tuple[str, str]]) -> Table:
    table = Table(box=None, show_header=False, expand=True)
    table.add_column(style="dim", ratio=2, overflow="fold")
    table.add_column(ratio=3, overflow="fold")
    for name, value in rows:
        table.add_row(name, escape(value))
    return table
