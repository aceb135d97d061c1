"""``pgrag eval tune``: which settings answer the judged queries better, by more than chance."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

import psycopg
import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from pgrag.errors import translated
from pgrag.evaluate._tune import SWEEPS, Tuning, tune_collection
from pgrag_cli._database import DatabaseUrl, resolve_dsn
from pgrag_cli._encoder import load_encoder

__all__ = ["tune"]


def tune(
    collection: Annotated[str, typer.Option("--collection", metavar="NAME", help="Whose judged queries.")],
    sweep: Annotated[
        str,
        typer.Option("--sweep", metavar="A,B", help=f"What to try, of {', '.join(SWEEPS)}."),
    ] = "k1,b,rrf_k,weights,depth,fusion",
    folds: Annotated[
        int, typer.Option("--folds", min=2, max=1000, help="Parts, each scored by what the others choose.")
    ] = 5,
    apply: Annotated[bool, typer.Option("--apply", help="Give the collection what is proposed.")] = False,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="MODEL",
            show_default=False,
            help="Embed with this, as in pgrag worker --help; else in SQL, by the space's table.",
        ),
    ] = None,
    as_: Annotated[
        list[str] | None,
        typer.Option(
            "--as",
            metavar="PRINCIPAL",
            help="Who asks queries that name nobody; else the public.",
            show_default=False,
        ),
    ] = None,
    measured_by: Annotated[
        str, typer.Option("--measure", metavar="NAME", help="What is compared.")
    ] = "ndcg@10",
    seed: Annotated[
        int, typer.Option("--seed", min=0, max=2**31 - 1, help="The same draws the same folds.")
    ] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Sweep settings by cross-validation on judged queries, and propose those that are significantly better.

    It needs at least 20 judged queries with an answer. k1 and b of BM25 are chosen together (bm25), and so are fusion, rrf_k and
    weights (fusion); budget is the tokens of a packed context.
    """
    console = Console(stderr=True)
    with translated(), psycopg.connect(resolve_dsn(database_url), autocommit=True) as connection:
        encoder = None
        if model is not None:
            with connection.transaction():
                row = connection.execute(
                    "select space from pgrag.collection_settings(%s)", (collection,)
                ).fetchone()
            encoder = load_encoder(model, row[0] if row else None)
        with Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        ) as bar:
            task = bar.add_task("queries", total=None)
            made = tune_collection(
                connection,
                collection,
                sweep=[name.strip() for name in sweep.split(",") if name.strip()],
                folds=folds,
                encoder=encoder,
                principals=as_ or (),
                apply=apply,
                seed=seed,
                measured_by=measured_by,
                on_progress=lambda stage, done, total: bar.update(
                    task, description=stage, completed=done, total=total
                ),
            )
    if as_json:
        typer.echo(json.dumps(asdict(made), ensure_ascii=False))
    else:
        _show(made)


def _show(made: Tuning) -> None:
    console = Console()
    if made.trials:
        table = Table("settings")
        for head in ("tried", "now", "tuned", "change, 95 %", "p", "+/=/-"):
            table.add_column(head, justify="right", overflow="fold")
        choices = Table("settings")
        choices.add_column("chosen by all queries", overflow="fold")
        for one in made.trials:
            table.add_row(
                one.group,
                f"{one.tried:,}",
                f"{one.old:.3f}",
                f"{one.new:.3f}",
                f"{one.low:+.3f} to {one.high:+.3f}",
                f"{one.p_holm:.3f}",
                f"{one.wins}/{one.ties}/{one.losses}",
            )
            choices.add_row(one.group, escape(_words(one.chosen)))
        console.print(table)
        console.print(choices)
    if made.budgets:
        table = Table("budget", "answers packed", "p")
        for budget in made.budgets:
            table.add_row(f"{budget.tokens:,}", f"{budget.recall:.3f}", f"{budget.p_holm:.3f}")
        console.print(table)
        typer.echo(f"A budget of {made.budget:,} tokens keeps as much as the largest, as far as can be told.")
    typer.echo(
        f"{made.measure} of {made.queries:,} queries in {made.folds} folds. now: {_words(made.current)}. tuned: each query by"
        " what the other folds chose; p: by paired permutation, after Holm; +/=/-: queries that are better, equal and worse."
        f" Kept as run {made.run_id}.",
        err=True,
    )
    typer.echo(
        f"Proposed: {_words(made.proposal)} ({made.reason})"
        if made.proposal
        else f"Proposed: nothing, since {made.reason}"
    )
    if made.applied:
        typer.echo(f'Collection "{made.collection}" has it now.', err=True)
    elif made.proposal:
        typer.echo(f"Next: pgrag eval tune --collection {made.collection} --apply", err=True)


def _words(chosen: Mapping[str, Any]) -> str:
    """Write settings in words: ``k1 0.9, weights lexical 1 dense 0.4``."""
    words = []
    for name, value in chosen.items():
        if isinstance(value, Mapping):
            value = " ".join(f"{arm} {weight:g}" for arm, weight in value.items())
        words.append(f"{name} {value}")
    return ", ".join(words) or "the present ones"
