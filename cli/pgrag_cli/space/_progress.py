"""Serves the commands that build an index: how far it is, as a bar on a terminal, else as a line a phase."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from pgrag.spaces import BuildProgress

__all__ = ["build_progress"]


@contextmanager
def build_progress() -> Iterator[Callable[[BuildProgress], None]]:
    """Yield what is to be called with the progress of a build."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines()
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=None)
        last = ""

        def show(progress: BuildProgress) -> None:
            nonlocal last
            if progress.phase != last:
                bar.reset(task, total=progress.total)
                last = progress.phase
            bar.update(task, description=_words(progress), completed=progress.done or 0, total=progress.total)

        yield show


def _lines() -> Callable[[BuildProgress], None]:
    said = ""

    def say(progress: BuildProgress) -> None:
        nonlocal said
        if (words := _words(progress)) != said:
            typer.echo(words, err=True)
            said = words

    return say


def _words(progress: BuildProgress) -> str:
    if progress.waits_for is not None:
        return f"{progress.phase}: process {progress.waits_for} has to end its transaction"
    return progress.phase
