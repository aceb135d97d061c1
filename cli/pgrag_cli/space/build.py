"""``pgrag space build``: makes the approximate index of a space."""

from __future__ import annotations

import json
from typing import Annotated

import psycopg
import typer

from pgrag.errors import translated
from pgrag.spaces import build_space, pending_of
from pgrag_cli._database import DatabaseUrl, resolve_dsn
from pgrag_cli.space._progress import build_progress
from pgrag_cli.space._words import Memory, SpaceName, Workers, processes, size

__all__ = ["build"]


def build(
    space: SpaceName,
    memory: Memory = None,
    workers: Workers = None,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Build a valid index anew; the old one answers meanwhile.")
    ] = False,
    slow: Annotated[
        bool, typer.Option("--slow", help="Build though memory doesn't suffice: on disk, many times slower.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as one JSON object.")] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Make the approximate index of a space, beside searches and writes; a stopped run is repaired by the next."""
    with translated(), psycopg.connect(resolve_dsn(database_url), autocommit=True) as connection:
        try:
            with build_progress() as show:
                done = build_space(
                    connection,
                    space,
                    memory=memory,
                    workers=workers,
                    rebuild=rebuild,
                    slow=slow,
                    on_progress=show,
                )
        except KeyboardInterrupt:
            meanwhile = (
                "A valid index of before answers meanwhile, else searches are exact"
                if rebuild
                else "Searches are exact meanwhile"
            )
            again = f"pgrag space build {space}" + (" --rebuild" if rebuild else "")
            typer.echo(f"Stopped. {meanwhile}; begin again with: {again}", err=True)
            raise typer.Exit(130) from None
        lacking = pending_of(connection, space)
    if as_json:
        typer.echo(json.dumps({"built": done.built, **done.figures}))
    calibrated = " Calibrated." if done.calibrated else ""
    if done.built:
        figures = done.figures
        typer.echo(
            f"Built in {figures['seconds']:,.1f} s by {processes(figures)}: {figures['vectors']:,} vectors,"
            f" index {size(figures['index_bytes'])}.{calibrated}",
            err=True,
        )
    else:
        typer.echo(
            f'Space "{space}" has nothing to build: its index is valid, or it has none.{calibrated}', err=True
        )
    if lacking:
        typer.echo(f"It still lacks {lacking:,} vectors; the index takes them up as they come.", err=True)
