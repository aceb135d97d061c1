"""``pgrag worker``: embeds what the queue holds."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import psycopg
import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TaskProgressColumn, TextColumn

from pgrag.errors import translated
from pgrag.worker import WorkProgress, work
from pgrag_cli._database import DatabaseUrl, resolve_dsn
from pgrag_cli._encoder import MODEL_HELP, load_encoder
from pgrag_cli._signals import stop_signals

__all__ = ["worker"]

# Between two lines of progress where nobody watches.
_SAY_SECONDS = 10.0
# What nobody waits longer for.
_DAY_SECONDS = 86_400.0


def worker(
    space: Annotated[
        str | None,
        typer.Option(
            "--space", metavar="NAME", show_default=False, help="The space; else the model's own name."
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="MODEL",
            show_default=False,
            help=f"{MODEL_HELP}; else the shipped encoder.",
        ),
    ] = None,
    encoder: Annotated[
        bool,
        typer.Option(
            help="Embed; without, only merge the index of a database that is searched by words alone."
        ),
    ] = True,
    once: Annotated[bool, typer.Option("--once", help="Stop when nothing is due.")] = False,
    batch: Annotated[
        int, typer.Option("--batch", min=1, max=100_000, help="Most chunks claimed at once.")
    ] = 256,
    lease_seconds: Annotated[
        float,
        typer.Option(
            "--lease-seconds", min=0.001, max=_DAY_SECONDS, help="How long a batch is this worker's."
        ),
    ] = 300.0,
    idle_seconds: Annotated[
        float,
        typer.Option(
            "--idle-seconds", min=0.0, max=_DAY_SECONDS, help="How long to wait when nothing is due."
        ),
    ] = 5.0,
    heartbeat: Annotated[
        Path | None,
        typer.Option(
            "--heartbeat",
            metavar="FILE",
            show_default=False,
            help="Touched after every batch and every look at the queue, for a health check.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the counts as one JSON object at the end.")
    ] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Embed what the queue holds, and merge the index in the quiet, until SIGTERM or Ctrl-C.

    What was claimed is finished first; a second signal ends it at once. Any number of workers may run.
    """
    if not encoder and (model is not None or space is not None):
        raise typer.BadParameter("embeds nothing, so no model or space is of use", param_hint="--no-encoder")
    loaded = load_encoder(model, space) if encoder else None
    with ExitStack() as stack:
        wait = stack.enter_context(stop_signals())
        with translated():
            connection = stack.enter_context(psycopg.connect(resolve_dsn(database_url), autocommit=True))
        show = _progress(stack)

        def on_progress(progress: WorkProgress) -> None:
            if heartbeat is not None:
                heartbeat.touch()
            show(progress)

        done = work(
            connection,
            loaded,
            space=space or (loaded.name if loaded else ""),
            wait=wait,
            once=once,
            batch=batch,
            lease=timedelta(seconds=lease_seconds),
            idle_seconds=idle_seconds,
            on_progress=on_progress,
            on_failure=lambda chunk_id, reason: typer.echo(f"chunk {chunk_id}: {reason}", err=True),
        )
    typer.echo(json.dumps(asdict(done)) if as_json else _words(done))
    if once and done.failed:
        raise typer.Exit(1)


def _progress(stack: ExitStack) -> Callable[[WorkProgress], None]:
    """Show the counts on stderr: as they grow on a terminal, else now and then, and when the queue is empty."""
    console = Console(stderr=True)
    said = WorkProgress()
    if console.is_terminal:
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TaskProgressColumn(show_speed=True))
        bar = stack.enter_context(Progress(*columns, console=console, transient=True))
        task = bar.add_task(_words(said), total=None)
        return lambda progress: bar.update(task, completed=progress.stored, description=_words(progress))
    last, said_at = said, time.monotonic()

    def say(progress: WorkProgress) -> None:
        nonlocal said, last, said_at
        seconds = time.monotonic() - said_at
        if progress == last and progress != said:
            typer.echo(_words(progress), err=True)
            said, said_at = progress, time.monotonic()
        elif seconds >= _SAY_SECONDS:
            rate = (progress.stored - said.stored) / seconds
            if progress != said:
                typer.echo(f"{_words(progress)}; {rate:,.0f} vectors a second", err=True)
            said, said_at = progress, time.monotonic()
        last = progress

    return say


def _words(progress: WorkProgress) -> str:
    copied = f" ({progress.copied:,} of a text that had one)" if progress.copied else ""
    return (
        f"{progress.stored:,} vectors stored{copied}, {progress.failed:,} attempts failed,"
        f" {progress.passed_over:,} chunks had changed"
    )
