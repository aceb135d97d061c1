"""Serves ``pgrag reindex --space``: how far a change of model is, and what the gate says, in words."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from pgrag.change import ChangeProgress
from pgrag.evaluate import Verdict

__all__ = ["change_progress", "print_verdict"]

# Where there is no terminal, a line so often.
_LINE_SECONDS = 10.0


@contextmanager
def change_progress() -> Iterator[Callable[[ChangeProgress], None]]:
    """Yield what is to be called as it goes on: a bar on a terminal, else a line now and then."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines()
        return
    columns = (BarColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda progress: bar.update(
            task, description=_words(progress), completed=progress.done, total=progress.total
        )


def print_verdict(verdict: Verdict) -> None:
    """Print what the gate found: the figures to stdout, the rest to stderr."""
    table = Table("arm", "measure")
    for name in ("old", "new", "p", "better", "equal", "worse"):
        table.add_column(name, justify="right")
    for one in verdict.comparisons:
        counts = (
            ("-",) * 4 if one.p is None else (f"{one.p:.4f}", *map(str, (one.wins, one.ties, one.losses)))
        )
        old = "-" if one.old is None else f"{one.old:.3f}"
        table.add_row(one.arm, one.measure, old, f"{one.new:.3f}", *counts)
    typer.echo(
        f"{verdict.queries:,} judged queries; old: {verdict.compared_with}; new: space {verdict.new}.",
        err=True,
    )
    if verdict.left_out:
        typer.echo(
            f"{verdict.left_out:,} more are left out: the collection holds none of their answers.", err=True
        )
    Console().print(table)


def _lines() -> Callable[[ChangeProgress], None]:
    said = ("", False)
    at = 0.0
    told_lacking = False

    def say(progress: ChangeProgress) -> None:
        nonlocal said, at, told_lacking
        kind = (progress.stage + progress.detail, progress.paused)
        full = progress.stage == "fill" and progress.done == progress.total
        # That nothing is lacking is news only after it was said that something is.
        if (full and not told_lacking) or progress.stage in ("gate", "activate"):
            return
        if full or kind != said or time.monotonic() >= at + _LINE_SECONDS:
            typer.echo(_words(progress), err=True)
            said, at = kind, time.monotonic()
            told_lacking = progress.stage == "fill" and not full

    return say


def _words(progress: ChangeProgress) -> str:
    if progress.stage == "index":
        return progress.detail
    if progress.stage == "gate":
        return f"{progress.done:,} of {progress.total or 0:,} judged queries asked"
    if progress.stage == "activate":
        return "activating"
    words = f"{progress.done:,} of {progress.total or 0:,} passages have their vectors"
    if progress.done == progress.total:
        return words
    if progress.paused:
        return f"{words}; paused, until: --resume"
    if progress.seconds_left is not None:
        words += f", about {_duration(progress.seconds_left)} left"
    elif progress.claimed:
        words += f"; workers have {progress.claimed:,}"
        if progress.due_at is not None:
            words += f", until {progress.due_at.astimezone():%H:%M:%S} at the latest"
    if progress.failing:
        words += f"; {progress.failing:,} were tried in vain and are tried again"
    return words


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
