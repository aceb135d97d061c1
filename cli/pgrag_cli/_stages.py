"""Serves the commands that go through stages: how far they are, as a bar on a terminal, else as a line where words change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

import typer
from rich.console import Console
from rich.progress import Progress, ProgressColumn

__all__ = ["Stage", "show_stages"]


class Stage(Protocol):
    """How far a stage is."""

    @property
    def done(self) -> int | None:
        """What is done of it; None where nothing is counted."""

    @property
    def total(self) -> int | None:
        """Of how much; None where that isn't known."""


S = TypeVar("S", bound=Stage)


@contextmanager
def show_stages(
    *columns: ProgressColumn, stage: Callable[[S], str], words: Callable[[S], str]
) -> Iterator[Callable[[S], None]]:
    """Yield what is to be called as it goes on.

    Args:
        columns: Of the bar.
        stage: Names the stage; the bar begins anew with each.
        words: Says how far it is; the line that stands for the bar where there is no terminal.
    """
    console = Console(stderr=True)
    last = ""

    def say(progress: S) -> None:
        nonlocal last
        if (said := words(progress)) != last:
            typer.echo(said, err=True)
            last = said

    if not console.is_terminal:
        yield say
        return
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=None)

        def show(progress: S) -> None:
            nonlocal last
            if stage(progress) != last:
                bar.reset(task, total=progress.total)
                last = stage(progress)
            bar.update(task, description=words(progress), completed=progress.done or 0, total=progress.total)

        yield show
