"""``pgrag status``: what runs, and what is in it."""

from __future__ import annotations

import json
import os
from typing import Annotated

import typer

from pgrag.errors import PgragError
from pgrag.index import status as held
from pgrag.server import EmbeddedServer, database_versions
from pgrag_cli._database import DATABASE_URL, DatabaseUrl, DataDirectory, redact, resolve_dsn

__all__ = ["status"]


def status(
    data: DataDirectory = None,
    database_url: DatabaseUrl = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show the embedded server, and the database that commands would use."""
    report = {"server": _server(data), "database": _database(data, database_url)}
    if as_json:
        typer.echo(json.dumps(report))
        return
    rows = {
        f"{part} {name.replace('_', ' ')}": _word(value)
        for part, facts in report.items()
        for name, value in _flat(facts).items()
    }
    width = max(map(len, rows))
    for name, word in rows.items():
        typer.echo(f"{name:{width}}  {word}")


def _server(data: DataDirectory) -> dict[str, object]:
    found = EmbeddedServer(data).status()
    return {
        "running": found.running,
        "pid": found.pid,
        "version": found.version,
        "data": str(found.data),
        "socket_directory": str(found.socket_directory),
        "log": str(found.log),
        "dsn": found.dsn,
    }


def _database(data: DataDirectory, database_url: str | None) -> dict[str, object]:
    """Say what can be known of the database; further facts of a database with pgrag in it belong here."""
    chosen_by_data = data is not None and not database_url
    try:
        dsn = EmbeddedServer(data).dsn if chosen_by_data else resolve_dsn(database_url)
    except PgragError as error:
        return {"reachable": False, "reason": f"{error.message.rstrip('.')}; {error.hint}"}
    source = "--data" if chosen_by_data else "--database-url" if database_url else DATABASE_URL
    if not chosen_by_data and not database_url and not os.environ.get(DATABASE_URL):
        source = "embedded server"
    facts: dict[str, object] = {"dsn": redact(dsn), "from": source}
    try:
        versions = database_versions(dsn)
    except PgragError as error:
        return facts | {"reachable": False, "reason": redact(error.message)}
    facts |= {
        "reachable": True,
        "postgresql": versions.postgresql,
        "pgvector": versions.pgvector,
        "pgvector_available": versions.pgvector_available,
    }
    try:
        return facts | {"pgrag": held(dsn)}
    except PgragError as error:
        return facts | {"pgrag": None, "pgrag_reason": redact(error.message)}


def _flat(facts: dict[str, object]) -> dict[str, object]:
    """Put what a fact consists of beside the others."""
    flat: dict[str, object] = {}
    for name, value in facts.items():
        if isinstance(value, dict):
            flat |= {f"{name} {part}": what for part, what in value.items()}
        else:
            flat[name] = value
    return flat


def _word(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
