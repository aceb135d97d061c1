"""The entry point of ``pgrag``: the list of commands, and where errors become words and exit codes.

Exit 0 is done, 1 refused or failed, 2 wrong usage.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated

import typer

from pgrag._version import __version__
from pgrag.errors import PgragError
from pgrag_cli._database import redact
from pgrag_cli._hints import as_commands
from pgrag_cli._query import QueryCommand
from pgrag_cli.analyze import analyze
from pgrag_cli.check import check
from pgrag_cli.compact import compact
from pgrag_cli.create_collection import create_collection
from pgrag_cli.down import down
from pgrag_cli.embed import embed
from pgrag_cli.eval import COMMANDS as EVAL_COMMANDS
from pgrag_cli.eval import app as eval_app
from pgrag_cli.explain import explain
from pgrag_cli.ingest import ingest
from pgrag_cli.init import init
from pgrag_cli.member import add_member, remove_member
from pgrag_cli.pack import pack
from pgrag_cli.plan import plan
from pgrag_cli.psql import psql
from pgrag_cli.reindex import reindex
from pgrag_cli.search import search
from pgrag_cli.space import COMMANDS as SPACE_COMMANDS
from pgrag_cli.space import app as space_app
from pgrag_cli.status import status
from pgrag_cli.up import up
from pgrag_cli.upgrade import upgrade
from pgrag_cli.worker import worker

__all__ = ["COMMANDS", "GROUPS", "app", "run"]

COMMANDS: list[Callable[..., None]] = [
    up,
    down,
    status,
    psql,
    init,
    upgrade,
    create_collection,
    ingest,
    embed,
    search,
    explain,
    pack,
    worker,
    compact,
    check,
    reindex,
    analyze,
    plan,
    add_member,
    remove_member,
]

# Commands that share their first word.
GROUPS: dict[str, list[Callable[..., None]]] = {"space": SPACE_COMMANDS, "eval": EVAL_COMMANDS}

app = typer.Typer(
    name="pgrag",
    help="Search with permissions and citations, inside PostgreSQL.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for command in COMMANDS:
    app.command(
        command.__name__.replace("_", "-"), cls=QueryCommand if command in (search, explain, pack) else None
    )(command)


app.add_typer(space_app, name="space")
app.add_typer(eval_app, name="eval")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pgrag {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Search with permissions and citations, inside PostgreSQL."""


def run() -> None:
    """Run the command line; known errors become ``Error:`` and ``Try:`` on stderr and exit 1."""
    try:
        app()
    except PgragError as error:
        typer.echo(f"Error: {redact(error.message)}", err=True)
        if error.hint:
            typer.echo(f"Try: {redact(as_commands(error.hint))}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    run()
