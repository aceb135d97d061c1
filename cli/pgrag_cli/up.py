"""``pgrag up``: start the embedded server."""

from __future__ import annotations

import shlex

import typer

from pgrag.server import EmbeddedServer
from pgrag_cli._database import DATABASE_URL, DataDirectory

__all__ = ["up"]


def up(data: DataDirectory = None) -> None:
    """Start the embedded PostgreSQL, unless it runs, and print its DSN.

    Its data stays between starts. It listens on a private socket and on no network port.
    """
    server = EmbeddedServer(data)
    dsn = server.start()
    typer.echo(f"PostgreSQL runs in {server.data}. Let commands and programs find it:", err=True)
    typer.echo(f"  export {DATABASE_URL}={shlex.quote(dsn)}", err=True)
    typer.echo(dsn)
