"""``pgrag eval runs``: which evaluations were kept."""

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
from pgrag.evaluate import Run, list_runs
from pgrag_cli._database import DatabaseUrl, resolve_dsn

__all__ = ["runs"]

_MEASURE = "ndcg@10"


def runs(
    collection: Annotated[
        str | None,
        typer.Option("--collection", metavar="NAME", show_default=False, help="Of this one only."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a run.")] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """List evaluations that were kept, the newest first; queries: those that counted."""
    with translated(), psycopg.connect(resolve_dsn(database_url), autocommit=True) as connection:
        found = list_runs(connection, collection)
    if as_json:
        for one in found:
            typer.echo(json.dumps(asdict(one), ensure_ascii=False, default=str))
        return
    if not found:
        typer.echo("No run was kept.\nTry: pgrag eval run --collection NAME", err=True)
        return
    table = Table()
    table.add_column("run", justify="right")
    table.add_column("name")
    table.add_column("collection")
    table.add_column("kind")
    table.add_column("started at")
    table.add_column("queries", justify="right")
    table.add_column(_MEASURE)
    for one in found:
        table.add_row(
            str(one.run_id),
            Text(one.name),
            Text(one.collection),
            one.kind,
            f"{one.started_at:%Y-%m-%d %H:%M}",
            f"{one.queries:,}" if one.kind in ("run", "answers") else "",
            Text(_outcome(one)),
        )
    Console().print(table)


def _outcome(run: Run) -> str:
    """Say what came out: a mean an arm, or whether a gate was open."""
    if run.finished_at is None:
        return "not finished"
    if run.kind == "gate":
        return "gate open" if run.metrics.get("passed") else "gate closed"
    return ", ".join(
        f"{arm} {values[_MEASURE]:.3f}"
        for arm, values in run.metrics.items()
        if isinstance(values, dict) and isinstance(values.get(_MEASURE), int | float)
    )
