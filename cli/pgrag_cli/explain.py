"""``pgrag explain``: what became of one document, or a span of it, at each stage of a search, and what would have kept it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Annotated, Any

import psycopg
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pgrag.errors import translated
from pgrag.evaluate import (
    Counterfactual,
    Evidence,
    JudgedQuery,
    Judgement,
    Trace,
    counterfactuals,
    space_of,
    trace,
)
from pgrag_cli._caller import As, principals
from pgrag_cli._database import DatabaseUrl, resolve_dsn
from pgrag_cli._encoder import QueryModel, load_encoder

__all__ = ["explain"]


def explain(
    query: Annotated[str, typer.Argument(help='Words, "phrases", -exclusions and prefix*.')],
    document: Annotated[
        str, typer.Option("--document", metavar="URI", help="What should have been found, by its uri.")
    ],
    collection: Annotated[str, typer.Option("--collection", metavar="NAME", help="Where it is.")],
    as_: As = None,
    span: Annotated[
        str | None,
        typer.Option(
            "--span",
            metavar="START:END",
            show_default=False,
            help="Of its text, in characters from 0; else the document by its best passage.",
        ),
    ] = None,
    quote: Annotated[
        str | None,
        typer.Option("--quote", metavar="TEXT", show_default=False, help="The span that says this."),
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, max=1000, help="Most passages of the search.")] = 10,
    depth: Annotated[
        int | None,
        typer.Option(
            "--depth",
            min=1,
            max=10_000,
            show_default=False,
            help="Candidates of each arm; else the collection's.",
        ),
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option(
            "--budget",
            metavar="TOKENS",
            min=1,
            max=10_000_000,
            show_default=False,
            help="Of pgrag pack; else packing isn't asked.",
        ),
    ] = None,
    model: QueryModel = None,
    space: Annotated[
        str | None,
        typer.Option(
            "--space", metavar="NAME", show_default=False, help="Name of the model's space; else its own."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Say at which stage a search lost a document, or a span of it, and which setting would have kept it."""
    who = principals(as_)
    if span is not None and quote is not None:
        raise typer.BadParameter("name the span or quote it, not both", param_hint="--span")
    start, end = _span(span)
    encoder = load_encoder(model, space) if model is not None else None
    vector = encoder.encode_queries([query])[0] if encoder is not None else None
    asked = JudgedQuery(
        query_id="",
        query=query,
        principals=tuple(who),
        answer=None,
        judgements=(Judgement(document, start, end, 1, quote),),
    )
    with translated(), psycopg.connect(resolve_dsn(database_url), autocommit=True) as connection:
        if encoder is not None:
            space = space_of(connection, encoder, principals=who, space=space)
        (found,) = trace(
            connection, collection, asked, embedding=vector, k=k, depth=depth, space=space, budget=budget
        )
        others = counterfactuals(
            connection,
            collection,
            [Trace(asked, (found,), vector)],
            k=k,
            depth=depth,
            space=space,
            budget=budget,
        )
    if as_json:
        row = {"query": query} | asdict(found) | {"counterfactuals": [asdict(other) for other in others]}
        del row["grade"]
        typer.echo(json.dumps(row, ensure_ascii=False))
        return
    _show(found, others, ", ".join(who), k=k, budget=budget)


def _span(text: str | None) -> tuple[int | None, int | None]:
    if text is None:
        return None, None
    start, colon, end = text.partition(":")
    if not (colon and start.isdecimal() and end.isdecimal() and int(start) < int(end)):
        raise typer.BadParameter(
            "write it as 120:180, the first character and one past the last", param_hint="--span"
        )
    return int(start), int(end)


def _show(found: Evidence, others: list[Counterfactual], who: str, *, k: int, budget: int | None) -> None:
    console = Console()
    table = Table("stage", "what happened")
    for stage, words in _account(found, who, k=k, budget=budget):
        lost = stage == found.stage and stage != "kept"
        table.add_row(
            stage, Text(f"lost: {words}" if lost else words), style="bold" if stage == found.stage else None
        )
    console.print(table)
    if others:
        helpful = [other for other in others if other.passes]
        if helpful:
            table = Table("with", "what becomes of it")
            for other in helpful:
                table.add_row(_setting(other), _outcome(other))
            console.print(table)
        useless = [_setting(other) for other in others if not other.passes]
        if useless:
            console.print(Text(f"No help: {'; '.join(useless)}."))
    where = f"kept at place {found.rank}" if found.stage == "kept" else f"lost: {found.stage}"
    typer.echo(f"{found.uri}: {where}", err=True)


def _account(found: Evidence, who: str, *, k: int, budget: int | None) -> Iterator[tuple[str, str]]:
    """Yield what each stage did, up to the one that lost it."""
    detail = found.detail
    if found.stage == "not_ingested":
        reason = detail.get("reason", "")
        if reason == "no such document":
            reason = f"there is no such document that {who} may read"
        yield "not_ingested", reason
        return
    if found.stage == "not_permitted":
        yield "not_permitted", f"it is there, and {who} may not read it"
        return
    moved = detail.get("moved_to")
    yield "ingested", f"it is there, at characters {moved[0]} to {moved[1]}" if moved else "it is there"
    yield "permitted", f"{who} may read it"
    if found.stage == "split":
        spans = [f"{one['char_start']} to {one['char_end']}" for one in detail["chunks"]]
        yield "split", f"no passage holds it whole; parts of it are in those of characters {', '.join(spans)}"
        return
    whole = found.char_start is None and moved is None
    yield (
        "chunk",
        f"the best of it is {_passage(detail)}" if whole else f"{_passage(detail)} holds it",
    )
    if "reason" in detail and found.stage == "representation":
        yield "representation", detail["reason"]
        return
    yield "words", _place(detail.get("lexical_rank"))
    exact, place = detail.get("dense_rank_exact"), detail.get("dense_rank")
    by_index = "" if exact == place else f"; {_place(exact)} if compared exactly"
    yield "meaning", _place(place) + by_index
    if found.stage == "representation":
        yield "representation", f"in no arm's first {detail['depth']}"
        return
    if found.stage == "ann":
        yield "ann", f"the approximate index passed it over; {detail.get('plan', '')}".rstrip("; ")
        return
    yield "fusion", f"place {found.rank}, and k is {k}"
    if found.stage == "pack":
        yield (
            "pack",
            f"{detail['reason']}, which is {budget} tokens"
            if detail["reason"] == "over the budget"
            else detail["reason"],
        )
    elif found.stage == "kept":
        if budget is not None:
            yield "packed", f"within {budget} tokens"
        yield "kept", f"at place {found.rank}"


def _passage(detail: Mapping[str, Any]) -> str:
    """Say which passage of the document it is, as people count, and under which heading."""
    heading = f', under "{detail["heading"]}"' if "heading" in detail else ""
    return f"passage {detail['ordinal'] + 1:,} of the document{heading}"


def _place(rank: int | None) -> str:
    return "not among the candidates" if rank is None else f"place {rank}"


def _setting(other: Counterfactual) -> str:
    value = other.value
    if other.setting == "exact":
        return "an exact search"
    if other.setting == "index_effort":
        return f"{value} times the effort of the index"
    if isinstance(value, dict):
        return "weights " + ", ".join(f"{arm} {weight:g}" for arm, weight in value.items())
    return f"{other.setting} {value:,}" if isinstance(value, int) else f"{other.setting} {value}"


def _outcome(other: Counterfactual) -> str:
    if other.stage == "split":
        return "it is in one passage"
    return "it is kept" if other.keeps else "it gets further, and is lost later"
