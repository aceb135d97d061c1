"""``pgrag eval answers``: how good answers are, by a judge, and by people where some were labelled."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import psycopg
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn
from rich.table import Table

from pgrag.errors import PgragError, translated
from pgrag.evaluate import (
    ANSWER_METRICS,
    FEWEST_LABELS,
    AnswerFigure,
    Judge,
    JudgedAnswer,
    answer_figures,
    judge_answers,
    judged,
    keep_answers,
    needs_extra,
    read_answers,
    read_labels,
)
from pgrag_cli._database import DatabaseUrl, resolve_dsn
from pgrag_cli._encoder import load_encoder

__all__ = ["answers"]

_SHOWN_REASONS = 5


def answers(
    collection: Annotated[
        str, typer.Option("--collection", metavar="NAME", help="Whose documents were answered from.")
    ],
    file: Annotated[
        Path,
        typer.Option(
            "--answers",
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help='A line {"query_id": … or "query": …, "answer": …, "contexts": […], "reference": …}; what it leaves out of'
            " a judged query is taken from there.",
        ),
    ],
    judge_url: Annotated[
        str,
        typer.Option(
            "--judge-url",
            metavar="URL",
            help="An API like OpenAI's, https://host/v1. Its key is read from $PGRAG_JUDGE_API_KEY.",
        ),
    ],
    judge_model: Annotated[
        str, typer.Option("--judge-model", metavar="MODEL", help="The judge's name there.")
    ],
    labels: Annotated[
        Path | None,
        typer.Option(
            "--labels",
            metavar="FILE",
            exists=True,
            dir_okay=False,
            show_default=False,
            help='What people said of a random sample, a line {"query_id": …, "faithfulness": 0.5}; gives an interval of'
            f" each metric with {FEWEST_LABELS} labels or more.",
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            metavar="NAME",
            show_default=False,
            help=f"Only this: {', '.join(ANSWER_METRICS)}; may be repeated.",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="MODEL",
            show_default=False,
            help="Embeds the questions of answer_relevance, as in pgrag worker --help; else the shipped encoder.",
        ),
    ] = None,
    parallel: Annotated[
        int, typer.Option("--parallel", min=1, max=64, help="Answers that are judged at once.")
    ] = 4,
    requests_per_minute: Annotated[
        float | None,
        typer.Option(
            "--requests-per-minute",
            metavar="N",
            min=0.001,
            max=1_000_000,
            show_default=False,
            help="What the judge allows.",
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", show_default=False, help="Of the run.")
    ] = None,
    json_file: Annotated[
        Path | None,
        typer.Option(
            "--json",
            metavar="FILE",
            dir_okay=False,
            allow_dash=True,
            show_default=False,
            help="Write all of it as one JSON object; - is stdout.",
        ),
    ] = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Judge answers: faithfulness, answer relevance, context precision and recall; kept as a run of the collection.

    Faithfulness needs contexts; context precision and context recall need contexts and a reference; answer relevance needs
    neither. What a metric lacks leaves it unjudged, which is counted and told.
    """
    # What may be missing is said before a model is paid for.
    of_labels = ["ppi_py"] if labels is not None else []
    missing = needs_extra("ir_measures", "httpx2", "tenacity", *of_labels, what="judging answers")
    if missing is not None:
        raise missing
    dsn = resolve_dsn(database_url)
    with translated(), psycopg.connect(dsn, autocommit=True) as connection:
        known = {one.query_id: (one.query, one.answer) for one in judged(connection, collection)}
    given = read_answers(file, known=known)
    of_people = None if labels is None else read_labels(labels, given)
    encoder = load_encoder(model)
    console = Console(stderr=True)
    with (
        closing(Judge(judge_url, judge_model, requests_per_minute=requests_per_minute)) as judge,
        Progress(
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        ) as bar,
    ):
        task = bar.add_task("answers", total=len(given))
        found = judge_answers(
            given,
            judge,
            encoder=encoder,
            metrics=metric or tuple(ANSWER_METRICS),
            parallel=parallel,
            on_answer=lambda done, total: bar.update(task, completed=done, total=total),
        )
    figures = answer_figures(found, labels=of_people)
    passports = {"judge": judge.passport, "encoder": encoder.passport}
    if not any(one.metrics for one in found):
        _write(json_file, {"run_id": None, **passports}, found, figures)
        _say_reasons(found)
        raise PgragError("no answer could be judged, and no run was kept", "The reasons are above.")
    try:
        with psycopg.connect(dsn, autocommit=True) as connection:
            run_id = keep_answers(connection, collection, found, figures, name=name, **passports)
    except (PgragError, psycopg.Error):
        # It was paid for.
        _write(json_file, {"run_id": None, **passports}, found, figures)
        raise
    _write(json_file, {"run_id": run_id, **passports}, found, figures)
    if json_file is None or str(json_file) != "-":
        _show(figures)
    _say_reasons(found)
    labelled = {metric for values in (of_people or {}).values() for metric in values}
    for one in figures:
        if one.why_none is not None and one.metric in labelled:
            typer.echo(f"No interval of {one.metric}: {one.why_none}.", err=True)
    typer.echo(f"Kept as run {run_id}.", err=True)


def _write(
    file: Path | None, about: dict[str, Any], found: Sequence[JudgedAnswer], figures: Sequence[AnswerFigure]
) -> None:
    if file is None:
        return
    report = {
        **about,
        "metrics": {one.metric: asdict(one) for one in figures},
        "answers": [asdict(one) for one in found],
    }
    text = json.dumps(report, ensure_ascii=False)
    if str(file) == "-":
        typer.echo(text)
    else:
        try:
            file.write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            raise PgragError(
                f"{file}: can't be written: {error.strerror or error}", "Name another file."
            ) from error


def _show(figures: Sequence[AnswerFigure]) -> None:
    """Print a line a metric, with columns for what people said where there are labels."""
    labelled = any(one.labels or one.why_none for one in figures)
    table = Table("metric")
    for head in ("judge", "judged", "not\njudged", *(["labels", "people, 95 %"] if labelled else [])):
        table.add_column(head, justify="right", overflow="fold")
    for one in figures:
        people = ""
        if one.estimate is not None and one.low is not None and one.high is not None:
            people = f"{one.estimate:.3f}, {one.low:.3f} to {one.high:.3f}"
        table.add_row(
            one.metric,
            "-" if one.mean is None else f"{one.mean:.3f}",
            f"{one.judged:,}",
            f"{one.unjudged:,}",
            *([f"{one.labels:,}", people or "-"] if labelled else []),
        )
    Console().print(table)


def _say_reasons(found: Sequence[JudgedAnswer]) -> None:
    """Say what was not judged and why, a line for all answers with the same reason."""
    answers: dict[tuple[str, str], list[str]] = {}
    for one in found:
        for name, reason in one.unjudged.items():
            answers.setdefault((name, reason), []).append(one.query_id)
    reasons = sorted(answers.items(), key=lambda row: -len(row[1]))
    for (name, reason), ids in reasons[:_SHOWN_REASONS]:
        more = f" and {len(ids) - 1:,} more" if len(ids) > 1 else ""
        typer.echo(f"Not judged: {ids[0]}{more}, {name}: {reason}", err=True)
    if len(reasons) > _SHOWN_REASONS:
        typer.echo(f"And {len(reasons) - _SHOWN_REASONS:,} more reasons; --json FILE has them all.", err=True)
