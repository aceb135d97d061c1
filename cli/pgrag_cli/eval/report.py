"""``pgrag eval report``: a run, or a run beside an earlier one, as a page to look at."""

from __future__ import annotations

import sys
import webbrowser
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import psycopg
import typer

from pgrag.errors import PgragError, translated
from pgrag.evaluate import load_run, read_run_file, report_html
from pgrag_cli._database import DatabaseUrl, resolve_dsn

__all__ = ["report"]


def report(
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN", help="Number of a run that was kept, or a file that pgrag eval run --full wrote."
        ),
    ],
    against: Annotated[
        str | None,
        typer.Option(
            "--against", metavar="RUN", show_default=False, help="Show it beside an earlier run; likewise."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="FILE",
            dir_okay=False,
            show_default=False,
            help="Where to; - for stdout; else run-N.html here.",
        ),
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="Open it in a browser.")] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Make one HTML page of a run: where evidence was lost, measures, latency, who got what, the worst queries.

    The page asks the network for nothing, so it can be kept and sent. It holds queries, uris and what administrators may see.
    """
    to_stdout = output == Path("-")
    if to_stdout and open_:
        raise typer.BadParameter("what goes to stdout can't be opened", param_hint="--open")
    names = [run] if against is None else [run, against]
    with ExitStack() as stack:
        stack.enter_context(translated())
        connection: psycopg.Connection[Any] | None = None
        if any(map(_is_number, names)):
            connection = stack.enter_context(psycopg.connect(resolve_dsn(database_url), autocommit=True))
        documents = [_load(connection, name) for name in names]
    page = report_html(*documents)
    if to_stdout:
        sys.stdout.write(page)
        return
    if output is None:
        output = Path("-against-".join(_stem(name) for name in names) + ".html")
    try:
        output.write_text(page, encoding="utf-8")
    except OSError as error:
        raise PgragError(f"{output} can't be written: {error.strerror}", "--output FILE") from error
    typer.echo(output)
    if open_ and not webbrowser.open(output.resolve().as_uri()):
        typer.echo(f"No browser was found.\nTry: open {output} yourself", err=True)


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdigit()


def _stem(name: str) -> str:
    return f"run-{name}" if _is_number(name) else Path(name).stem


def _load(connection: psycopg.Connection[Any] | None, name: str) -> dict[str, Any]:
    if connection is not None and _is_number(name):
        return load_run(connection, int(name))
    return read_run_file(Path(name))
