"""``pgrag space``: the embedding spaces, a file a command."""

from __future__ import annotations

from collections.abc import Callable

import typer

from pgrag_cli.space.activate import activate
from pgrag_cli.space.attach import attach
from pgrag_cli.space.build import build
from pgrag_cli.space.calibrate import calibrate
from pgrag_cli.space.create import create
from pgrag_cli.space.drop import drop
from pgrag_cli.space.evaluate import evaluate
from pgrag_cli.space.fit import fit
from pgrag_cli.space.list import list_
from pgrag_cli.space.retire import retire
from pgrag_cli.space.show import show

__all__ = ["COMMANDS", "app"]

COMMANDS: list[Callable[..., None]] = [
    list_,
    show,
    create,
    attach,
    build,
    calibrate,
    evaluate,
    fit,
    activate,
    retire,
    drop,
]

app = typer.Typer(no_args_is_help=True, help="Make, fill, index, measure and change embedding spaces.")

for command in COMMANDS:
    app.command(command.__name__.rstrip("_"))(command)
