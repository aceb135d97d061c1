"""``pgrag eval run``: ask the judged queries of a collection, and measure what comes of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import psycopg
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text
from typer.core import TyperCommand

from pgrag.errors import PgragError, translated
from pgrag.evaluate import (
    ARMS,
    DEFAULT_MEASURES,
    PROMISE,
    SEARCH_STAGES,
    STAGES,
    Options,
    RunDocument,
    evaluate_collection,
    import_beir,
    load_run,
    options_of,
    setting_differences,
)
from pgrag_cli._database import DatabaseUrl, redact, resolve_dsn
from pgrag_cli._encoder import MODEL_HELP, load_encoder
from pgrag_cli.eval._words import names, say_left

__all__ = ["RunCommand", "run"]

_STDOUT = "-"
_NAMED = 10
_SAYS = {
    "judged@10": "judged@10: share of the first 10 that somebody judged; where it is low, the others are lower bounds.",
    "ann_recall@10": "ann_recall@10: share of the 10 exactly nearest passages that the index found; needs no judgement.",
}
# Settings whose values say nothing to people.
_DIGESTS = {
    "digest": "the documents, or who may read them",
    "judged.sha256": "the judged queries, or their judgements",
}


class RunCommand(TyperCommand):
    """The command with ``--json`` that may stand without a value, and means stdout then."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; ``--json`` before another option, or last, gets its ``-``."""
        said: list[str] = []
        for place, word in enumerate(args):
            said.append(word)
            after = args[place + 1] if place + 1 < len(args) else None
            if word == "--json" and (after is None or (after.startswith("-") and after != _STDOUT)):
                said.append(_STDOUT)
        return super().parse_args(ctx, said)


def run(
    collection: Annotated[
        str | None,
        typer.Option("--collection", metavar="NAME", show_default=False, help="Whose documents answer."),
    ] = None,
    beir: Annotated[
        Path | None,
        typer.Option(
            "--beir",
            metavar="DIR",
            exists=True,
            file_okay=False,
            show_default=False,
            help="Take these judged queries in first, as pgrag eval import does, and ask no others; else all that the"
            " collection has.",
        ),
    ] = None,
    split: Annotated[
        str, typer.Option("--split", metavar="NAME", help="Of the judgements of a folder.")
    ] = "test",
    as_: Annotated[
        list[str] | None,
        typer.Option(
            "--as",
            metavar="PRINCIPAL",
            show_default=False,
            help="Who asks a query of which it isn't known; else the public.",
        ),
    ] = None,
    arm: Annotated[
        list[str] | None,
        typer.Option(
            "--arm",
            metavar="ARM",
            show_default=False,
            help=f"{', '.join(ARMS)}; repeat it for several, else all that can be asked.",
        ),
    ] = None,
    space: Annotated[
        str | None,
        typer.Option(
            "--space", metavar="NAME", show_default=False, help="Ask this one; else the one that answers."
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="MODEL",
            show_default=False,
            help=f"Embed the queries with this; else in SQL, by the space's table. {MODEL_HELP}.",
        ),
    ] = None,
    measure: Annotated[
        list[str] | None,
        typer.Option(
            "--measure",
            metavar="MEASURE",
            show_default=False,
            help=f"Such as ndcg_exp@10; repeat it for several, else {', '.join(DEFAULT_MEASURES)}.",
        ),
    ] = None,
    documents: Annotated[
        int,
        typer.Option(
            "--documents",
            min=1,
            max=1000,
            help="How many are ranked; those beyond the collection's depth are of a deeper search.",
        ),
    ] = Options.documents,
    k: Annotated[
        int,
        typer.Option(
            "-k", min=1, max=1000, help="Hits of a search: what the ledger and the first places are of."
        ),
    ] = Options.k,
    budget: Annotated[
        int,
        typer.Option(
            "--budget", metavar="TOKENS", min=0, max=10_000_000, help="Of packing; 0 leaves it out."
        ),
    ] = 2000,
    lsa_from: Annotated[
        Literal["asker", "public"],
        typer.Option(
            "--lsa-from", help="What the baseline lsa learns from: what who asks may read, or what all may."
        ),
    ] = "asker",
    abstain: Annotated[
        bool,
        typer.Option(
            "--abstain", help="Count queries that nothing answers: 1 where nothing is found, else 0."
        ),
    ] = False,
    ledger: Annotated[
        bool, typer.Option(help="Tell of each piece of evidence at which stage it was lost.")
    ] = True,
    timings: Annotated[bool, typer.Option(help="Measure each stage's time.")] = True,
    system: Annotated[
        bool,
        typer.Option(
            "--system",
            help="Measure how long a new document waits until it is found; writers wait for a moment.",
        ),
    ] = False,
    name: Annotated[
        str | None, typer.Option("--name", metavar="TEXT", show_default=False, help="What was tried.")
    ] = None,
    again: Annotated[
        int | None,
        typer.Option(
            "--again",
            metavar="RUN_ID",
            min=1,
            max=2**63 - 1,
            show_default=False,
            help="Repeat this run by the settings that were kept, and say what changed since.",
        ),
    ] = None,
    as_json: Annotated[
        str | None,
        typer.Option(
            "--json",
            metavar="FILE|-",
            show_default=False,
            help="Write the means by arm as one JSON object; without a file to stdout, instead of the tables.",
        ),
    ] = None,
    full: Annotated[
        str | None,
        typer.Option(
            "--full",
            metavar="FILE|-",
            show_default=False,
            help="Write the whole run as one JSON object, likewise.",
        ),
    ] = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Ask the judged queries of a collection, each as who asks it, and keep how well and how fast each arm answers."""
    if collection is not None and again is not None:
        raise typer.BadParameter(
            "name the collection or the run to repeat, not both", param_hint="--collection, --again"
        )
    if collection is None and again is None:
        raise typer.BadParameter(
            "name the collection, or the run to repeat", param_hint="--collection, --again"
        )
    if again is not None and (beir is not None or arm or as_ or measure):
        raise typer.BadParameter("a run is repeated by its own settings", param_hint="--again")
    if _STDOUT in (as_json, full) and as_json == full:
        raise typer.BadParameter("stdout holds one of them", param_hint="--json, --full")
    with translated(), psycopg.connect(resolve_dsn(database_url), autocommit=True) as connection:
        before: RunDocument | None = None
        if again is not None:
            before = load_run(connection, again)
            options = options_of(before)
            collection, model = before["collection"], model or before["settings"].get("model")
        else:
            options = Options(
                arms=tuple(arm or ()),
                principals=tuple(as_ or ()),
                space=space,
                measures=tuple(measure or DEFAULT_MEASURES),
                documents=documents,
                k=k,
                budget_tokens=budget or None,
                lsa_learns_from=lsa_from,
                unanswerable="abstain" if abstain else "skip",
                ledger=ledger,
                timings=timings,
                system=system,
            )
        encoder = None if model is None else load_encoder(model, options.space)
        assert collection is not None  # noqa: S101 - checked above
        if beir is not None:
            options = _with_beir(connection, collection, beir, split, options)
        with _progress() as show:
            document = evaluate_collection(
                connection,
                collection,
                options=options,
                encoder=encoder,
                name=name or (before["name"] if before is not None else None),
                about={} if model is None else {"model": redact(model)},
                on_progress=show,
            )
    _write(as_json, document["metrics"])
    _write(full, document)
    if _STDOUT not in (as_json, full):
        _show(document)
    _say(document)
    if before is not None:
        _say_changes(before, document)


def _with_beir(
    connection: psycopg.Connection[Any], collection: str, folder: Path, split: str, options: Options
) -> Options:
    done = import_beir(connection, collection, folder, principals=options.principals, split=split)
    say_left(done, collection, marked_in="queries.jsonl")
    return replace(options, queries=done.query_ids)


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task("starting", total=None)
        last = ""

        def show(stage: str, done: int, total: int) -> None:
            nonlocal last
            if stage != last:
                bar.reset(task, total=total, description=stage)
                last = stage
            bar.update(task, completed=done)

        yield show


def _write(where: str | None, what: Mapping[str, Any]) -> None:
    if where is None:
        return
    text = json.dumps(what, ensure_ascii=False)
    if where == _STDOUT:
        typer.echo(text)
        return
    try:
        Path(where).write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise PgragError(
            f"{where} can't be written: {error.strerror}", "The run itself is kept: pgrag eval runs"
        ) from error


def _show(document: RunDocument) -> None:
    """Print the tables: measures, the ledger, and times."""
    console = Console()
    arms = [arm for arm in document["settings"]["arms"] if arm in document["metrics"]]
    measures = Table("measure", *arms)
    found = dict.fromkeys(name for arm in arms for name in document["metrics"][arm])
    for name in dict.fromkeys([*document["settings"]["measures"], *found]):
        measures.add_row(name, *(_mean(document, arm, name) for arm in arms))
    console.print(measures)
    told = [says for name, says in _SAYS.items() if any(name in document["metrics"][arm] for arm in arms)]
    if told:
        console.print(Text("\n".join(told), style="dim"))
    lost = document["ledger"]
    if any(lost.values()):
        asked = document["settings"].get("again", {})
        console.print(_ledger_table(lost, document.get("counterfactuals", []), asked))
        if any(one["keeps"] for one in document.get("counterfactuals", [])):
            console.print(
                Text(
                    "What a setting would lose elsewhere isn't counted: weigh both by"
                    f" pgrag eval tune --collection {document['collection']}",
                    style="dim",
                )
            )
    timed = {arm: stages for arm in arms if (stages := document["latency_ms"].get(arm))}
    if timed:
        times = Table("arm", "stage", "p50 ms", "p95 ms", "p99 ms")
        for arm, stages in timed.items():
            for stage in SEARCH_STAGES:
                if stage in stages:
                    times.add_row(arm, stage, *_percentiles(stages[stage]))
        console.print(times)
    lags = document.get("system", {}).get("update_lag_ms", {})
    if lags:
        table = Table("found after a write", "p50 ms", "p95 ms", "p99 ms")
        for arm in ARMS:
            if arm in lags:
                table.add_row(arm, *_percentiles(lags[arm]))
        console.print(table)


def _percentiles(figures: Mapping[str, float]) -> list[str]:
    return [f"{figures[name]:.1f}" for name in ("p50", "p95", "p99")]


def _mean(document: RunDocument, arm: str, name: str) -> str:
    """Write a mean with the interval that holds it with a confidence of 95 %."""
    value = document["metrics"][arm].get(name)
    if value is None:
        return ""
    ends = document.get("intervals", {}).get(arm, {}).get(name)
    return f"{value:.3f}" if ends is None else f"{value:.3f} [dim]{ends[0]:.2f}–{ends[1]:.2f}[/]"


def _ledger_table(
    lost: Mapping[str, int], tried: Sequence[Mapping[str, Any]], asked: Mapping[str, Any]
) -> Table:
    budget = asked.get("budget_tokens")
    packed = "not packed" if budget is None else f"budget {budget:,} tokens"
    table = Table(
        "evidence",
        "pieces",
        "setting that keeps most of them",
        title=f"By the search with k {asked.get('k', Options.k):,}, {packed}",
        title_justify="left",
    )
    for stage in STAGES:
        if not lost.get(stage):
            continue
        best = max(
            (one for one in tried if one["stage"] == stage), key=lambda one: int(one["keeps"]), default=None
        )
        helps = (
            f"{best['setting']} {json.dumps(best['value'])} keeps {best['keeps']} of {best['of']}"
            if best is not None and best["keeps"]
            else ""
        )
        table.add_row(stage.replace("_", " "), f"{lost[stage]:,}", helps)
    return table


def _say(document: RunDocument) -> None:
    """Say on stderr what the figures don't, and the next step."""
    left_out, asked = document.get("left_out", []), len(document["queries"])
    typer.echo(
        f"{asked - len(left_out):,} judged queries counted"
        + (f"; {len(left_out):,} that nothing answers were left out: {names(left_out)}" if left_out else "")
        + ".",
        err=True,
    )
    passages = (document["settings"]["collection"].get("search_settings") or {}).get("depth")
    passages = max(passages, document["settings"]["again"]["k"]) if passages is not None else None
    ranked = document["settings"]["documents_ranked"]
    if passages is not None and passages < ranked:
        typer.echo(
            f"By depth and k a search gives {passages:,} passages; documents beyond these, up to {ranked:,}, are"
            " those of a deeper search.",
            err=True,
        )
    for note in document["settings"].get("notes", []):
        typer.echo(f"{note[0].upper()}{note[1:]}.", err=True)
    below = [one for one in document.get("principals", []) if one["below_promise"]]
    for one in below[:_NAMED]:
        who = ", ".join(one["principals"]) or "the public"
        typer.echo(
            f"Below the promise: {who} finds {one['ann_recall@10']:.3f} of the 10 nearest, {PROMISE} is promised.",
            err=True,
        )
    if below[_NAMED:]:
        typer.echo(f"And {len(below) - _NAMED:,} others.", err=True)
    run_id = document["run_id"]
    typer.echo(f"Kept as run {run_id}. Next: pgrag eval report {run_id}", err=True)


def _say_changes(before: RunDocument, document: RunDocument) -> None:
    """Say on stderr what is otherwise than when the run was made first."""
    changes = setting_differences(before["settings"], document["settings"])
    if not changes:
        typer.echo(
            f"Nothing has changed since run {before['run_id']}: collection, queries and versions.", err=True
        )
    for change in changes:
        said = _DIGESTS.get(change.name, f"{change.name}: {_set(change.old)} is {_set(change.new)} now")
        typer.echo(f"Changed since run {before['run_id']}: {said}.", err=True)
    typer.echo(f"Next: pgrag eval compare {before['run_id']} {document['run_id']}", err=True)


def _set(value: Any) -> str:
    if value is None:
        return "nothing"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
