"""``pgrag init``: prepares a database, once, as an administrator."""

from __future__ import annotations

import typer

from pgrag import install
from pgrag_cli._database import DatabaseUrl, resolve_dsn

__all__ = ["init"]


def init(database_url: DatabaseUrl = None) -> None:
    """Prepare a database as an administrator: extension, roles and schema. Then: pgrag upgrade."""
    result = install.init(resolve_dsn(database_url))
    typer.echo("Prepared. Next: pgrag upgrade" if result.changed else "Prepared already.", err=True)
