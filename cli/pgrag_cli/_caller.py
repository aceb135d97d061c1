"""Serves the commands that search: for whom, in what, and how many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from pgrag.client import Caller
from pgrag.errors import PgragError

__all__ = ["As", "Collections", "check_collections", "principals"]

As = Annotated[
    list[str] | None,
    typer.Option(
        "--as",
        metavar="PRINCIPAL",
        show_default=False,
        help="Who asks: user:NAME, group:NAME or public; repeat it for several.",
    ),
]
Collections = Annotated[
    list[str] | None,
    typer.Option(
        "--collection",
        metavar="NAME",
        show_default=False,
        help="Search this one; repeat it. Else all they may see.",
    ),
]


def principals(given: Sequence[str] | None) -> list[str]:
    """Return who asks, or refuse: nobody is assumed.

    Raises:
        PgragError: nobody was named.
    """
    if not given:
        raise PgragError("nobody asks: what is found depends on who does.", "--as user:NAME, or --as public")
    return list(given)


def check_collections(caller: Caller, named: Sequence[str] | None) -> None:
    """Refuse a collection that the caller may see nothing of; one that isn't there says the same.

    Raises:
        PgragError: names the first such collection.
    """
    if not named:
        return
    visible = {collection.name for collection in caller.collections()}
    for name in named:
        if name not in visible:
            who = ", ".join(caller.principals)
            raise PgragError(
                f'collection "{name}" does not exist, or holds nothing that {who} may read.',
                f"Leave --collection out, or name one of: {', '.join(sorted(visible))}"
                if visible
                else f"pgrag ingest PATH --collection {name} --reader READER",
            )
