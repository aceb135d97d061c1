"""``pgrag eval drop``: forget runs."""

from __future__ import annotations

from typing import Annotated

import psycopg
import typer

from pgrag.errors import translated
from pgrag.evaluate import drop_run
from pgrag_cli._database import DatabaseUrl, resolve_dsn

__all__ = ["drop"]


def drop(
    runs: Annotated[
        list[int],
        typer.Argument(
            metavar="RUN…", min=1, max=2**63 - 1, help="Numbers of runs, as pgrag eval runs lists them."
        ),
    ],
    database_url: DatabaseUrl = None,
) -> None:
    """Forget runs with everything that was kept of them: all of those named, or none where one isn't there."""
    numbers = list(dict.fromkeys(runs))
    with (
        translated(),
        psycopg.connect(resolve_dsn(database_url), autocommit=True) as connection,
        connection.transaction(),
    ):
        for number in numbers:
            drop_run(connection, number)
    typer.echo(f"Forgotten: run {', '.join(map(str, numbers))}.", err=True)
