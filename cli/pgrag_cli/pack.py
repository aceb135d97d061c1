"""``pgrag pack``: the passages for a question, fenced and cited, as a generator is given them."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from pgrag.client import connect
from pgrag.pack import Context, LeftOut, Passage
from pgrag_cli._caller import As, Collections, check_collections, principals
from pgrag_cli._database import DatabaseUrl, resolve_dsn
from pgrag_cli._encoder import QueryModel, load_encoder
from pgrag_cli._query import say_nothing_found

__all__ = ["pack"]


def pack(
    query: Annotated[str, typer.Argument(help='Words, "phrases", -exclusions and prefix*.')],
    as_: As = None,
    collection: Collections = None,
    model: QueryModel = None,
    space: Annotated[
        str | None,
        typer.Option(
            "--space", metavar="NAME", show_default=False, help="Name of the model's space; else its own."
        ),
    ] = None,
    budget: Annotated[
        int,
        typer.Option(
            "--budget",
            metavar="TOKENS",
            min=1,
            max=10_000_000,
            help="Most tokens, fences and sources included.",
        ),
    ] = 2000,
    k: Annotated[int, typer.Option("-k", min=1, max=1000, help="Most passages to choose from.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Pack the best passages that somebody may read into a token budget; what is in it goes to stderr."""
    who = principals(as_)
    encoder = load_encoder(model, space) if model is not None else None
    with connect(resolve_dsn(database_url), encoder=encoder) as store:
        caller = store.as_principals(*who)
        check_collections(caller, collection)
        context = caller.pack(query, budget_tokens=budget, k=k, collections=collection)
    if as_json:
        typer.echo(json.dumps(asdict(context), ensure_ascii=False))
        return
    if not context.passages and not context.left_out:
        say_nothing_found(query, who)
        return
    if context.text:
        typer.echo(context.text)
    _report(context)


def _report(context: Context) -> None:
    typer.echo(
        f"{len(context.passages)} packed, {context.tokens} of {context.budget_tokens} tokens; "
        f"{len(context.left_out)} left out",
        err=True,
    )
    for passage in context.passages:
        notes = [f"{passage.token_count} tokens"]
        if passage.removed_characters:
            notes.append(f"{passage.removed_characters} invisible characters removed")
        if passage.flagged:
            notes.append("reads like orders to the reader")
        typer.echo(f"  {passage.passage_id}  {_source(passage)}: {', '.join(notes)}", err=True)
    for left in context.left_out:
        typer.echo(f"  -  {_source(left)}: {left.token_count} tokens, {left.reason}", err=True)


def _source(found: Passage | LeftOut) -> str:
    page = f", page {found.page}" if found.page is not None else ""
    return " › ".join((found.uri, *found.heading_path)) + page
