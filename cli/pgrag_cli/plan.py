"""``pgrag plan``: what so many passages of a model take, before they are there."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import psycopg
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pgrag.embed import EndpointEncoder
from pgrag.errors import PgragError, translated
from pgrag.plan import Plan, encoding_rate
from pgrag.plan import plan as make_plan
from pgrag_cli._database import DatabaseUrl, resolve_dsn
from pgrag_cli._encoder import MODEL_HELP, load_encoder
from pgrag_cli.space._words import size

__all__ = ["plan"]

# What a plan of the server says in its own terms, in plain words.
_REASONS = {
    "more than hnsw gives at once": "they see too small a part for the index: of the 1,000 that it finds, too few are theirs",
}


def plan(
    chunks: Annotated[
        int, typer.Option("--chunks", metavar="N", min=1, max=10**12, help="Passages.", show_default=False)
    ],
    model: Annotated[
        str | None,
        typer.Option("--model", metavar="MODEL", show_default=False, help=f"{MODEL_HELP}; it is timed."),
    ] = None,
    dimension: Annotated[
        int | None,
        typer.Option(
            "--dimension", metavar="D", min=1, max=4000, show_default=False, help="Numbers a vector."
        ),
    ] = None,
    space: Annotated[
        str | None,
        typer.Option(
            "--space",
            metavar="NAME",
            show_default=False,
            help="Go by what was measured of this space on this server.",
        ),
    ] = None,
    precision: Annotated[
        str | None,
        typer.Option("--precision", show_default="halfvec", help="vector, halfvec or bit."),
    ] = None,
    index: Annotated[
        str | None, typer.Option("--index", show_default="hnsw", help="hnsw, ivfflat or none.")
    ] = None,
    m: Annotated[int | None, typer.Option("--m", min=2, max=100, show_default="16", help="Of hnsw.")] = None,
    ef_construction: Annotated[
        int | None, typer.Option("--ef-construction", min=4, max=1000, show_default="64", help="Of hnsw.")
    ] = None,
    lists: Annotated[
        int | None,
        typer.Option("--lists", min=1, max=32_768, show_default="one for 1,000 vectors", help="Of ivfflat."),
    ] = None,
    average_tokens: Annotated[
        int, typer.Option("--average-tokens", metavar="N", min=1, max=8192, help="In a passage.")
    ] = 200,
    acls: Annotated[
        int, typer.Option("--acls", metavar="N", min=1, max=10**9, help="Different sets of readers.")
    ] = 500,
    chunks_per_document: Annotated[
        float,
        typer.Option("--chunks-per-document", metavar="N", min=1, max=10**6, help="Passages a document."),
    ] = 10,
    share: Annotated[
        list[float] | None,
        typer.Option(
            "--share",
            metavar="S",
            min=0,
            max=1,
            show_default="1, 0.1, 0.01",
            help="Of the passages, that somebody sees.",
        ),
    ] = None,
    k: Annotated[
        int, typer.Option("-k", min=1, max=10_000, help="Passages that a dense search asks for.")
    ] = 100,
    chunks_per_second: Annotated[
        float | None,
        typer.Option(
            "--chunks-per-second",
            min=0.001,
            max=10**9,
            show_default=False,
            help="That the model embeds; else --model is timed.",
        ),
    ] = None,
    rerank_pairs: Annotated[
        int, typer.Option("--rerank-pairs", min=0, max=10**6, help="Passages that are reranked.")
    ] = 100,
    rerank_ms: Annotated[
        float | None,
        typer.Option(
            "--rerank-ms", min=0, max=10**9, show_default=False, help="Milliseconds to rerank one of them."
        ),
    ] = None,
    passages: Annotated[int, typer.Option("--passages", min=1, max=1000, help="In a prompt.")] = 10,
    context_tokens: Annotated[
        int | None,
        typer.Option(
            "--context-tokens",
            min=1,
            max=10**12,
            show_default=False,
            help="That the generator reads at most.",
        ),
    ] = None,
    price: Annotated[
        float | None,
        typer.Option(
            "--price-per-million-tokens",
            min=0,
            max=10**9,
            show_default=False,
            help="Of the generator's input, in your currency.",
        ),
    ] = None,
    prefill: Annotated[
        float | None,
        typer.Option(
            "--prefill-tokens-per-second",
            min=0.001,
            max=10**12,
            show_default=False,
            help="That the generator reads.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Say what so many passages take: storage, memory, time to build and to search, and prompts beside long context."""
    given = {"m": m, "ef_construction": ef_construction, "lists": lists}
    options = {name: value for name, value in given.items() if value is not None}
    wrong = sorted(options.keys() & ({"lists"} if (index or "hnsw") == "hnsw" else {"m", "ef_construction"}))
    if wrong and (index is not None or space is None):
        raise PgragError(
            f"{wrong[0]} is none of {index or 'hnsw'}'s options",
            "--m and --ef-construction are for hnsw, --lists for ivfflat",
        )
    if model is not None:
        encoder = load_encoder(model)
        dimension = dimension or encoder.dimension
        if chunks_per_second is None and not isinstance(encoder, EndpointEncoder):
            chunks_per_second = encoding_rate(encoder, average_tokens=average_tokens)
    with translated(), psycopg.connect(resolve_dsn(database_url), autocommit=True) as connection:
        made = make_plan(
            connection,
            chunks,
            space=space,
            dimension=dimension,
            precision=precision,
            index=index,
            index_options=options or None,
            average_tokens=average_tokens,
            acls=acls,
            chunks_per_document=chunks_per_document,
            shares=tuple(share or (1.0, 0.1, 0.01)),
            k=k,
            chunks_per_second=chunks_per_second,
            rerank_pairs=rerank_pairs,
            rerank_ms=rerank_ms,
            passages=passages,
            context_tokens=context_tokens,
            price_per_million_tokens=price,
            prefill_tokens_per_second=prefill,
        )
    if as_json:
        typer.echo(json.dumps(asdict(made)))
    else:
        _show(made, space)


def _show(made: Plan, space: str | None) -> None:
    console = Console()
    options = "".join(f" {name} {value:,}" for name, value in made.index_options.items())
    console.print(
        f"{made.chunks:,} passages of {made.average_tokens:,} tokens under {made.acls:,} ACLs,"
        f" {made.dimension} {made.precision}, index {made.index_kind}{options}",
        style="bold",
    )
    stored, memory, building = made.storage, made.memory, made.building
    costs = Table("what", "takes", "from")
    rows = [
        ("documents", size(stored.documents), made.texts_from),
        ("passages", size(stored.chunks), made.texts_from),
        ("lexical index", size(stored.postings), made.texts_from),
        ("vectors", size(stored.vectors), f"{stored.vector_bytes:,} bytes each, and rows and keys"),
        ("approximate index", size(stored.index), "the layout of its pages"),
        ("storage in all", size(stored.total), "without write-ahead log and dead rows"),
        (
            "memory of the build",
            size(memory.build),
            f"maintenance_work_mem is {size(memory.maintenance_work_mem)}: "
            + ("enough" if memory.build_fits else "set more, or pgrag space build --memory"),
        ),
        (
            "memory of searches",
            size(memory.hot),
            f"in shared_buffers ({size(memory.shared_buffers)}) and the system's cache",
        ),
        ("building the index", _time(building.index), f"one process; {building.index_from}"),
    ]
    if building.embed is not None:
        rows.append(
            ("embedding", _time(building.embed), f"{building.chunks_per_second:,.0f} passages a second")
        )
    without = {"approximate index", "memory of the build", "building the index"}
    for row in rows:
        if made.index_kind == "none" and row[0] in without:
            continue
        costs.add_row(*map(escape, row))
    console.print(costs)
    searches = Table(
        "sees", f"exact, nearest {made.searching[0].k}", "through the index", "pgrag would search"
    )
    for one in made.searching:
        searches.add_row(
            f"{one.visible:,}",
            f"{one.exact_ms:,.1f} ms",
            "-" if one.index_ms is None else f"{one.index_ms:,.1f} ms",
            escape(
                f"{'exact' if one.index_ms is None else made.index_kind}: {_REASONS.get(one.reason, one.reason)}"
            ),
        )
    console.print(searches)
    costs_from = made.searching[0].costs_from
    if costs_from == "usual":
        told = "usual ones; --space NAME goes by what was measured of a space here"
    elif costs_from.startswith("usual: "):
        told = costs_from.replace("usual: ", "usual ones: ", 1)
    else:
        told = f"those of {costs_from}"
    typer.echo(f"Times of searches are {told}.", err=True)
    if costs_from.endswith("is not calibrated"):
        typer.echo(f"Next: pgrag space calibrate {space}", err=True)
    _show_answering(console, made)


def _show_answering(console: Console, made: Plan) -> None:
    read = made.answering
    columns = {
        "a prompt with": (
            "what was found",
            "everything" + (", which doesn't fit" if read.fits is False else ""),
        ),
        "tokens": (f"{read.retrieved_tokens:,}", f"{read.everything_tokens:,}"),
    }
    if read.retrieved_cost is not None and read.everything_cost is not None:
        columns["price"] = (_price(read.retrieved_cost), _price(read.everything_cost))
    if read.retrieved_seconds is not None and read.everything_seconds is not None:
        columns["time to read"] = (_time(read.retrieved_seconds), _time(read.everything_seconds))
    prompts = Table(*columns)
    for row in zip(*columns.values(), strict=True):
        prompts.add_row(*row)
    console.print(prompts)
    rerank = made.searching[0].rerank_ms
    if rerank is not None:
        typer.echo(f"Reranking takes {rerank:,.0f} ms a search.")
    untold = {
        "embedding (--model or --chunks-per-second)": made.building.embed,
        "price (--price-per-million-tokens)": read.retrieved_cost,
        "time to read (--prefill-tokens-per-second)": read.retrieved_seconds,
        "whether everything fits (--context-tokens)": read.fits,
        "reranking (--rerank-ms)": rerank,
    }
    lacking = [name for name, value in untold.items() if value is None]
    if lacking:
        typer.echo(f"With more options it tells as well: {', '.join(lacking)}.", err=True)


def _price(value: float) -> str:
    return f"{value:,.4f}" if value < 1 else f"{value:,.2f}"


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:,.1f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"
