"""Serves every command: says the next step as a command, where the database says it as a call in SQL."""

from __future__ import annotations

import re
import shlex
from functools import partial

__all__ = ["as_commands"]

_NAME = r"'((?:[^']|'')*)'"
# A call as the functions' hints write it, and the command that does the same; {0} is its first argument.
_COMMANDS = (
    (
        rf"select pgrag\.activate_space\({_NAME}, ({_NAME}|SPACE)\)",
        "pgrag space activate {1} --collection {0}",
    ),
    (rf"select pgrag\.attach_space\({_NAME}, {_NAME}\)", "pgrag space attach {1} --collection {0}"),
    (rf"select pgrag\.retire_space\({_NAME}\)", "pgrag space retire {0}"),
    (rf"select pgrag\.create_collection\({_NAME}\)", "pgrag create-collection {0}"),
    (r"select pgrag\.remove_member\(group, member\)", "pgrag remove-member GROUP MEMBER"),
    (r"select \* from pgrag\.runs\(\)", "pgrag eval runs"),
    (
        r"select name from pgrag\.space lists the spaces( that you may see)?\.",
        "pgrag space list, or in SQL: select name from pgrag.space",
    ),
    (rf"\bspace => {_NAME}", "--space {0}"),
    (r"\bspace => \.\.\.", "--space NAME"),
    (rf"\bcollection => {_NAME}", "--collection {0}"),
    (rf"\bindex_kind => {_NAME}", "--index {0}"),
    (r'\{"m": (\d+), "ef_construction": (\d+)\}', "--m {0} --ef-construction {1}"),
    (r'\{"(m|lists)": (\d+)\}', "--{0} {1}"),
    (r'\{"ef_construction": (\d+)\}', "--ef-construction {0}"),
)


def as_commands(hint: str) -> str:
    """Return a hint with the commands that do what its calls in SQL do.

    Args:
        hint: The next step; a call that no command stands for is left as it is.
    """
    for pattern, command in _COMMANDS:
        hint = re.sub(pattern, partial(_filled, command), hint)
    return hint


def _filled(command: str, found: re.Match[str]) -> str:
    arguments = [_word(group) for group in found.groups() if group is not None]
    return command.format(*arguments) if "{" in command else command


def _word(argument: str) -> str:
    """Write a name as the shell reads it."""
    name = argument[1:-1] if argument.startswith("'") else argument
    return shlex.quote(name.replace("''", "'"))
