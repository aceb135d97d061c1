"""``pgrag upgrade``: brings the database to this release."""

from __future__ import annotations

from typing import Annotated

import typer

from pgrag import install
from pgrag.embed import StaticEncoder
from pgrag.spaces import load_static_space
from pgrag_cli._database import DatabaseUrl, resolve_dsn

__all__ = ["upgrade"]


def upgrade(
    database_url: DatabaseUrl = None,
    encoder: Annotated[
        bool, typer.Option(help="Load the shipped query encoder, which makes search hybrid without a model.")
    ] = True,
) -> None:
    """Bring the database to this release; as a member of pgrag_owner. Doing it twice changes nothing."""
    dsn = resolve_dsn(database_url)
    result = install.upgrade(dsn)
    loaded = encoder and load_static_space(dsn, StaticEncoder.shipped())
    changed = "Upgraded to" if result.changed or loaded else "Already at"
    typer.echo(f"{changed} pgrag {result.version}.", err=True)
    for advice in result.advice:
        typer.echo(advice, err=True)
