"""Serves ``pgrag space``: how a space is described in words and in JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pgrag.spaces import Space

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = [
    "Memory",
    "SpaceName",
    "Workers",
    "answering",
    "flat",
    "index",
    "kept",
    "processes",
    "size",
    "to_json",
]

SpaceName = Annotated[str, typer.Argument(metavar="SPACE", help="Its name.", show_default=False)]
Memory = Annotated[
    str | None,
    typer.Option(
        "--memory",
        metavar="SIZE",
        show_default=False,
        help="maintenance_work_mem for this build, such as 2GB; else the server's.",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        metavar="N",
        min=0,
        max=1024,
        show_default=False,
        help="Most parallel workers; else the server's max_parallel_maintenance_workers.",
    ),
]

_UNITS = ("bytes", "kB", "MB", "GB", "TB")


def to_json(row: DataclassInstance) -> str:
    """Write a row as one JSON object, its moments in ISO 8601."""
    return json.dumps(asdict(row), ensure_ascii=False, default=str)


def kept(space: Space) -> str:
    """Say how vectors are kept: ``384 halfvec``, ``256 of 768 bit, rotated``."""
    of = f"{space.dimension}"
    if space.model_dimension != space.dimension:
        of += f" of {space.model_dimension}"
    return f"{of} {space.precision}" + (", rotated" if space.rotate else "")


def index(space: Space) -> str:
    """Say which index there is, and what is the matter with it."""
    if space.index_kind == "none":
        return "none"
    options = "".join(f" {name} {value}" for name, value in space.index_options.items())
    state = "" if space.index_state == "valid" else f", {space.index_state}"
    return f"{space.index_kind}{options}{state}"


def answering(space: Space) -> str:
    """Say which collections a space answers, and which others it only holds: ``docs; not notes``."""
    others = [name for name in space.collections if name not in space.answers]
    if not space.answers:
        new = "; default of new ones" if space.state == "active" else ""
        return f"no collection{new}" + (f"; holds {', '.join(others)}" if others else "")
    return ", ".join(space.answers) + (f"; not {', '.join(others)}" if others else "")


def size(number: float) -> str:
    """Write bytes in the unit that suits them, to two digits at least."""
    unit = 0
    while number >= 1024 and unit < len(_UNITS) - 1:
        number /= 1024
        unit += 1
    return f"{number:,.{1 if unit and number < 10 else 0}f} {_UNITS[unit]}"


def processes(figures: Mapping[str, Any]) -> str:
    """Say how many processes built an index: the workers, and the one that led them."""
    workers = int(figures["workers"])
    return "one process" if workers == 0 else f"{workers + 1} processes"


def flat(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """Yield the leaves of nested figures, each with its path."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{before}{name}.")
        else:
            yield (
                f"{before}{name}",
                value if isinstance(value, str) else json.dumps(value, ensure_ascii=False),
            )
