"""``pgrag compact``: merges the runs of the lexical index."""

from __future__ import annotations

from typing import Annotated

import psycopg
import typer

from pgrag.errors import translated
from pgrag.index import compact as merge
from pgrag.index import slim
from pgrag_cli._database import DatabaseUrl, resolve_dsn

__all__ = ["compact"]


def compact(
    max_runs: Annotated[
        int, typer.Option(help="Runs to merge in one transaction.", min=2, max=2**31 - 1)
    ] = 20_000,
    database_url: DatabaseUrl = None,
) -> None:
    """Merge the runs of the lexical index, in small transactions; searches and writes go on."""
    looked_at: list[int] = []
    with translated(), psycopg.connect(resolve_dsn(database_url), autocommit=True) as connection:
        transactions = merge(connection, max_runs=max_runs, on_part=looked_at.append)
        built = slim(connection)
    did = f"{transactions:,} {'transaction' if transactions == 1 else 'transactions'}"
    if looked_at:
        # "Or more", since the transaction that comes to the end of the log doesn't say how many it looked at.
        did += f" that looked at {sum(looked_at):,} runs or more"
    if built:
        did += "; its B-tree was built again"
    typer.echo(f"The lexical index is compact, after {did}.", err=True)
