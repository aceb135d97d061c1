"""``pgrag eval compare``: hold a run against another."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import psycopg
import typer
from rich.console import Console
from rich.table import Table

from pgrag._utf8 import read_utf8
from pgrag.errors import PgragError, translated
from pgrag.evaluate import RunComparison, RunDocument, compare_runs, load_run
from pgrag_cli._database import DatabaseUrl, resolve_dsn

__all__ = ["compare"]

_WIDTH = 100
_RUN_HELP = "The number of a run, or a file that pgrag eval run --full wrote."


def compare(
    old: Annotated[str, typer.Argument(metavar="OLD", help=_RUN_HELP, show_default=False)],
    new: Annotated[str, typer.Argument(metavar="NEW", help=_RUN_HELP, show_default=False)],
    shared: Annotated[
        bool,
        typer.Option("--shared", help="Compare the queries that both have, where the judged sets differ."),
    ] = False,
    measure: Annotated[
        list[str] | None,
        typer.Option(
            "--measure",
            metavar="MEASURE",
            show_default=False,
            help="Compare this one alone, such as ndcg@10, and correct for it alone; repeat it for several.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as one JSON object.")] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Hold a run against another, on the same queries: each measure of each arm, and whether chance alone explains it.

    95 %: where the change lies, each measure taken by itself; p: how likely chance makes one as large, by permutation;
    t: by a t-test; Holm: p, corrected for all that is compared (--measure compares less); +/=/-: queries that are better,
    equal and worse. Measures that no query differs by are left out, and below 100 columns p and t.
    """
    before, after = (_read(which, database_url) for which in (old, new))
    comparison = compare_runs(before, after, shared=shared, measures=measure or ())
    if as_json:
        typer.echo(json.dumps(asdict(comparison), ensure_ascii=False))
    else:
        _show(comparison)
    _say(comparison)


def _read(which: str, database_url: str | None) -> RunDocument:
    """Read a run from the database, or from a file."""
    if which.isascii() and which.isdigit():
        with translated(), psycopg.connect(resolve_dsn(database_url), autocommit=True) as connection:
            return load_run(connection, int(which))
    path = Path(which)
    if not path.is_file():
        raise PgragError(f"{which} is neither the number of a run nor a file", "pgrag eval runs")
    try:
        document = json.loads(read_utf8(path))
    except (ValueError, RecursionError) as error:
        raise PgragError(
            f"{which} holds no JSON: {error}", "pgrag eval run --full FILE writes a run."
        ) from error
    if not isinstance(document, dict) or "queries" not in document:
        raise PgragError(
            f"{which} holds no run", "pgrag eval run --full FILE writes one; --json writes means alone."
        )
    return document


def _show(comparison: RunComparison) -> None:
    console = Console()
    # Narrower, figures would be cut: lines between columns, p and t give way.
    is_narrow = console.width < _WIDTH
    table = Table("arm", "measure", **{"box": None, "padding": (0, 2, 0, 0)} if is_narrow else {})  # type: ignore[arg-type]
    for name in ("old", "new", "change", "95 %", *([] if is_narrow else ["p", "t"]), "Holm", "+/=/-"):
        table.add_column(name, justify="right", overflow="fold")
    for one in comparison.arms:
        figures = one.figures
        if not figures.wins and not figures.losses:
            continue
        table.add_row(
            one.arm,
            figures.measure,
            f"{figures.old:.3f}",
            f"{figures.new:.3f}",
            f"{figures.difference:+.3f}",
            f"{figures.low:+.2f} {figures.high:+.2f}",
            *([] if is_narrow else [f"{figures.p_permutation:.3f}", f"{figures.p_t:.3f}"]),
            f"{figures.p_holm:.3f}",
            f"{figures.wins}/{figures.ties}/{figures.losses}",
            style="bold" if figures.is_significant else None,
        )
    if table.row_count:
        console.print(table)
    if comparison.settings:
        settings = Table()
        for name in ("set otherwise", "old", "new"):
            settings.add_column(name, overflow="fold")
        for change in comparison.settings:
            settings.add_row(change.name, _words(change.old), _words(change.new))
        console.print(settings)


def _words(value: Any) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _say(comparison: RunComparison) -> None:
    """Say on stderr what was compared, and what follows."""
    typer.echo(
        f"{comparison.queries:,} judged queries; old: {comparison.old}; new: {comparison.new}.", err=True
    )
    left = len(comparison.only_old) + len(comparison.only_new)
    if left:
        typer.echo(f"{left:,} more are in one of them only, and left out.", err=True)
    if comparison.judged_otherwise:
        typer.echo("The judged sets differ: a difference may come from that alone.", err=True)
    same: dict[str, list[str]] = {}
    for one in comparison.arms:
        if not one.figures.wins and not one.figures.losses:
            same.setdefault(one.arm, []).append(one.figures.measure)
    for arm, measures in same.items():
        whole = len(measures) == sum(one.arm == arm for one in comparison.arms)
        typer.echo(f"Equal for every query: {arm}{'' if whole else ', ' + ', '.join(measures)}.", err=True)
    if len(comparison.arms) > 1:
        typer.echo(
            f"Holm's p is corrected for the {len(comparison.arms):,} measures compared; the intervals (95 %) are not.",
            err=True,
        )
    significant = [one for one in comparison.arms if one.figures.is_significant]
    if not significant:
        typer.echo("Nothing differs by more than chance explains (Holm, p < 0.05).", err=True)
