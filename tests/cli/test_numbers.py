"""Numbers that are typed: each has a range, so that none is refused by a stack of lines or by the wrong words."""

from __future__ import annotations

import typing
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from _cli import pgrag

from pgrag_cli import main

COMMANDS: list[tuple[str, Callable[..., None]]] = [
    *(("", command) for command in main.COMMANDS),
    *((group, command) for group, commands in main.GROUPS.items() for command in commands),
]


def numbers(command: Callable[..., None]) -> dict[str, Any]:
    """The options of a command that are a number."""
    found = {}
    for name, hint in typing.get_type_hints(command, include_extras=True).items():
        if typing.get_origin(hint) is Annotated:
            kind, option = typing.get_args(hint)[:2]
            if parts(kind) & {int, float}:
                found[name] = option
    return found


def parts(kind: Any) -> set[Any]:
    """A type, and those that it is made of."""
    return {kind}.union(*map(parts, typing.get_args(kind)))


@pytest.mark.parametrize(("group", "command"), COMMANDS, ids=lambda part: getattr(part, "__name__", part))
def test_every_number_has_a_range(group: str, command: Callable[..., None]) -> None:
    open_ended = [name for name, of in numbers(command).items() if of.min is None or of.max is None]
    assert open_ended == []


@pytest.mark.parametrize("seconds", ["1e300", "nan", "inf", "-1", "0"])
def test_a_lease_that_is_none_is_wrong_usage(seconds: str) -> None:
    done = pgrag("", "worker", "--lease-seconds", seconds)
    assert done.returncode == 2
    assert "--lease-seconds" in done.stderr
