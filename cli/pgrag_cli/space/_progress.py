"""Serves the commands that build an index: how far it is."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from pgrag.spaces import BuildProgress
from pgrag_cli._stages import show_stages

__all__ = ["build_progress"]


def build_progress() -> AbstractContextManager[Callable[[BuildProgress], None]]:
    """Return what yields what is to be called with the progress of a build."""
    return show_stages(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        stage=lambda progress: progress.phase,
        words=_words,
    )


def _words(progress: BuildProgress) -> str:
    if progress.waits_for is not None:
        return f"{progress.phase}: process {progress.waits_for} has to end its transaction"
    return progress.phase
