"""``pgrag reindex``: analyses the chunks of a collection again."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Annotated

import psycopg
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TimeRemainingColumn

from pgrag.errors import translated
from pgrag.index import rebuild as build_anew
from pgrag.index import reindex as analyse_again
from pgrag.index import set_analyzer
from pgrag_cli._database import DatabaseUrl, resolve_dsn

__all__ = ["reindex"]


def reindex(
    collection: Annotated[str, typer.Option("--collection", metavar="NAME", help="Whose chunks.")],
    lexical: Annotated[
        bool, typer.Option("--lexical", help="The lexical index; vectors are the worker's.")
    ] = False,
    analyzer: Annotated[
        str | None,
        typer.Option("--analyzer", metavar="NAME", help="Change to this analyzer.", show_default=False),
    ] = None,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Build the postings anew as well; writers wait meanwhile.")
    ] = False,
    batch: Annotated[int, typer.Option("--batch", min=1, max=100_000, help="Chunks a transaction.")] = 1000,
    database_url: DatabaseUrl = None,
) -> None:
    """Analyse the chunks of a collection again, beside searches and writes; a stopped run goes on when repeated."""
    if not lexical:
        raise typer.BadParameter(
            "say --lexical; vectors are made anew by: pgrag embed", param_hint="--lexical"
        )
    with ExitStack() as stack:
        stack.enter_context(translated())
        connection = stack.enter_context(psycopg.connect(resolve_dsn(database_url), autocommit=True))
        if analyzer is not None and set_analyzer(connection, collection, analyzer):
            typer.echo(
                f'Collection "{collection}" is searched by {analyzer} from now on; until this run ends, some of its'
                " chunks are still indexed the old way.",
                err=True,
            )
        with Progress(
            BarColumn(),
            MofNCompleteColumn(),
            TaskProgressColumn(show_speed=True),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
            disable=not Console(stderr=True).is_terminal,
        ) as bar:
            task = bar.add_task("chunks", total=None)

            def show(done: int, total: int) -> None:
                bar.update(task, completed=done, total=total)

            done = analyse_again(connection, collection, batch=batch, on_batch=show)
        typer.echo(f"{done:,} chunks are analysed as the analyzer does now.", err=True)
        if rebuild:
            with Console(stderr=True).status("Building postings; writers wait"):
                build_anew(connection, collection)
            typer.echo("Postings, statistics and lexemes are built anew.", err=True)
