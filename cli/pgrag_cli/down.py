"""``pgrag down``: stop the embedded server."""

from __future__ import annotations

import typer

from pgrag.server import EmbeddedServer
from pgrag_cli._database import DataDirectory

__all__ = ["down"]


def down(data: DataDirectory = None) -> None:
    """Stop the embedded PostgreSQL, if it runs. Its data stays."""
    server = EmbeddedServer(data)
    if server.stop():
        typer.echo(f"Stopped. The data stays in {server.data}", err=True)
    else:
        typer.echo(f"No server runs in {server.data}", err=True)
