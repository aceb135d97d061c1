"""``pgrag search``: finds passages for somebody, and shows why each is there."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pgrag.client import connect
from pgrag.types import Explanation, Hit
from pgrag_cli._caller import As, Collections, check_collections, principals
from pgrag_cli._database import DatabaseUrl, resolve_dsn
from pgrag_cli._encoder import QueryModel, load_encoder
from pgrag_cli._query import say_nothing_found

__all__ = ["search"]

_PREVIEW_CHARACTERS = 300
# Around a match in the terminal's snippets; like all control characters, they are taken out of what is printed.
_START, _STOP = "\x02", "\x03"
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_TABLE_RULE = re.compile(r"\|(?:\s*:?-{3,}:?\s*\|)+")


def search(
    query: Annotated[str, typer.Argument(help='Words, "phrases", -exclusions and prefix*.')],
    as_: As = None,
    collection: Collections = None,
    k: Annotated[int, typer.Option("-k", min=1, max=1000, help="Most passages.")] = 10,
    filter_: Annotated[
        str, typer.Option("--filter", metavar="JSON", help="What a document's metadata must contain.")
    ] = "{}",
    model: QueryModel = None,
    space: Annotated[
        str | None,
        typer.Option(
            "--space", metavar="NAME", show_default=False, help="Name of the model's space; else its own."
        ),
    ] = None,
    words_only: Annotated[
        bool,
        typer.Option(
            "--words-only",
            help="Rank by words alone, not by meaning: for codes, names and whatever has to be in the text.",
        ),
    ] = False,
    exact: Annotated[bool, typer.Option("--exact", help="Forbid the approximate index.")] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what each word and each arm gave each passage.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object a passage; its snippet is HTML.")
    ] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Find the passages that answer a query best, among what somebody may read."""
    who = principals(as_)
    condition = _object(filter_)
    if words_only and model is not None:
        raise typer.BadParameter("asks for no meaning, so no model is of use", param_hint="--words-only")
    encoder = load_encoder(model, space) if model is not None else None
    weights = {"lexical": 1.0, "dense": 0.0} if words_only else None
    with connect(resolve_dsn(database_url), encoder=encoder) as store:
        caller = store.as_principals(*who)
        check_collections(caller, collection)
        hits = caller.search(
            query, k=k, collections=collection, filter=condition, weights=weights, exact=exact
        )
        asked = [hit.chunk_id for hit in hits]
        if as_json:
            snippets = caller.snippets(query, asked)
        else:
            snippets = caller.snippets(
                query,
                asked,
                max_characters=_PREVIEW_CHARACTERS,
                start_mark=_START,
                stop_mark=_STOP,
                escape_html=False,
            )
        reasons: dict[int, list[Explanation]] = {}
        if explain:
            for reason in caller.explain(
                query, asked, k=k, collections=collection, filter=condition, weights=weights, exact=exact
            ):
                reasons.setdefault(reason.chunk_id, []).append(reason)
    if encoder is not None and hits and all(hit.dense_rank is None for hit in hits):
        typer.echo(f"By words alone: of the spaces that they see, none is of {model}.", err=True)
    if as_json:
        for hit in hits:
            row = asdict(hit) | {"snippet": snippets.get(hit.chunk_id)}
            if explain:
                row["explanation"] = [asdict(reason) for reason in reasons.get(hit.chunk_id, [])]
            typer.echo(json.dumps(row, ensure_ascii=False))
        return
    if not hits:
        say_nothing_found(query, who)
        return
    _show(hits, snippets, reasons)


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise typer.BadParameter(f"not JSON: {error}", param_hint="--filter") from error
    if not isinstance(value, dict):
        raise typer.BadParameter("not a JSON object", param_hint="--filter")
    return value


def _show(hits: list[Hit], snippets: dict[int, str], reasons: dict[int, list[Explanation]]) -> None:
    table = Table(show_lines=True)
    for name, style in (
        ("#", "bold"),
        ("passage", None),
        ("score", None),
        ("words", None),
        ("meaning", None),
    ):
        # Folded: text without spaces, such as Chinese or a long address, would be cut at the column's end.
        table.add_column(name, style=style, justify="left" if name == "passage" else "right", overflow="fold")
    for place, hit in enumerate(hits, 1):
        preview = _preview(hit, snippets.get(hit.chunk_id, ""))
        source, uri = _CONTROL.sub("", _source(hit)), _CONTROL.sub("", hit.uri)
        passage = Text.assemble((source, "bold"), "\n", (uri, "dim"), "\n", preview)
        for reason in reasons.get(hit.chunk_id, []):
            passage.append(f"\n{reason.stage}: {reason.detail}", style="italic")
        words = "-" if hit.lexical_rank is None else f"#{hit.lexical_rank}\n{hit.lexical_score:.2f}"
        meaning = "-" if hit.dense_rank is None else f"#{hit.dense_rank}\n{hit.dense_distance:.3f}"
        table.add_row(str(place), passage, f"{hit.score:.5f}", words, meaning)
    console = Console()
    console.print(table)
    plan = next((hit.dense_plan for hit in hits if hit.dense_plan), None)
    if plan is not None:
        Console(stderr=True).print(f"meaning: {plan}", style="dim")


def _source(hit: Hit) -> str:
    """Title and headings; once where the title is the first heading, too."""
    title = hit.title or hit.uri
    return " › ".join(hit.heading_path if title in hit.heading_path[:1] else (title, *hit.heading_path))


def _preview(hit: Hit, snippet: str) -> Text:
    """The snippet in one paragraph, its matches emphasised; headings that are shown anyway are left out."""
    lines = [
        line
        for line in snippet.splitlines()
        if _CONTROL.sub("", line).strip("…").strip("# ") not in hit.heading_path
    ]
    shown = Text()
    for nth, part in enumerate(" ".join(_TABLE_RULE.sub("", " ".join(lines)).split()).split(_START)):
        match, found, rest = part.partition(_STOP)
        shown.append(_CONTROL.sub("", match), style="bold yellow" if nth and found else None)
        shown.append(_CONTROL.sub("", rest))
    return shown
