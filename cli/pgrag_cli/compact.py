"""``pgrag compact``: merges the runs of the lexical index."""

from __future__ import annotations

from typing import Annotated

import psycopg
import typer

from pgrag.errors import translated
from pgrag.index import compact as merge
from pgrag_cli._database import DatabaseUrl, resolve_dsn

__all__ = ["compact"]


def compact(
    max_runs: Annotated[int, typer.Option(help="Runs to merge in one transaction.", min=2)] = 20_000,
    database_url: DatabaseUrl = None,
) -> None:
    """Merge the runs of the lexical index, in small transactions; searches and writes go on."""
    with translated(), psycopg.connect(resolve_dsn(database_url), autocommit=True) as connection:
        merge(connection, max_runs=max_runs)
    typer.echo("The lexical index is compact.", err=True)
