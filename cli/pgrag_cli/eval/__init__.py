"""``pgrag eval``: judged queries and what is measured by them, a file a command."""

from __future__ import annotations

from collections.abc import Callable

import typer

from pgrag_cli.eval.answers import answers
from pgrag_cli.eval.compare import compare
from pgrag_cli.eval.drop import drop
from pgrag_cli.eval.export import export
from pgrag_cli.eval.forget import forget
from pgrag_cli.eval.import_ import import_
from pgrag_cli.eval.report import report
from pgrag_cli.eval.run import RunCommand, run
from pgrag_cli.eval.runs import runs
from pgrag_cli.eval.tune import tune

__all__ = ["COMMANDS", "app"]

# One line a command, in the order in which they are used.
COMMANDS: list[Callable[..., None]] = [
    import_,
    run,
    compare,
    report,
    tune,
    runs,
    export,
    answers,
    drop,
    forget,
]

app = typer.Typer(
    no_args_is_help=True, help="Judged queries, by which a change is held against what was before."
)


@app.callback()
def _group() -> None:
    """Judged queries, by which a change is held against what was before."""


for command in COMMANDS:
    app.command(command.__name__.rstrip("_"), cls=RunCommand if command is run else None)(command)
