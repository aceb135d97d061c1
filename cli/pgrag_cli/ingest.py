"""``pgrag ingest``: files and folders into a collection."""

from __future__ import annotations

import json
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Annotated

import psycopg
import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from pgrag.access import ReadersFile, add_groups, check_readers, load_readers_file
from pgrag.embed import StaticEncoder
from pgrag.errors import PgragError, Refused, translated
from pgrag.index import ensure_collection
from pgrag.ingest import IngestProgress, IngestReport, ProgressCallback, ingest_paths, walk
from pgrag.spaces import embed_static
from pgrag_cli._database import DatabaseUrl, resolve_dsn

__all__ = ["ingest"]


def ingest(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATH…", help="Files and folders.", show_default=False, readable=False),
    ],
    collection: Annotated[str, typer.Option("--collection", metavar="NAME", help="Where they go.")],
    readers: Annotated[
        list[str] | None,
        typer.Option(
            "--reader",
            metavar="READER",
            show_default=False,
            help="Who may read: public, user:NAME, group:NAME, role:NAME; ! before it: may not. Repeatable.",
        ),
    ] = None,
    readers_file: Annotated[
        Path | None,
        typer.Option(
            "--readers-file",
            metavar="FILE",
            show_default=False,
            help="A readers.toml: groups, and access rules by path; the last that matches wins.",
        ),
    ] = None,
    language: Annotated[
        str | None,
        typer.Option(
            "--language",
            metavar="TAG",
            show_default=False,
            help="Language of the files that declare none, such as de or pt-BR; else the collection's analyzer is used.",
        ),
    ] = None,
    create_readers: Annotated[
        bool,
        typer.Option(
            "--create-readers",
            help="Make unknown readers known, and put the members of the file's groups into them.",
        ),
    ] = False,
    create: Annotated[
        bool, typer.Option("--create-collection", help="Make the collection if it doesn't exist.")
    ] = False,
    prune: Annotated[
        bool,
        typer.Option(
            "--prune", help="Remove all that the collection holds and these folders don't; name every one."
        ),
    ] = False,
    prune_most: Annotated[
        bool,
        typer.Option("--prune-most", help="Prune even where most of the collection would go."),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the summary as one JSON object, the last line.")
    ] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Bring Markdown, text, HTML and PDF files into a collection; those that didn't change are skipped."""
    rules = load_readers_file(readers_file) if readers_file is not None else None
    named = tuple(readers or ())
    if not named and rules is None:
        raise PgragError(
            "no readers are named, so nobody could read the documents", "Add --reader group:NAME."
        )
    encoder = StaticEncoder.shipped()
    with ExitStack() as stack:
        with translated():
            connection = stack.enter_context(psycopg.connect(resolve_dsn(database_url), autocommit=True))
        if create:
            ensure_collection(connection, collection)
        _prepare_readers(connection, named, rules, create=create_readers)
        try:
            report = ingest_paths(
                connection,
                paths,
                collection=collection,
                readers=named,
                readers_for=rules.readers_of if rules is not None else None,
                prune=prune,
                prune_most=prune_most,
                progress=_progress_bar(stack, paths),
                count_tokens=encoder.count_tokens,
                tokenizer=encoder.name,
                language=language,
                embed_pending=partial(embed_static, connection, collection, encoder),
            )
        except Refused as error:
            if error.code == "RG002":
                raise PgragError(
                    error.message, "If it is no typing error, add --create-collection."
                ) from error
            raise
    _print(report, prune=prune, as_json=as_json)
    if report.failures:
        raise typer.Exit(1)


def _prepare_readers(
    connection: psycopg.Connection[tuple[object, ...]],
    named: tuple[str, ...],
    rules: ReadersFile | None,
    *,
    create: bool,
) -> None:
    check_readers(connection, [*named, *(rules.principals if rules is not None else ())], create=create)
    if create and rules is not None:
        add_groups(connection, rules.groups)


def _progress_bar(stack: ExitStack, paths: list[Path]) -> ProgressCallback | None:
    """Show a bar on stderr, if that is a terminal; the files are counted first, which is quick."""
    console = Console(stderr=True)
    if not console.is_terminal:
        return None
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TaskProgressColumn(show_speed=True),
        TextColumn("{task.fields[chunks]:,} chunks"),
        TimeRemainingColumn(),
    )
    bar = stack.enter_context(Progress(*columns, console=console, transient=True))
    task = bar.add_task("files", total=sum(1 for _ in walk(paths)), chunks=0)

    def show(progress: IngestProgress, /) -> None:
        bar.update(task, completed=progress.files, chunks=progress.chunks)

    return show


def _print(report: IngestReport, *, prune: bool, as_json: bool) -> None:
    if as_json:
        failures = [{"path": failure.path, "reason": failure.reason} for failure in report.failures]
        summary = {"documents": report.documents, "unchanged": report.unchanged, "chunks": report.chunks}
        pruned = {"pruned": report.pruned} if prune else {}
        typer.echo(json.dumps({**summary, **pruned, "failures": failures}))
        return
    counts = [
        f"{report.documents:,} documents taken in",
        f"{report.chunks:,} chunks",
        f"{report.unchanged:,} unchanged",
        *([f"{report.pruned:,} removed"] if prune else []),
        f"{len(report.failures):,} failed",
    ]
    typer.echo(", ".join(counts))
    for failure in report.failures:
        typer.echo(f"  {failure.path}: {failure.reason}", err=True)
