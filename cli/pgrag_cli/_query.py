"""Serves the commands that take a query: how it is typed, and what is said where it has no word."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand

__all__ = ["QueryCommand", "say_nothing_found"]

_QUOTES_HINT = "Put the query in quotes: pgrag {} 'old pump' --as WHO"
_DASH_HINT = "A query beginning with - goes after --: pgrag {} --as WHO -- '-old pump'"


class QueryCommand(TyperCommand):
    """A command whose argument is a query; wrong usage that comes from how it was typed gets a hint."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments, and add to the message of what is refused how a query is typed."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            # Typer brings its own copy of click's errors, or click's, by its version: names are the same.
            kind = type(error).__name__
            if kind == "NoSuchOption" and not getattr(error, "option_name", "--").startswith("--"):
                _add(error, _QUOTES_HINT.format(self.name), _DASH_HINT.format(self.name))
            elif kind == "UsageError":  # and none of its kinds: words that are left over
                _add(error, _QUOTES_HINT.format(self.name))
            raise


def say_nothing_found(query: str, who: list[str]) -> None:
    """Say on stderr that nothing matches, or that there was nothing to match."""
    if any(character.isalnum() for character in query):
        typer.echo(f"Nothing that {', '.join(who)} may read matches.", err=True)
    else:
        typer.echo("The query has no word to look for.", err=True)


def _add(error: Any, *hints: str) -> None:
    error.message = "\n".join((error.message, *hints))
