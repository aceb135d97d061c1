"""``pgrag space evaluate``: how well and how fast a space is searched, and what it costs to keep."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import psycopg
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn
from rich.table import Table

from pgrag._utf8 import read_utf8
from pgrag.errors import PgragError, translated
from pgrag.spaces import (
    SpaceFigures,
    build_space,
    check_encoder,
    embed_queries,
    evaluate_space,
    query_encoder_of,
    space_passport,
)
from pgrag_cli._caller import As
from pgrag_cli._database import DatabaseUrl, resolve_dsn
from pgrag_cli._encoder import load_encoder
from pgrag_cli.space._progress import build_progress
from pgrag_cli.space._words import Memory, SpaceName, Workers, processes, size, to_json

__all__ = ["evaluate"]


def evaluate(
    space: SpaceName,
    as_: As = None,
    queries: Annotated[
        Path | None,
        typer.Option(
            "--queries",
            metavar="FILE",
            exists=True,
            dir_okay=False,
            show_default=False,
            help="Ask these, a line each; else vectors of its own, each mixed with another.",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="MODEL",
            show_default=False,
            help="Embed the queries with this; else in SQL, or with the model of its passport.",
        ),
    ] = None,
    count: Annotated[int, typer.Option("--count", min=1, max=10_000, help="How many to draw.")] = 50,
    build: Annotated[
        bool, typer.Option("--build", help="Build the index anew first, to see how long.")
    ] = False,
    memory: Memory = None,
    workers: Workers = None,
    seed: Annotated[int, typer.Option("--seed", min=0, max=2**31 - 1, help="The same draws the same.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as one JSON object.")] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Measure a space: recall and time of searches beside exact ones, sizes, the build, writing and deleting."""
    with ExitStack() as stack:
        stack.enter_context(translated())
        connection = stack.enter_context(psycopg.connect(resolve_dsn(database_url), autocommit=True))
        if build:
            with build_progress() as show_build:
                build_space(
                    connection, space, memory=memory, workers=workers, rebuild=True, on_progress=show_build
                )
        asked = None
        if queries is not None:
            lines = [line for line in read_utf8(queries).splitlines() if line.strip()]
            passport = space_passport(connection, space)
            if model is None and query_encoder_of(connection, space) is not None:
                asked = embed_queries(connection, space, lines)
            else:
                encoder = load_encoder(model or passport["model"], space)
                check_encoder(connection, space, encoder)
                asked = encoder.encode_queries(lines)
            if not len(asked):
                raise PgragError(f"no query of {queries} has a vector", "Write one a line.")
        console = Console(stderr=True)
        bar = stack.enter_context(
            Progress(
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                console=console,
                transient=True,
                disable=not console.is_terminal,
            )
        )
        task = bar.add_task("queries", total=None)
        figures = evaluate_space(
            connection,
            space,
            queries=asked,
            count=count,
            principals=as_ or (),
            seed=seed,
            on_query=lambda done, total: bar.update(task, completed=done, total=total),
        )
    if as_json:
        typer.echo(to_json(figures))
    else:
        _show(figures)


def _show(figures: SpaceFigures) -> None:
    console = Console()
    searches = Table("search", "recall", "p50 ms", "p95 ms", "how most were answered")
    for depth in figures.depths:
        searches.add_row(
            f"nearest {depth.k}",
            f"{depth.recall:.3f}",
            f"{depth.p50_ms:.1f}",
            f"{depth.p95_ms:.1f}",
            depth.plan,
        )
    searches.add_row(
        f"exact, nearest {max(depth.k for depth in figures.depths)}",
        "1",
        f"{figures.exact_p50_ms:.1f}",
        f"{figures.exact_p95_ms:.1f}",
        "",
    )
    console.print(searches)
    costs = Table("cost", "")
    costs.add_row("vectors", f"{figures.vectors:,}")
    costs.add_row("their size", size(figures.table_bytes))
    costs.add_row("index", f"{figures.index_kind}, {figures.index_state}, {size(figures.index_bytes)}")
    if figures.build:
        costs.add_row("last build", f"{figures.build['seconds']:,.1f} s, {processes(figures.build)}")
        costs.add_row(
            "memory of the build",
            f"{size(figures.build['needed_bytes'])} needed, {size(figures.build['memory_bytes'])} allowed",
        )
    if figures.insert_ms is not None:
        costs.add_row("write a vector", f"{figures.insert_ms:.2f} ms")
    if figures.delete_ms is not None:
        costs.add_row("delete a vector", f"{figures.delete_ms:.3f} ms, without the vacuum that follows")
    console.print(costs)
    who = ", ".join(figures.principals) or "the owner, who sees everything"
    typer.echo(f"{figures.queries:,} queries, asked for {who}.", err=True)
