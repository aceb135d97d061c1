"""``pgrag eval forget``: forget judged queries."""

from __future__ import annotations

from typing import Annotated

import psycopg
import typer

from pgrag.errors import PgragError, translated
from pgrag.evaluate import forget_judged
from pgrag_cli._database import DatabaseUrl, resolve_dsn

__all__ = ["forget"]


def forget(
    collection: Annotated[str, typer.Option("--collection", metavar="NAME", help="Whose judged queries.")],
    queries: Annotated[
        list[str] | None,
        typer.Argument(metavar="[QUERY_ID…]", show_default=False, help="Which, by their query_ids."),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="All of the collection.")] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Forget judged queries with their judgements; runs keep what they found."""
    if bool(queries) == all_:
        raise typer.BadParameter("name queries, or say --all", param_hint="QUERY_ID, --all")
    wanted = list(dict.fromkeys(queries or ()))
    with translated(), psycopg.connect(resolve_dsn(database_url), autocommit=True) as connection:
        forgotten = forget_judged(connection, collection, None if all_ else wanted)
    if wanted and not forgotten:
        raise PgragError(
            f'collection "{collection}" has no judged query "{wanted[0]}"'
            + (f", nor {len(wanted) - 1:,} others" if wanted[1:] else ""),
            f"pgrag eval export --collection {collection} --beir DIR writes them all.",
        )
    typer.echo(f"Forgotten: {forgotten:,} judged queries.", err=True)
    if wanted[forgotten:]:
        typer.echo(f"Of the names, {len(wanted) - forgotten:,} are of no judged query.", err=True)
