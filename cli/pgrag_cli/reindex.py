"""``pgrag reindex``: makes what a collection is searched by anew, beside searches and writes: words, or vectors."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import asdict
from typing import Annotated

import psycopg
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TimeRemainingColumn

from pgrag.change import Change, GateClosed, change_model
from pgrag.errors import PgragError, translated
from pgrag.index import rebuild as build_anew
from pgrag.index import reindex as analyse_again
from pgrag.index import set_analyzer
from pgrag.spaces import pause_space, resume_space
from pgrag_cli._change import change_progress, print_verdict
from pgrag_cli._database import DatabaseUrl, resolve_dsn
from pgrag_cli._encoder import MODEL_HELP, load_encoder
from pgrag_cli._signals import stop_signals

__all__ = ["reindex"]

# Chunks in one transaction, where nothing is said: of words, of vectors.
_BATCH = {"lexical": 1000, "space": 256}


def reindex(
    collection: Annotated[
        str | None, typer.Option("--collection", metavar="NAME", help="Whose passages.", show_default=False)
    ] = None,
    lexical: Annotated[bool, typer.Option("--lexical", help="Analyse for the lexical index again.")] = False,
    analyzer: Annotated[
        str | None,
        typer.Option(
            "--analyzer", metavar="NAME", help="Of words: change to this analyzer.", show_default=False
        ),
    ] = None,
    rebuild: Annotated[
        bool,
        typer.Option("--rebuild", help="Of words: build the postings anew as well; writers wait meanwhile."),
    ] = False,
    space: Annotated[
        str | None,
        typer.Option(
            "--space",
            metavar="NEW",
            help="Embed into this space, made where it isn't there, and let it answer.",
            show_default=False,
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", metavar="MODEL", help=f"Of the new space. {MODEL_HELP}.", show_default=False),
    ] = None,
    old_model: Annotated[
        str | None,
        typer.Option(
            "--old-model",
            metavar="MODEL",
            help="Of the space that answers now, to compare with; else its token table embeds the queries.",
            show_default=False,
        ),
    ] = None,
    activate: Annotated[
        bool, typer.Option(help="Let the new space answer at the end; else it is left ready.")
    ] = True,
    force: Annotated[
        bool,
        typer.Option("--force", help="Activate whatever the gate says, and though passages have no vector."),
    ] = False,
    pause: Annotated[
        bool, typer.Option("--pause", help="Only say to all workers of the space: claim nothing more.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Say to them: go on. With --model, this run goes on as well.")
    ] = False,
    batch: Annotated[
        int | None,
        typer.Option(
            "--batch",
            min=1,
            max=100_000,
            help="Passages at once; else 1000 of words, 256 of vectors.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Of vectors: print what came of it.")] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Analyse or embed the passages of a collection anew, beside searches and writes; repeated, a stopped run goes on.

    With `--lexical` words. With `--space NEW --model MODEL` vectors: the space of now answers until the new one is filled,
    here and by every `pgrag worker` of it, indexed, and no worse on the judged queries.
    """
    if lexical == (space is not None):
        raise typer.BadParameter("say one of them: words or vectors", param_hint="--lexical, --space")
    of_words = analyzer is not None or rebuild
    of_vectors = (
        model is not None or old_model is not None or force or pause or resume or not activate or as_json
    )
    if (of_words and space is not None) or (of_vectors and lexical):
        raise typer.BadParameter(
            "--analyzer and --rebuild go with --lexical, all others with --space",
            param_hint="--lexical" if lexical else "--space",
        )
    if pause and (resume or model is not None):
        raise typer.BadParameter("only pauses", param_hint="--pause")
    only_flag = pause or (resume and model is None)
    if not only_flag and collection is None:
        raise typer.BadParameter("name the collection", param_hint="--collection")
    with ExitStack() as stack:
        stack.enter_context(translated())
        connection = stack.enter_context(psycopg.connect(resolve_dsn(database_url), autocommit=True))
        if collection is not None and lexical:
            _words(connection, collection, analyzer, rebuild, batch or _BATCH["lexical"])
            return
        assert space is not None  # noqa: S101 - checked above
        if pause:
            done = pause_space(connection, space)
            typer.echo(f'Space "{space}" is paused{"" if done else " already"}.', err=True)
        if resume:
            done = resume_space(connection, space)
            typer.echo(f'Space "{space}" {"goes on" if done else "was not paused"}.', err=True)
        if collection is None or only_flag:
            return
        _vectors(
            stack,
            connection,
            collection,
            space,
            model,
            old_model=old_model,
            activate=activate,
            force=force,
            batch=batch or _BATCH["space"],
            as_json=as_json,
        )


def _words(
    connection: psycopg.Connection[tuple[object, ...]],
    collection: str,
    analyzer: str | None,
    rebuild: bool,
    batch: int,
) -> None:
    """Analyse the chunks again, and where asked build the postings anew."""
    if analyzer is not None and set_analyzer(connection, collection, analyzer):
        typer.echo(
            f'Collection "{collection}" is searched by {analyzer} from now on; until this run ends, some of its'
            " chunks are still indexed the old way.",
            err=True,
        )
    with Progress(
        BarColumn(),
        MofNCompleteColumn(),
        TaskProgressColumn(show_speed=True),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not Console(stderr=True).is_terminal,
    ) as bar:
        task = bar.add_task("chunks", total=None)

        def show(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        done = analyse_again(connection, collection, batch=batch, on_batch=show)
    typer.echo(f"{done:,} chunks are analysed as the analyzer does now.", err=True)
    if rebuild:
        with Console(stderr=True).status("Building postings; writers wait"):
            build_anew(connection, collection)
        typer.echo("Postings, statistics and lexemes are built anew.", err=True)


def _vectors(
    stack: ExitStack,
    connection: psycopg.Connection[tuple[object, ...]],
    collection: str,
    space: str,
    model: str | None,
    *,
    old_model: str | None,
    activate: bool,
    force: bool,
    batch: int,
    as_json: bool,
) -> None:
    """Fill the new space, and let it answer where the gate is open."""
    encoder = load_encoder(model, space)
    old_encoder = None if old_model is None else load_encoder(old_model)
    wait = stack.enter_context(stop_signals())
    try:
        with change_progress() as show:
            change = change_model(
                connection,
                collection,
                encoder,
                old_encoder=old_encoder,
                activate=activate,
                force=force,
                batch=batch,
                wait=wait,
                on_progress=show,
                on_failure=lambda chunk_id, reason: typer.echo(f"chunk {chunk_id}: {reason}", err=True),
                on_lack=_say_lack,
            )
    except GateClosed as closed:
        if as_json:
            typer.echo(json.dumps({"activated": False, "verdict": asdict(closed.verdict)}))
        else:
            print_verdict(closed.verdict)
        raise
    if as_json:
        typer.echo(json.dumps(asdict(change)))
    elif change.verdict is not None:
        print_verdict(change.verdict)
    _say(change, activate)


def _say_lack(lack: PgragError) -> None:
    """Say at the beginning what the gate lacks, since there is time to see to it."""
    typer.echo(f"As yet {lack.message}; until the space is filled there is time.\nTry: {lack.hint}", err=True)


def _say(change: Change, activate: bool) -> None:
    """Say what came of it, and the next step."""
    new, collection = change.space, change.collection
    if change.unasked is not None:
        typer.echo(f"The gate was not asked: {change.unasked}.", err=True)
    if not change.activated:
        typer.echo(
            f'Space "{new}" is filled, indexed and ready; {change.before or "nothing"} goes on to answer.\n'
            f"Next: the same without --no-activate, or without a gate: pgrag space activate {new} --collection {collection}",
            err=True,
        )
        return
    if change.before == new:
        typer.echo(f'Collection "{collection}" was searched by {new} already; it lacks nothing.', err=True)
        return
    typer.echo(f'Collection "{collection}" is searched by {new}.', err=True)
    if change.before is not None:
        typer.echo(
            f"To go back: pgrag space activate {change.before} --collection {collection}\n"
            f"When you never will: pgrag space retire {change.before}",
            err=True,
        )
    if change.query_encoder is None:
        typer.echo(
            f"In SQL nothing embeds queries for it: pgrag search --model MODEL, or pgrag space fit {new}",
            err=True,
        )
