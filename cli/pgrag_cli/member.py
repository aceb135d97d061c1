"""``pgrag add-member`` and ``pgrag remove-member``: who is in which group."""

from __future__ import annotations

from typing import Annotated

import psycopg
import typer

from pgrag import access
from pgrag.errors import translated
from pgrag_cli._database import DatabaseUrl, resolve_dsn

__all__ = ["add_member", "remove_member"]

Group = Annotated[str, typer.Argument(metavar="GROUP", help="group:NAME", show_default=False)]
Members = Annotated[
    list[str],
    typer.Argument(metavar="MEMBER…", help="user:NAME, role:NAME or group:NAME", show_default=False),
]


def add_member(group: Group, members: Members, database_url: DatabaseUrl = None) -> None:
    """Put people, roles or groups into a group; as a member of pgrag_owner."""
    with translated(), psycopg.connect(resolve_dsn(database_url), autocommit=True) as connection:
        access.add_groups(connection, {group: members})


def remove_member(group: Group, members: Members, database_url: DatabaseUrl = None) -> None:
    """Take people, roles or groups out of a group; counts from everyone's next search."""
    with translated(), psycopg.connect(resolve_dsn(database_url), autocommit=True) as connection:
        access.remove_members(connection, group, members)
