"""What ``pgrag eval`` says in several commands."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from pgrag.evaluate import Import

__all__ = ["names", "say_left"]

_NAMED = 3


def names(known: Sequence[str]) -> str:
    """Name the first three, and how many more there are."""
    more = len(known) - _NAMED
    return ", ".join(known[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def say_left(done: Import, collection: str, *, marked_in: str) -> None:
    """Say on stderr what an import left out, doesn't know, or won't be found; and the next step.

    Args:
        done: What was taken in.
        collection: Its name.
        marked_in: The file that says of a query that nothing answers it.
    """
    if done.unjudged:
        typer.echo(
            f"{_queries(len(done.unjudged))} no judgement: left out ({names(done.unjudged)}). Where nothing answers one,"
            f' say "unanswerable": true in {marked_in}.',
            err=True,
        )
    if done.unknown:
        typer.echo(
            f'Of the judged documents, {done.unknown:,} are not in collection "{collection}": {names(done.unknown_uris)}.'
            " A document is meant by its uri.",
            err=True,
        )
    # Those whose asker a file says, and the others: who else shall ask is said at different places.
    for told, where in (
        (True, "principals in queries.jsonl or askers.jsonl say who asks"),
        (False, "--as says who asks"),
    ):
        hidden = [pair for pair in done.hidden_answers if (pair[0] in done.told_who) is told]
        if hidden:
            typer.echo(
                f"Of the answers, {len(hidden):,} can't be read by who asks, and won't be found:"
                f" {names([f'{uri} for query {query_id}' for query_id, uri in hidden])}; {where}.",
                err=True,
            )


def _queries(number: int) -> str:
    return "1 query has" if number == 1 else f"{number:,} queries have"
